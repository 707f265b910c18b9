"""The client of forty lines: an allow is an allow, and whatever else comes back, or does not, is a denial."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from console.integrations.ask import ask
from tests.fakes.agent_socket import AgentSocket

FILE = Path(__file__).resolve().parents[3] / "console/integrations/ask.py"
ALLOW = b'{"verdict": "allow", "reason": "r"}'


def run(path: Path, *words: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-I", "-S", str(FILE), *words]
    environment = {"WATCHFLOOR_AGENT_SOCKET": str(path)} if path.name else {}
    return subprocess.run(argv, env=environment, capture_output=True, text=True, timeout=60, check=False)


@contextmanager
def says(path: Path, answer: bytes) -> Iterator[None]:
    """Somebody at the socket who sends this to one caller, whatever he asks."""
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(str(path))
        door.listen()

        def serve() -> None:
            with door.accept()[0] as caller, suppress(OSError):  # he may have heard enough
                caller.recv(65536)
                caller.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        yield
        thread.join()


def http(body: bytes, status: str = "200 OK", length: int | None = None) -> bytes:
    return f"HTTP/1.1 {status}\r\ncontent-length: {len(body) if length is None else length}\r\n\r\n".encode() + body


def test_it_is_forty_lines_of_the_standard_library() -> None:
    assert len(FILE.read_text().splitlines()) <= 40


def test_an_allow_is_exit_0_and_a_denial_exit_4(tmp_path: Path) -> None:
    path = tmp_path / "s"
    with AgentSocket(path) as door:
        done = run(path, "shell", "ls -l")
        assert (done.returncode, done.stdout) == (0, 'allow "because"\n')
        assert door.bodies("/v1/permission") == [{"tool": "shell", "argument": "ls -l"}]
        door.answers["/v1/permission"] = (200, {"verdict": "deny", "rule": "r", "reason": "no\x1b[2K\u202e"})
        done = run(path, "shell")
        assert (done.returncode, done.stdout) == (4, 'deny "no\\u001b[2K\\u202e"\n')
    assert run(path, "shell").returncode == 4 and run(Path(), "shell").returncode == 4 and run(path).returncode == 4


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        http(ALLOW, length=len(ALLOW) + 1),
        http(ALLOW, length=len(ALLOW) - 1),
        http(ALLOW, "500 Oops"),
        http(ALLOW, "403 200"),
        http(b'{"verdict": "ask", "reason": ""}'),
        http(b'{"verdict": "ALLOW", "reason": ""}'),
        http(b'["allow"]'),
        http(b'"allow"'),
        http(b"[" * 100_000),
        http(b'{"reason": "no verdict"}'),
        http(b"\xff\xfe"),
        b"HTTP/1.1 200 OK\r\n\r\n" + ALLOW,
        ALLOW,
        http(ALLOW + b" " * (2 << 20)),
    ],
)
def test_what_is_not_a_whole_allow_is_a_denial(tmp_path: Path, answer: bytes) -> None:
    with says(tmp_path / "s", answer):
        assert ask("launch", path=str(tmp_path / "s"), wait_s=30)[0] is False


def test_nobody_there_and_somebody_silent_are_denials(tmp_path: Path) -> None:
    assert ask("launch", path=str(tmp_path / "nobody"))[0] is False
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(str(tmp_path / "s"))
        door.listen()
        assert ask("launch", path=str(tmp_path / "s"), wait_s=0.2) == (False, "no answer in time")


def test_a_drip_does_not_keep_it_waiting(tmp_path: Path) -> None:
    over = threading.Event()
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(str(tmp_path / "s"))
        door.listen()

        def drip() -> None:
            with door.accept()[0] as caller:
                while not over.wait(0.02):
                    try:
                        caller.sendall(b"H")
                    except OSError:
                        return

        thread = threading.Thread(target=drip)
        thread.start()
        assert ask("launch", path=str(tmp_path / "s"), wait_s=0.3)[0] is False
        over.set()
        thread.join()
