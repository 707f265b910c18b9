"""The kernel's own handle: an end is told, even of one that nobody waits for; another of its number is never taken for it."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from console.domain.agent import ProcessIdentity
from console.sources.process_ends import Ends
from console.sources.processes import ProcessTable
from tests.fakes.proc import FakeProc


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    made = subprocess.Popen([shutil.which("sleep") or "/usr/bin/sleep", "600"])
    yield made
    made.kill()
    made.wait()


def who(pid: int) -> ProcessIdentity:
    start = ProcessTable().start_ticks(pid)
    assert start is not None
    return ProcessIdentity(pid, start)


def test_an_end_is_told_once_though_nobody_has_waited_for_it(child: subprocess.Popen[bytes]) -> None:
    ends, process = Ends(ProcessTable()), who(child.pid)
    assert ends.hold(process) and ends.holds(process) and ends.ended() == []
    child.kill()
    told: list[ProcessIdentity] = []
    until = time.monotonic() + 60
    while not told:
        told = ends.ended()
        assert time.monotonic() < until
    assert told == [process] and ends.ended() == [] and not ends.holds(process)


def test_another_of_its_number_is_not_held_for_it(child: subprocess.Popen[bytes]) -> None:
    ends, process = Ends(ProcessTable()), who(child.pid)
    other = ProcessIdentity(process.pid, process.start_ticks + 1)
    assert not ends.hold(other) and ends.hold(process) and not ends.holds(other)
    ends.let_go(child.pid)
    assert not ends.holds(process)


def test_what_is_not_there_or_too_many_or_of_another_proc_is_looked_at_instead(child: subprocess.Popen[bytes], tmp_path: Path) -> None:
    process = who(child.pid)
    FakeProc(tmp_path / "proc").add(child.pid, start=process.start_ticks)
    assert not Ends(ProcessTable(tmp_path / "proc")).hold(process)
    assert not Ends(ProcessTable()).hold(ProcessIdentity(2**22 + 1, 1))
    few = Ends(ProcessTable())
    few._most = 0
    assert not few.hold(process)


def test_no_handle_is_left_open(child: subprocess.Popen[bytes]) -> None:
    before = len(os.listdir("/proc/self/fd"))
    ends = Ends(ProcessTable())
    assert ends.hold(who(child.pid))
    ends.close()
    ends.close()
    assert len(os.listdir("/proc/self/fd")) == before
