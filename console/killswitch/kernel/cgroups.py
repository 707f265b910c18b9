"""Control groups: where they are mounted, the instance's own subtree, leaves held open in advance, and walks.

Facts used (cgroup-v2.rst):

* Writing 1 to cgroup.kill kills the whole subtree, forks included.
* cgroup.events carries ``populated`` and ``frozen`` and wakes a poll for POLLPRI.
* A removed group answers ENODEV through its open files.

An agent may nest groups beyond every path's length and Python's recursion. So each step of a walk goes from an open folder to the next
one, down by its name and up by "..", and no path is ever put together.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from console.domain.errors import ConsoleError, Unavailable
from console.killswitch.kernel import processes
from console.killswitch.kernel.processes import cgroup_line, process_of

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def members(folder: Path, limit: int) -> list[int]:
    """Processes in it and below it, as far as they can be read; ``limit`` at most."""
    found: list[int] = []
    with suppress(OSError):  # it is gone, or there are too few descriptors: what was found until then
        for group, _, _ in _deepest_first(folder):
            with suppress(OSError, ValueError):  # removed meanwhile
                found += _processes(group)
            if len(found) >= limit:
                break
    return [pid for pid in found[:limit] if pid > 0]


def remove(folder: Path) -> bool:
    """Takes it away with all groups below it; True when it is gone."""
    try:
        for _, above, name in _deepest_first(folder):
            if name:
                os.rmdir(name, dir_fd=above)
        folder.rmdir()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return not folder.exists()


def _deepest_first(folder: Path) -> Iterator[tuple[int, int, str]]:
    """(descriptor of a group, of the one above it, its name there); last the folder itself, without a name. OSError when one cannot be
    opened."""
    here = os.open(folder, _FOLDER)
    try:
        names, left = list[str](), [_groups_in(here)]
        while names or left[-1]:
            if not left[-1]:
                left.pop()
                above = os.open("..", _FOLDER, dir_fd=here)
                try:
                    yield here, above, names.pop()
                finally:
                    os.close(here)
                    here = above
                continue
            with suppress(FileNotFoundError):  # removed meanwhile
                inside = os.open(name := left[-1].pop(), _FOLDER, dir_fd=here)
                os.close(here)
                here = inside
                names.append(name)
                left.append(_groups_in(here))
        yield here, here, ""
    finally:
        os.close(here)


def _groups_in(folder: int) -> list[str]:
    with os.scandir(folder) as entries:
        return [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]


def _processes(group: int) -> list[int]:
    """Of a threaded group, which lists none (EOPNOTSUPP), those that have a thread in it."""
    try:
        return _numbers(group, "cgroup.procs")
    except OSError as error:
        if error.errno != errno.EOPNOTSUPP:
            raise
    return list(dict.fromkeys(process_of(thread) for thread in _numbers(group, "cgroup.threads")))


def _numbers(group: int, name: str) -> list[int]:
    """OSError when the file is gone."""
    with open(os.open(name, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW, dir_fd=group), encoding="ascii") as file:
        return [int(line) for line in file]


LEAF_NAME = re.compile(r"^([a-z0-9][a-z0-9-]{0,62})-([0-9a-f]{8})\Z")
_GONE = (errno.ENODEV, errno.ENOENT)
_SHARES = (("cpu.weight", b"100", b"10000"), ("cpu.shares", b"1024", b"262144"))
"""A group's file for its share of the processors (v2, v1), the kernel's default, and the most."""

V1_LIMITS = ("pids", "memory", "cpu")
"""Controllers that bound agents, in v2 or in hierarchies of their own beside it."""


class Refused(ConsoleError):
    """A safety check before a write failed: the write was not made."""


@dataclass(frozen=True, slots=True)
class Mount:
    """One mounted hierarchy."""

    point: Path
    root: str
    """Which of its folders is mounted there (mountinfo field 4)."""

    def locate(self, line: str) -> Path | None:
        """The folder of a path as /proc/PID/cgroup gives it; None when it lies outside this mount."""
        if self.root != "/" and line != self.root and not line.startswith(f"{self.root}/"):
            return None
        inside = line.removeprefix(self.root if self.root != "/" else "").lstrip("/")
        # Seen from another cgroup namespace the kernel gives paths with "..", which would point out of the mount (cgroup_namespaces(7)).
        return None if ".." in inside.split("/") else self.point / inside


@dataclass(frozen=True, slots=True)
class Mounts:
    """What is mounted where; ``v2`` is None on a machine without cgroup v2."""

    v2: Mount | None = None
    v1: dict[str, Mount] = field(default_factory=dict)


def find_mounts(mountinfo: str | None = None) -> Mounts:
    """Reads /proc/self/mountinfo (proc(5)). A mount that another one hides is none."""
    text = Path("/proc/self/mountinfo").read_text(errors="replace") if mountinfo is None else mountinfo
    v2: Mount | None = None
    v1: dict[str, Mount] = {}
    for line in text.splitlines():
        before, dash, after = line.partition(" - ")
        left, right = before.split(), after.split()
        if not dash or len(left) < 6 or len(right) < 3:
            continue
        mount = Mount(Path(_plain(left[4])), _plain(left[3]))
        if right[0] == "cgroup2" and v2 is None and (mountinfo is not None or (mount.point / "cgroup.controllers").exists()):
            v2 = mount
        elif right[0] == "cgroup":
            for controller in right[2].split(","):
                # Controllers may be mounted together (cpu,cpuacct), so one mount answers for each of its names.
                v1.setdefault(controller, mount)
    return Mounts(v2, v1)


def place_of(pid: int | str, mount: Mount | None) -> Path | None:
    """The folder of a process's cgroup v2; None when that cannot be told, or lies outside this mount."""
    line = cgroup_line(pid) if mount is not None else None
    return mount.locate(line) if mount is not None and line is not None else None


