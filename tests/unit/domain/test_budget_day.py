"""Which day a budget is charged to: no clock opens one early, or twice."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.domain.budget import SHORTEST_S, SLACK_S, Day, note, turned, until_midnight

NOON = time.mktime((2026, 11, 22, 12, 0, 0, 0, 0, -1))
DAY_S = 86_400.0


def test_the_first_day_is_today_until_its_midnight() -> None:
    day = turned(Day(), NOON, 1000.0, "b1")
    assert (day.date, day.ends_boot) == ("2026-11-22", 1000.0 + 12 * 3600)
    assert turned(day, NOON + 11 * 3600, 1000.0 + 11 * 3600, "b1") is day
    nxt = turned(day, NOON + 12 * 3600 + 1, 1000.0 + 12 * 3600 + 1, "b1")
    assert nxt.date == "2026-11-23"


def test_a_clock_set_back_never_opens_a_day_again() -> None:
    day = turned(turned(Day(), NOON, 0.0, "b1"), NOON + DAY_S, DAY_S, "b1")
    assert day.date == "2026-11-23"
    for back in (3600, 13 * 3600, 400 * DAY_S):
        assert turned(day, NOON + DAY_S - back, DAY_S + 5, "b1") is day
    assert turned(day, NOON, 5.0, "b2") is day, "nor over a boot of the machine"
    assert "no day opens twice" in note(day, NOON)


def test_a_clock_set_forward_opens_none_early() -> None:
    day = turned(Day(), NOON, 0.0, "b1")
    for ahead in (DAY_S, 30 * DAY_S, 4000 * DAY_S):
        assert turned(day, NOON + ahead, 60.0, "b1") is day
    assert "goes on until then" in note(day, NOON + DAY_S)
    assert turned(day, NOON + 30 * DAY_S, 12 * 3600 - SLACK_S + 1, "b1").date == "2026-12-22", "but at its own midnight it ends"


def test_a_clock_set_forward_again_and_again_gains_no_days() -> None:
    day, opened = turned(Day(), NOON, 0.0, "b1"), 1
    at, boot = NOON, 0.0
    for _ in range(500):
        at, boot = at + DAY_S, boot + 600.0  # every ten minutes the clock is set a day ahead
        now = turned(day, at, boot, "b1")
        opened, day = opened + (now.date != day.date), now
    assert opened <= 2 + boot / SHORTEST_S


def test_after_a_boot_the_calendar_is_believed_forward_alone() -> None:
    day = turned(Day(), NOON, 9e6, "b1")
    assert turned(day, NOON + DAY_S, 3.0, "b2").date == "2026-11-23"


def test_until_midnight_is_a_day_at_most_and_never_nothing() -> None:
    assert until_midnight(NOON) == 12 * 3600
    assert until_midnight(NOON + 12 * 3600) == pytest.approx(DAY_S)


@given(st.lists(st.tuples(st.floats(-1e8, 1e8), st.floats(0, 200_000), st.sampled_from(["b1", "b1", "b1", "b2"])), max_size=30))
def test_dates_only_ever_grow(steps: list[tuple[float, float, str]]) -> None:
    day, boot = turned(Day(), NOON, 0.0, "b1"), 0.0
    for ahead, passed, boot_id in steps:
        boot += passed
        now = turned(day, NOON + ahead, boot, boot_id)
        assert now.date >= day.date
        if now.date != day.date and boot_id == day.boot_id:
            assert boot >= day.ends_boot - SLACK_S
        day = now
