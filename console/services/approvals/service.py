"""Approvals for people: what waits, all that is needed to decide, and the decision: audit first, then the ledger, then the engine."""

from __future__ import annotations

import asyncio
import time
from dataclasses import asdict, replace
from statistics import median

from console.api.policy import approvals as a
from console.domain.agent import Agent, AgentId, ContextId
from console.domain.budget import share_used
from console.domain.calls.approval import Approval, ApprovalScope, ApprovalState, Grant, Questions, questions, session_digest
from console.domain.calls.permission import rank_of
from console.domain.engine import event as e
from console.domain.engine.command import Record
from console.domain.errors import ConsoleError, NotFound, UsageProblem
from console.domain.words import NO_REASON
from console.enforcement.identity import cost_unknown
from console.services.approvals.approval_runner import record_of
from console.services.approvals.impact import blast_of
from console.services.fleet.core import Core, now
from console.services.records.record_writer import Scribe

DECIDED_MAX = 100
QUESTIONS_MAX, COUNTED_S = 500, 30.0
TREE_MAX = 30
BEFORE_MAX = 10
"""The reason that the agent gets for a denial without one."""
LISTED_MAX = 4096
"""Characters of a request in a list. An agent can make a hundred requests of 64 KiB, and each new one makes every client read the list."""