def _plain(word: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda m: chr(int(m[1], 8)), word)


class Leaf:
    """One cgroup v2 folder, held open: its kill, freeze and events files work without another path look-up."""

    def __init__(self, path: Path, inode: int | None = None) -> None:
        """OSError when it is not there; Refused when the inode is not the recorded one."""
        self.path = path
        # Opened once and kept: at the moment of a kill the descriptors may have run out, and a path may lead elsewhere.
        self._folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        self._files: dict[str, int] = {}
        self.inode = os.fstat(self._folder).st_ino
        try:
            if inode is not None and inode != self.inode:
                raise Refused(f"{path} is another folder than the one recorded.")
            self._files["cgroup.events"] = self._open("cgroup.events", os.O_RDONLY)
            for name in ("cgroup.kill", "cgroup.freeze"):
                if os.access(name, os.W_OK, dir_fd=self._folder):
                    self._files[name] = self._open(name, os.O_WRONLY)
        except (OSError, Refused):
            self.close()
            raise

    def _open(self, name: str, flags: int) -> int:
        return os.open(name, flags | os.O_CLOEXEC | os.O_NOFOLLOW, dir_fd=self._folder)

    @property
    def can_kill(self) -> bool:
        return "cgroup.kill" in self._files

    @property
    def can_freeze(self) -> bool:
        return "cgroup.freeze" in self._files

    @property
    def events_fd(self) -> int:
        """For poll (POLLPRI)."""
        return self._files["cgroup.events"]

    def check(self, mount: Mount | None, below: Path | None = None) -> None:
        """Raises Refused when a write here could hit anything but the agent this leaf was made for.

        1. The path still leads to the folder that was recorded (or to none: it was removed). 2. It is under our root.
        3. Neither we, nor our parent, nor PID 1 is in it or below it.
        """
        try:
            seen = self.path.lstat()
            if seen.st_ino != self.inode:
                raise Refused(f"{self.path} is another folder than the one recorded.")
        except FileNotFoundError:
            pass
        # The last fence before a write that kills a whole subtree: a wrong path in the registry must not reach the desktop.
        if below is not None and below not in self.path.parents and self.path != below:
            raise Refused(f"{self.path} is not under {below}.")
        for pid in ("self", os.getppid(), 1):
            where = place_of(pid, mount)
            if where is not None and (where == self.path or self.path in where.parents):
                raise Refused(f"{self.path} holds process {pid}, which is never signalled.")

    def kill(self) -> str:
        """ "sent", "gone", or why not; never raises."""
        return self._write("cgroup.kill", b"1")

    def freeze(self, on: bool) -> str:
        """ "sent", "gone", or why not; never raises."""
        return self._write("cgroup.freeze", b"1" if on else b"0")

    def take(self, pid: int) -> str:
        """Moves a process into it: "sent", "gone" (it has ended), or why not; never raises."""
        try:
            fd = self._open("cgroup.procs", os.O_WRONLY)
            try:
                os.write(fd, str(pid).encode())
            finally:
                os.close(fd)
        except OSError as error:
            return "gone" if error.errno in (*_GONE, errno.ESRCH) else f"failed: {error.strerror}"
        return "sent"

    def is_held_frozen(self) -> bool:
        """Return whether a freeze of the group was asked for (whatever its state is by now). Unreadable reads as not."""
        try:
            return (self.path / "cgroup.freeze").read_text().strip() == "1"
        except OSError:
            return False

    def _write(self, name: str, data: bytes) -> str:
        fd = self._files.get(name)
        if fd is None:
            return f"failed: {name} is not writable here"
        try:
            # At offset 0 each time: the descriptor is kept open and written again, and no other thread may move its position.
            os.pwrite(fd, data, 0)
        except OSError as error:
            return "gone" if error.errno in _GONE else f"failed: {error.strerror}"
        return "sent"

    def events(self) -> dict[str, str]:
        """``populated`` and ``frozen`` as the kernel words them; a removed group is not populated."""
        try:
            # Reading from offset 0 also re-arms the poll: kernfs reports a change only after the last one was read.
            raw = os.pread(self.events_fd, 4096, 0)
        except OSError as error:
            if error.errno in _GONE:
                return {"populated": "0", "removed": "1"}
            raise
        return dict(line.split(" ", 1) for line in raw.decode().splitlines() if " " in line)

    def is_populated(self) -> bool:
        """Whether any live process is in it or below it; a removed group holds none. Unreadable reads as populated."""
        try:
            return self.events().get("populated") != "0"
        except OSError:
            return True

    def is_frozen(self) -> bool:
        """Whether the kernel says that nothing in it runs. Unreadable reads as not."""
        try:
            return self.events().get("frozen") == "1"
        except OSError:
            return False

    def pids(self, limit: int = 100_000) -> list[int]:
        """Members, those of groups below included."""
        return members(self.path, limit)

    def close(self) -> None:
        for fd in (*self._files.values(), self._folder):
            if fd >= 0:
                os.close(fd)
        self._files.clear()
        self._folder = -1


