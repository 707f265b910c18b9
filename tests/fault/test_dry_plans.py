"""A supervisor that dies while a call of an approved plan is let through: the call is made once or not at all, never twice."""

from __future__ import annotations

import signal
from contextlib import suppress

import pytest

from console.api.policy.dry_run import PlanBody
from console.domain.errors import ConsoleError
from tests.fakes.instance import until
from tests.fakes.invariants import check_invariants
from tests.fault.conftest import Make, sparse

ASKER = """import os, sys, time; sys.path.insert(0, os.environ['WATCHFLOOR_TOYS']); import client; agent = client.Agent()
while True:
    try:
        v = agent.permission("write_file", "f.txt")
        print("answer", v["verdict"], v["rule"], flush=True)
        time.sleep(0.2)
    except client.Refused: time.sleep(0.1)
"""
POINTS = ["plan.used", "act.recorded", "ledger.commit", "ledger.committed", "snapshot.recorded", "snapshot.audited"]


@pytest.mark.parametrize("point", sparse(POINTS, ("plan.used",)))
def test_a_supervisor_that_dies_there_lets_an_approved_call_through_at_most_once(broken: Make, point: str) -> None:
    it = broken()
    it.start()
    it.places.policy_file.write_text('{"permissions": {"allow": ["file(write:${WORKSPACE}/**)"]}}')
    agent = it.launch("python3", "-c", ASKER, dry_run=True)
    until(lambda: "answer deny dry run" in it.output(agent), words="it is planned")
    plan = it.api.plans(agent).plans[0]
    # Frozen while the plan is approved, so that the fault meets the call and not the approval.
    it.api.freeze(agent)
    it.api.decide_plan(PlanBody(plan=plan.id, sha256=plan.sha256, verdict="approve", reason="as shown"))
    it.arm(f"{point}:kill")
    with suppress(ConsoleError):
        it.api.thaw(agent)
    assert it.supervisor is not None
    assert it.supervisor.wait() == -signal.SIGKILL and it.reached()
    it.supervisor = None
    it.arm("")
    it.start()
    with suppress(ConsoleError):
        it.api.thaw(agent)
    before = it.output(agent).count("answer deny dry run")
    until(lambda: it.output(agent).count("answer deny dry run") > before + 2, words="it asks on, in dry-run")
    assert it.output(agent).count("answer allow") <= 1
    used = [call.state for call in it.api.plans(agent).plans[-1].calls]
    assert used in (["used"], ["planned"]) and (used == ["used"] or "answer allow" not in it.output(agent))
    assert next(a for a in it.api.fleet().agents if a.id == agent).dry_run
    check_invariants(it.places, killed=False)
