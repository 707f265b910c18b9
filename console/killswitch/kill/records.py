"""What is known of each agent's connections, the answers about it, and its file in the run folder.

The next guard goes on from that file when this one is killed. The file is not synced: after a power cut every agent is gone. Whatever is
lost, damaged or of another boot reads as never looked at."""

from __future__ import annotations

import contextlib
import json
import os
import stat
import time
from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass, field
from pathlib import Path
from typing import Any

from console.domain.errors import NotFound
from console.domain.guard import ANSWER_ROOM, text
from console.killswitch.kernel.processes import CLOCK_TICKS, ticks_now
from console.killswitch.kill.snapshot import Far, Process
from console.killswitch.kill.uncounted import AgentEnd
from console.killswitch.store.atomic_file import write_all
from console.killswitch.store.causes import boot_id
from console.killswitch.store.registry import Entry

FILE = "connections.json"
LARGEST = 64 * 1024 * 1024
_DIGITS = 20
"""Of the first line, which is written alone at a look that found nothing new."""
MOST_KEPT = 64
"""Different other ends kept for one agent."""
NAMED = 3
"""Other ends of one agent in the list of all agents."""
LATE_S = 5.0
"""An agent that no guard looked at for longer than this, at its start or while one took over, may have had connections meanwhile."""
STALLED_S = 10.0
"""Looks that are further apart may have missed connections: one of them hung, on a busy host it takes seconds at most."""
UNREAD = "the other end of a connection may be in a network namespace that was not read in time"


@dataclass(slots=True)
class Kept:
    """One other end of one agent's connections."""

    kind: str
    local: str
    remote: str
    peer: Process | None
    """None: no process was found that holds it."""
    uid: int
    peer_agent: str
    """The agent of this instance whose process it is; empty for any other program."""
    since_ticks: int
    """It was not there before that."""
    seen_at: float
    """CLOCK_MONOTONIC of the last look that saw it."""
    n: int = 1

    @property
    def peer_words(self) -> str:
        """The agent or the program at the other end, for a list."""
        return self.peer_agent or (self.peer.name if self.peer is not None else "") or "unknown program"


@dataclass(frozen=True, slots=True)
class Examined:
    """What is read of one process of an agent."""

    is_inside: bool
    """False: our own shim around the sandbox."""
    name: str
    """Another program has another one."""
    uids: frozenset[int]
    reach: str
    words: str
    folder: str
    network: int
    """Inode of its network namespace."""


