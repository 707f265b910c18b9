"""Counters: differences and sums, exports that come again, programs that begin anew, figures that decrease."""

from __future__ import annotations

from typing import Any

import pytest

from console.sources.telemetry.items import CUMULATIVE, DELTA, Item
from console.sources.telemetry.sums import SERIES_MAX, Refused, Sums


def point(value: Any, at: Any, start: Any = 1, how: int = DELTA, name: str = "cost", **said: str) -> Item:
    return Item("metrics", name, said, value=value, start=start, at=at, temporality=how)


def test_differences_add_up_and_an_export_that_comes_again_is_none() -> None:
    sums = Sums()
    for one in (point(0.5, 10), point(0.5, 10), point(0.25, "20", start="10"), point(0.25, 20), point(9.0, 5)):
        sums.cost(one)
    sums.cost(point(1.0, 20, model="other"))
    assert sums.usage().cost_usd == 1.75


def test_sums_count_by_how_much_they_grew_and_a_program_that_began_anew_counts_from_nothing() -> None:
    sums = Sums()
    for one in (point(1.0, 10, how=CUMULATIVE), point(3.0, 20, how=CUMULATIVE), point(3.0, 20, how=CUMULATIVE)):
        sums.cost(one)
    sums.cost(point(0.5, 40, start=30, how=CUMULATIVE))
    sums.cost(point(9.0, 50, start=1, how=CUMULATIVE))  # of the run before
    assert sums.usage().cost_usd == 3.5


def test_a_counter_that_decreases_is_refused_and_nothing_is_lost() -> None:
    sums = Sums()
    sums.cost(point(3.0, 10, how=CUMULATIVE))
    with pytest.raises(Refused, match="decreases"):
        sums.cost(point(2.0, 20, how=CUMULATIVE))
    sums.cost(point(4.0, 30, how=CUMULATIVE))
    assert sums.usage().cost_usd == 4.0


@pytest.mark.parametrize("value", [-1, "NaN", "Infinity", float("inf"), float("nan"), 1e300, None, "", True, "0x5"])
def test_values_that_no_counter_has_are_refused(value: object) -> None:
    with pytest.raises(Refused):
        Sums().cost(point(value, 10))


@pytest.mark.parametrize("at", [-1, "x", 2**64, float("nan"), float("inf"), "1e5"])
def test_times_that_no_clock_shows_are_refused(at: object) -> None:
    with pytest.raises(Refused):
        Sums().cost(point(1.0, at))


def test_a_counter_that_says_neither_sum_nor_difference_is_refused() -> None:
    with pytest.raises(Refused, match="does not say"):
        Sums().cost(point(1.0, 10, how=0))


def test_kinds_of_tokens_add_up_and_unknown_kinds_are_left_out() -> None:
    sums = Sums()
    for kind in ("input", "output", "cacheRead", "cacheCreation", "wishes"):
        sums.tokens(point(10, 10, type=kind))
    assert sums.usage().tokens == 40


def test_counters_of_one_session_are_bounded() -> None:
    sums = Sums()
    for n in range(SERIES_MAX):
        sums.cost(point(0.001, 10, model=f"m{n}"))
    with pytest.raises(Refused, match="counters of one session"):
        sums.cost(point(1.0, 10, model="one more"))


def test_events_and_counters_tell_the_same_money_so_the_larger_holds() -> None:
    sums = Sums()
    sums.events.add(answers=3, tokens=100, nano=2 * 10**9)
    sums.cost(point(1.5, 10))
    assert sums.usage().cost_usd == 2.0 and sums.usage().iterations == 3
