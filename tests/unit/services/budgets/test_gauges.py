"""Gauges: no cap has no share, no data has no end, nothing divides by none."""

from __future__ import annotations

import pytest

from console.domain.budget import Limits, Usage
from console.services.budgets.gauges import SHOWN, Facts, gauge, gauges, nearest


def facts(limits: Limits, usage: Usage = Usage(), **more: object) -> Facts:  # noqa: B008 - a value
    return Facts(usage, limits, **more)  # type: ignore[arg-type]


def test_every_limit_has_a_gauge_and_those_without_a_cap_no_share() -> None:
    found = gauges(facts(Limits(), Usage(tokens=5)))
    assert [g.limit for g in found] == list(SHOWN) and all(g.share is None and g.ends_in_s is None for g in found)
    assert next(g.used for g in found if g.limit == "tokens") == 5


def test_what_is_set_aside_counts_and_a_cap_of_nothing_is_full() -> None:
    one = gauge(facts(Limits(tool_calls=10), Usage(tool_calls=9), held=Usage(tool_calls=1)), "tool_calls")
    assert (one.used, one.held, one.share) == (9, 1, 1.0)
    zero = gauge(facts(Limits(tokens=0)), "tokens")
    assert (zero.share, zero.ends_in_s) == (1.0, 0.0)


def test_the_end_is_known_from_the_rate_or_said_to_be_unknown() -> None:
    steady = facts(Limits(tokens=700), Usage(tokens=100), minutes=lambda _: [10.0] * 60, known_min=60.0)
    end = gauge(steady, "tokens").ends_in_s
    assert end is not None and abs(end - 3600) < 1
    idle = [gauge(facts(Limits(tokens=700), Usage(tokens=100), known_min=known), "tokens").why for known in (60.0, 7.5)]
    assert idle == ["unknown: nothing was used in the last hour", "unknown: nothing was used in 7 min"]
    young = facts(Limits(tokens=700), Usage(tokens=100), minutes=lambda _: [0.0] * 59 + [100.0], known_min=0.1)
    assert gauge(young, "tokens").why.startswith("unknown: it was not measured")
    assert gauge(facts(Limits(cpu_s=10.0), Usage(cpu_s=5.0, wall_s=100.0)), "cpu_s").ends_in_s == 100.0
    assert gauge(facts(Limits(cpu_s=10.0), Usage(cpu_s=5.0)), "cpu_s").why.startswith("unknown")


def test_steps_and_what_is_over_have_no_end() -> None:
    assert gauge(facts(Limits(step_s=60.0), Usage(step_s=30.0)), "step_s").share == 0.5
    assert "starts again" in gauge(facts(Limits(step_s=60.0)), "step_s").why
    assert gauge(facts(Limits(wall_s=60.0), live=False), "wall_s").why == "nothing of it runs"


def test_the_nearest_is_what_ends_first_and_the_share_the_largest() -> None:
    both = facts(Limits(wall_s=100.0, tokens=10), Usage(wall_s=10.0, tokens=9))
    near = nearest((both,))
    assert (near.ends_in_s, near.limit, near.share) == (90.0, "wall_s", 0.9)
    assert nearest((facts(Limits()),)).why == "no limit is set"


def test_a_day_that_is_over_before_its_limit_has_no_end_of_it() -> None:
    spending = {"minutes": lambda _name: [0.1] * 10, "known_min": 10.0}
    limits, usage = Limits(cost_usd=40.0), Usage(cost_usd=10.0)
    assert gauge(facts(limits, usage, **spending), "cost_usd").ends_in_s == pytest.approx(18_000)
    today = gauge(facts(limits, usage, over_in_s=17_000.0, **spending), "cost_usd")
    assert (today.ends_in_s, today.why) == (None, "not today at this rate")
