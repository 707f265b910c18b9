"""Programs that git's settings, hooks and attributes named when a session began: these do not ask again.

A file that last changed before the session began (inode(7), st_ctim, which no account can set) is as it was then. What it named is
remembered, so that a later change of the file, which git itself makes often, asks for what is new in it alone.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable

from console.domain.agent import Agent
from console.domain.ids import ControlLevel
from console.policy.git.calls import Known, Trigger

SESSIONS_MAX = 512
TRIGGERS_MAX = 2_000
"""Kept of one session; beyond it, what is new asks."""


class GitMemory:
    """Thread-safe. Lost with the supervisor: then what changed since a session began asks once more."""

    __slots__ = ("_began", "_lock", "_sessions")

    def __init__(self, began: Callable[[Agent], float]) -> None:
        self._began = began
        self._lock = threading.Lock()
        self._sessions: OrderedDict[str, _Session] = OrderedDict()

    def of(self, agent: Agent) -> Known:
        """What is known for an agent's session; of one that is only seen, for its tree."""
        key = agent.root_id if agent.control_level is ControlLevel.OBSERVED else agent.context_id
        began = self._began(agent)
        with self._lock:
            found = self._sessions.get(key)
            if found is None:
                found = self._sessions[key] = _Session(began)
                while len(self._sessions) > SESSIONS_MAX:
                    self._sessions.popitem(last=False)
            found.began_ns = min(found.began_ns, int(began * 1e9))
            self._sessions.move_to_end(key)
            return found


class _Session:
    """One session's beginning."""

    __slots__ = ("began_ns", "_there")

    def __init__(self, began: float) -> None:
        self.began_ns = int(began * 1e9)
        self._there: set[tuple[str, str]] = set()

    def was_there(self, trigger: Trigger, changed_ns: int) -> bool:
        """As ``Known.was_there``. A time of 0 is not known, so it is not before."""
        key = (trigger.file, trigger.mark)
        if 0 < changed_ns < self.began_ns and len(self._there) < TRIGGERS_MAX:
            self._there.add(key)
        return 0 < changed_ns < self.began_ns or key in self._there
