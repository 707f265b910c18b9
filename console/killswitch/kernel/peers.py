"""Who is at the other end of a socket: SO_PEERCRED, then its cgroup and PID namespace, as /proc tells them."""

from __future__ import annotations

import os
import socket
import stat
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from console.killswitch.kernel import processes
from console.killswitch.kernel.cgroups import Mount

SO_PEERGROUPS = 59
"""From asm-generic/socket.h; Python names it nowhere."""
_MOST_GROUPS = 256
"""As many as Python lets one option return. A peer in more groups has none of them."""
_OWN_NAMESPACE = processes.pid_namespace("self")


class Standing(StrEnum):
    """A press is refused to a proven agent only; everything that loosens is refused to an unclear peer as well."""

    OPERATOR = "operator"
    AGENT = "agent"
    UNCLEAR = "unclear"


@dataclass(frozen=True, slots=True)
class Peer:
    """The process that connected."""

    pid: int
    uid: int
    start_ticks: int | None


@dataclass(frozen=True, slots=True)
class AgentPlaces:
    """Where agents live: their cgroup folders (everything below counts) and their PID namespaces."""

    mount: Mount | None
    folders: frozenset[str]
    """As text, to be looked up: comparing a peer's folder with each of a hundred agents' took longer than a whole press."""
    namespaces: frozenset[int]


def find_peer(connection: socket.socket) -> Peer:
    """Credentials as of connect(2) (unix(7), SO_PEERCRED). OSError when the socket is gone."""
    raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    pid, uid, _ = struct.unpack("3i", raw)
    return Peer(pid, uid, processes.start_ticks(pid) if pid > 0 else None)


def why_unfit(folder: Path) -> str:
    """Return why members' sockets must not be made in ``folder``; empty: they may. Only we and root may change what is in it."""
    try:
        seen = folder.lstat()
    except OSError as error:
        return f"{folder} cannot be used: {error.strerror}"
    if not stat.S_ISDIR(seen.st_mode) or seen.st_uid not in (0, os.geteuid()) or seen.st_mode & 0o022:
        return f"{folder} is not a folder that root alone may change"
    return ""


def peer_groups(connection: socket.socket) -> frozenset[int]:
    """Return the supplementary groups of the peer as of connect(2). Empty when the kernel does not say.

    The group of a set-group-ID program is none of them (credentials(7)).
    """
    try:
        raw = connection.getsockopt(socket.SOL_SOCKET, SO_PEERGROUPS, 4 * _MOST_GROUPS)
    except OSError:
        return frozenset()
    return frozenset(struct.unpack(f"{len(raw) // 4}I", raw))


def judge(peer: Peer, places: AgentPlaces) -> Standing:
    """Who the peer is now. A pid that ended or was reused is unclear."""
    if peer.pid <= 0:
        return Standing.UNCLEAR
    line, namespace = processes.cgroup_line(peer.pid), processes.pid_namespace(peer.pid)
    where = places.mount.locate(line) if places.mount and line is not None else None
    if is_below(where, places.folders) or (namespace is not None and namespace in places.namespaces and namespace != _OWN_NAMESPACE):
        return Standing.AGENT
    if namespace is None or namespace != _OWN_NAMESPACE or (places.mount is not None and line is None):
        return Standing.UNCLEAR
    if peer.start_ticks is None or processes.start_ticks(peer.pid) != peer.start_ticks:
        return Standing.UNCLEAR
    return Standing.OPERATOR


def is_below(folder: Path | None, folders: frozenset[str]) -> bool:
    """As ``is_among``, at a price that does not grow with the number of folders."""
    return folder is not None and (str(folder) in folders or any(str(above) in folders for above in folder.parents))


def is_among(folder: Path | None, folders: Iterable[Path]) -> bool:
    """Whether ``folder`` is one of ``folders`` or below one."""
    return folder is not None and any(folder == f or f in folder.parents for f in folders)


def inside_an_agent(pid: int | str = "self") -> bool:
    """Whether a process (this one) runs in a cgroup of some instance's agents."""
    line = processes.cgroup_line(pid) or ""
    parts = line.strip("/").split("/")
    return any(a.startswith("watchfloor-") and b == "agents" for a, b in zip(parts, parts[1:], strict=False))


def may_command(uid: int, supervisor_uid: int | None) -> bool:
    """Whether a uid may speak on guard-supervisor.sock."""
    return uid in (os.geteuid(), supervisor_uid if supervisor_uid is not None else os.geteuid())
