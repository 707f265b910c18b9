"""Sessions' workspaces over their life: used, measured, held as evidence, deleted when their time is over."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from console.domain.agent import Agent, AgentId, AgentState
from console.domain.engine.command import Record
from console.domain.errors import Conflict, ConsoleError, Denied, NotFound, TooMany
from console.enforcement.state import EngineState
from console.ledger.contexts import ContextRow
from console.ledger.store import Ledger
from console.policy.workspace_limits import Fate, Stay, fate, grown
from console.sandbox.workspace import disk_use
from console.sandbox.workspace.disposal import quarantine, sweep
from console.sandbox.workspace.session_files import (
    ContextLock,
    ContextNote,
    alone,
    contexts_on_disk,
    held_on_disk,
    hold_on_disk,
    last_used,
    use,
    write_note,
)
from console.settings.options import WorkspaceOptions

log = logging.getLogger(__name__)
GIB = 1 << 30
_CAPACITY = "workspace.capacity"
_DEAD_BY_KILL = (AgentState.KILLED, AgentState.HALTED, AgentState.ALIVE_AFTER_KILL)
_FAULTS = (ConsoleError, OSError, RuntimeError, ValueError, ArithmeticError, LookupError)
"""What one look may break on; the next one comes all the same."""


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

    __slots__ = ("_locks", "room", "_owed", "over", "root", "options", "_ledger", "_state", "_record_first", "_notice", "_clock")

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
        self._owed: set[str] = set()
        """Agents whose end could not be written yet."""
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

    def rejoin(self) -> None:
        """After a restart: living agents still use their sessions, and what ended or was killed meanwhile is made up for."""
        agents = tuple(self._state().agents.values())
        for agent in agents:
            if agent.state.is_live and agent.control_level != "observed":
                try:
                    self._locks.setdefault(agent.agent_id, use(self.root, agent.context_id))
                except ConsoleError as error:
                    self._notice(f"the workspace of {agent.context_id} is not protected from another supervisor: {error}")
        open_ended = {row.context_id for row in self._ledger.contexts() if row.ended_at is None}
        for agent in agents:
            if not agent.state.is_live and agent.context_id in open_ended:
                self.end(agent.agent_id)

    def end(self, agent_id: str) -> None:
        """Note that an agent is over. A killed session stays as evidence until a person releases it. Never raises: failed writes are
        retried."""
        agent = self._state().agents.get(AgentId(agent_id))
        if agent is not None:
            try:
                self._note_end(agent)
            except ConsoleError as error:
                # Its lock stays: nobody deletes the session before this is written.
                self._owed.add(agent_id)
                self._notice(f"how the session of {agent_id} ended could not be written yet: {error}")
                return
        self._owed.discard(agent_id)
        lock = self._locks.pop(agent_id, None)
        if lock is not None:
            lock.close()

    def _note_end(self, agent: Agent) -> None:
        now = self._clock()
        if agent.state in _DEAD_BY_KILL:
            self._hold(agent.context_id, f"evidence of a kill: {agent.state_reason or agent.state}"[:300], now)
        if not self._living()[agent.context_id]:
            self._ledger.context_ended(agent.context_id, now)

    def _hold(self, context_id: str, words: str, now: float) -> bool:
        """On disk for every supervisor that shares the root, then in the ledger. Whether there is such a workspace."""
        with contextlib.closing(use(self.root, context_id, counts=False)):  # nobody deletes it meanwhile; Conflict while somebody does
            if not held_on_disk(self.root, context_id):
                hold_on_disk(self.root, context_id, words)
            if self._ledger.hold_context(context_id, words, now):
                return True
            hold_on_disk(self.root, context_id, "")
        return False

    def _living(self) -> Counter[str]:
        """Living agents by session, those only seen left out. A copy first: threads look while the engine goes on."""
        agents = tuple(self._state().agents.values())
        return Counter(a.context_id for a in agents if a.state.is_live and a.control_level != "observed")

    # --- looking

    def look(self) -> None:
        """Measures every session, notes it beside the workspace, and lets the capacity grow."""
        for agent_id in tuple(self._owed):
            self.end(agent_id)
        now, living = self._clock(), self._living()
        rows = {row.context_id: row for row in self._ledger.contexts()}
        self._ledger.contexts_in_use([c for c in rows if living[c]], now)
        used, complete, over, measured = 0, True, {}, dict[str, tuple[int, bool]]()
        for context_id in contexts_on_disk(self.root):
            row = rows.get(context_id) or self._adopt(context_id, now)
            try:
                found = self._measure(context_id)
            except OSError as error:  # closed to us: what it held at the last look, and not one byte is known for certain
                log.warning("the workspace of %s cannot be measured: %s", context_id, error)
                found = disk_use.DiskUse(row.bytes if row is not None else 0, 0, False)
            used, complete = used + found.bytes, complete and found.complete
            if row is not None:
                measured[context_id] = (found.bytes, found.complete)
                self._note(row, found.bytes)
            if why := self._beyond(found):
                over[context_id] = why
        self.over = over
        self._ledger.contexts_measured(measured, now)
        self._grow(used, complete)

    def _beyond(self, found: disk_use.DiskUse) -> str:
        """Why a session may not go on; with a bound, what cannot be measured whole counts as beyond it."""
        bound = int(self.options.session_max_gib * GIB)
        if not bound or (found.complete and found.bytes <= bound):
            return ""
        least = "" if found.complete else "at least "
        return f"its workspace holds {least}{size(found.bytes)}, and may hold {size(bound)}"

    def _adopt(self, context_id: str, now: float) -> ContextRow | None:
        """Take over a workspace that the ledger does not know (the ledger was lost, or another supervisor made it). Its time starts now."""
        if self._living()[context_id]:
            return None  # it is just being begun
        self._ledger.use_context(context_id, "", now)
        self._ledger.context_ended(context_id, now)
        if words := held_on_disk(self.root, context_id):
            self._ledger.hold_context(context_id, words, now)
        return next((row for row in self._ledger.contexts() if row.context_id == context_id), None)

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
        """Delete sessions that are no longer needed. Returns those deleted. While killed, nothing is deleted."""
        # A session that another supervisor uses or holds is never deleted.
        gone: list[str] = []
        if self._state().killed:
            return gone
        living = self._living()
        for row in self._ledger.contexts():
            if fate(self._stay(row, living), self._clock()) is Fate.GOES:
                why = "its stateless run is over" if row.stateless else f"unused for {self.options.ttl_days:g} days"
                try:
                    if self._delete(row.context_id, why, "supervisor", is_due=True):
                        gone.append(row.context_id)
                except ConsoleError as error:
                    log.warning("the workspace of %s stays: %s", row.context_id, error)
        self._sweep()
        return gone

    def _stay(self, row: ContextRow, living: Counter[str]) -> Stay:
        used = max(row.last_used, last_used(self.root, row.context_id) or 0.0)
        hold = row.hold or held_on_disk(self.root, row.context_id)
        return Stay(used, self.options.ttl_days, living[row.context_id], hold, row.held_s, row.stateless, row.ended_at)

    def _delete(self, context_id: str, why: str, by: str, *, is_due: bool) -> bool:
        """Delete one session; return whether it went. It is checked once more under the lock: a hold or an agent may be new."""
        with alone(self.root, context_id) as is_alone:
            if not is_alone:
                return False
            row = self._row(context_id)
            stay = self._stay(row, self._living())
            if stay.live_agents or stay.hold or (is_due and fate(stay, self._clock()) is not Fate.GOES):
                return False
            # Deleting cannot be taken back: it is on record first, or it does not happen (promise 5).
            what = f"session {context_id}: {why}"
            self._record_first(Record(by, "workspace.deleted", what, verdict="allow", data={"context_id": context_id}))
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
        if not self._hold(self._row(context_id).context_id, f"{by}: {why}"[:500], self._clock()):
            raise NotFound(f"Session {context_id[:80]!r} has no workspace.", "watchfloor session list shows them.")
        self._record_first(Record(by, "workspace.held", f"session {context_id}: {why}", verdict="ok", data={"context_id": context_id}))

    def release(self, context_id: str, why: str, by: str) -> None:
        """Ends a hold; recorded first. Raises NotFound, NotRecorded."""
        row = self._row(context_id)
        hold = row.hold or held_on_disk(self.root, context_id)
        if not hold:
            raise Conflict(f"Session {context_id} is not held.", "Nothing to release.")
        self._record_first(
            Record(
                by,
                "workspace.released",
                f"session {context_id}: {why} (was held: {hold})",
                verdict="ok",
                data={"context_id": context_id},
            )
        )
        self._ledger.release_context(context_id, self._clock())
        hold_on_disk(self.root, context_id, "")

    def delete(self, context_id: str, why: str, by: str) -> None:
        """At an operator's word, whatever its time to live. Raises NotFound, Denied while it is used or held."""
        hold = self._row(context_id).hold or held_on_disk(self.root, context_id)
        if hold:
            raise Denied(f"Session {context_id} is held as evidence: {hold}.", "Release it first.")
        if not self._delete(context_id, why, by, is_due=False):
            raise Denied(f"Session {context_id} is in use.", "End its agents first; another supervisor may have some too.")
        self._sweep()

    def _row(self, context_id: str) -> ContextRow:
        for row in self._ledger.contexts():
            if row.context_id == context_id:
                return row
        raise NotFound(f"Session {context_id[:80]!r} has no workspace.", "watchfloor session list shows them.")

    def rows(self) -> list[tuple[ContextRow, int, float | None]]:
        """(session, living agents, when it goes: seconds since the epoch, or None while it is used or held)."""
        found, living = [], self._living()
        for row in self._ledger.contexts():
            stay = self._stay(row, living)
            pinned = stay.live_agents > 0 or bool(stay.hold)
            goes_at = None if pinned else stay.last_used + stay.held_until_now_s + stay.ttl_days * 86400.0
            found.append((replace(row, hold=stay.hold), stay.live_agents, goes_at))
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
            except _FAULTS as error:
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
    """Return whether no session was named at the start: the engine then made the id from the root agent's id."""
    return agent.context_id == f"ctx-{agent.root_id}"


def _iso(at: float) -> str:
    return datetime.fromtimestamp(at, tz=UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
