"""The guard: what it holds, how it takes over from a dead one, the kill, and its orderly end.

``press`` is called on the loop's thread and touches no disk, no engine and no other process's answer before SIGKILL is out.

At an orderly end it removes its own cgroups that are empty and that it made or took over. Groups with processes and foreign groups stay.
The record stays unchanged: to the next guard a removed leaf is an empty one."""

from __future__ import annotations

import contextlib
import os
import queue
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from console.domain.errors import Unavailable
from console.domain.guard import HEARTBEAT_S, LOST, RETURN_WATCH_S
from console.domain.process.precedence import Precedence
from console.domain.roles.rights import AGENTS_UID
from console.killswitch.kernel import processes
from console.killswitch.kernel.cgroups import Tree, find_mounts, make_tree, remove
from console.killswitch.kernel.engine import Engine, Follower, Running
from console.killswitch.kernel.faults import FAULTS, note_fault
from console.killswitch.kernel.peers import AgentPlaces, is_among
from console.killswitch.kill.connections import Connections
from console.killswitch.kill.observed import SEEN_FILE, UNHELD_FILE, SeenAgents, Unheld
from console.killswitch.kill.orders import sweep_claims, unfinished
from console.killswitch.kill.receipt import Afterwards, new_kill_id, read_receipt, write_receipt
from console.killswitch.kill.records import Looks
from console.killswitch.kill.request import carry_out
from console.killswitch.kill.respawners import Respawners
from console.killswitch.kill.scan import agents_of
from console.killswitch.kill.session import KillSession
from console.killswitch.kill.snapshot import Process
from console.killswitch.kill.targets import Aim, Order, kill_listed, strike_descendants, strike_leaderless
from console.killswitch.store.atomic_file import Damaged, Reserve, sweep_drafts
from console.killswitch.store.causes import Causes
from console.killswitch.store.journal import Journal
from console.killswitch.store.latch import Latch
from console.killswitch.store.registry import Entry, Registry

KILLS_KEPT = 50
MOST_OWED = 500


@dataclass(frozen=True, slots=True)
class Config:
    """What the guard is started with."""

    state_dir: Path
    run_dir: Path
    instance_id: str
    engine_socket: Path | None = None
    heartbeat_s: float = HEARTBEAT_S
    lease: bool = False
    """The remote channel is configured: without a valid lease nothing runs."""
    supervisor_uid: int | None = None
    orphan_s: float = 900.0
    """Without supervisor, agent and latch for this many seconds the guard ends."""
    return_watch_s: float = RETURN_WATCH_S
    realtime: bool = False
    """Whether its kills are in the real-time class: only in a process that is nothing but the guard."""
    passphrase_file: Path | None = None
    """Where the operator's passphrase lies, or would: never beside the latch."""
    agents_uid: int = AGENTS_UID

    @property
    def guard_dir(self) -> Path:
        return self.state_dir / "guard"


class Clerk(threading.Thread):
    """The one thread that waits for disks and engines, in order, so that the loop never does."""

    def __init__(self) -> None:
        super().__init__(name="clerk", daemon=True)
        self._jobs: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._alone = set[Callable[[], None]]()

    def do(self, job: Callable[[], None]) -> None:
        self._jobs.put(job)

    def do_alone(self, job: Callable[[], None]) -> None:
        """The same, unless this job waits or is under way: what comes each second piles up behind no disk and no helper."""
        if job not in self._alone:
            self._alone.add(job)
            self.do(partial(self._finish, job))

    def _finish(self, job: Callable[[], None]) -> None:
        try:
            job()
        finally:
            self._alone.discard(job)

    def drain(self, timeout_s: float) -> bool:
        """Waits until everything asked for so far is done. False when the disk takes longer than that."""
        done = threading.Event()
        self.do(done.set)
        return done.wait(timeout_s)

    def run(self) -> None:
        while True:
            job = self._jobs.get()
            try:
                job()
            except FAULTS as fault:  # the thread must outlive any one job
                note_fault("clerk", fault)


