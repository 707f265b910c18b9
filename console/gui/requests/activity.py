"""The verbs of an agent's activity: reads only."""

from __future__ import annotations

from console.api import endpoints as ep
from console.api.agents.activity import ActivityEntryView, ActivityPage
from console.gui.link.http import Link
from console.gui.link.pending import Pending


class ActivityRequests:
    """Pages of a feed, and single entries."""

    def __init__(self, link: Link) -> None:
        self._link = link

    def page(
        self, agent_id: str, *, before: int | None = None, after: int | None = None, limit: int = 200, query: str = "", kinds: str = ""
    ) -> Pending[ActivityPage]:
        """Oldest first; ``kinds``: with commas between, empty: all."""
        return self._link.ask(ep.ACTIVITY, agent_id, before=before, after=after, limit=limit, q=query, kind=kinds)

    def entry(self, agent_id: str, seq: int) -> Pending[ActivityEntryView]:
        """All that is kept of one entry."""
        return self._link.ask(ep.ACTIVITY_ENTRY, agent_id, seq)
