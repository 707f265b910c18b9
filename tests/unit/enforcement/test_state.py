"""Look-ups over trees."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from console.domain.agent import Agent, AgentId, AgentState, ContextId, SandboxKind
from console.domain.budget import Usage
from console.domain.engine import command as c
from console.domain.engine.event import NOT_ANSWERED
from console.domain.ids import ControlLevel
from console.domain.network import NetworkMode, Sensitivity, mapping_of
from console.enforcement.state import NOT_CONFIRMED, EngineState
from tests.fakes.playbook import Playbook


def test_a_subtree_is_complete_and_starts_with_its_root() -> None:
    book = Playbook().run("r").run("a", parent_id=AgentId("r")).run("b", parent_id=AgentId("r")).run("aa", parent_id=AgentId("a"))
    found = book.state.subtree(AgentId("r"))
    assert found[0] == "r"
    assert set(found) == {"r", "a", "b", "aa"}
    assert book.state.subtree(AgentId("a")) == ["a", "aa"]


def test_contexts_join_and_never_lower() -> None:
    state = EngineState()
    assert state.context("c") == (Sensitivity.PUBLIC, NetworkMode.FULL)
    state.raise_context("c", Sensitivity.SECRET, NetworkMode.FULL)
    assert state.context("c") == (Sensitivity.SECRET, NetworkMode.NONE)
    state.raise_context("c", Sensitivity.PUBLIC, NetworkMode.FULL)
    assert state.context("c") == (Sensitivity.SECRET, NetworkMode.NONE)


def test_a_stricter_mapping_holds_at_birth_at_registration_and_for_children() -> None:
    play = Playbook()
    play.state.modes, play.state.notice = mapping_of({"INTERNAL": "PROXIED"}), "Ask #help about {sensitivity} data ({mode})."
    play.run("a", sensitivity=Sensitivity.INTERNAL, context_id=ContextId("c1"))
    assert play.state.agents[AgentId("a")].network_mode is NetworkMode.PROXIED
    assert any("Ask #help about INTERNAL data (PROXIED)." in told.text for told in play.all(c.TellAgent))
    play.run("b", context_id=ContextId("c1"))
    assert play.state.agents[AgentId("b")].network_mode is NetworkMode.PROXIED
    assert play.state.context("c2") == (Sensitivity.PUBLIC, NetworkMode.FULL)
    play.state.raise_context("c2", Sensitivity.INTERNAL, NetworkMode.FULL)
    assert play.state.context("c2") == (Sensitivity.INTERNAL, NetworkMode.PROXIED)


ONE = Agent(AgentId("a"), "a", None, AgentId("a"), 1, ContextId("c"), ControlLevel.MANAGED, SandboxKind.NONE, 0.0)


@pytest.mark.parametrize("seed", range(5))
def test_whatever_becomes_of_agents_every_index_says_what_their_rows_say(seed: int) -> None:
    chance, state = random.Random(seed), EngineState()  # noqa: S311 - no secret
    ids = [AgentId(f"a{n}") for n in range(6)]
    for _ in range(400):
        at = chance.randrange(len(ids))
        had = state.agents.get(ids[at], replace(ONE, agent_id=ids[at], root_id=ids[at], parent_id=chance.choice([None, *ids[:at]])))
        fields = {
            "usage": Usage(tokens=chance.randrange(9)),
            "state": chance.choice(list(AgentState)),
            "state_reason": chance.choice(["", f"{NOT_CONFIRMED}: x", NOT_ANSWERED]),
            "causes": chance.choice([(), ("operator",)]),
            "control_level": chance.choice([ControlLevel.MANAGED, ControlLevel.OBSERVED]),
            "parent_id": chance.choice([None, *ids[:at]]),
            "last_action": "x",
        }
        changed = {name: fields[name] for name in chance.sample(sorted(fields), chance.randrange(1, 4))}
        state.put(had.changed(**changed) if chance.random() < 0.5 else replace(had, **changed))  # type: ignore[arg-type]
        rows = state.agents.values()
        live = [a for a in rows if a.state.is_live]
        assert state.live == {a.agent_id for a in live}
        assert state.held == {a.agent_id for a in live if a.control_level is not ControlLevel.OBSERVED}
        still = [a for a in rows if a.causes or a.state is AgentState.FROZEN or a.state_reason.startswith(NOT_CONFIRMED)]
        assert state.stilled == {a.agent_id for a in still}
        assert state.open_ends == {a.agent_id for a in rows if a.state is AgentState.LOST and a.state_reason == NOT_ANSWERED}
        assert all(a.agent_id in state.children[a.parent_id] for a in rows if a.parent_id is not None)
        assert sum(map(len, state.children.values())) == sum(a.parent_id is not None for a in rows)


def test_an_agent_is_changed_as_replace_would_and_by_no_other_name() -> None:
    assert ONE.changed(name="b", usage=Usage(1)) == replace(ONE, name="b", usage=Usage(1)) and ONE.name == "a"
    with pytest.raises(TypeError, match="nmae"):
        ONE.changed(nmae="b")
