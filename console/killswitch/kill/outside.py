"""What one kill may leave with programs outside: connections of its targets, and suspects. Found while the second look is awaited."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace

from console.domain.kill import Connection, Receipt, Suspect
from console.domain.words import counted
from console.killswitch.kernel import processes
from console.killswitch.kernel.cgroups import find_mounts
from console.killswitch.kernel.faults import FAULTS, note_fault
from console.killswitch.kernel.socket_lists import Taken
from console.killswitch.kill.connections import LONGEST_S, Connections
from console.killswitch.kill.records import STALLED_S, Kept, Record, keep
from console.killswitch.kill.snapshot import Far, Holders, Process, Snapshot, find_process, holders, snapshot
from console.killswitch.kill.suspects import find

WAIT_S = 2.0
FIND_S = 1.0
"""How long the processes at the other ends are searched for."""


@dataclass(frozen=True, slots=True)
class Found:
    """What a receipt says of the connections of a kill's targets."""

    connections: tuple[Connection, ...]
    state: str
    """``recorded`` or ``not recorded``."""
    detail: str
    uncovered: tuple[str, ...]
    accounts: dict[str, list[int]] = field(default_factory=dict)
    """The accounts that each target ran under: no suspect of another one is ever killed."""
    kept: tuple[tuple[Record, Kept], ...] = ()
    """The same with what finding their work needs."""


PENDING = Found((), "pending", "The programs at the other ends are being looked for.", ())
FAILED = Found((), "not recorded", "Looking for the programs at the other ends failed; see guard.log.", ())
TOO_LATE = Found((), "not recorded", "The programs at the other ends were not found in time.", ())


@dataclass(slots=True)
class Outside:
    """Of one kill. ``begin`` with the first SIGKILL, ``settle`` once the targets are dead; neither raises, and nothing waits for them."""

    connections: Connections
    found: Found = PENDING
    suspects: tuple[Suspect, ...] = ()
    taken: Taken | None = field(default=None, init=False)
    _seeker: threading.Thread | None = field(default=None, init=False)

    def begin(self) -> None:
        """Asks for the dump; returns at once, while the caller writes the first SIGKILL. One is enough for a kill."""
        self.taken = self.taken or self.connections.dump.ask()

    def settle(self, targets: Collection[str], spared: Callable[[], Collection[int]]) -> None:
        """Finds the programs at the other ends and what they started since."""
        try:
            found = settle(self.connections, self.taken, targets)
            self.suspects = find(found.kept, spared())
            self.found = found
        except FAULTS as fault:
            note_fault("connections of a kill", fault)
            self.found = FAILED

    def seek(self, targets: Collection[str], spared: Callable[[], Collection[int]]) -> None:
        """``settle`` in a thread of its own: the answer at zero and the second look wait for no walk over all processes."""
        self.begin()  # of a kill that found nothing alive
        self._seeker = threading.Thread(target=lambda: self._seek(targets, spared), name="outside", daemon=True)
        try:
            self._seeker.start()
        except RuntimeError:  # no thread to be had
            self._seeker = None
            self.settle(targets, spared)

    def _seek(self, targets: Collection[str], spared: Callable[[], Collection[int]]) -> None:
        """On a busy machine the thread of the dump may come later than this one; what it reads then still says how late it was."""
        if self.taken is not None:
            self.taken.done.wait(FIND_S)
        self.settle(targets, spared)

    def close(self) -> None:
        """The receipt is written now: what is not found 2 s after the second look is not recorded."""
        if self._seeker is not None:
            self._seeker.join(WAIT_S)
        if self.found is PENDING:
            self.found = TOO_LATE

    def into(self, receipt: Receipt) -> Receipt:
        """The receipt with what was found."""
        found = self.found
        return replace(
            receipt,
            targets=tuple(
                replace(t, evidence=t.evidence | {"accounts": found.accounts[t.agent_id]}) if t.agent_id in found.accounts else t
                for t in receipt.targets
            ),
            connections=found.connections,
            connections_state=found.state,
            connections_detail=found.detail,
            uncovered=found.uncovered,
            suspects=(*receipt.suspects, *self.suspects),
        )


