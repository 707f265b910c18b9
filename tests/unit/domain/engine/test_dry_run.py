"""A plan's digest holds everything that is shown of it, and nothing that changes by itself."""

from __future__ import annotations

from dataclasses import replace

import pytest

from console.domain.calls.approval import AskedPart
from console.domain.calls.lineage import Mark
from console.domain.calls.permission import PermissionRequest
from console.domain.engine.dry_run import CallState, Plan, PlannedCall, PlanState, below, is_below, plan_digest

REQUEST = PermissionRequest("shell", "cargo publish\udc80", "/w", '{"a":1}', "says", "call")
PARTS, PREVIEW = (AskedPart("x", "allow", "r"),), (("files", "w", "plain"),)
CALL = PlannedCall(1, "a", "c", REQUEST, "0" * 64, "allow", "rule", "why", "allow", "words", PARTS, PREVIEW, 5.0)
PLAN = Plan("p-1", "a", 1.0, calls=(CALL,))


@pytest.mark.parametrize(
    "other",
    [
        replace(PLAN, plan_id="p-2"),
        replace(PLAN, head="b"),
        replace(PLAN, left_out=1),
        replace(PLAN, calls=()),
        replace(PLAN, calls=(CALL, replace(CALL, seq=2))),
        *(
            replace(PLAN, calls=(replace(CALL, **change),))
            for change in (
                {"seq": 2},
                {"agent_id": "b"},
                {"context_id": "d"},
                {"digest": "1" * 64},
                {"verdict": "ask"},
                {"rule": "other"},
                {"reason": "other"},
                {"outcome": "deny"},
                {"outcome_words": "other"},
                {"parts": ()},
                {"preview": (("files", "v", "plain"),)},
                {"at": 6.0},
                {"marks": (Mark("p", "s", "v", "a", "c", "r", 1.0, "t"),)},
                {"request": replace(REQUEST, argument="cargo publish --all")},
                {"request": replace(REQUEST, tool="argv")},
                {"request": replace(REQUEST, cwd="/")},
                {"request": replace(REQUEST, detail="{}")},
            )
        ),
    ],
)
def test_whatever_is_shown_changes_the_digest(other: Plan) -> None:
    assert plan_digest(other) != plan_digest(PLAN)


def test_what_the_agent_says_of_itself_how_often_it_asked_and_what_was_used_do_not() -> None:
    again = replace(CALL, times=7, state=CallState.USED, request=replace(REQUEST, says="other", call_id="other"))
    assert plan_digest(replace(PLAN, calls=(again,), state=PlanState.APPROVED, words="x", decided_by="y")) == plan_digest(PLAN)


def test_whoever_is_below_somebody_says_so_and_nobody_else_does() -> None:
    words = below("a-1", "by operator:0: look")
    assert (
        is_below(words, "a-1")
        and not is_below(words, "a-2")
        and not is_below("by below a-1: x", "a-1")
        and len(below("a", "x" * 9999)) <= 600
    )
