"""The witness: what every agent of ours had running and open, looked at every few seconds, so that a kill's evidence waits for nothing.

It looks in a daemon thread of its own: a process whose /proc entry hangs holds up the next look, never the loop, a kill or the end.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import replace

from console.domain.ids import ControlLevel
from console.enforcement.state import EngineState
from console.services.evidence.process_snapshot import AgentSeen, Look, ProcessSeen, Root
from console.services.fleet.core import Core, wait_beat

log = logging.getLogger(__name__)
AIM_S = 0.5
YOUNG_S = 10.0
"""A new agent is looked at again every second for this long: it has not unfolded yet."""
SHARE = 20
"""After a look the thread rests this many times as long as the look took: a bounded part of one core."""
KEPT_S = 120.0
"""How long what was seen of an agent outlives it."""
HANGS_S = 30.0
DEAD = ("Z", "X")
"""States of proc(5) in which a process has given up its memory, files and command line."""


class Witness:
    """Take the agents' first processes from the loop, and give any thread what was seen of them.

    Every attribute is replaced whole, so no lock is needed.
    """

    __slots__ = (
        "_refresh_s", "_look", "_roots", "_born", "_seen", "_rest_until", "_looked_at", "_busy_since", "_ended", "_thread", "problem"
    )  # fmt: skip

    def __init__(self, refresh_s: float = 5.0, processes_max: int = 500) -> None:
        self._refresh_s = refresh_s
        self._look = Look(processes_max)
        self._roots: tuple[Root, ...] = ()
        self._born: dict[str, float] = {}
        self._seen: dict[str, AgentSeen] = {}
        self._rest_until = 0.0
        self._looked_at = 0.0
        self._busy_since: float | None = None
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self.problem = ""
        """Why the last look failed, or ''."""

    def aim(self, roots: Iterable[Root]) -> None:
        """Look at these processes from now on. The first call starts the thread."""
        self._roots = tuple(roots)
        if self._thread is None and self._roots:
            self._thread = threading.Thread(target=self._run, name="witness", daemon=True)
            self._thread.start()

    def seen(self) -> dict[str, AgentSeen]:
        """What was last seen, by agent; never changed afterwards."""
        return self._seen

    def looked_at(self) -> dict[str, float]:
        """When the last look at each agent began, in seconds since the epoch."""
        return {agent_id: seen.at for agent_id, seen in self._seen.items()}

    def hangs(self) -> bool:
        """Whether a look has not come back."""
        since = self._busy_since
        return since is not None and time.monotonic() - since > HANGS_S

    def end(self) -> None:
        """Ends the thread after its present look."""
        self._ended.set()

    def _run(self) -> None:
        while not self._ended.wait(0.1):
            roots = self._due(time.monotonic())
            if not roots:
                continue
            began = self._busy_since = time.monotonic()
            try:
                self.look(roots)
                self.problem = ""
            except (OSError, ValueError, IndexError) as error:
                log.error("a look at the agents' processes failed", exc_info=error)
                self.problem = str(error)
            self._busy_since = None
            now = time.monotonic()
            self._rest_until = now + SHARE * (now - began)

    def _due(self, now: float) -> tuple[Root, ...]:
        """Everybody every ``refresh_s``; between that, those who are new or young."""
        if now < self._rest_until:
            return ()
        roots = self._roots
        self._born = {r.agent_id: self._born.get(r.agent_id, now) for r in roots}
        if now - self._looked_at >= self._refresh_s:
            self._looked_at = now
            return roots
        fresh = [r for r in roots if r.agent_id not in self._seen]
        young = [r for r in roots if now - self._born[r.agent_id] < YOUNG_S]
        return tuple(fresh or (young if now - self._rest_until > 1.0 else ()))

    def look(self, roots: tuple[Root, ...]) -> None:
        """One look, folded into what is known."""
        found = self._look.take(roots)
        at = time.time()
        aimed = {r.agent_id for r in self._roots}
        kept = {i: s for i, s in self._seen.items() if i in aimed or at - s.at < KEPT_S}
        for agent_id, new in found.items():
            kept[agent_id] = folded(kept.get(agent_id), new)
        self._look.marks = {i: m for i, m in self._look.marks.items() if i in aimed}
        self._seen = kept


def folded(old: AgentSeen | None, new: AgentSeen) -> AgentSeen:
    """The new look, and what only the look before it saw: a kill may strike in the middle of a look.

    An agent of which nothing is left keeps what was last seen of it, and so does a process that died and is not reaped: it shows no words.
    """
    if old is None:
        return new
    if not new.processes:
        return old
    before = {(p.pid, p.start_ticks): p for p in old.processes}
    new = replace(new, processes=tuple(before.get((p.pid, p.start_ticks), p) if p.state in DEAD else p for p in new.processes))
    now = {(p.pid, p.start_ticks) for p in new.processes}
    gone: tuple[ProcessSeen, ...] = tuple(p for p in old.processes if p.seen_at >= old.at and (p.pid, p.start_ticks) not in now)
    return replace(new, processes=new.processes + gone)


def roots_of(state: EngineState) -> list[Root]:
    """Every live agent that we can stop, by the process we hold it by."""
    agents = [state.agents[i] for i in sorted(state.held | state.killing) if i in state.agents]
    return [
        Root(a.agent_id, a.process.pid, a.process.start_ticks)
        for a in agents
        if a.process is not None and a.control_level is not ControlLevel.OBSERVED
    ]


async def keep_watch(witness: Witness, core: Core, notice: Callable[[str], None]) -> None:
    """Keeps the witness aimed at who lives now; shows it when it cannot look. Until cancelled."""
    try:
        while True:
            witness.aim(roots_of(core.state))
            if witness.hangs():
                notice("the look at the agents' processes hangs: the evidence of a kill will be old")
            await wait_beat(AIM_S)
    finally:
        witness.end()
