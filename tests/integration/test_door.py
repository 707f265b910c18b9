"""The supervisor's door against those who are no clients of ours: browsers, silence, crowds, bodies without end."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from console.supervisor.http import asgi
from console.supervisor.http.asgi import MAX_BODY, Door, Scope

GOOD = b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n"


async def app(scope: Scope, receive: Any, send: Any) -> None:
    await receive()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"ok"})


@pytest.fixture
async def door(state_dir: Path) -> AsyncIterator[Door]:
    made = Door(state_dir / "d.sock", app, lambda _: True)
    await made.open()
    yield made
    await made.close()
    await asyncio.sleep(0.05)


async def ask(door: Door, raw: bytes) -> bytes:
    """Everything answered until the door closes or is silent after an answer."""
    reader, writer = await asyncio.open_unix_connection(str(door.path))
    try:
        writer.write(raw)
        return await asyncio.wait_for(reader.read(4096), 90)
    finally:
        writer.close()


def request(*headers: str, method: str = "GET", body: bytes = b"") -> bytes:
    lines = [f"{method} / HTTP/1.1", *headers, *([f"content-length: {len(body)}"] if body else [])]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


@pytest.mark.parametrize(
    "headers",
    [
        ("host: evil.com",),
        ("host: evil.com:80",),
        ("host: localhost.evil.com",),
        ("host: 127.0.0.1.evil.com",),
        ("host: localhost", "origin: http://evil.com"),
        ("host: localhost", "origin: null"),
        ("host: localhost", "sec-fetch-site: cross-site"),
        ("host: localhost", "sec-fetch-mode: no-cors"),
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_what_a_browser_sends_is_refused(door: Door, headers: tuple[str, ...], method: str) -> None:
    assert (await ask(door, request(*headers, method=method, body=b"{}" if method == "POST" else b""))).startswith(b"HTTP/1.1 403")


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST", "localhost:8080", "127.0.0.1", "[::1]", "[::1]:80"])
async def test_our_own_names_are_served(door: Door, host: str) -> None:
    assert (await ask(door, request(f"host: {host}"))).startswith(b"HTTP/1.1 200")


async def test_one_who_never_finishes_a_request_is_cut_off_also_after_a_good_one(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asgi, "FIRST_REQUEST_S", 0.5)
    for first in (b"", GOOD):
        reader, writer = await asyncio.open_unix_connection(str(door.path))
        if first:
            writer.write(first)
            assert b"ok" in await reader.readuntil(b"ok")
            await asyncio.sleep(0.8)  # one who rests between two requests is not cut off
            writer.write(first)
            assert b"ok" in await reader.readuntil(b"ok")
        ended = False
        for byte in b"GET / HTTP/1.1\r\nx: " + b"y" * 400:  # a byte at a time keeps nothing alive
            try:
                writer.write(bytes([byte]))
                await writer.drain()
            except ConnectionError:
                ended = True
                break
            if reader.at_eof():
                ended = True
                break
            await asyncio.sleep(0.01)
        assert ended or await asyncio.wait_for(reader.read(), 90) == b""
        writer.close()


async def test_a_body_that_does_not_come_is_not_waited_for(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asgi, "BODY_S", 0.3)
    raw = b"POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: %d\r\n\r\nhalf"
    assert (await ask(door, raw % 100)).startswith(b"HTTP/1.1 408")
    assert (await ask(door, raw % 10**9)).startswith(b"HTTP/1.1 413")


async def test_a_hundred_megabytes_are_refused_and_never_held(door: Door) -> None:
    reader, writer = await asyncio.open_unix_connection(str(door.path))
    writer.write(b"POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100000000\r\n\r\n")
    sent = 0
    try:
        while sent < 100_000_000 and not reader.at_eof():
            writer.write(b"x" * (1 << 18))
            await asyncio.wait_for(writer.drain(), 90)
            sent += 1 << 18
    except ConnectionError:
        pass
    assert sent < 100_000_000  # cut off long before
    writer.close()
    chunk = b"%x\r\n" % (1 << 16) + b"x" * (1 << 16) + b"\r\n"
    raw = b"POST / HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n" + chunk * (MAX_BODY // (1 << 16) + 2) + b"0\r\n\r\n"
    assert (await ask(door, raw)).startswith(b"HTTP/1.1 413")


async def a_hundred_are_refused(crowd: list[socket.socket]) -> bool:
    refused = 0
    for _ in range(600):
        for sock in crowd:
            with contextlib.suppress(BlockingIOError):
                refused += sock.recv(12) == b"HTTP/1.1 429"
        if refused >= 100:
            return True
        await asyncio.sleep(0.1)
    return False


async def test_a_crowd_is_refused_at_the_door_and_the_next_is_served_when_it_is_gone(door: Door, full_counts: bool) -> None:
    crowd, before = list[socket.socket](), len(os.listdir("/proc/self/fd"))
    try:
        for _ in range(10_000 if full_counts else 500):
            sock = socket.socket(socket.AF_UNIX)
            sock.setblocking(False)
            while True:
                try:
                    sock.connect(str(door.path))
                    break
                except BlockingIOError:  # the backlog is full: it is being worked off
                    await asyncio.sleep(0)
            crowd.append(sock)
            if len(crowd) > 200:
                crowd.pop(100).close()
        assert await a_hundred_are_refused(crowd)
        assert len(os.listdir("/proc/self/fd")) < before + 650  # whatever tests before it keep open
    finally:
        for sock in crowd:
            sock.close()
    for _ in range(1000):
        if (await ask(door, GOOD)).startswith(b"HTTP/1.1 200"):
            break
        await asyncio.sleep(0.05)
    assert (await ask(door, GOOD)).startswith(b"HTTP/1.1 200")
