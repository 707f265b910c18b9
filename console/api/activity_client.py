"""The client's part about what agents did."""

from __future__ import annotations

from collections.abc import Sequence

from console.api.activity import ActivityEntryView, ActivityPage, McpView
from console.api.wire import Wire, segment


class ActivityRoutes:
    """Reads only."""

    _wire: Wire

    def activity(
        self,
        agent_id: str,
        *,
        before: int | None = None,
        after: int | None = None,
        limit: int = 200,
        query: str = "",
        kinds: Sequence[str] = (),
    ) -> ActivityPage:
        """GET /api/agents/{id}/activity: the newest entries, those below ``before``, or those above ``after``; oldest first."""
        asked = {"before": before, "after": after, "limit": limit, "q": query or None, "kind": ",".join(kinds) or None}
        return self._wire.ask(ActivityPage, "GET", f"/api/agents/{segment(agent_id)}/activity", query=asked)

    def activity_entry(self, agent_id: str, seq: int) -> ActivityEntryView:
        """GET /api/agents/{id}/activity/{seq}: one entry with all that is kept of it."""
        return self._wire.ask(ActivityEntryView, "GET", f"/api/agents/{segment(agent_id)}/activity/{seq:d}")

    def mcp(self) -> McpView:
        """GET /api/mcp: MCP servers with the tools that agents were seen to call."""
        return self._wire.ask(McpView, "GET", "/api/mcp")
