"""Fields of a line that anybody may have sent."""

from __future__ import annotations

import pytest

from console.domain.errors import UsageProblem
from console.domain.guard import number, scope_of, text, whole, whole_list


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


@pytest.mark.parametrize("value", [None, 1, "12", [1.5], [True], ["1"], [1] * 65, [[1]]])
def test_a_list_of_numbers_is_short_and_whole(value: object) -> None:
    assert whole_list({}, "k") == () and whole_list({"k": [1, 2]}, "k") == (1, 2)
    with pytest.raises(UsageProblem):
        whole_list({"k": value}, "k")
