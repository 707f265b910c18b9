"""Plans of dry-run on disk: the arbiter of what of an approved one may still be made, and that it is what was approved."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import asdict, replace
from typing import Any, TypeVar

from sqlalchemy import Connection, Row, delete, func, insert, select, update

from console.domain.calls.approval import AskedPart
from console.domain.calls.lineage import Mark
from console.domain.calls.permission import PermissionRequest
from console.domain.engine.dry_run import BYTES_MAX, CALLS_MAX, CallState, Plan, PlannedCall, PlanState, Release, plan_digest
from console.ledger.database import Database
from console.ledger.tables import DRY_CALLS, DRY_PLANS, int64

T = TypeVar("T")
_OPEN = (PlanState.OPEN.value, PlanState.APPROVED.value)
KEPT_MAX = 200
"""Plans that are over, of everybody."""
SHOWN_MAX = 4
"""Plans of one head in one answer: each may have megabytes."""
CHANGED = "it is not what was approved: its rows were changed"


class PlanTables(Database):
    """Each head has at most one open plan, and one approved."""

    def add_planned(self, plan_id: str, head: str, call: PlannedCall) -> tuple[str, int]:
        """Puts a call into the head's open plan, or into a new one named ``plan_id``: (its plan, its number; 0: the plan is full).

        The same request again is one line; what was found of it last holds. Durable on return. Raises NotRecorded.
        """
        with self.writing() as connection:
            row = connection.execute(
                select(DRY_PLANS.c.plan_id).where(DRY_PLANS.c.head == head, DRY_PLANS.c.state == PlanState.OPEN.value)
            ).first()
            found = str(row.plan_id) if row is not None else plan_id
            if row is None:
                _trim(connection)
                connection.execute(insert(DRY_PLANS), _new(plan_id, head, call.at))
            return found, _put(connection, found, call)

    def plan(self, plan_id: str) -> Plan | None:
        """One, whole."""
        with self.reading() as connection:
            return _plan(connection, plan_id)

    def plans_of(self, head: str, limit: int = SHOWN_MAX) -> list[Plan]:
        """A head's plans, newest first, whole."""
        query = select(DRY_PLANS.c.plan_id).where(DRY_PLANS.c.head == head).order_by(DRY_PLANS.c.opened_at.desc()).limit(limit)
        with self.reading() as connection:
            found = [_plan(connection, str(row.plan_id)) for row in connection.execute(query).all()]
        return [one for one in found if one is not None]

    def approve_plan(self, approved: Plan, boot_id: str) -> str:
        """Approves it as it was shown (``sha256``), if it is open and still that. Empty: done; else why not. Raises NotRecorded."""
        with self.writing() as connection:
            plan = _plan(connection, approved.plan_id)
            if plan is None or plan.state is not PlanState.OPEN:
                return f"it is {plan.state}" if plan is not None else "there is no such plan"
            if plan_digest(plan) != approved.sha256:
                return "the plan is not the one that was shown; look again"
            older = (DRY_PLANS.c.head == plan.head, DRY_PLANS.c.state == PlanState.APPROVED.value)
            gone = {"state": PlanState.VOID.value, "words": f"plan {plan.plan_id} was approved after it"}
            connection.execute(update(DRY_PLANS).where(*older).values(**gone))
            new: dict[str, Any] = {
                "state": PlanState.APPROVED.value,
                "sha256": approved.sha256,
                "decided_by": approved.decided_by,
                "boot_id": boot_id,
            }
            new |= {"decided_at": approved.decided_at, "expires_boot": approved.expires_boot, "words": approved.words}
            connection.execute(update(DRY_PLANS).where(DRY_PLANS.c.plan_id == plan.plan_id).values(**new))
        return ""

    def use_release(self, release: Release, boot_s: float, boot_id: str) -> str:
        """Uses up one call of an approved plan. Empty: it was good and is over now; else why not. Raises NotRecorded."""
        with self.writing() as connection:
            row = connection.execute(select(DRY_PLANS).where(DRY_PLANS.c.plan_id == release.plan_id)).first()
            plan = _plan(connection, release.plan_id)
            if row is None or plan is None or plan.state is not PlanState.APPROVED:
                return "its plan is not approved any more"
            if row.boot_id != boot_id or boot_s >= plan.expires_boot:
                return "the approval of its plan is over"
            if plan_digest(plan) != plan.sha256:
                _close(connection, [release.plan_id], PlanState.VOID, CHANGED)
                return CHANGED
            mine = update(DRY_CALLS).where(DRY_CALLS.c.plan_id == release.plan_id, DRY_CALLS.c.seq == release.seq)
            mine = mine.where(DRY_CALLS.c.digest == release.digest, DRY_CALLS.c.agent_id == release.agent_id)
            mine = mine.where(DRY_CALLS.c.state == CallState.PLANNED.value)
            if connection.execute(mine.values(state=CallState.USED.value)).rowcount != 1:
                return "it was made already"
            if sum(call.state is CallState.PLANNED for call in plan.calls) == 1:
                _close(connection, [release.plan_id], PlanState.DONE, "each of its calls was made")
        return ""

    def end_plans(self, heads: Iterable[str] | None, plan_id: str, state: PlanState, words: str) -> int:
        """Whatever is open of these heads (None: of all), or the one named, is over. How many. Raises NotRecorded."""
        query = select(DRY_PLANS.c.plan_id).where(DRY_PLANS.c.state.in_(_OPEN))
        if plan_id:
            query = query.where(DRY_PLANS.c.plan_id == plan_id)
        elif heads is not None:
            query = query.where(DRY_PLANS.c.head.in_(list(heads)))
        with self.writing() as connection:
            found = [str(row.plan_id) for row in connection.execute(query).all()]
            _close(connection, found, state, words)
        return len(found)

    def open_plans(self, boot_id: str) -> list[Plan]:
        """Those that are open or approved, whole. What was approved in another boot, or is not what was approved, becomes void first."""
        with self.writing() as connection:
            rows = connection.execute(select(DRY_PLANS.c.plan_id, DRY_PLANS.c.boot_id).where(DRY_PLANS.c.state.in_(_OPEN))).all()
            whole = []
            for row in rows:
                plan = _plan(connection, str(row.plan_id))
                if plan is None:
                    continue
                if plan.state is PlanState.APPROVED and row.boot_id != boot_id:
                    _close(connection, [plan.plan_id], PlanState.VOID, "the host was restarted")
                elif plan.state is PlanState.APPROVED and plan_digest(plan) != plan.sha256:
                    _close(connection, [plan.plan_id], PlanState.VOID, CHANGED)
                else:
                    whole.append(plan)
        return whole


