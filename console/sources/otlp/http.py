"""A small OTLP/HTTP receiver on loopback, in a thread and loop of its own, so that its input never holds up the supervisor.

No sender is trusted. Sizes, times, connections and rates are bounded, packed data is unpacked up to a bound, and browsers are refused. What
is refused is counted in the book, and answered with a status after which exporters do not try the same again.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import logging
import queue
import socket
import threading
import time
import zlib
from contextlib import suppress
from dataclasses import dataclass, field

import h11

from console.sources.otlp import json_form as otlp_json
from console.sources.otlp import protobuf as otlp_protobuf
from console.sources.otlp.book import TelemetryBook
from console.sources.telemetry.items import Kind, Unreadable

log = logging.getLogger(__name__)
BODY_MAX = 1024 * 1024
"""Of a body, as it was sent and as it was unpacked."""
HEAD_MAX = 16 * 1024
CONNECTIONS_MAX = 64
REQUEST_S = 10.0
"""Longest wait for the whole of a request, and between two."""
READ_ON_S = 0.5
"""How long what a refused sender still sends is read and thrown away."""
RATE_BURST, RATE_PER_S = 4 * BODY_MAX, BODY_MAX // 2
"""Bytes taken at once, and a second, so that senders cost a bounded part of a processor."""
WAIT_S = 0.25
"""Seconds before a sender of more than that gets its refusal."""
PACKED = 10
"""What a packed byte counts, whatever becomes of it."""
REQUEST_COST = 8192
"""What a request counts at least."""
HOST = "127.0.0.1"
HOSTS = (b"127.0.0.1", b"localhost", b"[::1]")
KINDS: dict[bytes, Kind] = {b"/v1/metrics": "metrics", b"/v1/logs": "logs", b"/v1/traces": "traces"}
_Begun = queue.SimpleQueue[OSError | None]
"""Says once how the start of a receiver's thread went."""
_JSON, _PROTOBUF = b"application/json", b"application/x-protobuf"


class _Refusal(Exception):
    """A request that is answered with a status alone. ``words`` are one of few: each is a kind of refusal in the book."""

    def __init__(self, status: int, words: str, example: str = "") -> None:
        super().__init__(words)
        self.status, self.words, self.example = status, words, example


@dataclass(slots=True)
class _Request:
    kind: Kind
    content: bytes
    """Type of the body."""
    gzipped: bool
    announced: int
    """Its length, or 0: it comes in pieces."""
    body: bytearray = field(default_factory=bytearray)


