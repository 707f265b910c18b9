"""The registry: every agent we were asked to be able to kill, on disk, and in memory with its files held open.

It also decides what it means that something recorded of an agent is gone: that it ended, or only that it cannot be seen. A removed
cgroup was empty, and a process that is gone has ended. But that holds only for a guard in the same place as the record. In another PID
namespace, or without the same cgroup mount, nothing of the agent is found, whether it runs or not. Only another boot ends everything
for certain."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from console.domain.ids import AGENT_ID
from console.killswitch.kernel import processes
from console.killswitch.kernel.cgroups import Leaf, Refused, Tree, remove
from console.killswitch.kernel.descendants import Closure, recent_look
from console.killswitch.kernel.processes import Handle
from console.killswitch.store.atomic_file import Damaged, Witness, read_sealed, seal, write_whole

NO_GROUP = "Its cgroup cannot be seen from here: whether anything of it runs is unknown."
NO_PROCESS = "It was recorded in another PID namespace: whether anything of it runs cannot be seen from here."
UNFOLLOWED = "Its first process had ended when the guard came back: what it may have started outside a cgroup was not followed."


@dataclass(frozen=True, slots=True)
class Place:
    """The place from which a guard looks. Empty and 0: unknown, or never recorded."""

    boot: str = ""
    pid_namespace: int = 0
    cgroup_namespace: int = 0


def here() -> Place:
    """Where this process looks from."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        boot = ""
    return Place(boot, _namespace("pid"), _namespace("cgroup"))


def _namespace(kind: str) -> int:
    try:
        return Path(f"/proc/self/ns/{kind}").stat().st_ino
    except OSError:
        return 0


def place_from(raw: object) -> Place:
    """As it was recorded; what is missing or odd is not known."""
    told = raw if isinstance(raw, dict) else {}
    boot, pid, cgroup = (told.get(name) for name in ("boot", "pid_namespace", "cgroup_namespace"))
    return Place(boot if isinstance(boot, str) else "", *(n if isinstance(n, int) else 0 for n in (pid, cgroup)))


def why_unknown(recorded: Place, *, folder: str, is_open: bool, pid: int, is_loose: bool, is_held: bool) -> str:
    """Why not finding an agent proves nothing; empty: it does.

    ``folder``: of the cgroup that holds it, if one does; ``is_open``: it was found. ``is_loose``: neither it nor a PID namespace holds all
    of it. ``is_held``: its first process (``pid``) was found.
    """
    now = here()
    if recorded.boot and now.boot and recorded.boot != now.boot:
        return ""
    known = recorded.pid_namespace and recorded.cgroup_namespace
    is_elsewhere = bool(known) and (recorded.pid_namespace, recorded.cgroup_namespace) != (now.pid_namespace, now.cgroup_namespace)
    if folder:
        if not is_open and (is_elsewhere or not is_mounted(Path(folder))):
            return NO_GROUP
    elif pid and is_elsewhere:
        return NO_PROCESS
    return UNFOLLOWED if pid and is_loose and not is_held else ""


def is_mounted(folder: Path) -> bool:
    """Whether the cgroup tree that a folder was in is there: its nearest ancestor that exists is a cgroup."""
    return next(((above / "cgroup.procs").exists() for above in folder.parents if above.is_dir()), False)


NO_RECORD = "the guard's record did not know it: what it may have outside its cgroup is unknown"

CONTRADICTED = (
    "Its record says that a cgroup or a PID namespace holds it, and its first process is not in there: what it started is unknown."
)


@dataclass(frozen=True, slots=True)
class Entry:
    """What is known of one agent across restarts of the guard."""

    agent_id: str
    kind: str
    """``process`` or ``container``."""
    control_level: str
    generation: int
    """Of the latch, when the ticket was given."""
    leaf: str = ""
    """Folder of its cgroup; empty where no cgroup can be used."""
    inode: int = 0
    limit_leaves: tuple[str, ...] = ()
    confirmed: bool = False
    pid: int = 0
    """Of its sandbox's init, as this host sees it."""
    start_ticks: int = 0
    pid_namespace: int = 0
    """Inode of its own PID namespace; 0 when it shares ours."""
    can_leave: bool = False
    """It may move itself out of its cgroup (as root, or as the owner of the leaf) and has no PID namespace: no proof holds it."""
    container_id: str = ""
    container_leaf: str = ""
    container_inode: int = 0
    killed: str = ""
    """Id of the kill it was part of: nothing of it may run again."""
    adopting: bool = False
    """It is being moved into its leaf: what is not there yet would not be proven by it."""
    loose: str = ""
    """Why its leaf may not hold all of it: it was adopted, and not all could be moved."""
    origin: tuple[str, ...] = ()
    """Of an adopted one, as it was before it was moved: account, session, program, working folder, cgroup (kill/suspects.py)."""

    @property
    def why_best_effort(self) -> str:
        """Why no kill of it can be proven; empty when the kernel can prove it."""
        leaves = "it may move itself out of its cgroup and has no PID namespace" if self.can_leave else ""
        if self.loose or leaves:
            return "; ".join(why for why in (self.loose, leaves) if why)
        if self.kind == "process" and (self.confirmed or self.pid) and not (self.leaf or self.container_leaf or self.pid_namespace):
            return "it has neither a cgroup nor a PID namespace: what it starts can only be looked for"
        return ""


