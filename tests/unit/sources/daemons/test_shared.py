"""Shared programs are named with the one job in them; what a job can write about itself never becomes a command unchecked."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from console.sources.daemons import shared
from console.sources.daemons.interface import SharedJob
from console.sources.daemons.processes import Processes, argv
from console.sources.daemons.shared import shared_jobs
from tests.fakes.instance import until

TMUX = shutil.which("tmux")


def jobs_of(pid: int) -> list[SharedJob]:
    processes = Processes()
    process = processes.identity(pid)
    return shared_jobs(processes.line(process)) if process is not None else []


def pid_of(mark: str) -> int:
    return next((pid for pid in Processes().rows if argv(pid) == ["sleep", mark]), 0)


@pytest.mark.skipif(TMUX is None, reason="tmux is not installed")
@pytest.mark.parametrize("told", ["", "TMUX=/x;reboot,1,0 TMUX_PANE=%0 ", "TMUX_PANE=%1;reboot "])
def test_a_pane_of_tmux_is_named_and_its_command_ends_it_alone(tmp_path: Path, told: str) -> None:
    assert TMUX is not None
    door, env = str(tmp_path / "tmux"), {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "TERM": "dumb"}
    tmux = [TMUX, "-S", door, "-f", "/dev/null"]
    subprocess.run(
        [*tmux, "new-session", "-d", f"{told and 'exec env ' + told.replace(';', chr(92) + ';')}sh -c 'sleep 300.{os.getpid()}; :'"],
        env=env,
        check=True,
    )
    try:
        subprocess.run([*tmux, "new-window", "-d", f"sleep 301.{os.getpid()}"], env=env, check=True)
        pid = until(lambda: pid_of(f"300.{os.getpid()}"))
        found = next(job for job in jobs_of(pid) if job.program == "tmux")
        if told:
            assert (found.job, found.command) == ("", ())
            return
        assert found.command == ("tmux", "-S", door, "kill-pane", "-t", "%0") and found.job == "pane %0"
        other = until(lambda: pid_of(f"301.{os.getpid()}"))
        subprocess.run([TMUX, *found.command[1:]], env=env, check=True)
        until(lambda: not Processes().identity(pid))
        assert Processes().identity(other) is not None
    finally:
        subprocess.run([*tmux, "kill-server"], env=env, check=False)


def test_nothing_is_named_where_nothing_shared_is_above() -> None:
    assert not [job for job in jobs_of(os.getpid()) if job.program in ("tmux", "screen", "pm2", "cron", "at")]


@pytest.mark.parametrize(
    ("cgroup", "command"),
    [
        ("0::/system.slice/watchfloor-guard.service/watchfloor-01234567/agents/a-1-0123abcd", ()),
        (
            "0::/system.slice/watchfloor-guard.service/watchfloor-01234567/agents/a-1-0123abcd/own.service",
            ("systemctl", "stop", "own.service"),
        ),
        ("0::/system.slice/backup.service", ("systemctl", "stop", "backup.service")),
        (
            "0::/user.slice/user-1.slice/user@1.service/app.slice/watchfloor-guard.service/watchfloor-01234567/agents/x",
            ("systemctl", "--user", "stop", "watchfloor-guard.service"),
        ),
    ],
)
def test_the_guards_own_unit_is_never_named_as_what_to_stop(cgroup: str, command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    process = Processes().identity(os.getpid())
    assert process is not None
    monkeypatch.setattr("console.sources.daemons.shared.p.read", lambda _pid, _name: cgroup.encode())
    found = shared._unit(process)
    assert (found.command if found is not None else ()) == command
