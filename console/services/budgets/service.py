"""What an operator asks of budgets: the page, one node, the history; and changes of limits, with a reason, on record."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from console.api import budgets as b
from console.domain.agent import AgentId, AgentState
from console.domain.budget import (
    GAUGES,
    LIMIT_LABELS,
    LIMIT_NAMES,
    LIMIT_WORDS,
    SUMMED,
    UNCAPPED,
    Limits,
    first_breach,
    parse_limit,
    share_used,
    with_limit,
)
from console.domain.engine import event as e
from console.domain.engine.command import Record
from console.domain.errors import UsageProblem
from console.domain.ids import CONTEXT_ID, ControlLevel
from console.domain.process.environment import check_agent_type
from console.domain.words import counted
from console.enforcement import charging, limiting
from console.enforcement.state import EngineState, Node
from console.ledger.budgets import LimitChange
from console.services.budgets.burn_rate import BurnBook
from console.services.budgets.gauges import gauges
from console.services.budgets.views import AT_FULL, Snapshot
from console.services.fleet.core import Core, now
from console.services.records.record_writer import Scribe

MOST = 10_000
"""Sessions, projects and types that can have limits of their own."""
KEY_MAX = 400


@dataclass(frozen=True, slots=True)
class Asked:
    """A change of limits, checked."""

    scope: b.BudgetScope
    key: str
    old: Limits
    new: Limits
    changes: tuple[LimitChange, ...]

    @property
    def only_tightens(self) -> bool:
        """Every limit that changes becomes smaller, or is new."""
        return all(x.new is not None and (x.old is None or x.new <= x.old) for x in self.changes)


class BudgetDesk:
    """On the event loop's thread; what blocks or takes long runs beside it."""

    __slots__ = ("_turn", "_core", "_scribe", "_burn")

    def __init__(self, core: Core, scribe: Scribe, burn: BurnBook) -> None:
        self._core, self._scribe, self._burn = core, scribe, burn
        self._turn = asyncio.Lock()

    def snapshot(self) -> Snapshot:
        """The engine's values now."""
        core = self._core
        at, boot = now()
        return Snapshot.of(core.state, self._burn, at, boot, core.meters.spent_today(at))

    async def page(self, order: str, limit: int = b.ROWS) -> b.BudgetsView:
        """GET /api/budgets; ``limit``: the most trees, projects and sessions that are listed, each."""
        state = self._core.state
        shares = {
            i: max(share_used(a.usage, a.limits), share_used(state.tree_usage.get(a.root_id, a.usage), state.agents[a.root_id].tree_limits))
            for i in state.live
            if (a := state.agents[i]).root_id in state.agents
        }
        return await asyncio.to_thread(_page, self.snapshot(), dict(shares), order, limit)

    async def node(self, scope: b.BudgetScope, key: str) -> b.BudgetNodeView:
        """Answer GET /api/budgets/node. Raises NotFound for an unknown agent."""
        if scope in ("agent", "tree"):
            self._core.agent_or_404(key)
        if scope == "day" and not key:
            key = self._core.state.budget.day.date
        view = await asyncio.to_thread(_node, self.snapshot(), scope, key)
        rows, total = await asyncio.to_thread(self._scribe.ledger.budget_changes, scope, "" if scope == "day" else key, 20)
        view.changes, view.changes_total = [change_view(x) for x in rows], total
        return view

    async def history(self, scope: str, key: str, limit: int) -> b.BudgetHistoryView:
        """GET /api/budgets/history."""
        rows, total = await asyncio.to_thread(self._scribe.ledger.budget_changes, scope, key, limit)
        return b.BudgetHistoryView(changes=[change_view(x) for x in rows], total=total)

    async def change(self, body: b.BudgetBody, by: str) -> b.BudgetSetView:
        """POST /api/budgets. What raises or clears a limit is on record first, or refused; what only tightens acts first."""
        async with self._turn:
            asked = self._checked(body, by)
            if body.dry_run:
                return self._would(asked)
            if not asked.changes:
                return self._said(asked, "Nothing changed: these limits held already.", [])
            words = f"{_where(asked)}: {_listed(asked.changes)}: {body.reason}"
            changed = [[x.name, x.old, x.new] for x in asked.changes]
            data = {"scope": asked.scope, "key": asked.key, "changes": changed, "tightens": asked.only_tightens}
            agent_id = asked.key if asked.scope in ("agent", "tree") else ""
            record = Record(by, "budget.changed", words, verdict="allow", agent_id=agent_id, data=data, must=asked.only_tightens)
            if asked.only_tightens:
                halted = self._post(asked, by, body.reason)
                self._scribe.record(record)
                await asyncio.to_thread(self._keep, asked)
            else:
                await asyncio.to_thread(self._scribe.record_first, record)
                await asyncio.to_thread(self._keep, asked)
                halted = self._post(asked, by, body.reason)
            if agent_id:
                await self._core.saved()
            words += f". {counted(len(halted), 'agent is', 'agents are')} halted now." if halted else _lower(self._core.state, asked)
            return self._said(asked, words, halted)

    def _would(self, asked: Asked) -> b.BudgetSetView:
        """What a change would do; it does nothing."""
        if not asked.changes:
            return self._said(asked, "Nothing would change: these limits hold already.", []).replaced(dry_run=True)
        seen = foresee(self._core.state, asked.scope, asked.key, asked.new)
        view = self._said(asked, foreseen(seen), list(seen.halted))
        return view.replaced(dry_run=True, cannot_stop=[str(i) for i in seen.observed])

    def _keep(self, asked: Asked) -> None:
        self._scribe.ledger.change_limits(asked.scope, asked.key, asked.new, asked.changes)

    def _post(self, asked: Asked, by: str, reason: str) -> list[AgentId]:
        """Apply the change. Returns the agents that it halts."""
        before = set(self._core.state.halting)
        self._core.post(e.LimitsChanged(*now(), asked.scope, asked.key, asked.new, by, reason))
        return sorted(self._core.state.halting - before)

    def _checked(self, body: b.BudgetBody, by: str) -> Asked:
        state = self._core.state
        key = self._key(body.scope, body.key)
        old = self._held(body.scope, key)
        changed = _changed(old, body)
        if (body.scope, key) not in state.budget.limits and body.scope not in ("agent", "tree") and len(state.budget.limits) >= MOST:
            raise UsageProblem(
                f"{MOST:,} sessions and projects have limits of their own already.", "Clear some, or set one in settings.json."
            )
        at = now()[0]
        changes = tuple(
            LimitChange(at, body.scope, key, n, getattr(old, n), getattr(changed, n), by, body.reason)
            for n in LIMIT_NAMES
            if getattr(old, n) != getattr(changed, n)
        )
        return Asked(body.scope, key, old, changed, changes)

    def _key(self, scope: b.BudgetScope, key: str) -> str:
        """The key as it is kept. Raises NotFound, UsageProblem."""
        if scope in ("agent", "tree"):
            agent = self._core.state.agents[self._core.agent_or_404(key)]
            if agent.state in (AgentState.ENDED, AgentState.FAILED, AgentState.LOST, AgentState.KILLED, AgentState.HALTED):
                members = self._core.state.subtree(agent.agent_id)
                if scope == "agent" or not any(i in self._core.state.live for i in members):
                    raise UsageProblem(
                        f"Agent {agent.agent_id} has ended: its limits can change nothing.", "Set its session's or its project's."
                    )
            return agent.agent_id
        if scope == "day":
            if key:
                raise UsageProblem("The limits of a day hold for every day.", "Leave the key out.")
            return ""
        if scope == "session" and not CONTEXT_ID.match(key):
            raise UsageProblem(f"Session id {key[:80]!r} is not valid.", "Use a-z, 0-9 and -, 1 to 63 characters.")
        if scope == "type":
            check_agent_type(key)
        if not key or len(key) > KEY_MAX or not key.isprintable():
            raise UsageProblem("A project is a folder or a name, 1 to 400 printable characters.", "watchfloor budget list shows them.")
        return key

    def _held(self, scope: str, key: str) -> Limits:
        state = self._core.state
        if scope == "agent":
            return state.agents[AgentId(key)].limits
        if scope == "tree":
            return state.agents[AgentId(key)].tree_limits
        default = state.budget.defaults.get(f"type:{key}" if scope == "type" else scope, UNCAPPED)
        return state.budget.limits.get((scope, key), default)

    def _said(self, asked: Asked, words: str, halted: list[AgentId]) -> b.BudgetSetView:
        return b.BudgetSetView(
            scope=asked.scope,
            key=asked.key,
            limits={n: getattr(asked.new, n) for n in LIMIT_NAMES},
            changes=[change_view(x) for x in asked.changes],
            words=words,
            halted=[str(i) for i in halted],
        )


