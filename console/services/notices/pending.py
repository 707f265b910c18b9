"""What agents have not been told yet. The ledger keeps every notice; this holds those that no answer has carried."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from console.domain.agent import AgentId

KEPT = 20
"""Notices of one agent that wait; what is older is still in the ledger (``GET /v1/notices``)."""
AGENTS_MAX = 2000
HEAD = "Watchfloor, which supervises this session, tells you: "


@dataclass(slots=True)
class _Waiting:
    texts: deque[tuple[int, str]] = field(default_factory=lambda: deque(maxlen=KEPT))
    number: int = 0
    told: dict[AgentId, int] = field(default_factory=dict)
    """The last notice that each reader was told: an agent itself, and each sub-agent that works in its process."""


class PendingNotices:
    """On the loop's thread."""

    __slots__ = ("_of",)

    def __init__(self) -> None:
        self._of: dict[AgentId, _Waiting] = {}

    def add(self, agent_id: AgentId, text: str) -> None:
        """One more that ``agent_id`` should read."""
        waiting = self._of.pop(agent_id, None) or _Waiting()
        waiting.number += 1
        waiting.texts.append((waiting.number, text))
        self._of[agent_id] = waiting
        while len(self._of) > AGENTS_MAX:
            del self._of[next(iter(self._of))]

    def take(self, reader: AgentId, inside: AgentId | None = None) -> str:
        """All that ``reader`` was not told yet, for its context; empty: nothing. ``inside``: whose process it works in."""
        texts = [text for agent_id in dict.fromkeys((inside or reader, reader)) for text in self._new(agent_id, reader)]
        return HEAD + "\n".join(dict.fromkeys(texts)) if texts else ""

    def _new(self, agent_id: AgentId, reader: AgentId) -> list[str]:
        waiting = self._of.get(agent_id)
        if waiting is None:
            return []
        last = waiting.told.get(reader, 0)
        waiting.told[reader] = waiting.number
        while len(waiting.told) > AGENTS_MAX:
            del waiting.told[next(iter(waiting.told))]
        return [text for number, text in waiting.texts if number > last]
