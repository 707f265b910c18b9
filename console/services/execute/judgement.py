"""What is decided of a call before it is executed: as of any call that is asked about, and once more just before it runs."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable

from console.domain.agent import Agent, AgentId
from console.domain.calls.permission import Decision, PermissionRequest, Verdict
from console.domain.engine import event as e
from console.domain.errors import Conflict, Denied
from console.policy.rules.verdicts import Judgement
from console.services.approvals.approval_runner import Approving
from console.services.fleet.core import Core, now
from console.services.policy.evaluate import Judged

HUNG_UP_S = 0.5
"""Seconds between two checks that a caller who waits for an answer is still connected."""
Judge = Callable[[Agent, PermissionRequest], Judgement]
Left = Callable[[], Awaitable[bool]]


class CallJudging:
    """Asks the engine like everybody else: rules, sequences, approvals, dry-run and stops are its business."""

    __slots__ = ("_core", "_approving", "_judge")

    def __init__(self, core: Core, approving: Approving, judge: Judge) -> None:
        self._core, self._approving, self._judge = core, approving, judge

    async def decided(self, agent_id: AgentId, request: PermissionRequest, left: Left) -> tuple[Decision, Judged]:
        """The decision, after a human's word where one is asked, and what was judged for it. Raises Denied with rule and reason."""
        core, request_id = self._core, secrets.token_hex(8)
        future: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        core.answers[request_id] = future
        self._approving.wanted[request_id] = None
        try:
            core.post(e.PermissionAsked(*now(), agent_id, request_id, request))
            while not (await asyncio.wait([future], timeout=HUNG_UP_S))[0]:
                if await left():
                    core.post(e.AskerLeft(*now(), request_id))
                    core.settle_answer(request_id, Decision(Verdict.DENY, "asker", "the caller has hung up"))
        finally:
            judged = self._approving.wanted.pop(request_id, None)
        decision = future.result()
        assert isinstance(decision, Decision)
        if decision.verdict is not Verdict.ALLOW or judged is None:
            raise Denied(f"Not executed: {decision.rule}: {decision.reason}.", "watchfloor policy explain shows each part and its rule.")
        return decision, judged

    async def now(self, agent: Agent, request: PermissionRequest) -> Judgement:
        """How a call is judged at this moment; nothing is asked, nor kept."""
        return await asyncio.to_thread(self._judge, agent, request)

    async def again(self, agent: Agent, request: PermissionRequest, judged: Judged) -> Judgement:
        """The disk and the rules may have changed while a human thought: what is executed must still be what was decided.

        How it is judged now. Raises Denied, Conflict.
        """
        found = await self.now(agent, request)
        if found.verdict is Verdict.DENY:
            raise Denied(f"Not executed: {found.rule}: {found.reason}.", "It was allowed before; ask again.")
        stricter = found.verdict is Verdict.ASK and judged.decision.verdict is Verdict.ALLOW
        if stricter or not judged.steps or found.steps != judged.steps:
            raise Conflict(
                "Not executed: the files that the call names have changed since the check.", "Ask again: it is checked as it is now."
            )
        return found
