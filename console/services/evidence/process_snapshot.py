"""One look at the processes of agents through /proc: what runs, from where, with which files and sockets open.

Everything read here was written by agents: lengths are bounded, bytes that are no text are shown escaped, and nothing of it is acted on.
"""

from __future__ import annotations

import os
import socket
import struct
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from console.killswitch.kernel import processes

FDS = 256
"""Descriptors looked at per process."""
WORDS = 4096
"""Bytes kept of a command line or a path."""
TABLE_BYTES = 1 << 20
"""Read of one socket table of a network namespace."""


@dataclass(frozen=True, slots=True)
class Root:
    """An agent of ours, by the kernel identity of its sandbox's init."""

    agent_id: str
    pid: int
    start_ticks: int


@dataclass(frozen=True, slots=True)
class OpenFile:
    """A descriptor and where it led, as the process's own mount namespace names it."""

    fd: int
    path: str


@dataclass(frozen=True, slots=True)
class OpenSocket:
    """A socket: ``tcp 10.0.0.2:443`` and the like; what the kernel's tables did not tell is empty."""

    fd: int
    kind: str
    local: str = ""
    peer: str = ""


@dataclass(frozen=True, slots=True)
class ProcessSeen:
    """One process at one moment."""

    pid: int
    ppid: int
    start_ticks: int
    """Field 22 of /proc/PID/stat, clock ticks since boot."""
    seen_at: float
    """Seconds since the epoch."""
    state: str
    uid: int
    exe: str
    cmdline: tuple[str, ...]
    cwd: str
    files: tuple[OpenFile, ...] = ()
    sockets: tuple[OpenSocket, ...] = ()
    left_out: str = ""
    """What the bounds or the kernel kept us from seeing."""


@dataclass(frozen=True, slots=True)
class AgentSeen:
    """An agent's processes, as last seen."""

    at: float
    processes: tuple[ProcessSeen, ...]
    left_out: str = ""


@dataclass(slots=True)
class Marks:
    """What tells an agent's processes apart although they changed their parent: its cgroup, and its PID namespace while its init lives."""

    cgroup: str = ""
    namespace: int = 0


