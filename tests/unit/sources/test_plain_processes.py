"""Processes of known programs: one row each, wrappers and workers folded in."""

from __future__ import annotations

from pathlib import Path

import pytest

from console.domain.agent import ProcessIdentity
from console.sources.kinds import KINDS, PROGRAMS
from console.sources.plain_processes import ProcessSource
from console.sources.processes import ProcessTable, ticks_of_boot
from console.sources.programs import Programs
from tests.fakes.proc import FakeProc

GEMINI = ("node", "/usr/lib/node_modules/@google/gemini-cli/bundle/gemini.js")
SCRIPT = ("node", "/usr/lib/node_modules/@openai/codex/bin/codex.js")


@pytest.fixture
def proc(tmp_path: Path) -> FakeProc:
    return FakeProc(tmp_path / "proc")


def source(proc: FakeProc, root: Path | None = None, **more: bool) -> ProcessSource:
    return ProcessSource(Programs(PROGRAMS, ProcessTable(proc.root)), KINDS, root, **more)


def add(proc: FakeProc, pid: int, parent: int = 1, **more: object) -> None:
    folder = proc.add(pid, **more)  # type: ignore[arg-type]
    with (folder / "status").open("a") as status:
        status.write(f"PPid:\t{parent}\n")


def test_a_wrapper_and_what_it_wraps_are_one_and_a_worker_is_its_parent(proc: FakeProc) -> None:
    add(proc, 10, exe="/usr/bin/node", argv=SCRIPT)
    add(proc, 11, 10, exe="/opt/codex/codex", argv=("codex",))
    add(proc, 12, 11, exe="/opt/codex/codex", argv=("codex",))
    add(proc, 13, exe="/usr/bin/cursor-agent", argv=("cursor-agent",))
    add(proc, 14, exe="/usr/bin/node", argv=GEMINI)  # it starts itself again: the one above stays
    add(proc, 15, 14, exe="/usr/bin/node", argv=("node", "--max-old-space-size=1", GEMINI[1]))
    seen = source(proc).look()
    assert [s.process for s in seen.sightings] == [ProcessIdentity(pid, 1000) for pid in (11, 13, 14)]
    assert [s.name for s in seen.sightings] == ["Codex", "Cursor CLI", "Gemini CLI"] and f"{len(KINDS)} known programs" in seen.reason


def test_a_background_service_is_called_so_and_an_argument_of_another_program_names_nothing(proc: FakeProc) -> None:
    add(proc, 10, exe="/opt/claude/claude", argv=("claude", "daemon", "run", "--origin", "transient"))
    add(proc, 11, exe="/opt/codex/codex", argv=("codex", "app-server"))
    add(proc, 12, exe="/opt/claude/claude", argv=("claude", "-p", "daemon", "run"))
    add(proc, 13, exe="/usr/bin/cursor-agent", argv=("cursor-agent", "daemon", "run"))
    names = sorted(one.name for one in source(proc).look().sightings)
    assert names == ["Claude Code", "Claude Code's background service", "Codex's app-server", "Cursor CLI"]


def test_a_young_one_is_left_to_the_source_that_knows_more(proc: FakeProc) -> None:
    add(proc, 10, start=ticks_of_boot())
    add(proc, 11, start=ticks_of_boot(), exe="/usr/bin/cursor-agent")
    assert [s.name for s in source(proc).look().sightings] == ["Cursor CLI"]


def test_it_keeps_to_the_folder_it_is_confined_to(proc: FakeProc, tmp_path: Path) -> None:
    add(proc, 10, exe=f"{tmp_path}/bin/claude")
    add(proc, 11)
    assert [s.process for s in source(proc, tmp_path).look().sightings] == [ProcessIdentity(10, 1000)]
    alone = source(proc, outside=False).look()
    assert alone.sightings == () and "agents of this instance alone" in alone.reason


def test_no_proc_is_said(tmp_path: Path) -> None:
    report = ProcessSource(Programs(PROGRAMS, ProcessTable(tmp_path / "nothing")), KINDS).look()
    assert not report.available and "/proc cannot be read" in report.reason and ProcessSource.can_stop and not source_folders()


def source_folders() -> list[Path]:
    return ProcessSource(Programs(PROGRAMS), KINDS).folders()
