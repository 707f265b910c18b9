"""Connections of agents to programs outside: kept by a regular look, and by one dump of the kernel's lists at the kill.

A kill ends what an agent runs, not what it asked another program to run. So the receipt names each program that an agent was connected
to. The look is made about four times a second; a connection that is shorter is seen by neither, so the receipt also names the agents
that could have had one. Nothing here is waited for by a kill: what is not known in time is "not recorded", never "none".
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Collection, Iterable
from pathlib import Path

from console.killswitch.kernel import processes
from console.killswitch.kernel.faults import FAULTS, note_fault
from console.killswitch.kernel.processes import CLOCK_TICKS, ticks_now
from console.killswitch.kernel.socket_lists import ESTABLISHED, Dump, address_words
from console.killswitch.kill.records import MOST_KEPT, Examined, Looks, Record, identity, keep
from console.killswitch.kill.snapshot import (
    Far,
    Process,
    Snapshot,
    find_process,
    holders,
    is_here,
    read_beside,
    snapshot,
    sockets_of,
    without_children,
)
from console.killswitch.kill.uncounted import OtherEnd, why_uncounted
from console.killswitch.store.registry import Entry, Held

LOOK_S = 0.25
SHARE = 50
"""After a look the thread rests this many times the processor time that the look took: 2 % of one processor."""
LONGEST_S, ALONE_S = 2.0, 15.0
"""The longer one while there is no agent. An agent that is confirmed or adopted is looked at at once (``look_soon``)."""
FIND_S = 1.0
"""How long one look, and the end of a kill, searches for the processes at the other ends."""
END_S = 5.0
"""How long the guard's end waits for a look."""
TRIES = 3
"""Looks that search for the process at one other end."""
MOST_AWAY = 20
YOUNG_S = 5.0
AGAIN = 40
"""Every so many looks all processes are examined again."""
MOST_WORDS = 200
"""Command lines kept of one agent."""
EXAMINED = 50
"""Processes of one agent of which account, namespaces and command line are read."""