@dataclass(slots=True)
class Look:
    """One look. ``marks`` is kept from look to look, so that a tree whose first process ended is still known by its cgroup."""

    processes_max: int
    marks: dict[str, Marks] = field(default_factory=dict)
    _tables: dict[int, dict[int, OpenSocket]] = field(default_factory=dict)

    def take(self, roots: Iterable[Root]) -> dict[str, AgentSeen]:
        """What runs now of each agent; one pass over /proc, at most ``processes_max`` processes read in full."""
        at = time.time()
        self._tables = {}
        members = self._members(tuple(roots))
        share = max(1, self.processes_max // max(1, len(members)))
        spare = self.processes_max - sum(min(share, len(pids)) for pids in members.values())
        seen = {}
        for agent_id, pids in members.items():
            most = min(len(pids), share + max(0, spare))
            spare -= max(0, most - share)
            found = tuple(p for p in (self._process(pid, at) for pid in pids[:most]) if p is not None)
            seen[agent_id] = AgentSeen(at, found, f"{len(pids) - most} more processes" if len(pids) > most else "")
        return seen

    # --- whose a process is

    def _members(self, roots: tuple[Root, ...]) -> dict[str, list[int]]:
        alive = {r.pid: r.agent_id for r in roots if processes.start_ticks(r.pid) == r.start_ticks}
        own_cgroup, own_namespace = processes.cgroup_line("self"), processes.pid_namespace("self")
        for root in roots:
            mark = self.marks.setdefault(root.agent_id, Marks())
            mark.namespace = 0
            if root.pid in alive:
                mark.cgroup = _distinct(processes.cgroup_line(root.pid), own_cgroup) or mark.cgroup
                namespace = processes.pid_namespace(root.pid)
                mark.namespace = 0 if namespace is None or namespace == own_namespace else namespace
        by_cgroup = {m.cgroup: i for i, m in self.marks.items() if m.cgroup}
        by_namespace = {m.namespace: i for i, m in self.marks.items() if m.namespace}
        parents = {pid: processes.parent(pid) for pid in processes.every_pid()}
        members: dict[str, list[int]] = {r.agent_id: [] for r in roots}
        for pid in sorted(parents):
            owner = _by_line(pid, parents, alive) or _by_cgroup(pid, by_cgroup)
            owner = owner or (by_namespace.get(processes.pid_namespace(pid) or 0, "") if by_namespace else "")
            if owner in members:
                members[owner].append(pid)
        return members

    # --- what it has open

    def _process(self, pid: int, at: float) -> ProcessSeen | None:
        """None when it ended meanwhile."""
        ticks = processes.start_ticks(pid)
        if ticks is None:
            return None
        try:
            uid = os.stat(f"/proc/{pid}").st_uid  # noqa: PTH116 - see _link
            files, sockets, left_out = self._open(pid)
        except OSError:
            return None
        seen = ProcessSeen(
            pid, processes.parent(pid), ticks, at, processes.state(pid), uid,
            _link(f"/proc/{pid}/exe"), _cmdline(pid), _link(f"/proc/{pid}/cwd"), files, sockets, left_out,
        )  # fmt: skip
        return seen if processes.start_ticks(pid) == ticks else None

    def _open(self, pid: int) -> tuple[tuple[OpenFile, ...], tuple[OpenSocket, ...], str]:
        files: list[OpenFile] = []
        sockets: list[OpenSocket] = []
        try:
            with os.scandir(f"/proc/{pid}/fd") as entries:
                for number, entry in enumerate(entries):
                    if number >= FDS:
                        return tuple(files), tuple(sockets), f"descriptors beyond the first {FDS}"
                    target = _link(f"/proc/{pid}/fd/{entry.name}")
                    if target.startswith("socket:["):
                        sockets.append(self._socket(pid, int(entry.name), int(target[8:-1])))
                    else:
                        files.append(OpenFile(int(entry.name), target))
        except PermissionError:
            return (), (), "open files: not permitted"
        return tuple(files), tuple(sockets), ""

    def _socket(self, pid: int, fd: int, inode: int) -> OpenSocket:
        try:
            namespace = os.stat(f"/proc/{pid}/ns/net").st_ino  # noqa: PTH116 - see _link
        except OSError:
            return OpenSocket(fd, "socket")
        if namespace not in self._tables:
            self._tables[namespace] = _socket_table(pid)
        known = self._tables[namespace].get(inode)
        return OpenSocket(fd, known.kind, known.local, known.peer) if known else OpenSocket(fd, "socket")


def _distinct(path: str | None, own: str | None) -> str:
    """Return the path, or '' for a cgroup that is also ours or is the root: it does not tell whose a process is."""
    return "" if path is None or path in (own, "/") else path


def _by_line(pid: int, parents: dict[int, int], alive: dict[int, str]) -> str:
    """Return the nearest agent above the process, or ''."""
    for _ in range(len(parents)):
        if pid in alive:
            return alive[pid]
        if pid <= 1:
            return ""
        pid = parents.get(pid, 0)
    return ""


def _by_cgroup(pid: int, by_cgroup: dict[str, str]) -> str:
    """The agent whose cgroup it is in, or below, or ''."""
    path = (processes.cgroup_line(pid) or "") if by_cgroup else ""
    while path:
        if path in by_cgroup:
            return by_cgroup[path]
        path = path.rpartition("/")[0]
    return ""


def shown(raw: bytes) -> str:
    """Bytes as text; what is not UTF-8 is shown escaped, so that it can be written anywhere."""
    return raw[:WORDS].decode("utf-8", "backslashreplace")


def _link(path: str) -> str:
    """Where it leads. A Path would intern each part of the path: the interpreter's table of such strings grows by steps of megabytes."""
    try:
        return shown(os.readlink(os.fsencode(path)))  # noqa: PTH115
    except OSError:
        return ""


def _cmdline(pid: int) -> tuple[str, ...]:
    raw = _head(f"/proc/{pid}/cmdline", WORDS)
    return tuple(shown(word) for word in raw.removesuffix(b"\0").split(b"\0")) if raw else ()


def _head(path: str, limit: int) -> bytes:
    """The first ``limit`` bytes; a file of /proc gives less than asked for at a time."""
    parts: list[bytes] = []
    try:
        with open(path, "rb", buffering=0) as file:
            while limit > 0 and (part := file.read(limit)):
                parts.append(part)
                limit -= len(part)
    except OSError:
        pass
    return b"".join(parts)


def _socket_table(pid: int) -> dict[int, OpenSocket]:
    """Inode -> socket, of the network namespace of ``pid``.

    The name of a unix socket may hold line ends and so forge lines: an inode that appears twice is believed in neither.
    """
    found: dict[int, OpenSocket] = {}
    twice: set[int] = set()
    readers: dict[str, Callable[[list[bytes]], tuple[int, OpenSocket]]] = {"unix": _unix_line}
    for kind in ("tcp", "tcp6", "udp", "udp6"):
        readers[kind] = lambda words, kind=kind: _inet_line(kind, words)  # type: ignore[misc]
    for name, reader in readers.items():
        for line in _head(f"/proc/{pid}/net/{name}", TABLE_BYTES).split(b"\n")[1:]:
            try:
                inode, seen = reader(line.split())
            except (ValueError, IndexError, struct.error, OSError):
                continue
            if inode in found:
                twice.add(inode)
            found[inode] = seen
    for inode in twice - {0}:
        found[inode] = OpenSocket(-1, "socket", "its entry in the kernel's table is ambiguous")
    found.pop(0, None)
    return found


def _inet_line(kind: str, words: list[bytes]) -> tuple[int, OpenSocket]:
    """``sl local rem st ... inode`` (proc(5), /proc/net/tcp)."""
    state = {"01": "established", "0A": "listening"}.get(words[3].decode(), "") if kind.startswith("tcp") else ""
    label = f"{kind} {state}".strip()
    return int(words[9]), OpenSocket(-1, label, _address(words[1]), _address(words[2]))


def _address(word: bytes) -> str:
    """Hexadecimal words in the machine's byte order, a colon, the port."""
    host, _, port = word.decode().partition(":")
    raw = b"".join(struct.pack("=I", int(host[i : i + 8], 16)) for i in range(0, len(host), 8))
    family = socket.AF_INET if len(raw) == 4 else socket.AF_INET6
    text = socket.inet_ntop(family, raw)
    return f"{text}:{int(port, 16)}" if family == socket.AF_INET else f"[{text}]:{int(port, 16)}"


def _unix_line(words: list[bytes]) -> tuple[int, OpenSocket]:
    """``Num RefCount Protocol Flags Type St Inode Path`` (proc(5))."""
    int(words[1], 16)
    return int(words[6]), OpenSocket(-1, "unix", shown(b" ".join(words[7:])))
