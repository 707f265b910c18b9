"""A stand-in for an agent's socket: answers the agent routes and remembers what was asked."""

from __future__ import annotations

import json
import socketserver
import threading
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from types import TracebackType
from typing import Any


class AgentSocket(socketserver.ThreadingUnixStreamServer):
    """Serve with ``with AgentSocket(path) as socket:``."""

    daemon_threads = True

    def __init__(self, path: Path) -> None:
        self.asked: list[tuple[str, str, Any]] = []
        self.answers: dict[str, tuple[int, Any]] = {
            "/v1/spawn": (200, {"id": "child-1"}),
            "/v1/usage": (200, {}),
            "/v1/permission": (200, {"verdict": "allow", "rule": "r", "reason": "because"}),
            "/v1/private-data": (200, {"sensitivity": "SECRET"}),
            "/v1/notices": (200, {"notices": [], "next": 7}),
            "/v1/self": (200, {"id": "me-1"}),
        }
        self.path = path
        super().__init__(str(path), _Handler)

    def bodies(self, route: str) -> list[Any]:
        """What was sent to one route, in order."""
        return [body for _, path, body in self.asked if path == route]

    def __enter__(self) -> AgentSocket:
        self._thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.02})
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self.shutdown()
        self._thread.join()
        self.server_close()


class _Handler(BaseHTTPRequestHandler):
    server: AgentSocket

    def do_GET(self) -> None:
        self._answer(None)

    def do_POST(self) -> None:
        self._answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

    def _answer(self, body: Any) -> None:
        self.server.asked.append((self.command, self.path, body))
        status, data = self.server.answers.get(self.path.partition("?")[0], (404, {"error": "no such route"}))
        text = data if isinstance(data, bytes) else json.dumps(data).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def address_string(self) -> str:
        return "unix"
