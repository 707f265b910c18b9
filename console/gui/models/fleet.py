"""The fleet: rows of agents, their tree order, filter and sort. Pure Python, so that 100,000 rows stay a matter of milliseconds.

What moves all the time (spend, burn, last action) changes a row in place and costs a dictionary's update; what is derived from it
is derived when it is looked at. Only what changes a row's place or what it is counted under is worked out at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any

from console.api.fleet_changes import NEAR, QUIET, FleetChanges, Patch
from console.api.messages import AgentView
from console.domain.agent import AgentState
from console.gui.widgets.safe_text import safe_text

LIVE = frozenset(state.value for state in AgentState if state.is_live)
DEEP = 3
NEWS = 1000
"""Changes of state that are kept for whoever tells a person of them."""
_URGENT = {"alive_after_kill": 0, "over_budget": 1, "needs_ok": 2, "lost": 3, "frozen": 5, "failed": 6}
_UNPROVEN = 4
CALM = 7
"""The rank of a row that wants nothing."""


class Row:
    """One agent as the table shows it. ``name`` and ``action`` are safe; ``view`` is as it came."""

    __slots__ = (
        "attends",
        "facts",
        "fixed",
        "guides",
        "id",
        "indent",
        "is_live",
        "is_open",
        "kids",
        "name",
        "near",
        "rank",
        "tags",
        "view",
    )

    def __init__(self, view: AgentView) -> None:
        self.id = view.id
        self.indent = 0
        self.kids = 0
        """Children in the whole fleet, shown or not."""
        self.is_open = True
        self.guides = 0
        self.take(view)

    def take(self, view: AgentView) -> None:
        """Newer facts of the same agent."""
        self.show(view)
        self.judge()

    def show(self, view: AgentView) -> None:
        """Newer facts, not judged yet."""
        self.view = view
        self.facts: dict[str, Any] = view.__dict__
        """The view's own fields: what is patched there is read there."""

    def judge(self) -> None:
        """Works out anew what is derived from the view: after any change but one of QUIET fields far from a cap."""
        view = self.view
        self.name = safe_text(view.name or view.id, 120)
        self.is_live = view.state in LIVE
        self.near = self.is_live and view.budget_share >= NEAR
        """Close to a cap, or at it."""
        self.attends = needs_attention(self)
        self.rank = urgency(self)
        """0 is the most urgent, CALM wants nothing; by state alone, so that rows do not change places with every number."""
        self.tags: tuple[str, ...] = _tags(
            self.attends, self.is_live and view_mode(view) == "FULL", self.is_live and view.depth >= DEEP, self.is_live
        )
        """The filters that keep it, counted by the fleet as it changes."""
        self.fixed = f"{view.name}\0{view.id}\0{view.session}\0{view.state}".lower()

    @property
    def action(self) -> str:
        """What it did last, safe."""
        return _safe_action(self.view.last_action)

    @property
    def haystack(self) -> str:
        """What a typed word is looked for in."""
        return f"{self.fixed}\0{self.view.last_action.lower()}"


@lru_cache(maxsize=4096)
def _safe_action(words: str) -> str:
    return safe_text(words, 160)


@lru_cache(maxsize=16)
def _tags(attends: bool, full: bool, deep: bool, live: bool) -> tuple[str, ...]:
    named = (("attention", attends), ("full", full), ("deep", deep), ("live", live))
    return ("all", *(name for name, holds in named if holds))


def needs_attention(row: Row) -> bool:
    """Over budget or close to it, waiting for a person, alive after a kill, lost, or reaching everything."""
    view = row.view
    if view.state in ("over_budget", "needs_ok", "alive_after_kill", "lost", "failed"):
        return True
    return row.near or is_full(row)