def settle(connections: Connections, taken: Taken | None, targets: Collection[str], also_dead: Collection[tuple[int, int]] = ()) -> Found:
    """What the receipt says, once the targets are dead: asks every process that lives what it holds. Takes a second at most.

    ``also_dead``: pid and start time of processes that the kill ended beside its targets.
    """
    records = {agent_id: record for agent_id in targets if (record := connections.records.get(agent_id)) is not None}
    seen = snapshot(taken.raws) if taken is not None and taken.done.is_set() else Snapshot()
    pairs, is_cut = _last_pairs(connections, seen, records)
    for record, far, peer in pairs:
        if connections.is_counted(record, far, peer, ""):
            keep(record, far, peer, "", record.looked_at_ticks)
    kept = [(r, k) for r in records.values() for k in list(r.kept.values()) if not _is_dead(k, targets, also_dead)]
    why = _why_not(connections, taken, targets, records)
    if is_cut:
        why.append("not every process could be asked what it is connected to")
    named = {record.agent_id for record, _ in kept}
    uncovered = tuple(sorted(a for a in targets if a not in named and (a not in records or records[a].may_reach)))
    rows = tuple(_connection(record, one) for record, one in kept)
    accounts = {agent_id: sorted(record.uids) for agent_id, record in records.items() if record.uids}
    return Found(rows, "not recorded" if why else "recorded", _detail(why, records), uncovered, accounts, tuple(kept))


def _last_pairs(
    connections: Connections, seen: Snapshot, records: dict[str, Record]
) -> tuple[list[tuple[Record, Far, Process | None]], bool]:
    """(connections in the dump that were a target's and whose other end lives, whether the time was over before all were found).

    A target's is a socket that a look or its cgroup says was one, or that no process holds any more: only once every process was asked.
    """
    known = {inode: record for record in records.values() for inode in record.sockets | record.before}
    by_cgroup = {cgroup: record for record in records.values() for cgroup in record.cgroups}
    ends = {inode: far for inode in (*seen.unix, *seen.tcp) if (far := seen.far(inode)) is not None}
    wanted = set(ends) | {inode for far in ends.values() for inode in (*far.inodes, *far.listeners)}
    skip = {pid for record in records.values() for pid in record.pids}
    elsewhere = connections.elsewhere.union(*(r.sockets for agent_id, r in connections.records.items() if agent_id not in records))
    if not any(processes.is_the_same(*one) and processes.is_alive(one[0]) for r in records.values() for one in r.pids.items()):
        # A process closes its sockets before it counts as dead, so what is open now was no target's.
        now = snapshot(connections.dump.look()[0])
        elsewhere = elsewhere.union(now.unix, now.tcp)
    held = holders(wanted, skip, time.monotonic() + FIND_S) if ends and records else Holders()
    live = _live_groups() if seen.tcp and by_cgroup else frozenset[int]()
    found = list[tuple[Record, Far, Process | None]]()
    for inode, far in ends.items():
        tcp = seen.tcp.get(inode)
        record = known.get(inode) or (by_cgroup.get(tcp[1].cgroup) if tcp else None)
        if record is None and not held.is_cut and inode not in held.pids and inode not in elsewhere:
            record = _guess(seen, inode, records, held.hidden, live)
        if record is None:
            continue
        if inode in record.handled or known.keys() & set(far.inodes):
            continue  # a look has seen it; or it is between targets
        peers = held.of(far.inodes) or held.of(far.listeners)
        found += [(record, far, peer) for pid in peers if (peer := find_process(pid)) is not None]
        if not peers and far.uid in held.hidden and inode in known:
            found.append((record, far, None))
    return found, held.is_cut


