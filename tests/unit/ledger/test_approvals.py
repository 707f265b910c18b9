"""Approvals on disk: one decision, one use, whoever comes second finds it taken."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

from sqlalchemy import text

from console.domain.agent import AgentId, ContextId
from console.domain.calls.approval import Approval, ApprovalScope, ApprovalState, AskedPart, Grant, digest_of
from console.domain.calls.permission import PermissionRequest
from console.ledger.store import Ledger

BOOT = "boot-1"
PARTS = (AskedPart("cargo publish", "ask", "shell(cargo publish:*)", "program", "a rule asks a person"),)


def asked(name: str, argument: str = "cargo publish", **fields: object) -> Approval:
    request = PermissionRequest("shell", argument, "/w", "{}", "\u202ehostile\udc80", "call")
    made = Approval(
        name, AgentId("a"), AgentId("r"), ContextId("c"), request, digest_of(request, "a", "c"), "rule", "why", 100.0, 700.0, PARTS
    )
    return replace(made, **fields)  # type: ignore[arg-type]


def test_what_was_asked_reads_back_as_it_was(ledger: Ledger) -> None:
    ledger.add_approval(asked("q-1"), BOOT)
    assert ledger.open_approvals() == [asked("q-1")] and ledger.approval("q-1") == asked("q-1") and ledger.approval("q-2") is None


def test_of_two_who_decide_at_once_one_is_first_and_the_other_is_told(ledger: Ledger) -> None:
    ledger.add_approval(asked("q-1"), BOOT)
    found: list[bool] = []
    barrier = threading.Barrier(8)

    def decide(state: ApprovalState) -> None:
        barrier.wait()
        found.append(ledger.change_approval(asked("q-1", state=state, decided_by=state.value, decided_at=120.0), ApprovalState.WAITING))

    threads = [threading.Thread(target=decide, args=(s,)) for s in (ApprovalState.APPROVED, ApprovalState.DENIED) * 4]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == [False] * 7 + [True]


def test_an_approval_is_used_once_and_only_for_the_very_request(ledger: Ledger) -> None:
    ledger.add_approval(asked("q-1"), BOOT)
    ledger.change_approval(asked("q-1", state=ApprovalState.APPROVED), ApprovalState.WAITING)
    used = asked("q-1", state=ApprovalState.USED)
    assert not ledger.change_approval(replace(used, digest="0" * 64), ApprovalState.APPROVED)
    assert ledger.change_approval(used, ApprovalState.APPROVED)
    assert not ledger.change_approval(used, ApprovalState.APPROVED) and ledger.open_approvals() == []


def test_a_grant_is_given_with_its_decision_or_not_at_all(ledger: Ledger) -> None:
    ledger.add_approval(asked("q-1"), BOOT)
    grant = Grant(ContextId("c"), "f" * 64, "q-1", "operator:0", 120.0)
    approved = asked("q-1", state=ApprovalState.APPROVED, scope=ApprovalScope.SESSION, decided_at=120.0)
    assert not ledger.change_approval(approved, ApprovalState.APPROVED, grant) and ledger.grants() == []
    assert ledger.change_approval(approved, ApprovalState.WAITING, grant) and ledger.grants() == [grant]
    assert ledger.end_grants("other") == 0 and ledger.end_grants() == 1 and ledger.grants() == []


def test_what_was_asked_before_a_reboot_is_void_and_what_was_asked_since_waits(ledger: Ledger) -> None:
    ledger.add_approval(asked("q-1"), "boot-0")
    ledger.add_approval(asked("q-2"), BOOT)
    assert ledger.void_approvals("the host was restarted", BOOT) == 1
    assert [a.approval_id for a in ledger.open_approvals()] == ["q-2"]
    assert ledger.void_approvals("killed") == 1 and ledger.open_approvals() == []
    assert {a.words for a in ledger.decided_approvals()} == {"killed", "the host was restarted"}


def test_pages_and_what_looks_alike(ledger: Ledger) -> None:
    for number in range(5):
        ledger.add_approval(asked(f"q-{number}", f"cargo publish --n {number}", asked_at=float(number)), BOOT)
        done = asked(f"q-{number}", f"cargo publish --n {number}", state=ApprovalState.DENIED, decided_at=number + 9.0)
        ledger.change_approval(done, ApprovalState.WAITING)
    ledger.add_approval(asked("q-other", "rm -rf x"), BOOT)
    assert [a.approval_id for a in ledger.decided_approvals(2)] == ["q-4", "q-3"]
    assert [a.approval_id for a in ledger.decided_approvals(9, before=3.0)] == ["q-2", "q-1", "q-0"]
    assert [a.approval_id for a in ledger.similar_approvals(asked("q-new", "cargo publish -x"), 3)] == ["q-4", "q-3", "q-2"]
    assert ledger.similar_approvals(asked("q-other", "rm -rf x")) == []


def test_a_row_that_cannot_be_read_lets_nothing_through(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.db")
    try:
        ledger.add_approval(asked("q-1"), BOOT)
        with ledger.writing() as connection:
            connection.execute(text("UPDATE approvals SET state = 'approvedd', parts = '[1'"))
        found = ledger.approval("q-1")
        assert found is not None and found.state is ApprovalState.VOID and found.parts == ()
    finally:
        ledger.close()


def test_an_approval_that_came_too_late_is_taken_back_with_what_it_gave(ledger: Ledger) -> None:
    ledger.add_approval(asked("q-1"), BOOT)
    ledger.change_approval(
        asked("q-1", state=ApprovalState.APPROVED), ApprovalState.WAITING, Grant(ContextId("c"), "d", "q-1", "operator:0", 1.0)
    )
    ledger.take_back("q-1", "killed")
    approval = ledger.approval("q-1")
    assert approval is not None and (approval.state, approval.words) == (ApprovalState.VOID, "killed") and ledger.grants() == []
    ledger.add_approval(asked("q-2"), BOOT)
    ledger.change_approval(asked("q-2", state=ApprovalState.APPROVED), ApprovalState.WAITING)
    ledger.change_approval(asked("q-2", state=ApprovalState.USED), ApprovalState.APPROVED)
    ledger.take_back("q-2", "killed")
    assert (found := ledger.approval("q-2")) is not None and found.state is ApprovalState.USED  # what happened stays what happened


def test_what_nobody_decided_is_kept_only_so_long_and_what_a_human_decided_for_good(ledger: Ledger) -> None:
    for number in range(6):
        ledger.add_approval(asked(f"q-{number}", asked_at=float(number)), BOOT)
        end = asked(f"q-{number}", state=ApprovalState.VOID if number else ApprovalState.DENIED, decided_by="" if number else "operator:0")
        ledger.change_approval(end, ApprovalState.WAITING)
    ledger.add_approval(asked("q-w", asked_at=-1.0), BOOT)
    assert ledger.trim_approvals(2) == 3
    left = {name for name in ("q-0", "q-1", "q-2", "q-3", "q-4", "q-5", "q-w") if ledger.approval(name) is not None}
    assert left == {"q-0", "q-4", "q-5", "q-w"}


def test_the_newest_of_a_call_is_found_by_its_askers_name_for_it_without_reading_all(ledger: Ledger) -> None:
    first, second = asked("q-1", "a"), asked("q-2", "b", asked_at=101.0)
    for one in (first, second):
        ledger.add_approval(replace(one, request=replace(one.request, call_id="c1")), BOOT)
    ledger.add_approval(asked("q-3", "c", asked_at=102.0), BOOT)
    found = ledger.approval_of_call(first.agent_id, "c1")
    assert found is not None and found.approval_id == "q-2"
    assert ledger.approval_of_call(first.agent_id, "c2") is None and ledger.approval_of_call(AgentId("a-9"), "c1") is None
    with ledger.reading() as connection:
        query = "EXPLAIN QUERY PLAN SELECT * FROM approvals WHERE agent_id = 'a' AND call_id = 'c' ORDER BY asked_at DESC LIMIT 1"
        assert "approvals_by_call" in str(connection.execute(text(query)).all())
