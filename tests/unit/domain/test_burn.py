"""Rates, ends and forecasts: no data is never zero, and no number divides by none."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.domain.budget import FAR_S, MINUTES, ends_in_s, forecast, idle_words, rate_per_h

amounts = st.lists(st.floats(0, 1e9), min_size=MINUTES, max_size=MINUTES)


def test_a_steady_use_is_its_own_rate() -> None:
    assert rate_per_h([1.0] * 60, 60.0) == pytest.approx(60.0)
    assert rate_per_h([0.0] * 59 + [0.5], 0.5) == pytest.approx(60.0)


def test_what_was_used_lately_weighs_more() -> None:
    early, late = [6.0] * 30 + [0.0] * 30, [0.0] * 30 + [6.0] * 30
    found = rate_per_h(late, 60.0), rate_per_h(early, 60.0)
    assert found[0] is not None and found[1] is not None and found[0] > 2 * found[1] > 0


@pytest.mark.parametrize("known", [0.0, 0.1, -5.0])
def test_of_a_moment_nothing_is_concluded(known: float) -> None:
    assert rate_per_h([5.0] * 60, known) is None
    assert forecast(1.0, [5.0] * 60, known, 3600) is None


def test_without_minutes_nothing_is_known() -> None:
    assert rate_per_h([], 60.0) is None


@pytest.mark.parametrize(
    ("known", "said"),
    [
        (60.0, "nothing was spent in the last hour"),
        (59.4, "nothing was spent in the last hour"),
        (7.9, "nothing was spent in 7 min"),
        (1.2, "nothing was spent in 1 min"),
        (0.9, "it was not measured for long enough"),
    ],
)
def test_what_was_not_looked_at_is_not_said_to_be_nothing(known: float, said: str) -> None:
    assert idle_words(known, "spent") == said


def test_an_end_is_named_only_where_there_is_one() -> None:
    assert ends_in_s(10.0, 4.0, 6.0) == 3600.0
    assert ends_in_s(10.0, 10.0, None) == 0.0
    assert ends_in_s(0.0, 0.0, None) == 0.0
    assert ends_in_s(0.3, 0.1 + 0.2, 1.0) == 0.0, "money is compared to a billionth"
    assert ends_in_s(10.0, 4.0, None) is None
    assert ends_in_s(10.0, 4.0, 0.0) is None
    assert ends_in_s(1e15, 0.0, 1e-9) is None


def test_a_forecast_has_a_band_that_holds_its_middle() -> None:
    seen = forecast(10.0, [1.0, 3.0] * 30, 60.0, 7200)
    assert seen is not None and seen.low <= seen.middle <= seen.high
    assert seen.middle == pytest.approx(10 + 2 * 120, rel=0.1)


@given(amounts, st.floats(0.25, 60), st.floats(0, 1e9), st.floats(0, 86_400))
def test_whatever_was_used_the_answers_are_finite_and_in_order(minutes: list[float], known: float, used: float, left: float) -> None:
    rate = rate_per_h(minutes, known)
    assert rate is not None and math.isfinite(rate) and rate >= 0
    seen = forecast(used, minutes, known, left)
    assert seen is not None and used <= seen.low + 1e-6 and seen.low <= seen.middle * (1 + 1e-9) <= seen.high * (1 + 1e-8)
    end = ends_in_s(1e9, used, rate)
    assert end is None or 0 <= end <= FAR_S
