"""Fields of a message, and what a line may hold."""

from __future__ import annotations

import json
from typing import Any

import pytest

from console.domain.errors import UsageProblem
from console.domain.guard import LINE_LIMIT
from console.killswitch.desk import _fit, number, scope_of, text, whole


@pytest.mark.parametrize("value", [None, 1, [], "x" * 501])
def test_texts_are_bounded(value: object) -> None:
    with pytest.raises(UsageProblem):
        text({"k": value}, "k")


@pytest.mark.parametrize("value", [None, "1", True, float("nan"), float("inf"), -float("inf"), 1e300, [1]])
def test_numbers_are_finite(value: object) -> None:
    with pytest.raises(UsageProblem):
        number({"k": value}, "k")
    with pytest.raises(UsageProblem):
        whole({"k": value}, "k")


@pytest.mark.parametrize("scope", [None, "", "ALL", [], [1], ["x" * 64], {"all": 1}, [""]])
def test_an_unclear_scope_presses_nothing(scope: object) -> None:
    with pytest.raises(UsageProblem):
        scope_of({"scope": scope})


def test_scopes() -> None:
    assert scope_of({"scope": "all"}) == "all" and scope_of({"scope": ["a", "b"]}) == ["a", "b"]


def test_a_status_is_cut_to_a_line() -> None:
    answer: dict[str, Any] = {
        "frozen": {f"a{n}": ["operator"] * 8 for n in range(500)},
        "kills": ["k" * 22] * 100,
        "notices": ["n" * 300] * 9,
        "holds": [{"h": "x" * 40}] * 30,
    }
    assert len(json.dumps(_fit(answer))) < LINE_LIMIT
