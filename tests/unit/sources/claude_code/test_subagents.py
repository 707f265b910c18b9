"""Sub-agents by their notes, linked by their own links, and what they used."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from console.domain.agent import ProcessIdentity, Sighting
from console.domain.budget import Usage
from console.sources.claude_code.notes import Notes, SubAgent
from console.sources.claude_code.subagents import LIFE, MOST, Tree, sightings
from console.sources.interface import FINISHED
from console.sources.spend.of_session import Spent, acted, usage

DATA = Path(__file__).parents[3] / "data" / "claude-code" / "projects-tree"
SESSION = Sighting("claude_code", "0-7-1", "s", ProcessIdentity(7, 1), "s1", "/home/dev/proj", 1.0, status="busy", detail="Seen.")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "-home-dev-proj" / "s1" / "subagents"
    made.mkdir(parents=True)
    return made


def subagents(projects: Path, cwd: str, session: str) -> list[SubAgent]:
    return Notes().of(projects, cwd, session).found


def one(agent_id: str) -> SubAgent:
    return SubAgent(agent_id, "n", "", 1, False)


def note(folder: Path, agent_id: str, **more: object) -> None:
    (folder / f"agent-{agent_id}.meta.json").write_text(json.dumps({"agentType": "general-purpose"} | more))


def test_the_real_programs_note_is_of_one_that_has_finished() -> None:
    (real,) = subagents(DATA, "/home/dev/proj", "ca2200bd-a045-4b6c-a82c-3a0d8505a41a")
    assert real == SubAgent("a66a62f654c274416", "count files", "", 1, True, "toolu_fake0002")
    assert len(sightings(SESSION, [real], {}, Tree())) == 1  # it had no row, so it gets none


def test_one_that_finishes_is_said_to_have_with_all_it_used_and_then_goes() -> None:
    tree, used = Tree(), {"a1": Spent(10, 1.0, 2, 0, "m", 1.0)}
    sightings(SESSION, [one("a1")], used, tree)
    done = replace(one("a1"), finished=True)
    _, last = sightings(SESSION, [done], {"a1": Spent(20, 2.0, 4, 0, "m", 1.0)}, tree)
    assert last.status == FINISHED and last.usage == Usage(iterations=4, tokens=20, cost_usd=2.0)
    tree.over["a1"] -= 100
    (alone,) = sightings(SESSION, [done], used, tree)
    assert alone.usage is None  # what it used stays with its own row, and is not counted with the session's as well


def test_nested_ones_hang_under_the_parent_that_they_name(folder: Path) -> None:
    note(folder, "a2", spawnDepth=2, parentAgentId="a1", description="deep")
    note(folder, "a1", spawnDepth=1)
    note(folder, "a3", spawnDepth=2, parentAgentId="gone")
    note(folder, "a4", spawnDepth=2, parentAgentId="a4")
    shown = sightings(SESSION, subagents(folder.parents[2], "/home/dev/proj", "s1"), {}, Tree())
    assert [(s.key, s.parent_key) for s in shown] == [
        ("0-7-1", None),
        ("0-7-1-a1", "0-7-1"),
        ("0-7-1-a2", "0-7-1-a1"),
        ("0-7-1-a3", "0-7-1"),
        ("0-7-1-a4", "0-7-1"),
    ]
    assert [s.process for s in shown[1:]] == [None] * 4  # nothing that is written there decides who is signalled
    assert "Not linked to its parent" in shown[3].detail and "Not linked" not in shown[2].detail
    assert "has no row" in shown[3].unlinked and not shown[2].unlinked


def test_what_each_used_is_told_apart() -> None:
    spent = {"": Spent(100, 1.5, 3, 0, "claude-x", 1.0), "a1": Spent(10, 0.0, 2, 2, "new-one", 2.0)}
    own, sub = sightings(SESSION, [SubAgent("a1", "n", "", 1, False)], spent, Tree())
    assert own.usage == Usage(iterations=3, tokens=100, cost_usd=1.5) and "after the fact" in own.detail
    assert sub.usage == Usage(iterations=2, tokens=10) and sub.action == "new-one, 2 answers unpriced"
    assert usage(None) is None and acted(None) == ""


@pytest.mark.parametrize("session", ["..", "", ".", "a/b"])
def test_a_session_of_a_hostile_name_leads_nowhere(folder: Path, session: str) -> None:
    note(folder, "a1")
    assert subagents(folder.parents[2], "/home/dev/proj", session) == []
    assert subagents(folder.parents[2], "", "s1") == []


def test_broken_huge_and_hostile_notes_cost_nothing_but_themselves(folder: Path, tmp_path: Path) -> None:
    (folder / "agent-a1.meta.json").write_text("[" * 50_000)
    (folder / "agent-a2.meta.json").write_text("[]")
    (folder / "agent-a3.meta.json").write_bytes(b" " * 100_000)
    (folder / "agent-a4.meta.json").symlink_to(tmp_path / "x")
    os.mkfifo(folder / "agent-a5.meta.json")
    (folder / "agent-..x.meta.json").write_text("{}")
    note(folder, "a6", description="<b>\x1b[31m\u202e", spawnDepth="9", parentAgentId=["x"], finished="yes")
    (found,) = subagents(folder.parents[2], "/home/dev/proj", "s1")
    assert (found.agent_id, found.depth, found.parent_id, found.finished) == ("a6", 1, "", False) and "\x1b" not in found.name


def test_no_more_than_the_bound_are_shown(folder: Path) -> None:
    many = [SubAgent(f"a{n}", "n", "", 1, False) for n in range(MOST + 5)]
    shown = sightings(SESSION, many, {}, Tree())
    assert len(shown) == MOST + 1 and "5 more sub-agents are not shown" in shown[0].detail


def test_files_alone_make_no_endless_agents() -> None:
    tree = Tree()
    names = {s.key for n in range(0, 3 * LIFE, MOST) for s in sightings(SESSION, [one(f"a{n + i}") for i in range(MOST)], {}, tree)}
    assert len(names) == LIFE + 1


def test_what_those_without_a_row_spent_counts_with_their_session_once() -> None:
    tree, spent = Tree(), {"": Spent(1, 1.0, 1, 0, "m", 1.0), "ended": Spent(10, 2.0, 1, 1, "n", 2.0), "a1": Spent(5, 4.0, 1, 0, "m", 1.0)}
    own, sub = sightings(SESSION, [one("a1")], spent, tree)
    assert own.usage == Usage(iterations=2, tokens=11, cost_usd=3.0) and own.action == "n, 1 answers unpriced"
    assert sub.usage == Usage(iterations=1, tokens=5, cost_usd=4.0)
    own = sightings(SESSION, [one("ended")], spent, tree)[0]  # its note comes late: it stays where it was counted
    assert own.usage == Usage(iterations=2, tokens=11, cost_usd=3.0)
