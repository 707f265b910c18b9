"""The Budgets page's rows, from what the engine knows at this moment. Reads values only: it may run beside the loop, on a snapshot."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

from console.api import budgets as b
from console.domain.agent import Agent, AgentId, AgentState
from console.domain.budget import RESERVABLE, UNCAPPED, Limits, Usage, ends_in_s, forecast, until_midnight
from console.domain.budget import note as day_note
from console.domain.conversation import started_as
from console.domain.ids import ControlLevel
from console.enforcement.charging import wide_nodes
from console.enforcement.identity import TELEMETRY, cost_unknown
from console.enforcement.limiting import OBSERVED
from console.enforcement.state import BudgetState, EngineState, Node, Seen
from console.services.budgets.burn_rate import BurnBook
from console.services.budgets.gauges import Facts, Nearest, gauge, level_of, nearest

FIRST = 20
"""Agents listed below one tree."""
SPENDERS = 20
AT_FULL = [
    "The agent is stopped at once (frozen, cut off, killed). The guard confirms it in a receipt.",
    "The reason goes to the tree, the audit, a notification, and a file in the session's output folder.",
    "For a session, a project or the day: every live agent in it is halted. None starts in it until you raise the limit, with a reason.",
    "No limit stops agents that are only observed: you are warned. Adopt them to have them stopped.",
]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The engine's values at one moment, copied on its thread."""

    agents: dict[AgentId, Agent]
    children: dict[AgentId, tuple[AgentId, ...]]
    tree_usage: dict[AgentId, Usage]
    born: dict[AgentId, float]
    budget: BudgetState
    burn: BurnBook
    seen: Mapping[AgentId, Seen]
    """What sources say: whose answers have no price, and whose spend nothing reads."""
    awake: frozenset[AgentId]
    """Agents that may spend now: only their use counts in a rate or a forecast."""
    awake_in: dict[Node, list[AgentId]]
    """Those of each session and each project."""
    at: float
    boot_s: float
    spent_today: float

    @classmethod
    def of(cls, state: EngineState, burn: BurnBook, at: float, boot_s: float, spent_today: float) -> Snapshot:
        """Shallow copies: agents and usages are immutable."""
        had = state.budget
        copy = BudgetState(
            dict(had.limits),
            dict(had.defaults),
            dict(had.spent),
            dict(had.held),
            dict(had.reservations),
            metered=set(had.metered),
            day=had.day,
        )
        return cls(
            dict(state.agents),
            {k: tuple(sorted(v)) for k, v in state.children.items()},
            dict(state.tree_usage),
            dict(state.born_boot),
            copy,
            burn,
            dict(state.seen),
            frozenset(state.spending),
            _awake_in(state),
            at,
            boot_s,
            spent_today,
        )

    # --- facts

    def _facts(self, node: Node, usage: Usage, limits: Limits, live: bool, born: float | None, inherited: str = "") -> Facts:
        burn, boot_s = self.burn, self.boot_s
        spending = _awake_of(self, node) if live else []
        return Facts(
            usage,
            limits,
            self.budget.held.get(node, Usage()),
            live,
            lambda name: burn.minutes_of(spending, name, boot_s),
            burn.known_min(born, boot_s),
            inherited,
            still=live and not spending,
            unread=_unread_of(self, node),
            over_in_s=until_midnight(self.at) if node[0] == "day" else None,
        )

    def agent_facts(self, agent: Agent) -> Facts:
        """Of the agent alone."""
        return self._facts(("agent", agent.agent_id), agent.usage, agent.limits, agent.state.is_live, self.born.get(agent.agent_id))

    def tree_facts(self, agent: Agent) -> Facts:
        """Of it and all it spawned."""
        usage = self.tree_usage.get(agent.agent_id, agent.usage)
        live = agent.state.is_live or any(a.state.is_live for a in self.subtree(agent.agent_id))
        return self._facts(("tree", agent.agent_id), usage, agent.tree_limits, live, self.born.get(agent.agent_id))

    def wide_facts(self, scope: str, key: str, live: bool) -> Facts:
        """Of a session, a project or a day."""
        node = (scope, key)
        usage = self.budget.spent.get(node, Usage())
        own = self.budget.limits.get((scope, "" if scope == "day" else key))
        limits = self.budget.of(scope, key)
        return self._facts(node, usage, limits, live, None, "settings" if own is None and limits != UNCAPPED else "")

    def subtree(self, agent_id: AgentId) -> list[Agent]:
        """The agent and all it spawned."""
        found, queue = [], [agent_id]
        while queue:
            current = queue.pop()
            if current in self.agents:
                found.append(self.agents[current])
            queue.extend(self.children.get(current, ()))
        return found

    # --- rows

    def row(self, scope: b.BudgetScope, key: str, name: str, facts: Facts, near: Nearest) -> b.BudgetRow:
        """What every row has."""
        minutes = facts.minutes("cost_usd") if facts.live else []
        rate = gauge(facts, "cost_usd").rate_per_h
        return b.BudgetRow(
            scope=scope,
            key=key,
            name=name,
            done=not facts.live,
            ends_in_s=near.ends_in_s,
            first_limit=near.limit,
            why=near.why,
            share=near.share,
            level=level_of(near.share),
            spent_usd=round(facts.usage.cost_usd, 6),
            cap_usd=facts.limits.cost_usd,
            tokens=facts.usage.tokens,
            burn_usd_per_h=rate,
            burn_60=[round(x, 6) for x in minutes],
        )

    def agent_row(self, agent: Agent) -> b.BudgetRow:
        """One agent: its own limits, and those of what it spawned."""
        own, tree = self.agent_facts(agent), self.tree_facts(agent)
        row = self.row("agent", agent.agent_id, agent.name, own, nearest((own, tree)))
        return self._of_agent(row, agent)

    def tree_row(self, root: Agent) -> b.BudgetRow:
        """A whole tree; its root's own limits bound the root alone and do not end it."""
        facts = self.tree_facts(root)
        members = self.subtree(root.agent_id)
        row = self._of_agent(self.row("tree", root.agent_id, root.name, facts, nearest((facts,))), root)
        row.agents, row.agents_ever = sum(a.state.is_live for a in members), len(members)
        row.unpriced = any(_is_unpriced(self, a.agent_id) for a in members)
        row.metered = row.metered or next((self._metered(a) for a in members if self._metered(a) == "after the fact"), "")
        return row

    def _metered(self, agent: Agent) -> str:
        if agent.source == TELEMETRY:
            return "by telemetry"
        if agent.control_level is ControlLevel.OBSERVED or agent.agent_id in self.budget.metered:
            return "after the fact"
        used = any(getattr(agent.usage, name) for name in RESERVABLE)
        return "reported" if used else ""

    def _of_agent(self, row: b.BudgetRow, agent: Agent) -> b.BudgetRow:
        row.state, row.control_level, row.ended_at = agent.state.value, agent.control_level.value, agent.ended_at
        row.agents = int(agent.state.is_live)
        row.agents_ever = 1
        row.unpriced = _is_unpriced(self, agent.agent_id)
        row.metered = self._metered(agent)
        if agent.halt is not None:
            row.overshoot, row.overshoot_limit = agent.halt.overshoot, agent.halt.limit
        if agent.state in (AgentState.OVER_BUDGET, AgentState.HALTED):
            row.note, row.level = agent.state_reason, "over"
        elif agent.control_level is ControlLevel.OBSERVED and agent.state.is_live:
            row.note = OBSERVED
        return row

    def trees(self, order: str = "time") -> list[b.TreeBudget]:
        """Every root, the first to end first (or the dearest), what is done last."""
        found = []
        for agent in self.agents.values():
            if agent.parent_id is not None and agent.parent_id in self.agents:
                continue
            tree = self.tree_row(agent)
            first = self._before(agent, tree)
            found.append(b.TreeBudget(tree=tree, first=first[:FIRST], more=max(0, len(first) - FIRST)))
        by_spend = order == "spend"
        return sorted(found, key=lambda t: _by_spend(t) if by_spend else _by_time(t))

    def _before(self, root: Agent, tree: b.BudgetRow) -> list[b.BudgetRow]:
        """Agents of a tree that end before it, or are over; only those with limits of their own can."""
        members = [a for a in self.subtree(root.agent_id) if a.limits != UNCAPPED or a.tree_limits != UNCAPPED]
        rows = [self.agent_row(a) for a in members if a.state.is_live and (a is not root or a.limits not in (UNCAPPED, a.tree_limits))]
        ends = tree.ends_in_s
        sooner = [r for r in rows if r.level == "over" or (r.ends_in_s is not None and (ends is None or r.ends_in_s < ends))]
        return sorted(sooner, key=lambda r: (r.ends_in_s is None, r.ends_in_s or 0.0, r.key))

    def wide_rows(self, scope: b.BudgetScope) -> list[b.BudgetRow]:
        """Sessions or projects with live agents, with a limit, or that spent and have one by the settings."""
        live: dict[str, int] = {}
        ever: dict[str, int] = {}
        for agent in self.agents.values():
            key = agent.context_id if scope == "session" else agent.project
            ever[key] = ever.get(key, 0) + 1
            live[key] = live.get(key, 0) + agent.state.is_live
        keys = {k for k, n in live.items() if n and k} | {k for s, k in self.budget.limits if s == scope}
        rows = [self.wide_row(scope, key, live.get(key, 0), ever.get(key, 0)) for key in keys]
        return sorted(rows, key=lambda r: (r.ends_in_s is None, r.ends_in_s or 0.0, -r.share, r.key))

    def wide_row(self, scope: b.BudgetScope, key: str, live: int, ever: int) -> b.BudgetRow:
        """A session, a project or a day."""
        facts = self.wide_facts(scope, key, live > 0 or scope == "day")
        row = self.row(scope, key, key, facts, nearest((facts,)))
        row.agents, row.agents_ever, row.done = live, ever, False
        row.state = "used_up" if row.share >= 1.0 else "open"
        if row.state == "used_up":
            row.note = "used up: nothing starts in it until its limit is raised, with a reason"
        return row

    def day_rows(self) -> list[b.BudgetRow]:
        """Today first; days before are over."""
        dates = sorted((k for s, k in self.budget.spent if s == "day"), reverse=True)[:14]
        today = self.budget.day.date
        rows = []
        for date in dates if today in dates else [today, *dates]:
            if date:
                row = self.wide_row("day", date, sum(a.state.is_live for a in self.agents.values()) if date == today else 0, 0)
                row.done = date != today
                rows.append(row)
        return rows

    def totals(self, shares: dict[str, float]) -> b.BudgetTotals:
        """The header. ``shares``: of each live agent, its nearest cap."""
        key = self.budget.day.date
        facts = self.wide_facts("day", key, True)
        levels = [level_of(share) for share in shares.values()]
        halted = sum(a.state is AgentState.HALTED and (a.ended_at or 0) > self.at - 86400 for a in self.agents.values())
        view = b.BudgetTotals(
            over=levels.count("over") + halted,
            above_75=levels.count("above_75") + levels.count("above_90"),
            within=levels.count("within"),
            trees=sum(a.parent_id is None and a.state.is_live for a in self.agents.values()),
            spend_today_usd=round(max(facts.usage.cost_usd, self.spent_today), 6),
            day=key,
            day_cap_usd=facts.limits.cost_usd,
            day_note=day_note(self.budget.day, self.at),
            known_min=facts.known_min,
        )
        view.spending = len(self.awake)
        minutes = facts.minutes("cost_usd")
        if not self.awake:
            view.burn_usd_per_h = 0.0
            view.forecast_usd = view.forecast_low_usd = view.forecast_high_usd = view.spend_today_usd
        elif minutes:
            view.burn_60 = [round(x, 6) for x in minutes]
            view.burn_usd_per_h = gauge(facts, "cost_usd").rate_per_h
            seen = forecast(view.spend_today_usd, minutes, facts.known_min, until_midnight(self.at))
            if seen is not None:
                view.forecast_usd, view.forecast_low_usd, view.forecast_high_usd = seen.middle, seen.low, seen.high
            left = ends_in_s(cap, view.spend_today_usd, view.burn_usd_per_h) if (cap := view.day_cap_usd) is not None else None
            if left is not None and left < until_midnight(self.at):
                view.passes_cap_at = self.at + left
        return view

    def spenders(self, scope: str, key: str) -> tuple[list[b.SpenderView], int, float]:
        """Who spends from a node: (the dearest, how many others, what those spent)."""
        members = self.members(scope, key)
        members.sort(key=lambda a: (-a.usage.cost_usd, -a.usage.tokens, a.agent_id))
        shown = [
            b.SpenderView(
                agent_id=a.agent_id,
                name=a.name,
                spent_usd=round(a.usage.cost_usd, 6),
                tokens=a.usage.tokens,
                level=level_of(nearest((self.agent_facts(a),)).share),
                state=a.state.value,
            )
            for a in members[:SPENDERS]
        ]
        rest = members[SPENDERS:]
        return shown, len(rest), round(sum(a.usage.cost_usd for a in rest), 6)

    def members(self, scope: str, key: str) -> list[Agent]:
        """Agents that are charged to it."""
        if scope in ("agent", "tree"):
            return self.subtree(AgentId(key))
        if scope == "session":
            return [a for a in self.agents.values() if a.context_id == key]
        if scope == "project":
            return [a for a in self.agents.values() if a.project == key]
        if scope == "day":
            return [a for a in self.agents.values() if a.state.is_live or time.strftime("%Y-%m-%d", time.localtime(a.ended_at or 0)) == key]
        return []


