"""Which process is at the other end of a socket: lists of sockets of several namespaces, joined, and the processes that hold them."""

from __future__ import annotations

import contextlib
import os
import socket
import time
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from console.killswitch.kernel import processes
from console.killswitch.kernel.socket_lists import Address, Raw, Reader, Tcp, Unix, address_words, name_words, parse_tcp, parse_unix

MOST_DESCRIPTORS = 4096
"""Looked at per process; an agent with more has connections that are not recorded."""


@dataclass(frozen=True, slots=True)
class Process:
    """One process at one moment."""

    pid: int
    start_ticks: int
    program: str
    """Path of its executable; empty when this account cannot see it. Hostile text."""
    uid: int

    @property
    def name(self) -> str:
        """The last part of the path, for a sentence."""
        return Path(self.program).name

    def is_alive(self) -> bool:
        return processes.is_the_same(self.pid, self.start_ticks)


def find_process(pid: int) -> Process | None:
    """None when it is gone."""
    ticks, uids = processes.start_ticks(pid), processes.uids(pid)
    if ticks is None:
        return None
    program = processes.link(pid, "exe").removesuffix(" (deleted)")[:200]
    return Process(pid, ticks, program, min(uids, default=-1)) if processes.start_ticks(pid) == ticks else None


@dataclass(frozen=True, slots=True)
class Far:
    """The other end of one socket, as the kernel's lists have it."""

    kind: str
    """``tcp`` or ``unix``."""
    local: str
    remote: str
    inodes: tuple[int, ...]
    """Sockets whose holders are at the other end: the socket itself, or the one that listens while nothing has accepted it."""
    uid: int
    listeners: tuple[int, ...] = ()
    """Sockets that listen at its address: their holders, when none holds it any more (a server closes its end when the agent dies)."""
    address: str = ""
    """What its unix socket listens at."""
    port: int = 0
    """Of a loopback address, when the agent is the client."""
    cgroup: int = 0