def _close(connection: Connection, plan_ids: list[str], state: PlanState, words: str) -> None:
    connection.execute(update(DRY_PLANS).where(DRY_PLANS.c.plan_id.in_(plan_ids)).values(state=state.value, words=words))


def _trim(connection: Connection) -> None:
    """Forgets what is over, but for the newest."""
    over = select(DRY_PLANS.c.plan_id).where(DRY_PLANS.c.state.not_in(_OPEN))
    oldest = over.order_by(DRY_PLANS.c.opened_at.desc(), DRY_PLANS.c.plan_id).limit(-1).offset(KEPT_MAX)
    connection.execute(delete(DRY_CALLS).where(DRY_CALLS.c.plan_id.in_(oldest)))
    connection.execute(delete(DRY_PLANS).where(DRY_PLANS.c.plan_id.in_(oldest)))


def _put(connection: Connection, plan_id: str, call: PlannedCall) -> int:
    mine = (DRY_CALLS.c.plan_id == plan_id, DRY_CALLS.c.agent_id == call.agent_id, DRY_CALLS.c.digest == call.digest)
    had = connection.execute(select(DRY_CALLS).where(*mine)).first()
    if had is not None:
        before = _call(had)
        times = {"times": int64(before.times + 1)}
        new = times if _same(before, call) else {**_row(plan_id, call), **times, "seq": before.seq}
        connection.execute(update(DRY_CALLS).where(*mine).values(**new))
        return before.seq
    texts = ("argument", "detail", "says", "parts", "preview", "marks")
    size: Any = sum((func.length(DRY_CALLS.c[name]) for name in texts[1:]), func.length(DRY_CALLS.c[texts[0]]))
    room = select(func.count(), func.coalesce(func.sum(size), 0), func.coalesce(func.max(DRY_CALLS.c.seq), 0))
    calls, used, last = connection.execute(room.where(DRY_CALLS.c.plan_id == plan_id)).one()
    row = _row(plan_id, replace(call, seq=last + 1))
    if calls >= CALLS_MAX or used + sum(len(row[name]) for name in texts) > BYTES_MAX:
        more = {"left_out": DRY_PLANS.c.left_out + 1}
        connection.execute(update(DRY_PLANS).where(DRY_PLANS.c.plan_id == plan_id).values(**more))
        return 0
    connection.execute(insert(DRY_CALLS), row)
    return int(last) + 1