def kind_of(folder: Path) -> str:
    """``domain``, ``threaded`` ...; empty for the root group, which has no such file, and when it cannot be read."""
    try:
        return (folder / "cgroup.type").read_text().strip()
    except OSError:
        return ""


class Tree:
    """``watchfloor-<instance>/{agents,control,relays}`` of one instance, and the pids limit beside it."""

    def __init__(self, root: Path, mounts: Mounts) -> None:
        """Opens an existing tree. OSError when it is not there."""
        self.root = root
        self.mounts = mounts
        self.agents = Leaf(root / "agents")
        self.relays = Leaf(root / "relays")
        self.made: dict[Path, int] = {}
        for folder in (root, *(root / name for name in ("agents", "control", "relays"))):
            with contextlib.suppress(OSError):
                self.made[folder] = folder.lstat().st_ino
        """The instance's own folders and their inodes, in every hierarchy: what goes at an orderly end (tidying.py)."""
        self._favoured, self._favouring = Counter[Path](), threading.Lock()
        """How many kills under way favour a group: the first to end takes nothing from the others."""

    @property
    def mount(self) -> Mount:
        """The cgroup v2 mount the tree lives in."""
        assert self.mounts.v2 is not None
        return self.mounts.v2

    def make_leaf(
        self, agent_id: str, pids_max: int | None, memory_max: int | None = None, cpus_milli: int | None = None
    ) -> tuple[Leaf, tuple[str, ...]]:
        """A fresh leaf for an agent, and the folders of other hierarchies that bound it (v1). OSError when refused."""
        name = f"{agent_id}-{secrets.token_hex(4)}"
        path = self.agents.path / name
        path.mkdir(mode=0o755)
        bounds = (
            ("pids", pids_max, "pids.max", "pids.max", ""),
            ("memory", memory_max, "memory.max", "memory.limit_in_bytes", ""),
            ("cpu", None if cpus_milli is None else cpus_milli * 100, "cpu.max", "cpu.cfs_quota_us", " 100000"),
        )
        limits = []
        for controller, value, here, beside, period in bounds:
            if value is None or _limit(path / here, f"{value}{period}"):
                continue
            folder = self._limit_folder(controller, name)
            if folder is not None and _limit(folder / beside, str(value)):
                limits.append(str(folder))
        return Leaf(path), tuple(limits)

    def make_limit_root(self) -> None:
        """The instance's own folders in the v1 hierarchies, where there are some: they live as long as the tree does."""
        for controller in V1_LIMITS:
            if (folder := self._limit_folder(controller, "")) is not None:
                self.made[folder] = folder.lstat().st_ino
        with suppress(OSError):  # a guard that ended in the middle of a kill left them so
            self.favour([folder for _, folder in self.leaves_on_disk()], is_over=True)

    def favour(self, leaves: Iterable[Path], *, is_over: bool) -> None:
        """Give the instance and these leaves the most of the processors, or take it back. Never raises.

        A process dies on its own turn of a processor, and all agents together have the share of one group: beside busy programs they wait.
        """
        listed = [leaf for leaf in leaves if leaf.parent == self.agents.path]  # the share of any other group is not ours to set
        with self._favouring:
            for group in (self.root, *listed):
                self._favoured[group] = max(0, self._favoured[group] + (-1 if is_over else 1))
            for top in [folder for folder in self.made if folder.name == self.root.name]:
                for name, *shares in _SHARES:
                    values = {group: shares[self._favoured[group] > 0] for group in (self.root, *listed)}
                    if _set(top / name, values[self.root]):
                        for leaf in listed:
                            _set(leaf / name if top == self.root else top / leaf.name / name, values[leaf])
            self._favoured = +self._favoured  # groups that no kill favours are forgotten

    def _limit_folder(self, controller: str, name: str) -> Path | None:
        mount, line = self.mounts.v1.get(controller), cgroup_line("self", controller)
        beside = mount.locate(line) if mount and line is not None else None
        if beside is None:
            return None
        # A guard that restarts inside its own limit folder would otherwise nest one level deeper each time.
        parts = [p for p in beside.parts if p != self.root.name]  # the guard itself may run under one
        folder = Path(*parts) / self.root.name / name
        try:
            folder.mkdir(parents=True, mode=0o755, exist_ok=not name)
        except OSError:
            return None
        return folder

    def leaves_on_disk(self) -> list[tuple[str, Path]]:
        """(agent id, folder) of every leaf there is."""
        found = []
        for folder in sorted(self.agents.path.iterdir()):
            match = LEAF_NAME.match(folder.name)
            if match and folder.is_dir():
                found.append((match[1], folder))
        return found

    def enter_control(self) -> None:
        """Moves the calling process beside the agents, never among them. OSError when refused."""
        (self.root / "control" / "cgroup.procs").write_text("0")

    def close(self) -> None:
        self.agents.close()
        self.relays.close()


