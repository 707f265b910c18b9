"""Programs of the plan: no shell, no environment, values through standard input alone, ended in time with all they started."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from console.credentials.plan import Command
from console.credentials.plugs.command import OUTPUT_LIMIT, run_command
from console.domain.errors import ConsoleError, TimedOut
from tests.fakes.instance import until


def script(folder: Path, text: str) -> list[str]:
    path = folder / "program"
    path.write_text(f"#!{sys.executable} -IS\nimport json, os, sys, time\n{text}\n")
    path.chmod(0o700)
    return [str(path)]


def has_ended(pid_file: Path) -> bool:
    try:
        return Path(f"/proc/{pid_file.read_text()}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except FileNotFoundError:
        return True


def test_what_a_program_is_given_and_what_it_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JWT_SECRET", "planted-secret")
    argv = script(
        tmp_path,
        "given = sys.stdin.read()\n"
        "fds = sorted(int(n) for n in os.listdir('/proc/self/fd') if os.path.exists(f'/proc/self/fd/{n}'))\n"
        "print(json.dumps([given, dict(os.environ), sys.argv[1:], os.getcwd(), fds, os.getsid(0) == os.getpid()]))",
    )
    ran = run_command(Command(argv=[*argv, "a b", "$HOME;ls"]), b"the-value\n", "hook")
    given, env, args, cwd, fds, own_session = json.loads(ran.out)
    assert (ran.code, given, args, cwd, own_session) == (0, "the-value\n", ["a b", "$HOME;ls"], "/", True)
    env.pop("LC_CTYPE", None)
    assert env == {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8", "WATCHFLOOR_ROTATION_ITEM": "hook"}
    assert [fd for fd in fds if fd > 2] in ([], [3])  # 3: the listing itself


def test_codes_and_words_come_back(tmp_path: Path) -> None:
    ran = run_command(Command(argv=script(tmp_path, "print('why', file=sys.stderr); sys.exit(7)")), b"", "x")
    assert (ran.code, ran.out, ran.err) == (7, b"", b"why\n")


def test_one_that_reads_nothing_or_a_lot_is_no_trouble(tmp_path: Path) -> None:
    assert run_command(Command(argv=["/bin/true"]), b"x" * 500_000, "x").code == 0
    argv = script(tmp_path, "time.sleep(0.2); print(len(sys.stdin.buffer.read()))")
    assert run_command(Command(argv=argv), b"x" * 500_000, "x").out == b"500000\n"


def test_one_that_hangs_is_ended_with_all_it_started(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    (tmp_path / "program").write_text(f"#!/bin/sh\nsleep 60 &\necho $! > {pid}.draft; mv {pid}.draft {pid}; wait\n")  # there in a moment
    (tmp_path / "program").chmod(0o700)
    for bound in (0.8, 20.0):  # longer, where a busy machine has not even started it
        with pytest.raises(TimedOut, match=f"longer than {bound:g} s"):
            run_command(Command(argv=[str(tmp_path / "program")], timeout_s=bound), b"", "x")
        if pid.exists():
            break
    assert pid.exists()
    until(lambda: has_ended(pid), words="the child of the one that hangs is ended")


def test_what_it_leaves_behind_is_ended_and_not_waited_for(tmp_path: Path) -> None:
    argv = script(
        tmp_path, f"pid = os.fork()\nif not pid: time.sleep(60)\nopen({str(tmp_path / 'pid')!r}, 'w').write(str(pid)); print('done')"
    )
    assert run_command(Command(argv=argv), b"", "x").out == b"done\n"
    until(lambda: has_ended(tmp_path / "pid"), words="what it left is ended")


def test_one_that_never_stops_talking_is_ended(tmp_path: Path) -> None:
    argv = script(tmp_path, "while True: sys.stdout.write('x' * 65536)")
    with pytest.raises(ConsoleError, match=f"more than {OUTPUT_LIMIT} bytes"):
        run_command(Command(argv=argv), b"", "x")


def test_what_cannot_be_run_is_said(tmp_path: Path) -> None:
    path = tmp_path / "odd"
    path.write_text("no program at all")
    path.chmod(0o700)
    with pytest.raises(ConsoleError, match="cannot be started"):
        run_command(Command(argv=[str(path)]), b"", "x")
    path.chmod(0o777)
    with pytest.raises(ConsoleError, match="changed by another account"):
        run_command(Command(argv=[str(path)]), b"", "x")


class Stuck:
    """Stands for a program that SIGKILL does not end: it waits in the kernel, for a disk that is gone."""

    def __init__(self, real: subprocess.Popen[bytes]) -> None:
        self.real = real

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)

    def wait(self, timeout: float | None = None) -> int:
        self.real.wait(60)  # ours is gone, of course; the caller is told otherwise
        assert timeout is not None, "waited for without end"
        raise subprocess.TimeoutExpired("x", timeout)


def test_one_that_cannot_be_ended_is_not_waited_for_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    real: Any = subprocess.Popen
    monkeypatch.setattr(subprocess, "Popen", lambda *args, **fields: Stuck(real(*args, **fields)))
    with pytest.raises(TimedOut, match="hangs in the kernel"):
        run_command(Command(argv=["/bin/true"]), b"", "x")
