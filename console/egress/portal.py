"""The relay: one loopback port of one sandbox, carried to the sandbox's own unix socket of Envoy. Standard library only.

``launch.py`` runs one process for each sandbox, without any privilege. Standard input is the control socket. It carries the one order with
the listening socket and a pidfd of the sandbox (SCM_RIGHTS). Then it carries one request a line, ``revoke`` | ``detach`` | ``list``. Its
end is a detach too. The relay answers there, and sends notices for people as ``words``. It reads no byte that it carries. Without a relay
the sandbox has no network.

A plain epoll loop: every request of every agent passes here twice, and asyncio took three times as long (tests/bench/egress.py).
"""

import errno
import json
import os
import select
import socket
import struct
import sys
import time
from contextlib import suppress

# Measured: with this cap 10,000 held connections of one sandbox leave a neighbour's latency as it was.
CONNECTIONS_MAX = 256
# Silent connections are the cheapest way to use up the cap, so one that never spoke is cut early.
FIRST_BYTE_S = 10.0
IDLE_S = 900.0
SWEEP_S = 2.0
# Envoy's backlog on a unix socket is full for moments only; the sandbox must not see an error for that.
RETRY_S = 0.01
PIECE = 65536
EXHAUSTED = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
PAUSE_S = 0.5
"""How long the port is left alone when this machine has no descriptor or memory for one more connection."""
SHED = 64
SAY_S = 60.0
"""Between two times of saying so."""
EXIT_DETACHED, EXIT_SANDBOX_GONE = 0, 3
# SO_LINGER (socket(7)). With no time: close sends RST and drops what waits, the client learns at once. So it is for every connection from
# its first moment: whoever ends this process has cut them all, however it hung; only what ends by itself ends in order.
RESET, IN_ORDER = struct.pack("ii", 1, 0), struct.pack("ii", 0, 0)


BUFFER = bytearray(PIECE)  # one for all: a new one for each piece took a quarter of the relay's time
VIEW = memoryview(BUFFER)


class End:
    """One socket of a connection. At most one piece waits to be sent into it, while nothing is read from its peer: memory is bounded."""

    __slots__ = ("carried", "connection", "ended", "events", "fd", "peer", "sock", "waiting")
    peer: "End"

    def __init__(self, connection: "Connection", sock: socket.socket) -> None:
        self.connection, self.sock, self.fd = connection, sock, sock.fileno()
        self.waiting: bytes | memoryview = b""
        self.carried = 0
        self.ended = False  # it sent all it will
        self.events = 0

    def want(self, events: int) -> None:
        """What epoll tells. Of nothing it would still tell errors, all the time, so then the socket is taken out."""
        poll = self.connection.relay.poll
        if events and self.events:
            poll.modify(self.fd, events)
        elif events:
            poll.register(self.fd, events)
        elif self.events:
            poll.unregister(self.fd)
        self.events = events

    def ready(self, mask: int) -> None:
        """Sends what waits, then carries what came."""
        if mask & select.EPOLLOUT and not self.flush():
            return
        if self.events & select.EPOLLIN and mask & ~select.EPOLLOUT:
            self.carry()

    def carry(self) -> None:
        """One piece from here to the peer."""
        peer, connection = self.peer, self.connection
        try:
            size = self.sock.recv_into(BUFFER)
        except BlockingIOError:
            return
        except OSError:
            connection.close(reset=True)
            return
        if not size:
            self.end()
            return
        connection.last = time.monotonic()
        self.carried += size
        if 0 < connection.relay.most < self.carried:  # more than the agent's type may fetch or send at once
            connection.close(reset=True)
            return
        if self is connection.inner:
            connection.spoke = True
        try:
            sent = peer.sock.send(VIEW[:size])
        except BlockingIOError:
            sent = 0
        except OSError:
            connection.close(reset=True)
            return
        if sent < size:
            peer.waiting = memoryview(bytes(VIEW[sent:size]))
            peer.want(peer.events | select.EPOLLOUT)
            self.want(self.events & ~select.EPOLLIN)

    def end(self) -> None:
        """Nothing more comes from here: told to the peer behind what still waits for it."""
        self.ended = True
        self.want(self.events & ~select.EPOLLIN)
        if not self.peer.waiting:
            self.peer.shut()

    def shut(self) -> None:
        if self.ended and not self.peer.waiting:
            self.connection.close(reset=False)
            return
        with suppress(OSError):
            self.sock.shutdown(socket.SHUT_WR)

    def flush(self) -> bool:
        """Sends what waits; False when the connection is closed now."""
        try:
            self.waiting = self.waiting[self.sock.send(self.waiting) :]
        except BlockingIOError:
            return True
        except OSError:
            self.connection.close(reset=True)
            return False
        if not self.waiting:
            self.waiting = b""
            self.connection.last = time.monotonic()
            self.want(self.events & ~select.EPOLLOUT)
            if self.peer.ended:
                self.shut()
            else:
                self.peer.want(self.peer.events | select.EPOLLIN)
        return not self.connection.closed