def _changed(old: Limits, body: b.BudgetBody) -> Limits:
    """Raises UsageProblem on an unknown name and on what is no limit."""
    if not body.limits and not body.clear:
        raise UsageProblem("No limit is named.", f"Names: {LIMIT_LABELS}; for example cost=2.50.")
    limits = old
    for name in body.clear:
        if name not in LIMIT_WORDS:
            raise UsageProblem(f"There is no limit {name[:60]!r}.", f"Names: {LIMIT_LABELS}.")
        limits = Limits(**{n: None if n == LIMIT_WORDS[name] else getattr(limits, n) for n in LIMIT_NAMES})
    for name, value in body.limits.items():
        if name not in LIMIT_WORDS:
            raise UsageProblem(f"There is no limit {name[:60]!r}.", f"Names: {LIMIT_LABELS}.")
        limits = with_limit(limits, *parse_limit(f"{name}={value!r}"))
    return limits


def change_view(change: LimitChange) -> b.BudgetChange:
    """One line of the history."""
    return b.BudgetChange.read(
        {
            "at": change.at,
            "scope": change.scope,
            "key": change.key,
            "limit": change.name,
            "old": change.old,
            "new": change.new,
            "by": change.by,
            "reason": change.reason,
        }
    )


def _where(asked: Asked) -> str:
    return "every day" if asked.scope == "day" else f"{asked.scope} {asked.key[:120]}"