class Connections:
    """The looks at all agents of one guard. ``held``: who is looked at. ``is_own``: whether a process is a part of Watchfloor.

    ``looks``: where what they find outlives the guard.
    """

    def __init__(self, held: Callable[[], Iterable[Held]], is_own: Callable[[Process], bool], looks: Looks) -> None:
        self._held, self._is_own, self._looks = held, is_own, looks
        self.dump = Dump()
        self.records: dict[str, Record] = {}
        """A guard that takes over puts in what a former one kept of them, before the first kill and the first look."""
        self._cache: dict[int, tuple[Process, ...]] = {}
        """Who holds a socket at the other end, by its inode."""
        self._listed, self.elsewhere = frozenset[int](), frozenset[int]()
        """Sockets of the last dump; and of the one before it those that no agent held at the look after: they are another program's."""
        self._ended, self._soon = threading.Event(), threading.Event()
        self._thread: threading.Thread | None = None
        self.problem = ""
        """Why the last look failed."""
        self.looked_at = time.monotonic()  # when the last whole look began; while the machine sleeps, agents sleep too

    def start(self) -> None:
        """The threads that look and that serve kills. Without them every kill says "not recorded"."""
        self.dump.start()
        self._soon.set()  # what a former guard left is looked at now
        self._thread = threading.Thread(target=self._keep_looking, name="connections", daemon=True)
        try:
            self._thread.start()
        except RuntimeError:
            self.problem = "no thread could be had to look at connections"

    def end(self) -> None:
        """Ends both threads after their present work."""
        self._ended.set()
        self._soon.set()
        if self._thread is not None and self._thread.is_alive():
            self._thread.join(END_S)
        self.dump.end()

    def look_soon(self) -> None:
        """A new agent is looked at now."""
        self._soon.set()

    def _keep_looking(self) -> None:
        pause = LOOK_S
        while not self._ended.is_set():
            self._soon.wait(pause)
            self._soon.clear()
            began = time.thread_time()
            try:
                self.look()
                self.problem = ""
            except FAULTS as fault:  # the next look is made all the same
                self.problem = f"a look failed: {type(fault).__name__}"
                note_fault("connections", fault)
            pause = min(max(LOOK_S, SHARE * (time.thread_time() - began)), LONGEST_S) if self.records else ALONE_S

    def look(self) -> None:
        """Every agent's sockets and the processes at their other ends."""
        held = {one.entry.agent_id: one for one in self._held()}
        for agent_id in self.records.keys() - held.keys():
            del self.records[agent_id]
        began, at = ticks_now(), time.monotonic()
        if not held:
            self.looked_at = at
            self._cache.clear()
            self._listed = self.elsewhere = frozenset()
            self.dump.open({})
            self._looks.write(self.records.values(), began)
            return
        for one in held.values():
            self._look_at_processes(one)
        self.elsewhere = self._listed.difference(*(record.sockets | record.before for record in self.records.values()))
        self.dump.open({n: pid for record in self.records.values() if record.reach for n, pid in record.namespaces.items()})
        raws, trouble = self.dump.look()
        for record in self.records.values():
            record.trouble = next((trouble[n] for n in (0, *record.namespaces) if n in trouble), record.trouble)
        seen = snapshot(raws)
        self._listed = frozenset((*seen.unix, *seen.tcp))
        _add_by_cgroup(seen, self.records.values())
        _add_beside(seen, self.records.values())
        for record in self.records.values():
            record.reach = record.reach or _why_reaches_folder(record, seen)
        self._look_at_sockets(seen)
        for record in self.records.values():
            record.looked(began, at - self.looked_at)
        self.looked_at = at
        self._looks.write(self.records.values(), began)

    def _look_at_processes(self, held: Held) -> None:
        entry, now = held.entry, ticks_now()
        record = self.records.get(entry.agent_id)
        if record is None:
            start = entry.start_ticks or now
            record = self.records[entry.agent_id] = Record(entry.agent_id, start, now, start)
        if entry.start_ticks and entry.start_ticks < record.start_ticks:
            record.start_ticks = entry.start_ticks
        record.cgroups = frozenset(inode for inode in (entry.inode, entry.container_inode) if inode)
        record.entry = identity(entry)
        pids = {pid: ticks for pid in held.pids() if (ticks := processes.start_ticks(pid)) is not None}
        if not pids:
            return  # it has ended: what was seen last is what a kill needs
        record.trouble = ""
        sockets = set[int]()
        self._examine(record, pids, entry)
        for pid, ticks in pids.items():
            try:
                found, is_all = sockets_of(pid)
            except OSError as error:
                record.trouble = f"the open files of process {pid} could not be listed: {error.strerror or error}"
                continue
            sockets |= found
            if not is_all and processes.is_the_same(pid, ticks) and not is_wrapping(pid, ticks, entry):
                record.trouble = f"process {pid} has more open files than are looked at, or hides them"
        record.pids, record.before, record.sockets = pids, record.sockets, frozenset(sockets)

    def _examine(self, record: Record, pids: dict[int, int], entry: Entry) -> None:
        """Read accounts, namespaces, command lines and working folders. A process is read again while it is young, after a new name, and at
        times."""
        # A launch enters its sandbox, drops its account and runs its program after its start.
        young, found = ticks_now() - int(YOUNG_S * CLOCK_TICKS), dict[tuple[int, int], Examined]()
        for one in list(pids.items())[:EXAMINED]:
            known = record.examined.get(one)
            is_settled = one[1] < young and known is not None and known.name == processes.short_name(one[0])
            found[one] = known if known is not None and is_settled and (record.looks + 1) % AGAIN else examine(one[0], entry.pid_namespace)
        inside = {one: seen for one, seen in found.items() if seen.is_inside}
        if not inside:
            return  # our shim alone, or a kill has ended them, and they are not reaped yet: what was seen last is what it needs
        if record.former_look_ticks:
            record.unwatched_ticks, record.former_look_ticks = record.away_ticks, 0
        record.looks += 1
        # A managed agent's first process is our shim, under our account, unless there is no other process.
        agents = [seen for one, seen in inside.items() if one[0] != entry.pid] or list(inside.values())
        record.examined = found
        record.uids = {uid for seen in agents for uid in seen.uids}
        record.reach = next((seen.reach for seen in agents if seen.reach), "")
        record.words = {*list(record.words)[-MOST_WORDS:], *(seen.words for seen in inside.values())}
        record.folders = {seen.folder for seen in agents if seen.folder}
        record.namespaces = {seen.network: one[0] for one, seen in inside.items() if seen.network}

    def _look_at_sockets(self, seen: Snapshot) -> None:
        _add_by_cgroup(seen, self.records.values())
        owner = {inode: record.agent_id for record in self.records.values() for inode in record.sockets}
        pending = []
        for record in self.records.values():
            now = time.monotonic()
            record.handled = {inode: there for inode, there in record.handled.items() if inode in record.sockets}
            for there in record.handled.values():
                for kept in there:
                    kept.seen_at = now
            record.sought &= record.sockets
            for inode in record.sockets - record.handled.keys():
                if (far := seen.far(inode)) is None:
                    pending += [(record, inode, one) for one in _passed_on(record, inode, seen)]
                else:
                    record.unread.discard(inode)
                    pending += [(record, inode, far)] if not set(far.inodes) <= record.sockets else []
        self._cache = {inode: there for inode, there in self._cache.items() if inode in seen.unix or inode in seen.tcp}
        self._find([inode for _, _, far in pending for inode in far.inodes if inode not in owner])
        for record, inode, far in pending:
            self._judge(record, inode, far, owner)

    def _find(self, inodes: Collection[int]) -> None:
        """Looks for the processes that hold these, among all there are."""
        unknown = {inode for inode in inodes if inode and inode not in self._cache}
        if not unknown:
            return
        skip = {pid for record in self.records.values() for pid in record.pids}
        for inode, pids in holders(unknown, skip, time.monotonic() + FIND_S).pids.items():
            self._cache[inode] = tuple(one for pid in without_children(pids)[:10] if (one := find_process(pid)) is not None)

    def _judge(self, record: Record, inode: int, far: Far, owner: dict[int, str]) -> None:
        ends = self._ends(far, owner)
        n, since = record.tries.get(inode, (0, record.looked_at_ticks))
        if not ends and n < TRIES:
            record.tries[inode] = (n + 1, since)
            return  # it may be found at the next look
        record.tries.pop(inode, None)
        counted = [(peer, a) for peer, a in ends or [(None, "")] if self.is_counted(record, far, peer, a)]
        kept = [keep(record, far, peer, agent_id, since) for peer, agent_id in counted]
        record.handled[inode] = [one for one in kept if one is not None]

    def _ends(self, far: Far, owner: dict[int, str]) -> list[tuple[Process | None, str]]:
        """(process, agent of this instance that it is of) at the other end."""
        found = list[tuple[Process | None, str]]()
        for inode in far.inodes:
            if inode in owner:
                found.append((_holder(self.records[owner[inode]].pids, inode), owner[inode]))
            found += [(one, "") for one in self._cache.get(inode, ())]
        return found

    def is_counted(self, record: Record, far: Far, peer: Process | None, agent_id: str) -> bool:
        """Whether a connection is one that the receipt names."""
        if agent_id:
            return agent_id != record.agent_id
        if peer is not None and self._is_own(peer):
            return False
        program, ticks = (peer.program, peer.start_ticks) if peer is not None else ("", 0)
        uid = peer.uid if peer is not None else far.uid
        return not why_uncounted(OtherEnd(far.address, far.port, uid, program, ticks), record.agent_end)