def _same(one: PlannedCall, other: PlannedCall) -> bool:
    """Whether nothing that decides is different: what it costs so far, when it was asked, and its own words change all the time."""
    names = ("verdict", "rule", "reason", "outcome", "outcome_words", "parts", "state")
    return all(getattr(one, name) == getattr(other, name) for name in names) and _touched(one) == _touched(other)


def _touched(call: PlannedCall) -> list[tuple[str, str, str]]:
    return [line for line in call.preview if line[0] != "cost"]


def _new(plan_id: str, head: str, at: float) -> dict[str, Any]:
    empty = dict.fromkeys(("sha256", "decided_by", "boot_id", "words"), "")
    return {"plan_id": plan_id, "head": head, "opened_at": at, "state": PlanState.OPEN.value, "left_out": 0, "expires_boot": 0.0, **empty}


def _row(plan_id: str, call: PlannedCall) -> dict[str, Any]:
    request = call.request
    return {
        "plan_id": plan_id,
        "seq": call.seq,
        "agent_id": call.agent_id,
        "context_id": call.context_id,
        "tool": request.tool,
        "argument": request.argument,
        "cwd": request.cwd,
        "detail": request.detail,
        "says": request.says,
        "digest": call.digest,
        "verdict": call.verdict,
        "rule": call.rule,
        "reason": call.reason,
        "outcome": call.outcome,
        "outcome_words": call.outcome_words,
        "parts": json.dumps([asdict(part) for part in call.parts]),
        "preview": json.dumps(call.preview),
        "marks": json.dumps([asdict(mark) for mark in call.marks]),
        "at": call.at,
        "state": call.state.value,
        "times": call.times,
    }


def _plan(connection: Connection, plan_id: str) -> Plan | None:
    row = connection.execute(select(DRY_PLANS).where(DRY_PLANS.c.plan_id == plan_id)).first()
    if row is None:
        return None
    calls = connection.execute(select(DRY_CALLS).where(DRY_CALLS.c.plan_id == plan_id).order_by(DRY_CALLS.c.seq)).all()
    return Plan(
        plan_id=row.plan_id,
        head=row.head,
        opened_at=row.opened_at,
        # What cannot be read lets nothing through.
        state=PlanState(row.state) if row.state in PlanState._value2member_map_ else PlanState.VOID,
        calls=tuple(_call(one) for one in calls),
        left_out=row.left_out,
        sha256=row.sha256,
        decided_by=row.decided_by,
        decided_at=row.decided_at,
        expires_boot=row.expires_boot,
        words=row.words,
    )


def _call(row: Row[Any]) -> PlannedCall:
    return PlannedCall(
        seq=row.seq,
        agent_id=row.agent_id,
        context_id=row.context_id,
        request=PermissionRequest(row.tool, row.argument, row.cwd, row.detail, row.says),
        digest=row.digest,
        verdict=row.verdict,
        rule=row.rule,
        reason=row.reason,
        outcome=row.outcome,
        outcome_words=row.outcome_words,
        parts=_read(row.parts, lambda one: AskedPart(**one)),
        preview=_read(row.preview, lambda one: (str(one[0]), str(one[1]), str(one[2]))),
        marks=_read(row.marks, lambda one: Mark(**one)),
        at=row.at,
        state=CallState(row.state) if row.state in CallState._value2member_map_ else CallState.REFUSED,
        times=row.times,
    )


def _read(text: str, made: Callable[[Any], T]) -> tuple[T, ...]:
    """What cannot be read is shown as nothing: then it is not what was approved either."""
    try:
        return tuple(made(one) for one in json.loads(text))
    except (ValueError, TypeError, KeyError, IndexError):
        return ()