@dataclass(slots=True)
class Snapshot:
    """The sockets of every namespace that was read."""

    unix: dict[int, Unix] = field(default_factory=dict)
    tcp: dict[int, tuple[int, Tcp]] = field(default_factory=dict)
    """By inode: namespace and socket."""
    _mirror: dict[tuple[int, Address, Address], Tcp] = field(default_factory=dict)
    _by_remote: dict[Address, list[tuple[int, Tcp]]] = field(default_factory=dict)
    """By the address that they are connected to: with address translation the other end listens at another one than was asked for."""
    _listening: dict[tuple[int, int], list[Tcp]] = field(default_factory=dict)
    _named: dict[bytes, list[int]] = field(default_factory=dict)
    """Unix sockets that listen, by name."""
    _waiting: dict[int, Unix] = field(default_factory=dict)
    """By inode of a client that nothing has accepted: the socket that listens."""
    of_namespace: dict[int, set[int]] = field(default_factory=dict)
    """Inodes of every socket of a namespace."""
    is_cut: bool = False
    """Not every namespace of this host that could be entered was read."""

    def add(self, raw: Raw) -> None:
        """Takes in what was read of one namespace."""
        inside = self.of_namespace.setdefault(raw.namespace, set())
        for one in parse_unix(raw.unix):
            self.unix[one.inode] = one
            inside.add(one.inode)
            if one.is_listening and one.name:
                self._named.setdefault(one.name, []).append(one.inode)
            for client in one.waiting:
                self._waiting[client] = one
        for tcp in parse_tcp(raw.tcp):
            if tcp.is_listening:
                self._listening.setdefault((raw.namespace, tcp.local[1]), []).append(tcp)
                continue
            self._mirror[raw.namespace, tcp.local, tcp.remote] = tcp
            self._by_remote.setdefault(tcp.remote, []).append((raw.namespace, tcp))
            if tcp.inode:
                self.tcp[tcp.inode] = (raw.namespace, tcp)
                inside.add(tcp.inode)

    def listening_at(self, folders: tuple[str, ...]) -> list[int]:
        """Unix sockets that listen below one of these folders (each with a / at its end)."""
        return [inode for name, inodes in self._named.items() if name_words(name).startswith(folders) for inode in inodes]

    def far(self, inode: int) -> Far | None:
        """The other end of a socket; None when it has none on this host, or the lists do not have it."""
        if (unix := self.unix.get(inode)) is not None:
            return self._far_unix(unix)
        if (found := self.tcp.get(inode)) is not None:
            return self._far_tcp(*found)
        return None

    def _far_unix(self, own: Unix) -> Far | None:
        listener = self._waiting.get(own.inode)
        other = self.unix.get(own.peer) or listener
        if own.is_listening or (not own.peer and listener is None):
            return None
        address = name_words(other.name) if other is not None and other.name else ""
        inodes = (listener.inode,) if listener is not None and not own.peer else (own.peer,)
        listeners = tuple(self._named.get(other.name, ())) if other is not None and other.name else ()
        return Far("unix", name_words(own.name), address, inodes, other.uid if other is not None else -1, listeners, address)

    def _far_tcp(self, namespace: int, own: Tcp) -> Far | None:
        found = self._mirrored(namespace, own)
        if found is None:
            return None
        where, other = found
        listeners = tuple(one.inode for one in self._listening.get((where, own.remote[1]), ()) if _may_hear(one, own.remote))
        inodes = (other.inode,) if other.inode else listeners
        is_client = bool(listeners) or own.local[1] > own.remote[1]
        port = own.remote[1] if is_client and _is_loopback(own.remote) else 0
        words = (address_words(own.local), address_words(own.remote))
        return Far("tcp", *words, inodes, other.uid, listeners, port=port, cgroup=other.cgroup)

    def _mirrored(self, namespace: int, own: Tcp) -> tuple[int, Tcp] | None:
        """In the same namespace; a loopback address means nothing in any other."""
        if (here := self._mirror.get((namespace, own.remote, own.local))) is not None:
            return namespace, here
        is_loopback = _is_loopback(own.remote)
        for other in () if is_loopback else self.of_namespace:
            if (there := self._mirror.get((other, own.remote, own.local))) is not None:
                return other, there
        if (namespace, own.local[1]) in self._listening:
            return None  # it was accepted here: everything that asks for this port is connected to its address
        found = [one for one in self._by_remote.get(own.local, ()) if one[0] == namespace or not is_loopback]
        return found[0] if len(found) == 1 else None

    def away(self, inode: int) -> Tcp | None:
        """A socket that is connected to another machine, or into a namespace that was not read; None for any other."""
        found = self.tcp.get(inode)
        if found is None or self._mirrored(*found) is not None or _is_loopback(found[1].remote):
            return None
        return found[1]


def _may_hear(listener: Tcp, at: Address) -> bool:
    return listener.local[0] == at[0] or not any(listener.local[0])


def _is_loopback(address: Address) -> bool:
    host = address[0]
    return host[0] == 127 if len(host) == 4 else host == bytes(15) + b"\1"


def sockets_of(pid: int) -> tuple[set[int], bool]:
    """(inodes of the sockets that a process has open, whether that is all of them). OSError when we cannot look: it may hold any."""
    found, whole = set[int](), True
    try:
        with os.scandir(f"/proc/{pid}/fd") as entries:
            for number, entry in enumerate(entries):
                if number >= MOST_DESCRIPTORS:
                    return found, False
                try:
                    target = os.readlink(f"/proc/{pid}/fd/{entry.name}")  # noqa: PTH115 - thousands a second; a Path takes four times as long
                except FileNotFoundError:
                    continue  # closed meanwhile
                if target.startswith("socket:["):
                    found.add(int(target[8:-1]))
    except (FileNotFoundError, ProcessLookupError):
        return found, True  # it ended
    except OSError as error:
        if error.errno in processes.CANNOT_LOOK:
            raise
        whole = processes.is_ending(pid)  # one that a kill has met hides its files from all but root, until it was waited for
    return found, whole


