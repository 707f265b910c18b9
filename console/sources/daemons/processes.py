"""One look at this host's processes for the daemons: parent links, accounts, executables, and which unix sockets a process listens on."""

from __future__ import annotations

import os
import re
import socket
import stat
import struct
from contextlib import suppress
from functools import cached_property
from pathlib import Path

from console.domain.agent import ProcessIdentity

CAP = 1 << 20
CONNECT_S = 0.5
_SOCKET = re.compile(r"socket:\[(\d+)\]\Z")
_ACCEPTS = 0x10000
"""Flag of a listening socket in /proc/net/unix (__SO_ACCEPTCON)."""


class Processes:
    """Facts of one moment; make a new one for each look."""

    @cached_property
    def rows(self) -> dict[int, tuple[int, int, int]]:
        """Of each process: its parent, start time and terminal (0: none). What ends meanwhile is left out."""
        found = {}
        for name in os.listdir("/proc"):  # noqa: PTH208 - names are enough
            if name.isdecimal() and (row := stat_of(int(name))) is not None:
                found[int(name)] = row
        return found

    @cached_property
    def children(self) -> dict[int, list[int]]:
        """By parent."""
        found: dict[int, list[int]] = {}
        for pid, (parent, _, _) in self.rows.items():
            found.setdefault(parent, []).append(pid)
        return found

    def identity(self, pid: int) -> ProcessIdentity | None:
        """None when it is gone."""
        row = self.rows.get(pid)
        return None if row is None else ProcessIdentity(pid, row[1])

    def line(self, process: ProcessIdentity) -> list[ProcessIdentity]:
        """The process and its ancestors up to, and without, process 1; empty when it is not that process any more."""
        found: list[ProcessIdentity] = []
        pid = process.pid
        while pid > 1 and (one := self.identity(pid)) is not None and one not in found:
            if not found and one != process:
                return []
            found.append(one)
            pid = self.rows[pid][0]
        return found

    def below(self, pid: int) -> list[int]:
        """The process and everything that descends from it by parent."""
        found, left = [], [pid]
        while left:
            one = left.pop()
            found.append(one)
            left += self.children.get(one, [])
        return found

    def has_terminal(self, pid: int) -> bool:
        """Whether it has a controlling terminal: a shell that waits for it would take a stop as the end of its turn."""
        return bool(self.rows.get(pid, (0, 0, 0))[2])

    def listens(self, pid: int) -> list[str]:
        """Paths of the unix sockets that a process listens on, as they were bound: a renamed file changes nothing (unix(7))."""
        inodes = set()
        with suppress(OSError):
            for name in os.listdir(f"/proc/{pid}/fd"):  # noqa: PTH208
                with suppress(OSError):
                    if found := _SOCKET.match(os.readlink(f"/proc/{pid}/fd/{name}")):  # noqa: PTH115
                        inodes.add(found[1])
        return [path for inode, path in self._listening(pid) if inode in inodes]

    def _listening(self, pid: int) -> list[tuple[str, str]]:
        lines = read(pid, "net/unix").decode(errors="replace").splitlines()[1:]
        words = [line.split(None, 7) for line in lines]
        return [(w[6], w[7]) for w in words if len(w) == 8 and int(w[3], 16) & _ACCEPTS]


def stat_of(pid: int) -> tuple[int, int, int] | None:
    """(parent, start time, terminal) of a process that runs; None when it is gone or a zombie."""
    fields = read(pid, "stat").rpartition(b")")[2].split()
    if len(fields) < 20 or fields[0] in (b"Z", b"X"):
        return None
    return int(fields[1]), int(fields[19]), int(fields[4])


def read(pid: int, name: str) -> bytes:
    """A file of a process; empty when it cannot be read."""
    try:
        with open(f"/proc/{pid}/{name}", "rb") as file:  # of every process: a Path interns each number, and its table of strings grows
            return file.read(CAP)
    except OSError:
        return b""


def argv(pid: int) -> list[str]:
    """Its arguments: a claim, which the process can change."""
    return [os.fsdecode(word) for word in read(pid, "cmdline").rstrip(b"\0").split(b"\0")]


def variables(pid: int) -> dict[str, str]:
    """Its environment as it was started: evidence, and hostile."""
    pairs = (word.partition(b"=") for word in read(pid, "environ").split(b"\0"))
    return {os.fsdecode(name): os.fsdecode(value) for name, _, value in pairs if name}


def exe(pid: int) -> str:
    """Path of its executable, or empty."""
    try:
        return os.readlink(f"/proc/{pid}/exe")  # noqa: PTH115
    except OSError:
        return ""


def account(pid: int) -> int | None:
    """Its account, when all four uids are the same; None otherwise."""
    for line in read(pid, "status").splitlines():
        if line.startswith(b"Uid:"):
            uids = {int(word) for word in line.split()[1:]}
            return uids.pop() if len(uids) == 1 else None
    return None


def peer(path: str) -> tuple[int, int, str] | None:
    """(pid, uid) of the process that listens on a unix socket, and the path it bound; None when nothing answers."""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC) as one:
            one.settimeout(CONNECT_S)
            one.connect(path)
            pid, uid, _ = struct.unpack("3i", one.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
            return pid, uid, str(one.getpeername())
    except OSError:
        return None


def why_open_to_others(folder: Path, uid: int) -> str:
    """Return why another account could put something into a folder, or replace it; empty: only ``uid`` and root can.

    A sticky folder such as /tmp may be open to all accounts: there only the owner of an entry can rename or remove it (unlink(2)).
    """
    for place in (folder, *folder.parents):
        try:
            seen = place.lstat()
        except OSError as error:
            return f"{place} cannot be looked at: {error.strerror}"
        if not stat.S_ISDIR(seen.st_mode):
            return f"{place} is not a folder"
        if place == folder and seen.st_uid != uid:
            return f"{place} belongs to account {seen.st_uid}"
        if seen.st_uid not in (0, uid):
            return f"{place} belongs to account {seen.st_uid}"
        if seen.st_mode & 0o022 and (place == folder or not seen.st_mode & stat.S_ISVTX):
            return f"other accounts can write to {place}"
    return ""