@dataclass(slots=True)
class Record:
    """What is known of one agent. Changed by the look's thread alone; a kill reads it."""

    agent_id: str
    start_ticks: int
    since_ticks: int
    """When it was first looked at."""
    looked_at_ticks: int
    cgroups: frozenset[int] = frozenset()
    pids: dict[int, int] = field(default_factory=dict)
    """Its processes at the last look that saw any, with their start times."""
    sockets: frozenset[int] = frozenset()
    before: frozenset[int] = frozenset()
    """The look before that: SIGKILL may come in the middle of one."""
    kept: dict[tuple[str, str, int, int], Kept] = field(default_factory=dict)
    n_more: int = 0
    """Other ends beyond ``MOST_KEPT``."""
    away: dict[str, None] = field(default_factory=dict)
    """Addresses of other machines."""
    sought: set[int] = field(default_factory=set)
    """Sockets of which no namespace of this host has the other end."""
    unread: set[int] = field(default_factory=set)
    """Sockets whose other end may be in a namespace that no look has read: not known, and no other machine."""
    misses: int = 0
    """Looks in a row that could not read every namespace."""
    uids: set[int] = field(default_factory=set)
    """Accounts of its processes."""
    words: set[str] = field(default_factory=set)
    """Command lines that its processes have or had."""
    folders: set[str] = field(default_factory=set)
    """Working folders of its processes."""
    namespaces: dict[int, int] = field(default_factory=dict)
    """Its network namespaces, each with a process in it."""
    reach: str = ""
    """How it could reach other programs of this host; empty: its sandbox allows no connection to them."""
    trouble: str = ""
    """Why the last look does not know all of its connections."""
    examined: dict[tuple[int, int], Examined] = field(default_factory=dict)
    """By pid and start time."""
    handled: dict[int, list[Kept]] = field(default_factory=dict)
    """Sockets that were judged, with what is kept of each: nothing when it does not count."""
    looks: int = 0
    tries: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Sockets of which no process was found yet at the other end: how many looks, and since when."""
    entry: tuple[int, int, int] = (0, 0, 0)
    """By which the next guard knows the agent again: start time of its first process, inodes of its groups."""
    unwatched_ticks: int = 0
    """The longest time between the last look of a guard and the first one of the next, or between two looks where one of them hung."""
    former_look_ticks: int = 0
    """When a former guard looked last; 0: this guard has looked since."""

    def looked(self, ticks: int, gap_s: float) -> None:
        """A look that began at ``ticks`` is whole, ``gap_s`` after the one before it."""
        self.looked_at_ticks = ticks
        if self.looks > 1 and gap_s > STALLED_S:
            self.unwatched_ticks = max(self.unwatched_ticks, int(gap_s * CLOCK_TICKS))

    @property
    def agent_end(self) -> AgentEnd:
        return AgentEnd(frozenset(self.uids), self.start_ticks)

    @property
    def was_seen(self) -> bool:
        """Whether a look of this guard, or of a former one, has met a process of the agent's."""
        return bool(self.looks or self.former_look_ticks)

    @property
    def may_reach(self) -> bool:
        """Whether it could reach other programs of this host: not known is yes."""
        return bool(self.reach) or not self.was_seen

    @property
    def why_unknown(self) -> str:
        """Why not all of its connections are known; empty when they are."""
        return self.trouble or (UNREAD if self.unread else "")

    @property
    def why_late(self) -> str:
        """Why the agent may have had connections that no look could see; empty when it was looked at from its start on."""
        if self.since_ticks - self.start_ticks > LATE_S * CLOCK_TICKS:
            return "was not looked at from its start"
        away_s = self.away_ticks / CLOCK_TICKS
        return f"was once not looked at for {away_s:.0f} s" if away_s > LATE_S else ""

    @property
    def away_ticks(self) -> int:
        """The longest time without a look, up to now where this guard has not looked yet."""
        return max(self.unwatched_ticks, ticks_now() - self.former_look_ticks if self.former_look_ticks else 0)

    def row(self) -> dict[str, Any]:
        """What the next guard needs; it reads everything else of the processes. Command lines may hold secrets: they are not written."""
        sockets = dict[int, list[int]]()
        for inode, there in self.handled.items():
            for one in there:
                sockets.setdefault(id(one), []).append(inode)
        kept = []
        for key, one in self.kept.items():
            is_open, peer = sockets.get(id(one), []), one.peer and astuple(one.peer)
            seen_at = None if is_open else one.seen_at  # of an open one it is the look's own time, which changes at every look
            kept.append([key, one.local, one.remote, peer, one.uid, one.peer_agent, one.since_ticks, seen_at, one.n, is_open])
        ticks = [self.start_ticks, self.since_ticks, self.away_ticks]
        sets = {
            "uids": sorted(self.uids),
            "namespaces": sorted(self.namespaces.items()),
            "away": list(self.away),
            "unread": sorted(self.unread),
        }
        words = {"agent_id": self.agent_id, "entry": self.entry, "ticks": ticks, "reach": self.reach, "trouble": self.trouble}
        return words | sets | {"n_more": self.n_more, "kept": kept}


