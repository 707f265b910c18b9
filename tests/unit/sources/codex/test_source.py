"""Codex threads: the executable and the open rollout make them, the rollout only names them."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from console.domain.agent import ProcessIdentity, Sighting
from console.sources.codex.source import CodexSource
from console.sources.interface import GONE
from console.sources.processes import ProcessTable
from console.sources.spend.of_session import Spent
from tests.fakes.proc import FakeProc

MAIN = "01a1ffcf-dfdd-77a3-ace2-eaa2ca9f7954"
CHILD = "01a1ffcf-dfdd-77a3-ace2-eaa2ca9f7955"


class Host:
    """A home with rollouts and a /proc with one codex process that holds them."""

    def __init__(self, tmp_path: Path) -> None:
        self.home = tmp_path / "home"
        self.proc = FakeProc(tmp_path / "proc")

    def rollout(self, thread: str = MAIN, payload: object = None, line: str | None = None) -> Path:
        folder = self.home / ".codex" / "sessions" / "2026" / "11" / "21"
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / f"rollout-2026-11-21T20-32-55-{thread}.jsonl"
        meta = {
            "id": thread,
            "cwd": "/home/dev/proj",
            "cli_version": "0.169.0",
            "source": "exec",
            "base_instructions": {"text": "x" * 27_000},
        }
        text = line if line is not None else json.dumps({"type": "session_meta", "payload": meta if payload is None else payload})
        file.write_text(text + "\n" + '{"type":"turn_context"}\n')
        return file

    def look(self, **confinement: Any) -> list[Sighting]:
        report = CodexSource(table=ProcessTable(self.proc.root), **confinement).look()
        assert report.available
        return list(report.sightings)


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


def codex(host: Host, pid: int = 50, **changes: Any) -> None:
    host.proc.add(pid, **{"exe": "/usr/lib/node_modules/codex/bin/codex", "argv": ("codex", "exec"), "start": 77, **changes})


def test_a_codex_process_with_an_open_rollout_is_a_session(host: Host) -> None:
    codex(host)
    host.proc.open_file(50, 9, host.rollout())
    (seen,) = host.look()
    assert seen.process == ProcessIdentity(50, 77)
    assert (seen.session, seen.cwd, seen.name, seen.parent_key) == (MAIN, "/home/dev/proj", "codex 0.169.0", None)


def test_without_an_open_rollout_or_the_right_executable_there_is_none(host: Host) -> None:
    codex(host)
    codex(host, 51, exe="/usr/bin/tail", argv=("codex",))
    host.proc.open_file(51, 3, host.rollout())
    assert host.look() == []


def test_a_sub_agents_thread_hangs_below_its_parent_in_the_same_process_only(host: Host) -> None:
    codex(host)
    host.proc.open_file(50, 9, host.rollout())
    source = {"subagent": {"thread_spawn": {"parent_thread_id": MAIN, "depth": 1}}}
    child = host.rollout(CHILD, {"source": source, "agent_nickname": "scout", "cwd": "/x"})
    host.proc.open_file(50, 10, child)
    codex(host, 60, start=78)
    host.proc.open_file(60, 4, child)
    by_process = {(s.process.pid if s.process else 0, s.session): s for s in host.look()}
    assert by_process[50, CHILD].parent_key == by_process[50, MAIN].key
    assert by_process[50, CHILD].name == "scout"
    assert by_process[60, CHILD].parent_key is None


@pytest.mark.parametrize(
    "line", ["", "{", "[]", "null", '{"type":"session_meta","payload":7}', "[" * 100_000, '{"type":"session_meta"}', "1" * 9000]
)
def test_a_rollout_that_says_nothing_useful_still_shows_the_process(host: Host, line: str) -> None:
    codex(host)
    host.proc.open_file(50, 9, host.rollout(line=line))
    (seen,) = host.look()
    assert seen.process == ProcessIdentity(50, 77)
    assert seen.cwd == "/home/dev/proj"  # the process's own, from the kernel


def test_confined_to_a_root_and_to_our_own_processes(host: Host, tmp_path: Path) -> None:
    codex(host)
    host.proc.open_file(50, 9, host.rollout())
    assert len(host.look(root=host.home)) == 1
    assert host.look(root=tmp_path / "elsewhere") == []
    assert host.look(pids=lambda pid: False) == []


def test_a_rollout_where_nothing_reads_it_has_unknown_spend(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    """A Codex with a CODEX_HOME of its own: its session is seen, and none of its answers."""
    codex(host)
    rollout = host.rollout()
    host.proc.open_file(50, 9, rollout)
    (read,) = host.look(root=host.home)
    assert read.unread == ""
    moved = host.home / "work" / "codex" / "sessions" / "2026" / "11" / "21" / rollout.name
    moved.parent.mkdir(parents=True)
    rollout.rename(moved)
    (host.proc.root / "50" / "fd" / "9").unlink()
    host.proc.open_file(50, 9, moved)
    (unread,) = host.look(root=host.home)
    assert unread.usage is None and unread.unread == f"its rollout lies in {moved.parent}, which is not read"
    monkeypatch.setenv("CODEX_HOME", str(host.home / "work" / "codex"))
    assert [one.unread for one in host.look()] == [""], "the supervisor's own CODEX_HOME is read"


def test_the_first_line_is_read_once_per_thread(host: Host) -> None:
    codex(host)
    rollout = host.rollout()
    host.proc.open_file(50, 9, rollout)
    source = CodexSource(table=ProcessTable(host.proc.root))
    assert source.look().sightings[0].name == "codex 0.169.0"
    rollout.write_text("")
    assert source.look().sightings[0].name == "codex 0.169.0"


def test_without_proc_nothing_is_claimed(tmp_path: Path) -> None:
    report = CodexSource(table=ProcessTable(tmp_path / "nothing")).look()
    assert not report.available
    assert "because /proc" in report.reason


def test_a_thread_that_is_gone_is_told_of_for_a_moment_with_what_its_last_answers_cost(host: Host) -> None:
    codex(host)
    host.proc.open_file(50, 9, host.rollout())
    sums = {"": Spent(10, 1.0, 1, 0, "gpt-5.1-codex", 1.0)}
    spend: Any = SimpleNamespace(of=lambda uid, source, root: sums if root == MAIN else {}, look_soon=lambda: None)
    source = CodexSource(table=ProcessTable(host.proc.root), spend=spend)
    assert [one.status for one in source.look().sightings] == ["running"]
    (host.proc.root / "50" / "fd" / "9").unlink()
    sums[""] = Spent(20, 2.5, 2, 0, "gpt-5.1-codex", 2.0)
    (gone,) = source.look().sightings
    assert (gone.status, gone.process, gone.session, gone.usage and gone.usage.cost_usd) == (GONE, None, MAIN, 2.5)
    host.proc.open_file(50, 9, host.rollout())
    assert [one.status for one in source.look().sightings] == ["running"]
