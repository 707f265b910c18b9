"""Approvals on disk: each request once, its state changed only from the state it was thought to be in, so that none is used twice."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from sqlalchemy import Row, delete, insert, select, update
from sqlalchemy.dialects.sqlite import insert as upsert

from console.domain.agent import AgentId, ContextId
from console.domain.calls.approval import Approval, ApprovalScope, ApprovalState, AskedPart, Grant, shape
from console.domain.calls.permission import PermissionRequest
from console.ledger.database import Database
from console.ledger.tables import APPROVAL_GRANTS, APPROVALS

_OPEN = (ApprovalState.WAITING.value, ApprovalState.APPROVED.value)
PAGE_MAX = 500


class ApprovalTables(Database):
    """The arbiter of what is still open: two consoles that decide at once find here who was first."""

    def add_approval(self, approval: Approval, boot_id: str) -> None:
        """Keeps a new request, durable on return. Raises NotRecorded."""
        with self.writing() as connection:
            connection.execute(insert(APPROVALS), _row(approval, boot_id))

    def change_approval(self, approval: Approval, was: ApprovalState, grant: Grant | None = None) -> bool:
        """Store ``approval`` if it is still ``was`` and bound to the same digest. False: another decision came first, nothing is changed.

        With ``grant`` the session gets it in the same transaction. Raises NotRecorded.
        """
        where = (APPROVALS.c.approval_id == approval.approval_id, APPROVALS.c.state == was.value, APPROVALS.c.digest == approval.digest)
        new = {
            "state": approval.state.value,
            "scope": approval.scope.value,
            "decided_by": approval.decided_by,
            "decided_at": approval.decided_at,
            "words": approval.words,
        }
        with self.writing() as connection:
            changed = connection.execute(update(APPROVALS).where(*where).values(**new)).rowcount == 1
            if changed and grant is not None:
                row = {"context_id": grant.context_id, "digest": grant.digest, "approval_id": grant.approval_id}
                statement = upsert(APPROVAL_GRANTS).on_conflict_do_nothing()
                connection.execute(statement, row | {"granted_by": grant.by, "at": grant.at})
        return changed

    def void_approvals(self, words: str, boot_id: str | None = None) -> int:
        """Whatever is open becomes void: all of it, or what was asked in another boot than ``boot_id``. How many. Raises NotRecorded."""
        query = update(APPROVALS).where(APPROVALS.c.state.in_(_OPEN))
        if boot_id is not None:
            query = query.where(APPROVALS.c.boot_id != boot_id)
        with self.writing() as connection:
            return connection.execute(query.values(state=ApprovalState.VOID.value, words=words)).rowcount

    def take_back(self, approval_id: str, words: str) -> None:
        """An approval that came too late: void unless it was used, and what its session was given with it is gone. Raises NotRecorded."""
        where = (APPROVALS.c.approval_id == approval_id, APPROVALS.c.state == ApprovalState.APPROVED.value)
        with self.writing() as connection:
            connection.execute(update(APPROVALS).where(*where).values(state=ApprovalState.VOID.value, words=words))
            connection.execute(delete(APPROVAL_GRANTS).where(APPROVAL_GRANTS.c.approval_id == approval_id))

    def trim_approvals(self, keep: int) -> int:
        """Forgets what was over without a human's word, but for the newest ``keep``: an agent asks as often as it likes. How many."""
        over = (ApprovalState.VOID.value, ApprovalState.EXPIRED.value)
        undecided = select(APPROVALS.c.approval_id).where(APPROVALS.c.state.in_(over), APPROVALS.c.decided_by == "")
        oldest = undecided.order_by(APPROVALS.c.asked_at.desc(), APPROVALS.c.approval_id).limit(-1).offset(keep)
        with self.writing() as connection:
            return connection.execute(delete(APPROVALS).where(APPROVALS.c.approval_id.in_(oldest))).rowcount

    def end_grants(self, context_id: str | None = None) -> int:
        """Takes back what was approved for one session, or for all. How many. Raises NotRecorded."""
        query = delete(APPROVAL_GRANTS)
        if context_id is not None:
            query = query.where(APPROVAL_GRANTS.c.context_id == context_id)
        with self.writing() as connection:
            return connection.execute(query).rowcount

    def grants(self) -> list[Grant]:
        """All that were given to sessions and not taken back."""
        with self.reading() as connection:
            rows = connection.execute(select(APPROVAL_GRANTS).order_by(APPROVAL_GRANTS.c.at)).all()
        return [Grant(ContextId(r.context_id), r.digest, r.approval_id, r.granted_by, r.at) for r in rows]

    def approval(self, approval_id: str) -> Approval | None:
        """One, or None."""
        with self.reading() as connection:
            row = connection.execute(select(APPROVALS).where(APPROVALS.c.approval_id == approval_id)).first()
        return None if row is None else _read(row)

    def approval_of_call(self, agent_id: AgentId, call_id: str) -> Approval | None:
        """The newest that this agent asked under its own name for the call, or None."""
        query = select(APPROVALS).where(APPROVALS.c.agent_id == agent_id, APPROVALS.c.call_id == call_id)
        with self.reading() as connection:
            row = connection.execute(query.order_by(APPROVALS.c.asked_at.desc()).limit(1)).first()
        return None if row is None else _read(row)

    def was_approved(self, rule: str, session: ContextId | None, root: AgentId) -> bool:
        """Whether a human approved what a rule asked about, in a session, or (None) in a tree."""
        place = APPROVALS.c.root_id == root if session is None else APPROVALS.c.context_id == session
        states = (ApprovalState.APPROVED.value, ApprovalState.USED.value)
        query = select(APPROVALS.c.approval_id).where(APPROVALS.c.rule == rule, place, APPROVALS.c.state.in_(states)).limit(1)
        with self.reading() as connection:
            return connection.execute(query).first() is not None

    def open_approvals(self) -> list[Approval]:
        """Those that may still let a call through, oldest first."""
        query = select(APPROVALS).where(APPROVALS.c.state.in_(_OPEN)).order_by(APPROVALS.c.asked_at, APPROVALS.c.approval_id)
        with self.reading() as connection:
            return [_read(row) for row in connection.execute(query)]

    def decided_approvals(self, limit: int = 100, before: float | None = None) -> list[Approval]:
        """Those that are over, newest first."""
        query = select(APPROVALS).where(APPROVALS.c.state != ApprovalState.WAITING.value)
        if before is not None:
            query = query.where(APPROVALS.c.asked_at < before)
        query = query.order_by(APPROVALS.c.asked_at.desc(), APPROVALS.c.approval_id).limit(min(limit, PAGE_MAX))
        with self.reading() as connection:
            return [_read(row) for row in connection.execute(query)]

    def similar_approvals(self, approval: Approval, limit: int = 20) -> list[Approval]:
        """What people decided on requests of the same shape, newest first."""
        query = (
            select(APPROVALS)
            .where(APPROVALS.c.shape == shape(approval.request), APPROVALS.c.approval_id != approval.approval_id)
            .where(APPROVALS.c.decided_at.is_not(None))
            .order_by(APPROVALS.c.asked_at.desc())
            .limit(min(limit, PAGE_MAX))
        )
        with self.reading() as connection:
            return [_read(row) for row in connection.execute(query)]


