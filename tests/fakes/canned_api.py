"""A supervisor's socket that gives canned answers: what the client and the command line make of them, byte for byte."""

from __future__ import annotations

import json
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any

from console.settings.places import Places, make_run_dir

Answer = tuple[int, bytes]


@dataclass
class Asked:
    """One request as it came."""

    method: str
    path: str
    body: Any
    headers: dict[str, str]


@dataclass
class CannedApi:
    """``answers["GET /api/fleet"] = (200, b"...")``; a list is used up one by one, its last answer stays. Unknown routes: 404."""

    answers: dict[str, Answer | list[Answer]] = field(default_factory=dict)
    asked: list[Asked] = field(default_factory=list)
    hang: threading.Event = field(default_factory=threading.Event)
    """Answers of status 0 wait for it: a supervisor that hangs."""

    def say(self, route: str, body: Any, status: int = 200) -> None:
        """Answers ``route`` with a JSON body."""
        self.answers[route] = (status, json.dumps(body).encode())

    def refuse(self, route: str, status: int, error: str, remedy: str = "", exit_code: int = 1) -> None:
        """Answers ``route`` with an ErrorView."""
        self.say(route, {"error": error, "remedy": remedy, "exit_code": exit_code}, status)

    def take(self, route: str) -> Answer:
        """The next answer of a route."""
        found = self.answers.get(route, (404, b'{"error": "no such route", "exit_code": 3}'))
        if isinstance(found, list):
            return found.pop(0) if len(found) > 1 else found[0]
        return found


class _Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = False
    block_on_close = True
    request_queue_size = 50

    def __init__(self, path: str, canned: CannedApi) -> None:
        self.canned = canned
        super().__init__(path, _Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no error of the test."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    timeout = 20

    def _serve(self) -> None:
        length = int(self.headers.get("content-length", 0))
        raw = self.rfile.read(length)
        canned = self.server.canned
        canned.asked.append(
            Asked(self.command, self.path, json.loads(raw) if raw else None, {k.lower(): v for k, v in self.headers.items()})
        )
        status, body = canned.take(f"{self.command} {self.path.split('?')[0]}")
        if status == 0:
            canned.hang.wait(20)
            self.close_connection = True
            return
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.send_header("connection", "close")
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = do_PUT = do_DELETE = _serve  # noqa: N815 - names of http.server

    def log_message(self, format: str, *args: Any) -> None:
        """Silent."""

    def address_string(self) -> str:
        return "client"


@contextmanager
def canned_api(places: Places) -> Iterator[CannedApi]:
    """Serves on the operator socket of ``places`` until the block ends."""
    make_run_dir(places)
    canned = CannedApi()
    with _Server(str(places.operator_sock), canned) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, name="canned-api")
        thread.start()
        try:
            yield canned
        finally:
            canned.hang.set()
            server.shutdown()
            thread.join()
