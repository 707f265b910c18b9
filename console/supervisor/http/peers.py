"""Who is at the other end of a socket: the doors accept by cgroup and PID namespace, not by what a peer says (promise 6)."""

from __future__ import annotations

import os
import re
import socket
import struct
from collections.abc import Callable
from dataclasses import dataclass, replace

from console.killswitch.kernel.peers import peer_groups


@dataclass(frozen=True, slots=True)
class Peer:
    """A peer as the kernel names it (unix(7), SO_PEERCRED)."""

    pid: int
    uid: int
    cgroups: str
    """The text of /proc/PID/cgroup; empty when it could not be read."""
    same_pid_namespace: bool
    groups: frozenset[int] = frozenset()
    """Supplementary groups as of connect(2). None of a process to which the connection was handed."""


def peer_of(sock: socket.socket) -> Peer:
    """The peer of a connected unix socket."""
    pid, uid, _gid = struct.unpack("iII", sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    return replace(peer_at(pid, uid), groups=peer_groups(sock))


def peer_at(pid: int, uid: int) -> Peer:
    """A process that the kernel named as the other end, or as who wrote to it."""
    try:
        return Peer(pid, uid, cgroups_of(pid), os.readlink(f"/proc/{pid}/ns/pid") == os.readlink("/proc/self/ns/pid"))  # noqa: PTH115
    except OSError:
        return Peer(pid, uid, "", False)


def cgroups_of(pid: int) -> str:
    """The text of /proc/PID/cgroup. OSError."""
    with open(f"/proc/{pid}/cgroup", "rb", buffering=0) as file:  # noqa: PTH123 - asked at every request
        return file.readall().decode(errors="surrogateescape")


def is_operator(peer: Peer, instance_id: str) -> bool:
    """A peer of our uid (or root), in our PID namespace and in no agent's cgroup. In doubt: no."""
    if peer.uid not in (os.geteuid(), 0) or not peer.same_pid_namespace or not peer.cgroups:
        return False
    return f"/watchfloor-{instance_id}/agents/" not in peer.cgroups


def may_be_member(peer: Peer, agents_uid: int) -> bool:
    """A peer of any account but the agents' own, in our PID namespace and in no instance's agent's cgroup. In doubt: no."""
    if peer.uid == agents_uid or not peer.same_pid_namespace or not peer.cgroups:
        return False
    return re.search(r"/watchfloor-[0-9a-f]{8}/agents/", peer.cgroups) is None


def may_hook(peer: Peer, instance_id: str, is_adopted: Callable[[str], bool]) -> bool:
    """A program that is only seen, or was adopted and so moved into a leaf of ours. An agent that we started has a socket of its own."""
    if is_operator(peer, instance_id):
        return True
    if peer.uid not in (os.geteuid(), 0) or not peer.same_pid_namespace or not peer.cgroups:
        return False
    ours = rf"/watchfloor-{re.escape(instance_id)}/agents/([a-z0-9][a-z0-9-]{{0,62}})-[0-9a-f]{{8}}(?:/|$)"
    leaves = set(re.findall(ours, peer.cgroups, re.MULTILINE))
    return len(leaves) == 1 and is_adopted(leaves.pop())


def is_agent(peer: Peer, instance_id: str, agent_id: str, container_id: str, *, cgroups: bool) -> bool:
    """Whether the peer lives in this agent's own cgroup leaf or container; in doubt: no.

    Without cgroups on this host the socket's permissions and its place in the agent's own mount namespace are all there is; the
    agent is labelled best effort then.
    """
    if container_id:
        return f"/{container_id}" in peer.cgroups
    if cgroups:
        # The guard names a leaf after the agent: agents/<id>-<8 hexadecimal characters>. The outermost counts: further in, an agent may
        # name them as it likes. One pattern for all agents: Python keeps few of them.
        leaf = rf"^[^\n]*?/watchfloor-{re.escape(instance_id)}/agents/([^/\n]+)-[0-9a-f]{{8}}(?:/|$)"
        return set(re.findall(leaf, peer.cgroups, re.MULTILINE)) == {agent_id}
    return f"/watchfloor-{instance_id}/agents/" not in peer.cgroups
