"""A real Docker engine in the few calls tests need, and the smallest image there is: one static program of Debian's."""

from __future__ import annotations

import http.client
import io
import json
import shutil
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


def busybox_tar(folder: Path) -> bytes:
    """A tar of a root folder with busybox-static in it; ``folder`` takes the download."""
    program = Path("/bin/busybox") if _is_static(Path("/bin/busybox")) else _download(folder)
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        info = tarfile.TarInfo("bin/busybox")
        info.mode, info.size = 0o755, program.stat().st_size
        with program.open("rb") as file:
            tar.addfile(info, file)
        for name in ("sh", "sleep"):
            link = tarfile.TarInfo(f"bin/{name}")
            link.type, link.linkname = tarfile.SYMTYPE, "busybox"
            tar.addfile(link)
    return out.getvalue()


def _is_static(program: Path) -> bool:
    return program.exists() and b"ld-linux" not in program.read_bytes()


def _download(folder: Path) -> Path:
    subprocess.run(["apt-get", "download", "busybox-static"], cwd=folder, check=True, capture_output=True, timeout=120)
    package = next(folder.glob("busybox-static_*.deb"))
    subprocess.run(["dpkg", "-x", str(package), str(folder / "root")], check=True, capture_output=True, timeout=60)
    found = shutil.which("busybox", path=f"{folder}/root/bin:{folder}/root/usr/bin")
    assert found is not None
    return Path(found)
