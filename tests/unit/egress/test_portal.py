"""The relay in this process: carries, cuts, ends; over socket pairs, without namespaces."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import os
import socket
import tempfile
import threading
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from console.egress import portal
from console.egress.portal import EXIT_DETACHED, EXIT_SANDBOX_GONE, Relay


class Rig:
    """A relay between a loopback port and an echoing unix server."""

    def __init__(self, relay: Relay, control: socket.socket, gone: int, port: int) -> None:
        self.relay, self.control, self.gone, self.port = relay, control, gone, port

    async def client(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self.port)

    async def ask(self, op: str) -> dict[str, object]:
        loop = asyncio.get_running_loop()
        await loop.sock_sendall(self.control, op.encode() + b"\n")
        answer: dict[str, object] = json.loads(await loop.sock_recv(self.control, 4096))
        return answer


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
        writer.write_eof()
    writer.close()


@pytest.fixture
async def rig() -> AsyncIterator[Rig]:
    folder = tempfile.mkdtemp()
    path = f"{folder}/up.sock"
    server = await asyncio.start_unix_server(echo, path)
    listener = socket.create_server(("127.0.0.1", 0))
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    gone, alive = os.pipe()  # stands for the pidfd: readable once the other end is closed
    relay = Relay(listener, gone, theirs, path)
    port = listener.getsockname()[1]
    loop = threading.Thread(target=relay.run)
    loop.start()
    yield Rig(relay, ours, alive, port)
    ours.close()  # the end of the supervisor
    await asyncio.to_thread(loop.join)
    assert not relay.connections and not relay.ends
    theirs.close()
    for fd in (gone, alive):
        with contextlib.suppress(OSError):
            os.close(fd)
    server.close()
    await asyncio.sleep(0.05)
    Path(path).unlink(missing_ok=True)
    Path(folder).rmdir()


async def nothing_is_left(rig: Rig) -> None:
    for _ in range(3000):
        if rig.relay.connections == set():
            return
        await asyncio.sleep(0.02)
    assert rig.relay.connections == set()


async def ended(rig: Rig) -> int:
    for _ in range(3000):
        if rig.relay.code is not None:
            return rig.relay.code
        await asyncio.sleep(0.02)
    raise AssertionError("the relay did not end")


async def test_bytes_go_through_and_an_end_is_passed_on(rig: Rig) -> None:
    reader, writer = await rig.client()
    big = os.urandom(300_000)
    writer.write(big)
    writer.write_eof()
    assert await reader.read(-1) == big
    writer.close()
    await nothing_is_left(rig)


async def test_revoke_resets_and_keeps_listening(rig: Rig) -> None:
    reader, writer = await rig.client()
    writer.write(b"x")
    assert await reader.read(1) == b"x"
    assert await rig.ask("revoke") == {"ok": True, "cut": 1}
    with pytest.raises(ConnectionResetError):
        await reader.read(1)
    writer.close()
    reader, writer = await rig.client()
    writer.write(b"y")
    assert await reader.read(1) == b"y"
    assert await rig.ask("list") == {"ok": True, "connections": 1}
    writer.close()


async def test_detach_closes_the_port_and_ends(rig: Rig) -> None:
    reader, writer = await rig.client()
    writer.write(b"x")
    await reader.read(1)
    assert await rig.ask("detach") == {"ok": True, "cut": 1}
    assert await ended(rig) == EXIT_DETACHED
    with pytest.raises(ConnectionRefusedError):
        await rig.client()
    with pytest.raises(ConnectionResetError):
        await reader.read(1)
    writer.close()


async def test_a_request_it_does_not_know_is_answered(rig: Rig) -> None:
    assert (await rig.ask("open-sesame"))["ok"] is False


async def test_the_end_of_the_supervisor_is_a_detach(rig: Rig) -> None:
    rig.control.close()
    assert await ended(rig) == EXIT_DETACHED


async def test_the_end_of_the_sandbox_is_told(rig: Rig) -> None:
    os.close(rig.gone)
    assert await ended(rig) == EXIT_SANDBOX_GONE


async def test_without_envoy_a_connection_is_closed(rig: Rig) -> None:
    Path(rig.relay.upstream).unlink()
    with contextlib.suppress(ConnectionResetError):  # so soon that even the connect may see it
        reader, writer = await rig.client()
        with contextlib.closing(writer):
            assert await reader.read(1) == b""
    await nothing_is_left(rig)


async def test_beyond_the_cap_connections_wait_outside(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(portal, "CONNECTIONS_MAX", 2)
    clients = [await rig.client() for _ in range(3)]
    for _, writer in clients:
        writer.write(b"z")
    assert await clients[1][0].read(1) == b"z"
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(clients[2][0].read(1), 0.2)
    clients[0][1].close()
    assert await asyncio.wait_for(clients[2][0].read(1), 60) == b"z"
    for _, writer in clients[1:]:
        writer.close()


async def test_silent_and_idle_connections_are_swept(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(portal, "FIRST_BYTE_S", 0.0)
    monkeypatch.setattr(portal, "SWEEP_S", 0.05)
    await rig.ask("list")  # so that the loop waits anew, for no longer than that
    silent, silent_writer = await rig.client()
    with contextlib.suppress(ConnectionResetError):
        assert await asyncio.wait_for(silent.read(1), 60) == b""
    silent_writer.close()


async def test_ten_cuts_while_connecting_leave_nothing(rig: Rig) -> None:
    for _ in range(10):
        pairs = [await rig.client() for _ in range(5)]
        await rig.ask("revoke")
        for _, writer in pairs:
            writer.close()
    await nothing_is_left(rig)


async def test_who_does_not_read_stops_the_other_side_and_gets_everything_later(rig: Rig) -> None:
    reader, writer = await rig.client()
    big = os.urandom(30_000_000)
    with pytest.raises(TimeoutError):  # the echo comes back to nobody, so at last nothing more is taken
        for at in range(0, len(big), 100_000):
            writer.write(big[at : at + 100_000])
            await asyncio.wait_for(writer.drain(), 0.5)
    assert all(len(end.waiting) <= portal.PIECE for end in list(rig.relay.ends.values()))
    sent = at + 100_000
    got = await reader.readexactly(sent)
    assert got == big[:sent]
    writer.close()
    await nothing_is_left(rig)


async def test_the_half_that_ended_first_still_gets_the_rest(rig: Rig) -> None:
    for size in (0, 1, 5_000_000):
        reader, writer = await rig.client()
        data = os.urandom(size)
        writer.write(data)
        writer.write_eof()
        assert await reader.read(-1) == data
        writer.close()
    await nothing_is_left(rig)


async def test_an_abort_on_either_side_ends_both(rig: Rig) -> None:
    reader, writer = await rig.client()
    writer.write(b"x")
    await reader.read(1)
    writer.transport.abort()
    await nothing_is_left(rig)


async def test_a_full_backlog_of_envoys_is_waited_for() -> None:
    folder = tempfile.mkdtemp()
    slow = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    slow.bind(f"{folder}/up.sock")
    slow.listen(1)
    listener = socket.create_server(("127.0.0.1", 0))
    ours, theirs = socket.socketpair()
    gone, alive = os.pipe()
    relay = Relay(listener, gone, theirs, f"{folder}/up.sock")
    port = listener.getsockname()[1]
    loop = threading.Thread(target=relay.run)
    loop.start()
    clients = [socket.create_connection(("127.0.0.1", port)) for _ in range(8)]
    until = time.monotonic() + 60
    while not relay.retry:
        assert time.monotonic() < until
        await asyncio.sleep(0.01)
    for number, client in enumerate(clients):
        client.sendall(bytes([number]))
    slow.settimeout(60)
    seen = set()
    for _ in clients:
        with slow.accept()[0] as taken:
            taken.settimeout(60)
            seen |= set(taken.recv(1))
    assert seen == set(range(8))
    for sock in (*clients, slow, ours):
        sock.close()
    await asyncio.to_thread(loop.join)
    theirs.close()
    for fd in (gone, alive):
        os.close(fd)
    Path(folder, "up.sock").unlink()
    Path(folder).rmdir()


def test_a_door_of_unix_is_carried_too() -> None:
    folder = Path(tempfile.mkdtemp())
    up = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    up.bind(str(folder / "up.sock"))
    up.listen(4)
    door = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    door.bind(str(folder / "door.sock"))
    door.listen(4)
    ours, theirs = socket.socketpair()
    gone, alive = os.pipe()
    relay = Relay(door, gone, theirs, str(folder / "up.sock"))
    loop = threading.Thread(target=relay.run)
    loop.start()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.settimeout(60)
        client.connect(str(folder / "door.sock"))
        client.sendall(b"x")
        with up.accept()[0] as taken:
            assert taken.recv(1) == b"x"
            taken.sendall(b"y")
            assert client.recv(1) == b"y"
            ours.sendall(b"revoke\n")
            assert json.loads(ours.recv(100)) == {"ok": True, "cut": 1}
            assert client.recv(1) == b""
    for sock in (ours, up):
        sock.close()
    loop.join()
    theirs.close()
    for fd in (gone, alive):
        os.close(fd)
    for path in list(folder.iterdir()):
        path.unlink()
    folder.rmdir()


async def test_without_descriptors_the_port_rests_silent_ones_are_cut_and_it_is_said(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    silent, silent_writer = await rig.client()
    busy, busy_writer = await rig.client()
    busy_writer.write(b"x")
    assert await busy.read(1) == b"x"
    monkeypatch.setattr(portal, "PAUSE_S", 0.2)
    tried, real = [], rig.relay.listener

    class Exhausted:
        """accept(2) as it is without a free descriptor."""

        def accept(self) -> object:
            tried.append(time.monotonic())
            raise OSError(errno.EMFILE, "Too many open files")

        def fileno(self) -> int:
            return real.fileno()

        def close(self) -> None:
            real.close()

    monkeypatch.setattr(rig.relay, "listener", Exhausted())
    waiting, waiting_writer = await rig.client()
    waiting_writer.write(b"y")
    said = json.loads(await asyncio.get_running_loop().sock_recv(rig.control, 4096))
    assert "no more connections for now (Too many open files)" in said["words"]
    with contextlib.suppress(ConnectionResetError):
        assert await silent.read(1) == b""
    busy_writer.write(b"z")
    assert await busy.read(1) == b"z"  # who has spoken is served on
    until = time.monotonic() + 60
    while len(tried) < 3:
        assert time.monotonic() < until
        await asyncio.sleep(0.02)
    assert all(after - before >= 0.19 for before, after in zip(tried, tried[1:], strict=False))  # no busy loop
    monkeypatch.setattr(rig.relay, "listener", real)
    assert await waiting.read(1) == b"y"
    for writer in (silent_writer, busy_writer, waiting_writer):
        writer.close()
