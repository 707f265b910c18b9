"""Agents that are only observed: those that a kill signals because it names them or the settings include them, and those that a receipt of
everything names as not stopped. The supervisor tells of both. Both lists are on disk, for the next guard and for a kill without one."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from console.domain.errors import UsageProblem
from console.domain.guard import text, whole
from console.domain.ids import AGENT_ID, ControlLevel
from console.killswitch.kernel import processes
from console.killswitch.kernel.cgroups import in_an_instance
from console.killswitch.kill.session import KillSession
from console.killswitch.kill.targets import Aim, Order
from console.killswitch.store.atomic_file import Damaged, read_sealed, seal, write_whole
from console.killswitch.store.registry import Entry, Held

MOST_SEEN = 20
"""Observed agents that one kill signals: each needs a walk over /proc. Those beyond are named and left alone."""
SEEN_FILE = "seen.json"
"""In the guard's folder."""
UNHELD_FILE = "unheld.json"
"""In the guard's folder."""
NAMED = 30
"""Of the rest a receipt says how many there are."""
FRESH_S = 60.0
"""What was said longer ago is said to be old: who appeared since is not known."""
LARGEST = 64 * 1024
NOT_KNOWN = "Who was only seen is not known: no supervisor has said it here."


@dataclass(frozen=True, slots=True)
class SeenAgent:
    """One of them, as its source proved it."""

    agent_id: str
    pid: int
    start_ticks: int
    exe: str
    uid: int
    named_only: bool = False
    """Signalled only by a kill that names it; a panic leaves it alone (panic.include_observed)."""


class SeenAgents:
    """The observed agents that a kill may signal; none, until the supervisor names some. The list is on disk: the next guard, and a kill
    without one, find it there."""

    def __init__(self, instance_id: str, path: Path) -> None:
        self._instance_id, self.path = instance_id, path
        self.agents: tuple[SeenAgent, ...] = ()
        self._given: list[Held] = []
        """Handed to kills, and open while these look at them."""
        self._followed: dict[SeenAgent, Held] = {}
        """For the regular look at connections, whose thread alone uses it."""

    def tell(self, agents: Iterable[SeenAgent], *, more: bool) -> None:
        """Replaces the list, or with ``more`` adds to it. UsageProblem for what is no agent."""
        told = tuple(agents)
        if any(not AGENT_ID.match(a.agent_id) or a.pid <= 1 or not a.exe for a in told):
            raise UsageProblem("A seen agent has an id, a process, a program and an account.", "See the guard's operations.")
        self.agents = (*(self.agents if more else ()), *told)[: MOST_SEEN * 10]

    def hear(self, message: dict[str, Any], record: Callable[[str, Callable[[], object]], object]) -> dict[str, Any]:
        """A line as an operation of the guard: ``agents`` are signalled by a panic too, ``named`` only when a kill names them.

        The ``last`` line of a list is kept, by ``record``.
        """
        told = list[SeenAgent]()
        for key, rows in (("agents", message.get("agents")), ("named", message.get("named", []))):
            if not isinstance(rows, list) or not all(isinstance(one, dict) for one in rows):
                raise UsageProblem(f"Field {key!r} must be a list.", "See the guard's operations.")
            numbers = ((whole(a, "pid"), whole(a, "start_ticks"), text(a, "exe"), whole(a, "uid")) for a in rows)
            told += [SeenAgent(text(a, "id", limit=63), *n, key == "named") for a, n in zip(rows, numbers, strict=True)]
        self.tell(told, more=message.get("more") is True)
        if message.get("last") is True:
            record("seen", self.save)
        return {"n": len(self.agents)}

    def followed(self) -> list[Held]:
        """Each that is still what was seen, opened once. For one thread alone."""
        wanted = self.agents[:MOST_SEEN]
        for gone in self._followed.keys() - set(wanted):
            self._followed.pop(gone).close()
        for agent in wanted:
            with contextlib.suppress(OSError):
                if agent not in self._followed and not self._why_not(agent, frozenset()) and (held := _opened(agent)) is not None:
                    self._followed[agent] = held
        return list(self._followed.values())

    def save(self) -> None:
        """OSError when it is not on disk."""
        write_whole(self.path, seal({"agents": [asdict(one) for one in self.agents]}))

    def load(self) -> str:
        """Reads the list that was saved last. Returns why it cannot be read, or nothing. Never raises."""
        try:
            body = read_sealed(self.path)
            self.tell([SeenAgent(**one) for one in body["agents"]] if body else (), more=False)
        except (OSError, Damaged, KeyError, TypeError, UsageProblem) as error:
            return f"The list of observed agents that a kill includes cannot be read ({error}): none of them was signalled."
        return ""

    def of(self, order: Order, ids: Iterable[str]) -> list[SeenAgent]:
        """Those that an order signals: of a panic the ones that it includes, else the ones among ``ids``."""
        named = set(ids)
        return [one for one in self.agents if (not one.named_only if order.is_all else one.agent_id in named)]

    def aims(self, agents: Iterable[SeenAgent], spared: frozenset[int]) -> tuple[list[Aim], list[str]]:
        """(targets, a sentence for each agent that is left alone)."""
        found, left = list[Aim](), list[str]()
        for agent in agents:
            why = f"only {MOST_SEEN} are signalled" if len(found) >= MOST_SEEN else self._why_not(agent, spared)
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
            return "it is the caller, the guard, or an ancestor of theirs"
        if not processes.is_the_same(agent.pid, agent.start_ticks):
            return "it has ended"
        if (processes.describe(agent.pid)["exe"], processes.uids(agent.pid)) != (agent.exe, {agent.uid}):
            return "it runs another program, or under another account, than was seen"
        if os.geteuid() not in (0, agent.uid):
            return "it runs under another account"
        return in_an_instance(agent.pid, self._instance_id)

    def _hold(self, agent: SeenAgent) -> Held | None:
        """None when it has ended. OSError when it cannot be opened."""
        if (held := _opened(agent)) is not None:
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


def _opened(agent: SeenAgent) -> Held | None:
    """None when it has ended. OSError when it cannot be opened."""
    try:
        init = processes.Handle(agent.pid, agent.start_ticks)
    except ProcessLookupError:
        return None
    entry = Entry(agent.agent_id, "process", ControlLevel.OBSERVED.value, 0, confirmed=True, pid=agent.pid, start_ticks=agent.start_ticks)
    return Held(entry, init=init)


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
            return (0, []) if not old else (None, [f"As the supervisor last reported, no agent was only observed{old}."])
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
