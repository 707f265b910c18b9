"""Whom no press stops is named in its receipt, by this guard, the next one, and a press without a guard; silence is not known."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from console.killswitch.kill.observed import FRESH_S, NAMED, NOT_KNOWN, UNHELD_FILE, Unheld
from tests.fakes.guard_room import Room

HOSTILE = 'x" , process 1 has ended\x1b[2J\u202e\n<b>o-9</b>'


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def unheld(tmp_path: Path, clock: Clock) -> Unheld:
    return Unheld(tmp_path / UNHELD_FILE, clock)


def line(*agents: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"agents": list(agents), "n": len(agents), "parts": 0} | fields


def agent(agent_id: str = "o-1", **fields: Any) -> dict[str, Any]:
    return {"id": agent_id, "name": "shop", "why": "it is not held", "pid": 0, "start_ticks": 0} | fields


def test_nobody_told_is_not_nobody_there(unheld: Unheld) -> None:
    assert unheld.left((), 1000.0) == (None, [NOT_KNOWN])
    unheld.tell(line())
    assert unheld.left((), 1000.0) == (0, [])


def test_each_is_named_with_why_and_whether_it_runs(unheld: Unheld, sleeper: tuple[int, int]) -> None:
    here = {"pid": sleeper[0], "start_ticks": sleeper[1]}
    unheld.tell(line(agent("o-1", **here), agent("o-2", **here | {"start_ticks": 1}), agent("o-3"), parts=2))
    n, [head, *named] = unheld.left({"o-9"}, 1001.0)
    assert n == 3 and head.startswith("3 agents were only seen and not stopped, and 2 sub-agents of theirs")
    assert named[0] == f'o-1 "shop", only seen: it is not held; process {sleeper[0]} runs'
    assert named[1].endswith("has ended") and named[2].endswith("which process it is is not known")


def test_who_was_a_target_all_the_same_is_not_called_left(unheld: Unheld) -> None:
    unheld.tell(line(agent("o-1"), agent("o-2")))
    n, words = unheld.left({"o-1"}, 1000.0)
    assert n == 1 and not any(w.startswith("o-1") for w in words)
    assert unheld.left({"o-1", "o-2"}, 1000.0) == (0, [])


def test_what_is_old_is_said_to_be_and_an_old_nobody_is_not_known(unheld: Unheld) -> None:
    unheld.tell(line(agent()))
    assert "that is old" in unheld.left((), 1000.0 + FRESH_S + 1)[1][0] and "old" not in unheld.left((), 1000.0 + FRESH_S)[1][0]
    assert "that is old" in unheld.left((), 10.0)[1][0], "a clock that was set back proves nothing"
    unheld.tell(line())
    n, words = unheld.left((), 1000.0 + FRESH_S + 1)
    assert n is None and "who appeared since is not known" in words[0]


def test_there_is_a_bound_and_the_count_stays_true(unheld: Unheld) -> None:
    for start in range(0, 100, 5):
        unheld.tell(line(*(agent(f"o-{n}") for n in range(start, start + 5)), n=10_000, more=start > 0))
    n, words = unheld.left((), 1000.0)
    assert n == 10_000 and len(words) == NAMED + 1 and f"the first {NAMED} by name" in words[0]
    unheld.tell(line(agent("o-new")))
    assert unheld.left((), 1000.0)[0] == 1, "the first line forgets"


def test_what_an_agent_calls_itself_ends_where_we_end_it(unheld: Unheld) -> None:
    unheld.tell(line(agent(name=HOSTILE, why=HOSTILE)))
    words = unheld.left((), 1000.0)[1][1]
    assert words.isprintable() and words.isascii() and words.count('"') == 2 and len(words) < 400


@pytest.mark.parametrize(
    "told",
    [
        {},
        {"agents": "all", "n": 1},
        {"agents": [1], "n": 1},
        line(agent("../x")),
        line(agent(pid=1)),
        line(agent(pid=-5)),
        line(agent(name=7)),
        line(agent(), n=float("nan")),
    ],
)
def test_a_line_that_names_no_agent_is_refused_and_changes_nothing(room: Room, told: dict[str, Any]) -> None:
    assert room.ask("unheld", **line(agent("o-1"), last=True))["ok"]
    assert not room.ask("unheld", **told)["ok"]
    assert "o-1" in room.guard.unheld.left((), room.guard.unheld._told_at)[1][1]


def test_the_next_guard_and_a_press_without_one_know_it(room: Room) -> None:
    room.ask("unheld", **line(agent("o-1"), last=False))
    kept = room.config.guard_dir / UNHELD_FILE
    assert not kept.exists(), "half of a list is not kept"
    room.ask("unheld", **line(agent("o-2"), n=2, more=True, last=True))
    kill = room.guard.press("all", "r", "me")
    kill.name_left()
    assert kill.receipt().only_seen == 2 and [w[:3] for w in kill.excluded[1:]] == ["o-1", "o-2"]
    other = room.guard.press(["o-1"], "r", "me")
    other.name_left()
    assert other.receipt().only_seen is None and not other.excluded, "who was named alone leaves nobody out"
    without = room.guard.press("all", "r", "me")
    without.excluded.clear()
    found = Unheld(room.config.guard_dir / UNHELD_FILE)
    found.load()
    found.name_in(without)
    assert without.receipt().only_seen == 2 and without.excluded == kill.excluded


def test_it_is_written_when_it_changed_and_not_each_time(room: Room) -> None:
    room.ask("unheld", **line(agent("o-1"), last=True))
    kept = room.config.guard_dir / UNHELD_FILE
    kept.unlink()
    room.ask("unheld", **line(agent("o-1"), last=True))
    assert not kept.exists()
    room.ask("unheld", **line(agent("o-1", why="another reason"), last=True))
    assert kept.exists()


@pytest.mark.parametrize("left", [b"", b"{", b"[]", b'{"agents":[1],"n":1,"parts":0,"told_at":5}', b'{"agents":[],"n":0}', b"[" * 70_000])
def test_a_damaged_record_is_not_known(tmp_path: Path, left: bytes) -> None:
    (tmp_path / UNHELD_FILE).write_bytes(left)
    read = Unheld(tmp_path / UNHELD_FILE)
    read.load()
    assert read.left((), 1000.0) == (None, [NOT_KNOWN])


def test_what_was_saved_is_read_as_it_was(unheld: Unheld, tmp_path: Path, clock: Clock) -> None:
    unheld.tell(line(agent("o-1", pid=4_000_000, start_ticks=7), parts=1))
    unheld.save()
    assert json.loads((tmp_path / UNHELD_FILE).read_text())["told_at"] == 1000
    read = Unheld(tmp_path / UNHELD_FILE, clock)
    clock.now = 5000.0
    read.load()
    assert read.left((), 1000.0) == unheld.left((), 1000.0)
