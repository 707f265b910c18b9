"""Who is at the other end of a socket: the doors accept by cgroup and PID namespace, not by what a peer says (promise 6)."""

from __future__ import annotations

import os
import socket
import struct
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Peer:
    """A peer as the kernel names it (unix(7), SO_PEERCRED)."""

    pid: int
    uid: int
    cgroups: str
    """The text of /proc/PID/cgroup; empty when it could not be read."""
    same_pid_namespace: bool


def peer_of(sock: socket.socket) -> Peer:
    """The peer of a connected unix socket."""
    pid, uid, _gid = struct.unpack("iII", sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    try:
        cgroups = Path(f"/proc/{pid}/cgroup").read_text()
        same = Path(f"/proc/{pid}/ns/pid").readlink() == Path("/proc/self/ns/pid").readlink()
    except OSError:
        return Peer(pid, uid, "", False)
    return Peer(pid, uid, cgroups, same)


def is_operator(peer: Peer, instance_id: str) -> bool:
    """A peer of our uid (or root), in our PID namespace and in no agent's cgroup. In doubt: no."""
    if peer.uid not in (os.geteuid(), 0) or not peer.same_pid_namespace or not peer.cgroups:
        return False
    return f"/watchfloor-{instance_id}/agents/" not in peer.cgroups


def is_agent(peer: Peer, leaf: str, container_id: str) -> bool:
    """Whether the peer lives in this agent's own cgroup leaf or container; in doubt: no.

    Without a leaf (no cgroups on this host) the socket's file permissions are all there is, and the agent is labelled best effort.
    """
    if container_id:
        return f"/{container_id}" in peer.cgroups
    if leaf:
        name = "/" + leaf.rstrip("/").rsplit("/", 1)[-1]
        return any(line.endswith(name) or f"{name}/" in line for line in peer.cgroups.splitlines())
    return bool(peer.cgroups) or peer.pid == 0
