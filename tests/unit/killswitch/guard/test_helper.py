"""What a helper inherits, and what becomes of one that hangs, dies, or says anything but one answer: the guard refuses, and goes on."""

from __future__ import annotations

import json
import os
import socket
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from console.domain.errors import Unavailable
from console.killswitch.guard import helper
from console.killswitch.guard.helper import ask
from console.killswitch.kernel import processes

HEARD = "import json, os, signal, socket, sys, time\nparent = socket.socket(fileno=0)\nparent.recv(65536)\n"
"""A program in the place of a helper, once it has its request."""
RIGHT = HEARD + "parent.sendall(b'{}\\n')\n"


@pytest.fixture
def instead(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], list[int]]:
    """Puts a program in the helper's place; gives the list of the pids that are started."""
    pids: list[int] = []
    fork = os.fork

    def noted() -> int:
        if pid := fork():
            pids.append(pid)
        return pid

    def put(code: str) -> list[int]:
        monkeypatch.setattr(helper, "command", lambda name: [sys.executable, "-I", "-S", "-c", code])
        monkeypatch.setattr(os, "fork", noted)
        return pids

    return put


def refused(limit_s: float = 60.0) -> str:
    with pytest.raises(Unavailable) as error:
        ask("unlock", {}, {}, limit_s)
    return error.value.what


