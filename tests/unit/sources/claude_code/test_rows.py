"""Rows of sessions: made anew where something is new, and nowhere else; no watch is believed for long."""

from __future__ import annotations

import json
import os
import time
from dataclasses import replace
from pathlib import Path

import pytest

from console.domain.agent import ProcessIdentity, Sighting
from console.sources import recently_ended
from console.sources.claude_code import notes as claude_notes
from console.sources.claude_code.notes import Notes
from console.sources.claude_code.rows import Proven, Rows
from console.sources.interface import GONE
from console.sources.kinds import TRANSCRIPTS, VENDORS
from console.sources.spend.of_session import SessionSpend, Spent
from console.sources.spend.rates import RateBook

ME = os.geteuid()
SPENT = Spent(100, 0.5, 1, 0, "claude-sonnet-4-5", 1.0)


class Fleet:
    """A home with two sessions in one watched project, of which nobody reads any transcript."""

    def __init__(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.projects = tmp_path / ".claude" / "projects"
        self.project = self.projects / "-p"
        self.project.mkdir(parents=True)
        self.spend = SessionSpend(tmp_path / "cost.db", TRANSCRIPTS, RateBook(VENDORS), tmp_path)
        monkeypatch.setattr(self.spend, "_start", lambda: None)
        self.spend.fresh.begins("w", [str(self.project)])
        self.sums: dict[str, dict[str, Spent]] = {"s1": {"": SPENT}, "s2": {}}
        monkeypatch.setattr(self.spend, "of_all", lambda keys: [self.sums[session] for _, _, session in keys])
        self.asked: list[str] = []
        real = Notes.of

        def counted(notes: Notes, projects: Path, cwd: str, session: str) -> claude_notes.Found:
            self.asked.append(session)
            return real(notes, projects, cwd, session)

        monkeypatch.setattr(Notes, "of", counted)
        self.rows = Rows("claude_code", self.spend)
        self.proven = {name: self.session(name) for name in ("s1", "s2")}

    def session(self, name: str) -> Proven:
        seen = Sighting("claude_code", f"k-{name}", name, ProcessIdentity(int(name[1:]), 5), name, "/p", 0.0)
        return Proven(seen, ME, self.projects)

    def look(self) -> list[str]:
        self.asked = []
        self.shown, self.folders = self.rows.of(self.proven)
        return sorted(set(self.asked))

    def steady(self) -> list[Sighting]:
        for _ in range(3):  # a note's folder is believed once two looks found it the same
            self.look()
        assert self.look() == []
        return self.shown

    def steady_with_notes(self) -> None:
        for _ in range(3):
            self.look()

    def note(self, session: str, name: str, **more: object) -> None:
        folder = self.project / session / "subagents"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"agent-{name}.meta.json").write_text(json.dumps({"description": name} | more))


@pytest.fixture
def fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fleet:
    return Fleet(tmp_path, monkeypatch)


def test_where_nothing_is_new_the_very_same_rows_are_said_and_nobody_is_asked(fleet: Fleet) -> None:
    first = fleet.steady()
    assert [one.session for one in first] == ["s1", "s2"] and first[0].usage is not None and first[0].usage.cost_usd == 0.5
    fleet.look()
    assert all(a is b for a, b in zip(first, fleet.shown, strict=True)) and fleet.folders is None


def test_who_spent_has_a_new_row_and_no_other(fleet: Fleet) -> None:
    first = fleet.steady()
    fleet.sums["s2"] = {"": SPENT}
    assert fleet.look() == [], "its notes are what they were"
    assert fleet.shown[0] is first[0] and fleet.shown[1].usage is not None and fleet.shown[1].usage.cost_usd == 0.5
    fleet.sums["s2"] = {"": SPENT}
    second = fleet.shown[1]
    fleet.look()
    assert fleet.shown[1] is second, "another object that says the same is no news"


