"""Connections that are kept between requests: bounded, never anybody else's, and no place to hide a request in."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from console.supervisor.http import asgi
from console.supervisor.http.asgi import Door, Scope
from console.supervisor.http.keepalive_pool import EACH, Resting
from console.supervisor.http.peers import Peer

GOOD = b"POST /v1/usage HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2\r\n\r\n{}"


class House:
    """Doors with one bound for all, and what reached their app."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.heard = folder, list[tuple[str, bytes]]()
        self.answer = b"ok"
        self.resting, self.doors = Resting(10), list[Door]()
        self.judged: Callable[[Peer], bool] = lambda _peer: True

    async def app(self, scope: Scope, receive: Any, send: Any) -> None:
        self.heard.append((scope["path"], (await receive())["body"]))
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", str(len(self.answer)).encode())]})
        await send({"type": "http.response.body", "body": self.answer})

    async def door(self, connections: int = 16) -> Door:
        path = self.folder / f"{len(self.doors)}.sock"
        made = Door(path, self.app, lambda peer: self.judged(peer), connections=connections, resting=self.resting)
        await made.open()
        self.doors.append(made)
        return made


@pytest.fixture
async def house(state_dir: Path) -> AsyncIterator[House]:
    made = House(state_dir)
    yield made
    for door in made.doors:
        await door.close()
    await asyncio.sleep(0.05)


async def so(what: Callable[[], bool]) -> None:
    async with asyncio.timeout(90):
        while not what():
            await asyncio.sleep(0.01)


async def connected(door: Door) -> socket.socket:
    made = socket.socket(socket.AF_UNIX)
    made.setblocking(False)
    await asyncio.get_running_loop().sock_connect(made, str(door.path))
    return made


async def told(made: socket.socket, raw: bytes = GOOD, until: bytes = b"ok") -> bytes:
    """What is answered, up to ``until`` or the end."""
    loop, got = asyncio.get_running_loop(), b""
    if raw:
        await loop.sock_sendall(made, raw)
    async with asyncio.timeout(90):
        while until not in got:
            try:
                data = await loop.sock_recv(made, 65536)
            except ConnectionResetError:
                data = b""
            if not data:
                return got + b"<end>"
            got += data
    return got


async def at_end(made: socket.socket) -> bool:
    return (await told(made, b"", b"<never>")).endswith(b"<end>")


async def test_an_agent_may_keep_some_and_those_that_rest_give_way_to_those_that_ask(house: House) -> None:
    door = await house.door(connections=6)
    with ExitStack() as stack:
        kept = []
        for _ in range(20):  # more than the door serves at once, each after the other
            kept.append(stack.enter_context(await connected(door)))
            assert (await told(kept[-1])).startswith(b"HTTP/1.1 200")
            await so(lambda: len(house.resting) == min(len(kept), EACH))
        for gone in kept[:-EACH]:
            assert await at_end(gone)
        for living in kept[-EACH:]:
            assert (await told(living)).startswith(b"HTTP/1.1 200")


async def test_of_all_agents_together_so_many_rest(house: House) -> None:
    with ExitStack() as stack:
        kept = []
        for _ in range(14):
            kept.append(stack.enter_context(await connected(await house.door())))
            assert (await told(kept[-1])).startswith(b"HTTP/1.1 200")
        await so(lambda: len(house.resting) == 10)
        for gone in kept[:4]:
            assert await at_end(gone)
        assert (await told(kept[4])).startswith(b"HTTP/1.1 200")


async def test_a_full_door_makes_room_of_what_rests_and_of_nothing_else(house: House) -> None:
    door = await house.door(connections=2)
    with await connected(door) as rests, await connected(door) as half:
        assert (await told(rests)).startswith(b"HTTP/1.1 200")
        await asyncio.get_running_loop().sock_sendall(half, GOOD[:20])
        await so(lambda: len(house.resting) == 1)
        with await connected(door) as third:
            assert (await told(third)).startswith(b"HTTP/1.1 200")  # two were there: the one that rested went
            assert await at_end(rests)
            assert (await told(half, GOOD[20:])).startswith(b"HTTP/1.1 200")  # what had begun to ask was cut off for nobody


async def test_whoever_is_not_served_pushes_nobody_out(house: House) -> None:
    door = await house.door(connections=1)
    with await connected(door) as kept:
        assert (await told(kept)).startswith(b"HTTP/1.1 200")
        await so(lambda: len(house.resting) == 1)
        house.judged = lambda _peer: False
        with await connected(door) as other:
            assert b"HTTP/1.1 4" in await told(other, b"", b"\r\n\r\n")
        house.judged = lambda _peer: True
        assert (await told(kept)).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize(
    "garbage",
    [
        b"\x00\xff\x00\r\n\r\n",
        b"NONSENSE\r\n\r\n",
        GOOD.replace(b"content-length: 2", b"content-length: 2\r\ncontent-length: 40"),
        GOOD.replace(b"content-length: 2", b"content-length: -2"),
        GOOD.replace(b"content-length: 2", b"content-length : 2"),
        GOOD.replace(b"content-length: 2", b"transfer-encoding: identity, chunked"),
        b"A" * 70_000,
    ],
)
async def test_garbage_after_a_good_request_is_no_request_and_ends_the_connection(house: House, garbage: bytes) -> None:
    door = await house.door()
    with await connected(door) as kept:
        assert (await told(kept)).startswith(b"HTTP/1.1 200")
        assert (await told(kept, garbage, b"<never>")).endswith(b"<end>")
        assert len(house.heard) == 1
    with await connected(door) as again:
        assert (await told(again)).startswith(b"HTTP/1.1 200")