def test_it_inherits_one_socket_and_nothing_else_of_the_guard(
    instead: Callable[[str], object], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("FAILPOINT", "unlatch.journalled:kill")
    monkeypatch.setenv("LD_PRELOAD", "")
    instead(
        HEARD + "seen = {'env': sorted(os.environ), 'own_session': os.getsid(0) == os.getpid()}\n"
        "ignored = {s.name for s in signal.Signals if signal.getsignal(s) is signal.SIG_IGN}\n"
        "seen['ignored'] = sorted(ignored - {'SIGPIPE', 'SIGXFSZ'})\n"  # the interpreter itself ignores these
        "links = {fd: f'/proc/self/fd/{fd}' for fd in os.listdir('/proc/self/fd')}\n"
        "seen['fds'] = {fd: os.readlink(link) for fd, link in links.items() if os.path.exists(link)}\n"
        "parent.sendall(json.dumps(seen).encode() + b'\\n')\n"
    )
    with (tmp_path / "secret").open("w") as secret, socket.socket() as listening:
        os.set_inheritable(secret.fileno(), True)  # as one that the guard itself was started with
        listening.bind(("127.0.0.1", 0))
        seen = ask("unlock", {}, {"env": list, "own_session": bool, "ignored": list, "fds": dict})
    assert set(seen["env"]) <= {"LC_ALL", "LC_CTYPE"} and seen["own_session"] and seen["ignored"] == []
    assert set(seen["fds"]) <= {"0", "1", "2"} and seen["fds"]["0"] == seen["fds"]["1"] and "socket:" in seen["fds"]["0"]


def test_no_folder_of_an_account_and_no_variable_changes_what_it_loads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for place in (tmp_path, tmp_path / "console"):
        place.mkdir(exist_ok=True)
        for name in ("json", "sitecustomize", "usercustomize", "__init__"):
            (place / f"{name}.py").write_text(f"open({str(tmp_path / 'planted')!r}, 'w')\nraise SystemExit(0)\n")
    for name in ("PYTHONPATH", "PYTHONHOME", "PYTHONUSERBASE", "HOME", "PYTHONSTARTUP"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.chdir(tmp_path)
    shape: dict[str, type] = {"state": str, "why": str, "path": str, "not_before": float, "note": dict, "refused": list}
    heard = ask("unlock", {"op": "look", "file": "", "folder": str(tmp_path), "not_before": 0, "note": _note()}, shape)
    assert heard["state"] == "not_set" and not (tmp_path / "planted").exists()


def _note() -> dict[str, object]:
    return {"sha256": "", "next_sha256": "", "path": "", "wrong": 0, "reset_generation": -1}


@pytest.mark.parametrize(
    "code",
    [
        "import time; time.sleep(600)",
        "import signal, time; [signal.signal(s, signal.SIG_IGN) for s in (15, 2, 13)]; time.sleep(600)",
        HEARD + "parent.sendall(b'{}'); time.sleep(600)",
        RIGHT + "time.sleep(600)",
        RIGHT + "parent.shutdown(2); time.sleep(600)",
    ],
    ids=["deaf", "stubborn", "half an answer", "does not end", "closed and does not end"],
)
def test_one_that_hangs_is_refused_killed_and_collected(instead: Callable[[str], list[int]], code: str) -> None:
    pids = instead(code)
    refused(1.0)
    assert [processes.start_ticks(pid) for pid in pids] == [None]


@pytest.mark.parametrize(
    "code",
    [
        HEARD,
        HEARD + "parent.sendall(b'{}')",
        HEARD + "parent.sendall(b'{}\\n{}\\n')",
        HEARD + "parent.sendall(b'[]\\n')",
        HEARD + 'parent.sendall(b"""{"more": 1}\\n""")',
        HEARD + "parent.sendall(b'yes\\n')",
        HEARD + "parent.sendall(b'\\xff\\n')",
        HEARD + "parent.sendall(b'[' * 100000 + b'\\n')",
        HEARD + "parent.sendall(b'{\"a\": \"' + b'x' * 10_000_000 + b'\"}\\n')",
        RIGHT + "sys.exit(1)",
        RIGHT + "os.kill(os.getpid(), 9)",
        "raise SystemExit(0)",
    ],
    ids=["silent", "no end", "two", "a list", "another shape", "no JSON", "no text", "deep", "too much", "a fault", "killed", "never read"],
)
def test_whatever_is_not_one_answer_is_none(instead: Callable[[str], list[int]], code: str) -> None:
    pids = instead(code)
    assert "gave no answer" in refused()
    assert [processes.start_ticks(pid) for pid in pids] == [None]


def test_what_it_leaves_running_answers_for_nobody(instead: Callable[[str], list[int]]) -> None:
    """A child that keeps the socket open could still say something: there is no answer as long as it may."""
    instead(RIGHT + "sys.stdout.flush()\nif os.fork() == 0:\n    signal.alarm(3)\n    time.sleep(600)\n")
    assert "in time" in refused(1.0)


def test_where_no_process_can_be_started_it_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> int:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(os, "fork", full)
    assert "temporarily unavailable" in refused()


def test_a_program_that_cannot_be_loaded_is_refused_and_holds_up_no_thread(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An executable on a disk that hangs: other threads of the guard, and so kills, go on meanwhile."""
    monkeypatch.setattr(helper, "command", lambda name: [str(tmp_path / "gone")])
    assert "gave no answer" in refused()
    slow, seen, over = os.execve, list[float](), threading.Event()

    def loads(*words: Any) -> None:
        time.sleep(1.0)
        slow(*words)

    def beats() -> None:
        while not over.wait(0.02):
            seen.append(time.monotonic())

    monkeypatch.setattr(helper, "command", lambda name: [sys.executable, "-I", "-S", "-c", RIGHT])
    monkeypatch.setattr(os, "execve", loads)
    other = threading.Thread(target=beats)
    other.start()
    ask("unlock", {}, {}, 60.0)
    over.set()
    other.join()
    assert len(seen) > 10


def test_a_request_is_in_no_argument_and_no_variable(instead: Callable[[str], object]) -> None:
    instead(
        "import json, os, socket\nparent = socket.socket(fileno=0)\nasked = parent.recv(65536)\n"
        "seen = [open('/proc/self/cmdline').read() + str(os.environ), json.loads(asked)]\n"
        "parent.sendall(json.dumps({'seen': seen}).encode() + b'\\n')\n"
    )
    shown, asked = ask("unlock", {"given": "correct horse"}, {"seen": list})["seen"]
    assert "correct" not in shown and asked == {"given": "correct horse"}
    assert json.dumps(helper.command("unlock")).count("-I") == 1


def test_several_requests_go_to_one_helper_and_one_that_is_left_ends(instead: Callable[[str], list[int]]) -> None:
    pids = instead(
        "import json, socket\nparent = socket.socket(fileno=0)\nfor n in range(9):\n"
        "    if not parent.recv(65536):\n        break\n    parent.sendall(json.dumps({'n': n}).encode() + b'\\n')\n"
    )
    with helper.Helper("unlock") as it:
        assert [it.ask({}, {"n": int})["n"] for _ in range(3)] == [0, 1, 2]
        it.end()
    with pytest.raises(RuntimeError), helper.Helper("unlock") as it:
        it.ask({}, {"n": int})
        raise RuntimeError
    assert len(pids) == 2 and [processes.start_ticks(pid) for pid in pids] == [None, None]
