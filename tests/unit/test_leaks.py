"""The leak check sees what a test could leave behind."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import leaks
from tests.leaks import Session, Traces


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Session]:
    monkeypatch.setattr(leaks, "GRACE_S", 0.1)
    yield Session(os.environ[leaks.SESSION_VARIABLE], tmp_path)


def test_a_child_that_still_runs_is_named(session: Session) -> None:
    before = session.look(deep=False, engine=None)
    child = subprocess.Popen(["sleep", "60"])
    left = session.left_after(before, deep=False, engine=None)
    child.kill()
    child.wait()
    assert left == [f"process {child.pid}: sleep 60 "]
    assert session.left_after(before, deep=False, engine=None) == []


def test_a_child_that_nobody_waited_for_is_named(session: Session) -> None:
    before = session.look(deep=False, engine=None)
    child = subprocess.Popen(["true"])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    left = session.left_after(before, deep=False, engine=None)
    child.wait()
    assert left == [f"zombie {child.pid}"]


def test_a_detached_process_is_found_by_its_environment(session: Session) -> None:
    before = session.look(deep=True, engine=None)
    shell = subprocess.run(["sh", "-c", "setsid sleep 61 >/dev/null 2>&1 & echo $!"], stdout=subprocess.PIPE, text=True, check=True)
    deadline = time.monotonic() + 60
    while Path(f"/proc/{int(shell.stdout)}/comm").read_text() != "sleep\n":  # in the middle of an exec a process has no environment to read
        assert time.monotonic() < deadline
        time.sleep(0.01)
    left = session.left_after(before, deep=True, engine=None)
    os.kill(int(shell.stdout), 9)
    assert len(left) == 1 and "sleep 61" in left[0]


def test_threads_and_files_are_named(session: Session) -> None:
    before = session.look(deep=False, engine=None)
    done = threading.Event()
    thread = threading.Thread(target=done.wait, name="forgotten")
    thread.start()
    (session.folder / "left.txt").touch()
    left = session.left_after(before, deep=False, engine=None)
    done.set()
    thread.join()
    assert left == ["thread forgotten", f"file {session.folder / 'left.txt'}"]


def test_what_was_there_before_does_not_count() -> None:
    before = Traces(machine={"cgroup a"})
    assert Traces(machine={"cgroup a", "cgroup b"}).beyond(before) == ["cgroup b"]
