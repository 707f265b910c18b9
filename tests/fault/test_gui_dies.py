"""Fault 15: a window that dies takes nothing with it. Before its press is answered or at any later moment the kill completes; in mid-hold
everything stays frozen, and that is said."""

from __future__ import annotations

import pytest

from console.domain.kill import StepName, StepStatus
from console.killswitch.client.guard_client import GuardClient
from tests.fakes.broken import Broken
from tests.fakes.instance import until
from tests.fakes.invariants import check_invariants, living
from tests.fakes.nursery import Nursery, Nursling
from tests.fault.conftest import Make, sparse

POINTS = {
    "before the press is answered": "kill.refuse",
    "in the middle of the signals": "kill.signal",
    "at zero": "kill.zero",
    "during the second look": "kill.second_look",
    "at the rotation": "rotate.begun",
}


def open_window(it: Broken, windows: Nursery) -> Nursling:
    return windows.run("tests.fakes.panic_driver", str(it.state_dir))


@pytest.mark.parametrize("moment", sparse(POINTS, ("before the press is answered", "at zero", "at the rotation")))
def test_a_window_that_dies_in_a_kill_takes_nothing_with_it(broken: Make, windows: Nursery, moment: str) -> None:
    it, point = broken(), POINTS[moment]
    it.start_guard()
    it.start()
    it.stubborn()
    arm, armed = (it.arm, it.armed) if point == "rotate.begun" else (it.arm_guard, it.armed_guard)
    arm(f"{point}:hang")
    window = open_window(it, windows)
    until(lambda: it.reached(armed) == point, words=f"{point} is reached")
    window.end()
    arm("")
    receipt = it.receipt_of()
    assert receipt.verified_zero and {s.name: s.status for s in receipt.steps}[StepName.ROTATE] is StepStatus.OK
    check_invariants(it.places, killed=True)
    # Another window finds it so.
    again = open_window(it, windows)
    until(lambda: "killed" in again.said().split(), words="it shows the kill")
    again.end()


def test_a_window_that_dies_while_it_holds_leaves_all_frozen_and_an_amber_notice(broken: Make, windows: Nursery) -> None:
    it = broken()
    it.start()
    agent = it.stubborn()
    client = GuardClient(it.places.guard_sock, timeout_s=90)
    window = open_window(it, windows)
    until(lambda: client.status()["frozen"].get(agent) == ["hold"], words="the hold froze it")
    window.end()
    until(lambda: [h["live"] for h in client.status()["holds"]] == [False], words="the guard saw it go")
    status = client.status()
    assert not status["latched"] and "neither released nor finished" in str(status["notices"])
    assert it.state_becomes(agent, "frozen").causes == ["hold"]
    until(lambda: "hold" in str(it.api.status().notices), words="every console says so")
    assert living(it.places)
    check_invariants(it.places, killed=False)
    client.call("let_go", hold_id=status["holds"][0]["hold_id"])
    it.state_becomes(agent, "running", "waiting")
    client.close()