def keep(record: Record, far: Far, peer: Process | None, agent_id: str, since_ticks: int) -> Kept | None:
    """Adds a connection to what is known of an agent, or counts it as one more of the same. None beyond the bound."""
    key = (far.kind, far.remote or far.local, peer.pid if peer else 0, peer.start_ticks if peer else 0)
    if far.kind == "tcp" and not far.port:
        key = (far.kind, far.local, *key[2:])
    there = record.kept.get(key)
    if there is not None:
        there.n, there.seen_at = there.n + 1, time.monotonic()
    elif len(record.kept) >= MOST_KEPT:
        record.n_more += 1
    else:
        uid = peer.uid if peer is not None else far.uid
        there = record.kept[key] = Kept(far.kind, far.local, far.remote, peer, uid, agent_id, since_ticks, time.monotonic())
    return there


def identity(entry: Entry) -> tuple[int, int, int]:
    """Another agent, or the same id started again, has another one."""
    return entry.start_ticks, entry.inode, entry.container_inode


def record_of(row: dict[str, Any], ticks: int, now: int) -> Record:
    """The record of an agent as ``Record.row`` gave it after the look at ``ticks``. KeyError, TypeError or ValueError for anything else."""
    start, since, unwatched = map(int, row["ticks"])
    numbers = [row["n_more"], *row["uids"], *row["unread"], *row["entry"]]
    if ticks > now or not all(type(one) is int for one in numbers) or not all(isinstance(one, str) for one in row["away"]):
        raise TypeError("not what a look wrote")  # taken over, it would fail later, in the middle of a kill
    last_look, kept = time.monotonic() - (now - ticks) / CLOCK_TICKS, dict[tuple[str, str, int, int], Kept]()
    handled = dict[int, list[Kept]]()
    for key, local, remote, peer, uid, peer_agent, since_ticks, seen_at, n, sockets in row["kept"]:
        if not all(type(one) is int for one in (uid, since_ticks, n)) or not all(
            isinstance(one, str) for one in (local, remote, peer_agent)
        ):
            raise TypeError("not what a look wrote")
        there = Process(*peer) if peer is not None else None
        seen = last_look if seen_at is None else float(seen_at)
        one = kept[key[0], key[1], key[2], key[3]] = Kept(key[0], local, remote, there, uid, peer_agent, since_ticks, seen, n)
        for inode in sockets:
            handled.setdefault(inode, []).append(one)
    return Record(
        row["agent_id"],
        start,
        since,
        ticks,
        frozenset(inode for inode in row["entry"][1:] if inode),
        kept=kept,
        n_more=row["n_more"],
        away=dict.fromkeys(row["away"]),
        unread=set(row["unread"]),
        uids=set(row["uids"]),
        namespaces=dict(row["namespaces"]),
        reach=str(row["reach"]),
        trouble=str(row["trouble"]),
        handled=handled,
        entry=tuple(row["entry"]),
        unwatched_ticks=unwatched,
        former_look_ticks=ticks,
    )


def asked(records: Mapping[str, Record], agents: Iterable[str], message: dict[str, Any]) -> dict[str, object]:
    """The guard's answer: one agent's connections, or of all agents how they could have some."""
    agent_id = text(message, "agent_id", "", 63)
    return of_agent(records, agent_id) if agent_id else overview(records, agents, text(message, "after", "", 63))


def overview(records: Mapping[str, Record], agents: Iterable[str], after: str) -> dict[str, object]:
    """Of the agents by name behind ``after``: how each could reach other programs, and which ones it was connected to.

    ``next``: what to ask for next, None at the end.
    """
    found, room = dict[str, dict[str, object]](), ANSWER_ROOM
    names = sorted(name for name in agents if name > after)
    for name in names:
        record = records.get(name)
        row: dict[str, object] = {"reach": record.reach[:200] if record is not None else "it was not checked yet"}
        if record is not None and record.kept:
            kept = list(record.kept.values())
            row |= {"n": len(kept), "programs": list(dict.fromkeys(one.peer_words[:60] for one in kept))[:NAMED]}
        room -= len(json.dumps({name: row}))
        if found and room < 0:
            break
        found[name] = row
    last = next(reversed(found), "")
    return {"agents": found, "next": last if last and last != names[-1] else None}


