"""Which limits hold for a node."""

from __future__ import annotations

from console.domain.budget import UNCAPPED, Limits
from console.enforcement.state import EVERY_DAY, BudgetState


def test_what_was_set_holds_else_what_the_settings_say_else_nothing() -> None:
    state = BudgetState(defaults={"session": Limits(cost_usd=5.0), "day": Limits(cost_usd=600.0)})
    assert state.of("session", "x") == Limits(cost_usd=5.0) and state.of("project", "x") == UNCAPPED
    state.limits[("session", "x")] = Limits(tokens=1)
    assert state.of("session", "x") == Limits(tokens=1) and state.of("session", "y") == Limits(cost_usd=5.0)
    assert state.of("day", "2026-11-22") == Limits(cost_usd=600.0)
    state.limits[EVERY_DAY] = Limits(cost_usd=900.0)
    assert state.of("day", "2026-11-23") == Limits(cost_usd=900.0)
