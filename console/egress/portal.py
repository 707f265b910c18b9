"""The relay: one loopback port of one sandbox, carried to the sandbox's own unix socket of Envoy. Standard library only.

Run by ``launch.py`` without any privilege, one process per sandbox. Standard input is the control socket: one JSON object a
line, ``revoke`` | ``detach`` | ``list``; its end is a detach too. It looks at no byte it carries. Dead relay: no network.
"""

import asyncio
import json
import os
import socket
import struct
import sys
import time

CONNECTIONS_MAX = 256
FIRST_BYTE_S = 10.0
IDLE_S = 900.0
SWEEP_S = 2.0
EXIT_DETACHED, EXIT_SANDBOX_GONE = 0, 3
RESET = struct.pack("ii", 1, 0)  # SO_LINGER with no time: close sends RST, the client learns at once (socket(7))


class Leg(asyncio.Protocol):
    """One side of a connection."""

    transport: asyncio.Transport
    peer: "Leg"

    def __init__(self, connection: "Connection", inner: bool) -> None:
        self.connection, self.inner, self.ended = connection, inner, False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.connection.saw(len(data), self.inner)
        self.peer.transport.write(data)

    def eof_received(self) -> bool:
        self.ended = True
        if self.peer.ended or not self.peer.transport.can_write_eof():
            return False
        self.peer.transport.write_eof()
        return True

    def pause_writing(self) -> None:
        """A slow reader stops the reading on the other side, so memory stays bounded."""
        self.peer.transport.pause_reading()

    def resume_writing(self) -> None:
        self.peer.transport.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        self.connection.close(reset=exc is not None)


class Connection:
    """A socket of the sandbox and its counterpart at Envoy."""

    def __init__(self, relay: "Relay", sock: socket.socket) -> None:
        self.relay, self.sock = relay, sock
        self.legs: tuple[Leg, ...] = ()
        self.up = self.down = 0
        self.last, self.closed = time.monotonic(), False
        self.handed_over = False
        self.task: asyncio.Task[None] | None = None

    async def run(self) -> None:
        loop = self.relay.loop
        outside = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        outside.setblocking(False)
        try:
            await loop.sock_connect(outside, self.relay.upstream)
        except OSError:  # Envoy is down: the sandbox has no network until it is back
            self.close(reset=True)
        if self.is_closed():  # also: cut in the meantime
            outside.close()
            return
        inner, outer = Leg(self, True), Leg(self, False)
        inner.peer, outer.peer = outer, inner
        self.handed_over = True
        # Both transports are made in one turn of the loop, so neither side reads before the other can write.
        await asyncio.gather(
            loop.connect_accepted_socket(lambda: inner, self.sock),
            loop.create_unix_connection(lambda: outer, sock=outside),
        )
        self.legs = (inner, outer)
        if self.is_closed():
            self._shut(reset=True)

    def is_closed(self) -> bool:
        return self.closed

    def saw(self, count: int, inner: bool) -> None:
        self.last = time.monotonic()
        if inner:
            self.up += count
        else:
            self.down += count

    def close(self, *, reset: bool) -> None:
        """Ends both sides; with ``reset`` nothing that waits is sent."""
        first, self.closed = not self.closed, True
        self._shut(reset)
        if first:
            self.relay.forget(self)

    def _shut(self, reset: bool) -> None:
        if reset and self.sock.fileno() >= 0:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        for leg in self.legs:
            if reset:
                leg.transport.abort()
            else:
                leg.transport.close()
        if not self.handed_over:
            self.sock.close()


class Relay:
    """The listener of one sandbox and its connections."""

    def __init__(self, listener: socket.socket, pidfd: int, control: socket.socket, upstream: str) -> None:
        self.loop = asyncio.get_running_loop()
        self.listener, self.pidfd, self.control, self.upstream = listener, pidfd, control, upstream
        self.connections: set[Connection] = set()
        self.listening = False
        self.ended: asyncio.Future[int] = self.loop.create_future()
        for sock in (listener, control):
            sock.setblocking(False)
        self.partial = b""
        self.listen()
        self.loop.add_reader(pidfd, self.end, EXIT_SANDBOX_GONE)  # an open listener would pin the namespace
        self.loop.add_reader(control.fileno(), self.hear)

    def listen(self) -> None:
        if not self.listening and not self.ended.done():
            self.listening = True
            self.loop.add_reader(self.listener.fileno(), self.accept)

    def accept(self) -> None:
        try:
            sock, _ = self.listener.accept()
        except OSError:
            return
        sock.setblocking(False)
        connection = Connection(self, sock)
        self.connections.add(connection)
        connection.task = self.loop.create_task(connection.run())
        if len(self.connections) >= CONNECTIONS_MAX:  # further ones wait in the sandbox's own backlog
            self.listening = False
            self.loop.remove_reader(self.listener.fileno())

    def forget(self, connection: Connection) -> None:
        self.connections.discard(connection)
        self.listen()

    def cut(self) -> int:
        """Resets every connection; how many."""
        connections = list(self.connections)
        for connection in connections:
            connection.close(reset=True)
        return len(connections)

    def end(self, code: int) -> int:
        """Closes the port, then every connection; the process ends with ``code``."""
        if self.ended.done():
            return 0
        self.ended.set_result(code)
        self.loop.remove_reader(self.listener.fileno())
        self.loop.remove_reader(self.pidfd)
        self.listener.close()
        return self.cut()

    def hear(self) -> None:
        try:
            data = self.control.recv(4096)
        except OSError:
            data = b""
        if not data:
            self.loop.remove_reader(self.control.fileno())
            self.end(EXIT_DETACHED)
            return
        *lines, self.partial = (self.partial + data).split(b"\n")
        for line in lines:
            self.control.send(json.dumps(self.answer(line.decode())).encode() + b"\n")

    def answer(self, op: str) -> dict[str, object]:
        if op == "revoke":
            return {"ok": True, "cut": self.cut()}
        if op == "detach":
            return {"ok": True, "cut": self.end(EXIT_DETACHED)}
        if op == "list":
            return {"ok": True, "connections": len(self.connections)}
        return {"ok": False, "error": "unknown request"}

    async def sweep(self) -> None:
        """Ends silent connections: half-open ones after FIRST_BYTE_S, idle ones after IDLE_S."""
        while not self.ended.done():
            await asyncio.sleep(SWEEP_S)
            now = time.monotonic()
            for connection in list(self.connections):
                if now - connection.last > (IDLE_S if connection.up else FIRST_BYTE_S):
                    connection.close(reset=True)


def capabilities() -> str:
    """The effective capabilities of this process, hexadecimal."""
    with open("/proc/self/status") as status:
        return next(line.split()[1] for line in status if line.startswith("CapEff"))


async def run(listener_fd: int, pidfd: int, upstream: str) -> int:
    control = socket.socket(fileno=os.dup(0))
    relay = Relay(socket.socket(fileno=listener_fd), pidfd, control, upstream)
    ready = {"ok": True, "ready": os.getpid(), "uid": os.geteuid(), "capabilities": capabilities()}
    control.send(json.dumps(ready).encode() + b"\n")
    sweeper = relay.loop.create_task(relay.sweep())
    code = await relay.ended
    sweeper.cancel()
    await asyncio.sleep(0)  # aborted transports close their sockets in the next round of the loop
    return code


def main(listener_fd: int, pidfd: int, upstream: str) -> None:
    """Relays until detached, or until the sandbox or the supervisor ends."""
    sys.exit(asyncio.run(run(listener_fd, pidfd, upstream)))