def _why_not(connections: Connections, taken: Taken | None, targets: Collection[str], records: dict[str, Record]) -> list[str]:
    """Why connections may be missing; empty when all are known that a look or the dump could see."""
    why = []
    if any(a not in records or records[a].may_reach for a in targets):
        if taken is None or not taken.done.is_set():
            why.append("the list of sockets was not read at the kill")
        elif taken.trouble:
            why.append(f"the list of sockets was not read whole at the kill: {taken.trouble}")
        if connections.problem:
            why.append(connections.problem)
        blind_s = min(taken.deadline, time.monotonic()) - connections.looked_at if taken is not None else 0.0
        if blind_s > STALLED_S:
            why.append(f"agents were not looked at for {blind_s:.0f} s before the kill")
    unseen = [a for a in targets if a not in records or not records[a].was_seen]
    if unseen:
        why.append(f"{'agents' if len(unseen) > 1 else 'agent'} {_some(unseen)} had not been looked at")
    for record in records.values():
        if record.why_unknown and record.reach:
            why.append(f"agent {record.agent_id}: {record.why_unknown}")
        if record.why_late and record.reach:
            why.append(f"agent {record.agent_id} {record.why_late}")
    return why


def _is_dead(kept: Kept, targets: Collection[str], also_dead: Collection[tuple[int, int]]) -> bool:
    """Whether the other end was ended by the same kill."""
    peer = kept.peer
    return (bool(kept.peer_agent) and kept.peer_agent in targets) or (peer is not None and (peer.pid, peer.start_ticks) in also_dead)


def _live_groups() -> frozenset[int]:
    """Ids of the cgroups in which processes run now: no agent that had a dead one of its own made its sockets there."""
    mount, found = find_mounts().v2, set[int]()
    for line in {processes.cgroup_line(pid) for pid in processes.every_pid()}:
        folder = mount.locate(line) if mount is not None and line is not None else None
        with contextlib.suppress(OSError):
            found |= {folder.stat().st_ino} if folder is not None else set()
    return frozenset(found)


def _guess(seen: Snapshot, inode: int, records: dict[str, Record], hidden: Collection[int], live: Collection[int]) -> Record | None:
    """The target that a socket was of which no process holds after the kill: it was opened after the last look. None when a process that
    hides its files may hold it, or when neither namespace nor account nor cgroup fits a target. ``live``: ``_live_groups``."""
    namespace = next((n for n, inside in seen.of_namespace.items() if inode in inside), 0)
    unix, tcp = seen.unix.get(inode), seen.tcp.get(inode)
    uid = unix.uid if unix is not None else tcp[1].uid if tcp is not None else -1
    is_live = tcp is not None and tcp[1].cgroup in live
    fitting = [r for r in records.values() if namespace in r.namespaces and uid in r.uids and r.reach and not (is_live and r.cgroups)]
    return fitting[0] if fitting and uid not in hidden else None


def _connection(record: Record, kept: Kept) -> Connection:
    peer = kept.peer
    words = [counted(kept.n, "connection")] if kept.n > 1 else []
    if kept.peer_agent:
        words.append(f"it is agent {kept.peer_agent}, which was not a target")
    if peer is None:
        words.append("no process was found that holds the other end")
    elif not peer.is_alive():
        words.append("it has ended")
    age = time.monotonic() - kept.seen_at
    if age > 2 * LONGEST_S:
        words.append(f"last seen {age:.0f} s before the receipt")
    return Connection(
        record.agent_id,
        kept.kind,
        kept.local[:200],
        kept.remote[:200],
        peer.pid if peer is not None else 0,
        peer.start_ticks if peer is not None else 0,
        peer.name if peer is not None else "",
        kept.uid,
        "; ".join(words),
    )


def _detail(why: list[str], records: dict[str, Record]) -> str:
    words = ["; ".join(why[:5])] if why else []
    if more := sum(record.n_more for record in records.values()):
        words.append(f"{counted(more, 'more connection')} not listed")
    away = list(dict.fromkeys(a for record in records.values() for a in record.away))
    if away:
        words.append(f"connections to other machines, which this host cannot follow: {_some(away)}")
    text = ". ".join(words)
    return text[:1].upper() + text[1:1000] + "." if text else ""


def _some(names: list[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