def test_a_sub_agent_of_which_a_watch_told_is_there_at_the_next_look(fleet: Fleet) -> None:
    fleet.steady()
    fleet.note("s2", "a1")
    fleet.spend.fresh.changed([str(fleet.project / "s2")])
    assert fleet.look() == ["s2"]
    assert [one.part for one in fleet.shown] == ["", "", "a1"] and fleet.folders is not None
    assert fleet.project / "s2" in fleet.folders
    assert fleet.look() == ["s2"], "with sub-agents it is asked each time: they end"
    fleet.note("s2", "a1", stoppedAt=1)
    fleet.look()
    assert fleet.shown[-1].status in ("finished", "running") and fleet.shown[-1].part == "a1"


def test_a_transcript_that_grows_wakes_nobodys_notes(fleet: Fleet) -> None:
    fleet.steady()
    fleet.spend.fresh.changed([str(fleet.project / "s1.jsonl")])
    assert fleet.look() == []


def test_no_watch_is_believed_for_long_and_one_that_begins_anew_not_at_all(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    fleet.steady()
    fleet.spend.fresh.begins("w", [])
    fleet.spend.fresh.begins("w", [str(fleet.project)])
    assert fleet.look() == ["s1", "s2"], "of what came in between nobody told"
    fleet.steady()
    far = time.monotonic() + claude_notes.TOLD_S + 1
    monkeypatch.setattr(time, "monotonic", lambda: far)
    assert fleet.look() == ["s1", "s2"]


def test_where_nobody_watches_everybody_is_asked_each_time(fleet: Fleet) -> None:
    fleet.spend.fresh.ends("w")
    for _ in range(4):
        assert fleet.look() == ["s1", "s2"]


def test_who_is_gone_is_forgotten_and_who_comes_back_is_made_anew(fleet: Fleet) -> None:
    fleet.steady()
    fleet.proven = {"s1": fleet.proven["s1"]}
    fleet.look()
    assert [one.session for one in fleet.shown if one.status != GONE] == ["s1"] and fleet.folders == [fleet.project]
    fleet.proven = fleet.proven | {"s2": fleet.session("s2")}
    assert fleet.look() == ["s2"] and [one.session for one in fleet.shown] == ["s1", "s2"]


def test_who_is_gone_is_told_of_for_a_moment_with_what_its_last_answers_cost(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer is written, its program ends, and only then its price is known."""
    fleet.note("s1", "a1")
    fleet.sums["s1"] = {"": SPENT, "a1": SPENT, "early": SPENT}  # one more, which has no row of its own
    fleet.steady_with_notes()
    fleet.proven = {"s2": fleet.proven["s2"]}
    fleet.sums["s1"] = {"": replace(SPENT, cost_usd=0.75), "a1": replace(SPENT, cost_usd=2.0), "early": SPENT}
    fleet.look()
    gone = [one for one in fleet.shown if one.status == GONE]
    assert [(one.session, one.part, one.process, one.usage and one.usage.cost_usd) for one in gone] == [
        ("s1", "", None, 1.25),
        ("s1", "a1", None, 2.0),
    ]
    far = time.monotonic() + recently_ended.FAREWELL_S + 1
    monkeypatch.setattr(time, "monotonic", lambda: far)
    fleet.look()
    assert [one.session for one in fleet.shown] == ["s2"]


def test_a_session_that_kept_a_large_result_of_a_tool_in_a_folder_of_its_own_is_seen_as_long_as_it_spends(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = time.monotonic
    kept = fleet.project / "s1" / "tool-results"
    kept.mkdir(parents=True)
    fleet.spend.fresh.begins("w", [str(fleet.project), str(fleet.project / "s1"), str(kept)])
    for round_ in range(6):
        later = (claude_notes.TOLD_S + 1) * round_  # its notes are looked for again
        monkeypatch.setattr(time, "monotonic", lambda later=later: real() + later)
        for _ in range(3):
            fleet.look()
        spent = replace(SPENT, cost_usd=1.0 + round_)
        fleet.sums = {"s1": {"": spent}, "s2": {}}
        fleet.look()
        assert [one.name for one in fleet.shown] == ["s1", "s2"]
        assert fleet.shown[0].usage is not None and fleet.shown[0].usage.cost_usd == 1.0 + round_