class ApprovalDesk:
    """The operator's side. Nothing here can be reached from an agent's socket (promise 6)."""

    __slots__ = ("_core", "_scribe", "_needs_reason", "_counted")

    def __init__(self, core: Core, scribe: Scribe, needs_reason: bool) -> None:
        """``needs_reason``: a denial without a reason is refused."""
        self._core, self._scribe, self._needs_reason = core, scribe, needs_reason
        self._counted: tuple[float, Questions] | None = None
        """Until when how much people are asked is believed, in monotonic seconds, and what it is."""

    async def inbox(self) -> a.ApprovalsView:
        """What waits, the worst danger first and then the least time left, and what was decided last."""
        state = self._core.state
        at, boot = now()
        waiting = [self._row(x, boot) for x in state.approvals.by_id.values() if self._may_decide(x)]
        decided = await asyncio.to_thread(self._scribe.ledger.decided_approvals, DECIDED_MAX)
        took = [x.took_s for x in decided if x.took_s is not None][:50]
        load = await self._questions(at)
        return a.ApprovalsView(
            waiting=sorted(map(_short, waiting), key=lambda row: (row.danger_rank, row.left_s)),
            decided=[_short(self._row(x, boot)) for x in decided],
            items=len({row.group for row in waiting}),
            oldest_wait_s=max((max(0.0, at - row.asked_at) for row in waiting), default=None),
            median_decide_s=median(took) if took else None,
            questions_per_hour=round(load.per_hour, 2),
            rule_share=None if load.share is None else round(load.share, 3),
            denial_needs_reason=self._needs_reason,
        )

    async def _questions(self, at: float) -> Questions:
        """How much people are asked, counted again now and then: the inbox is asked for at each new request."""
        if self._counted is None or time.monotonic() >= self._counted[0] or not self._counted[1].asked:
            over = await asyncio.to_thread(self._scribe.ledger.decided_approvals, QUESTIONS_MAX)
            waiting = [x for x in self._core.state.approvals.by_id.values() if self._may_decide(x)]
            self._counted = time.monotonic() + COUNTED_S, questions([*over, *waiting], at)
        return self._counted[1]

    async def detail(self, approval_id: str) -> a.ApprovalDetailView:
        """One request with all that is needed to decide. Raises NotFound."""
        ledger = self._scribe.ledger
        approval = self._core.state.approvals.by_id.get(approval_id) or await asyncio.to_thread(ledger.approval, approval_id[:40])
        if approval is None:
            raise _none(approval_id)
        _, boot = now()
        similar = await asyncio.to_thread(ledger.similar_approvals, approval)
        events = await asyncio.to_thread(ledger.events, approval.agent_id, BEFORE_MAX)
        agent = self._core.state.agents.get(approval.agent_id)
        tree, left_out = self._tree(approval)
        return a.ApprovalDetailView(
            row=self._row(approval, boot),
            detail=approval.request.detail,
            parts=[a.ApprovalPart(**asdict(part)) for part in approval.parts],
            tree=tree,
            tree_left_out=left_out,
            blast=blast_of(approval, agent),
            similar=[_short(self._row(x, boot)) for x in similar],
            before=[a.JustBefore(at=x.at, kind=x.kind, text=x.text) for x in events],
        )

    async def decide(self, body: a.DecideBody, by: str) -> a.DecideView:
        """One decision on each: the first that is written wins, a content that changed is not decided. Raises UsageProblem."""
        if self._needs_reason and body.verdict == "deny" and not body.reason.strip():
            raise UsageProblem("A denial needs a reason here.", "Say why: the agent is told. The setting is approvals.denial_needs_reason.")
        results = [await self._decide(one, body, by) for one in body.requests]
        return a.DecideView(results=results)

    async def grants(self) -> a.GrantsView:
        """What sessions were given."""
        ledger = self._scribe.ledger
        found = await asyncio.to_thread(ledger.grants)
        rows = []
        for grant in found:
            source = await asyncio.to_thread(ledger.approval, grant.approval_id)
            row = a.GrantRow(session=grant.context_id, digest=grant.digest, approval_id=grant.approval_id, by=grant.by, at=grant.at)
            if source is not None:
                row = row.replaced(tool=source.request.tool, argument=source.request.argument)
            rows.append(row)
        return a.GrantsView(grants=rows)

    async def end_grants(self, body: a.EndGrantBody, by: str) -> a.GrantsView:
        """Takes back all that a session was given: at once in memory, then on record. Raises NotFound."""
        grants = self._core.state.approvals.grants
        mine = [key for key in grants if key[0] == body.session]
        # What only the disk knows of (it could not be read at the start) would come into force with the next supervisor.
        ledger = self._scribe.ledger
        if not mine and not any(g.context_id == body.session for g in await asyncio.to_thread(ledger.grants)):
            raise NotFound(f"Nothing was approved for session {body.session!r}.", "watchfloor approval list shows what was.")
        for key in mine:
            del grants[key]
        self._scribe.record(Record(by, "approval.taken_back", body.reason, data={"session": body.session, "n": len(mine)}, must=True))
        await asyncio.to_thread(ledger.end_grants, body.session)
        return await self.grants()

    async def _decide(self, one: a.Decided, body: a.DecideBody, by: str) -> a.DecidedRow:
        state = self._core.state
        approval = state.approvals.by_id.get(one.id)
        if approval is None or not self._may_decide(approval):
            return a.DecidedRow(id=one.id, done=False, words=await self._gone(one.id, approval))
        if approval.digest != one.digest:
            return a.DecidedRow(id=one.id, done=False, words="the request is not the one that was shown; look again")
        at, _ = now()
        approved = body.verdict == "approve"
        new = replace(
            approval,
            state=ApprovalState.APPROVED if approved else ApprovalState.DENIED,
            scope=ApprovalScope(body.scope) if approved else ApprovalScope.ONCE,
            decided_by=by,
            decided_at=at,
            words=body.reason.strip() or ("" if approved else NO_REASON),
        )
        try:
            entry = record_of(new, by, f"approval.{new.state}", f"{new.rule}: {new.words or new.scope}", "allow" if approved else "deny")
            await asyncio.to_thread(self._scribe.record_first, entry)
            grant = _grant(new, by, at) if new.scope is ApprovalScope.SESSION else None
            first = await asyncio.to_thread(self._scribe.ledger.change_approval, new, ApprovalState.WAITING, grant)
        except ConsoleError as error:
            return a.DecidedRow(id=one.id, done=False, words=f"not recorded, so not decided: {error}")
        if not first:
            words = await self._gone(one.id, state.approvals.by_id.get(one.id))
            self._scribe.record(record_of(new, by, "approval.too_late", f"not {new.state}: {words}", "deny"))
            return a.DecidedRow(id=one.id, done=False, words=words)
        waits = state.approvals.by_id.get(one.id)
        self._core.post(e.ApprovalDecided(*now(), one.id, one.digest, approved, new.scope, by, new.words))
        if waits is None or waits.state is not ApprovalState.WAITING:
            return a.DecidedRow(id=one.id, done=False, words="it ended while this was written down: nothing is let through")
        return a.DecidedRow(id=one.id, done=True)

    def _may_decide(self, approval: Approval) -> bool:
        """Only what is on disk: a decision on what a crash forgets would be one on nothing."""
        return approval.state is ApprovalState.WAITING and approval.approval_id in self._core.state.approvals.kept

    async def _gone(self, approval_id: str, approval: Approval | None) -> str:
        found = approval or await asyncio.to_thread(self._scribe.ledger.approval, approval_id[:40])
        if found is None:
            return "there is no such request"
        who = f" by {found.decided_by}" if found.decided_by else ""
        return f"it is {found.state} already{who}" + (f": {found.words}" if found.words else "")

    def _row(self, x: Approval, boot: float) -> a.ApprovalRow:
        state = self._core.state
        agent, root = state.agents.get(x.agent_id), state.agents.get(x.root_id)
        return a.ApprovalRow(
            id=x.approval_id,
            agent_id=x.agent_id,
            agent_name=agent.name if agent else "",
            root_id=x.root_id,
            root_name=root.name if root else "",
            session=x.context_id,
            depth=agent.depth if agent else 0,
            sensitivity=agent.sensitivity.value if agent else "",
            cost_usd=round(agent.usage.cost_usd, 6) if agent else 0.0,
            tool=x.request.tool,
            argument=x.request.argument,
            cwd=x.request.cwd,
            says=x.request.says,
            rule=x.rule,
            reason=x.reason,
            danger=x.danger,
            danger_rank=rank_of(x.danger),
            digest=x.digest,
            group=x.group,
            equal=x.equal,
            asked_at=x.asked_at,
            left_s=max(0.0, x.expires_boot - boot) if x.state is ApprovalState.WAITING else 0.0,
            ttl_s=state.approvals.ttl_s,
            state=x.state.value,
            scope=x.scope.value,
            decided_by=x.decided_by,
            decided_at=x.decided_at,
            took_s=x.took_s,
            words=x.words,
        )

    def _tree(self, x: Approval) -> tuple[list[a.TreeCost], int]:
        """The root, the way down to the asker, its children, then the others; bounded."""
        state = self._core.state
        way: list[AgentId] = []
        current: AgentId | None = x.agent_id
        while current is not None and current in state.agents and current not in way:
            way.insert(0, current)
            current = state.agents[current].parent_id
        below = [i for i in sorted(state.children.get(x.agent_id, ())) if i in state.agents]
        rows = [self._cost(state.agents[i], level, x.agent_id) for level, i in enumerate(way)]
        rows += [self._cost(state.agents[i], len(way), x.agent_id) for i in below]
        return rows[:TREE_MAX], max(0, len(rows) - TREE_MAX)

    def _cost(self, agent: Agent, level: int, asker: AgentId) -> a.TreeCost:
        share = share_used(agent.usage, agent.limits) or None
        state = self._core.state
        cost = None if cost_unknown(agent, state.seen.get(agent.agent_id), state.budget.metered) else round(agent.usage.cost_usd, 6)
        return a.TreeCost(id=agent.agent_id, name=agent.name, level=level, cost_usd=cost, share=share, asks=agent.agent_id == asker)


def _short(row: a.ApprovalRow) -> a.ApprovalRow:
    more = max(0, len(row.argument) - LISTED_MAX)
    return row.replaced(argument_more=more, argument=row.argument[:LISTED_MAX], says=row.says[:LISTED_MAX])


def _grant(approval: Approval, by: str, at: float) -> Grant:
    digest = session_digest(approval.request, approval.context_id)
    return Grant(ContextId(approval.context_id), digest, approval.approval_id, by, at)


def _none(approval_id: str) -> NotFound:
    return NotFound(f"There is no approval {approval_id[:60]!r}.", "watchfloor approval list shows them.")
