"""Notes of sub-agents at any depth, each linked by the agents' own words."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from console.sources.change_tracker import Freshness
from console.sources.claude_code import notes as claude_notes
from console.sources.claude_code.notes import Notes, SubAgent


@pytest.fixture
def top(tmp_path: Path) -> Path:
    made = tmp_path / "projects" / "-home-dev-proj" / "s1"
    (made / "subagents").mkdir(parents=True)
    return made


def note(folder: Path, agent_id: str, **more: object) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"agent-{agent_id}.meta.json").write_text(json.dumps({"description": agent_id} | more))


def of(top: Path, notes: Notes | None = None, cwd: str = "/home/dev/proj") -> list[SubAgent]:
    return (notes or Notes()).of(top.parents[1], cwd, "s1").found


def test_they_are_found_at_any_depth_of_the_sessions_folder(top: Path) -> None:
    note(top / "subagents", "a1")
    note(top / "subagents" / "agent-a1" / "subagents", "a2", spawnDepth=2, parentAgentId="a1")
    found = Notes().of(top.parents[1], "/home/dev/proj", "s1")
    assert [(one.agent_id, one.parent_id) for one in found.found] == [("a1", ""), ("a2", "a1")]
    assert top / "subagents" in found.folders and top in found.folders


def test_a_nested_one_that_names_its_call_alone_hangs_below_whoever_made_it(top: Path) -> None:
    folder = top / "subagents"
    note(folder, "a1")
    note(folder, "a2")
    note(folder, "a3", spawnDepth=2, toolUseId="toolu_9")
    call = {"type": "assistant", "message": {"content": [{"type": "tool_use", "id": "toolu_9", "name": "Agent"}]}}
    (folder / "agent-a1.jsonl").write_text(json.dumps({"type": "user", "message": {"content": "toolu_9 is what I saw"}}) + "\n")
    (folder / "agent-a2.jsonl").write_text(json.dumps(call, separators=(",", ":")) + "\n")
    assert [one.parent_id for one in of(top)] == ["", "", "a2"]
    (folder / "agent-a2.jsonl").unlink()
    assert [one.parent_id for one in of(top)] == ["", "", ""]


def test_a_session_that_moved_keeps_the_folder_it_began_in(top: Path) -> None:
    note(top / "subagents", "a1")
    assert [one.agent_id for one in of(top, cwd="/somewhere/else")] == ["a1"]


def test_what_did_not_change_is_not_read_again(top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    notes = Notes()
    note(top / "subagents", "a1")
    assert not of(top, notes)[0].finished
    with monkeypatch.context() as patched:
        patched.setattr(claude_notes, "read_foreign", lambda *_: pytest.fail("it was read again"))
        notes.begin()
        assert len(of(top, notes)) == 1
    note(top / "subagents", "a1", finished=True)
    assert of(top, notes)[0].finished


def test_links_lead_nowhere(top: Path, tmp_path: Path) -> None:
    note(tmp_path / "outside", "b1")
    (top / "link").symlink_to(tmp_path / "outside")
    (top / "subagents" / "agent-b2.meta.json").symlink_to(tmp_path / "outside" / "agent-b1.meta.json")
    os.mkfifo(top / "subagents" / "agent-b3.meta.json")
    assert of(top) == []


@pytest.mark.parametrize("session", ["..", "", ".", "a/b", "a\0b"])
def test_a_session_of_a_hostile_name_leads_nowhere(top: Path, session: str) -> None:
    note(top / "subagents", "a1")
    assert Notes().of(top.parents[1], "/home/dev/proj", session).found == []


def test_where_a_watch_tells_nothing_is_read_until_it_does(top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fresh, project, subs = Freshness(), top.parent, top / "subagents"
    fresh.begins("w", [str(project), str(top), str(subs)])
    notes = Notes(fresh)
    note(subs, "a1")
    assert [len(of(top, notes)) for _ in range(3)] == [1, 1, 1]
    note(subs, "a2")
    assert len(of(top, notes)) == 1
    fresh.changed([str(subs / "agent-a2.meta.json")])
    assert len(of(top, notes)) == 2
    note(subs, "a3")
    monkeypatch.setattr(claude_notes, "TOLD_S", -1.0)
    of(top, notes)
    fresh.ends("w")
    assert len(of(top, notes)) == 3, "nobody watches any more"
    fresh.begins("w", [str(project)])
    assert Notes(fresh).of(top.parents[1], "/home/dev/proj", "none").folders == [project]