def _holder(pids: Iterable[int], inode: int) -> Process | None:
    for pid in pids:
        with contextlib.suppress(OSError):
            if inode in sockets_of(pid)[0]:
                return find_process(pid)
    return None


def _why_reaches_folder(record: Record, seen: Snapshot) -> str:
    """A sandbox that shows none of this host's sockets still shows those that lie in its working folder."""
    folders = tuple(f"{folder}/" for folder in record.folders if folder != "/")
    names = seen.listening_at(folders) if folders else []
    return "a program outside listens in its working folder" if any(one not in record.sockets for one in names) else ""


def _add_by_cgroup(seen: Snapshot, records: Iterable[Record]) -> None:
    """Count sockets that were made in an agent's cgroup as its own, whichever process holds them now."""
    by_cgroup = {cgroup: record for record in records for cgroup in record.cgroups}
    for inode, (_, tcp) in seen.tcp.items():
        record = by_cgroup.get(tcp.cgroup)
        if record is not None and inode not in record.sockets:
            record.sockets |= {inode}


def is_wrapping(pid: int, ticks: int, entry: Entry) -> bool:
    """Whether a process that hides its files is our own part of an agent's sandbox: around its PID namespace, or the first process in it.

    bubblewrap hides itself from its own account (it is not dumpable), and holds no connection. Agents cannot leave their namespace.
    """
    if not entry.pid_namespace or entry.kind == "container" or os.access(f"/proc/{pid}/fd", os.R_OK):
        return False
    return (pid, ticks) == (entry.pid, entry.start_ticks) or processes.namespace_depth(pid) == processes.namespace_depth("self")


