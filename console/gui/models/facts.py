"""Keep what is known of every agent, by id. The thread that reads the stream writes it; the window's thread hears only of changes.

Numbers that change all the time are written straight into the views that the rows show. A patch of one agent is one update of a dictionary,
so no other thread sees half of it. The window itself works out a row's place and the counts. While a snapshot is on its way nothing is
written. Patches that arrive meanwhile are kept and applied after an older snapshot.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

from console.api.agents.fleet_changes import NEAR, QUIET, FleetChanges
from console.api.messages import AgentView
from console.gui.models.row import Row


@dataclass(slots=True)
class News:
    """What one message changed beyond what is only painted. In the order of the stream."""

    generation: int
    """The snapshot it was written on; news of an earlier one are in the later one already."""
    judged: list[Row] = field(default_factory=list)
    """Whole agents, and those of which more changed than numbers far from a cap: with what is derived of them."""
    remove: list[str] = field(default_factory=list)
    moved: bool = False
    """Numbers changed, which a list sorted by them follows."""
    known: bool = True
    """False: it named an unknown agent; the fleet must be read again."""
    spend_today_usd: float | None = None
    burn_usd_per_h: float | None = None


class Facts:
    """One writer at a time; ``views`` may be read by anybody, one agent at a time."""

    def __init__(self) -> None:
        self.views: dict[str, AgentView] = {}
        self.generation = 0
        self._lock = Lock()
        self._held: list[FleetChanges] | None = None
        """What came while a snapshot was on its way."""

    def write(self, changes: FleetChanges) -> News | None:
        """Takes a delta in; None: it is held back until the snapshot that is on its way came."""
        with self._lock:
            if self._held is None:
                return self._write(changes)
            self._held.append(changes)
            return None

    def hold(self) -> bool:
        """A snapshot is asked for: nothing is written until ``renew`` or ``let_go``. False: one is on its way already."""
        with self._lock:
            free, self._held = self._held is None, self._held or []
            return free

    def renew(self, views: Iterable[AgentView], seq: int = 0) -> list[News]:
        """A whole snapshot that is true up to ``seq``; returns what was held back and is newer, written on top of it."""
        fresh = {view.id: view for view in views}
        with self._lock:
            self.views = fresh
            self.generation += 1
            held, self._held = self._held or [], None
            return [self._write(changes) for changes in held if changes.seq > seq]

    def let_go(self) -> list[News]:
        """The snapshot did not come: what was held back is written on what there is."""
        with self._lock:
            held, self._held = self._held or [], None
            return [self._write(changes) for changes in held]

    def _write(self, changes: FleetChanges) -> News:
        news = News(
            self.generation,
            remove=changes.remove,
            moved=bool(changes.quiet or changes.loud),
            spend_today_usd=changes.spend_today_usd,
            burn_usd_per_h=changes.burn_usd_per_h,
        )
        views, judge = self.views, news.judged.append
        for agent_id, fields in changes.quiet:
            view = views.get(agent_id)
            if view is None:
                news.known = False
                continue
            left = "budget_share" in fields and view.budget_share >= NEAR
            _patch(view, fields)
            if left:
                judge(Row(view))  # it was near a cap, and is not any more
        for agent_id, fields in changes.loud:
            view = views.get(agent_id)
            if view is None:
                news.known = False
                continue
            stayed = view.budget_share >= NEAR and fields.keys() <= QUIET
            _patch(view, fields)
            if not stayed:
                judge(Row(view))
        for view in changes.upsert:
            views[view.id] = view
            judge(fresh := Row(view))
            fresh.is_whole = True
        for agent_id in changes.remove:
            views.pop(agent_id, None)
        return news


def _patch(view: AgentView, fields: Mapping[str, Any]) -> None:
    for name, value in fields.items():
        setattr(view, name, value)
