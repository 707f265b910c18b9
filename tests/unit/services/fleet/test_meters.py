"""Burn and spend over the last minutes."""

from __future__ import annotations

import sys

import pytest

from console.services.fleet.meters import SLICE_S, SLICES, Meter, Meters


def test_burn_has_one_value_for_each_slice_oldest_first() -> None:
    meter = Meter()
    meter.add(1000.0, 1.0)
    meter.add(1000.0 + SLICE_S, 2.0)
    burn = meter.burn(1000.0 + SLICE_S)
    assert len(burn) == SLICES
    assert burn[-2:] == [1.0, 2.0]
    assert meter.rate(1000.0 + SLICE_S) == pytest.approx(3.0 * 12)


def test_old_spend_leaves_the_window() -> None:
    meter = Meter()
    meter.add(1000.0, 1.0)
    assert meter.burn(1000.0 + SLICE_S * (SLICES + 1)) == []
    assert meter.rate(99999.0) == 0


def test_today_begins_again_at_midnight() -> None:
    meters = Meters()
    meters.add("a", 86400.0 * 10 + 43200, 2.5)
    assert meters.spent_today(86400.0 * 10 + 43300) == 2.5
    assert meters.spent_today(86400.0 * 12) == 0


def test_what_a_restart_finds_of_today_counts_on() -> None:
    meters = Meters()
    meters.restore(86400.0 * 10 + 43200, 2.5)
    assert meters.spent_today(86400.0 * 10 + 43300) == 2.5
    meters.add("a", 86400.0 * 10 + 43400, 1.0)
    assert meters.spent_today(86400.0 * 10 + 43500) == 3.5 and meters.spent_today(86400.0 * 12) == 0


def test_what_is_only_seen_burns_and_counts_for_the_day_once() -> None:
    meters = Meters()
    meters.beside = lambda: 2.0
    meters.add("a1", 1000.0, 1.0)
    meters.add_seen("o-1", 1000.0, 0.5)
    assert meters.spent_today(1000.0) == 3.0  # 1 reported, 2 by transcripts, of which 0.5 just now
    assert sum(meters.by_agent["o-1"].burn(1000.0)) == 0.5
    assert meters.rate(1000.0, meters.by_agent.keys()) > meters.by_agent["a1"].rate(1000.0)


def test_what_was_spent_in_one_minute_is_no_average_of_five() -> None:
    meters = Meters()
    for second in range(60):
        meters.add("a", 1000.0 + second, 0.01)
    assert meters.rate(1060.0, {"a"}) == pytest.approx(36.0)
    assert meters.rate(1001.0, {"a"}) <= 36.0 * 2, "one answer at the start is no burn of an hour"
    again = Meters()
    again.add("a", 9000.0, 0.0)
    again.add("a", 100.0, 1.0)
    assert again.rate(160.0, {"a"}) == pytest.approx(60.0), "a clock that was set back"


def test_everything_is_the_sum_of_all() -> None:
    meters = Meters()
    for number in range(200):
        meters.add(f"a{number % 7}", 1000.0 + number, 0.25)
        meters.add_seen(f"o-{number % 5}", 1000.0 + number, 0.5)
    for at in (1199.0, 1250.0, 1400.0, 9999.0):
        young = 300.0 / min(300.0, at - 1000.0)
        assert meters.rate(at, meters.by_agent.keys()) == pytest.approx(young * sum(one.rate(at) for one in meters.by_agent.values()))
    assert meters.rate(1199.0, meters.by_agent.keys()) > 0 == meters.rate(9999.0, meters.by_agent.keys())


def test_what_ended_or_is_frozen_burns_nothing_and_burns_again_when_it_goes_on() -> None:
    meters = Meters()
    for name, cost in (("a", 1.0), ("b", 2.0)):
        meters.add(name, 1000.0, cost)
    both = meters.rate(1000.0, {"a", "b"})
    alone = meters.rate(1000.0, {"a"})
    assert alone == pytest.approx(both / 3) and meters.rate(1000.0, set()) == 0.0
    meters.add("b", 1001.0, 1.0)  # its last answer is priced after its end
    assert meters.rate(1001.0, {"a"}) == pytest.approx(alone) and meters.spent_today(1001.0) == 4.0
    assert meters.rate(1001.0, {"a", "b"}) == pytest.approx(alone * 4)


def test_a_meter_takes_the_same_room_however_long_it_counts_and_what_it_gave_is_shared() -> None:
    meter = Meter()

    def room() -> int:
        return sum(sys.getsizeof(getattr(series, slot)) for series in (meter.slices, meter.minutes) for slot in series.__slots__)

    meter.add(1000.0, 0.1)
    first = room()
    for number in range(1, 9000):
        meter.add(1000.0 + number, 0.1)
    assert room() == first
    old, new = meter.burn(9999.0), meter.burn(9999.0 + SLICE_S)
    assert all(a is b for a, b in zip(old[1:], new[:-1], strict=True)), "lists that are kept hold the same numbers"
    assert len(meter.per_minute(9999.0)) == 60 and sum(meter.per_minute(9999.0)) == pytest.approx(0.1 * 3580, rel=0.01)


def test_a_clock_that_was_set_back_begins_again_or_goes_on() -> None:
    meter = Meter()
    meter.add(100_000.0, 1.0)
    meter.add(100_000.0 - 2 * SLICE_S, 2.0)
    assert meter.burn(100_000.0)[-3:] == [2.0, 0.0, 1.0] and meter.burn(100_000.0 - 2 * SLICE_S)[-1] == 2.0
    meter.add(50_000.0, 4.0)
    assert meter.burn(50_000.0)[-1] == 4.0 and sum(meter.burn(50_000.0)) == 4.0 and meter.burn(100_000.0) == []
    meter.add(200_000.0, 8.0)
    assert meter.burn(200_000.0) == [0.0] * (SLICES - 1) + [8.0]


def test_of_agents_that_spent_nothing_for_an_hour_nothing_is_kept() -> None:
    meters = Meters()
    for number in range(50):
        meters.add(f"a{number}", 1000.0, 1.0)
    meters.add("b", 7000.0, 1.0)
    meters.add("c", 9000.0, 1.0)
    assert meters.by_agent.keys() == {"b", "c"} and meters.counted == {"b", "c"}
    assert meters.rate(9000.0, {"a1", "b", "c"}) == pytest.approx(12.0)
