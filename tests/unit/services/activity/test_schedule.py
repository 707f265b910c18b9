"""Whose files are looked at: told of, not told of at all, overdue, or everybody's when a watch is not to be relied on any more."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from console.services.activity.schedule import LOST_S, Followed, Turns
from console.sources import change_tracker
from console.sources.activity.files import AgentFiles, Whereabouts
from console.sources.change_tracker import Freshness
from console.sources.claude_code.activity import ACTIVITY


def one(name: str) -> Followed:
    return name, Whereabouts("claude_code", 1, name, "/work")


@dataclass
class Files(AgentFiles):
    """Of which a watch tells, or not."""

    told: bool = True
    at: tuple[str, ...] = ()
    told_until: float = field(default=10.0)

    @property
    def is_told(self) -> bool:
        return self.told

    def places(self) -> tuple[str, ...]:
        return self.at


def files(*at: str, told: bool = True, until: float = 10.0) -> Files:
    return Files(Whereabouts("claude_code", 1, "s", "/work"), ACTIVITY, None, lambda _answer: None, {}, told=told, at=at, told_until=until)


A, B = one("a"), one("b")


@pytest.fixture
def fresh() -> Freshness:
    made = Freshness()
    made.begins("w", ["/p", "/q"])
    return made


@pytest.fixture
def turns(fresh: Freshness) -> Turns:
    made = Turns(fresh)
    made.begin((A, B))
    assert set(made.due(0.0)) == {A, B}
    return made


def test_who_came_and_of_whom_no_watch_tells_is_due_in_every_turn(turns: Turns) -> None:
    turns.rest(A, files("/p/a", told=False))
    turns.rest(B, files("/p/b"))
    assert [turns.due(n / 10) for n in range(3)] == [[A]] * 3


def test_who_rests_is_due_when_a_watch_tells_of_it_and_until_it_rests_again(turns: Turns, fresh: Freshness) -> None:
    turns.rest(A, files("/p/a", "/p/a/subagents"))
    turns.rest(B, files("/p/b"))
    assert turns.due(0.1) == []
    fresh.changed(["/p/other"])
    assert turns.due(0.2) == []
    fresh.changed(["/p/a/subagents/agent-x.jsonl"])
    assert turns.due(0.3) == [A] == turns.due(0.4)
    new = files("/q/a")
    turns.rest(A, new)
    fresh.changed(["/p/a"])
    assert turns.due(0.5) == [], "it is elsewhere now"
    fresh.changed(["/q/a"])
    assert turns.due(0.6) == [A]


def test_who_rests_is_due_when_its_time_is_over_whatever_was_told_meanwhile(turns: Turns, fresh: Freshness) -> None:
    a, b = files("/p/a", until=10.0), files("/p/b", until=11.0)
    turns.rest(A, a)
    turns.rest(B, b)
    fresh.changed(["/p/a"])
    assert turns.due(5.0) == [A]
    turns.rest(A, a)  # nothing was there
    assert turns.due(9.9) == [] and turns.due(10.1) == [A]
    assert set(turns.due(11.1)) == {A, B}
    a.told_until = 20.0
    turns.rest(A, a)
    b.told_until = 21.0
    turns.rest(B, b)
    assert turns.due(19.0) == [] and turns.due(20.5) == [A]


def test_everybody_is_due_when_a_watch_is_not_to_be_relied_on_but_not_at_every_lapse(
    turns: Turns, fresh: Freshness, monkeypatch: pytest.MonkeyPatch
) -> None:
    def rest() -> None:
        turns.rest(A, files("/p/a", until=1e9))
        turns.rest(B, files("/q/b", until=1e9))

    rest()
    fresh.begins("w", ["/p"])
    assert set(turns.due(1.0)) == {A, B}
    rest()
    fresh.ends("w")
    assert turns.due(1.1) == [] and set(turns.due(1.0 + LOST_S)) == {A, B}
    fresh.begins("w", ["/p", "/q"])
    rest()
    turns.due(5.0)
    rest()
    monkeypatch.setattr(change_tracker, "PATHS_MAX", 0)
    fresh.changed(["/p/x"])
    fresh.changed(["/p/x"])
    assert set(turns.due(9.0)) == {A, B}, "it heard too much to remember"


def test_who_is_followed_no_more_leaves_nothing_behind(turns: Turns, fresh: Freshness) -> None:
    turns.rest(A, files("/p/a", "/p/x"))
    turns.rest(B, files("/p/x"))
    turns.end(A)
    fresh.changed(["/p/a", "/p/x"])
    assert turns.due(99.0) == [B]
    turns.end(B)
    assert turns.due(99.0) == [] and not (turns._by_place or turns._places or turns._rests or turns._untold)
