"""An engine on a unix socket that hangs, lies or is away; only what the guard asks of one."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from pathlib import Path
from typing import Any


class EngineStub:
    """``mood``: ``lies`` answers 204 to every kill and does nothing; ``hangs`` accepts and never answers; ``nonsense`` is not HTTP."""

    def __init__(self, path: Path, mood: str) -> None:
        self.mood = mood
        self.asked: list[str] = []
        self.containers: dict[str, dict[str, Any]] = {}
        """Id -> {pid, agent, instance}: what it says is running."""
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(str(path))
        self._listener.listen(32)
        self._open: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            self._open.append(sock)
            thread = threading.Thread(target=self._serve, args=(sock,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, sock: socket.socket) -> None:
        with contextlib.suppress(OSError, ValueError, IndexError):
            request = b""
            while b"\r\n\r\n" not in request:
                data = sock.recv(4096)
                if not data:
                    return
                request += data
            method, path = request.split(b" ", 2)[:2]
            self.asked.append(f"{method.decode()} {path.decode()}")
            if self.mood == "hangs":
                sock.recv(1)
            elif self.mood == "nonsense":
                sock.sendall(b"\x00\x01garbage\r\n\r\n")
            elif b"/events" in path:
                sock.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
                sock.recv(1)
            else:
                self._answer(sock, path.decode())
        sock.close()

    def _answer(self, sock: socket.socket, path: str) -> None:
        if path.startswith("/containers/json"):
            body: Any = [
                {"Id": i, "Labels": {"io.watchfloor.agent": c["agent"], "io.watchfloor.instance": c["instance"]}}
                for i, c in self.containers.items()
            ]
        elif path.endswith("/json"):
            found = self.containers.get(path.split("/")[2], {"instance": "", "pid": 0})
            body = {
                "Config": {"Labels": {"io.watchfloor.instance": found["instance"]}},
                "State": {"Pid": found["pid"], "Paused": found.get("paused", False)},
            }
        else:
            sock.sendall(b"HTTP/1.1 204 No Content\r\n\r\n")
            return
        raw = json.dumps(body).encode()
        sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: " + str(len(raw)).encode() + b"\r\n\r\n" + raw)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for sock in self._open:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
            sock.close()
        for thread in self._threads:
            thread.join(60)
