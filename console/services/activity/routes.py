"""Routes of an agent's activity: reads only."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

from console.api import endpoints as ep
from console.api.agents.activity import ActivityEntryView, ActivityPage, ActivityRow, McpToolView, McpView
from console.domain.activity import KINDS, Kept
from console.domain.agent import AgentId
from console.domain.errors import NotFound, UsageProblem
from console.domain.spend import NANO
from console.policy.rules.mcp import PREFIX, readings
from console.services.activity.service import ActivityDesk
from console.services.routes.responses import Handlers, answer, number_in

_QUERY_MAX = 200
_LIMIT_MAX = 500
_TOOLS_MAX = 1000


def activity_routes(desk: ActivityDesk, agent_or_404: Callable[[str], AgentId], output_dir: Path) -> Handlers:
    """GET /api/agents/{id}/activity, GET /api/agents/{id}/activity/{seq}, GET /api/mcp."""

    async def page(request: Request) -> Response:
        return answer(await asyncio.to_thread(_page, desk, agent_or_404(request.path_params["id"]), output_dir, request))

    async def one(request: Request) -> Response:
        agent_id = agent_or_404(request.path_params["id"])
        text = request.path_params["seq"]
        if not text.isascii() or not text.isdigit() or len(text) > 15:
            raise NotFound(f"There is no entry {text[:40]!r}.", "")
        kept = await asyncio.to_thread(desk.one, agent_id, int(text))
        return answer(ActivityEntryView(row=row_of(kept)))

    async def mcp(_request: Request) -> Response:
        return answer(await asyncio.to_thread(_mcp, desk))

    return {
        ep.MCP: mcp,
        ep.ACTIVITY: page,
        ep.ACTIVITY_ENTRY: one,
    }


def _page(desk: ActivityDesk, agent_id: AgentId, output_dir: Path, request: Request) -> ActivityPage:
    kinds = [kind for text in request.query_params.getlist("kind") for kind in text.split(",") if kind]
    if unknown := [kind for kind in kinds if kind not in KINDS]:
        raise UsageProblem(f"There is no kind {unknown[0][:40]!r}.", f"Kinds: {', '.join(sorted(KINDS))}.")
    before = number_in(request, "before", 0, 1 << 60) or None
    after = number_in(request, "after", 0, 1 << 60) if "after" in request.query_params else None
    limit = number_in(request, "limit", 200, _LIMIT_MAX)
    query = request.query_params.get("q", "")[:_QUERY_MAX]
    found = desk.window(agent_id, before=before, after=after, limit=limit, query=query, kinds=kinds)
    output = output_dir / f"{agent_id}.log"
    return ActivityPage(
        agent_id=agent_id,
        rows=[row_of(kept) for kept in found.rows],
        count=found.holding.count,
        oldest=found.holding.oldest,
        newest=found.holding.newest,
        dropped=found.holding.dropped,
        at_start=found.at_start,
        at_end=found.at_end,
        searched_to=found.searched_to,
        words=desk.words(agent_id),
        output_bytes=output.stat().st_size if output.is_file() else 0,
    )


def _mcp(desk: ActivityDesk) -> McpView:
    """Agents choose the names, so there may be any number of them."""
    rows = [
        McpToolView(server=parts[0][0], tool=parts[0][1], calls=calls, agents=agents, last_at=at)
        for name, calls, agents, at in desk.kept().tools_called(PREFIX)
        if (parts := readings(name))
    ]
    rows.sort(key=lambda row: (row.server, row.tool))
    return McpView(tools=rows[:_TOOLS_MAX], more=max(0, len(rows) - _TOOLS_MAX))


def row_of(kept: Kept) -> ActivityRow:
    """As it is shown."""
    entry = kept.entry
    cost = None if entry.cost_nano is None else entry.cost_nano / NANO
    names = ("at", "text", "left_out", "who", "turn", "tool", "pair", "verdict", "ref", "rollback_id", "failed", "tokens", "audit")
    same = {name: getattr(entry, name) for name in names}
    return ActivityRow(seq=kept.seq, kind=entry.kind.value, size=kept.size, cost_usd=cost, **same)
