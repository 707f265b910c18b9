"""Bodies are bounded, browsers are not served, whatever length was announced."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import tempfile
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

from console.supervisor.http.asgi import MAX_BODY, BrokenOff, Door, Message, Scope, bounded
from tests.fakes.passed_sockets import passed_to_us


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


def asked(path: Path, headers: bytes = b"") -> tuple[socket.socket, bytes]:
    """A connection, and its whole answer."""
    made = socket.socket(socket.AF_UNIX)
    made.settimeout(60)
    made.connect(str(path))
    with suppress(BrokenPipeError):  # whoever is refused was answered before it asked
        made.sendall(b"GET / HTTP/1.1\r\nhost: localhost\r\n%s\r\n" % headers)
    got = b""
    while b"\r\n\r\n" not in got or not got.endswith((b"}", b"served")):
        piece = made.recv(4096)
        assert piece, got
        got += piece
    return made, got


@pytest.mark.parametrize(("accepts", "statuses"), [(True, [b"200", b"429"]), (False, [b"403", b"403"])])
async def test_who_finds_a_door_full_is_told_so_and_who_is_not_served_hears_no_more(accepts: bool, statuses: list[bytes]) -> None:
    async def app(scope: Scope, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"6")]})
        await send({"type": "http.response.body", "body": b"served"})

    with tempfile.TemporaryDirectory() as folder, ExitStack() as kept:
        door = Door(Path(folder) / "d.sock", app, lambda _sock: accepts, connections=1)
        await door.open()
        for status in statuses:
            made, answer = await asyncio.to_thread(asked, door.path)
            kept.enter_context(made)  # the first keeps its connection
            head, _, body = answer.partition(b"\r\n\r\n")
            assert head.split(b" ")[1] == status and b"content-length: %d" % len(body) in head.lower()
            if status == b"429":
                assert json.loads(body)["error"].startswith("The supervisor is busy: this socket serves 1 connections at once")
            if status == b"403":
                assert json.loads(body) == {"error": "This socket does not serve you.", "remedy": "", "exit_code": 4}
        await door.close()


async def test_who_came_before_the_start_is_served_and_the_socket_outlives_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """systemd listens first, and again afterwards: a command meanwhile waits in the queue."""

    async def app(scope: Scope, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"6")]})
        await send({"type": "http.response.body", "body": b"served"})

    with passed_to_us(tmp_path / "d.sock", monkeypatch) as systemds:
        kept = os.dup(systemds.fileno())  # what systemd itself holds
        early = asyncio.create_task(asyncio.to_thread(asked, tmp_path / "d.sock"))
        await asyncio.sleep(0.05)
        door = Door(tmp_path / "d.sock", app, lambda _peer: True)
        await door.open()
        made, answer = await early
        made.close()
        assert answer.endswith(b"served")
        await door.close()
        systemds.detach()
    with socket.socket(fileno=kept), socket.socket(socket.AF_UNIX) as late:
        late.connect(str(tmp_path / "d.sock"))


async def test_whoever_asks_for_a_web_socket_is_answered_as_anybody() -> None:
    """An upgraded connection would pass by every bound of the door."""
    seen: list[str] = []

    async def app(scope: Scope, receive: Any, send: Any) -> None:
        seen.append(scope["type"])
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"6")]})
        await send({"type": "http.response.body", "body": b"served"})

    wish = b"connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: %s==\r\n" % (b"a" * 22)
    with tempfile.TemporaryDirectory() as folder:
        door = Door(Path(folder) / "d.sock", app, lambda _sock: True)
        await door.open()
        made, answer = await asyncio.to_thread(asked, door.path, wish)
        made.close()
        await door.close()
    assert answer.startswith(b"HTTP/1.1 200") and answer.endswith(b"served") and seen == ["http"]


async def is_never_answered(scope: Scope, send: Any) -> None:
    await asyncio.sleep(60)


async def is_begun_only(scope: Scope, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"6")]})
    await send({"type": "http.response.body", "body": b"ser", "more_body": True})
    await asyncio.sleep(60)


async def is_broken_off(scope: Scope, send: Any) -> None:
    raise BrokenOff


async def waits_for_what_another_cancelled(scope: Scope, send: Any) -> None:
    cancelled: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    cancelled.cancel()
    await cancelled


@pytest.mark.parametrize(
    ("serve", "status", "log"),
    [
        (is_never_answered, [], []),
        (is_begun_only, [b"200"], []),
        (is_broken_off, [], []),
        (waits_for_what_another_cancelled, [b"500"], ["Exception in ASGI application\n"]),
    ],
)
async def test_a_request_that_is_ended_in_the_middle_ends_without_a_word_in_the_log_and_a_fault_does_not(
    serve: Any, status: list[bytes], log: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    """An agent that is halted while it asks: its door is closed, or its token is not its own any more."""
    begun = asyncio.Event()

    async def app(scope: Scope, receive: Any, send: Any) -> None:
        begun.set()
        await serve(scope, send)

    with tempfile.TemporaryDirectory() as folder:
        door = Door(Path(folder) / "d.sock", app, lambda _sock: True)
        await door.open()
        reader, writer = await asyncio.open_unix_connection(door.path)
        writer.write(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n")
        async with asyncio.timeout(60):
            await begun.wait()
            await asyncio.sleep(0)  # it stands where it is ended
            await door.close()
            answer = await reader.read()
        writer.close()
        await writer.wait_closed()
    assert answer.split(b" ")[1:2] == status and (status or not answer)
    assert answer.endswith(b"\r\n\r\nser") or status != [b"200"]  # what was written arrives, and nothing after it
    assert [record.getMessage() for record in caplog.records] == log