@dataclass(slots=True)
class Held:
    """An agent in memory: its entry and what was opened in advance."""

    entry: Entry
    leaf: Leaf | None = None
    container: Leaf | None = None
    init: Handle | None = None
    before: list[dict[str, object]] = field(default_factory=list)
    """Its processes at the last look (at most 50)."""
    looked: bool = False
    """Whether there was such a look: without one nothing is known of what ran before a kill."""
    doubt: str = ""
    """Why an empty agent proves nothing: it was not followed, or cannot be seen from here (absence.py), or the registry was lost."""
    seen_over: bool = False
    """A kill saw, as far as that is possible, that the agent has no process left. So a later guard need not have followed it."""
    closure: Closure | None = None
    """Its descendants, followed since birth where nothing in the kernel holds them together."""
    unopened: str = ""
    """Why something recorded of it could not be opened (too few descriptors, say): until it is, it counts as alive."""

    def open(self) -> None:
        """Opens what is recorded and not open yet; what is gone for good stays None."""
        entry = self.entry
        try:
            self.leaf = self.leaf or _open_leaf(entry.leaf, entry.inode)
            self.container = self.container or _open_leaf(entry.container_leaf, entry.container_inode)
            self.init = self.init or _open_init(entry.pid, entry.start_ticks)
            self.unopened = ""
        except OSError as error:
            self.unopened = error.strerror or str(error)

    @property
    def is_found(self) -> bool:
        """Whether anything of it is there, or may be: cgroup, container, first process. An ended one bears out no PID namespace."""
        init = self.init is not None and (not self.entry.pid_namespace or self.init.is_alive())
        return bool(self.leaf or self.container or init or self.unopened)

    def unseen(self, recorded: Place) -> str:
        """Why what was not found of it, in a record made at ``recorded``, is not thereby gone; or empty."""
        entry, is_box = self.entry, self.entry.kind == "container"
        folder, leaf = (entry.container_leaf, self.container) if is_box else (entry.leaf, self.leaf)
        is_open = leaf is not None or bool(self.unopened)  # what could not be opened counts as alive until it is
        is_held = self.init is not None or bool(self.unopened) or self.seen_over
        return why_unknown(recorded, folder=folder, is_open=is_open, pid=entry.pid, is_loose=bool(entry.why_best_effort), is_held=is_held)

    def contradicted(self) -> str:
        """Why its record cannot be its own: its first process is not where the record says that all of it is. Empty: it is."""
        entry, init = self.entry, self.init
        if init is None or not init.is_alive():
            return ""
        # bubblewrap hides its namespace from its own account; how deep it lies can be read all the same.
        namespace, depth = processes.pid_namespace(init.pid), processes.namespace_depth
        is_inside = namespace == entry.pid_namespace if namespace is not None else depth(init.pid) > depth("self")
        is_elsewhere = entry.pid_namespace and not is_inside
        is_lost = (entry.leaf and self.leaf is None) or (entry.container_leaf and self.container is None)
        return CONTRADICTED if (is_elsewhere or (is_lost and not self.unopened)) and init.is_alive() else ""

    def follow(self) -> Closure | None:
        """The look-out for its descendants; None where cgroup or PID namespace make it needless."""
        if self.closure is None and self.init is not None and self.entry.why_best_effort:
            self.closure = Closure(self.init)
        return self.closure

    def is_populated(self) -> bool:
        """Whether anything of it may be alive."""
        if self.unopened:
            self.open()
        return (
            bool(self.unopened)
            or self.entry.adopting
            or (self.closure is not None and self.closure.has_known())
            or any(leaf is not None and leaf.is_populated() for leaf in (self.leaf, self.container))
            or (self.init is not None and self.init.is_alive())
        )

    def is_held_frozen(self) -> bool:
        """Whether a freezer of its own is on, as far as that can be read."""
        leaves = [leaf for leaf in (self.leaf, self.container) if leaf is not None and leaf.can_freeze]
        if not leaves and self.init is not None:
            return processes.state(self.init.pid) == "T"
        return any(leaf.is_held_frozen() for leaf in leaves)

    def pids(self, *, since: float | None = None) -> list[int]:
        """Its processes, as this host sees them, by a look that was over just now; with ``since`` (CLOCK_MONOTONIC) by one that began
        then or later."""
        found = [pid for leaf in (self.leaf, self.container) if leaf is not None for pid in leaf.pids()]
        if not found and self.entry.pid_namespace and self.init is not None and self.init.is_alive():
            with contextlib.suppress(OSError):  # too few descriptors to look: its init is known
                found = processes.members(self.entry.pid_namespace, since=since)
        if self.init is not None and self.init.is_alive():
            found.append(self.init.pid)
        if (closure := self.follow()) is not None:
            with contextlib.suppress(OSError):
                found += [pid for pid, _ in closure.look(recent_look(since))]
        return list(dict.fromkeys(found))

    def unlisted(self) -> str:
        """Why ``pids`` may not name all of them now (too few descriptors, say), or empty."""
        try:
            if self.entry.pid_namespace and self.init is not None and self.init.is_alive():
                processes.members(self.entry.pid_namespace)
            if (closure := self.follow()) is not None:
                closure.look(recent_look())
        except OSError as error:
            return error.strerror or str(error)
        return ""

    def look(self) -> None:
        """Takes down what runs now, as the evidence of a later kill."""
        known = {(p["pid"], p["start"]): p for p in self.before}
        self.before = [known.get((pid, processes.start_ticks(pid))) or processes.describe(pid) for pid in self.pids()[:50]]
        self.looked = True

    def close(self) -> None:
        for part in (self.leaf, self.container, self.init):
            if part is not None:
                part.close()