class Connection:
    """A socket of the sandbox and its counterpart at Envoy."""

    __slots__ = ("closed", "inner", "last", "outer", "relay", "spoke")

    def __init__(self, relay: "Relay", sock: socket.socket) -> None:
        self.relay, self.closed, self.spoke = relay, False, False
        self.last = time.monotonic()
        outside = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        for one in (sock, outside):
            one.setblocking(False)
        if sock.family == socket.AF_INET:  # a unix socket when a forwarder inside has the port (gVisor)
            # Each piece is sent as it came: waiting for more would add the delayed acknowledgement's 40 ms to every small answer.
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        self.inner, self.outer = End(self, sock), End(self, outside)
        self.inner.peer, self.outer.peer = self.outer, self.inner

    def connect(self) -> bool:
        """Whether it is decided: connected, or closed because Envoy is down. A full backlog is tried again."""
        if self.closed:
            return True
        try:
            self.outer.sock.connect(self.relay.upstream)
        except BlockingIOError:
            return False
        except OSError:  # the sandbox has no network until it is back
            self.close(reset=True)
            return True
        for end in (self.inner, self.outer):
            self.relay.ends[end.fd] = end
            end.want(select.EPOLLIN)
        return True

    def close(self, *, reset: bool) -> None:
        """Ends both sides; with ``reset`` nothing that waits is sent."""
        if self.closed:
            return
        self.closed = True
        if not reset:
            self.inner.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, IN_ORDER)
        for end in (self.inner, self.outer):
            end.want(0)
            self.relay.ends.pop(end.fd, None)
            end.sock.close()
        self.relay.forget(self)