def urgency(row: Row) -> int:
    """Alive after a kill, over budget, waiting for a person, lost, not proven, frozen, failing; then all the others alike.

    That an observed agent's stop is best effort is how it is, not news: only one that should be held and is not counts here.
    """
    view = row.view
    if row.is_live and view.best_effort and view.control_level != "observed":
        return min(_UNPROVEN, _URGENT.get(view.state, CALM))
    return _URGENT.get(view.state, CALM)


def is_full(row: Row) -> bool:
    """Live and with the whole network in reach (also when a stricter mode was asked but is not enforced)."""
    return row.is_live and (view_mode(row.view) == "FULL")


def view_mode(view: AgentView) -> str:
    """The network mode in force; not enforced reads as FULL."""
    return view.network_mode if view.network_enforced and view.network_mode in ("PROXIED", "NONE") else "FULL"


FILTERS: dict[str, Callable[[Row], bool]] = {
    "all": lambda row: True,
    "attention": lambda row: row.attends,
    "full": lambda row: "full" in row.tags,
    "deep": lambda row: "deep" in row.tags,
}
_SORTS: dict[str, Callable[[Row], Any]] = {
    "agent": lambda row: row.name.lower(),
    "state": lambda row: (not row.is_live, row.view.state),
    "depth": lambda row: row.view.depth,
    "network": lambda row: {"FULL": 0, "PROXIED": 1}.get(view_mode(row.view), 2),
    "budget": lambda row: row.view.budget_share,
    "cost": lambda row: row.view.cost_usd,
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
        self.killed = False
        self.kill_reason = ""
        self.spend_today_usd = 0.0
        self.burn_usd_per_h = 0.0
        self.loaded = False
        self.closed: set[str] = set()
        self.text = ""
        self.filter = "all"
        self.sort: tuple[str, bool] = ("", False)
        self.urgent_first = True
        """Attention first: trees with somebody in them who needs a person stand before calm ones; else as they came."""
        self.structure_changed = True
        """The list must be arranged again; else a repaint is enough."""
        self.news: list[tuple[Row, str]] = []
        """Who came into which state since somebody last took this list away; what a first reading brings is none."""
        self._tally: Counter[str] = Counter()
        self._states: Counter[str] = Counter()
        self._kids: dict[str, list[Row]] | None = None
        """Children by parent, roots under ""; None: somebody came, went or moved."""

    def replace(self, views: Iterable[AgentView]) -> None:
        """A whole snapshot; a row that was there stays the same object, so that no list shows the facts of before."""
        before, first, self.rows = self.rows, not self.loaded, {}
        for view in views:
            row = before.get(view.id)
            was = row.view.state if row is not None else ""
            if row is None:
                row = Row(view)
            else:
                row.take(view)
            self.rows[view.id] = row
            if not first and view.state != was:
                self._note(row)
        self._tally = Counter(tag for row in self.rows.values() for tag in row.tags)
        self._states = Counter(row.view.state for row in self.rows.values())
        self.loaded = True
        self.structure_changed, self._kids = True, None

    def apply(self, changes: FleetChanges) -> bool:
        """A delta; False when it speaks of an agent nobody was told of: the fleet must be read anew."""
        known = self._take_quiet(changes.quiet)
        for agent_id, fields in changes.loud:
            row = self.rows.get(agent_id)
            if row is None:
                known = False
            elif row.near and fields.keys() <= QUIET:
                row.facts.update(fields)  # still near it
            else:
                self._change(row, lambda row=row, fields=fields: row.facts.update(fields))  # type: ignore[misc]
        for view in changes.upsert:
            self.upsert(view)
        for agent_id in changes.remove:
            self.remove(agent_id)
        if changes.spend_today_usd is not None:
            self.spend_today_usd = changes.spend_today_usd
        if changes.burn_usd_per_h is not None:
            self.burn_usd_per_h = changes.burn_usd_per_h
        return known

    def _take_quiet(self, patches: list[Patch]) -> bool:
        """The hot loop: 10,000 of these a second must stay a few milliseconds."""
        get, known = self.rows.get, True
        for agent_id, fields in patches:
            row = get(agent_id)
            if row is None:
                known = False
                continue
            row.facts.update(fields)
            if row.near and "budget_share" in fields:  # it was near a cap, and is not any more
                self._count(row, -1)
                row.judge()
                self._count(row, 1)
        # A list that is sorted by numbers or filtered follows them; the window coalesces arranging.
        if patches and (self.sort[0] in _BY_NUMBERS or self.text or self.filter == "attention"):
            self.structure_changed = True
        return known

    def upsert(self, view: AgentView) -> None:
        """One agent's newer facts."""
        row = self.rows.get(view.id)
        if row is not None:
            known = row
            self._change(known, lambda: known.show(view))
            return
        self.rows[view.id] = new = Row(view)
        self._count(new, 1)
        self._note(new)
        self.structure_changed, self._kids = True, None

    def _change(self, row: Row, change: Callable[[], None]) -> None:
        parent, rank, state = row.view.parent_id, row.rank, row.view.state
        self._count(row, -1)
        change()
        row.judge()
        self._count(row, 1)
        if row.view.state != state:
            self._note(row)
        if row.view.parent_id != parent:
            self._kids = None
            self.structure_changed = True
        elif (row.rank != rank and self.urgent_first) or self.sort[0] or self.text or self.filter != "all":
            self.structure_changed = True

    def _note(self, row: Row) -> None:
        if len(self.news) < NEWS:
            self.news.append((row, row.view.state))

    def remove(self, agent_id: str) -> None:
        """It is not listed any more."""
        row = self.rows.pop(agent_id, None)
        if row is not None:
            self._count(row, -1)
            self.structure_changed, self._kids = True, None

    def _count(self, row: Row, by: int) -> None:
        self._states[row.view.state] += by
        for tag in row.tags:
            self._tally[tag] += by

    def arrange(self) -> list[Row]:
        """Tree order with the filter, the sort and the folded rows applied; ancestors of a match stay visible."""
        self.structure_changed = False
        children, kept = self._children(), self._kept()
        ordered = self._order()
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
            row.indent = indent
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
        """How many rows a filter of FILTERS would keep."""
        return self._tally[name]

    def states(self) -> dict[str, int]:
        """Agents by state."""
        return {state: number for state, number in self._states.items() if number}

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
            matches = [row for row in matches if word in row.fixed or word in row.view.last_action.lower()]
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
        if key in _SORTS:
            return lambda rows: sorted(rows, key=_SORTS[key], reverse=descending) if len(rows) > 1 else rows
        urgent = self._urgent() if self.urgent_first else {}
        if not urgent:
            return lambda rows: rows
        get = urgent.get
        return lambda rows: sorted(rows, key=lambda row: get(row.id, CALM)) if len(rows) > 1 else rows

    def _urgent(self) -> dict[str, int]:
        """id -> the most urgent rank in its tree; calm trees are absent."""
        found: dict[str, int] = {}
        for row in self.rows.values():
            rank, at = row.rank, row
            while rank < CALM and found.get(at.id, CALM) > rank:
                found[at.id] = rank
                above = self.rows.get(at.view.parent_id or "")
                if above is None:
                    break
                at = above
        return found


def children_of(rows: dict[str, Row]) -> dict[str, list[Row]]:
    """Children by parent in the order they came; roots under "". Parents that lead in a circle would hide their rows: those are roots."""
    children: dict[str, list[Row]] = {"": []}
    for row in rows.values():
        parent = row.view.parent_id
        children.setdefault(parent if parent and parent in rows and parent != row.id else "", []).append(row)
    reached = {row.id for row in children[""]}
    stack = list(children[""])
    while stack:
        for kid in children.get(stack.pop().id, ()):
            if kid.id not in reached:
                reached.add(kid.id)
                stack.append(kid)
    if len(reached) != len(rows):
        children[""].extend(row for row in rows.values() if row.id not in reached)
    return children