def _add_beside(seen: Snapshot, records: Iterable[Record]) -> None:
    """Reads the other namespaces of this host for each connection of which nothing here is the other end: once, or until all were read."""
    sought = [r for r in records if r.reach and r.misses < TRIES]
    if any(seen.away(inode) for r in sought for inode in r.sockets - r.handled.keys() - r.sought):
        raws, seen.is_cut = read_beside(seen.of_namespace.keys(), time.monotonic() + FIND_S)
        for raw in raws:
            seen.add(raw)
        for record in sought:
            record.misses = record.misses + 1 if seen.is_cut else 0


def _passed_on(record: Record, inode: int, seen: Snapshot) -> list[Far]:
    """A connection to an address of this host that nothing here answers at. One to another machine is kept aside."""
    away = seen.away(inode)
    if away is None:
        return []
    if away.state == ESTABLISHED and is_here(away.remote):
        record.sought.add(inode)
        return [Far("tcp", address_words(away.local), address_words(away.remote), (), -1)]
    if inode not in record.sought and (seen.is_cut or record.misses >= TRIES):
        record.unread |= {inode} if len(record.unread) < MOST_KEPT else set()
        return []
    record.sought.add(inode)
    record.unread.discard(inode)
    if len(record.away) < MOST_AWAY:
        record.away.setdefault(address_words(away.remote))
    return []


def examine(pid: int, namespace: int) -> Examined:
    """Reads what is needed of one process. ``namespace``: the agent's own PID namespace, or 0."""
    is_inside, folder, network = not namespace or processes.pid_namespace(pid) == namespace, "", 0
    try:
        network = Path(f"/proc/{pid}/ns/net").stat().st_ino
        folder = str(Path(f"/proc/{pid}/cwd").readlink())
    except FileNotFoundError:
        is_inside = False  # it has ended: nothing is in it that could be told
    except OSError:
        pass
    words = processes.command_line(pid, 4096) if is_inside else ""
    name, uids = processes.short_name(pid), frozenset(processes.uids(pid))
    return Examined(is_inside, name, uids, why_reaches(pid) if is_inside else "", words, folder, network)


def why_reaches(pid: int) -> str:
    """How a process could connect to other programs of this host; empty when its sandbox allows no such connection."""
    try:
        if Path(f"/proc/{pid}/ns/net").stat().st_ino == Path("/proc/self/ns/net").stat().st_ino:
            return "it shares this host's network"
        there, here = Path(f"/proc/{pid}/root/").stat(), Path("/proc/self/root/").stat()
        if (there.st_dev, there.st_ino) == (here.st_dev, here.st_ino):
            return "it sees this host's files, and the sockets among them"
        lines = Path(f"/proc/{pid}/net/dev").read_text().splitlines()[2:]
    except FileNotFoundError:
        return ""
    except OSError as error:
        return f"what its sandbox allows cannot be seen ({error.strerror})"
    return "its network reaches this host" if any(line.split(":")[0].strip() not in ("lo", "") for line in lines) else ""
