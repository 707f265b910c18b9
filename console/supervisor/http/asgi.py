"""HTTP over unix sockets: uvicorn's protocol with a check of the peer before the first byte, and a bound on bodies."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import struct
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

import console
from console.domain.errors import ExitCode, TooMany
from console.killswitch.kernel.systemd_notify import passed_socket
from console.services.routes.request_identity import GROUPS, PID, UID
from console.supervisor.http.keepalive_pool import Resting
from console.supervisor.http.peers import Peer, cgroups_of, peer_at, peer_of

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
App = Callable[[Scope, Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]], Awaitable[None]]
MAX_BODY = 256 * 1024
MAX_DRAIN = 4 * 1024 * 1024
MAX_CONNECTIONS = 64
FIRST_REQUEST_S = 10.0
"""A connection that has sent no whole request for so long, be it the first or a later one, is cut off (slow-loris)."""
KEEP_S = 30
"""A connection that rests so long after an answer is closed."""
BODY_S = 20.0
"""Longest wait for the whole of a body."""
HOSTS = frozenset({b"localhost", b"127.0.0.1", b"[::1]", b"watchfloor", b""})
"""The names by which our own clients call this host. A request with another name took us for a web server (DNS rebinding)."""


class BrokenOff(asyncio.CancelledError):
    """Raised on purpose in the middle of an answer: the connection is closed, and there is nothing to log."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """How many connections a door serves at once, and its answer to a peer that it does not serve."""

    most: int
    per_account: int
    """0: an account may have all of them."""
    not_served: bytes


class Door:
    """One listening unix socket that serves one ASGI app to the peers that ``accepts``."""

    def __init__(
        self,
        path: Path,
        app: App,
        accepts: Callable[[Peer], bool],
        *,
        mode: int = 0o600,
        owner: int | None = None,
        connections: int = MAX_CONNECTIONS,
        resting: Resting | None = None,
        per_account: int = 0,
        not_served: str = "This socket does not serve you.",
    ) -> None:
        """``resting``: bounds what is kept between two requests, shared with other doors; None: ``connections`` alone does.

        ``per_account``: connections that one account may have; 0: all. ``not_served``: what a peer hears that is not accepted.
        """
        self.path, self._accepts, self._resting = path, accepts, resting
        self._bounds = Bounds(connections, per_account, _whole("403 Forbidden", not_served, "", ExitCode.DENIED))
        # No web sockets: nothing here speaks them, and an upgraded connection would pass by every bound of this module.
        self._config = uvicorn.Config(
            bounded(app),
            http=H11Protocol,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            headers=[("server", f"watchfloor/{console.__version__}")],  # api/client/reading.py goes by it
            timeout_keep_alive=KEEP_S,
        )
        self._config.load()
        self._state = ServerState()
        self._state.default_headers = self._config.encoded_headers  # as uvicorn.Server does, which is not used here
        self._mode, self._owner = mode, owner
        self._server: asyncio.AbstractServer | None = None
        self._listener: NamedListener | None = None
        self._is_passed = False

    async def open(self) -> None:
        """Binds and listens; an old socket file of a dead supervisor is replaced. A socket of systemd's is used as it is."""
        passed = passed_socket(self.path)
        self._is_passed = passed is not None
        self._listener = sock = NamedListener(passed)
        if passed is None:
            with suppress(FileNotFoundError):
                self.path.unlink()
            sock.bind(str(self.path))
            self.path.chmod(self._mode)
            if self._owner is not None:
                os.chown(self.path, self._owner, -1)
        # Not create_unix_server: from Python 3.13 on that removes the file at the end, also systemd's.
        self._server = await asyncio.get_running_loop().create_server(self._protocol, sock=sock, backlog=128)

    def _protocol(self) -> asyncio.Protocol:
        assert self._listener is not None
        return _CheckedProtocol(self._config, self._state, self._listener, self._accepts, self._bounds, self._resting)

    def cut(self) -> int:
        """Break off every present connection, answered or not; return how many. New ones are served."""
        connections = list(self._state.connections)
        for connection in connections:
            connection.transport.abort()
        return len(connections)

    async def close(self) -> None:
        """Stops listening, cuts connections, removes the file. systemd goes on to listen on a socket of its own."""
        if self._server is not None:
            self._server.close()
        for connection in list(self._state.connections):
            connection.shutdown()
        for task in list(self._state.tasks):
            task.cancel()
        if not self._is_passed:
            with suppress(FileNotFoundError):
                self.path.unlink()


