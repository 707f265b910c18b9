"""What a guard takes away at its end: empty folders that it made, and nothing else; folders stand for cgroups here."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from console.killswitch.guard import state
from console.killswitch.guard.state import is_over, take_away
from tests.fakes.guard_room import Room, fill


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "BUSY_S", 0.0)
    monkeypatch.setattr(state, "APART_S", 0.0)


def ended(room: Room, agent_id: str, *, confirmed: bool = True) -> Path:
    """An agent of which nothing lives; its leaf, which like a cgroup that is removed has no files."""
    held = room.agent(agent_id, populated=0)
    held.entry = replace(held.entry, confirmed=confirmed)
    return Path(held.entry.leaf)


def empty(folder: Path) -> None:
    """As the kernel has it: a cgroup's own files are no hindrance to its removal."""
    for one in (folder, *folder.rglob("*")):
        if one.is_file():
            one.unlink()


def tree_of(room: Room) -> Path:
    assert room.tree is not None
    return room.tree.root


def test_nothing_is_over_while_somebody_lives_or_a_kill_goes_on(room: Room) -> None:
    assert is_over(room.guard)
    held = room.agent("one")
    assert not is_over(room.guard)
    fill(Path(held.entry.leaf), 0)
    assert is_over(room.guard)
    room.guard.press("all", "x", "y")
    assert not is_over(room.guard)
    room.run_threads()
    assert is_over(room.guard) and room.guard.latch.state.latched
    fill(tree_of(room) / "agents", 1)
    assert not is_over(room.guard), "somebody whom the registry does not know"


def test_an_empty_tree_goes_whole(room: Room) -> None:
    leaf = ended(room, "one")
    (leaf / "call-00000000").mkdir()
    (tree_of(room) / "relays" / "one").mkdir()
    empty(tree_of(room))
    take_away(room.guard)
    assert not tree_of(room).exists() and "one" in room.guard.registry.held


@pytest.mark.parametrize("whose", ["somebody else's", "another of the same name", "with a ticket", "a busy leaf"])
def test_what_is_not_ours_or_may_be_entered_yet_stays_and_the_tree_with_it(room: Room, whose: str) -> None:
    leaf = ended(room, "one", confirmed=whose != "with a ticket")
    held = room.guard.registry.held["one"]
    empty(tree_of(room))
    stays = leaf
    if whose == "somebody else's":
        stays = leaf.with_name("two-00000000")
        stays.mkdir()
    elif whose == "another of the same name":
        held.entry = replace(held.entry, inode=held.entry.inode + 1)
    elif whose == "a busy leaf":
        (leaf / "cgroup.procs").touch()
    take_away(room.guard)
    assert stays.is_dir() and (tree_of(room) / "control").is_dir() and leaf.exists() is (stays == leaf)


def test_a_tree_that_another_guard_made_since_is_not_ours(room: Room) -> None:
    assert room.tree is not None
    empty(tree_of(room))
    room.tree.made = {folder: inode + 1 for folder, inode in room.tree.made.items()}
    take_away(room.guard)
    assert (tree_of(room) / "agents").is_dir()


def test_while_killed_a_ticket_lets_nobody_in_any_more(room: Room) -> None:
    leaf = ended(room, "one", confirmed=False)
    room.guard.press("all", "x", "y")
    room.run_threads()
    empty(tree_of(room))
    take_away(room.guard)
    assert not leaf.exists() and not tree_of(room).exists()