class Relay:
    """The listener of one sandbox and its connections."""

    def __init__(self, listener: socket.socket, pidfd: int, control: socket.socket, upstream: str) -> None:
        self.listener, self.pidfd, self.control, self.upstream = listener, pidfd, control, upstream
        self.poll = select.epoll()
        self.ends: dict[int, End] = {}
        self.connections: set[Connection] = set()
        self.retry: list[Connection] = []
        self.listening = False
        self.most = 0
        self.paused_until, self.said = 0.0, -SAY_S
        self.code: int | None = None
        self.partial = b""
        for sock in (listener, control):
            sock.setblocking(False)
        # Made once: when the loop turns, a closed socket has no number any more.
        self.handlers = {listener.fileno(): self.accept, pidfd: self.gone, control.fileno(): self.hear}
        for fd in (pidfd, control.fileno()):  # the sandbox's end counts: an open listener would pin its namespace
            self.poll.register(fd, select.EPOLLIN)
        self.listen()

    def listen(self) -> None:
        full = len(self.connections) >= CONNECTIONS_MAX or self.paused_until > 0.0
        if not self.listening and self.code is None and not full:
            self.listening = True
            self.poll.register(self.listener.fileno(), select.EPOLLIN)

    def wait(self) -> None:
        """Further connections stay in the sandbox's own backlog."""
        if self.listening:
            self.listening = False
            self.poll.unregister(self.listener.fileno())

    def accept(self) -> None:
        try:
            sock, _ = self.listener.accept()
        except OSError as error:
            if error.errno in EXHAUSTED:  # the port would be readable, and accept refused, for ever
                self.pause(error)
            return
        try:
            connection = Connection(self, sock)
        except OSError as error:
            sock.close()
            self.pause(error)
            return
        self.connections.add(connection)
        if not connection.connect():
            self.retry.append(connection)
        if len(self.connections) >= CONNECTIONS_MAX:
            self.wait()

    def pause(self, error: OSError) -> None:
        """There is room for no more: the port is left alone for a while, and who has been silent longest makes room."""
        now = time.monotonic()
        self.paused_until = now + PAUSE_S
        self.wait()
        silent = sorted((c for c in self.connections if not c.spoke), key=lambda c: c.last)[:SHED]
        for connection in silent:
            connection.close(reset=True)
        if now - self.said >= SAY_S:
            self.said = now
            words = f"its proxy takes no more connections for now ({error.strerror}); {len(silent)} silent ones were cut"
            with suppress(OSError):
                self.control.send(json.dumps({"words": words}).encode() + b"\n")

    def forget(self, connection: Connection) -> None:
        self.connections.discard(connection)
        self.listen()

    def cut(self) -> int:
        """Resets every connection; how many."""
        connections = list(self.connections)
        for connection in connections:
            connection.close(reset=True)
        return len(connections)

    def gone(self) -> None:
        self.end(EXIT_SANDBOX_GONE)

    def end(self, code: int) -> int:
        """Closes the port, then resets every connection; ``run`` returns ``code``."""
        if self.code is not None:
            return 0
        self.code = code
        # First, so that no connection comes in between the cut and the end of the process.
        self.listener.close()  # which takes it out of epoll too (epoll(7), Q6)
        return self.cut()

    def hear(self) -> None:
        try:
            data = self.control.recv(4096)
        except OSError:
            data = b""
        if not data:
            self.end(EXIT_DETACHED)
            return
        *lines, self.partial = (self.partial + data).split(b"\n")
        for line in lines:
            with suppress(OSError):
                self.control.send(json.dumps(self.answer(line)).encode() + b"\n")

    def answer(self, op: bytes) -> dict[str, object]:
        if op == b"revoke":
            return {"ok": True, "cut": self.cut()}
        if op == b"detach":
            return {"ok": True, "cut": self.end(EXIT_DETACHED)}
        if op == b"list":
            return {"ok": True, "connections": len(self.connections)}
        return {"ok": False, "error": "unknown request"}

    def sweep(self, now: float) -> None:
        """Ends silent connections: half-open ones after FIRST_BYTE_S, idle ones after IDLE_S."""
        for connection in list(self.connections):
            if now - connection.last > (IDLE_S if connection.spoke else FIRST_BYTE_S):
                connection.close(reset=True)

    def run(self) -> int:
        """Carries until it is told to end; the exit status."""
        swept = time.monotonic()
        while self.code is None:
            for fd, mask in self.poll.poll(RETRY_S if self.retry else PAUSE_S if self.paused_until else SWEEP_S):
                end = self.ends.get(fd)
                if end is not None:
                    end.ready(mask)
                elif (handler := self.handlers.get(fd)) is not None and self.code is None:
                    handler()
            if self.retry:
                self.retry = [connection for connection in self.retry if not connection.connect()]
            if 0.0 < self.paused_until <= time.monotonic():
                self.paused_until = 0.0
                self.listen()
            if (now := time.monotonic()) - swept >= SWEEP_S:
                swept = now
                self.sweep(now)
        self.poll.close()
        return self.code


def capabilities() -> str:
    """The effective capabilities of this process, hexadecimal."""
    with open("/proc/self/status") as status:
        return next(line.split()[1] for line in status if line.startswith("CapEff"))


def main() -> None:
    """Waits for its one order, then relays until detached, or until the sandbox or the supervisor ends."""
    control = socket.socket(fileno=os.dup(0))
    # The supervisor refuses a relay that runs as root or holds a capability: it faces whatever an agent connects with.
    ready = {"ok": True, "ready": os.getpid(), "uid": os.geteuid(), "capabilities": capabilities()}
    control.send(json.dumps(ready).encode() + b"\n")
    message, fds, _, _ = socket.recv_fds(control, 4096, 2)
    if len(fds) != 2:  # nobody needs it any more
        sys.exit(EXIT_DETACHED)
    order = json.loads(message)
    relay = Relay(socket.socket(fileno=fds[0]), fds[1], control, order["upstream"])
    relay.most = order["most"]
    sys.exit(relay.run())