def _whole(status: str, error: str, remedy: str, exit_code: int) -> bytes:
    """An answer to a peer that has no protocol behind it."""
    body = json.dumps({"error": error, "remedy": remedy, "exit_code": exit_code}).encode()
    head = f"HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {len(body)}\r\ncontent-type: application/json\r\n\r\n"
    return head.encode() + body


def _too_many(bounds: Bounds) -> bytes:
    of_one = f", and {bounds.per_account} of one account" if bounds.per_account else ""
    words = f"The supervisor is busy: this socket serves {bounds.most} connections at once{of_one}, and has as many."
    return _whole("429 Too Many Requests", words, "Ask again when an answer has come.", TooMany.exit_code)


class _CheckedProtocol(H11Protocol):
    def __init__(
        self,
        config: uvicorn.Config,
        state: ServerState,
        listener: NamedListener,
        accepts: Callable[[Peer], bool],
        bounds: Bounds,
        resting: Resting | None,
    ) -> None:
        super().__init__(config=config, server_state=state, app_state={})
        self._listener, self._accepts, self._bounds, self._resting = listener, accepts, bounds, resting
        self._deadline: asyncio.TimerHandle | None = None
        self._named: NamedSocket | None = None
        self._peer: Peer | None = None

    def _close_the_silent(self, transport: asyncio.Transport) -> None:
        """A connection that has asked nothing yet, or began to ask and does not go on, only holds a descriptor (slow-loris)."""
        self._deadline = None
        has_asked = getattr(self, "cycle", None) is not None
        if not self._is_served() and (not has_asked or self._has_begun()) and not transport.is_closing():
            transport.close()

    def _has_begun(self) -> bool:
        """Whether bytes lie here that do not make a request yet."""
        return self.conn.their_state is h11.IDLE and bool(self.conn.trailing_data[0])

    def _is_served(self) -> bool:
        cycle = getattr(self, "cycle", None)
        return cycle is not None and not cycle.response_complete

    def _is_still_accepted(self) -> bool:
        """Return whether the process that wrote this piece is still allowed."""
        # A connection may be handed to another process, and a process may be moved to another cgroup.
        if self._named is None or self._peer is None:
            return False
        peer, (pid, uid) = self._peer, self._named.sender
        if (pid, uid) == (peer.pid, peer.uid):
            if getattr(self, "cycle", None) is None:
                return True  # it was looked at when it connected, which is now
            with suppress(OSError):
                if cgroups_of(pid) == peer.cgroups:
                    return True
        if self._bounds.per_account and uid != peer.uid:
            return False  # where accounts differ in rights: a set-user-ID program may write what another account told it to
        found = peer_at(pid, uid)
        if not self._accepts(found):
            return False
        self._peer = found
        return True

    def data_received(self, data: bytes) -> None:
        """Bytes that do not make a request start the clock again, once: more of them do not stop it."""
        if not self._is_still_accepted():
            self.transport.abort()  # nothing of it is parsed
            return
        if self._resting is not None:
            self._resting.over(self)
        super().data_received(data)
        if self._deadline is None and not self._is_served() and self._has_begun():
            self._deadline = self.loop.call_later(FIRST_REQUEST_S, self._close_the_silent, self.transport)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self._resting is not None and not (self._is_served() or self._has_begun() or self.transport.is_closing()):
            self._resting.begin(self._listener, self, self._give_way)

    def _give_way(self) -> None:
        """It rests, and its place is needed."""
        self.connections.discard(self)  # at once: whoever comes is counted before this one has heard
        self.timeout_keep_alive_handler()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._resting is not None:
            self._resting.over(self)
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        super().connection_lost(exc)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        sock = transport.get_extra_info("socket")
        self._named = self._listener.connection(sock.fileno())
        is_full = len(self.connections) >= self._bounds.most
        peer = peer_of(sock) if not is_full or self._resting is not None else None
        is_accepted = peer is not None and self._accepts(peer)
        if is_full and is_accepted and self._resting is not None:
            is_full = not self._resting.make_room(self._listener)
        is_full = is_full or (is_accepted and peer is not None and self._has_enough(peer))
        if is_full or not is_accepted:
            transport.write(_too_many(self._bounds) if is_full else self._bounds.not_served)
            # The refused peer has no protocol behind it: nothing it sends is ever parsed.
            transport.set_protocol(asyncio.Protocol())
            transport.close()
            return
        self._peer = peer  # only now: until then nothing that comes is parsed, whatever went wrong above
        super().connection_made(transport)
        self._deadline = self.loop.call_later(FIRST_REQUEST_S, self._close_the_silent, transport)
        # The kernel's word on who is at the other end travels with every request of this connection.
        inner = self.app

        async def named(scope: Scope, receive: Any, send: Any) -> None:
            assert self._peer is not None
            scope[UID], scope[PID], scope[GROUPS] = self._peer.uid, self._peer.pid, self._peer.groups
            try:
                await inner(scope, receive, send)
            except asyncio.CancelledError as error:
                if not self._is_meant(error):
                    raise
                self._break_off()

        self.app = named

    def _has_enough(self, peer: Peer) -> bool:
        """Return whether the account of ``peer`` has as many connections as one may have."""
        most = self._bounds.per_account
        return bool(most) and sum(getattr(c, "_peer", peer).uid == peer.uid for c in self.connections) >= most

    def _is_meant(self, error: asyncio.CancelledError) -> bool:
        """Return whether we cancelled it. Another cancellation is a fault of ours, which is logged: it came from a task that this one
        waited for."""
        task = asyncio.current_task()
        return isinstance(error, BrokenOff) or (task is not None and task.cancelling() > 0)

    def _break_off(self) -> None:
        """Close a connection without an answer. That tells the caller enough: a status 500 would report a fault."""
        if not self.cycle.response_complete:
            self.cycle.disconnected = True  # else uvicorn logs that nothing was answered, and answers 500 (it logs a CancelledError too)
            self.transport.close()


