"""Alerts: each of the six things once, with its facts, from what the engine and the followers decided."""

from __future__ import annotations

import json
import time
from dataclasses import replace

import pytest

from console.api.alerts import AlertView
from console.api.armed import ArmedView
from console.domain.agent import AgentId, ContextId
from console.domain.calls.approval import Approval
from console.domain.calls.permission import PermissionRequest
from console.domain.engine import command as c
from console.domain.engine import event as e
from console.domain.kill import Outcome, Receipt, Return, Step, StepName, StepStatus, Target
from console.services.alerts import raised
from console.services.alerts.raised import Alerts
from tests.fakes.daemons import alerts_into

HOSTILE = 'x"\r\nwebhook-id: 1\x1b[31m\u202e<b>\ud800'
OK = tuple(Step(name, StepStatus.OK, 1.0) for name in StepName)
DEAD = Target("a-1", "managed", Outcome.PROVEN_ZERO, 1.0)
RECEIPT = Receipt("k-1", "00c0ffee", "a-1", HOSTILE, "me", 1.0, steps=OK, targets=(DEAD,), complete=True, connections_state="recorded")


@pytest.fixture
def heard() -> list[AlertView]:
    return []


@pytest.fixture
def alerts(heard: list[AlertView]) -> Alerts:
    return alerts_into(heard)


def test_a_panic_is_raised_once_and_a_kill_of_one_agent_is_none(alerts: Alerts, heard: list[AlertView]) -> None:
    alerts.heard(e.KillStarted(1.0, 1.0, "k-1", (AgentId("a-1"),), "why", "me"))
    assert not heard
    for _ in range(2):
        alerts.heard(e.KillStarted(1.0, 1.0, "k-2", None, HOSTILE, "me"))
    (one,) = heard
    assert one.event == "panic" and one.id == "panic-k-2" and one.facts["reason"].startswith('x"\r\n')
    json.dumps(one.as_data()).encode("ascii")


def test_a_kill_that_is_confirmed_raises_nothing(alerts: Alerts, heard: list[AlertView]) -> None:
    alerts.heard(e.KillJudged(1.0, 1.0, replace(RECEIPT, complete=False)))
    alerts.heard(e.KillJudged(1.0, 1.0, RECEIPT))
    assert not heard


@pytest.mark.parametrize(
    ("outcome", "complete", "expected"),
    [
        (Outcome.NOT_PROVEN, False, 1),
        (Outcome.NOT_PROVEN, True, 1),
        (Outcome.BEST_EFFORT, False, 0),  # it may still become something else: it is raised when it is complete
        (Outcome.BEST_EFFORT, True, 1),
    ],
)
def test_a_kill_that_is_not_confirmed_is_raised_once(
    alerts: Alerts, heard: list[AlertView], outcome: Outcome, complete: bool, expected: int
) -> None:
    receipt = replace(RECEIPT, targets=(replace(DEAD, outcome=outcome),), complete=complete)
    for _ in range(2):
        alerts.heard(e.KillJudged(1.0, 1.0, receipt))
    assert len(heard) == expected
    for one in heard:
        assert one.event == "kill_not_confirmed" and one.facts["agents"] == [{"agent_id": "a-1", "name": "", "outcome": outcome.words}]
        assert one.facts["may_run"] is (outcome is Outcome.NOT_PROVEN)


def test_a_kill_that_has_no_proof_yet_raises_nothing(alerts: Alerts, heard: list[AlertView]) -> None:
    alerts.heard(e.KillJudged(1.0, 1.0, Receipt("k-1", "00c0ffee", "a-1", "why", "me", 1.0)))
    assert not heard


def test_a_limit_names_the_agents_and_says_whether_they_were_stopped(alerts: Alerts, heard: list[AlertView]) -> None:
    alerts.heard(c.HaltAgents(tuple(AgentId(f"a-{n}") for n in range(50)), "cost 2 of 2"))
    alerts.heard(c.Record("supervisor", "budget.over", "a-9: cost 3 of 2", agent_id="a-9"))
    alerts.heard(c.Record("supervisor", "budget.warned", "a-9", agent_id="a-9"))
    assert [(one.event, one.facts["stopped"], one.facts["agents_total"]) for one in heard] == [
        ("limit_reached", True, 50),
        ("limit_reached", False, 1),
    ]
    assert len(heard[0].facts["agents"]) == raised.NAMED


def test_a_new_request_is_raised_and_what_became_of_it_is_not(alerts: Alerts, heard: list[AlertView]) -> None:
    request = PermissionRequest("shell", "x" * 5000 + HOSTILE)
    until = time.clock_gettime(time.CLOCK_BOOTTIME) + 600
    asked = Approval("p-1", AgentId("a-1"), AgentId("a-1"), ContextId("c-1"), request, "d", "rule", HOSTILE, 1.0, until)
    alerts.heard(c.KeepApproval(asked, None))
    alerts.heard(c.KeepApproval(asked, asked.state))
    alerts.heard(c.ShowApproval(asked))
    (one,) = heard
    assert one.event == "approval_waiting" and one.facts["approval_id"] == "p-1" and len(one.facts["argument"]) == raised.TEXT
    assert 598 <= one.facts["denied_in_s"] <= 600


def test_each_process_that_came_back_is_raised_once(alerts: Alerts, heard: list[AlertView]) -> None:
    row = Return("a-1", "s-1", 10, 1, 1, "init", HOSTILE, 2.0, "marker", True, True, True, "why")
    for one in (row, row, replace(row, pid=11)):
        alerts.returned(RECEIPT, one)
    assert [(one.event, one.facts["pid"], one.facts["confirmed_dead"]) for one in heard] == [
        ("agent_came_back", 10, True),
        ("agent_came_back", 11, True),
    ]


def test_a_certain_return_makes_its_kill_one_that_is_not_confirmed(alerts: Alerts, heard: list[AlertView]) -> None:
    row = Return("a-1", "s-1", 10, 1, 1, "init", HOSTILE, 2.0, "marker", True, True, True, "why")
    alerts.returned(replace(RECEIPT, returns=(row,)), row)
    assert [one.event for one in heard] == ["agent_came_back", "kill_not_confirmed"]


def test_readiness_is_lost_after_some_seconds_of_doubt_and_again_only_after_it_was_back(
    alerts: Alerts, heard: list[AlertView], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.monotonic()

    def look(state: str, at_s: float) -> int:
        monkeypatch.setattr(time, "monotonic", lambda: now + at_s)
        alerts.light(ArmedView.read({"state": state, "why": ["local: the guard is gone"] * 30}))
        return len(heard)

    assert look("armed", 0) == look("in_doubt", 5) == look("in_doubt", 10) == look("armed", 12) == look("in_doubt", 15) == 0
    assert look("in_doubt", 25) == look("in_doubt", 300) == 1
    assert heard[0].event == "readiness_lost" and len(heard[0].facts["why"]) == raised.NAMED
    assert look("killed", 310) == look("in_doubt", 315) == 1  # while killed nothing is tested, so nothing is lost
    assert look("in_doubt", 330) == 2


def test_a_kill_switch_that_is_never_ready_after_a_start_is_lost_as_well(
    alerts: Alerts, heard: list[AlertView], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.monotonic()
    for at_s, expected in ((1, 0), (raised.START_S - 5, 0), (raised.START_S + 5, 1)):
        monkeypatch.setattr(time, "monotonic", lambda at_s=at_s: now + at_s)
        alerts.light(ArmedView(state="in_doubt", why=["local: no canary yet"]))
        assert len(heard) == expected, at_s
