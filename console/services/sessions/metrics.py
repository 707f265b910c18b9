"""Serve Prometheus metrics of workspaces and of the process snapshots, on the operators' socket."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.registry import Collector
from starlette.requests import Request
from starlette.responses import Response

from console.api import endpoints as ep
from console.ledger.contexts import ContextRow
from console.services.routes.responses import Handlers
from console.services.sessions.workspaces import Contexts, Room

_LABELS = ("context_id", "agent", "namespace")


def _shown(name: str) -> str:
    """Return an agent's name with what does not print as ``\\x1b``, ``\\u202e``."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in name[:200])


class _Workspaces(Collector):
    """One look, as metrics. An agent's name is hostile text: the library quotes it, and ``_shown`` makes it print."""

    def __init__(self, rows: list[ContextRow], room: Room, namespace: str) -> None:
        self._rows, self._room, self._namespace = rows, room, namespace

    def collect(self) -> Iterable[Metric]:
        used = GaugeMetricFamily("context_workspace_bytes", "Disk use of a session's workspace.", labels=_LABELS)
        accessed = GaugeMetricFamily(
            "context_last_accessed_timestamp", "When a session was last used, seconds since the epoch.", labels=_LABELS
        )
        for row in self._rows:
            labels = [row.context_id, _shown(row.agent), self._namespace]
            used.add_metric(labels, float(row.bytes))
            accessed.add_metric(labels, row.last_used)
        by_agent: dict[str, int] = {}
        for row in self._rows:
            name = _shown(row.agent)
            by_agent[name] = by_agent.get(name, 0) + row.bytes
        total = GaugeMetricFamily("workspace_pvc_usage_bytes", "Disk use of all workspaces of one agent type.", labels=_LABELS[1:])
        capacity = GaugeMetricFamily("workspace_pvc_capacity_bytes", "Capacity that all workspaces share.", labels=_LABELS[1:])
        for agent, count in by_agent.items():
            total.add_metric([agent, self._namespace], float(count))
            capacity.add_metric([agent, self._namespace], float(self._room.capacity))
        yield from (used, accessed, total, capacity)


class _Looks(Collector):
    """How old the process part of a kill's evidence would be, by agent."""

    def __init__(self, looks: Mapping[str, float]) -> None:
        self._looks = looks

    def collect(self) -> Iterable[Metric]:
        looked = GaugeMetricFamily(
            "agent_processes_looked_at_timestamp",
            "When the last look at an agent's processes began, seconds since the epoch: the evidence of a kill is as old.",
            labels=["agent_id"],
        )
        for agent_id, at in self._looks.items():
            looked.add_metric([agent_id], at)
        yield looked


def exposition(rows: list[ContextRow], room: Room, namespace: str, looks: Mapping[str, float]) -> bytes:
    """The text that Prometheus reads."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Workspaces(rows, room, namespace))
    registry.register(_Looks(looks))
    return generate_latest(registry)


def session_metrics_routes(contexts: Contexts, looks: Callable[[], Mapping[str, float]]) -> Handlers:
    """GET /metrics/sessions, for operators. Labels hold sessions' ids and agents' names, so it is apart from /metrics."""

    async def served(_request: Request) -> Response:
        rows = await asyncio.to_thread(lambda: [row for row, _, _ in contexts.rows()])
        text = exposition(rows, contexts.room, contexts.options.namespace, looks())
        return Response(text, headers={"content-type": CONTENT_TYPE_LATEST})

    return {ep.SESSION_METRICS: served}
