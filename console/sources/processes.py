"""What the kernel says of a process (proc(5)). Facts come from here, claims from files; only both together make an identity."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from io import FileIO
from pathlib import Path

from console.domain.agent import ProcessIdentity

PROC = Path("/proc")
_CMDLINE_CAP = 16_384
_STANDING = re.compile(rb"^(?:PPid|Uid|NSpid):.*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class ProcessFacts:
    """One process at one moment; read so that all of it belongs to the same process."""

    identity: ProcessIdentity
    uids: tuple[int, int]
    """Real and effective uid."""
    exe: str
    """Path of the executable, or empty when the kernel does not let us read it."""
    argv: tuple[str, ...]
    """As the process shows it, which it can change: a claim, not a fact."""
    cwd: str


def ticks_of_boot() -> int:
    """Now, as field 22 of /proc/PID/stat counts (proc(5))."""
    return int(time.clock_gettime(time.CLOCK_BOOTTIME) * os.sysconf("SC_CLK_TCK"))


class ProcessTable:
    """Reads /proc, or a stand-in folder in tests."""

    def __init__(self, proc: Path = PROC) -> None:
        self._proc, self._folder = proc, str(proc)
        self.is_real = proc == PROC
        """Whether its numbers are those of this host's processes."""

    def _bytes(self, pid: int | str, name: str) -> bytes:
        """One file of a process, whole. Raises OSError. Plain calls: with a thousand agents alive this is what a supervisor does most."""
        with FileIO(f"{self._folder}/{pid}/{name}") as file:
            return file.readall()

    def _line(self, pid: int) -> bytes:
        """Its ``stat``: one line, always given whole and far shorter than this. Raises OSError."""
        with FileIO(f"{self._folder}/{pid}/stat") as file:
            return file.read(4096) or b""

    def mounted(self) -> bool:
        """Whether there is a /proc to read at all."""
        return (self._proc / "self" / "stat").exists()

    def pids(self) -> list[int]:
        """Every process visible from here."""
        return [int(name) for name in os.listdir(self._folder) if name.isdecimal()]  # noqa: PTH208 - as above

    def start_ticks(self, pid: int) -> int | None:
        """Field 22 of /proc/PID/stat, or None: no such process, or a zombie (it runs no more)."""
        try:
            # proc(5): the second field is the name in brackets and may itself hold spaces and brackets.
            fields = self._line(pid).rpartition(b")")[2].split(None, 20)
            return None if fields[0] in (b"Z", b"X") else int(fields[19])
        except (OSError, ValueError, IndexError):
            return None

    def exe(self, pid: int) -> str:
        """Path of the executable, or empty."""
        try:
            return os.readlink(f"{self._folder}/{pid}/exe")  # noqa: PTH115 - read for every process of this host
        except OSError:
            return ""

    def facts(self, pid: int) -> ProcessFacts | None:
        """All facts of one process, or None when it is gone or was replaced while we read (pid reuse)."""
        before = self.start_ticks(pid)
        if before is None:
            return None
        try:
            uids = self._uids(pid)
            with FileIO(f"{self._folder}/{pid}/cmdline") as file:
                said = b""
                while len(said) < _CMDLINE_CAP and (part := file.read(_CMDLINE_CAP - len(said))):
                    said += part
            argv = tuple(os.fsdecode(a) for a in said.rstrip(b"\0").split(b"\0"))
        except (OSError, ValueError, IndexError):
            return None
        found = ProcessFacts(ProcessIdentity(pid, before), uids, self.exe(pid), argv, self._link(pid, "cwd"))
        return found if self.start_ticks(pid) == before else None

    def parent_and_inner(self, pid: int) -> tuple[int, int]:
        """(pid of its parent, its number in its own PID namespace); 0 where the kernel does not say."""
        parent = inner = 0
        try:
            lines = self._bytes(pid, "status").splitlines()
            for line in lines:
                if line.startswith(b"PPid:"):
                    parent = int(line.split()[1])
                elif line.startswith(b"NSpid:"):
                    inner = int(line.split()[-1])
        except (OSError, ValueError, IndexError):
            return 0, 0
        return parent, inner

    def standing(self, pid: int) -> tuple[bytes, str, str]:
        """What of a process may become other while it runs the same program: its users, parent and namespaces; cgroup; folder."""
        try:
            status = b" ".join(_STANDING.findall(self._bytes(pid, "status")))
        except OSError:
            status = b""
        return status, self.cgroup(pid), self._link(pid, "cwd")

    def pid_namespace(self, pid: int | str) -> str:
        """For example ``pid:[4026531836]``; empty when it cannot be read."""
        return self._link(pid, "ns/pid")

    def cgroup(self, pid: int) -> str:
        """All lines of /proc/PID/cgroup, or empty."""
        try:
            return os.fsdecode(self._bytes(pid, "cgroup"))
        except OSError:
            return ""

    def open_files(self, pid: int) -> Iterator[tuple[str, str]]:
        """(entry in /proc/PID/fd, path it leads to) of each open file; nothing when it cannot be read."""
        folder = f"{self._folder}/{pid}/fd"
        try:
            entries = sorted(os.listdir(folder))  # noqa: PTH208 - see _bytes
        except OSError:
            return
        for entry in entries:
            if target := self._link(pid, f"fd/{entry}"):
                yield f"{folder}/{entry}", target

    def _uids(self, pid: int) -> tuple[int, int]:
        for line in self._bytes(pid, "status").splitlines():
            if line.startswith(b"Uid:"):
                parts = line.split()
                return int(parts[1]), int(parts[2])
        raise ValueError("no Uid line")

    def _link(self, pid: int | str, name: str) -> str:
        try:
            return os.readlink(f"{self._folder}/{pid}/{name}")  # noqa: PTH115 - a Path costs more than the call
        except OSError:
            return ""
