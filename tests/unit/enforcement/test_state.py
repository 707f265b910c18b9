"""Look-ups over trees."""

from __future__ import annotations

from console.domain.agent import AgentId
from console.domain.network import NetworkMode, Sensitivity
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
