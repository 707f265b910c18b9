"""Known secrets are taken out of log lines, tracebacks and answers (S4)."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from starlette.responses import Response, StreamingResponse

from console.credentials.redaction import HIDDEN, Redactor
from console.services.routes.responses import shown_once
from console.supervisor.http.redaction import hidden, hide_in_logs

SECRET = "planted-value-1"


@pytest.fixture
def redactor() -> Redactor:
    made = Redactor()
    made.learn(SECRET)
    made.learn("1234567890")
    return made


@pytest.fixture
def logged(redactor: Redactor) -> Iterator[io.StringIO]:
    text = io.StringIO()
    handler = logging.StreamHandler(text)
    handler.setFormatter(logging.Formatter("%(name)s: %(message)s"))
    root, before = logging.getLogger(), list(logging.getLogger().handlers)
    formatters = [h.formatter for h in before]
    hooks = sys.excepthook, threading.excepthook
    root.addHandler(handler)
    hide_in_logs(redactor)
    hide_in_logs(redactor)
    yield text
    root.removeHandler(handler)
    for kept, formatter in zip(before, formatters, strict=True):
        kept.setFormatter(formatter)
    sys.excepthook, threading.excepthook = hooks


def test_message_arguments_and_traceback_are_hidden(logged: io.StringIO) -> None:
    try:
        raise ValueError(f"no such key {SECRET}")
    except ValueError:
        logging.getLogger("x").exception("a request with %s failed", SECRET)
    said = logged.getvalue()
    assert said.startswith(f"x: a request with {HIDDEN} failed") and f"ValueError: no such key {HIDDEN}" in said and SECRET not in said


def test_what_nobody_caught_is_hidden_on_stderr(logged: io.StringIO, capsys: pytest.CaptureFixture[str]) -> None:
    error = ValueError(SECRET)
    sys.excepthook(ValueError, error, None)
    threading.excepthook(threading.ExceptHookArgs((ValueError, error, None, None)))
    said = capsys.readouterr().err
    assert said.count(f"ValueError: {HIDDEN}") == 2 and SECRET not in said


def answered(response: Response, redactor: Redactor) -> tuple[dict[bytes, bytes], bytes]:
    sent: list[dict[str, Any]] = []

    async def send(message: Any) -> None:
        sent.append(dict(message))

    async def receive() -> Any:
        await asyncio.sleep(60)

    scope = {"type": "http", "method": "GET", "headers": [], "path": "/", "query_string": b"", "asgi": {"spec_version": "2.4"}}
    asyncio.run(hidden(response, redactor)(scope, receive, send))  # type: ignore[arg-type]
    assert [m["type"] for m in sent][0] == "http.response.start"
    return dict(sent[0]["headers"]), b"".join(m.get("body", b"") for m in sent[1:])


def test_an_answer_is_hidden_and_its_length_is_right(redactor: Redactor) -> None:
    headers, body = answered(Response(json.dumps({"a": f"x {SECRET}"}), media_type="application/json"), redactor)
    assert json.loads(body) == {"a": f"x {HIDDEN}"} and headers[b"content-length"] == str(len(body)).encode()
    headers, body = answered(Response(b"nothing"), redactor)
    assert body == b"nothing" and headers[b"content-length"] == b"7"


def test_json_stays_json_where_a_secret_of_digits_is_a_number(redactor: Redactor) -> None:
    _, body = answered(Response('{"n": 1234567890, "t": "1234567890"}'), redactor)
    assert json.loads(body) == {"n": 1234567890, "t": HIDDEN}


def test_a_stream_is_hidden_event_by_event(redactor: Redactor) -> None:
    async def events() -> Any:
        yield b": hello\n\n"
        yield f'data: {{"a": "{SECRET}"}}\n\n'.encode()

    assert answered(StreamingResponse(events()), redactor)[1] == f': hello\n\ndata: {{"a": "{HIDDEN}"}}\n\n'.encode()


def test_what_was_asked_for_is_shown_once(redactor: Redactor) -> None:
    headers, body = answered(shown_once(Response(SECRET)), redactor)
    assert body == SECRET.encode() and headers[b"cache-control"] == b"no-store"
