"""Records in the homes of agents of ours: found among their own processes, by the number those have for themselves."""

from __future__ import annotations

import json
import os
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from console.domain.agent import ProcessIdentity
from console.sources.change_tracker import Freshness
from console.sources.claude_code import records as claude_records
from console.sources.claude_code.records import Records, Session
from console.sources.home_dirs import OwnHome
from console.sources.interface import Confinement
from console.sources.kinds import PROGRAMS
from console.sources.processes import ProcessTable
from console.sources.programs import Programs
from tests.fakes.proc import FakeProc

ME = os.geteuid()


class Box:
    """A workspace that is a home, and an agent ``a-1`` whose claude is number 5 in its own namespace and 900 here."""

    def __init__(self, tmp_path: Path) -> None:
        self.home = tmp_path / "ws"
        self.folder = self.home / ".claude" / "sessions"
        self.folder.mkdir(parents=True)
        self.proc = FakeProc(tmp_path / "proc")
        self.start(900, 5)

    def start(self, pid: int, inner: int, agent: str = "a-1", **changes: Any) -> None:
        made = self.proc.add(pid, **{"start": 77, "uid": ME, "cgroup": f"0::/agents/{agent}", **changes})
        with (made / "status").open("a") as status:
            status.write(f"PPid:\t1\nNSpid:\t{pid}\t{inner}\n")

    def record(self, number: int = 5, **changes: Any) -> None:
        body = {"pid": number, "procStart": "77", "sessionId": "s", **changes}
        (self.folder / f"{number}.json").write_text(json.dumps(body))

    def look(self, *agents: str, hidden: bool = False) -> list[Session | str]:
        programs = Programs(PROGRAMS, ProcessTable(self.proc.root), whose=lambda _pid, cgroup: cgroup.strip().rpartition("/")[2])
        records = Records(programs.table, Confinement(), programs)
        records.begin()
        return list(records.of(self.folder, OwnHome(self.home, agents or ("a-1",), hidden)))


@pytest.fixture
def box(tmp_path: Path) -> Box:
    return Box(tmp_path)


def test_its_number_is_of_its_own_namespace_and_leads_to_the_process_here(box: Box) -> None:
    box.record()
    (seen,) = box.look()
    assert isinstance(seen, Session)
    assert (seen.process, seen.agent_id) == (ProcessIdentity(900, 77), "a-1")


@pytest.mark.parametrize(
    ("changes", "agents"),
    [({"procStart": "78"}, ("a-1",)), ({"pid": 6}, ("a-1",)), ({}, ("a-2",)), ({"procStart": ...}, ("a-1",))],
)
def test_nothing_else_is_its_process(box: Box, changes: dict[str, Any], agents: tuple[str, ...]) -> None:
    box.record(**{k: v for k, v in changes.items() if v is not ...})
    if changes.get("procStart") is ...:
        (box.folder / "5.json").write_text(json.dumps({"pid": 5, "sessionId": "s"}))
    (stale,) = box.look(*agents)
    assert isinstance(stale, str)


def test_two_agents_of_one_session_are_told_apart_by_the_kernel_alone(box: Box) -> None:
    box.start(901, 6, "a-2")
    box.record()
    box.record(6)
    assert {s.agent_id: s.process.pid for s in box.look("a-1", "a-2") if isinstance(s, Session) and s.process} == {"a-1": 900, "a-2": 901}


def test_where_the_kernel_is_another_the_home_says_whose_it_is_when_one_alone_lives_there(box: Box) -> None:
    box.record(9)
    (seen,) = box.look("a-1", hidden=True)
    assert isinstance(seen, Session) and (seen.process, seen.agent_id) == (None, "a-1") and "kernel of its own" in seen.doubt
    assert isinstance(box.look("a-1", "a-2", hidden=True)[0], str)


def test_a_record_that_did_not_change_is_not_read_again(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    programs = Programs(PROGRAMS, ProcessTable(box.proc.root))
    records = Records(programs.table, Confinement(pids=lambda _: True), programs)
    box.record()
    records.begin()
    list(records.of(box.folder))
    records.begin()
    monkeypatch.setattr(claude_records, "read_foreign", lambda *_: pytest.fail("it was read again"))
    list(records.of(box.folder))


def test_where_a_watch_tells_no_record_is_looked_at_until_it_does(box: Box) -> None:
    programs = Programs(PROGRAMS, ProcessTable(box.proc.root), whose=lambda _pid, _cgroup: "")
    fresh, outside = Freshness(), box.home / "sessions"
    outside.mkdir()
    fresh.begins("w", [str(outside)])
    records = Records(programs.table, Confinement(), programs, fresh)

    def looked() -> list[object]:
        records.begin()
        return [one.record["sessionId"] if isinstance(one, Session) else one for one in records.of(outside)]

    def write(session: str) -> None:
        (outside / "900.json").write_text(json.dumps({"pid": 900, "procStart": "77", "sessionId": session}))

    write("one")
    assert looked() == ["one"] == looked()
    write("a second one")
    assert looked() == ["one"]
    fresh.changed([str(outside / "900.json")])
    assert looked() == ["a second one"]
    (outside / "900.json").unlink()
    fresh.ends("w")
    assert looked() == []


def test_a_folder_that_is_watched_is_judged_once_until_a_record_or_a_process_is_another(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    programs = Programs(PROGRAMS, ProcessTable(box.proc.root), whose=lambda _pid, _cgroup: "")
    fresh, outside = Freshness(), box.home / "sessions"
    outside.mkdir()
    fresh.begins("w", [str(outside)])
    records = Records(programs.table, Confinement(), programs, fresh)
    (outside / "900.json").write_text(json.dumps({"pid": 900, "procStart": "77", "sessionId": "one"}))

    def looked() -> list[Session | str]:
        records.begin()
        return records.of(outside)

    first = looked()
    assert looked() is first
    fresh.changed([str(outside / "901.json")])
    second = looked()
    assert second is not first and second == first
    box.proc.add(901, start=5, uid=ME)
    assert looked() is not second, "another process runs"
    shutil.rmtree(box.proc.root / "900")
    assert looked() == ["process 900 is gone"]
    third = looked()
    assert looked() is third
    far = time.monotonic() + claude_records.TOLD_S + 1
    monkeypatch.setattr(time, "monotonic", lambda: far)
    assert looked() is not third
