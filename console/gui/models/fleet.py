"""The fleet: rows of agents, their tree order, filter and sort. Pure Python, so that 10,000 rows stay a matter of milliseconds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from console.api.messages import AgentView
from console.domain.agent import AgentState
from console.gui.widgets.safe_text import safe_text

LIVE = frozenset(state.value for state in AgentState if state.is_live)
DEEP = 3


class Row:
    """One agent as the table shows it. ``name`` and ``action`` are safe; ``view`` is as it came."""

    __slots__ = ("action", "guides", "haystack", "indent", "is_open", "kids", "name", "tags", "view")

    def __init__(self, view: AgentView) -> None:
        self.indent = 0
        self.kids = 0
        """Children in the whole fleet, shown or not."""
        self.is_open = True
        self.guides = 0
        self.take(view)

    def take(self, view: AgentView) -> None:
        """Newer facts of the same agent."""
        self.view = view
        self.name = safe_text(view.name or view.id, 120)
        self.action = safe_text(view.last_action, 160)
        self.tags = tuple(name for name, wanted in FILTERS.items() if wanted(self)) + (("live",) if self.is_live else ())
        """The filters that keep it, counted by the fleet as it changes."""
        self.haystack = f"{view.name}\0{view.id}\0{view.session}\0{view.last_action}\0{view.state}".lower()

    @property
    def id(self) -> str:
        return self.view.id

    @property
    def is_live(self) -> bool:
        return self.view.state in LIVE


def needs_attention(row: Row) -> bool:
    """Over budget or close to it, waiting for a person, alive after a kill, lost, or reaching everything."""
    view = row.view
    if view.state in ("over_budget", "needs_ok", "alive_after_kill", "lost", "failed"):
        return True
    return row.is_live and (view.budget_share >= 0.75 or is_full(row))


def is_full(row: Row) -> bool:
    """Live and with the whole network in reach (also when a stricter mode was asked but is not enforced)."""
    return row.is_live and (view_mode(row.view) == "FULL")


def view_mode(view: AgentView) -> str:
    """The network mode in force; not enforced reads as FULL."""
    return view.network_mode if view.network_enforced and view.network_mode in ("PROXIED", "NONE") else "FULL"


FILTERS: dict[str, Callable[[Row], bool]] = {
    "all": lambda row: True,
    "attention": needs_attention,
    "full": is_full,
    "deep": lambda row: row.is_live and row.view.depth >= DEEP,
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
        self.structure_changed = True
        """The list must be arranged again; else a repaint is enough."""
        self._tally: Counter[str] = Counter()
        self._states: Counter[str] = Counter()

    def replace(self, views: Iterable[AgentView]) -> None:
        """A whole snapshot."""
        self.rows = {view.id: Row(view) for view in views}
        self._tally = Counter(tag for row in self.rows.values() for tag in row.tags)
        self._states = Counter(row.view.state for row in self.rows.values())
        self.loaded = True
        self.structure_changed = True

    def upsert(self, view: AgentView) -> None:
        """One agent's newer facts."""
        row = self.rows.get(view.id)
        if row is None:
            self.rows[view.id] = row = Row(view)
            self._count(row, 1)
            self.structure_changed = True
            return
        moved = row.view.parent_id != view.parent_id or row.view.state != view.state
        self._count(row, -1)
        row.take(view)
        self._count(row, 1)
        # A sorted or filtered list follows its values; the window coalesces arranging to once a second.
        self.structure_changed = self.structure_changed or moved or bool(self.sort[0] or self.text or self.filter != "all")

    def remove(self, agent_id: str) -> None:
        """It is not listed any more."""
        row = self.rows.pop(agent_id, None)
        if row is not None:
            self._count(row, -1)
            self.structure_changed = True

    def _count(self, row: Row, by: int) -> None:
        self._states[row.view.state] += by
        for tag in row.tags:
            self._tally[tag] += by

    def arrange(self) -> list[Row]:
        """Tree order with the filter, the sort and the folded rows applied; ancestors of a match stay visible."""
        self.structure_changed = False
        children = self._children()
        kept = self._kept()
        out: list[Row] = []
        stack = [(row, 0) for row in reversed(self._sorted(children[""]))]
        placed: set[str] = set()
        while stack:
            row, indent = stack.pop()
            if row.id in placed or (kept is not None and row.id not in kept):
                continue
            placed.add(row.id)
            mine = children.get(row.id, [])
            row.indent, row.kids, row.is_open = indent, len(mine), row.id not in self.closed
            out.append(row)
            if row.is_open or kept is not None:
                stack.extend((kid, indent + 1) for kid in reversed(self._sorted(mine)))
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
        children: dict[str, list[Row]] = {"": []}
        for row in self.rows.values():
            parent = row.view.parent_id
            children.setdefault(parent if parent and parent in self.rows and parent != row.id else "", []).append(row)
        # Parents that lead in a circle would hide their rows for ever: show those as roots.
        reached = {row.id for row in children[""]}
        stack = list(children[""])
        while stack:
            for kid in children.get(stack.pop().id, ()):
                if kid.id not in reached:
                    reached.add(kid.id)
                    stack.append(kid)
        children[""].extend(row for row in self.rows.values() if row.id not in reached)
        return children

    def _kept(self) -> set[str] | None:
        """Ids of matches and their ancestors; None when everything is shown."""
        words = self.text.lower().split()
        if not words and self.filter == "all":
            return None
        wanted = FILTERS[self.filter]
        kept: set[str] = set()
        for row in self.rows.values():
            if wanted(row) and all(word in row.haystack for word in words):
                at: Row | None = row
                while at is not None and at.id not in kept:
                    kept.add(at.id)
                    at = self.rows.get(at.view.parent_id or "")
        return kept

    def _sorted(self, rows: list[Row]) -> list[Row]:
        key, descending = self.sort
        return sorted(rows, key=_SORTS[key], reverse=descending) if key in _SORTS else rows
