"""Scopes: strict ids, and words for the record."""

from __future__ import annotations

import pytest

from console.domain.errors import UsageProblem
from console.domain.ladder import Reach, Rung, Scope

HOSTILE = ["", "../x", "a b", "A", "x" * 64, "a\n", "é", "-a", "a'; drop", "a\0", "%2e%2e", "all\u202e"]


@pytest.mark.parametrize("reach", [Reach.AGENT, Reach.TREE, Reach.SESSION])
@pytest.mark.parametrize("target", HOSTILE)
def test_what_is_no_id_is_refused(reach: Reach, target: str) -> None:
    with pytest.raises(UsageProblem):
        Scope(reach, target).check()


@pytest.mark.parametrize("reach", [Reach.HOST, Reach.ALL])
def test_everything_takes_no_id(reach: Reach) -> None:
    Scope(reach).check()
    assert Scope(reach).is_everything
    with pytest.raises(UsageProblem):
        Scope(reach, "a-1").check()


def test_good_ids_pass_and_every_scope_has_words() -> None:
    for reach in (Reach.AGENT, Reach.TREE, Reach.SESSION):
        scope = Scope(reach, "a-1")
        scope.check()
        assert "a-1" in scope.words()
        assert not scope.is_everything
    assert len({Scope(reach, "x").words() for reach in Reach}) == len(Reach)


def test_every_rung_but_the_kill_has_a_way_back() -> None:
    assert {r: r.undone_by for r in Rung if r.undone_by} == {Rung.FREEZE: "thaw", Rung.ISOLATE: "reconnect"}