def bounded(app: App) -> App:
    """Refuses a body over MAX_BODY with 413, whether or not its length was announced."""

    async def guarded(scope: Scope, receive: Callable[[], Awaitable[Message]], send: Callable[[Message], Awaitable[None]]) -> None:
        if scope["type"] != "http":
            return
        headers = dict(scope["headers"])
        length = headers.get(b"content-length", b"0")
        if not length.isdigit() or int(length) > MAX_BODY:
            with suppress(TimeoutError):
                async with asyncio.timeout(BODY_S):
                    await _drain(receive)
            await _refuse(send, 413)
            return
        if _is_a_browser(headers):
            await _refuse(send, 403)
            return
        body = b""
        if scope["method"] not in ("GET", "HEAD", "DELETE"):
            try:
                async with asyncio.timeout(BODY_S):
                    whole = await _body(receive, send)
            except TimeoutError:
                await _refuse(send, 408)
                return
            if whole is None:
                return
            body = whole
        handed = False

        async def replay() -> Message:
            nonlocal handed
            if handed:
                return await receive()
            handed = True
            return {"type": "http.request", "body": body, "more_body": False}

        await app(scope, replay, send)

    return guarded


def _is_a_browser(headers: dict[bytes, bytes]) -> bool:
    """No browser is a client of ours: they name an origin, how they fetch (Fetch Metadata), or a host that is none of our names."""
    host = headers.get(b"host", b"").lower()
    name = host if host.endswith(b"]") else host.rsplit(b":", 1)[0]
    return b"origin" in headers or any(h.startswith(b"sec-fetch-") for h in headers) or name not in HOSTS


