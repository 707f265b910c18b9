"""Starting the guard: one that runs is taken, one that cannot start says why, and nothing of our environment leaks into it."""

from __future__ import annotations

import itertools
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from console.domain.errors import TimedOut, Unavailable
from console.killswitch.client import patience
from console.killswitch.client.start import guard_pid, start_guard


class Answering:
    """guard.sock of somebody who gives every line the same answer."""

    def __init__(self, folder: Path, answer: bytes) -> None:
        folder.mkdir(exist_ok=True)
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(str(folder / "guard.sock"))
        self._listener.listen()
        self._answer = answer
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            with sock:
                if sock.recv(4096):
                    sock.sendall(self._answer)

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()


@pytest.fixture
def answering(state_dir: Path) -> Iterator[Callable[[bytes], None]]:
    made: list[Answering] = []
    yield lambda answer: made.append(Answering(state_dir / "run", answer))
    for each in made:
        each.close()


class Program:
    """What is started in place of the guard."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.command: list[str] = []
        self.options: dict[str, Any] = {}
        self.out, self.err, self.code = b"ready 4242\n", b"", 0
        self.then: Callable[[], None] = lambda: None
        self.pid, self.returncode, self.was_killed = os.getpid(), 0, False
        monkeypatch.setattr(subprocess, "Popen", self._popen)

    def _popen(self, command: list[str], **options: Any) -> Program:
        self.command, self.options = command, options
        return self

    def __enter__(self) -> Program:
        return self

    def __exit__(self, *_: object) -> None:
        self.options["over"] = True

    def communicate(self, timeout: float) -> tuple[bytes, bytes]:
        self.then()
        self.returncode = self.code
        return self.out, self.err

    def kill(self) -> None:
        self.was_killed = True


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch) -> Program:
    return Program(monkeypatch)


def start(folder: Path, **options: Any) -> int:
    return start_guard(folder / "state", folder / "run", "0badc0de", **options)


def test_a_guard_that_answers_is_taken(state_dir: Path, answering: Callable[[bytes], None], program: Program) -> None:
    answering(b'{"ok":true,"pid":77}\n')
    assert start(state_dir) == 77 and program.command == []


@pytest.mark.parametrize(
    "answer",
    [
        b'{"ok":false,"error":"no"}\n',
        b"nonsense\n",
        b'{"ok":true}\n',
        b'{"ok":true,"pid":null}\n',
        b'{"ok":true,"pid":"x"}\n',
        b'{"ok":true,"pid":[1]}\n',
        b"",
    ],
)
def test_what_does_not_answer_as_a_guard_is_none(state_dir: Path, answering: Callable[[bytes], None], answer: bytes) -> None:
    answering(answer)
    assert guard_pid(state_dir / "run") is None


def test_nobody_answers(state_dir: Path) -> None:
    assert guard_pid(state_dir / "run") is None


def test_it_is_started_apart_from_us(state_dir: Path, program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LD_PRELOAD", "/tmp/evil.so")
    monkeypatch.setenv("PYTHONSTARTUP", "/tmp/evil.py")
    monkeypatch.setenv("AGENT_AUTH_TOKEN", "secret")
    assert start(state_dir) == 4242
    assert program.command[:5] == [sys.executable, "-P", "-s", "-m", "console.killswitch"] and "--detach" in program.command
    assert set(program.options["env"]) <= {"PATH", "LANG", "LC_ALL", "HOME", "TMPDIR", "PYTHONPATH"}
    assert program.options["cwd"] == "/" and program.options["stdin"] == subprocess.DEVNULL and program.options["over"]
    assert not [word for word in program.command if word.startswith(("--engine", "--lease", "--supervisor-uid", "--orphan"))]


def test_every_option_reaches_it(state_dir: Path, program: Program) -> None:
    start(state_dir, engine_socket=Path("/e.sock"), heartbeat_s=7.5, lease=True, supervisor_uid=0, orphan_s=1.0, timeout_s=3)
    wanted = {"--engine-socket=/e.sock", "--heartbeat-s=7.5", "--lease", "--supervisor-uid=0", "--orphan-s=1.0", "--instance=0badc0de"}
    assert wanted <= set(program.command)


@pytest.mark.parametrize(
    ("code", "out", "err", "why"),
    [
        (75, b"", b"already running\n", "already running"),
        (1, b"", b"Traceback\n  line\nOSError: [Errno 28] No space left\n", "No space left"),
        (1, b"", b"", "it gave no reason"),
        (0, b"", b"", "it gave no reason"),
        (0, b"ready\n", b"", "it gave no reason"),
        (0, b"perhaps 12\n", b"hm", "hm"),
        (1, b"ready 12\n", b"died", "died"),
        (1, b"", b"\xff\xfe\n", "\ufffd"),
    ],
)
def test_one_that_cannot_start_says_why(state_dir: Path, program: Program, code: int, out: bytes, err: bytes, why: str) -> None:
    program.code, program.out, program.err = code, out, err
    with pytest.raises(Unavailable, match="cannot start") as caught:
        start(state_dir, timeout_s=0.0)
    assert why in caught.value.what and "guard.log" in caught.value.remedy


def test_one_that_died_detached_is_heard_through_its_log(state_dir: Path, program: Program) -> None:
    program.code, program.out = 1, b""
    log = state_dir / "state" / "guard" / "guard.log"
    log.parent.mkdir(parents=True)
    log.write_text("x" * 5000 + "\nPermissionError: control\n")
    with pytest.raises(Unavailable, match="PermissionError: control"):
        start(state_dir)


def test_another_start_that_was_faster_wins(state_dir: Path, program: Program, answering: Callable[[bytes], None]) -> None:
    program.code, program.out, program.err = 75, b"", b"already running\n"
    program.then = lambda: answering(b'{"ok":true,"pid":78}\n')
    assert start(state_dir) == 78


def test_another_that_holds_the_instance_and_still_starts_is_waited_for(
    state_dir: Path, program: Program, answering: Callable[[bytes], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    program.code, program.out, program.err = 75, b"", b"already running\n"
    looks = list[int]()

    def rest(_seconds: float) -> None:
        looks.append(1)
        if len(looks) == 3:
            answering(b'{"ok":true,"pid":79}\n')

    monkeypatch.setattr(time, "sleep", rest)
    assert start(state_dir) == 79 and len(looks) >= 3


def test_one_that_stands_still_before_it_is_ready_is_given_up(state_dir: Path, program: Program) -> None:
    def late() -> None:
        raise subprocess.TimeoutExpired("guard", 1)

    program.then = late
    with pytest.raises(TimedOut) as caught:
        start(state_dir, timeout_s=0.0)
    assert "guard.log" in caught.value.remedy and program.was_killed


def test_one_that_gets_on_is_waited_for(state_dir: Path, program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    rounds = list[int]()

    def late() -> None:
        rounds.append(1)
        if len(rounds) < 5:
            raise subprocess.TimeoutExpired("guard", 1)

    program.then = late
    ticks = itertools.count()
    monkeypatch.setattr(patience, "done_by", lambda _pid: (next(ticks),))
    monkeypatch.setattr(patience, "MOST", 10**9)
    assert start(state_dir, timeout_s=1e-6) == 4242 and len(rounds) == 5


@pytest.mark.parametrize("instance", ["", "0BADC0DE", "../../etc", "0badc0de0"])
def test_the_real_one_refuses_an_instance_that_is_none(state_dir: Path, instance: str) -> None:
    with pytest.raises(Unavailable, match="8 hexadecimal characters"):
        start_guard(state_dir / "state", state_dir / "run", instance)
    assert not (state_dir / "state").exists()
