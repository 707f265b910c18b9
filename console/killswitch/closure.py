"""The last rung: everything that descends from one process, by parent and by session, where no kernel object holds it together.

Best effort, and never called anything else: a process that ends its keeper first, and forks between two looks, gets away. So nothing
is concluded from one look that finds nobody (measured: a scan that races with forks can look empty), and nothing is ever proven.
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from console.killswitch import processes
from console.killswitch.processes import Handle

QUIET_LOOKS = 5
"""So many looks in a row must find nobody."""
APART_S = 0.02
"""Looks closer together than this count as one."""
ROUNDS = 4
"""So often one strike looks again for what was born meanwhile."""
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
            text = Path(f"/proc/{pid}/stat").read_bytes()
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ESRCH):
                continue  # it ended meanwhile
            raise  # this look sees less than there is
        fields = text[text.rfind(b")") + 2 :].split()  # proc(5): the name may hold anything
        if len(fields) > 19:
            alive = fields[0] not in (b"Z", b"X") or processes.is_alive(pid)
            found[pid] = Row(int(fields[1]), int(fields[3]), int(fields[19]), alive)
    return found


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
        """Looks in a row that found nobody but the keeper."""

    def look(self) -> list[tuple[int, int]]:
        """Live members as (pid, start time), the keeper excluded. OSError when nothing can be seen; that is no quiet look."""
        with self._lock:
            try:
                table = read_table()
            except OSError:
                self.quiet = 0
                raise
            found = self._members(table)
            self._known = dict(found)
            at = time.monotonic()
            if found:
                self.quiet = 0
            elif at - self._looked_at >= APART_S:
                self.quiet += 1
            self._looked_at = at
            return found

    def _members(self, table: dict[int, Row]) -> list[tuple[int, int]]:
        never = processes.ancestors(os.getpid())
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
        """Whether any member of the last look is still alive. Cheap; nobody new is looked for."""
        with self._lock:
            known = dict(self._known)
        return any(processes.is_the_same(pid, ticks) for pid, ticks in known.items())

    def strike(self, spared: frozenset[int] = frozenset()) -> str:
        """SIGKILL to all but the keeper, who is asked to do the same (SIGTERM), again for what was born meanwhile; then to the keeper.

        The keeper goes last: while it lives, orphans come to it and stay in sight. What was done, in words; never raises.
        """
        if self._init.pid in spared or self._init.pid in processes.ancestors(os.getpid()):
            return f"refused: process {self._init.pid} is the guard, the one who pressed, or an ancestor of theirs"
        self._strikes += 1
        signalled = 0
        if not self._looked_at:  # whom it has below it is seen while it is there to be below of
            with contextlib.suppress(OSError):
                self.look()
        self._init.send(signal.SIGTERM)
        for _ in range(ROUNDS):
            try:
                found = [one for one in self.look() if one[0] not in spared]
            except OSError as error:
                return f"failed: processes cannot be listed: {error.strerror}"
            for pid, ticks in found:
                signalled += _kill(pid, ticks)
            if not found:
                break
        if self.quiet >= QUIET_LOOKS or self._strikes > PATIENCE:
            self._init.send(signal.SIGKILL)
        return f"SIGKILL to {signalled} descendants"

    def is_quiet(self) -> bool:
        """Whether the keeper has ended and several looks in a row found nobody. Looks once. Best effort: it proves nothing."""
        try:
            self.look()
        except OSError:
            return False
        return self.quiet >= QUIET_LOOKS and not self._init.is_alive()


def _kill(pid: int, ticks: int) -> int:
    try:
        handle = Handle(pid, ticks)
    except OSError:
        return 0
    try:
        return int(handle.send(signal.SIGKILL) == "sent")
    finally:
        handle.close()
