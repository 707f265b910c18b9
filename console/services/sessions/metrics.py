"""Serve Prometheus metrics of workspaces and of the process snapshots, on the loopback port that ``workspaces.metrics_port`` sets."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.registry import Collector

from console.ledger.contexts import ContextRow
from console.services.sessions.workspaces import Contexts, Room

REQUEST_MAX = 8192
WAIT_S = 5.0
CONNECTIONS = 16
_LABELS = ("context_id", "agent", "namespace")


class _Workspaces(Collector):
    """One look, as metrics. Label values are escaped by the library: an agent's name is hostile text."""

    def __init__(self, rows: list[ContextRow], room: Room, namespace: str) -> None:
        self._rows, self._room, self._namespace = rows, room, namespace

    def collect(self) -> Iterable[Metric]:
        used = GaugeMetricFamily("context_workspace_bytes", "Disk use of a session's workspace.", labels=_LABELS)
        accessed = GaugeMetricFamily(
            "context_last_accessed_timestamp", "When a session was last used, seconds since the epoch.", labels=_LABELS
        )
        for row in self._rows:
            labels = [row.context_id, row.agent[:200], self._namespace]
            used.add_metric(labels, float(row.bytes))
            accessed.add_metric(labels, row.last_used)
        by_agent: dict[str, int] = {}
        for row in self._rows:
            by_agent[row.agent[:200]] = by_agent.get(row.agent[:200], 0) + row.bytes
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


class MetricsPort:
    """GET /metrics on 127.0.0.1, and nothing else."""

    __slots__ = ("_server", "_open", "_contexts", "_port", "_looks")

    def __init__(self, contexts: Contexts, port: int, looks: Callable[[], Mapping[str, float]]) -> None:
        self._contexts, self._port, self._looks = contexts, port, looks
        self._server: asyncio.Server | None = None
        self._open = 0

    async def open(self) -> None:
        """OSError when the port is taken."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self._port, limit=REQUEST_MAX)

    async def close(self) -> None:
        """Twice is once."""
        if self._server is not None:
            self._server.close()
            self._server = None

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open += 1
        try:
            if self._open > CONNECTIONS:
                return
            async with asyncio.timeout(WAIT_S):
                head = await reader.readuntil(b"\r\n\r\n")
                status, kind, body = await self._answer(head)
                writer.write(
                    f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body
                )
                await writer.drain()
        except (TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError):
            return
        finally:
            self._open -= 1
            writer.close()

    async def _answer(self, head: bytes) -> tuple[str, str, bytes]:
        words = head.split(b"\r\n", 1)[0].split(b" ")
        if len(words) != 3 or words[0] != b"GET" or words[1].split(b"?", 1)[0] != b"/metrics":
            return "404 Not Found", "text/plain", b"GET /metrics\n"
        rows = await asyncio.to_thread(lambda: [row for row, _, _ in self._contexts.rows()])
        return "200 OK", CONTENT_TYPE_LATEST, exposition(rows, self._contexts.room, self._contexts.options.namespace, self._looks())
