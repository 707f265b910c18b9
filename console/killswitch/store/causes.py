"""Why agents are frozen: a durable set of causes per agent, the holds, the soft stop and the lease.

Each cause removes only itself; an agent runs only when its set is empty.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from console.domain.guard import CAUSES
from console.killswitch.kernel import processes
from console.killswitch.kernel.engine import Engine, EngineSilent
from console.killswitch.store.atomic_file import Damaged, Witness, read_sealed, seal, write_whole
from console.killswitch.store.registry import Held

SWEEPS = 20
_STOPPED = ("T", "t", "Z", "X", "x", "")
"""States of proc(5) in which nothing is carried out; empty: it has ended."""
NOBODY = -1
"""In ``frozen_by``: not through guard.sock."""


@dataclass(slots=True)
class Hold:
    """A freeze that becomes a kill unless it is let go."""

    hold_id: str
    kill_id: str
    by: str
    agents: list[str]
    deadline: float | None
    """CLOCK_MONOTONIC; None once its peer vanished (the agents stay frozen) or after a restart."""
    why: str = ""


@dataclass(slots=True)
class Causes:
    """In memory; ``save`` puts it on disk."""

    path: Path
    by_agent: dict[str, set[str]] = field(default_factory=dict)
    holds: dict[str, Hold] = field(default_factory=dict)
    soft_stop: str = ""
    """Why, while it is on."""
    frozen_by: dict[str, set[int]] = field(default_factory=dict)
    """Accounts whose freezes hold an agent (cause operator, guard.sock). An agent without one was frozen through the supervisor."""
    lease_until: float | None = None
    """CLOCK_BOOTTIME; None: no lease was ever configured."""

    def load(self) -> None:
        """Damaged or OSError when it is there but cannot be read."""
        body = read_sealed(self.path)
        if body is None:
            if Witness(self.path.parent).was_in_use():
                raise Damaged("causes.json is missing")
            return
        try:
            self.by_agent = {str(a): {c for c in causes if c in CAUSES} for a, causes in body["causes"].items()}
            self.holds = {h["hold_id"]: Hold(**{**h, "deadline": None, "why": h["why"] or "the guard restarted"}) for h in body["holds"]}
            self.soft_stop = str(body["soft_stop"])
            self.frozen_by = {str(a): {int(uid) for uid in uids} for a, uids in body.get("frozen_by", {}).items()}
            lease = body["lease"]
            if lease is not None:  # another boot: its clock says nothing of ours, so the lease is over
                self.lease_until = float(lease["until"]) if lease["boot_id"] == boot_id() else 0.0
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise Damaged("causes.json has the wrong shape") from error

    def save(self) -> None:
        """OSError when it is not durable."""
        lease = None if self.lease_until is None else {"until": self.lease_until, "boot_id": boot_id()}
        body = {
            "causes": {agent: sorted(causes) for agent, causes in list(self.by_agent.items()) if causes},
            "holds": [asdict(hold) for hold in list(self.holds.values())],
            "soft_stop": self.soft_stop,
            "frozen_by": {agent: sorted(uids) for agent, uids in list(self.frozen_by.items()) if uids},
            "lease": lease,
        }
        write_whole(self.path, seal(body))

    def of(self, agent_id: str) -> set[str]:
        return self.by_agent.get(agent_id, set())

    def add(self, agent_id: str, cause: str, uid: int | None = None) -> None:
        """``uid``: of the operator on guard.sock; None for the supervisor and the guard itself."""
        self.by_agent.setdefault(agent_id, set()).add(cause)
        if cause == "operator":
            self.frozen_by.setdefault(agent_id, set()).add(NOBODY if uid is None else uid)

    def may_lift(self, agent_id: str, cause: str, uid: int | None) -> bool:
        """None, the supervisor, lifts any freeze; an account only its own, though it stays frozen by the others."""
        return cause in self.of(agent_id) and (uid is None or uid in self.frozen_by.get(agent_id, ()))

    def remove(self, agent_id: str, cause: str, uid: int | None = None) -> None:
        """Only this cause, and of an account only its own part in it; the others stay."""
        causes = self.by_agent.get(agent_id)
        if cause == "operator":
            left = self.frozen_by.get(agent_id, set()) - {uid} if uid is not None else set()
            if left:
                self.frozen_by[agent_id] = left
                return
            self.frozen_by.pop(agent_id, None)
        if causes is not None:
            causes.discard(cause)
            if not causes:
                del self.by_agent[agent_id]

    def forget(self, agent_id: str) -> None:
        self.by_agent.pop(agent_id, None)
        self.frozen_by.pop(agent_id, None)

    def having(self, cause: str) -> list[str]:
        return sorted(agent for agent, causes in self.by_agent.items() if cause in causes)


def boot_id() -> str:
    """Changes with every boot (random(4))."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def boottime() -> float:
    """Seconds since boot, suspend included."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


@dataclass(frozen=True, slots=True)
class Wish:
    """One agent that is to be frozen, or to go on."""

    held: Held
    on: bool
    spared: frozenset[int] = frozenset()
    """Processes outside its cgroup that are not stopped: the operator's own."""


def set_frozen(held: Held, on: bool, engine: Engine | None) -> str:
    """Freezes or thaws one agent: the answer as of ``fulfil``."""
    return fulfil([Wish(held, on)], engine)[0]


