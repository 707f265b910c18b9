"""Hold the fleet: rows of agents, their tree order, filter and sort. Pure Python, so that 100,000 rows take only milliseconds.

Spend, burn and last action change all the time. The thread that reads the stream writes them into the views of ``Facts``. What is derived
from them is worked out when it is shown. Only what changes a row's place or its counts is worked out here, at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from console.api.agents.fleet_changes import FleetChanges
from console.api.messages import AgentView
from console.domain.budget import last_midnight
from console.gui.models.facts import Facts, News
from console.gui.models.order import children_of, ranks_of
from console.gui.models.row import CALM, FELL, Row, is_full, needs_attention, urgency, view_mode
from console.gui.widgets.words import plural

__all__ = ["FILTERS", "NEWS", "SORTS", "Fleet", "Row", "is_full", "needs_attention", "urgency", "view_mode"]

NEWS = 1000
"""Changes of state that are kept until the notifications read them."""

FILTERS: dict[str, Callable[[Row], bool]] = {
    "all": lambda row: True,
    "attention": lambda row: row.attends,
    "full": lambda row: "full" in row.tags,
    "deep": lambda row: "deep" in row.tags,
}
SORTS: dict[str, Callable[[Row], Any]] = {
    "agent": lambda row: row.name.lower(),
    "state": lambda row: (not row.is_live, row.view.state),
    "depth": lambda row: row.view.depth,
    "network": lambda row: {"FULL": 0, "PROXIED": 1}.get(view_mode(row.view), 2),
    "budget": lambda row: row.view.budget_share,
    "cost": lambda row: -1.0 if row.view.cost_usd is None else row.view.cost_usd,
    "burn": lambda row: row.view.burn_usd_per_h,
    "runtime": lambda row: -row.view.started_at,
    "action": lambda row: row.view.last_action_at,
}
_BY_NUMBERS = frozenset(("budget", "cost", "burn", "action"))
"""Sorts that what is quiet changes."""


class Fleet:
    """All agents by id, and the list the table shows."""

    def __init__(self) -> None:
        self.rows: dict[str, Row] = {}
        self.facts = Facts()
        """What the stream says is written there first."""
        self.killed = False
        self.kill_reason = ""
        self.spend_today_usd = 0.0
        self.burn_usd_per_h = 0.0
        self.day_words = ""
        """What the budgets say of the day's cap; empty until they were read."""
        self.load_words = ""
        """How much people are asked, from the inbox; empty: nothing was asked."""
        self.loaded = False
        self.closed: set[str] = set()
        self.text = ""
        self.filter = "all"
        self.sort: tuple[str, bool] = ("", False)
        self.urgent_first = True
        """Attention first: trees with an agent that needs a person come before calm ones, trees that are over last."""
        self.structure_changed = True
        """The list must be arranged again; else a repaint is enough."""
        self.seen: dict[str, str] = {}
        """Agents whose end a person has seen: id -> one of FELL."""
        self.news: list[tuple[Row, str]] = []
        """Agents that changed their state since the list was last emptied; a first reading adds none."""
        self._tally: Counter[str] = Counter()
        self._states: Counter[str] = Counter()
        self._kids: dict[str, list[Row]] | None = None
        """Children by parent, roots under ""; None: an agent came, went or moved."""

    def replace(self, views: Iterable[AgentView], seq: int = 0) -> None:
        """A whole snapshot, true up to ``seq``; a row that was there stays the same object, so that no list shows the facts of before."""
        views = list(views)
        held = self.facts.renew(views, seq)
        before, first, self.rows = self.rows, not self.loaded, {}
        for view in views:
            fresh, row = Row(view), before.get(view.id)
            was = row.state if row is not None else ""
            if row is None:
                row = fresh
                if row.state in FELL and self.seen.get(row.id) == row.state:
                    row.see()
            else:
                row.settle(fresh)
            self.rows[view.id] = row
            if not first and row.state != was:
                self._note(row)
        self._tally = Counter(tag for row in self.rows.values() for tag in row.tags)
        self._states = Counter(row.state for row in self.rows.values())
        self.loaded = True
        self.structure_changed, self._kids = True, None
        for news in held:
            self.take(news)

    def apply(self, changes: FleetChanges) -> bool:
        """A delta; False when it names an unknown agent: the fleet must be read again."""
        news = self.facts.write(changes)
        return news is None or self.take(news)

    def take(self, news: News) -> bool:
        """What a delta changed that was written into the facts already; False as ``apply``."""
        if news.generation != self.facts.generation:
            return True  # the snapshot that came since has it
        for fresh in news.judged:
            row = self.rows.get(fresh.id)
            if row is not None:
                self._change(row, fresh)
            elif fresh.is_whole:
                self._add(fresh)
        for row in (gone for agent_id in news.remove if (gone := self.rows.pop(agent_id, None)) is not None):
            self._count(row, -1)
            self.structure_changed, self._kids = True, None
        # A list that is sorted by numbers or filtered follows them; the window coalesces arranging.
        if news.moved and (self.sort[0] in _BY_NUMBERS or self.text or self.filter == "attention"):
            self.structure_changed = True
        if news.spend_today_usd is not None:
            self.spend_today_usd = news.spend_today_usd
        if news.burn_usd_per_h is not None:
            self.burn_usd_per_h = news.burn_usd_per_h
        return news.known

    def see(self, agent_ids: Iterable[str]) -> None:
        """A person has seen how these ended: they leave Attention, until something else becomes of them."""
        for agent_id in agent_ids:
            row = self.rows.get(agent_id)
            if row is not None and row.state in FELL and not row.seen:
                self._count(row, -1)
                row.see()
                self._count(row, 1)
                self.seen[agent_id] = row.state
                self.structure_changed = True

    def upsert(self, view: AgentView) -> None:
        """One agent's newer facts."""
        self.apply(FleetChanges(0, [view]))

    def remove(self, agent_id: str) -> None:
        """It is not listed any more."""
        self.apply(FleetChanges(0, remove=[agent_id]))

    def _add(self, row: Row) -> None:
        self.rows[row.id] = row
        self._count(row, 1)
        self._note(row)
        self.structure_changed, self._kids = True, None

    def _change(self, row: Row, fresh: Row) -> None:
        parent, rank, state, was_over = row.parent, row.rank, row.state, row.is_over
        if row.tags is fresh.tags and state == fresh.state:
            row.settle(fresh)
        else:
            self._count(row, -1)
            row.settle(fresh)
            self._count(row, 1)
        if state != row.state:
            self.seen.pop(row.id, None)
            self._note(row)
        if row.parent != parent:
            self._kids = None
            self.structure_changed = True
        elif ((row.rank != rank or row.is_over != was_over) and self.urgent_first) or self.sort[0] or self.text or self.filter != "all":
            self.structure_changed = True

    def _note(self, row: Row) -> None:
        if len(self.news) < NEWS:
            self.news.append((row, row.state))

    def _count(self, row: Row, by: int) -> None:
        self._states[row.state] += by
        for tag in row.tags:
            self._tally[tag] += by

    def arrange(self, held: Mapping[str, int] | None = None) -> list[Row]:
        """Tree order with the filter, the sort and the folded rows applied; ancestors of a match stay visible.

        ``held``: places by id that siblings keep; those without one come after.
        """
        self.structure_changed = False
        children, kept = self._children(), self._kept()
        ordered = self._order() if held is None else _in_places(held)
        closed = self.closed if kept is None else ()
        out: list[Row] = []
        placed: set[str] = set()
        stack: list[tuple[int, list[Row]]] = [(0, ordered(children[""])[::-1])]
        while stack:
            indent, rows = stack[-1]
            if not rows:
                stack.pop()
                continue
            row = rows.pop()
            name = row.id
            if name in placed or (kept is not None and name not in kept):
                continue
            placed.add(name)
            out.append(row)
            row.indent, row.child_of = indent, ""
            mine = children.get(name)
            row.is_open = name not in self.closed
            if mine is None:
                row.kids = 0
                continue
            row.kids = len(mine)
            if name not in closed:
                stack.append((indent + 1, ordered(mine)[::-1]))
        return out

    def tree(self, agent_id: str) -> list[Row]:
        """That agent and everything below it."""
        children = self._children()
        out, stack = [], [self.rows[agent_id]] if agent_id in self.rows else []
        seen: set[str] = set()
        while stack:
            row = stack.pop()
            if row.id not in seen:
                seen.add(row.id)
                out.append(row)
                stack.extend(children.get(row.id, []))
        return out

    def count(self, name: str) -> int:
        """How many rows a filter of FILTERS would keep, or are ``exposed``."""
        return self._tally[name]

    def states(self) -> dict[str, int]:
        """Agents by state."""
        return {state: number for state, number in self._states.items() if number}

    def unread(self) -> frozenset[str]:
        """Agents whose spend nothing reads: their cost is not known, and in no sum."""
        return frozenset(row.id for row in self.rows.values() if row.view.cost_usd is None)

    def live(self) -> int:
        """Agents of which something may still run."""
        return self._tally["live"]

    def _children(self) -> dict[str, list[Row]]:
        if self._kids is None:
            self._kids = children_of(self.rows)
        return self._kids

    def _kept(self) -> set[str] | None:
        """Ids of matches and their ancestors; None when everything is shown."""
        words = self.text.lower().split()
        if not words and self.filter == "all":
            return None
        rows = self.rows
        matches: Iterable[Row] = rows.values() if self.filter == "all" else filter(FILTERS[self.filter], rows.values())
        for word in words:
            matches = [row for row in matches if word in row.fixed or word in row.last.lower()]
        kept: set[str] = set()
        for row in matches:
            at: Row | None = row
            while at is not None and at.id not in kept:
                kept.add(at.id)
                at = rows.get(at.view.parent_id or "")
        return kept

    def _order(self) -> Callable[[list[Row]], list[Row]]:
        """How siblings stand. Sorts are stable: those alike stay as they came."""
        key, descending = self.sort
        if key in SORTS:
            return lambda rows: sorted(rows, key=SORTS[key], reverse=descending) if len(rows) > 1 else rows
        ranks = ranks_of(self.rows, self._children()) if self.urgent_first else {}
        if not ranks:
            return lambda rows: rows
        get = ranks.get
        return lambda rows: sorted(rows, key=lambda row: get(row.id, CALM)) if len(rows) > 1 else rows


def _in_places(held: Mapping[str, int]) -> Callable[[list[Row]], list[Row]]:
    last = len(held)
    return lambda rows: sorted(rows, key=lambda row: held.get(row.id, last)) if len(rows) > 1 else rows


def halted_today(fleet: Fleet, at: float) -> int:
    """Agents that a limit halted in the last 24 hours. They are over, and nothing can be done about them."""
    return sum(row.state == "halted" and (row.view.ended_at or 0.0) > at - 86_400 for row in fleet.rows.values())


def unread_today(fleet: Fleet, at: float) -> str:
    """``2 agents``: those of the day with unknown spend, which its sum lacks; empty when there is none."""
    midnight = last_midnight(at)
    ends = [row.view.ended_at for row in fleet.rows.values() if row.view.cost_usd is None]
    number = sum(ended_at is None or ended_at >= midnight for ended_at in ends)
    return plural(number, "agent") if number else ""
