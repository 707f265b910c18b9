"""What the engine holds of approvals: those that are open, who waits for them, what was approved for whole sessions."""

from __future__ import annotations

from collections import deque
from collections.abc import Container
from dataclasses import dataclass, field

from console.domain.agent import AgentId
from console.domain.approval import TTL_S, WAITING_MAX, Approval, ApprovalState

TAKEN_MAX = 1000


@dataclass(slots=True)
class Approvals:
    """What is open, who waits for it, and what was approved for whole sessions."""

    ttl_s: float = TTL_S
    waiting_max: int = WAITING_MAX
    by_id: dict[str, Approval] = field(default_factory=dict)
    waiters: dict[str, list[str]] = field(default_factory=dict)
    """Requests that wait for an approval, oldest first; none when their callers are gone."""
    kept: set[str] = field(default_factory=set)
    """Approvals that are on disk. Others are neither shown nor decided, because a crash would forget them."""
    grants: dict[tuple[str, str], str] = field(default_factory=dict)
    """(session, digest) -> approval."""
    taken: deque[Approval] = field(default_factory=lambda: deque(maxlen=TAKEN_MAX))
    """The last approvals that ended with their agents, as they were. A kill's evidence lists them as open."""
    opened: dict[str, deque[float]] = field(default_factory=dict)
    """When each tree asked lately (CLOCK_BOOTTIME seconds)."""

    def of_agent(self, agent_id: AgentId) -> list[Approval]:
        """Open ones of one agent, oldest first."""
        return [a for a in self.by_id.values() if a.agent_id == agent_id]

    def open_or_taken(self, agent_ids: Container[AgentId]) -> list[Approval]:
        """What these had open, or had until their end."""
        return [a for a in (*self.taken, *self.by_id.values()) if a.agent_id in agent_ids]

    def waiting_of_tree(self, root_id: AgentId) -> int:
        """How many requests of one tree wait."""
        return sum(a.root_id == root_id and a.state is ApprovalState.WAITING for a in self.by_id.values())