def of_agent(records: Mapping[str, Record], agent_id: str) -> dict[str, object]:
    """One agent's connections as they are known now, as many as one answer holds."""
    record = records.get(agent_id)
    if record is None:
        raise NotFound(f"Agent {agent_id} has not been looked at.", "watchfloor fleet lists the agents.")
    rows, room = list[dict[str, object]](), ANSWER_ROOM
    for kept in list(record.kept.values()):
        row = {"kind": kept.kind, "remote": kept.remote[:100], "program": kept.peer_words[:60], "pid": kept.peer.pid if kept.peer else 0}
        room -= len(json.dumps(row))
        if room < 0:
            break
        rows.append(row)
    return {"agent_id": agent_id, "reach": record.reach, "trouble": record.why_unknown[:300], "connections": rows, "n": len(record.kept)}


class Looks:
    """One file: when the last look began, and what was known after it. Written by one thread of one guard."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE
        self._text = ""

    def write(self, records: Iterable[Record], ticks: int) -> None:
        """Keep what a look that began at ``ticks`` found. Never raises: a look that could not be kept counts as none."""
        # Of an agent whose processes no look has met, nothing is known: the next guard must not take it for looked at.
        agents = [one.row() for one in records if one.looks or one.away_ticks]
        text = json.dumps({"boot_id": boot_id(), "agents": agents}, separators=(",", ":"))
        try:
            if text == self._text:
                self._stamp_again(_stamp(ticks))
            else:
                self._replace(_stamp(ticks) + text.encode())
                self._text = text
        except OSError:
            self._text = ""
            with contextlib.suppress(OSError):  # what is there lacks this look
                self._path.unlink()

    def read(self) -> tuple[int, list[dict[str, Any]]]:
        """(when the last look began, what was known then); (0, []) when this account wrote nothing whole since the machine started."""
        try:
            # O_NONBLOCK: an account's own agent may have put a FIFO there, and the guard must start.
            with os.fdopen(os.open(self._path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK), "rb") as file:
                seen = os.fstat(file.fileno())
                is_own = stat.S_ISREG(seen.st_mode) and seen.st_uid == os.geteuid() and seen.st_size <= LARGEST
                stamp, _, text = (file.read(LARGEST) if is_own else b"").partition(b"\n")
            body = json.loads(text)
            return (int(stamp), list(body["agents"])) if body["boot_id"] == boot_id() else (0, [])
        except (OSError, ValueError, KeyError, TypeError, RecursionError, MemoryError):
            return 0, []

    def of(self, entries: Iterable[Entry]) -> dict[str, Record]:
        """The records of these agents as a former guard left them; one that no guard wrote reads as never looked at."""
        (ticks, rows), held = self.read(), {entry.agent_id: entry for entry in entries}
        found, now = dict[str, Record](), ticks_now()
        for row in rows:
            with contextlib.suppress(KeyError, TypeError, ValueError, IndexError, ArithmeticError):
                entry = held[row["agent_id"]]
                if tuple(row["entry"]) == identity(entry):
                    found[entry.agent_id] = record_of(row, ticks, now)
        return found

    def _stamp_again(self, stamp: bytes) -> None:
        # Not kept open: a disk with a file that is open for writing cannot be made read-only.
        fd = os.open(self._path, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            os.pwrite(fd, stamp, 0)
        finally:
            os.close(fd)

    def _replace(self, data: bytes) -> None:
        draft = self._path.with_name(f".{FILE}.draft")
        draft.unlink(missing_ok=True)  # an account's own agent may have put a FIFO or a link there
        fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            write_all(fd, data)
            draft.rename(self._path)
        finally:
            os.close(fd)


def _stamp(ticks: int) -> bytes:
    return f"{ticks:0{_DIGITS}d}\n".encode()
