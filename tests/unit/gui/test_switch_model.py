"""The armed light and the verdict on a receipt: unknown is never green."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from console.api.messages import ReceiptRow
from console.domain.kill import Outcome, Step, StepName, StepStatus
from console.domain.verdict import verdict
from console.gui.models.switch import Switch, counts, in_order
from console.gui.pages.kill_switch.words import result_words
from console.gui.pages.receipt.head import headline, open_points
from console.panic.guard_state import GuardState
from tests.fakes.gui_fixture import kill_switch, mockup_agents, receipt

NOW = 1000.0


def armed() -> Switch:
    switch = Switch()
    switch.view, switch.heard_at = kill_switch(NOW), NOW
    switch.guard.take({"ok": True, "latched": False, "agents": 3, "kill": None})
    return switch


def test_armed_needs_supervisor_guard_and_fresh_news() -> None:
    assert armed().light(NOW)[0] == "armed"
    old = armed()
    assert old.light(NOW + 6)[0] == "unknown"
    silent = armed()
    silent.guard.alive = False
    assert silent.light(NOW)[0] == "in_doubt"
    nobody = Switch()
    assert nobody.light(NOW) == ("unknown", "No supervisor answers")


def test_armed_before_any_path_was_proven_is_doubt_wherever_the_light_is_shown() -> None:
    switch = armed()
    assert switch.view is not None
    switch.view = switch.view.replaced(paths=[])
    assert switch.light(NOW) == ("in_doubt", "Not ready · not tested yet")


@pytest.mark.parametrize("state", ["in_doubt", "killing", "killed"])
def test_the_supervisors_doubt_is_shown(state: str) -> None:
    switch = armed()
    assert switch.view is not None
    switch.view = switch.view.replaced(state=state, killed=state == "killed")
    assert switch.light(NOW)[0] == state


def test_a_latch_the_guard_alone_knows_counts() -> None:
    switch = armed()
    switch.guard.take({"latched": True, "kill": {"kill_id": "k", "phase": "killing", "proven": 1, "total": 4, "ms": 3}})
    assert switch.is_killed and switch.light(NOW) == ("killing", "Killing · 3 not confirmed yet")


@pytest.mark.parametrize(("latched", "kills"), [(False, []), (True, ["k-1"])])
def test_a_canary_is_not_a_kill_of_everything(latched: bool, kills: list[str]) -> None:
    guard = GuardState()
    guard.take({"latched": latched, "kills": kills, "kill": {"kill_id": "canary", "phase": "killing", "proven": 0, "total": 1, "ms": 1}})
    assert not guard.is_killing and guard.total == 0 and guard.kill_id == ""


@pytest.mark.parametrize("odd", [{}, {"latched": "no"}, {"latched": None, "kill": 7, "agents": "many", "notices": "x", "frozen": 3}])
def test_an_unreadable_status_reads_as_killed(odd: dict[str, Any]) -> None:
    guard = GuardState()
    guard.take(odd)
    assert guard.latched and guard.agents == 0 and guard.notices == []


def test_only_a_verified_zero_is_proven() -> None:
    agents = mockup_agents()[:20]
    good = receipt(agents, proven=True)
    assert verdict(good).is_confirmed and headline(good, GuardState()).kind == "proven"
    for bad in (
        receipt(agents, proven=False),
        replace(good, steps=tuple(s for s in good.steps if s.name is not StepName.ZERO), complete=True),
        replace(good, steps=tuple(Step(s.name, StepStatus.UNKNOWN, s.ms) if s.name is StepName.ZERO else s for s in good.steps)),
        replace(good, targets=(replace(good.targets[0], outcome=Outcome.DYING), *good.targets[1:])),
    ):
        assert not verdict(bad).is_confirmed
        assert headline(bad, GuardState()).kind == "doubt"


def test_what_is_open_is_named() -> None:
    bad = receipt(mockup_agents()[:20], proven=False)
    points = open_points(bad)
    assert points[0] == "licence-scan: pid 48213, state D, nfs_wait_bit_killable"
    assert "step Confirmed dead: failed · 1 not confirmed dead" in points
    assert counts(bad)[:2] == (19, 20)
    assert in_order(bad.targets)[0].outcome is Outcome.NOT_PROVEN


def test_a_receipt_on_its_way_is_neither_good_nor_bad() -> None:
    guard = GuardState(alive=True, latched=True, proven=3, total=9)
    assert headline(None, guard).text == "3 of 9 confirmed dead so far"
    half = replace(receipt(mockup_agents()[:5], proven=True), steps=(), complete=False)
    assert headline(half, guard).kind == "running"


def row(**more: Any) -> ReceiptRow:
    base = {"kill_id": "k", "pressed_at": 0, "scope": "all", "reason": "r", "by": "o", "verified_zero": True, "complete": True}
    return ReceiptRow.read({**base, "proven": 5, "targets": 5, "best_effort": 0, "ms_total": 1, "exit_code": 0, **more})


def test_earlier_kills_get_a_tick_only_when_nothing_is_open() -> None:
    assert result_words(row())[1:] == ("check", "text2")
    for doubtful in (
        row(verified_zero=False, exit_code=9, proven=4),
        row(best_effort=1, targets=6, exit_code=8),
        row(bad_steps=["rotate"], exit_code=7),
        row(complete=False),
    ):
        assert result_words(doubtful)[2] == "warn"
