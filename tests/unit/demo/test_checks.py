"""What the demo claims is judged from what was seen; unknown is never held."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from console.api.messages import AgentView, EgressView, FleetView
from console.api.records import AuditVerdict
from console.demo import checks as demo_checks
from console.demo import fleet as demo_fleet
from console.demo import web as demo_web
from console.demo.checks import AfterPress, BeforePress, Promise, Verdict
from console.domain.errors import ExitCode
from console.domain.kill import Outcome, Receipt, Step, StepName, StepStatus, Survivor, Target
from console.domain.verdict import verdict


def agent(name: str, depth: int, **more: Any) -> AgentView:
    return AgentView(id=f"id-{name}", name=name, depth=depth, **more)


def egress(host: str, allowed: bool, status: int) -> EgressView:
    return EgressView(at=1.0, agent_id="a", method="GET", host=host, path="/guide", status=status, allowed=allowed)


AGENTS = [
    *(agent(name, 1) for name in demo_fleet.ROOTS),
    agent(demo_fleet.SPENDER, 3, state="halted", state_reason="agent limit cost_usd: 0.4 of 0.4", cost_usd=0.4),
    *(
        agent(name, 2, sandbox="docker", control_level="contained", network_mode=mode, network_enforced=True)
        for name, mode in zip(demo_fleet.BOXES, ("FULL", "PROXIED", "NONE"), strict=True)
    ),
]
BEFORE = BeforePress(
    fleet=FleetView(agents=AGENTS),
    egress=[egress(demo_web.ALLOWED, True, 200), egress(f"{demo_web.FORBIDDEN}:80", False, 403)],
    arrived=[(demo_web.ALLOWED, "/guide")],
    no_network="",
    boxes={name: f"id-{name}" for name in demo_fleet.BOXES},
    rollback=3,
    refused_depth=True,
)
TARGET = Target("a", "managed", Outcome.PROVEN_ZERO, 3.0)
CHECKS = tuple(Step(name, StepStatus.OK, 1.0) for name in (StepName.ZERO, StepName.SECOND_LOOK))
RECEIPT = Receipt("k-1", "0a0a0a0a", "all", "demo", "me", 1.0, steps=CHECKS, targets=(TARGET,), complete=True, ms_total=40.0)
OBEYED = replace(RECEIPT, kill_id="k-2", order="7:sha256:aa")
AFTER = AfterPress(
    receipt=RECEIPT,
    escaper=Target("e", "managed", Outcome.PROVEN_ZERO, 3.0, {"pids_before": [{}, {}, {}, {}]}),
    watched=30,
    left_running=[],
    other=OBEYED,
    other_left=[],
    remote="",
    restart_refused="Everything was stopped",
    audit=AuditVerdict(whole=True, records=40),
)


def without(name: str) -> FleetView:
    return FleetView(agents=[a for a in AGENTS if a.name != name])


def changed(name: str, **changes: Any) -> FleetView:
    return FleetView(agents=[a.replaced(**changes) if a.name == name else a for a in AGENTS])


def verdicts(promises: list[Promise]) -> list[Verdict]:
    return [promise.verdict for promise in promises]


def test_all_holds_when_all_was_seen() -> None:
    assert set(verdicts(demo_checks.before_press(BEFORE))) == {Verdict.HELD}
    assert set(verdicts(demo_checks.after_press(AFTER))) == {Verdict.HELD}


@pytest.mark.parametrize(
    "changes",
    [
        {"fleet": without(demo_fleet.ROOTS[2])},
        {"fleet": without(demo_fleet.SPENDER)},
        {"fleet": changed(demo_fleet.SPENDER, state="running")},
        {"fleet": FleetView(agents=[*AGENTS, agent("four", 4)])},
        {"refused_depth": False},
        {"rollback": 0},
        {"fleet": changed("box-none", network_mode="PROXIED")},
        {"fleet": changed("box-none", network_enforced=False)},
        {"fleet": changed("box-full", control_level="managed")},
        {"fleet": changed("box-full", state="failed")},
        {"egress": []},
        {"egress": [egress(demo_web.ALLOWED, True, 200)]},
        {"egress": [egress(demo_web.ALLOWED, True, 503), egress(demo_web.FORBIDDEN, False, 403)]},
        {"egress": [*BEFORE.egress, egress(demo_web.FORBIDDEN, True, 200)]},
        {"arrived": []},
        {"arrived": [(demo_web.ALLOWED, "/"), (demo_web.FORBIDDEN, "/")]},
    ],
)
def test_before_the_press_each_claim_fails_on_its_own(changes: dict[str, Any]) -> None:
    assert Verdict.NOT_HELD in verdicts(demo_checks.before_press(replace(BEFORE, **changes)))


@pytest.mark.parametrize(
    "changes",
    [
        {"receipt": None},
        {"receipt": replace(RECEIPT, steps=())},
        {"receipt": replace(RECEIPT, targets=())},
        {"receipt": replace(RECEIPT, survivors=(Survivor("a", 1, "D", "", "", ""),))},
        {"left_running": ["process 7 (python3)"]},
        {"watched": 0},
        {"escaper": None},
        {"escaper": replace(TARGET, evidence={"pids_before": [{}, {}]})},
        {"escaper": Target("e", "managed", Outcome.DYING, 3.0, {"pids_before": [{}, {}, {}, {}]})},
        {"other": None},
        {"other": RECEIPT},
        {"other": replace(OBEYED, steps=())},
        {"other": replace(OBEYED, targets=())},
        {"other_left": ["process 9 (python3)"]},
        {"restart_refused": ""},
        {"audit": None},
        {"audit": AuditVerdict(whole=False, records=40, why="record 3")},
        {"audit": AuditVerdict(whole=True, records=0)},
    ],
)
def test_after_the_press_each_claim_fails_on_its_own(changes: dict[str, Any]) -> None:
    assert verdicts(demo_checks.after_press(replace(AFTER, **changes))).count(Verdict.NOT_HELD) == 1


def test_full_needs_no_enforcement() -> None:
    seen = replace(BEFORE, fleet=changed("box-full", network_enforced=False))
    assert set(verdicts(demo_checks.before_press(seen))) == {Verdict.HELD}


def test_what_could_not_be_shown_is_said_and_not_held() -> None:
    no_network = demo_checks.before_press(replace(BEFORE, no_network="Envoy is not available, because x", arrived=None))
    assert verdicts(no_network).count(Verdict.NOT_SHOWN) == 1
    no_boxes = demo_checks.before_press(replace(BEFORE, boxes=dict.fromkeys(demo_fleet.BOXES, "docker: no engine")))
    assert verdicts(no_boxes).count(Verdict.NOT_SHOWN) == 3
    alone = demo_checks.after_press(replace(AFTER, other=None, remote="no stand-in"))
    assert verdicts(alone).count(Verdict.NOT_SHOWN) == 1


def test_the_exit_code_names_the_worst() -> None:
    held, not_held, not_shown = (Promise("p", verdict, "") for verdict in Verdict)
    assert demo_checks.exit_code([held], RECEIPT) is ExitCode.DONE
    assert demo_checks.exit_code([held, not_shown], RECEIPT) is ExitCode.LATER_STEP
    assert demo_checks.exit_code([held, not_shown, not_held], RECEIPT) is ExitCode.FAILURE
    open_step = replace(RECEIPT, complete=False)
    assert demo_checks.exit_code([held], open_step) is ExitCode.LATER_STEP
    best_effort = replace(RECEIPT, targets=(TARGET, Target("o", "observed", Outcome.BEST_EFFORT, None)))
    assert demo_checks.exit_code([held, not_shown], best_effort) is ExitCode.BEST_EFFORT
    unrecorded = replace(RECEIPT, connections_state="not recorded")
    assert verdict(unrecorded).exit_code is ExitCode.BEST_EFFORT
    assert demo_checks.exit_code([held], unrecorded) is ExitCode.DONE, "the receipt says it, and no promise is broken by it"
    assert demo_checks.exit_code([not_held], None) is ExitCode.NOT_PROVEN
    assert demo_checks.exit_code([held], replace(RECEIPT, steps=())) is ExitCode.NOT_PROVEN
