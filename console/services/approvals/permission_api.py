"""What an agent asks before it acts, and how it hears: it waits for the human, or leaves the request in the inbox and comes back with it.

Nothing here decides. A request that comes back takes up the decision that was made on exactly it, once (enforcement/approvals.py).
"""

from __future__ import annotations

import asyncio
import secrets
import time

from starlette.requests import Request
from starlette.responses import Response

from console.api.policy.asking import AskBody, AskedView, AskView
from console.domain.agent import AgentId
from console.domain.calls.approval import Approval, ApprovalState, digest_of
from console.domain.calls.permission import Decision, PermissionRequest, Verdict
from console.domain.engine import event as e
from console.domain.errors import NotFound
from console.ledger.store import Ledger
from console.services.fleet.core import Core, now
from console.services.routes.responses import answer, body_of

HUNG_UP_S = 1.0
"""Seconds between two checks that a caller who waits for an answer is still connected."""
SOON_S = 0.02
"""Seconds between two checks whether a request without a waiting caller was checked and is on disk."""
REFUSED = (ApprovalState.DENIED, ApprovalState.EXPIRED)


class Asking:
    """The questions of one agent."""

    __slots__ = ("_id", "_core", "_ledger")

    def __init__(self, agent_id: AgentId, core: Core, ledger: Ledger) -> None:
        self._id, self._core, self._ledger = agent_id, core, ledger

    async def permission(self, request: Request) -> Response:
        """POST /v1/permission."""
        body = await body_of(request, AskBody)
        asked = PermissionRequest(body.tool, body.argument, body.cwd, body.detail, body.says, body.call_id)
        if body.wait_s is not None and (refused := await self._refused(asked)) is not None:
            return answer(refused)
        request_id = secrets.token_hex(8)
        future: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        self._core.answers[request_id] = future
        self._core.post(e.PermissionAsked(*now(), self._id, request_id, asked))
        return answer(await self._answered(request, request_id, future, body.wait_s))

    async def asked(self, request: Request) -> Response:
        """GET /v1/approvals/{approval_id}: what became of one of its own."""
        approval_id = request.path_params["approval_id"][:40]
        found = self._core.state.approvals.by_id.get(approval_id) or await asyncio.to_thread(self._ledger.approval, approval_id)
        if found is None or found.agent_id != self._id:
            raise NotFound("There is no such request of this agent's.", "Ask again: what an agent asked is over when it ends.")
        rule, words = found.rule, found.words
        return answer(AskedView(id=approval_id, state=found.state, digest=found.digest, tool=found.request.tool, rule=rule, words=words))

    async def _refused(self, asked: PermissionRequest) -> AskView | None:
        """Return the denial of this very call, if one was given while no caller waited. Then the call is not asked a second time."""
        if not asked.call_id:
            return None
        digest = digest_of(asked, self._id, self._core.state.agents[self._id].context_id)
        found = await asyncio.to_thread(self._ledger.approval_of_call, self._id, asked.call_id)
        if found is None or found.digest != digest or found.state not in REFUSED:
            return None
        who = f"denied by {found.decided_by}" if found.decided_by else "not decided in time"
        return AskView(verdict="deny", rule=f"approval {found.approval_id}", reason=f"{who}: {found.words}")

    async def _answered(self, request: Request, request_id: str, future: asyncio.Future[object], wait_s: float | None) -> AskView:
        """Return the answer, however long a person thinks. A caller that hangs up is not waited for: an equal request takes its place."""
        until = None if wait_s is None else time.monotonic() + wait_s
        while not (await asyncio.wait([future], timeout=_slice(until)))[0]:
            if await request.is_disconnected():
                self._leaves(request_id, Decision(Verdict.DENY, "asker", "the caller has hung up"))
            elif until is not None and time.monotonic() >= until and (found := self._waiting(request_id)) is not None:
                self._leaves(request_id, Decision(Verdict.ASK, found.rule, found.reason))
                left = max(0.0, found.expires_boot - now()[1])
                return AskView(
                    verdict="ask", rule=found.rule, reason=found.reason, approval_id=found.approval_id, digest=found.digest, left_s=left
                )
        decision = future.result()
        assert isinstance(decision, Decision)
        told = self._core.untold.take(self._id)
        given = decision.rollback_id
        return AskView(verdict=decision.verdict.value, rule=decision.rule, reason=decision.reason, rollback_id=given, notices=told)

    def _leaves(self, request_id: str, decision: Decision) -> None:
        self._core.post(e.AskerLeft(*now(), request_id))
        self._core.settle_answer(request_id, decision)

    def _waiting(self, request_id: str) -> Approval | None:
        """The approval that this request waits for, once it is on disk; None: it is being judged, or let through just now."""
        approvals = self._core.state.approvals
        name = next((name for name, waiters in approvals.waiters.items() if request_id in waiters), "")
        return approvals.by_id.get(name) if name in approvals.kept else None


def _slice(until: float | None) -> float:
    return HUNG_UP_S if until is None else max(SOON_S, min(HUNG_UP_S, until - time.monotonic()))