class Guard:
    """All that one instance's guard holds. Everything in memory is changed under ``lock``; nothing slow is done under it."""

    def __init__(self, config: Config) -> None:
        config.guard_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.config = config
        self.folder = config.guard_dir
        """Where it records: another one while the state directory is gone (relocation.py)."""
        self.lock = threading.RLock()
        self.precedence = Precedence() if config.realtime else None
        self.reserve = Reserve(config.guard_dir / "reserve")
        self.latch = Latch(config.guard_dir, self.reserve, config.run_dir)
        self.registry = Registry(config.guard_dir)
        self.causes = Causes(config.guard_dir / "causes.json")
        self.clerk = Clerk()
        self.mounts = find_mounts()
        self.tree: Tree | None = None
        self.tree_why = ""
        self.engine = Engine(config.engine_socket, config.instance_id) if config.engine_socket else None
        self.follower = Follower(self.engine, self.container_started) if self.engine else None
        self.kills: dict[str, KillSession] = {}
        self.notices: dict[str, str] = {}
        self.afterwards = Afterwards(self._amended)
        self.instance_id, self.run_dir, self.refusal, self.owns_registry = config.instance_id, config.run_dir, "Launches are refused.", True
        self.seen = SeenAgents(config.instance_id, config.guard_dir / SEEN_FILE)
        self.unheld = Unheld(config.guard_dir / UNHELD_FILE)
        self.looks = Looks(config.run_dir)
        self.connections = Connections(
            lambda: [*self.seen.followed(), *self.registry.held.values()],
            lambda one: is_own_part(self, one),
            self.looks,
        )
        self.supervisor_pid = 0
        self.connected: Callable[[], frozenset[int]] = frozenset
        """Processes that have a line to the guard open (consoles, panic buttons); the doors say."""
        self.respawners = Respawners(
            config.instance_id,
            config.guard_dir,
            config.return_watch_s,
            lambda kind, **line: self.journal.append(kind, **line),
            self._amended,
            self.kills,
            lambda: processes.own_line(self.supervisor_pid, *self.connected()),
            lambda: agents_of(self.registry, self.supervisor_pid),
        )
        self.owed: list[tuple[str, Callable[[], object]]] = []
        """What the disk refused so far: tried again every second."""

    def take_over(self) -> None:
        """Reads all that a former guard left, opens it, and finishes what it had begun."""
        for folder in (self.config.guard_dir, self.config.guard_dir / "receipts", self.config.state_dir):
            sweep_drafts(folder)
        entries = self.registry.recover()
        self.journal = Journal(self.config.guard_dir, self.reserve)
        self.latch.load(max(self.registry.generation, self.journal.generation))
        try:
            self.tree = make_tree(self.config.instance_id, self.mounts, self.registry.root)
            self.registry.root = str(self.tree.root)
        except Unavailable as error:
            self.tree_why = str(error)
        self.registry.restore(entries, self.tree)
        if self.config.engine_socket or not self.registry.incomplete:  # else what is left of the record says where to ask
            self.registry.engine_socket = str(self.config.engine_socket or "")
        if self.registry.incomplete:
            self.notices["registry"] = f"{self.registry.incomplete} It reads as killed."
            if not self.latch.state.latched:
                self.latch.press("registry-unreadable", self.notices["registry"])
        self._read_causes()
        self.unheld.load()
        self.seen.load()
        self.connections.records.update(self.looks.of(held.entry for held in self.registry.held.values()))
        self.reserve.make()
        self.record("state", self.latch.save, self.registry.save, self.causes.save)
        if self.latch.state.why:  # the save takes in a press that was made meanwhile
            self.notices["latch"] = self.latch.state.why
        sweep_claims(self.config.run_dir)
        self.respawners.take_over()
        self.clerk.start()

    def _read_causes(self) -> None:
        try:
            self.causes.load()
        except (Damaged, OSError) as error:
            self.notices["causes"] = f"The causes of freeze could not be read ({error}): every agent stays frozen until it is thawed."
            # A soft stop may have been among them: it holds until the supervisor, which knows, lifts it.
            self.causes.soft_stop = LOST
            for agent_id in self.registry.held:
                self.causes.add(agent_id, "operator")

    def finish_kills(self) -> None:
        """A kill that a former guard began is carried to its end."""
        state = self.latch.state
        if state.latched:
            last = state.kills[-1] if state.kills else ""
            done = read_receipt(self.folder, last) if last and "unreadable" not in last else None
            alive = any(h.is_populated() for h in self.registry.held.values()) or (
                self.tree is not None and self.tree.agents.is_populated()
            )
            is_open = last and "unreadable" not in last and (done is None or not done.complete)
            if alive or is_open:
                self.press("all", "Finished after a restart of the guard", "guard", kill_id=last if is_open else "")
            return
        for kill in unfinished(self.registry.held.values(), self.folder):
            self.press(kill.agent_ids, kill.reason, kill.by, kill.remote_order, kill.kill_id)

    def press(
        self, scope: str | list[str], reason: str, by: str, order: str = "", kill_id: str = "", peer: int = 0, heard_at: float = 0.0
    ) -> KillSession:
        """Kills: everything and latches ("all"), or the agents named. Never raises; returns after the first SIGKILL wave.

        ``heard_at``: CLOCK_MONOTONIC when it was asked for, where that was measured.
        """
        with self.lock:
            is_all = scope in ("all", ["all"])  # no agent is called so (launches.py)
            ids = list(self.registry.held) if is_all else list(dict.fromkeys(scope))
            asked = Order(kill_id or new_kill_id(), "all" if is_all else ",".join(ids), reason[:500], by[:100], order[:200])
            kill = carry_out(self, asked, ids, (os.getpid(), self.supervisor_pid, peer), heard_at)
            self.kills[asked.kill_id] = kill
            over = [i for i, old in self.kills.items() if old.finished.is_set()][: max(0, len(self.kills) - KILLS_KEPT)]
            for old_id in over:  # one under way is never forgotten
                del self.kills[old_id]
        return kill

    def press_latch(self, order: Order) -> None:
        if order.is_all and order.kill_id not in self.latch.state.kills:
            self.registry.generation = self.latch.press(order.kill_id, order.reason).generation

    def save_latch(self, order: Order) -> None:
        self.latch.save()

    def add_more(self, kill: KillSession) -> None:
        """Nothing: the registry knows all agents, and the supervisor tells of every change."""

    def write_receipt(self, kill: KillSession) -> None:
        self.record("receipt", lambda: write_receipt(self.folder, kill.receipt()))

    def is_finished(self, kill: KillSession) -> None:
        self.afterwards.follow(kill)
        self.record("return watch", *self.respawners.follow(kill))

    def _amended(self, kill: KillSession, words: list[str]) -> None:
        """A receipt that was given changed; the supervisor folds the file and the journal's line."""
        self.write_receipt(kill)
        line = {"kill_id": kill.order.kill_id, "verified_zero": kill.receipt().verified_zero, "reason": "; ".join(words)[:1000]}
        self.record_line("receipt_amended", **line)

    def record_line(self, kind: str, **line: object) -> None:
        """A line of the journal that stops nothing."""
        self.record("journal", lambda: self.journal.append(kind, **line))

    def record(self, what: str, *writes: Callable[[], object]) -> list[str]:
        """Durable writes that stop nothing when they fail: the words of what failed, kept as a notice, and tried again."""
        problems = []
        for write in writes:
            try:
                write()
            except OSError as error:
                problems.append(f"{what} not written: {error.strerror or error}")
                with self.lock:  # the clerk takes the whole list away to try it again: nothing is put into one that is gone through
                    if (what, write) not in self.owed and len(self.owed) < MOST_OWED:
                        self.owed.append((what, write))
        if problems:
            self.notices[f"disk-{what}"] = problems[0]
        elif all(owed != what for owed, _ in self.owed):
            self.notices.pop(f"disk-{what}", None)
        return problems

    def write_what_is_owed(self) -> None:
        """The disk may have room again."""
        with self.lock:
            owed, self.owed = self.owed, []
        for what, write in owed:
            self.record(what, write)

    def container_started(self, container: Running) -> None:
        """Handle a container of ours that the engine started. While killed it is killed again, and the receipt tells that."""
        held = self.registry.held.get(container.agent_id)
        killed, engine = held.entry.killed if held is not None else "", self.engine
        if engine is None or not (self.latch.state.latched or killed):
            return
        back = kill_listed(engine, container, self.tree.mount if self.tree else None)
        if back is None:
            return
        self.notices["came-back"] = f"Container {container.container_id[:12]} started after the kill and was killed again."
        standing = (*self.latch.state.kills, killed)
        kills = [k for k in list(self.kills.values()) if k.order.kill_id in standing]
        if kills:
            self.afterwards.came_back(kills[-1], back)
        else:  # the guard was restarted since: a kill of its own, with a receipt
            self.press("all" if self.latch.state.latched else [container.agent_id], "A container started after the kill", "guard")

    def strike_the_risen(self) -> None:
        """Whatever shows up among the killed is struck again. Cheap enough for every quarter of a second."""
        under_way = [kill for kill in list(self.kills.values()) if not kill.finished.is_set()]
        if any(kill.order.is_all for kill in under_way):
            return  # it strikes every 50 ms itself
        aimed, risen = {aim.agent_id for kill in under_way for aim in kill.aims}, list[Aim]()
        with self.lock:
            latched, tree = self.latch.state.latched, self.tree
            if latched and tree is not None and tree.agents.is_populated():
                tree.agents.kill()
            for held in self.registry.held.values():
                if held.entry.agent_id not in aimed and (latched or held.entry.killed) and held.is_populated():
                    mount, below = (tree.mount, tree.agents.path) if tree else (None, None)
                    risen.append(Aim(held.entry.agent_id, held))
                    risen[-1].strike(mount, below)
                    strike_leaderless(held, mount, below, self._spared)
                    self.notices["risen"] = f"Agent {held.entry.agent_id} had processes after its kill; they are killed until none is left."
            strike_descendants(risen, self._spared)  # under the lock: nobody is retired, and closed, meanwhile

    def _spared(self) -> frozenset[int]:
        return processes.own_line(self.supervisor_pid)

    def agent_places(self) -> AgentPlaces:
        """Where a peer must not come from."""
        with self.lock:
            entries = [h.entry for h in self.registry.held.values()]
        folders = {f for entry in entries for f in (entry.leaf, entry.container_leaf) if f}
        if self.tree is not None:
            folders.add(str(self.tree.agents.path))
        return AgentPlaces(self.mounts.v2, frozenset(folders), frozenset(e.pid_namespace for e in entries if e.pid_namespace))

    def is_killing(self) -> bool:
        return any(not kill.finished.is_set() for kill in list(self.kills.values()))

    def known(self, scope: str | Iterable[str]) -> list[str]:
        """Agent ids of a scope that are registered."""
        with self.lock:
            return list(self.registry.held) if scope == "all" else [i for i in scope if i in self.registry.held]

    def caps(self) -> dict[str, str]:
        """How it kills here, for the status."""
        return {"cgroup": f"v2 {self.tree.root}" if self.tree else "", "why": self.tree_why}


