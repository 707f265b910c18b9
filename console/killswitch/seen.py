"""Agents that were only seen and that the operator's settings include in a press of everything: told by the supervisor, kept in memory.

Nothing here is ever proven. Each is named by pid, start time, program and account, and all four are looked at again when it is signalled.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from console.domain.agent import AGENT_ID, ControlLevel
from console.domain.errors import UsageProblem
from console.killswitch import processes
from console.killswitch.kill.targets import Aim
from console.killswitch.movable import in_an_instance
from console.killswitch.processes import Handle
from console.killswitch.registry import Entry, Held

MOST = 20
"""Looking for what descends from each takes a walk over /proc; those beyond are named in the receipt and left alone."""


@dataclass(frozen=True, slots=True)
class SeenAgent:
    """One of them, as its source proved it."""

    agent_id: str
    pid: int
    start_ticks: int
    exe: str
    uid: int


class SeenAgents:
    """Whom a press of everything signals besides; nobody, until the supervisor says so."""

    def __init__(self, instance_id: str) -> None:
        self._instance_id = instance_id
        self._agents: tuple[SeenAgent, ...] = ()
        self._given: list[Held] = []
        """Handed to kills, and open while these look at them."""

    @property
    def agents(self) -> tuple[SeenAgent, ...]:
        return self._agents

    def tell(self, agents: Iterable[SeenAgent], *, more: bool) -> None:
        """Who is meant from now on; ``more``: besides those told before. UsageProblem for what is no agent."""
        told = tuple(agents)
        if any(not AGENT_ID.match(a.agent_id) or a.pid <= 1 or not a.exe for a in told):
            raise UsageProblem("A seen agent has an id, a process, a program and an account.", "See the guard's operations.")
        self._agents = (*(self._agents if more else ()), *told)[: MOST * 10]

    def aims(self, spared: frozenset[int]) -> tuple[list[Aim], list[str]]:
        """(targets of a press, in words who is left alone and why)."""
        found, left = list[Aim](), list[str]()
        for agent in self._agents:
            why = f"only {MOST} are signalled" if len(found) >= MOST else self._why_not(agent, spared)
            try:
                held = None if why else self._hold(agent)
            except OSError as error:
                held, why = None, f"it could not be opened: {error.strerror or error}"
            if held is None:
                left.append(f"{agent.agent_id}, which was only seen, was left alone: {why or 'it has ended'}")
            else:
                found.append(Aim(agent.agent_id, held))
        return found, left

    def _why_not(self, agent: SeenAgent, spared: frozenset[int]) -> str:
        if agent.pid in spared:
            return "it is the one who pressed, the guard, or an ancestor of theirs"
        if not processes.is_the_same(agent.pid, agent.start_ticks):
            return "it has ended"
        if (processes.describe(agent.pid)["exe"], processes.uids(agent.pid)) != (agent.exe, {agent.uid}):
            return "it runs another program, or under another account, than was seen"
        if os.geteuid() not in (0, agent.uid):
            return "it runs under another account"
        return in_an_instance(agent.pid, self._instance_id)

    def _hold(self, agent: SeenAgent) -> Held | None:
        """None when it has ended. OSError when it cannot be opened."""
        try:
            init = Handle(agent.pid, agent.start_ticks)
        except ProcessLookupError:
            return None
        entry = Entry(
            agent.agent_id, "process", ControlLevel.OBSERVED.value, 0, confirmed=True, pid=agent.pid, start_ticks=agent.start_ticks
        )
        held = Held(entry, init=init)
        held.follow()
        self._given.append(held)
        return held

    def sweep(self, in_use: Callable[[Held], bool]) -> None:
        """Closes what no kill looks at any more. Only while no kill runs."""
        still = [held for held in self._given if in_use(held)]
        for held in self._given:
            if not any(held is one for one in still):
                held.close()
        self._given = still