class Receiver:
    """``open`` binds at once, so that a port that is taken is known; ``close`` ends the thread."""

    def __init__(self, book: TelemetryBook, port: int, token_sha256: str = "") -> None:
        self._book, self._token = book, token_sha256.lower()
        self.port = port
        self._open: set[asyncio.StreamWriter] = set()
        self._room, self._room_at = float(RATE_BURST), time.monotonic()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ended = asyncio.Event()
        self._thread: threading.Thread | None = None

    @property
    def is_open(self) -> bool:
        """Whether it listens."""
        return self._thread is not None and self._thread.is_alive()

    def open(self) -> None:
        """Returns once it listens and serves. OSError: the port cannot be had, or not be served."""
        sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.bind((HOST, self.port))
            sock.listen(CONNECTIONS_MAX)
        except OSError:
            sock.close()
            raise
        self.port = sock.getsockname()[1]
        try:
            self._loop, self._ended = asyncio.new_event_loop(), asyncio.Event()
        except OSError:
            sock.close()
            raise
        begun: _Begun = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, args=(self._loop, self._ended, sock, begun), name="otlp", daemon=True)
        self._thread.start()
        if (trouble := begun.get()) is not None:
            self.close()
            raise trouble

    def close(self) -> None:
        """Ends it, and every connection. Twice is once."""
        loop, thread = self._loop, self._thread
        self._loop = self._thread = None
        if loop is not None and thread is not None:
            with suppress(RuntimeError):  # closed already
                loop.call_soon_threadsafe(self._ended.set)
            thread.join(5.0)

    def _run(self, loop: asyncio.AbstractEventLoop, ended: asyncio.Event, sock: socket.socket, begun: _Begun) -> None:
        try:
            loop.run_until_complete(self._listen(ended, sock, begun))
        finally:
            sock.close()
            loop.close()
            begun.put(OSError("it ended at once"))  # for whoever waits still

    async def _listen(self, ended: asyncio.Event, sock: socket.socket, begun: _Begun) -> None:
        try:
            server = await asyncio.start_server(self._serve, sock=sock, limit=HEAD_MAX)
        except OSError as error:
            begun.put(error)
            return
        begun.put(None)
        try:
            await ended.wait()
        finally:
            server.close()
            tasks = asyncio.all_tasks() - {asyncio.current_task()}
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._open) >= CONNECTIONS_MAX:
            self._book.refuse("more connections than are served")
            writer.transport.abort()
            return
        self._open.add(writer)
        conn = h11.Connection(h11.SERVER, max_incomplete_event_size=HEAD_MAX)
        try:
            while await self._one(conn, reader, writer):
                conn.start_next_cycle()
        except TimeoutError:
            if conn.their_state is not h11.IDLE or conn.trailing_data[0]:
                self._book.refuse(f"a request that took over {REQUEST_S:g} s")
        except (ConnectionError, h11.LocalProtocolError):
            pass  # it went away
        finally:
            self._open.discard(writer)
            writer.transport.abort() if writer.transport.get_write_buffer_size() else writer.close()

    async def _one(self, conn: h11.Connection, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """One request and its answer; whether another may follow."""
        content = _JSON
        try:
            async with asyncio.timeout(REQUEST_S):
                head = await _event(conn, reader)
                if not isinstance(head, h11.Request):
                    return False
                request = self._checked(head)
                self._pay(REQUEST_COST + request.announced)  # before a byte of it is read: who floods costs little
                content = request.content
                if conn.they_are_waiting_for_100_continue:
                    writer.write(conn.send(h11.InformationalResponse(status_code=100, headers=[])) or b"")
                while not isinstance(event := await _event(conn, reader), h11.EndOfMessage):
                    if not isinstance(event, h11.Data):
                        return False
                    if not request.announced:
                        self._pay(len(event.data))
                    request.body += event.data
                    if len(request.body) > BODY_MAX:
                        raise _Refusal(413, "a body that is too large")
            self._take(request)
            status, words = 200, b"{}" if content == _JSON else b""
        except _Refusal as refusal:
            self._book.refuse(refusal.words, refusal.example)
            await asyncio.sleep(WAIT_S if refusal.status == 429 else 0)
            status, words, content = refusal.status, b'{"message":"%s"}' % refusal.words.encode(), _JSON
        except h11.RemoteProtocolError as error:
            self._book.refuse("bytes that are no request")
            status, words, content = error.error_status_hint, b'{"message":"no request"}', _JSON
        whole = conn.our_state is h11.SEND_RESPONSE and conn.their_state is h11.DONE and status < 400
        headers = [(b"content-type", content), (b"content-length", b"%d" % len(words))]
        headers += [] if whole else [(b"connection", b"close")]
        headers += [(b"retry-after", b"5")] if status == 429 else []
        parts = (h11.Response(status_code=status, headers=headers), h11.Data(data=words), h11.EndOfMessage())
        writer.write(b"".join(conn.send(part) or b"" for part in parts))
        async with asyncio.timeout(REQUEST_S):
            await writer.drain()
        if not whole and status != 429:
            await _read_on(reader, writer)
        return whole and conn.our_state is h11.DONE

    def _checked(self, head: h11.Request) -> _Request:
        """What may be sent here. _Refusal."""
        headers: dict[bytes, bytes] = dict(head.headers)
        host = headers.get(b"host", b"").lower()
        name = host if host.endswith(b"]") else host.rpartition(b":")[0] or host
        if b"origin" in headers or any(one.startswith(b"sec-fetch-") for one in headers) or name not in HOSTS:
            raise _Refusal(403, "a browser, or a host of another name")
        if self._token and not _is_token(headers.get(b"authorization", b""), self._token):
            raise _Refusal(401, "a sender without the token")
        kind = KINDS.get(head.target)
        if kind is None:
            raise _Refusal(404, "a path that is not served")
        if head.method != b"POST":
            raise _Refusal(405, "a method that is not served")
        content = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
        packed = headers.get(b"content-encoding", b"identity").strip().lower()
        if content not in (_JSON, _PROTOBUF):
            raise _Refusal(415, "a body that is neither JSON nor protobuf")
        if content == _PROTOBUF and otlp_protobuf.MISSING:
            raise _Refusal(415, "protobuf, which is not read here: use http/json")
        if packed not in (b"identity", b"gzip"):
            raise _Refusal(415, "a body that is packed otherwise than gzip")
        announced = int(headers.get(b"content-length", b"0"))  # h11 has checked that it is a number
        if announced > BODY_MAX:
            raise _Refusal(413, "a body that is too large")
        return _Request(kind, content, packed == b"gzip", announced)

    def _pay(self, cost: int) -> None:
        now = time.monotonic()
        self._room, self._room_at = min(float(RATE_BURST), self._room + (now - self._room_at) * RATE_PER_S), now
        if cost > self._room:
            raise _Refusal(429, "more than is taken in a second")
        self._room -= cost

    def _take(self, request: _Request) -> None:
        body = bytes(request.body)
        if request.gzipped:
            self._pay(PACKED * len(body))
            body = unpacked(body)
        reads = otlp_protobuf if request.content == _PROTOBUF else otlp_json
        try:
            self._book.take(reads.items(request.kind, body))
        except Unreadable as error:
            raise _Refusal(400, error.kind, error.where) from error


async def _event(conn: h11.Connection, reader: asyncio.StreamReader) -> object:
    while (event := conn.next_event()) is h11.NEED_DATA:
        conn.receive_data(await reader.read(65536))
    return event


async def _read_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """For a moment: who sends before it listens hears why it was refused, and no reset."""
    writer.write_eof()
    with suppress(TimeoutError):
        async with asyncio.timeout(READ_ON_S):
            left = 4 * BODY_MAX
            while left > 0 and (data := await reader.read(65536)):
                left -= len(data)


def unpacked(body: bytes) -> bytes:
    """One whole gzip member, and not one byte more than a body may have. _Refusal."""
    unzip = zlib.decompressobj(wbits=31)
    try:
        plain = unzip.decompress(body, BODY_MAX + 1)
    except zlib.error:
        raise _Refusal(400, "a body that is no gzip") from None
    if len(plain) > BODY_MAX:
        raise _Refusal(413, "a body that unpacks to more than is taken")
    if not unzip.eof or unzip.unused_data:
        raise _Refusal(400, "a body that is no gzip")
    return plain


def _is_token(header: bytes, expected: str) -> bool:
    scheme, _, token = header.partition(b" ")
    return scheme.lower() == b"bearer" and hmac.compare_digest(hashlib.sha256(token.strip()).hexdigest(), expected)