def without_children(pids: Collection[int]) -> list[int]:
    """Of the processes that hold one end those that no other of them started: a child has inherited it, and is the other's work.

    A service manager that holds the socket of a service is not meant: whatever lost its parent is its child too.
    """
    above = {pid for pid in pids if pid > 1 and processes.short_name(pid) != "systemd"}
    return [pid for pid in pids if not (above - {pid}) & processes.ancestors(pid)]


@dataclass(slots=True)
class Holders:
    """Who holds sockets, as far as it could be found out."""

    pids: dict[int, list[int]] = field(default_factory=dict)
    """By inode."""
    hidden: set[int] = field(default_factory=set)
    """Accounts of processes that do not let this one see their open files."""
    is_cut: bool = False
    """Not every process could be asked: the time was over, or we had no descriptor left."""

    def of(self, inodes: Iterable[int]) -> set[int]:
        """Every process that holds one of these, and has not inherited it from another that does."""
        return set(without_children({pid for inode in inodes for pid in self.pids.get(inode, ())}))


def holders(inodes: Collection[int], skip: Collection[int] = (), until: float = float("inf")) -> Holders:
    """The processes that hold these sockets. ``skip``: processes that are not asked. ``until``: CLOCK_MONOTONIC."""
    wanted, found = set(inodes), Holders()
    pids = processes.every_pid() if wanted else []
    found.is_cut = bool(wanted) and not pids  # we run, so they could not be listed
    for pid in pids:
        if pid in skip:
            continue
        if time.monotonic() > until:
            found.is_cut = True
            break
        try:
            held, is_all = sockets_of(pid)
        except OSError:
            found.is_cut = True
            continue
        if not is_all:
            found.hidden |= processes.uids(pid)
        for inode in held & wanted:
            found.pids.setdefault(inode, []).append(pid)
    return found


def read_beside(known: Collection[int], until: float) -> tuple[list[Raw], bool]:
    """(the sockets of this host's other network namespaces, containers say, whether some that may be entered were not read).

    ``known``: namespaces that were read. ``until``: CLOCK_MONOTONIC. Only root may enter them; without that nothing is read.
    """
    others, found, is_cut = dict[int, list[int]](), list[Raw](), False
    for pid in processes.every_pid():
        with contextlib.suppress(OSError):
            others.setdefault(os.stat(f"/proc/{pid}/ns/net").st_ino, []).append(pid)  # noqa: PTH116 - of every process; a Path takes four times as long
    for pids in [pids for namespace, pids in others.items() if namespace not in known]:
        try:
            raw = next((raw for pid in pids if (raw := _read_at(pid, until)) is not None), None)
        except OSError:
            is_cut = True
        else:
            found += [raw] if raw is not None else []
    return found, is_cut


def _read_at(pid: int, until: float) -> Raw | None:
    """The sockets of a process's namespace; None when it is gone or may not be entered. OSError without time or descriptors."""
    if time.monotonic() > until:
        raise TimeoutError
    try:
        with contextlib.closing(Reader(pid)) as reader:
            return reader.read(until)
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return None


def is_here(address: Address) -> bool:
    """Whether an address is one of this host's own. What is connected to it and not found was passed on, to a container say."""
    host = address[0]
    family = socket.AF_INET if len(host) == 4 else socket.AF_INET6
    try:
        with socket.socket(family, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as one:
            one.bind((socket.inet_ntop(family, host), 0))  # ip(7): EADDRNOTAVAIL for an address that is not local
    except OSError:
        return False
    return True


def snapshot(raws: Iterable[Raw]) -> Snapshot:
    """All of them joined."""
    made = Snapshot()
    for raw in raws:
        made.add(raw)
    return made
