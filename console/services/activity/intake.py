"""Take what our own machinery and the started programs report of agents, from any thread, and hand it on with the next write."""

from __future__ import annotations

import secrets
import threading
import time
from collections import deque
from dataclasses import replace
from typing import Any

from console.audit.record import Record
from console.domain.activity import Entry, Kind
from console.domain.agent import AgentId
from console.domain.conversation import started_as
from console.domain.engine import command as c
from console.domain.engine import event as e
from console.domain.network import EgressRecord
from console.services.activity.clean import shortened
from console.services.activity.internal import Said, of_egress, of_record, of_step
from console.services.fleet.core import Core
from console.sources.activity.stream import entries_of_told

WAITING_MAX = 20_000
"""Entries that wait to be written; what comes beyond is counted and said."""
SIZE_MAX = 64 * 1024 * 1024
"""Characters of them, likewise: a disk that refuses for hours fills no memory."""


class Intake:
    """Never blocks: what it is told waits until ``taken``."""

    __slots__ = ("_core", "_lock", "_waiting", "_size", "_lost", "_children", "streams", "_count", "_run_id")

    def __init__(self, core: Core) -> None:
        self._core = core
        self._run_id, self._count = secrets.token_hex(4), 0
        self._lock = threading.Lock()
        self._waiting: deque[Said] = deque()
        self._size = 0
        self._lost: dict[str, int] = {}
        self._children: set[str] = set()
        self.streams: dict[str, int] = {}
        """Agents whose program tells what it does on its stdout, with how many events came."""

    def heard(self, step: e.Event | c.Command) -> None:
        """A step of the engine: an event, or one of the commands that followed."""
        if isinstance(step, e.UsageReported) and self._is_program(step.agent_id):
            return  # its stream has told each answer
        if isinstance(step, c.ShowAgent):
            if step.agent.agent_id in self._children:
                return  # an agent is shown at every change; it is its parent's child once
            self._children.add(step.agent.agent_id)
        for agent_id, entry in of_step(step, self._fresh()):
            self.put(agent_id, entry)

    def recorded(self, record: Record) -> None:
        """An audit record is on disk."""
        for agent_id, entry in of_record(record):
            self.put(agent_id, entry)

    def egress(self, record: EgressRecord) -> None:
        """A request through Envoy."""
        self.put(*of_egress(record, self._fresh()))

    def on_event(self, agent_id: str, event: dict[str, Any]) -> None:
        """One event of a started program, as ``program_stream`` tells it."""
        self.streams[agent_id] = self.streams.get(agent_id, 0) + 1
        for entry in entries_of_told(event, time.time()):
            self.put(agent_id, entry)

    def put(self, agent_id: str, entry: Entry) -> None:
        """One entry of an agent."""
        entry = replace(shortened(entry), at=entry.at or time.time())
        with self._lock:
            if len(self._waiting) >= WAITING_MAX or self._size + len(entry.text) > SIZE_MAX:
                self._lost[agent_id] = self._lost.get(agent_id, 0) + 1
            else:
                self._waiting.append((agent_id, entry))
                self._size += len(entry.text)

    def taken(self) -> dict[str, list[Entry]]:
        """All that waits, by agent; what was lost is said where it is missing."""
        with self._lock:
            waiting, self._waiting, self._size = self._waiting, deque(), 0
            lost, self._lost = self._lost, {}
        for agent_id, many in lost.items():
            text = f"{many:,} entries are missing here: they came faster than they can be kept."
            waiting.append((agent_id, Entry(Kind.ERROR, self._fresh(), time.time(), text, who="watchfloor", failed=True)))
        found: dict[str, list[Entry]] = {}
        for agent_id, entry in waiting:
            found.setdefault(agent_id, []).append(entry)
        return found

    def give_back(self, left: dict[str, list[Entry]]) -> None:
        """What could not be written: it comes again, in order, before what came since."""
        with self._lock:
            back = [(agent_id, entry) for agent_id, entries in left.items() for entry in entries]
            self._waiting.extendleft(reversed(back))
            self._size += sum(len(entry.text) for _, entry in back)

    def _is_program(self, agent_id: AgentId) -> bool:
        agent = self._core.state.agents.get(agent_id)
        return agent is not None and started_as(agent.argv) is not None

    def _fresh(self) -> str:
        self._count += 1
        return f"{self._run_id}:{self._count}"
