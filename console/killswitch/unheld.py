"""Agents that were only seen and that no press signals: told by the supervisor, kept on disk, in the receipt of a press of everything.

Nothing here decides who is signalled. Without it a receipt that names nobody would read as if nobody else ran.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from console.domain.agent import AGENT_ID
from console.domain.errors import UsageProblem
from console.killswitch import processes
from console.killswitch.durable import write_whole
from console.killswitch.fields import text, whole
from console.killswitch.kill.session import KillSession

UNHELD_FILE = "unheld.json"
"""In the guard's folder."""
NAMED = 30
"""Of the rest a receipt says how many there are."""
FRESH_S = 60.0
"""What was said longer ago is said to be old: who appeared since is not known."""
LARGEST = 64 * 1024
NOT_KNOWN = "Who was only seen is not known: no supervisor has said it here."


@dataclass(frozen=True, slots=True)
class UnheldAgent:
    """One of them, as the supervisor saw it."""

    agent_id: str
    name: str
    """What it calls itself: bounded, letters that print."""
    why: str
    """Why no press signals it."""
    pid: int = 0
    """0: which process it is is not known for certain."""
    start_ticks: int = 0


class Unheld:
    """The last word of a supervisor on them. ``path``: where the next guard, or a press without one, finds it."""

    def __init__(self, path: Path, clock: Callable[[], float] = time.time) -> None:
        self.path, self._clock = path, clock
        self._agents: tuple[UnheldAgent, ...] = ()
        self._n, self._parts, self._told_at = 0, 0, 0.0
        self._is_kept = False

    def tell(self, message: dict[str, Any]) -> None:
        """A line of the supervisor's; ``more``: besides those of the line before. UsageProblem for what is no agent."""
        told = message.get("agents")
        if not isinstance(told, list) or not all(isinstance(one, dict) for one in told):
            raise UsageProblem("Field 'agents' must be a list.", "See the guard's operations.")
        agents = tuple(_agent(one) for one in told)
        counted = (max(whole(message, "n"), len(agents)), max(0, whole(message, "parts", 0)))
        before = (self._agents, self._n, self._parts)
        self._agents = (*(self._agents if message.get("more") is True else ()), *agents)[:NAMED]
        self._n, self._parts = counted
        self._told_at = self._clock()
        self._is_kept = self._is_kept and before == (self._agents, self._n, self._parts)

    def hear(self, message: dict[str, Any], record: Callable[[str, Callable[[], object]], object]) -> dict[str, Any]:
        """A line as an operation of the guard: the ``last`` one of a list is kept, by ``record``, when anything changed."""
        self.tell(message)
        if message.get("last") is True and not self._is_kept:
            record("unheld", self.save)
        return {}

    def save(self) -> None:
        """OSError when it is not on disk."""
        body = {"told_at": self._told_at, "n": self._n, "parts": self._parts, "agents": [asdict(one) for one in self._agents]}
        write_whole(self.path, json.dumps(body).encode())
        self._is_kept = True

    def load(self) -> None:
        """What was said before this process; nothing when there is none, or none that can be read. Never raises."""
        try:
            with self.path.open("rb") as file:
                body = json.loads(file.read(LARGEST))
            self.tell({"agents": [one | {"id": one.pop("agent_id")} for one in body["agents"]], "n": body["n"], "parts": body["parts"]})
            self._told_at = float(whole(body, "told_at"))
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, UsageProblem):
            self._agents, self._n, self._parts, self._told_at = (), 0, 0, 0.0

    def name_in(self, kill: KillSession) -> None:
        """Into the receipt of a press of everything."""
        kill.only_seen, words = self.left({aim.agent_id for aim in kill.aims}, kill.pressed_at)
        kill.excluded += words

    def left(self, targets: Collection[str], pressed_at: float) -> tuple[int | None, list[str]]:
        """(how many were not stopped, None: not known; that in words, each named with why and whether it runs). Looks at /proc.

        ``targets``: agents that the press held all the same, adopted ones for example.
        """
        if not self._told_at:
            return None, [NOT_KNOWN]
        named = [one for one in self._agents if one.agent_id not in targets]
        n = max(0, self._n - (len(self._agents) - len(named)))
        age = pressed_at - self._told_at
        old = "" if -1.0 <= age <= FRESH_S else f"; that is old ({max(0.0, age):.0f} s): who appeared since is not known"
        if not n:
            return (0, []) if not old else (None, [f"As the supervisor last said nobody was only seen{old}."])
        parts = f", and {self._parts} sub-agents of theirs" if self._parts else ""
        rest = f", the first {len(named)} by name" if n > len(named) else ""
        head = f"{n} {'agent was' if n == 1 else 'agents were'} only seen and not stopped{parts}, as the supervisor last said{rest}{old}"
        return n, [head, *(_words(one) for one in named)]


def _agent(told: dict[str, Any]) -> UnheldAgent:
    agent_id, pid, ticks = text(told, "id", limit=63), whole(told, "pid", 0), whole(told, "start_ticks", 0)
    if not AGENT_ID.match(agent_id) or pid < 0 or pid == 1:
        raise UsageProblem("An agent that was only seen has an id, and a process or none.", "See the guard's operations.")
    return UnheldAgent(agent_id, _plain(text(told, "name", "", 200))[:60], _plain(text(told, "why", "", 300))[:200], pid, ticks)


def _plain(words: str) -> str:
    """Letters that print, and no quotation mark: what an agent calls itself ends where we end it."""
    return "".join(x if x.isascii() and x.isprintable() and x != '"' else "?" for x in words)


def _words(one: UnheldAgent) -> str:
    name = f' "{one.name}"' if one.name else ""
    if not one.pid:
        runs = "which process it is is not known"
    else:
        runs = f"process {one.pid} {'runs' if processes.is_the_same(one.pid, one.start_ticks) else 'has ended'}"
    return f"{one.agent_id}{name}, only seen: {one.why or 'not said why'}; {runs}"
