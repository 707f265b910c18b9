"""Plans on disk: approved only as shown, each call used once, nothing let through that was changed, expired, or of another boot."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sqlalchemy import text

from console.domain.calls.approval import AskedPart, digest_of
from console.domain.calls.lineage import Mark
from console.domain.calls.permission import PermissionRequest
from console.domain.engine.dry_run import CALLS_MAX, CallState, Plan, PlannedCall, PlanState, Release, plan_digest
from console.ledger.dry_plans import CHANGED
from console.ledger.store import Ledger

BOOT = "boot-1"


def call(argument: str = "x", agent: str = "a", **fields: object) -> PlannedCall:
    request = PermissionRequest("run", argument, "/w", "{}", "\u202ehostile\udc80")
    parts = (AskedPart("x", "allow", "r", "program", "why"),)
    preview = (("files", "none", "plain"), ("cost", "$0", "plain"))
    marks = (Mark("p", "s", "v", agent, "c", "r", 1.5, "t"),)
    made = PlannedCall(
        0, agent, "c", request, digest_of(request, agent, "c"), "allow", "r", "why", "allow", "words", parts, preview, 10.1, marks
    )
    return replace(made, **fields)  # type: ignore[arg-type]


def planned(ledger: Ledger, *calls: PlannedCall, head: str = "a", name: str = "p-1") -> Plan:
    for one in calls or (call(),):
        ledger.add_planned(name, head, one)
    found = ledger.plan(name)
    assert found is not None
    return found


def approved(ledger: Ledger, plan: Plan, boot: str = BOOT) -> str:
    return ledger.approve_plan(
        replace(plan, sha256=plan_digest(plan), decided_by="operator:0", decided_at=20.0, expires_boot=700.0, words="ok"), boot
    )


def release(plan: Plan, number: int = 0) -> Release:
    one = plan.calls[number]
    return Release(plan.plan_id, plan.head, one.seq, one.agent_id, one.digest, "allow", "r", "operator:0", 700.0)


def test_what_was_planned_reads_back_as_it_was_in_order(ledger: Ledger) -> None:
    plan = planned(ledger, call("x"), call("y"))
    assert plan.calls == (call("x", seq=1), call("y", seq=2)) and plan.state is PlanState.OPEN
    assert ledger.plans_of("a") == [plan] and ledger.plan("p-9") is None and ledger.open_plans(BOOT) == [plan]


def test_the_same_request_again_is_one_line_and_what_was_found_last_holds(ledger: Ledger) -> None:
    plan = planned(ledger)
    sha = plan_digest(plan)
    assert ledger.add_planned("p-2", "a", call(at=99.0, preview=(("files", "none", "plain"), ("cost", "$9", "plain")))) == ("p-1", 1)
    again = ledger.plan("p-1")
    assert again is not None and again.calls[0].times == 2 and plan_digest(again) == sha
    ledger.add_planned("p-2", "a", call(outcome="deny", state=CallState.REFUSED))
    changed = ledger.plan("p-1")
    assert changed is not None and [(x.seq, x.times, x.state) for x in changed.calls] == [(1, 3, CallState.REFUSED)]
    assert plan_digest(changed) != sha


def test_it_is_approved_only_as_it_was_shown_and_only_once(ledger: Ledger) -> None:
    plan = planned(ledger)
    ledger.add_planned("p-2", "a", call("later"))
    assert "not the one that was shown" in approved(ledger, plan)
    now = ledger.plan("p-1")
    assert now is not None and approved(ledger, now) == "" and approved(ledger, now) == "it is approved"
    assert ledger.add_planned("p-2", "a", call("after")) == ("p-2", 1), "what comes after is another plan"


def test_each_call_is_used_once_and_then_the_plan_is_done(ledger: Ledger) -> None:
    plan = planned(ledger, call("x"), call("y"), call("z", state=CallState.REFUSED))
    assert ledger.use_release(release(plan), 1.0, BOOT) == "its plan is not approved any more"
    approved(ledger, plan)
    assert ledger.use_release(release(plan), 1.0, BOOT) == "" and ledger.use_release(release(plan), 1.0, BOOT) == "it was made already"
    assert ledger.use_release(release(plan, 2), 1.0, BOOT) == "it was made already", "what would have been denied was never approved"
    assert ledger.use_release(replace(release(plan, 1), agent_id="b"), 1.0, BOOT) == "it was made already"
    assert ledger.use_release(release(plan, 1), 1.0, BOOT) == ""
    assert (found := ledger.plan("p-1")) is not None and found.state is PlanState.DONE


@pytest.mark.parametrize(("boot_s", "boot"), [(700.0, BOOT), (1.0, "boot-2")])
def test_late_or_in_another_boot_it_is_over(ledger: Ledger, boot_s: float, boot: str) -> None:
    plan = planned(ledger)
    approved(ledger, plan)
    assert "over" in ledger.use_release(release(plan), boot_s, boot)
    assert ledger.open_plans("boot-2") == [] and (found := ledger.plan("p-1")) is not None and found.state is PlanState.VOID


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE dry_calls SET argument = 'rm -rf /'",
        "UPDATE dry_calls SET digest = 'f'",
        "UPDATE dry_calls SET parts = '{'",
        "UPDATE dry_calls SET marks = '[{}]'",
        "UPDATE dry_calls SET preview = '[1]'",
        "UPDATE dry_calls SET seq = 7 WHERE seq = 2",
        "DELETE FROM dry_calls WHERE seq = 2",
        "UPDATE dry_plans SET head = 'b'",
    ],
)
@pytest.mark.parametrize("restarted", [False, True])
def test_rows_that_were_changed_after_the_approval_void_it(ledger: Ledger, change: str, restarted: bool) -> None:
    plan = planned(ledger, call("x"), call("y"))
    approved(ledger, plan)
    with ledger.writing() as connection:
        connection.execute(text(change))
    if restarted:
        assert ledger.open_plans(BOOT) == []
    else:
        assert ledger.use_release(release(plan), 1.0, BOOT) == CHANGED
    assert (found := ledger.plan("p-1")) is not None and (found.state, found.words) == (PlanState.VOID, CHANGED)


def test_a_newer_approval_of_the_same_head_ends_the_older_and_a_kill_ends_all(ledger: Ledger) -> None:
    first = planned(ledger)
    approved(ledger, first)
    second = planned(ledger, call("y"), name="p-2")
    approved(ledger, second)
    assert (found := ledger.plan("p-1")) is not None and found.state is PlanState.VOID
    planned(ledger, call("z", agent="b"), head="b", name="p-3")
    assert ledger.end_plans(("b",), "", PlanState.VOID, "killed") == 1 and ledger.end_plans(None, "p-2", PlanState.EXPIRED, "late") == 1
    assert ledger.end_plans(None, "", PlanState.VOID, "killed") == 0


def test_a_flood_is_bounded_and_what_had_no_room_is_counted_and_bound(ledger: Ledger) -> None:
    large = "y" * 3_000_000
    plan = planned(ledger, call(large), call(large + "z"), call("small"))
    assert [len(x.request.argument) for x in plan.calls] == [3_000_000, 5] and plan.left_out == 1
    assert CALLS_MAX <= 1000
    parts = (AskedPart("z" * 3_000_000, "allow", "r"),)
    plan = planned(ledger, call("x", agent="b", parts=parts), call("y", agent="b", parts=parts), head="b", name="p-2")
    assert len(plan.calls) == 1 and plan.left_out == 1, "what was judged counts as well as what was asked"


def test_what_is_over_is_forgotten_but_for_the_newest(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("console.ledger.dry_plans.KEPT_MAX", 2)
    for number in range(5):
        ledger.add_planned(f"p-{number}", "a", call(at=float(number)))
        ledger.end_plans(("a",), "", PlanState.VOID, "left")
    ledger.add_planned("p-9", "a", call(at=9.0))
    assert [one.plan_id for one in ledger.plans_of("a", 20)] == ["p-9", "p-4", "p-3"]
