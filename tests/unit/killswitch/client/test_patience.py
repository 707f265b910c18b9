"""Whoever gets on is waited for, whoever stands still is not."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from console.killswitch.client import patience
from console.killswitch.client.patience import Patience, done_by, lock_holder

WORKS_BELOW = """import subprocess, sys
below = subprocess.Popen([sys.executable, "-S", "-c", "while True: pass"])
print(below.pid, flush=True)
below.wait()"""


@pytest.fixture
def worker() -> Iterator[int]:
    """It waits; a process below it works."""
    made = subprocess.Popen([sys.executable, "-S", "-c", WORKS_BELOW], stdout=subprocess.PIPE)
    assert made.stdout is not None
    below = int(made.stdout.readline())
    yield made.pid
    os.kill(below, 9)
    made.wait()
    made.stdout.close()


@pytest.fixture
def sleeper() -> Iterator[int]:
    made = subprocess.Popen(["sleep", "600"])
    yield made.pid
    made.kill()
    made.wait()


def lasted(one: Patience, at_most: float) -> float:
    while not one.is_over() and one.waited_s < at_most:
        time.sleep(0.01)
    return one.waited_s


def test_one_that_stands_still_is_given_up_after_that_long(sleeper: int) -> None:
    until_it_sleeps = done_by(sleeper)
    while (now := done_by(sleeper)) != until_it_sleeps:
        until_it_sleeps = now
    assert 0.2 <= lasted(Patience(sleeper, 0.2), 60.0) < 4.0


def test_one_that_works_or_has_somebody_work_for_it_is_waited_for_up_to_a_bound(worker: int, monkeypatch: pytest.MonkeyPatch) -> None:
    one, before = Patience(worker, 30.0), done_by(worker)
    assert before[0] == 2
    one._moved -= 60.0
    while done_by(worker) == before:
        time.sleep(0.01)
    assert not one.is_over(), "it did something since"
    monkeypatch.setattr(patience, "MOST", 0)
    assert one.is_over()


@pytest.mark.parametrize("pid", [None, 2**22 + 1])
def test_of_nobody_nothing_is_seen(pid: int | None) -> None:
    assert Patience(pid, 0.0).is_over() and not Patience(pid, 60.0).is_over()


def test_the_kernel_says_who_holds_a_lock(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    assert lock_holder(lock) is None
    with lock.open("w") as held:
        assert lock_holder(lock) is None
        fcntl.flock(held, fcntl.LOCK_EX)
        assert lock_holder(lock) == os.getpid()
    assert lock_holder(lock) is None
