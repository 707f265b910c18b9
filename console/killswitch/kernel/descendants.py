"""The last way to stop: everything that descends from one process, by parent and by session, where no kernel object holds it together.

Best effort, and never called anything else: a process that ends its keeper first, and forks between two looks, gets away. One look that
finds no process proves nothing (measured: a scan that races with forks can look empty).
"""

from __future__ import annotations

import errno
import os
import signal
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass

from console.killswitch.kernel import processes
from console.killswitch.kernel.processes import Handle

QUIET_LOOKS = 5
"""Looks in a row that must find no process."""
APART_S = 0.02
"""Looks closer together than this count as one."""
ROUNDS = 4
"""Rounds in which one strike looks again for processes that were born meanwhile."""
PATIENCE = 40
"""After so many strikes the keeper is killed though something below it lives on."""


@dataclass(frozen=True, slots=True)
class Row:
    """One process as /proc/PID/stat has it."""

    parent: int
    session: int
    ticks: int
    is_alive: bool


def read_table() -> dict[int, Row]:
    """Every process there is. OSError when they cannot be listed, or one of them not be looked at."""
    found = {}
    with os.scandir("/proc") as entries:
        pids = [int(entry.name) for entry in entries if entry.name.isdigit()]
    for pid in pids:
        try:
            text = _read_stat(pid)
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ESRCH):
                continue  # it ended meanwhile
            raise  # this look sees less than there is
        fields = text[text.rfind(b")") + 2 :].split()  # proc(5): the name may hold anything
        if len(fields) > 19:
            alive = fields[0] not in (b"Z", b"X") or processes.is_alive(pid)
            found[pid] = Row(int(fields[1]), int(fields[3]), int(fields[19]), alive)
    return found


