"""A receiver of webhooks on loopback: strict, or as bad as a test wants it."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from standardwebhooks.webhooks import Webhook


@dataclass
class Receiver:
    """What it got, and what it answers from now on."""

    port: int
    status: int = 204
    answer: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    got: list[tuple[dict[str, str], bytes]] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook/a-hidden-path?token=hidden-token"

    def alerts(self, secret: str) -> list[dict[str, Any]]:
        """Each delivery, verified by the independent library. Raises its error for a wrong signature."""
        return [dict(Webhook(secret).verify(body, headers)) for headers, body in list(self.got)]

    def events(self, secret: str) -> list[str]:
        return [str(one["event"]) for one in self.alerts(secret)]


@contextmanager
def receiving(port: int = 0) -> Iterator[Receiver]:
    """An HTTP receiver, until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        timeout = 2
        """The end waits for every handler, on the loop that a client half-way through its request runs on."""

        def do_POST(self) -> None:
            try:
                body = self.rfile.read(int(self.headers["content-length"]))
            except TimeoutError:
                return
            json.loads(body)
            told.got.append(({key.lower(): value for key, value in self.headers.items()}, body))
            self.send_response(told.status)
            for key, value in told.headers.items():
                self.send_header(key, value)
            self.send_header("content-length", str(len(told.answer)))
            self.end_headers()
            self.wfile.write(told.answer)

        def log_message(self, *_: object) -> None:
            """Says nothing."""

    with ThreadingHTTPServer(("127.0.0.1", port), Handler) as server:
        told = Receiver(server.server_port)
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield told
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def raw_receiver(said: bytes = b"", *, drip: bytes = b"", accepts: bool = True, closes: bool = False) -> Iterator[int]:
    """The port of one that answers every connection with these bytes, then with ``drip`` again and again; or never accepts, or closes."""
    ended = threading.Event()

    def serve() -> None:
        while not ended.is_set():
            with suppress(OSError):
                door.settimeout(0.05)
                one, _ = door.accept()
                with one:
                    one.settimeout(1)
                    one.recv(65536)
                    one.sendall(said)
                    while drip and not ended.wait(0.05):
                        one.sendall(drip)
                    if not said and not closes:
                        ended.wait(20)

    with socket.create_server(("127.0.0.1", 0), backlog=0 if not accepts else 8) as door:
        thread = threading.Thread(target=serve) if accepts else threading.Thread(target=ended.wait)
        thread.start()
        try:
            yield int(door.getsockname()[1])
        finally:
            ended.set()
            thread.join()
