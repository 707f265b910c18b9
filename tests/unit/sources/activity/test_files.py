"""Whether there is news: asked of the disk where nobody watches, else of the watch, and of the disk all the same now and then."""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from console.sources.activity import files as activity_files
from console.sources.activity import tail as activity_tail
from console.sources.activity.files import AgentFiles, Whereabouts
from console.sources.change_tracker import Freshness
from console.sources.claude_code.activity import ACTIVITY

SESSION = "11111111-1111-4111-8111-111111111111"


class Stage:
    def __init__(self, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.project = home / ".claude" / "projects" / "-work-x"
        self.project.mkdir(parents=True)
        self.main, self.fresh, self.stats = self.project / f"{SESSION}.jsonl", Freshness(), 0
        where = Whereabouts("claude_code", os.geteuid(), SESSION, "/work/x")
        self.files = AgentFiles(where, ACTIVITY, home, lambda _answer: None, {}, fresh=self.fresh)
        real = activity_tail.signature

        def counted(path: str) -> object:
            self.stats += 1
            return real(path)

        monkeypatch.setattr(activity_files, "signature", counted)

    def says(self, file: Path, text: str) -> None:
        with file.open("a") as out:
            out.write(json.dumps({"type": "user", "uuid": text, "message": {"content": text}}) + "\n")

    def reads(self) -> list[str]:
        return [entry.text for batch in self.files.read() for entry in batch.entries] if self.files.has_news() else []

    def settle(self) -> None:
        for _ in range(4):
            self.files._seek_at = 0.0
            self.reads()


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    return Stage(tmp_path, monkeypatch)


def test_where_a_watch_tells_no_file_is_looked_at_until_it_does(stage: Stage) -> None:
    stage.says(stage.main, "one")
    stage.fresh.begins("w", [str(stage.project)])
    stage.settle()
    stage.stats = 0
    assert not stage.files.has_news() and stage.stats == 0
    stage.says(stage.main, "two")
    stage.fresh.changed([str(stage.main)])
    assert stage.reads() == ["two"]
    stage.fresh.ends("w")
    stage.says(stage.main, "three")
    assert stage.reads() == ["three"], "a watch that ended is not trusted"


def test_a_change_that_no_watch_told_of_is_found_all_the_same(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    stage.says(stage.main, "one")
    stage.fresh.begins("w", [str(stage.project)])
    stage.settle()
    stage.says(stage.main, "two")
    assert stage.reads() == []
    monkeypatch.setattr(activity_files, "TOLD_S", -1.0)
    stage.files.told_until = 0.0
    assert stage.reads() == ["two"]


def test_a_folder_of_sub_agents_that_appears_is_searched(stage: Stage) -> None:
    stage.says(stage.main, "one")
    stage.fresh.begins("w", [str(stage.project)])
    stage.settle()
    assert not stage.files.has_news()
    subs = stage.project / SESSION / "subagents"
    subs.mkdir(parents=True)
    (subs / "agent-a1.meta.json").write_text(json.dumps({"finished": True}))
    stage.says(subs / "agent-a1.jsonl", "below")
    stage.fresh.changed([str(stage.project / SESSION)])
    stage.files._seek_at = 0.0
    assert stage.reads() == ["below"]
    assert not stage.files._marks(), "nobody watches that folder yet, so it is looked at"


def test_what_was_read_to_its_end_needs_no_second_look_and_what_came_meanwhile_is_told(stage: Stage) -> None:
    stage.says(stage.main, "one")
    stage.fresh.begins("w", [str(stage.project)])
    stage.settle()
    stage.says(stage.main, "two")
    stage.fresh.changed([str(stage.main)])
    assert stage.files.has_news()
    stage.says(stage.main, "three")
    stage.fresh.changed([str(stage.main)])
    assert [entry.text for batch in stage.files.read() for entry in batch.entries] == ["two", "three"]
    assert stage.files.is_told
    stage.says(stage.main, "four")
    assert stage.reads() == ["four"], "a watch told of it after the last look, though what it told of was read"
    stage.stats = 0
    assert not stage.files.has_news() and stage.stats == 0


def test_a_watch_that_tells_while_it_is_read_is_heard(stage: Stage) -> None:
    stage.says(stage.main, "one")
    stage.fresh.begins("w", [str(stage.project)])
    stage.settle()
    stage.says(stage.main, "two")
    stage.fresh.changed([str(stage.main)])
    assert stage.files.has_news()
    batches = list(stage.files.read())
    stage.says(stage.main, "three")
    stage.fresh.changed([str(stage.main)])
    assert len(batches) == 1 and stage.reads() == ["three"]


def test_a_file_that_goes_elsewhere_or_becomes_another_is_found_and_one_that_is_gone_is_said(stage: Stage) -> None:
    stage.says(stage.main, "one")
    stage.fresh.begins("w", [str(stage.project)])
    stage.settle()
    other = stage.project.parent / "-work-y"
    other.mkdir()
    stage.main.rename(other / stage.main.name)
    stage.says(other / stage.main.name, "two")
    stage.fresh.changed([str(stage.main)])
    stage.files._seek_at = stage.files._wide_at = -99.0
    assert "two" in stage.reads() and str(other / stage.main.name) in stage.files.places()
    (other / stage.main.name).unlink()
    stage.reads()
    assert stage.files.gone


def test_where_a_watch_tells_searching_is_rare_but_not_for_a_file_that_is_gone(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    sought: list[float] = []
    real, clock = AgentFiles._seek, SimpleNamespace(now=1000.0)

    def seek(self: AgentFiles) -> None:
        sought.append(clock.now)
        real(self)

    monkeypatch.setattr(AgentFiles, "_seek", seek)
    monkeypatch.setattr(activity_files, "time", SimpleNamespace(monotonic=lambda: clock.now))
    stage.says(stage.main, "one")

    def pass_(seconds: int) -> list[float]:
        sought.clear()
        for _ in range(seconds):
            clock.now += 1.0
            stage.reads()
        return list(sought)

    assert len(pass_(30)) == 10, "nobody watches"
    stage.fresh.begins("w", [str(stage.project)])
    pass_(5)
    assert len(pass_(60)) == 2
    stage.fresh.changed([str(stage.project / SESSION)])
    assert len(pass_(2)) == 1, "its sub-agents' folder may be there now"
    stage.main.unlink()
    stage.fresh.changed([str(stage.main)])
    assert len(pass_(60)) in (5, 6)