def is_own_part(guard: Guard, one: Process) -> bool:
    """Whether a process is a part of this instance's Watchfloor: by cgroup, or, where there is none, by descent from the supervisor."""
    supervisor, tree = guard.supervisor_pid, guard.tree
    if one.pid in (os.getpid(), supervisor):
        return True
    if tree is None:
        line = processes.ancestors(one.pid)
        is_below = supervisor > 1 and supervisor in line
        return is_below and not any(pid in line for record in list(guard.connections.records.values()) for pid in record.pids)
    where = tree.mount.locate(processes.cgroup_line(one.pid) or "")
    return is_among(where, (tree.root / "control", tree.relays.path))


def monotonic() -> float:
    """CLOCK_MONOTONIC: a suspend does not count."""
    return time.monotonic()


BUSY_S = 1.0
"""A group that holds a process which is dead and not collected yet (v1) is tried again for so long."""
APART_S = 0.05


def is_over(guard: Guard) -> bool:
    """Return whether no kill is under way and no process of ours lives."""
    alive = any(held.is_populated() for held in list(guard.registry.held.values()))
    return not (alive or guard.is_killing() or (guard.tree is not None and guard.tree.agents.is_populated()))


def take_away(guard: Guard) -> None:
    """After ``is_over``, as the last thing a guard does. Never raises."""
    tree = guard.tree
    if tree is None:
        return
    registry, latched = guard.registry, guard.latch.state.latched
    # A launch that has its ticket and did not enter yet goes on with the next guard, unless nothing may start.
    entries = [h.entry for h in (*registry.held.values(), *registry.retired) if h.entry.confirmed or latched]
    leaves = _leaves(tree, entries)
    agents = tree.agents.path
    # The agents' folder goes before the others: as long as it is there, a press without a guard finds the tree whole.
    others = sorted((one for one in tree.made if one != agents), key=lambda folder: -len(folder.parts))
    tree.close()
    with contextlib.suppress(OSError):
        (tree.root.parent / "cgroup.procs").write_text("0")
    if _gone(leaves) and _gone([(agents, tree.made[agents], False)]):
        _gone([(folder, tree.made[folder], folder.name == "relays") for folder in others])  # what a dead supervisor left in there, too


def _leaves(tree: Tree, entries: Iterable[Entry]) -> list[tuple[Path, int, bool]]:
    """(folder, inode, whether what is below it is its own too) of these agents, in every hierarchy, as far as they lie in our folders."""
    found: list[tuple[Path, int, bool]] = []
    for entry in entries:
        if entry.leaf and Path(entry.leaf).parent in tree.made:
            found.append((Path(entry.leaf), entry.inode, True))
        for folder in map(Path, entry.limit_leaves):
            with contextlib.suppress(OSError):
                found += [(folder, folder.lstat().st_ino, True)] if folder.parent in tree.made else []
    return found


def _gone(folders: list[tuple[Path, int, bool]]) -> bool:
    """Removes them; whether all are gone, ``BUSY_S`` at most from now."""
    deadline = time.monotonic() + BUSY_S
    while (folders := [one for one in folders if not _remove(*one)]) and time.monotonic() < deadline:
        time.sleep(APART_S)
    return not folders


def _remove(folder: Path, inode: int, whole: bool) -> bool:
    """Return whether the folder is gone, is not ours any more, or stays because another process put something into it."""
    try:
        if folder.lstat().st_ino != inode:
            return True
        if whole:
            return remove(folder)
        folder.rmdir()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True
