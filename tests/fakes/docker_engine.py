"""A real Docker engine in the few calls tests need, and a small image of programs that are here already."""

from __future__ import annotations

import http.client
import io
import json
import socket
import subprocess
import tarfile
from pathlib import Path
from typing import Any


class Docker:
    """The few calls a test needs."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.made: list[str] = []

    def ask(self, method: str, path: str, body: bytes | dict[str, Any] | None = None, kind: str = "application/json") -> Any:
        connection = http.client.HTTPConnection("engine", timeout=60)
        connection.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.sock.settimeout(60)
        connection.sock.connect(str(self.path))
        raw = json.dumps(body).encode() if isinstance(body, dict) else body
        connection.request(method, path, raw, {"Content-Type": kind})
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        assert answer.status < 400, text
        return json.loads(text) if text[:1] in (b"{", b"[") and b"\n{" not in text else text

    def run(self, image: str, instance: str, agent: str, *argv: str, restart: str = "no") -> tuple[str, int]:
        body = {
            "Image": image,
            "Cmd": list(argv),
            "Labels": {"io.watchfloor.instance": instance, "io.watchfloor.agent": agent},
            "HostConfig": {"NetworkMode": "none", "RestartPolicy": {"Name": restart}},
        }
        container = str(self.ask("POST", "/containers/create", body)["Id"])
        self.made.append(container)
        self.ask("POST", f"/containers/{container}/start")
        return container, self.pid(container)

    def pid(self, container: str) -> int:
        return int(self.ask("GET", f"/containers/{container}/json")["State"]["Pid"])

    def close(self) -> None:
        for container in self.made:
            self.ask("DELETE", f"/containers/{container}?force=1&v=1")


def shell_tar() -> bytes:
    """A tar of a root folder with a shell and ``sleep`` in it: this machine's own and their libraries, nothing fetched from anywhere."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        added: set[str] = set()
        for program in ("/bin/sh", "/bin/sleep"):
            for name in (program, *_libraries(program)):
                if name not in added:
                    added.add(name)
                    tar.add(Path(name).resolve(), name)
    return out.getvalue()


def _libraries(program: str) -> list[str]:
    told = subprocess.run(["ldd", program], capture_output=True, text=True, check=True, timeout=60).stdout
    return [word for word in told.split() if word.startswith("/")]