def _lower(state: EngineState, asked: Asked) -> str:
    """Name the limits that still hold before a new one: ``run --limit`` bounds an agent and its tree alike."""
    agent = state.agents.get(AgentId(asked.key)) if asked.scope in ("agent", "tree") else None
    nodes = [node for node in charging.nodes_of(state, agent) if node != (asked.scope, asked.key)] if agent is not None else []
    found = [
        f"{scope} {key[:120]}: {x.name} {_number(cap)}"
        for scope, key in nodes
        for x in asked.changes
        if (cap := getattr(charging.limits_at(state, (scope, key)), x.name)) is not None and (x.new is None or cap < x.new)
    ]
    more = f" and {len(found) - 3} more" if len(found) > 3 else ""
    return f". A lower limit still holds: {', '.join(found[:3])}{more}" if found else ""


def _listed(changes: tuple[LimitChange, ...]) -> str:
    return ", ".join(f"{x.name} {_number(x.old)} -> {_number(x.new)}" for x in changes)


def _number(value: float | None) -> str:
    return "none" if value is None else f"{value:g}"


def _page(seen: Snapshot, shares: dict[AgentId, float], order: str, limit: int) -> b.BudgetsView:
    trees = seen.trees(order)
    return b.BudgetsView(
        at=seen.at,
        totals=seen.totals({str(i): x for i, x in shares.items()}),
        trees=trees[:limit],
        more_trees=max(0, len(trees) - limit),
        projects=seen.wide_rows("project")[:limit],
        sessions=seen.wide_rows("session")[:limit],
        days=seen.day_rows(),
        limits_words=AT_FULL[0],
    )


def _node(seen: Snapshot, scope: b.BudgetScope, key: str) -> b.BudgetNodeView:
    spenders, others, others_usd = seen.spenders(scope, key)
    if scope in ("agent", "tree"):
        agent = seen.agents[AgentId(key)]
        facts = seen.agent_facts(agent) if scope == "agent" else seen.tree_facts(agent)
        row = seen.agent_row(agent) if scope == "agent" else seen.tree_row(agent)
    else:
        live = sum(a.state.is_live for a in seen.members(scope, key))
        facts = seen.wide_facts(scope, key, live > 0 or scope == "day")
        row = seen.wide_row(scope, key, live, len(seen.members(scope, key)))
    return b.BudgetNodeView(row=row, gauges=gauges(facts), spenders=spenders, others=others, others_usd=others_usd, at_full=AT_FULL)


# --- What a change of limits would do, before anybody makes it: whom it would halt now, and who would go on though it does not allow it.


@dataclass(frozen=True, slots=True)
class Foresight:
    """Agents that are live now; a moment later there may be others."""

    halted: tuple[AgentId, ...]
    observed: tuple[AgentId, ...]
    """Over it, and only observed: they cannot be stopped."""
    used: tuple[tuple[str, float, float], ...]
    """(limit, used, cap) of each limit that would hold."""


def foresee(state: EngineState, scope: str, key: str, limits: Limits) -> Foresight:
    """By the rules of ``limiting``, with ``limits`` in the place of what holds there. Reads only."""
    if scope == "type":  # limits of a type are given to agents at their start
        return Foresight((), (), ())
    node = ("day", state.budget.day.date) if scope == "day" else (scope, key)
    over = _over(state, node, limits)
    live = [i for i in over if i in state.live and i not in state.halting and state.agents[i].state is not AgentState.STARTING]
    seen = tuple(i for i in live if state.agents[i].control_level is ControlLevel.OBSERVED)
    usage = charging.usage_at(state, node)
    used = tuple(
        (name, float(getattr(usage, name)), float(cap))
        for name in LIMIT_NAMES
        if (cap := getattr(limits, name)) is not None and (name not in GAUGES or scope == "agent")
    )
    return Foresight(tuple(i for i in live if i not in seen), seen, used)


def _over(state: EngineState, node: Node, limits: Limits) -> list[AgentId]:
    inside = limiting.members(state, node)
    names = LIMIT_NAMES if node[0] == "agent" else SUMMED
    if first_breach(charging.usage_at(state, node), limits, node[0], names=names):
        return inside
    if node[0] == "agent":
        return []
    steps = [i for i in inside if i in state.live and first_breach(state.agents[i].usage, limits, node[0], names=GAUGES)]
    return sorted({below for i in steps for below in state.subtree(i)})


def foreseen(seen: Foresight) -> str:
    """Tell in one sentence what the change does at once."""
    if not seen.halted and not seen.observed:
        return "It halts no agent now."
    parts = []
    if seen.halted:
        parts.append(f"{_agents(len(seen.halted))} {'has' if len(seen.halted) == 1 else 'have'} used it up and will be halted at once")
    if seen.observed:
        parts.append(f"{_agents(len(seen.observed))} only observed would be over it and cannot be stopped")
    return f"{'; '.join(parts)}."


def _agents(number: int) -> str:
    return "1 agent" if number == 1 else f"{number:,} agents"
