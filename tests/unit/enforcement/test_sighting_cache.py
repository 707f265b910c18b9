"""An engine that remembers the round before says and knows the same, step for step, as one that makes every row anew."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from console.domain.agent import AgentId, ProcessIdentity, Sighting, SourceReport
from console.domain.budget import Usage
from console.domain.engine import command as c
from console.domain.engine import event as e
from console.domain.ids import ControlLevel
from console.enforcement import sighting_cache
from console.enforcement.engine import Engine
from console.enforcement.identity import observed_id


def session(number: int, **more: Any) -> Sighting:
    fields: dict[str, Any] = {
        "source": "claude_code",
        "key": f"0-{number}-7",
        "name": f"n{number}",
        "process": ProcessIdentity(number, 7),
        "session": f"s{number}",
        "cwd": "/w",
        "seen_at": 0.0,
        "status": "busy",
        "usage": Usage(iterations=1, tokens=10, cost_usd=0.01),
    }
    return Sighting(**fields | more)


def process(number: int, **more: Any) -> Sighting:
    fields: dict[str, Any] = {"key": f"{number}-7", "session": "", "status": "running", "usage": None}
    return session(number, source="processes", **fields | more)


class Both:
    """Two engines that are told the same; one of them forgets each round."""

    def __init__(self) -> None:
        self.engines, self.at = (Engine(), Engine()), 0.0

    def see(self, *found: Sighting, blind: tuple[str, ...] = ()) -> list[c.Command]:
        names = ("claude_code", "processes", "otlp")
        reports = tuple(SourceReport(n, n not in blind, "", tuple(s for s in found if s.source == n)) for n in names)
        self.engines[1]._round.own = None
        return self.tell(lambda at: e.Sighted(at, at, reports))

    def tell(self, event: Any) -> list[c.Command]:
        self.at += 1.0
        said = [engine.step(event(self.at)) for engine in self.engines]
        assert said[0] == said[1]
        mine, other = (engine.state for engine in self.engines)
        assert mine.agents == other.agents and mine.seen == other.seen and mine.rows == other.rows and mine.sighted == other.sighted
        assert mine.tree_usage == other.tree_usage and mine.budget.spent == other.budget.spent
        return said[0]

    def looked_at(self, monkeypatch: pytest.MonkeyPatch) -> list[int]:
        """How many rows each round of the remembering one looks at; -1: it made all anew."""
        counts: list[int] = []
        real = sighting_cache.to_look_at

        def counted(state: Any, had: Any) -> Any:
            found = real(state, had)
            counts.append(-1 if found is None else len(found))
            return found

        monkeypatch.setattr(sighting_cache, "to_look_at", counted)
        return counts


def test_of_a_fleet_only_what_is_new_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    both = Both()
    fleet = [session(i) for i in range(1, 40)] + [process(i) for i in range(1, 40)]
    both.see(*fleet)
    counts = both.looked_at(monkeypatch)
    assert both.see(*fleet) == []
    fleet[4] = replace(fleet[4], usage=Usage(iterations=2, tokens=30, cost_usd=0.5))
    assert any(isinstance(one, c.Charged) for one in both.see(*fleet))
    fleet[7] = replace(fleet[7], status="waiting")
    both.see(*fleet)
    assert counts == [0, 1, 1]
    both.see(*fleet[1:])
    both.see(*fleet[1:], blind=("claude_code",))
    assert len(counts) == 3, "who went, and a source that cannot look, make every row be made anew"


def test_who_is_another_agent_now_is_not_taken_for_the_one_before(monkeypatch: pytest.MonkeyPatch) -> None:
    both, one = Both(), session(1)
    both.see(one, session(2))
    adopted = AgentId(observed_id(one))
    for engine in both.engines:
        engine.state.put(replace(engine.state.agents[adopted], control_level=ControlLevel.ADOPTED))
    both.see(one, session(2))
    for engine in both.engines:
        engine.state.put(replace(engine.state.agents[adopted], control_level=ControlLevel.OBSERVED))
    both.see(replace(one, process=ProcessIdentity(1, 8)), session(2))
    both.see(replace(one, status="finished"), session(2))
    both.see(one, session(2))


def test_a_process_that_is_found_to_be_ours_is_shown_in_our_own_row_from_then_on() -> None:
    both = Both()
    both.see(session(1), session(2))
    for engine in both.engines:
        seen = engine.state.agents[AgentId(observed_id(session(1)))]
        engine.state.put(replace(seen, agent_id=AgentId("a-1"), root_id=AgentId("a-1"), control_level=ControlLevel.MANAGED))
    both.see(session(1), session(2))
    assert both.engines[0].state.seen[AgentId("a-1")].session == "s1"


@pytest.mark.parametrize("seed", range(12))
def test_whatever_sources_say_both_say_and_know_the_same(seed: int) -> None:
    dice, both = random.Random(seed), Both()
    fleet: dict[str, Sighting] = {}
    for _ in range(120):
        number = dice.randrange(1, 9)
        match dice.randrange(12):
            case 0:
                fleet[f"c{number}"] = session(number, process=dice.choice([None, ProcessIdentity(number, 7), ProcessIdentity(number, 8)]))
            case 1:
                fleet[f"p{number}"] = process(number, container_id=dice.choice(["", "b" * 64]))
            case 2:
                part = f"a{number}"
                above = f"0-{dice.randrange(1, 9)}-7"
                fleet[f"s{number}"] = session(number, key=f"{above}-{part}", parent_key=above, part=part, process=None)
            case 3:
                fleet.pop(dice.choice(sorted(fleet) or [""]), None)
            case 4:
                fleet[f"t{number}"] = session(
                    number, source="otlp", key=f"t{number}", process=None, status=dice.choice(["young", "running"])
                )
            case 5:
                gone = sorted(i for i in both.engines[0].state.live)
                if gone:
                    agent_id = dice.choice(gone)
                    both.tell(lambda at, agent_id=agent_id: e.AgentExited(at, at, agent_id, 0))
            case _:
                for name in dice.sample(sorted(fleet), k=min(len(fleet), 3)):
                    had = fleet[name]
                    used = Usage(iterations=dice.randrange(9), tokens=dice.randrange(99), cost_usd=dice.random())
                    status = dice.choice(["busy", "waiting", "idle", "finished", "gone", "running"])
                    fleet[name] = replace(had, usage=used, status=status, unlinked=dice.choice(["", "x"]))
        both.see(*fleet.values(), blind=("processes",) if dice.random() < 0.1 else ())