async def _body(receive: Callable[[], Awaitable[Message]], send: Callable[[Message], Awaitable[None]]) -> bytes | None:
    """The whole body; None when the client went away, or was answered that it is too large."""
    body, more = b"", True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        body += message.get("body", b"")
        more = message.get("more_body", False)
        if len(body) > MAX_BODY:
            if more:
                await _drain(receive)
            await _refuse(send, 413)
            return None
    return body


async def _drain(receive: Callable[[], Awaitable[Message]]) -> None:
    """Reads on for a while, so that a client that sends before it listens hears the refusal; then it is cut off."""
    left = MAX_DRAIN
    while left > 0:
        message = await receive()
        left -= len(message.get("body", b"")) + 1
        if message["type"] == "http.disconnect" or not message.get("more_body", False):
            return


async def _refuse(send: Callable[[Message], Awaitable[None]], status: int) -> None:
    words, remedy = {
        413: (f"The body is over {MAX_BODY} bytes.", "Send less at once."),
        403: ("Browsers are not served.", "Leave Origin out, and name localhost as the Host."),
        408: (f"The body took over {BODY_S:g} s.", "Send it again, all of it."),
    }[status]
    body = json.dumps({"error": words, "remedy": remedy, "exit_code": 2}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode()), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


# --- Who wrote the bytes that were just read: the kernel says it of every piece, so a connection that is kept, or handed on, hides
# nobody.


_CREDENTIALS = struct.Struct("iII")
_SPACE = socket.CMSG_LEN(_CREDENTIALS.size)
"""Room for the sender's credentials and for nothing else: the kernel drops descriptors that a sender adds (unix(7))."""
PIECE = 64 * 1024
"""Bytes read at once."""


class NamedSocket(socket.socket):
    """A connected unix socket that remembers the process which wrote what was read last. Pieces of two writers are never read as one."""

    sender: tuple[int, int] = (0, 0)
    """(pid, uid); pid 0: not known."""

    def recv(self, size: int, flags: int = 0, /) -> bytes:
        """Receive as every socket does. ``sender`` is the process that wrote it."""
        data, told, _flags, _address = self.recvmsg(min(size, PIECE), _SPACE, flags)
        if data:
            self.sender = _sender(told)
        return data


class NamedListener(socket.socket):
    """A listening unix socket whose connections are such."""

    def __init__(self, descriptor: int | None = None) -> None:
        """``descriptor``: of a socket that listens already."""
        super().__init__(socket.AF_UNIX, socket.SOCK_STREAM, fileno=descriptor)
        self.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)  # connections have it from here, before anything is written to them
        self._made: WeakValueDictionary[int, NamedSocket] = WeakValueDictionary()

    def accept(self) -> tuple[NamedSocket, Any]:
        """The next connection. OSError as every socket's."""
        plain, address = super().accept()
        made = NamedSocket(self.family, self.type, self.proto, plain.detach())
        made.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        self._made[made.fileno()] = made
        return made, address

    def connection(self, descriptor: int) -> NamedSocket:
        """The one of this descriptor, which lives. KeyError."""
        return self._made[descriptor]


def _sender(told: list[tuple[int, int, bytes]]) -> tuple[int, int]:
    for level, kind, data in told:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_CREDENTIALS) and len(data) >= _CREDENTIALS.size:
            pid, uid, _gid = _CREDENTIALS.unpack(data[: _CREDENTIALS.size])
            return pid, uid
    return 0, 0