def _read_stat(pid: int) -> bytes:
    """A third of the time that ``Path.read_bytes`` takes: this is done for every process of the host."""
    descriptor = os.open(f"/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(descriptor, 4096)
    finally:
        os.close(descriptor)


def below(pid: int, rows: dict[int, Row]) -> list[int]:
    """Every process that descends from one by parent, itself left out."""
    children: dict[int, list[int]] = {}
    for one, row in rows.items():
        children.setdefault(row.parent, []).append(one)
    found, left = [], list(children.get(pid, []))
    while left:
        one = left.pop()
        found.append(one)
        left += children.get(one, [])
    return found


@dataclass(frozen=True, slots=True)
class Table:
    """Every process there was at one look, for as many agents as ask: a walk over /proc for each would last longer than a whole kill."""

    rows: dict[int, Row]
    never: frozenset[int]
    """This process and what is above it: never an agent's."""
    at: float
    """CLOCK_MONOTONIC: when the look began."""
    over: float
    """When it was over."""


_newest: Table | None = None
_looking = threading.Lock()


def look_at_all() -> Table:
    """A look that begins now. OSError when it sees less than there is."""
    global _newest
    began = time.monotonic()
    table = Table(read_table(), frozenset(processes.ancestors(os.getpid())), began, time.monotonic())
    _newest = table
    return table


def recent_look(since: float | None = None) -> Table:
    """The newest look, unless it was over ``APART_S`` ago (with ``since``: unless it began before then, CLOCK_MONOTONIC): then one that
    begins now. OSError as above."""
    with _looking:
        table = _newest
        if table is None or (time.monotonic() - table.over >= APART_S if since is None else table.at < since):
            return look_at_all()
        return table


class Closure:
    """One agent's descendants, followed from look to look. ``init`` is its keeper: the shim, to which orphans come (subreaper)."""

    def __init__(self, init: Handle) -> None:
        self._init = init
        self._known: dict[int, int] = {}
        """Members alive at the last look: pid and start time."""
        self._sessions: dict[int, int] = {}
        """Sessions that members lead or led: the leader's pid and start time."""
        self._lock = threading.Lock()
        self._strikes = 0
        self._looked_at = 0.0
        self.quiet = 0
        """Looks in a row that found no process except the keeper."""

    def look(self, table: Table | None = None) -> list[tuple[int, int]]:
        """Live members as (pid, start time), the keeper excluded. OSError when nothing can be seen; that is no quiet look."""
        try:
            table = table or look_at_all()
        except OSError:
            self.quiet = 0
            raise
        with self._lock:
            if table.at < self._looked_at:
                return sorted(self._known.items())  # an older look says nothing new
            found = self._members(table.rows, table.never)
            self._known = dict(found)
            if found:
                self.quiet = 0
            elif table.at - self._looked_at >= APART_S:
                self.quiet += 1
            self._looked_at = table.at
            return found

    def _members(self, table: dict[int, Row], never: frozenset[int]) -> list[tuple[int, int]]:
        if self._init.pid in never:
            return []  # what is below an ancestor of ours is not an agent's
        first = self._init.start_ticks
        seeds = {self._init.pid: first, **self._known}
        members = {pid for pid, ticks in seeds.items() if pid in table and table[pid].ticks == ticks}
        # A number that another process leads a session by is not the session we knew (a leader's number is not reused before its end).
        sessions = {sid: ticks for sid, ticks in self._sessions.items() if sid not in table or table[sid].ticks == ticks}
        grew = True
        while grew:
            sessions |= {pid: table[pid].ticks for pid in members if table[pid].session == pid}
            more = {
                pid
                for pid, row in table.items()
                if pid not in members and pid not in never and row.ticks >= first and (row.parent in members or row.session in sessions)
            }
            members |= more
            grew = bool(more)
        lived_in = {table[pid].session for pid in members}
        self._sessions = {sid: ticks for sid, ticks in sessions.items() if sid in lived_in}
        return sorted((pid, table[pid].ticks) for pid in members if pid != self._init.pid and table[pid].is_alive)

    def has_known(self) -> bool:
        """Return whether a member of the last look is still alive. Cheap: it does not look for new members."""
        with self._lock:
            known = dict(self._known)
        return any(processes.is_the_same(pid, ticks) for pid, ticks in known.items())

    def why_never(self, spared: frozenset[int]) -> str:
        """Why nothing below it is signalled; or empty."""
        if self._init.pid in spared or self._init.pid in processes.ancestors(os.getpid()):
            return f"refused: process {self._init.pid} is the guard, the caller, or an ancestor of one of them"
        return ""

    def hit(self, table: Table, spared: frozenset[int]) -> int:
        """SIGKILL to all but the keeper, which is asked to do the same: how many it was sent to."""
        found = [one for one in self.look(table) if one[0] not in spared]
        self._init.send(signal.SIGTERM)
        return sum(not processes.send_once(pid, ticks, signal.SIGKILL) for pid, ticks in found)

    def end(self) -> None:
        """The keeper goes last: while it lives, orphans come to it and stay in sight."""
        self._strikes += 1
        if self.quiet >= QUIET_LOOKS or self._strikes > PATIENCE:
            self._init.send(signal.SIGKILL)

    def fail(self) -> None:
        """Note that nothing can be seen: no quiet look counts, and only the keeper may know which processes to end."""
        self.quiet = 0
        self._init.send(signal.SIGTERM)

    def is_quiet(self) -> bool:
        """Return whether the keeper has ended and several looks in a row found no process. Looks once. Best effort: it proves nothing."""
        try:
            self.look(recent_look())
        except OSError:
            self.quiet = 0
            return False
        return self.quiet >= QUIET_LOOKS and not self._init.is_alive()


def strike(closures: Sequence[Closure], spared: frozenset[int] = frozenset()) -> list[str]:
    """Send SIGKILL to all below each keeper, again to those born meanwhile, then to each keeper that had no process left for a while.

    The same looks serve them all. Returns what was done for each, in words; never raises.
    """
    words = {one: one.why_never(spared) for one in closures}
    sent = {one: 0 for one in closures if not words[one]}
    try:
        for _ in range(ROUNDS if sent else 0):
            table = look_at_all()
            hits = {one: one.hit(table, spared) for one in sent}
            sent = {one: sent[one] + hits[one] for one in sent}
            if not any(hits.values()):
                break
    except OSError as error:
        for one in sent:
            one.fail()
        return [words[one] or f"failed: processes cannot be listed: {error.strerror}" for one in closures]
    for one in sent:
        one.end()
    return [words[one] or f"SIGKILL to {sent[one]} descendants" for one in closures]