def _set(file: Path, value: bytes) -> bool:
    with suppress(OSError):
        fd = os.open(file, os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            return os.write(fd, value) == len(value)
        finally:
            os.close(fd)
    return False


def _limit(file: Path, value: str) -> bool:
    try:
        file.write_text(value)
    except OSError:
        return False
    return True


def make_tree(instance_id: str, mounts: Mounts, recorded: str = "") -> Tree:
    """Makes or takes over the instance's tree and moves the caller into ``control``: probed by doing.

    Raises Unavailable, with why, where no cgroup v2 can be used.
    """
    if mounts.v2 is None:
        raise Unavailable("No cgroup v2 is mounted here.", "Mount one (mount -t cgroup2), or run agents in a PID namespace.")
    whys = []
    for root in tree_places(instance_id, mounts, recorded):
        try:
            for name in ("agents", "control", "relays"):
                (root / name).mkdir(parents=True, exist_ok=True, mode=0o755)
            tree = Tree(root, mounts)
            if not tree.agents.can_kill:
                raise PermissionError(errno.EACCES, "cgroup.kill cannot be written (Linux 5.14 has it)")
            # Before the controllers are handed down: a group that holds processes cannot give any to its children (cgroup-v2.rst).
            tree.enter_control()
        except OSError as error:
            whys.append(f"{root}: {error.strerror or error}")
            continue
        _delegate_limits(root)
        tree.make_limit_root()
        return tree
    raise Unavailable(
        f"No writable cgroup v2 ({'; '.join(whys)}).", "Start it under systemd-run --user --scope -p Delegate=yes, or as root."
    )


def tree_places(instance_id: str, mounts: Mounts, recorded: str) -> list[Path]:
    """Where the instance's tree is, or may be made; the best first."""
    name = f"watchfloor-{instance_id}"
    if mounts.v2 is None:
        return []
    # The former guard's place comes first: its agents live there, and a second tree beside it would leave them out of every kill.
    found = [Path(recorded)] if recorded and Path(recorded).name == name and mounts.v2.point in Path(recorded).parents else []
    if os.geteuid() == 0:
        found.append(mounts.v2.point / name)
    own = place_of("self", mounts.v2)
    if own is not None:
        while own.name == "control" or name in own.parts:
            own = own.parent
        found.append(own / name)
    return list(dict.fromkeys(found))


def _delegate_limits(root: Path) -> None:
    """Where v2 owns the pids and memory controllers, hand them down so that a leaf can be bounded; best effort.

    One at a time: a group that holds processes hands none down, and one that is refused must not keep the others back.
    """
    for folder in (root.parent, root, root / "agents"):
        for name in V1_LIMITS:
            with contextlib.suppress(OSError):
                if name in (folder / "cgroup.controllers").read_text().split():
                    (folder / "cgroup.subtree_control").write_text(f"+{name}")


def container_folder(pid: int, container_id: str, mount: Mount) -> Path:
    """The cgroup of a container, through its init. Refused when the path does not name that container."""
    folder = place_of(pid, mount)
    # The engine's word alone does not count: a pid that was reused meanwhile would put another program's cgroup into the registry.
    if folder is None or folder == mount.point or not any(container_id in part for part in folder.parts[-2:]):
        raise Refused(f"Process {pid} is not in a cgroup of container {container_id[:12]}.")
    while container_id not in folder.name:
        folder = folder.parent  # a container may have groups of its own below
    return folder


_INSTANCE = re.compile(r"/watchfloor-([0-9a-f]{8})(?:/|\Z)")


def in_an_instance(pid: int, own: str) -> str:
    """Return to which instance a process belongs, by its cgroup, or, unless it is ``own``, by its environment. Empty: to none that is
    visible."""
    line = processes.cgroup_line(pid)
    if line is None:
        return "its cgroup cannot be told"
    if found := _INSTANCE.search(line):
        return f"it belongs to the Watchfloor instance {found[1]} already"
    if own:
        try:
            marked = processes.instance_mark(pid)
        except OSError as error:
            return f"its environment cannot be looked at: {error.strerror}"
        if marked not in ("", own):
            return f"its environment says that it is an agent of the Watchfloor instance {marked[:20]}"
    return ""
