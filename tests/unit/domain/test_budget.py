"""Limits, usage and breaches: arithmetic that trusts no number."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.domain.budget import (
    LIMIT_NAMES,
    MAX_COST_USD,
    MAX_COUNT,
    Breach,
    Limits,
    Usage,
    checked_increment,
    first_breach,
    parse_limit,
    parse_limits,
    share_used,
    with_limit,
)
from console.domain.errors import UsageProblem


def test_a_sum_adds_counts_and_takes_the_longer_wall_time() -> None:
    both = Usage(1, 2, 30.0, 4, 0.5).plus(Usage(10, 20, 3.0, 40, 0.25))
    assert both == Usage(11, 22, 30.0, 44, 0.75)


def test_no_cap_no_breach() -> None:
    assert first_breach(Usage(10**9, 10**9, 1e9, 10**9, 1e9), Limits(), "agent") is None


@pytest.mark.parametrize("name", LIMIT_NAMES)
def test_reaching_a_cap_is_a_breach_and_staying_below_is_none(name: str) -> None:
    limits = Limits(**{name: 5})
    assert first_breach(Usage(**{name: 4}), limits, "tree") is None
    breach = first_breach(Usage(**{name: 5}), limits, "tree")
    assert breach == Breach(name, 5.0, 5.0, "tree")


def test_a_cap_of_zero_is_hit_at_birth() -> None:
    assert first_breach(Usage(), Limits(tool_calls=0), "agent") is not None
    assert share_used(Usage(), Limits(tool_calls=0)) == 1.0


def test_a_breach_speaks() -> None:
    assert Breach("cost_usd", 2.51, 2.5, "agent").words() == "agent limit cost_usd: 2.51 of 2.5"


def test_the_share_is_that_of_the_nearest_cap() -> None:
    assert share_used(Usage(tokens=50, cost_usd=1.5), Limits(tokens=100, cost_usd=2.0)) == 0.75
    assert share_used(Usage(tokens=50), Limits()) == 0.0


@pytest.mark.parametrize(
    ("text", "field", "value"),
    [("cost=2.50", "cost_usd", 2.5), ("wall=60", "wall_s", 60), ("tool-calls=3", "tool_calls", 3), ("tokens=0", "tokens", 0)],
)
def test_limits_are_read_from_words(text: str, field: str, value: float) -> None:
    assert parse_limit(text) == (field, value)


@pytest.mark.parametrize("text", ["", "cost", "cost=", "cost=x", "cost=nan", "cost=inf", "cost=-1", "price=1", "=1", "__class__=1"])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(UsageProblem) as caught:
        parse_limit(text)
    assert caught.value.remedy


def test_several_limits_are_read_and_none_twice() -> None:
    assert parse_limits(["cost=2", "wall=60"]) == {"cost_usd": 2.0, "wall_s": 60.0}
    with pytest.raises(UsageProblem, match="twice"):
        parse_limits(["tool-calls=3", "tool_calls=4"])


@pytest.mark.parametrize(("text", "said"), [("foo=3", "There is no limit 'foo'"), ("cost", "'cost' is not NAME=VALUE")])
def test_a_wrong_name_and_a_missing_value_are_told_apart(text: str, said: str) -> None:
    with pytest.raises(UsageProblem, match=said):
        parse_limit(text)


def test_whole_number_limits_are_rounded_down() -> None:
    assert with_limit(Limits(), "tokens", 9.9) == Limits(tokens=9)
    assert with_limit(Limits(), "cost_usd", 9.9) == Limits(cost_usd=9.9)
    assert with_limit(Limits(tokens=1), "wall_s", 0.5) == Limits(tokens=1, wall_s=0.5)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, -1, -0.01, True, "1", None, [1], MAX_COUNT + 1, 10**400, 1.5])
def test_absurd_reports_are_refused(value: object) -> None:
    with pytest.raises(UsageProblem, match="tokens"):
        checked_increment("tokens", value)


def test_cost_may_be_a_fraction_but_not_absurd() -> None:
    assert checked_increment("cost_usd", 0.001) == 0.001
    with pytest.raises(UsageProblem):
        checked_increment("cost_usd", MAX_COST_USD * 2)


@given(st.integers(min_value=0, max_value=MAX_COUNT))
def test_a_plain_count_passes_unchanged(value: int) -> None:
    assert checked_increment("tokens", value) == value


@given(st.integers(0, 10**6), st.integers(0, 10**6), st.integers(1, 10**6))
def test_usage_only_brings_a_breach_nearer(before: int, more: int, cap: int) -> None:
    limits = Limits(tokens=cap)
    if first_breach(Usage(tokens=before), limits, "agent"):
        assert first_breach(Usage(tokens=before + more), limits, "agent")
    assert share_used(Usage(tokens=before + more), limits) >= share_used(Usage(tokens=before), limits)
