"""Messages of an agent's activity. All text in them is an agent's, and hostile."""

from __future__ import annotations

from console.api.message import SCHEMA_VERSION, View


class ActivityRow(View, kw_only=True):
    """One entry of a feed."""

    seq: int
    """Grows with the order in which entries were kept."""
    kind: str
    """message, thinking, tool_call, tool_result, verdict, spend, spawn, file, error, note."""
    at: float = 0.0
    text: str = ""
    """Its beginning; GET /api/agents/{id}/activity/{seq} has all that is kept."""
    size: int = 0
    """Characters that are kept."""
    left_out: int = 0
    """Characters that were not."""
    who: str = ""
    turn: int = 0
    tool: str = ""
    pair: str = ""
    """The same for a call, its verdicts and its result."""
    verdict: str = ""
    ref: str = ""
    """A child's id (spawn), a path (file), the folder that a call is made from (a tool_call that we were asked about)."""
    rollback_id: str = ""
    failed: bool = False
    tokens: int = 0
    cost_usd: float | None = None
    """None: no price is known, or it costs nothing by itself."""
    audit: int = 0
    """Number of its audit record; 0: none."""


class ActivityPage(View, kw_only=True):
    """GET /api/agents/{id}/activity?before=&after=&limit=&q=&kind=: oldest first; without before and after the newest."""

    schema_version: int = SCHEMA_VERSION
    agent_id: str
    rows: list[ActivityRow] = []
    count: int = 0
    """Entries kept of this agent, whatever was asked for."""
    oldest: int = 0
    newest: int = 0
    dropped: int = 0
    """Entries that had to go because of a bound."""
    at_start: bool = True
    """Nothing older is kept that matches."""
    at_end: bool = True
    searched_to: int = 0
    """Not 0: the search ended here because of its time; go on with it as before (or after)."""
    words: str = ""
    """What a person should know of where this feed comes from, or empty."""
    output_bytes: int = 0
    """Bytes its program wrote on stdout and stderr: GET /api/agents/{id}/output."""


class ActivityEntryView(View, kw_only=True):
    """GET /api/agents/{id}/activity/{seq}."""

    schema_version: int = SCHEMA_VERSION
    row: ActivityRow


class McpToolView(View, kw_only=True):
    """One tool of an MCP server, as agents named it. Hostile text."""

    server: str
    """Where a name can be parted in several ways, the shortest."""
    tool: str
    calls: int = 0
    agents: int = 0
    last_at: float = 0.0


class McpView(View, kw_only=True):
    """GET /api/mcp: what agents were seen to call, by server and tool, in the activity that is kept. No server is asked."""

    schema_version: int = SCHEMA_VERSION
    tools: list[McpToolView] = []
    more: int = 0
    """Tools that are not listed."""
