"""Which session a process writes: by folder, account and start, and only from files of its own account."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from console.domain.agent import Sighting
from console.sources.interface import GONE
from console.sources.kind import Lacks, Outlook
from console.sources.kinds import KINDS, PROGRAMS, TRANSCRIPTS, VENDORS
from console.sources.processes import ProcessTable, ticks_of_boot
from console.sources.programs import Programs
from console.sources.recently_ended import FAREWELL_S
from console.sources.session_files import newest
from console.sources.spend.of_session import SessionSpend
from console.sources.spend.rates import RateBook
from tests.fakes.proc import FakeProc

CLI = "/usr/lib/node_modules/@mariozechner/pi-coding-agent/dist/cli.js"


class Host:
    """A home with sessions of pi, and a /proc."""

    def __init__(self, tmp_path: Path) -> None:
        self.home = tmp_path / "home"
        self.work = self.home / "work"
        self.work.mkdir(parents=True)
        self.proc = FakeProc(tmp_path / "proc")
        self.spend = SessionSpend(tmp_path / "cost.db", TRANSCRIPTS, RateBook(VENDORS), self.home)
        programs = Programs(PROGRAMS, ProcessTable(self.proc.root))
        given = Outlook(self.home, self.spend, programs, list, True)
        self.source = next(kind.look(given) for kind in KINDS if kind.name == "pi" and not isinstance(kind.look, Lacks))

    def process(self, pid: int, ago_s: float, cwd: Path | None = None) -> None:
        start = ticks_of_boot() - int(ago_s * 100)
        self.proc.add(pid, exe="/usr/bin/node", argv=("node", CLI), start=start, cwd=str(cwd or self.work), uid=os.geteuid())

    def session(self, name: str, ago_s: float, output: int = 0) -> Path:
        began = time.time() - ago_s
        stamp = time.strftime("%Y-%m-%dT%H-%M-%S", time.gmtime(began)) + "-000Z"
        folder = self.home / ".pi" / "agent" / "sessions" / f"--{str(self.work).lstrip('/').replace('/', '-')}--"
        folder.mkdir(parents=True, exist_ok=True)
        made = folder / f"{stamp}_{name}.jsonl"
        usage = f'"usage":{{"input":10,"output":{output},"cost":{{"total":0.25}}}}'
        message = f'"message":{{"role":"assistant","provider":"openai","model":"gpt-5.1",{usage}}}'
        made.write_text(f'{{"type":"message","id":"{name}","timestamp":"2026-11-24T03:58:00Z",{message}}}\n')
        return made

    def look(self) -> list[Sighting]:
        return list(self.source.look().sightings)


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Host]:
    monkeypatch.setattr("console.sources.session_files.LOOK_S", 0.0)
    monkeypatch.setattr("console.sources.programs.FRESH_S", 0.0)
    made = Host(tmp_path)
    yield made
    made.spend.end()
    if made.spend._thread is not None:
        made.spend._thread.join(60)


def test_a_hook_is_named_where_the_program_has_one(host: Host) -> None:
    given = Outlook(host.home, host.spend, Programs(PROGRAMS, ProcessTable(host.proc.root)), list, True)
    sees = {kind.name: kind.look(given).can_see for kind in KINDS if not isinstance(kind.look, Lacks)}
    assert sees["qwen"].endswith("Not a call before it is made, unless its hook is installed.")
    assert sees["pi"].endswith("Not a call before it is made.") and sees["aider"].endswith("Not a call before it is made.")


def test_a_process_is_one_row_with_what_its_session_used(host: Host) -> None:
    host.process(10, ago_s=60)
    (row,) = host.look()
    assert (row.source, row.name, row.session) == ("pi", "pi", "") and row.unread and "not known yet" in row.detail
    host.session("one", ago_s=50)
    end = time.monotonic() + 60
    while (row := host.look()[0]).usage is None:
        assert time.monotonic() < end
        time.sleep(0.05)
    assert row.session == "one" and not row.unread and row.process is not None and row.process.pid == 10
    assert row.usage is not None and row.usage.cost_usd == 0.25 and row.model == "openai/gpt-5.1"
    assert host.source.folders() == [host.session("two", ago_s=40).parent]


def test_two_in_one_folder_have_each_their_own_and_an_older_one_is_nobodys(host: Host) -> None:
    host.session("before", ago_s=500)
    host.process(10, ago_s=200)
    host.process(11, ago_s=100)
    host.session("first", ago_s=190)
    host.session("second", ago_s=90)
    assert {row.process.pid: row.session for row in host.look() if row.process} == {10: "first", 11: "second"}


def test_one_that_was_resumed_is_its_process_that_is_alone_there(host: Host) -> None:
    resumed = host.session("before", ago_s=500)
    host.process(10, ago_s=100)
    assert [row.session for row in host.look()] == ["before"]
    os.utime(resumed, (time.time() - 400,) * 2)  # nothing was written since the process began
    assert [row.session for row in host.look()] == [""]


def test_files_of_another_account_and_links_are_nobodys(host: Host) -> None:
    made = host.session("theirs", ago_s=50)
    assert [path for path, _ in newest(made.parent, os.geteuid(), lambda _name: True)] == [made]
    assert newest(made.parent, os.geteuid() + 1, lambda _name: True) == []
    made.with_name("x_link.jsonl").symlink_to(made)
    assert len(newest(made.parent, os.geteuid(), lambda _name: True)) == 1 and newest(made / "no folder", 0, lambda _name: True) == []


def test_who_ends_is_told_of_for_a_moment_longer_without_a_process(host: Host) -> None:
    host.process(10, ago_s=60)
    host.session("one", ago_s=50)
    host.look()
    shutil.rmtree(host.proc.root / "10")
    end = time.monotonic() + 30
    while (rows := host.look()) and rows[0].process is not None:
        assert time.monotonic() < end
    assert [(row.session, row.status, row.process) for row in rows] == [("one", GONE, None)] and FAREWELL_S > 1


def test_one_that_ended_before_its_session_was_found_is_told_of_with_it_and_never_with_a_later_ones(host: Host) -> None:
    host.process(10, ago_s=5)
    assert [row.session for row in host.look()] == [""]
    shutil.rmtree(host.proc.root / "10")
    end = time.monotonic() + 30
    while not any(row.status == GONE for row in host.look()):
        assert time.monotonic() < end
    host.session("later", ago_s=-60)
    assert [row.session for row in host.look() if row.status == GONE] == [""], "it began after that one had ended"
    host.session("short", ago_s=4)
    (gone,) = [row for row in host.look() if row.status == GONE]
    assert (gone.session, gone.unread) == ("short", "")
    while (used := next(row for row in host.look() if row.status == GONE).usage) is None:
        assert time.monotonic() < end
    assert used.cost_usd == 0.25


def test_an_account_without_an_entry_has_its_sessions_in_the_home_that_it_was_told(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(host.home))
    monkeypatch.setattr("console.sources.session_files._home_of", lambda _uid: None)
    given = Outlook(None, host.spend, Programs(PROGRAMS, ProcessTable(host.proc.root)), list, True)
    source = next(kind.look(given) for kind in KINDS if kind.name == "pi" and not isinstance(kind.look, Lacks))
    host.process(10, ago_s=60)
    host.session("one", ago_s=50)
    assert [row.session for row in source.look().sightings] == ["one"]
