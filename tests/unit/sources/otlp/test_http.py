"""The receiver on loopback, attacked: whoever sends too much, too slowly, packed, nested, or from a browser is refused and counted."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import json
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from console.sources.otlp import http as otlp_http
from console.sources.otlp import protobuf as otlp_protobuf
from console.sources.otlp.book import TelemetryBook
from console.sources.otlp.http import BODY_MAX, CONNECTIONS_MAX, HEAD_MAX, Receiver

WAIT_S = 60.0
EVENT: dict[str, Any] = {
    "resourceLogs": [
        {"scopeLogs": [{"logRecords": [{"attributes": [{"key": "session.id", "value": {"stringValue": "s-1"}}]}]}]},
    ]
}


class Stage:
    """A receiver and what it took and refused."""

    def __init__(self, token: str = "") -> None:
        self.book = TelemetryBook()
        digest = hashlib.sha256(token.encode()).hexdigest() if token else ""
        self.receiver = Receiver(self.book, 0, digest.upper())
        self.receiver.open()

    def raw(self, data: bytes, *, half: bool = False) -> bytes:
        """What it answers to these bytes, until it hangs up or, with ``half`` False, has answered once."""
        with socket.create_connection(("127.0.0.1", self.receiver.port), timeout=WAIT_S) as line:
            try:
                line.sendall(data)
            except OSError:
                pass  # it hung up in the middle
            found = b""
            try:
                while half or b"\r\n\r\n" not in found:
                    got = line.recv(65536)
                    if not got:
                        break
                    found += got
            except ConnectionResetError:
                pass
            return found

    def post(self, body: bytes, path: str = "/v1/logs", method: str = "POST", **headers: str) -> int:
        head = {"Host": f"127.0.0.1:{self.receiver.port}", "Content-Type": "application/json", "Content-Length": str(len(body))}
        head |= {name.replace("_", "-"): value for name, value in headers.items()}
        lines = "".join(f"{name}: {value}\r\n" for name, value in head.items() if value)
        answer = self.raw(f"{method} {path} HTTP/1.1\r\n{lines}\r\n".encode() + body)
        return int(answer.split()[1]) if answer else 0

    def refused(self) -> str:
        return "; ".join(self.book.untold())


@pytest.fixture
def stage() -> Iterator[Stage]:
    made = Stage()
    yield made
    made.receiver.close()


def until(what: Callable[[], object]) -> None:
    end = time.monotonic() + WAIT_S
    while not what():
        assert time.monotonic() < end
        time.sleep(0.01)


def body(value: object = EVENT) -> bytes:
    return json.dumps(value).encode()


def test_it_takes_json_and_gzip_and_several_requests_on_one_connection(stage: Stage) -> None:
    assert stage.post(body()) == 200 and stage.post(gzip.compress(body()), Content_Encoding="gzip") == 200
    head = "POST /v1/logs HTTP/1.1\r\nHost: localhost:4318\r\nContent-Type: application/json; charset=utf-8\r\n"
    one = f"{head}Content-Length: {len(body())}\r\n\r\n"
    with socket.create_connection(("127.0.0.1", stage.receiver.port), timeout=WAIT_S) as line:
        for _ in range(3):
            line.sendall(one.encode() + body())
            assert line.recv(65536).startswith(b"HTTP/1.1 200")
    chunked = f"{head}Transfer-Encoding: chunked\r\n\r\n{len(body()):x}\r\n"
    assert stage.raw(chunked.encode() + body() + b"\r\n0\r\n\r\n").startswith(b"HTTP/1.1 200")
    assert [one.session for one in stage.book.sessions()] == ["s-1"] and stage.book.refusals() == 0


@pytest.mark.parametrize(
    ("headers", "status", "why"),
    [
        ({"Origin": "http://evil.example"}, 403, "browser"),
        ({"Sec_Fetch_Mode": "no-cors"}, 403, "browser"),
        ({"Host": "evil.example"}, 403, "another name"),
        ({"Host": "127.0.0.1.evil.example:4318"}, 403, "another name"),
        ({"Content_Type": "text/plain"}, 415, "neither JSON nor protobuf"),
        ({"Content_Type": ""}, 415, "neither JSON nor protobuf"),
        ({"Content_Encoding": "br"}, 415, "otherwise than gzip"),
        ({"Content_Encoding": "gzip"}, 400, "no gzip"),
        ({"path": "/v1/other"}, 404, "path"),
        ({"path": "/v1/logs/../metrics"}, 404, "path"),
        ({"method": "PUT"}, 405, "method"),
    ],
)
def test_what_no_exporter_sends_is_refused(stage: Stage, headers: dict[str, str], status: int, why: str) -> None:
    assert stage.post(body(), **headers) == status
    assert why in stage.refused() and stage.book.sessions() == []


def test_with_a_token_only_those_who_have_it_are_heard() -> None:
    stage = Stage("the-token")
    try:
        for wrong in ("", "Bearer wrong", "Basic the-token", "Bearer", "Bearer the-token2", "Bearer the-toke\u00e9"):
            assert stage.post(body(), Authorization=wrong) == 401
        assert "without the token" in stage.refused() and stage.book.sessions() == []
        assert stage.post(body(), Authorization="bearer the-token") == 200 and stage.book.sessions()
    finally:
        stage.receiver.close()


@pytest.mark.parametrize("packed", [True, False])
def test_a_body_that_is_too_large_is_refused_whether_packed_or_not_announced_or_not(stage: Stage, packed: bool) -> None:
    bomb = gzip.compress(b" " * (200 * BODY_MAX), 9) if packed else b" " * (BODY_MAX + 1)
    assert stage.post(bomb, Content_Encoding="gzip" if packed else "identity") == 413
    head = b"POST /v1/logs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    if not packed:
        chunks = (b"10000\r\n" + b" " * 65536 + b"\r\n") * 40
        assert b" 413 " in stage.raw(head + b"Transfer-Encoding: chunked\r\n\r\n" + chunks)
        assert b" 413 " in stage.raw(head + b"Content-Length: 99999999999\r\n\r\n")
    assert stage.book.sessions() == []


def test_a_gzip_of_two_members_or_half_of_one_is_none(stage: Stage) -> None:
    whole = gzip.compress(body())
    for packed in (whole + whole, whole[:-5], whole + b"x", b"\x1f\x8b" + b"\0" * 50):
        assert stage.post(packed, Content_Encoding="gzip") == 400
    assert stage.book.sessions() == []


@pytest.mark.parametrize(
    "odd",
    [
        b"[" * 200_000,
        b'{"resourceLogs":' + b'[{"a":' * 50_000,
        b"null",
        b"[]",
        b"\xff\xfe",
        b"",
        b'{"resourceLogs": [NaN]}',
        b'{"a": "\\ud800"',
    ],
)
def test_what_is_no_otlp_is_refused_and_the_next_is_heard(stage: Stage, odd: bytes) -> None:
    assert stage.post(odd) == 400
    assert stage.post(body()) == 200


def test_what_is_no_otlp_is_one_kind_of_refusal_wherever_it_breaks(stage: Stage) -> None:
    """Each kind is kept, and is a record once a minute: a sender must not be able to make up kinds."""
    for blanks in range(5):
        assert stage.post(b" " * blanks + b'{"a":x}') == 400
        assert stage.post(b" " * blanks + b"\xff\xfe") == 400
    assert [words.partition(" (")[0] for words in stage.book.untold()] == ["refused 10 times: a body that is no JSON"]


def test_shapes_that_are_none_are_passed_over(stage: Stage) -> None:
    odds: tuple[dict[str, Any], ...] = (
        {"resourceLogs": {}},
        {"resourceLogs": [1, None, {"scopeLogs": 5}]},
        {"resourceLogs": [{"scopeLogs": [{"logRecords": ["x"]}]}]},
    )
    for odd in odds:
        assert stage.post(body(odd)) == 200
    attributes = [{"key": 5, "value": 7}, {"key": "session.id"}, {"key": "session.id", "value": {"kvlistValue": {}}}, 9]
    assert stage.post(body({"resourceLogs": [{"scopeLogs": [{"logRecords": [{"attributes": attributes, "body": 4}]}]}]})) == 200
    assert stage.book.sessions() == [] and stage.book.refusals() == 0


def test_more_items_than_one_request_may_hold_are_not_taken(stage: Stage) -> None:
    record = EVENT["resourceLogs"][0]["scopeLogs"][0]["logRecords"][0]
    many = {"resourceLogs": [{"scopeLogs": [{"logRecords": [record] * 6000}]}]}
    assert stage.post(body(many)) == 400 and "more than 5000 items" in stage.refused()


def test_slow_clients_are_dropped_and_hold_up_nobody(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(otlp_http, "REQUEST_S", 0.7)
    slow: list[bytes] = []
    head = b"POST /v1/logs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 50\r\n\r\n"

    def say(data: bytes) -> None:
        slow.append(stage.raw(data, half=True))

    threads = [threading.Thread(target=say, args=(data,)) for data in (b"", b"POST /v1", head, head + b"{")]
    for one in threads:
        one.start()
    until(lambda: stage.post(body()) == 200)
    for one in threads:
        one.join(WAIT_S)
    assert slow == [b""] * 4


def test_more_connections_than_are_served_are_hung_up_on(stage: Stage) -> None:
    lines = [socket.create_connection(("127.0.0.1", stage.receiver.port), timeout=WAIT_S) for _ in range(CONNECTIONS_MAX)]
    try:
        until(lambda: len(stage.receiver._open) == CONNECTIONS_MAX)
        assert stage.post(body()) == 0
    finally:
        for line in lines:
            line.close()
    until(lambda: not stage.receiver._open)
    assert stage.post(body()) == 200 and "more connections" in stage.refused()


def test_a_head_without_end_and_bytes_that_are_no_request_are_refused(stage: Stage) -> None:
    assert b" 431 " in stage.raw(b"POST /v1/logs HTTP/1.1\r\n" + b"X: y\r\n" * HEAD_MAX)
    assert b" 400 " in stage.raw(b"\x16\x03\x01\x02\x00\x01\r\n\r\n")
    assert b" 400 " in stage.raw(b"POST /v1/logs HTTP/1.1\r\nContent-Length: -5\r\nHost: localhost\r\n\r\n")
    assert "no request" in stage.refused()


def test_who_sends_more_than_is_taken_in_a_second_is_told_to_wait(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(otlp_http, "RATE_PER_S", 0)
    stage.receiver._room = 2.5 * otlp_http.REQUEST_COST
    assert [stage.post(b"{}") for _ in range(4)] == [200, 200, 429, 429]
    assert "in a second" in stage.refused()


def test_a_port_that_is_taken_is_an_error_and_what_is_closed_can_be_opened_again(stage: Stage) -> None:
    with pytest.raises(OSError):
        Receiver(TelemetryBook(), stage.receiver.port).open()
    stage.receiver.close()
    stage.receiver.close()
    assert not stage.receiver.is_open
    stage.receiver.open()
    assert stage.post(body()) == 200


def test_a_sender_that_resets_its_line_harms_nobody(stage: Stage) -> None:
    for _ in range(20):
        line = socket.create_connection(("127.0.0.1", stage.receiver.port), timeout=WAIT_S)
        line.sendall(b"POST /v1/logs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{")
        line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        line.close()
    until(lambda: not stage.receiver._open)
    assert stage.post(body()) == 200


def test_without_the_library_protobuf_is_refused_with_why(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(otlp_protobuf, "MISSING", "the library opentelemetry-proto is not installed")
    assert stage.post(b"", Content_Type="application/x-protobuf") == 415
    assert "use http/json" in stage.refused()


def test_who_floods_is_refused_before_a_byte_of_the_body_is_read(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(otlp_http, "RATE_PER_S", 0)
    stage.receiver._room = 100_000.0
    head = b"POST /v1/logs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    assert b" 429 " in stage.raw(head + b"Content-Length: 500000\r\n\r\n")  # and no more is sent
    chunks = (b"4000\r\n" + b" " * 16384 + b"\r\n") * 10
    assert b" 429 " in stage.raw(head + b"Transfer-Encoding: chunked\r\n\r\n" + chunks) or stage.book.refusals() == 2
    stage.receiver._room = 100_000.0
    assert stage.post(b"x" * 10_000, Content_Encoding="gzip") == 429
    assert stage.book.sessions() == []


def test_it_is_open_once_it_serves_and_a_port_that_cannot_be_served_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    async def refused(*_anything: object, **_more: object) -> None:
        raise OSError(24, "Too many open files")

    receiver = Receiver(TelemetryBook(), 0)
    with monkeypatch.context() as full, pytest.raises(OSError, match="Too many open files"):
        full.setattr(asyncio, "start_server", refused)
        receiver.open()
    found = [receiver.is_open]
    receiver.open()
    found.append(receiver.is_open)
    receiver.close()
    assert found == [False, True]