def _row(approval: Approval, boot_id: str) -> dict[str, Any]:
    request = approval.request
    return {
        "approval_id": approval.approval_id,
        "agent_id": approval.agent_id,
        "root_id": approval.root_id,
        "context_id": approval.context_id,
        "tool": request.tool,
        "argument": request.argument,
        "cwd": request.cwd,
        "detail": request.detail,
        "says": request.says,
        "call_id": request.call_id,
        "digest": approval.digest,
        "shape": shape(request),
        "rule": approval.rule,
        "reason": approval.reason,
        "parts": json.dumps([asdict(part) for part in approval.parts]),
        "asked_at": approval.asked_at,
        "expires_boot": approval.expires_boot,
        "boot_id": boot_id,
        "state": approval.state.value,
        "scope": approval.scope.value,
        "decided_by": approval.decided_by,
        "decided_at": approval.decided_at,
        "words": approval.words,
    }


def _read(row: Row[Any]) -> Approval:
    return Approval(
        approval_id=row.approval_id,
        agent_id=AgentId(row.agent_id),
        root_id=AgentId(row.root_id),
        context_id=ContextId(row.context_id),
        request=PermissionRequest(row.tool, row.argument, row.cwd, row.detail, row.says, row.call_id),
        digest=row.digest,
        rule=row.rule,
        reason=row.reason,
        asked_at=row.asked_at,
        expires_boot=row.expires_boot,
        parts=_parts(row.parts),
        state=_state(row.state),
        scope=ApprovalScope.SESSION if row.scope == ApprovalScope.SESSION.value else ApprovalScope.ONCE,
        decided_by=row.decided_by,
        decided_at=row.decided_at,
        words=row.words,
    )


def _state(text: str) -> ApprovalState:
    """What cannot be read lets nothing through."""
    return ApprovalState(text) if text in ApprovalState._value2member_map_ else ApprovalState.VOID


def _parts(text: str) -> tuple[AskedPart, ...]:
    try:
        found = json.loads(text)
        return tuple(AskedPart(**{str(k): str(v) for k, v in part.items()}) for part in found)
    except (ValueError, TypeError, AttributeError):
        return ()