def _kept(path: Path) -> str:
    """Keep a file that cannot be read under another name, before a new one takes its place; return words that name it. Never raises."""
    try:
        found = path.lstat()
        aside = path.with_name(f"{path.stem}.unreadable-{int(found.st_mtime)}-{found.st_ino}{path.suffix}")
        with contextlib.suppress(FileExistsError):
            os.link(path, aside, follow_symlinks=False)
    except OSError:
        return ""
    return f", and is kept as {aside.name}"


class Registry:
    """All agents of the instance. Memory is changed under the guard's lock; ``save`` is not."""

    def __init__(self, folder: Path) -> None:
        self.move_to(folder)
        self.incomplete = ""
        """Why there may be agents that this registry does not know; empty when it knows them all. Lasts until an unlatch."""
        self.held: dict[str, Held] = {}
        self.root = ""
        """Of the cgroup tree."""
        self.engine_socket = ""
        self.generation = 0
        """Highest generation of the latch seen: the latch's memory when its own file is lost."""
        self.containers_ever = False
        self.uids: set[int] = set()
        """Accounts that agents were launched under, ended ones included."""
        self._recorded: tuple[Place, dict[str, str], frozenset[str]] = (Place(), {}, frozenset())
        """Of the record that was read: where it was made, doubts it held by agent, and who was seen to be over."""
        self.retired: list[Held] = []
        """Forgotten ones, whose files are closed once no kill is using them."""

    def move_to(self, folder: Path) -> None:
        """Keeps it in another folder from now on. ``save`` puts it there."""
        self.path = folder / "registry.json"
        self._witness = Witness(folder)

    def load(self) -> tuple[Entry, ...]:
        """What is on disk; Damaged or OSError when it cannot be read."""
        body = read_sealed(self.path)
        if body is None:
            return ()
        try:
            self.root, self.engine_socket = str(body["root"]), str(body["engine_socket"])
            self.generation, self.containers_ever = int(body["generation"]), bool(body["containers_ever"])
            self.incomplete = str(body.get("incomplete", ""))
            self.uids = {int(uid) for uid in body.get("uids", ())}
            doubts = {str(i): str(why) for i, why in dict(body.get("doubts") or {}).items()}
            self._recorded = place_from(body.get("place")), doubts, frozenset(map(str, body.get("over") or ()))
            return tuple(_entry_from(raw) for raw in body["agents"])
        except (KeyError, TypeError, ValueError) as error:
            raise Damaged("registry.json has the wrong shape") from error

    def recover(self) -> tuple[Entry, ...]:
        """Load as ``load`` does, but never raise: for a lost registry ``incomplete`` tells so and the witness is asked."""
        try:
            entries = self.load()
            lost = "is missing" if not self.path.exists() and self._witness.was_in_use() else ""
        except (Damaged, OSError) as error:
            entries, lost = (), f"could not be read ({error}){_kept(self.path)}"
        if lost:
            self.incomplete = f"The registry {lost}: unknown agents may be alive."
            self.engine_socket, self.containers_ever = self._witness.read()
        return entries

    def restore(self, entries: tuple[Entry, ...], tree: Tree | None) -> None:
        """Opens what is still there, and takes in leaves that the registry does not know."""
        for entry in entries:
            held = self.held[entry.agent_id] = Held(entry)
            held.open()
            place, doubts, over = self._recorded
            held.seen_over = entry.agent_id in over
            held.doubt = doubts.get(entry.agent_id) or held.unseen(place)
            if why := held.contradicted():
                held.doubt, held.entry = held.doubt or why, replace(entry, loose=entry.loose or NO_RECORD)  # looked for by descent too
        known = {entry.leaf for entry in entries}
        try:
            found = tree.leaves_on_disk() if tree is not None else []
        except OSError as error:
            self.incomplete, found = f"The agents' cgroup could not be listed ({error.strerror}).", []
        for agent_id, folder in found:
            if str(folder) not in known:
                self._take_in(agent_id, folder)

    def _take_in(self, agent_id: str, folder: Path) -> None:
        key, number = agent_id, 2
        while key in self.held:
            key, number = f"{agent_id[:58]}-{number}", number + 1
        try:
            inode = folder.stat().st_ino
        except OSError:
            return  # it was removed while we looked
        # It holds what the leaf holds; of what it may have had elsewhere a record says that does not know it.
        loose = "" if self.incomplete else NO_RECORD
        held = Held(Entry(key, "process", "managed", self.generation, str(folder), inode, confirmed=True, loose=loose))
        held.open()
        if not held.is_populated():
            if not self.incomplete:  # a launch that got no further than its leaf
                self.retired.append(held)
                return
            held.doubt = "Its leaf was found empty and the registry was lost: whether it ran elsewhere, in a container, is unknown."
        self.held[key] = held

    def save(self) -> None:
        """Memory to disk; OSError when it is not durable."""
        body = {
            "root": self.root,
            "engine_socket": self.engine_socket,
            "generation": self.generation,
            "containers_ever": self.containers_ever,
            "incomplete": self.incomplete,
            "uids": sorted(self.uids),
            "place": asdict(here()),
            "doubts": {agent_id: held.doubt for agent_id, held in list(self.held.items()) if held.doubt},
            "over": [agent_id for agent_id, held in list(self.held.items()) if held.seen_over],
            "agents": [asdict(held.entry) for held in list(self.held.values())],
        }
        write_whole(self.path, seal(body))
        self._witness.write(self.engine_socket, self.containers_ever)

    def mark_killed(self, agent_ids: list[str], kill_id: str) -> None:
        """Nothing of these runs again."""
        for agent_id in agent_ids:
            if (held := self.held.get(agent_id)) is not None:
                held.entry = replace(held.entry, killed=kill_id)

    def retire(self, agent_id: str) -> Held | None:
        """Takes an agent out; its files stay open until ``sweep``."""
        if (held := self.held.pop(agent_id, None)) is not None:
            self.retired.append(held)
        return held

    def other_uids(self) -> frozenset[int]:
        """Return the accounts that are neither ours nor root's. A process of one is an agent's, unless only its environment claims it."""
        return frozenset(self.uids - {0, os.geteuid()})

    def sweep(self, in_use: Callable[[Held], bool] = lambda held: False) -> None:
        """Closes and removes what was retired, but for what is ``in_use``. Only while no kill runs."""
        still = []
        for held in self.retired:
            if in_use(held):
                still.append(held)
                continue
            held.close()
            if not all(remove(Path(folder)) for folder in (held.entry.leaf, *held.entry.limit_leaves) if folder):
                still.append(held)  # an unreaped zombie keeps its v1 group busy: tried again later
        self.retired = still[-1000:]


def _open_leaf(path: str, inode: int) -> Leaf | None:
    """None when it is gone. OSError when it is there, as far as can be told, and cannot be opened."""
    if not path:
        return None
    try:
        return Leaf(Path(path), inode)
    except Refused:
        return None  # another one of the same name: not ours
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENODEV):
            return None
        raise


def _open_init(pid: int, ticks: int) -> Handle | None:
    """None when it has ended. OSError when that cannot be told."""
    try:
        return Handle(pid, ticks) if pid else None
    except OSError as error:
        if error.errno in (None, errno.ESRCH, errno.EINVAL, errno.ENOENT):  # ended; its number is another process's, or a thread's
            return None
        raise


def _entry_from(raw: dict[str, Any]) -> Entry:
    entry = Entry(**{f.name: raw[f.name] for f in fields(Entry) if f.name in raw})
    if not AGENT_ID.match(entry.agent_id) or entry.kind not in ("process", "container"):
        raise ValueError("agent id or kind")
    return replace(entry, limit_leaves=tuple(str(f) for f in entry.limit_leaves), origin=tuple(str(w) for w in entry.origin))
