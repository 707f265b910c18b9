"""Look-ups over trees."""

from __future__ import annotations

from console.domain import command as c
from console.domain.agent import AgentId, ContextId
from console.domain.network import NetworkMode, Sensitivity, mapping_of
from console.enforcement.state import EngineState
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
