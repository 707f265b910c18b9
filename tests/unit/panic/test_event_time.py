"""Which timestamps of input events are believed."""

from __future__ import annotations

import pytest

from console.panic.event_time import AHEAD_S, OLDEST_S, moment

WRAP_S = 2**32 / 1000


@pytest.mark.parametrize("now", [1000.0, 3_000_000.0, WRAP_S + 5.0, 3 * WRAP_S + 0.2])
@pytest.mark.parametrize("age", [0.0, 0.004, 1.67, 5.0, OLDEST_S - 1])
def test_a_moment_on_the_monotonic_clock_is_believed_also_after_the_32_bits_of_x11_have_wrapped(now: float, age: float) -> None:
    stamp = round((now - age) * 1000) % 2**32 or 1
    seen = moment(stamp, now)
    assert seen == pytest.approx(now - age, abs=0.002)


def test_one_of_64_bits_is_believed_as_it_is() -> None:
    now = WRAP_S + 100.0
    assert moment(round((now - 2) * 1000), now) == pytest.approx(now - 2)


def test_a_clock_that_runs_a_little_ahead_gives_now() -> None:
    assert moment(1_000_004, 1000.0) == 1000.0


@pytest.mark.parametrize("stamp", [0, -5, 1, 500, 1_000_000 + round(AHEAD_S * 1000) + 1, 1_000_000 - round(OLDEST_S * 1000) - 1, 2**40])
def test_zero_far_off_and_ahead_are_not(stamp: int) -> None:
    assert moment(stamp, 1000.0) is None


def test_qt_s_own_clock_since_the_start_of_the_program_is_not_taken_for_the_kernel_s() -> None:
    assert moment(61_000, 86_400.0) is None


def test_what_happened_before_the_thread_was_last_free_is_not_believed() -> None:
    assert moment(971_500, 1001.5, 1001.0) is None, "a clock that is 30 s behind ours"
    assert moment(1_000_990, 1001.5, 1001.0) is None and moment(1_001_000, 1001.5, 1001.0) == 1001.0
