"""What the kernel says of a process."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from console.domain.agent import ProcessIdentity
from console.sources.processes import ProcessTable
from tests.fakes.proc import FakeProc


def test_reads_this_very_process() -> None:
    table = ProcessTable()
    facts = table.facts(os.getpid())
    assert facts is not None
    assert facts.identity == ProcessIdentity(os.getpid(), table.start_ticks(os.getpid()) or 0)
    assert facts.uids == (os.getuid(), os.geteuid())
    assert facts.exe == os.path.realpath("/proc/self/exe")
    assert os.getpid() in set(table.pids())


def test_a_name_full_of_brackets_and_spaces_does_not_shift_the_fields(tmp_path: Path) -> None:
    FakeProc(tmp_path).add(7, start=4711, name="a) R 1 2 (3) 9")
    assert ProcessTable(tmp_path).start_ticks(7) == 4711


def test_a_zombie_and_a_missing_process_have_no_start(tmp_path: Path) -> None:
    FakeProc(tmp_path).add(7, state="Z")
    assert ProcessTable(tmp_path).start_ticks(7) is None
    assert ProcessTable(tmp_path).facts(7) is None
    assert ProcessTable(tmp_path).facts(8) is None


def test_a_process_replaced_while_we_read_has_no_facts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    FakeProc(tmp_path).add(7, start=1)
    table = ProcessTable(tmp_path)
    starts = iter([1, 2])
    monkeypatch.setattr(table, "start_ticks", lambda pid: next(starts))
    assert table.facts(7) is None


def test_open_files_cgroup_and_namespace(tmp_path: Path) -> None:
    proc = FakeProc(tmp_path / "proc")
    proc.add(7, cgroup="0::/docker/abc")
    proc.open_file(7, 3, tmp_path / "f")
    table = ProcessTable(tmp_path / "proc")
    assert [target for _, target in table.open_files(7)] == [str(tmp_path / "f")]
    assert list(table.open_files(9)) == []
    assert "abc" in table.cgroup(7)
    assert table.cgroup(9) == ""
    assert table.pid_namespace("self") == "pid:[4026531836]"
    assert table.pid_namespace(9) == ""
    assert table.mounted()
    assert not ProcessTable(tmp_path / "nothing").mounted()
