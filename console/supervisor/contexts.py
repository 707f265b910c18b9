"""Sessions' workspaces over their life: used, measured, held as evidence, deleted when their time is over."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from console.domain.agent import Agent, AgentState
from console.domain.command import Record
from console.domain.errors import Conflict, ConsoleError, Denied, NotFound, TooMany
from console.enforcement.state import EngineState
from console.ledger.contexts import ContextRow
from console.ledger.store import Ledger
from console.policy.workspace_limits import Fate, Stay, fate, grown
from console.sandbox import disk_use
from console.sandbox.context_files import ContextLock, ContextNote, alone, contexts_on_disk, last_used, use, write_note
from console.sandbox.disposal import quarantine, sweep
from console.settings.options import WorkspaceOptions

log = logging.getLogger(__name__)
GIB = 1 << 30
_CAPACITY = "workspace.capacity"
_DEAD_BY_KILL = (AgentState.KILLED, AgentState.ALIVE_AFTER_KILL)


@dataclass(frozen=True, slots=True)
class Room:
    """All workspaces together, in bytes."""

    used: int = 0
    capacity: int = 0
    maximum: int = 0
    complete: bool = True
    is_full: bool = False


class Contexts:
    """The workspaces of one supervisor. Methods block (disk, ledger) unless they are coroutines."""

    def __init__(
        self,
        root: Path,
        options: WorkspaceOptions,
        ledger: Ledger,
        state: Callable[[], EngineState],
        record_first: Callable[[Record], Any],
        notice: Callable[[str], None],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.root, self.options = root, options
        self._ledger, self._state, self._record_first, self._notice, self._clock = ledger, state, record_first, notice, clock
        self._locks: dict[str, ContextLock] = {}
        """By agent."""
        self.room = Room(maximum=int(options.capacity_max_gib * GIB), capacity=self._capacity())
        self.over: dict[str, str] = {}
        """Sessions beyond their own bound, in words."""

    def _capacity(self) -> int:
        kept = self._ledger.kv_get(_CAPACITY) or ""
        return int(kept) if kept.isdigit() and len(kept) < 19 else int(self.options.capacity_gib * GIB)

    # --- agents come and go

    def check(self, context_id: str) -> None:
        """Raises TooMany when nothing fits any more, by the last measurement. Never blocks."""
        if self.room.is_full:
            raise TooMany(
                f"Workspaces hold {size(self.room.used)}, all that they may.", "End sessions, delete their workspaces, or raise the bound."
            )
        if context_id in self.over:
            raise TooMany(f"Session {context_id}: {self.over[context_id]}.", "Make room in it, or start another session.")

    def begin(self, agent: Agent) -> None:
        """Before an agent's workspace is opened. Raises as ``check``, and Conflict while it is being deleted."""
        self.check(agent.context_id)
        lock = use(self.root, agent.context_id)
        try:
            self._ledger.use_context(agent.context_id, agent.name, self._clock(), is_stateless(agent))
        except ConsoleError:
            lock.close()
            raise
        before = self._locks.pop(agent.agent_id, None)
        self._locks[agent.agent_id] = lock
        if before is not None:
            before.close()

    def rejoin(self, agents: list[Agent]) -> None:
        """After a restart: living agents still use their sessions."""
        for agent in agents:
            try:
                self._locks.setdefault(agent.agent_id, use(self.root, agent.context_id))
            except ConsoleError as error:
                self._notice(f"the workspace of {agent.context_id} is not protected from another supervisor: {error}")

    def end(self, agent_id: str) -> None:
        """An agent is over. What was killed stays as evidence until somebody releases it."""
        lock = self._locks.pop(agent_id, None)
        if lock is not None:
            lock.close()
        agent = next((a for a in self._state().agents.values() if a.agent_id == agent_id), None)
        if agent is None:
            return
        now = self._clock()
        if agent.state in _DEAD_BY_KILL:
            self._ledger.hold_context(agent.context_id, f"evidence of a kill: {agent.state_reason or agent.state}"[:300], now)
        if not self._live(agent.context_id):
            self._ledger.context_ended(agent.context_id, now)

    def _live(self, context_id: str) -> int:
        return sum(
            1 for a in self._state().agents.values() if a.context_id == context_id and a.state.is_live and a.control_level != "observed"
        )

    # --- looking

    def look(self) -> None:
        """Measures every session, notes it beside the workspace, and lets the capacity grow."""
        rows = {row.context_id: row for row in self._ledger.contexts()}
        used, complete, over = 0, True, {}
        for context_id in contexts_on_disk(self.root):
            try:
                found = self._measure(context_id)
            except OSError as error:
                log.warning("the workspace of %s cannot be measured: %s", context_id, error)
                complete = False
                continue
            used, complete = used + found.bytes, complete and found.complete
            row = rows.get(context_id)
            if row is not None:
                self._ledger.context_measured(context_id, found.bytes, found.complete, self._clock())
                self._note(row, found.bytes)
            bound = self.options.session_max_gib * GIB
            if bound and found.bytes > bound:
                over[context_id] = f"its workspace holds {size(found.bytes)}, and may hold {size(int(bound))}"
        self.over = over
        self._grow(used, complete)

    def _measure(self, context_id: str) -> disk_use.DiskUse:
        fd = os.open(self.root / context_id, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            return disk_use.measure(fd)
        finally:
            os.close(fd)

    def _note(self, row: ContextRow, used: int) -> None:
        note = ContextNote(
            row.context_id,
            row.agent[:200],
            self.options.namespace,
            _iso(row.created_at),
            _iso(max(row.last_used, last_used(self.root, row.context_id) or 0.0)),
            self.options.ttl_days,
            used,
        )
        try:
            write_note(self.root, note)
        except ConsoleError as error:
            log.warning("%s", error)

    def _grow(self, used: int, complete: bool) -> None:
        maximum = int(self.options.capacity_max_gib * GIB)
        growth = grown(used, self.room.capacity, maximum)
        if growth.grew:
            self._ledger.kv_set(_CAPACITY, str(growth.capacity))
            self._notice(f"workspaces hold {size(used)}: their capacity is {size(growth.capacity)} now")
        if growth.is_full and not self.room.is_full:
            self._notice(f"workspaces hold {size(used)} of {size(maximum)}: nothing is started any more")
        self.room = Room(used, growth.capacity, maximum, complete, growth.is_full)

    # --- deleting

    def tidy(self) -> list[str]:
        """Deletes what nobody needs any more; the sessions that went. What another supervisor uses stays."""
        gone = []
        for row in self._ledger.contexts():
            if fate(self._stay(row), self._clock()) is Fate.GOES:
                why = "its stateless run is over" if row.stateless else f"unused for {self.options.ttl_days:g} days"
                try:
                    if self._delete(row.context_id, why, "supervisor"):
                        gone.append(row.context_id)
                except ConsoleError as error:
                    log.warning("the workspace of %s stays: %s", row.context_id, error)
        self._sweep()
        return gone

    def _stay(self, row: ContextRow) -> Stay:
        used = max(row.last_used, last_used(self.root, row.context_id) or 0.0)
        return Stay(used, self.options.ttl_days, self._live(row.context_id), row.hold, row.held_s, row.stateless, row.ended_at)

    def _delete(self, context_id: str, why: str, by: str) -> bool:
        with alone(self.root, context_id) as is_alone:
            if not is_alone or self._live(context_id):
                return False
            # Deleting cannot be taken back: it is on record first, or it does not happen (promise 5).
            self._record_first(
                Record(by, "workspace.deleted", f"session {context_id}: {why}", verdict="allow", data={"context_id": context_id})
            )
            try:
                quarantine(self.root, context_id)
            except NotFound:
                pass  # it never had one, or it is gone already
            self._ledger.context_gone(context_id, self._clock())
        return True

    def _sweep(self) -> None:
        for swept in sweep(self.root):
            if not swept.gone and swept.why != "not done yet":
                self._notice(f"the quarantined workspace of {swept.context_id} cannot be deleted: {swept.why}")

    # --- what operators do

    def hold(self, context_id: str, why: str, by: str) -> None:
        """Pauses its time to live. Raises NotFound."""
        if not self._ledger.hold_context(context_id, f"{by}: {why}"[:500], self._clock()):
            raise NotFound(f"Session {context_id[:80]!r} has no workspace.", "watchfloor contexts list shows them.")
        self._record_first(Record(by, "workspace.held", f"session {context_id}: {why}", verdict="ok", data={"context_id": context_id}))

    def release(self, context_id: str, why: str, by: str) -> None:
        """Ends a hold; recorded first. Raises NotFound, NotRecorded."""
        row = self._row(context_id)
        if not row.hold:
            raise Conflict(f"Session {context_id} is not held.", "Nothing to release.")
        self._record_first(
            Record(
                by,
                "workspace.released",
                f"session {context_id}: {why} (was held: {row.hold})",
                verdict="ok",
                data={"context_id": context_id},
            )
        )
        self._ledger.release_context(context_id, self._clock())

    def delete(self, context_id: str, why: str, by: str) -> None:
        """At an operator's word, whatever its time to live. Raises NotFound, Denied while it is used or held."""
        row = self._row(context_id)
        if row.hold:
            raise Denied(f"Session {context_id} is held as evidence: {row.hold}.", "Release it first.")
        if not self._delete(context_id, why, by):
            raise Denied(f"Session {context_id} is in use.", "End its agents first; another supervisor may have some too.")
        self._sweep()

    def _row(self, context_id: str) -> ContextRow:
        for row in self._ledger.contexts():
            if row.context_id == context_id:
                return row
        raise NotFound(f"Session {context_id[:80]!r} has no workspace.", "watchfloor contexts list shows them.")

    def rows(self) -> list[tuple[ContextRow, int, float | None]]:
        """(session, living agents, when it goes: seconds since the epoch, or None while it is used or held)."""
        found = []
        for row in self._ledger.contexts():
            stay = self._stay(row)
            pinned = stay.live_agents > 0 or bool(stay.hold)
            found.append((row, stay.live_agents, None if pinned else stay.last_used + stay.held_until_now_s + stay.ttl_days * 86400.0))
        return found

    # --- for ever

    async def keep(self, freeze: Callable[[str, str], Awaitable[None]]) -> None:
        """Measures every ``measure_s``, deletes every ``sweep_s``; ``freeze`` is told each session beyond its bound, and why. For ever."""
        tidied, frozen = time.monotonic() - self.options.sweep_s + 5.0, set[str]()
        while True:
            try:
                await asyncio.to_thread(self.look)
                for context_id in self.over.keys() - frozen:
                    self._notice(f"session {context_id} is frozen: {self.over[context_id]}")
                    await freeze(context_id, self.over[context_id])
                frozen = set(self.over)
                if time.monotonic() - tidied >= self.options.sweep_s:
                    tidied = time.monotonic()
                    await asyncio.to_thread(self.tidy)
            except (ConsoleError, OSError) as error:
                log.warning("looking after workspaces failed: %s", error)
                self._notice(f"workspaces cannot be looked after: {error}")
            await asyncio.sleep(self.options.measure_s)

    def close(self) -> None:
        """Lets go of all locks."""
        for lock in self._locks.values():
            lock.close()
        self._locks.clear()


def size(count: int) -> str:
    """Bytes for people."""
    return f"{count / GIB:.1f} GiB" if count >= GIB else f"{count / (1 << 20):.1f} MiB"


def is_stateless(agent: Agent) -> bool:
    """Whether nobody named its session: the engine made one up from its root's id."""
    return agent.context_id == f"ctx-{agent.root_id}"


def _iso(at: float) -> str:
    return datetime.fromtimestamp(at, tz=UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