def fulfil(wishes: Sequence[Wish], engine: Engine | None) -> list[str]:
    """Freeze or thaw each in the best way there is. Returns "sent", "gone", or why not. Never raises.

    A container that only its engine can freeze is "sent" once the engine confirms it. What no freezer holds, and what may be outside its
    cgroup, is stopped one by one. The same looks at all processes serve all of them, because the guard does nothing else meanwhile.
    """
    answers = [_through_freezers(wish, engine) for wish in wishes]
    several = [n for n, w in enumerate(wishes) if not w.held.unopened and (not answers[n] or w.held.follow() is not None)]
    stopped = dict(zip(several, _stop_processes([_Stop(wishes[n]) for n in several]), strict=True))
    return [_worst(answers[n], stopped.get(n, "")) for n in range(len(wishes))]


def _through_freezers(wish: Wish, engine: Engine | None) -> list[str]:
    """What its cgroups, and the engine, said; empty when nothing of it has a freezer."""
    held = wish.held
    if held.unopened:
        held.open()
    if held.unopened:
        return [f"failed: its cgroup or its process could not be opened: {held.unopened}"]
    answers = [leaf.freeze(wish.on) for leaf in (held.leaf, held.container) if leaf is not None and leaf.can_freeze]
    if held.entry.container_id and (held.container is None or not held.container.can_freeze) and engine is not None:
        answers.append(_through_engine(engine, held.entry.container_id, wish.on))
    return answers


def _worst(answers: list[str], stopped: str) -> str:
    """``stopped``: of what was stopped one by one; empty where nothing was."""
    if not answers:
        return stopped
    if stopped.startswith("failed"):
        answers = [*answers, "failed: it may be outside its cgroup, and not all of it could be signalled there"]
    return next((a for a in answers if a not in ("sent", "gone")), answers[0])


def _through_engine(engine: Engine, container_id: str, on: bool) -> str:
    answer = engine.pause(container_id) if on else engine.unpause(container_id)
    try:
        is_so = engine.is_paused(container_id) is on  # asked for a second time, it answers 409 to what is already so
    except EngineSilent as error:
        return f"failed: the engine says {answer}, and not whether it is paused ({error})"
    return "sent" if is_so else f"failed: the engine says {answer}, and that it is {'not ' if on else ''}paused"


def why_not_frozen(held: Held, *, has_engine: bool) -> str:
    """Why a look does not say that nothing of it runs; empty when it does. What an engine pauses is pausing.py's."""
    if held.unopened:
        return f"its cgroup or its process could not be opened: {held.unopened}"
    leaves = [leaf for leaf in (held.leaf, held.container) if leaf is not None and leaf.can_freeze]
    if any(leaf.is_populated() and not leaf.is_frozen() for leaf in leaves):
        return "its cgroup does not say that it is frozen"
    if (leaves and held.follow() is None) or (held.entry.container_id and has_engine):
        return ""
    if missing := held.unlisted():
        return f"its processes could not be listed: {missing}"
    running = [pid for pid in _outside(held, frozenset()) if processes.state(pid) not in _STOPPED]
    return f"{len(running)} of its processes are not stopped" if running else ""


def _outside(held: Held, spared: frozenset[int], since: float | None = None) -> list[int]:
    """Its processes that no freezer of its own holds."""
    found = held.pids(since=since)
    inside = {pid for leaf in (held.leaf, held.container) if leaf is not None and leaf.can_freeze for pid in leaf.pids()}
    return [pid for pid in found if pid not in inside and pid not in spared]


class _Stop:
    """The processes of one agent that no freezer holds: SIGSTOP, or SIGCONT, to each."""

    def __init__(self, wish: Wish) -> None:
        self._wish = wish
        self._done: set[tuple[int, int]] = set()
        self._missed = ""

    def sweep(self, since: float | None) -> bool:
        """Signal all processes that a look (begun at ``since``) found and that were not signalled before. Returns whether it found any."""
        held = self._wish.held
        # A process that was stopped outside may be inside by now, so SIGCONT goes to all.
        pids = _outside(held, self._wish.spared, since) if self._wish.on else held.pids(since=since)
        found = [(pid, processes.start_ticks(pid)) for pid in pids]
        fresh = [(pid, ticks) for pid, ticks in found if ticks is not None and (pid, ticks) not in self._done]
        for pid, ticks in fresh:
            self._signal(pid, ticks)
        return bool(fresh)

    def _signal(self, pid: int, ticks: int) -> None:
        try:
            handle = processes.Handle(pid, ticks)
        except OSError as error:
            if processes.start_ticks(pid) == ticks:  # too few descriptors, say: it runs on
                self._missed = f"failed: process {pid} could not be opened: {error.strerror}"
            return
        handle.send(signal.SIGSTOP if self._wish.on else signal.SIGCONT)
        handle.close()
        self._done.add((pid, ticks))

    def goes_on(self) -> bool:
        """Return whether another look is worth it. A stopped process starts no other, so a thaw needs one look only."""
        return self._wish.on

    def answer(self) -> str:
        return self._missed or ("sent" if self._done else "gone")


def _stop_processes(stops: list[_Stop]) -> list[str]:
    """SIGSTOP again and again until a look finds none of an agent's left to signal; SIGCONT once. "sent", "gone" or "failed: why"."""
    left, since = stops, None
    for _ in range(SWEEPS):
        left = [stop for stop in left if stop.sweep(since) and stop.goes_on()]
        if not left:
            break
        since = time.monotonic()
    return [stop.answer() for stop in stops]
