"""What a change of limits would do: exactly whom the change itself halts, and nothing happens."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace

import pytest

from console.domain.agent import AgentId, ContextId
from console.domain.budget import Limits
from console.domain.engine import command as c
from console.domain.engine import event as e
from console.domain.ids import ControlLevel
from console.services.budgets.service import foresee, foreseen
from tests.fakes.playbook import Playbook


def book() -> Playbook:
    """Two trees in one session: r with a child that spent, and one that spent nothing."""
    made = (
        Playbook()
        .run("r", context_id=ContextId("s"))
        .run("k", parent_id=AgentId("r"), context_id=ContextId("s"))
        .run("o", context_id=ContextId("s"))
    )
    return made.spend("k", cost_usd=4.0, tokens=1000)


@pytest.mark.parametrize(
    ("scope", "key", "limits"),
    [
        ("agent", "k", Limits(cost_usd=3.0)),
        ("agent", "r", Limits(cost_usd=3.0)),
        ("tree", "r", Limits(cost_usd=4.0)),
        ("tree", "r", Limits(cost_usd=4.01)),
        ("tree", "o", Limits(tokens=0)),
        ("session", "s", Limits(tokens=1000)),
        ("session", "nobody", Limits(cost_usd=0.0)),
        ("day", "", Limits(cost_usd=1.0)),
        ("type", "claude-code", Limits(cost_usd=0.0)),
    ],
)
def test_it_names_whom_the_change_halts(scope: str, key: str, limits: Limits) -> None:
    world = book()
    before = deepcopy(world.state)
    seen = foresee(world.state, scope, key, limits)
    assert world.state == before, "looking changed something"
    world >> e.LimitsChanged(world.at, world.boot, scope, key, limits, "operator:0", "r")
    halted = {str(i) for command in world.all(c.HaltAgents) for i in command.agent_ids}
    assert {str(i) for i in seen.halted} == halted


def test_who_is_only_observed_is_named_as_such() -> None:
    world = book()
    world.state.put(replace(world.agent("k"), control_level=ControlLevel.OBSERVED))
    seen = foresee(world.state, "agent", "k", Limits(cost_usd=1.0))
    assert seen.halted == () and seen.observed == ("k",) and "cannot be stopped" in foreseen(seen)


def test_words_count_right() -> None:
    world = book()
    assert foreseen(foresee(world.state, "tree", "r", Limits(cost_usd=9.0))) == "It halts no agent now."
    assert foreseen(foresee(world.state, "tree", "r", Limits(cost_usd=1.0))).startswith("2 agents have used it up")
    assert foresee(world.state, "tree", "r", Limits(cost_usd=9.0)).used == (("cost_usd", 4.0, 9.0),)
