"""When a session began: the row of its workspace, or, of an agent that is only seen, the start of its process by the kernel's word."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

from console.domain.agent import Agent, AgentId
from console.domain.errors import ConsoleError
from console.domain.ids import ControlLevel
from console.ledger.store import Ledger

_LEVELS = 40


class SessionStart:
    """Called with an agent; 0.0 when the time is not known, so that nothing counts as having been there before."""

    __slots__ = ("_created", "_ledger", "_above")

    def __init__(self, ledger: Ledger, above: Callable[[AgentId], Agent | None]) -> None:
        self._ledger, self._above = ledger, above
        self._created: dict[str, float] = {}
        """By session, as its row has it; a row's time never changes."""

    def __call__(self, agent: Agent) -> float:
        """Seconds since the epoch. Blocks for the ledger, once for each session."""
        if agent.control_level is ControlLevel.OBSERVED:
            return self._of_process(agent)
        if agent.context_id not in self._created:
            try:
                self._created = {row.context_id: row.created_at for row in self._ledger.contexts()}
            except ConsoleError:
                return 0.0
        return self._created.get(agent.context_id, 0.0)

    def _of_process(self, agent: Agent) -> float:
        found: Agent | None = agent
        for _ in range(_LEVELS):
            if found is None or found.parent_id is None:
                break
            found = self._above(found.parent_id)
        if found is None or found.process is None:
            return 0.0
        booted = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
        return booted + found.process.start_ticks / os.sysconf("SC_CLK_TCK")