async def test_a_request_inside_another_ones_body_is_never_one_of_its_own(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asgi, "KEEP_S", 1)  # what it answers ends by itself
    door = await house.door()
    inner = b"POST /v1/spawn HTTP/1.1\r\nhost: localhost\r\ncontent-length: 0\r\n\r\n"
    with await connected(door) as kept:
        await told(kept)
        whole = b"POST /v1/usage HTTP/1.1\r\nhost: localhost\r\ncontent-length: %d\r\n\r\n%s" % (len(inner), inner)
        assert (await told(kept, whole)).startswith(b"HTTP/1.1 200")
        both = b"POST /v1/usage HTTP/1.1\r\nhost: localhost\r\ncontent-length: %d\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n%s"
        await told(kept, both % (5 + len(inner), inner), b"<never>")
    assert house.heard[:2] == [("/v1/usage", b"{}"), ("/v1/usage", inner)]
    # Where length and chunks are both named, either it is refused, or each request is judged as itself: nothing stands between us and the
    # client that could read it otherwise.
    assert [path for path, _ in house.heard[2:]] in ([], ["/v1/usage"], ["/v1/usage", "/v1/spawn"])


async def test_many_requests_in_one_piece_are_each_answered_in_order(house: House) -> None:
    door = await house.door()
    with await connected(door) as kept:
        answers = b""
        await asyncio.get_running_loop().sock_sendall(kept, GOOD * 50)
        async with asyncio.timeout(90):
            while answers.count(b"HTTP/1.1 200") < 50:
                answers += await asyncio.get_running_loop().sock_recv(kept, 65536)
    assert len(house.heard) == 50


async def test_one_who_never_reads_its_answers_holds_up_nobody(house: House) -> None:
    house.answer = b"x" * 100_000
    door, other = await house.door(), await house.door()
    loop = asyncio.get_running_loop()
    with await connected(door) as deaf:
        asks = asyncio.create_task(loop.sock_sendall(deaf, GOOD * 20_000))
        await asyncio.sleep(0.3)
        with await connected(door) as same, await connected(other) as another:
            for made in (same, another):
                assert (await told(made, GOOD, b"x" * 100)).startswith(b"HTTP/1.1 200")
        assert not asks.done() and len(house.heard) < 1000  # it is not read on while its answers lie there
        asks.cancel()
        await asyncio.gather(asks, return_exceptions=True)


async def a_child(act: Callable[[], None]) -> int:
    """Its pid; it has ended, and done this before."""
    pid = os.fork()
    if not pid:
        try:
            act()
        finally:
            os._exit(0)
    while os.waitpid(pid, os.WNOHANG)[0] == 0:
        await asyncio.sleep(0.01)
    return pid


async def test_a_kept_connection_in_a_process_that_is_not_accepted_is_cut(house: House) -> None:
    door, own = await house.door(), os.getpid()
    house.judged = lambda peer: peer.pid == own
    for first in (True, False):  # one that has asked before, and one that has not
        with await connected(door) as kept:
            if first:
                assert (await told(kept)).startswith(b"HTTP/1.1 200")
            before = len(house.heard)

            async def by_a_child(made: socket.socket = kept) -> None:
                def write() -> None:
                    made.setblocking(True)
                    made.send(GOOD)

                await a_child(write)

            await by_a_child()
            kept.setblocking(False)
            assert (await told(kept, b"", b"<never>")) == b"<end>" and len(house.heard) == before


async def test_a_process_that_was_moved_is_looked_at_again(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    door = await house.door()
    asked: list[str] = []

    def judge(peer: Peer) -> bool:
        asked.append(peer.cgroups)
        return "elsewhere" not in peer.cgroups

    house.judged = judge
    with await connected(door) as kept:
        for _ in range(3):
            assert (await told(kept)).startswith(b"HTTP/1.1 200")
        assert len(asked) == 1  # it is where it was
        monkeypatch.setattr(asgi, "cgroups_of", lambda _pid: "0::/elsewhere\n")
        monkeypatch.setattr(asgi, "peer_at", lambda pid, uid: Peer(pid, uid, "0::/elsewhere\n", True))
        assert (await told(kept)) == b"<end>" and asked[-1] == "0::/elsewhere\n" and len(house.heard) == 3


async def test_a_door_that_breaks_while_it_judges_serves_nobody(house: House) -> None:
    def breaks(_peer: Peer) -> bool:
        raise RuntimeError("a fault")

    door = await house.door()
    house.judged = breaks
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda *_: None)  # it is logged
    with await connected(door) as made:
        assert await told(made) == b"<end>" and not house.heard
    with await connected(door) as made:
        assert await told(made, b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n") == b"<end>" and not house.heard


@pytest.mark.parametrize("how", ["close", "cut"])
async def test_what_rests_keeps_no_door_open(house: House, how: str) -> None:
    door = await house.door()
    with await connected(door) as kept, await connected(door) as half:
        await told(kept)
        await asyncio.get_running_loop().sock_sendall(half, GOOD[:9])
        await so(lambda: len(house.resting) == 1)
        ending: Awaitable[None] | int = door.close() if how == "close" else door.cut()
        if not isinstance(ending, int):
            await asyncio.wait_for(ending, 90)
        assert await at_end(kept)
        await so(lambda: len(house.resting) == 0)
