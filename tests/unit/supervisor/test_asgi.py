"""Bodies are bounded, browsers are not served, whatever length was announced."""

from __future__ import annotations

import json
from typing import Any

import pytest

from console.supervisor.asgi import MAX_BODY, Message, Scope, bounded


async def answer_of(method: str, chunks: list[bytes], headers: dict[str, str] | None = None) -> tuple[int, bytes, bytes]:
    """(status, body of the answer, body the app was given)."""
    given = b""

    async def app(scope: Scope, receive: Any, send: Any) -> None:
        nonlocal given
        given = (await receive())["body"]
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"served"})

    queue = [{"type": "http.request", "body": c, "more_body": i < len(chunks) - 1} for i, c in enumerate(chunks)]
    sent: list[Message] = []

    async def receive() -> Message:
        return queue.pop(0) if queue else {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        sent.append(message)

    pairs = [(k.encode(), v.encode()) for k, v in (headers or {}).items()]
    await bounded(app)({"type": "http", "method": method, "headers": pairs}, receive, send)
    return sent[0]["status"], sent[1]["body"], given


async def test_a_body_in_pieces_arrives_whole() -> None:
    assert await answer_of("POST", [b"ab", b"cd"]) == (200, b"served", b"abcd")


@pytest.mark.parametrize(
    ("chunks", "headers"),
    [
        ([b"x"], {"content-length": str(MAX_BODY + 1)}),
        ([b"x" * (MAX_BODY // 2), b"x" * (MAX_BODY // 2), b"xx"], {}),
        ([b"x"], {"content-length": "-1"}),
        ([b"x"], {"content-length": "many"}),
    ],
)
async def test_too_large_is_413_and_the_app_never_sees_it(chunks: list[bytes], headers: dict[str, str]) -> None:
    status, body, given = await answer_of("POST", chunks, headers)
    assert (status, given) == (413, b"")
    assert json.loads(body)["exit_code"] == 2


async def test_a_browser_is_refused() -> None:
    assert (await answer_of("GET", [b""], {"origin": "http://evil.example"}))[0] == 403