def _unread_of(seen: Snapshot, node: Node) -> str:
    """Why nothing reads what an agent, or one of its tree, spends; empty: it is read."""
    scope, key = node
    members = [AgentId(key)] if scope == "agent" else [a.agent_id for a in seen.subtree(AgentId(key))] if scope == "tree" else []
    return next((why for one in members if (why := _why_unread(seen, one))), "")


def _why_unread(seen: Snapshot, agent_id: AgentId) -> str:
    of, agent = seen.seen.get(agent_id), seen.agents.get(agent_id)
    if of is not None and of.unread and (agent is None or started_as(agent.argv) is None):
        return of.unread  # also where something was read before; what a started program spends is told by its own stream
    return cost_unknown(agent, of, seen.budget.metered) if agent is not None else ""


def _is_unpriced(seen: Snapshot, agent_id: AgentId) -> bool:
    of = seen.seen.get(agent_id)
    return bool(_why_unread(seen, agent_id) or (of is not None and of.unpriced))


def _awake_of(seen: Snapshot, node: Node) -> list[AgentId]:
    """Agents charged to a node that may spend now."""
    scope, key = node
    if scope == "day":
        return list(seen.awake)
    if scope in ("agent", "tree"):
        below = [AgentId(key)] if scope == "agent" else [a.agent_id for a in seen.subtree(AgentId(key))]
        return [i for i in below if i in seen.awake]
    return seen.awake_in.get(node, [])


def _awake_in(state: EngineState) -> dict[Node, list[AgentId]]:
    found: dict[Node, list[AgentId]] = {}
    for agent_id in state.spending:
        for node in wide_nodes(state, state.agents[agent_id]):
            found.setdefault(node, []).append(agent_id)
    return found


def _by_time(tree: b.TreeBudget) -> tuple[bool, bool, float, float]:
    ends = [r.ends_in_s for r in (tree.tree, *tree.first) if r.ends_in_s is not None]
    return tree.tree.done, not ends, min(ends, default=0.0), -tree.tree.spent_usd


def _by_spend(tree: b.TreeBudget) -> tuple[bool, bool, float, float]:
    return tree.tree.done, False, -tree.tree.spent_usd, 0.0
