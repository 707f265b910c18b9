"""The hook as the programs run it: a process of its own, that says allow only when it was told so whole and in time."""

from __future__ import annotations

import ast
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from console.sources.hook_settings import HookCommand

HOOK = Path(__file__).parents[3] / "console" / "integrations" / "hook.py"
CALL = {"hook_event_name": "PreToolUse", "session_id": "s-1", "tool_name": "Bash", "tool_input": {"command": "ls"}}


def http(body: object, status: str = "200 OK", length: int | None = None) -> bytes:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return f"HTTP/1.1 {status}\r\ncontent-length: {len(data) if length is None else length}\r\n\r\n".encode() + data


ALLOW = http({"verdict": "allow", "rule": "shell(ls:*)", "reason": "allowed by rule"})


class Server:
    """Answers one connection with what it was given, and keeps what was asked."""

    def __init__(self, path: Path) -> None:
        self.path, self.asked = path, b""
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.bind(str(path))
        self.socket.listen(4)
        self.answer: bytes | Callable[[socket.socket], None] = ALLOW
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()

    def _serve(self) -> None:
        try:
            peer, _ = self.socket.accept()
        except OSError:
            return
        with peer:
            peer.settimeout(60)
            while b"\r\n\r\n" not in self.asked:
                self.asked += peer.recv(65536)
            head, _, body = self.asked.partition(b"\r\n\r\n")
            size = next(int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length"))
            while len(body) < size:
                body += peer.recv(65536)
            self.body = json.loads(body)
            try:
                if callable(self.answer):
                    self.answer(peer)
                else:
                    peer.sendall(self.answer)
            except OSError:
                pass

    def close(self) -> None:
        self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()
        self.thread.join(60)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    made = Server(tmp_path / "hooks.sock")
    yield made
    made.close()


def hook(path: Path, call: object = CALL, wait: str = "20", program: str = "claude-code") -> subprocess.CompletedProcess[bytes]:
    data = call if isinstance(call, bytes) else json.dumps(call).encode()
    argv = [sys.executable, "-I", "-S", str(HOOK), program, str(path), wait]
    return subprocess.run(argv, input=data, capture_output=True, timeout=60, check=False)


def said(done: subprocess.CompletedProcess[bytes]) -> Any:
    return json.loads(done.stdout)["hookSpecificOutput"]


def test_an_allow_is_handed_on_with_its_reason(server: Server) -> None:
    done = hook(server.path)
    assert done.returncode == 0 and said(done)["permissionDecision"] == "allow"
    assert server.body == {"program": "claude-code", "payload": CALL}


@pytest.mark.parametrize(
    "answer",
    [
        http({"verdict": "deny", "rule": "r", "reason": "no"}),
        http({"verdict": "ask", "rule": "r", "reason": "?"}),
        http({"verdict": "ALLOW"}),
        http({"verdict": ["allow"]}),
        http({}),
        http([]),
        http(b""),
        http(b"allow"),
        http(b'{"verdict": "allow"'),
        http({"verdict": "allow"}, "500 Oops"),
        http({"verdict": "allow"}, "503 Killed"),
        http({"verdict": "allow"}, "204 No"),
        http({"verdict": "allow"}, length=500),
        http({"verdict": "allow"}, length=3),
        b"",
        b"HTTP/1.1 200 OK\r\n",
        b"\x00" * 100,
        b"HTTP/1.1 200 OK\r\ncontent-length: x\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 1_200_000,
    ],
)
def test_anything_but_a_clear_allow_blocks(server: Server, answer: bytes) -> None:
    server.answer = answer
    done = hook(server.path)
    assert done.returncode == 2 and said(done)["permissionDecision"] == "deny" and done.stderr.startswith(b"Watchfloor")


def test_nobody_there_blocks(tmp_path: Path) -> None:
    done = hook(tmp_path / "none.sock")
    assert done.returncode == 2 and b"no call is allowed. A person starts one" in done.stderr


def test_an_answer_that_does_not_come_blocks(server: Server) -> None:
    ended = threading.Event()
    server.answer = lambda _peer: None if ended.wait(120) else None
    done = hook(server.path, wait="0.5")
    ended.set()
    assert done.returncode == 2 and b"no answer within 0.5 s" in done.stderr


@pytest.mark.parametrize(
    "call", [b"", b"{", b"[]", b"7", b"\xff\xfe", b'{"a":' * 5000, b'{"a": "\n"}', b'{"a": "\\ud8"}', b"x" * (2 * 1024 * 1024 + 1)]
)
def test_a_call_that_cannot_be_read_blocks(server: Server, call: bytes) -> None:
    assert hook(server.path, call).returncode == 2


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGKILL])
def test_a_hook_that_is_ended_blocks_as_it_is_installed(server: Server, number: signal.Signals) -> None:
    asked, ended = threading.Event(), threading.Event()

    def hold(_peer: socket.socket) -> None:
        asked.set()
        ended.wait(120)

    server.answer = hold
    command = HookCommand(sys.executable, HOOK, "claude-code", server.path, 120).line()
    with subprocess.Popen(["sh", "-c", command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as shell:
        assert shell.stdin is not None
        shell.stdin.write(json.dumps(CALL).encode())
        shell.stdin.close()
        assert asked.wait(60)
        children = Path(f"/proc/{shell.pid}/task/{shell.pid}/children").read_text().split()
        os.kill(int(children[0]), number)
        assert shell.stderr is not None
        complained = shell.stderr.read()  # Codex goes on after an exit 2 without a word
        assert shell.wait(60) == 2 and b"Watchfloor: no call without an allow" in complained
        assert (b"the hook was ended" in complained) == (number is not signal.SIGKILL)
        ended.set()


def test_without_an_interpreter_it_blocks_with_a_word(server: Server) -> None:
    command = HookCommand("/nonexistent/python3", HOOK, "codex", server.path, 120).line()
    done = subprocess.run(["sh", "-c", command], input=b"{}", capture_output=True, timeout=60, check=False)
    assert done.returncode == 2 and b"no call without an allow" in done.stderr
    assert b"cannot run: watchfloor doctor tells why, watchfloor install-hook installs it again" in done.stderr
    assert b"If Watchfloor is gone, take its hook out" in done.stderr and done.stderr.count(b"Watchfloor: ") == 1


def test_a_hook_whose_shell_was_killed_does_not_wait_on(server: Server) -> None:
    """Whoever asked is gone: the supervisor hears it at once, and not when a human has decided."""
    asked, left = threading.Event(), threading.Event()

    def hold(peer: socket.socket) -> None:
        asked.set()
        assert peer.recv(1) == b""
        left.set()

    server.answer = hold
    argv = [sys.executable, "-I", "-S", str(HOOK), "codex", str(server.path), "600"]
    with subprocess.Popen(["sh", "-c", '"$@"; true', "sh", *argv], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as shell:
        assert shell.stdin is not None and shell.stdout is not None
        shell.stdin.write(json.dumps(CALL).encode())
        shell.stdin.close()
        assert asked.wait(60)
        shell.kill()
        assert left.wait(60)
        assert b'"deny"' in shell.stdout.read()


def test_a_closed_output_does_not_turn_a_block_into_anything_else(tmp_path: Path) -> None:
    argv = [sys.executable, "-I", "-S", str(HOOK), "claude-code", str(tmp_path / "none.sock"), "1"]
    done = subprocess.run(["sh", "-c", '"$@" >&- 2>&-', "sh", *argv], input=b"{}", timeout=60, check=False)
    assert done.returncode == 2


def test_without_its_arguments_it_blocks() -> None:
    done = subprocess.run([sys.executable, "-I", "-S", str(HOOK)], input=b"{}", capture_output=True, timeout=60, check=False)
    assert done.returncode == 2 and b"not set up" in done.stderr


@pytest.mark.parametrize("verdict", ["allow", "deny"])
def test_a_program_that_reads_its_standard_output_alone_is_told_there(server: Server, verdict: str) -> None:
    """Gemini CLI 0.61 takes what stands there for the whole answer: without a decision in it an exit of 2 would let the call through."""
    server.answer = http({"verdict": verdict, "rule": "r", "reason": "no"})
    done = hook(server.path, program="gemini")
    told = json.loads(done.stdout)
    assert (told["decision"], done.returncode) == (verdict, 0 if verdict == "allow" else 2) and "no" in told["reason"]


def test_a_permission_request_is_answered_in_its_own_form(server: Server) -> None:
    done = hook(server.path, {**CALL, "hook_event_name": "PermissionRequest"})
    assert said(done) == {"hookEventName": "PermissionRequest", "decision": {"behavior": "allow"}}


def test_it_imports_the_standard_library_alone() -> None:
    tree = ast.parse(HOOK.read_text())
    names = {a.name for node in ast.walk(tree) if isinstance(node, ast.Import) for a in node.names}
    names |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert names <= sys.stdlib_module_names
