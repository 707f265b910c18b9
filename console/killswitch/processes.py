"""What /proc says of a process, and signals that can only reach the process that was meant (pidfd and start time)."""

from __future__ import annotations

import contextlib
import os
import resource
import select
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from console.domain.guard import AGENT_SOCKET_VARIABLE, AGENT_VARIABLE, INSTANCE_VARIABLE

_SIGKILL_BIT = 1 << (signal.SIGKILL - 1)


def _read(pid: int | str, name: str, limit: int = 65536) -> bytes:
    try:
        fd = os.open(f"/proc/{pid}/{name}", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return os.read(fd, limit)
    except OSError:
        return b""
    finally:
        os.close(fd)


def _stat(pid: int | str) -> list[bytes]:
    """Fields of /proc/PID/stat from the 3rd on (proc(5)); the name before them may hold anything, so cut at the last ')'."""
    raw = _read(pid, "stat")
    return raw[raw.rfind(b")") + 2 :].split() if b")" in raw else []


def start_ticks(pid: int) -> int | None:
    """Field 22; None when the process is gone."""
    fields = _stat(pid)
    return int(fields[19]) if len(fields) > 19 else None


def state(pid: int) -> str:
    """One letter of proc(5), or "" when it is gone."""
    fields = _stat(pid)
    return fields[0].decode() if fields else ""


def parent(pid: int) -> int:
    """0 when unknown."""
    fields = _stat(pid)
    return int(fields[1]) if len(fields) > 1 else 0


def ancestors(pid: int) -> set[int]:
    """``pid`` and everything above it, PID 1 included."""
    line = {1}
    while pid > 1 and pid not in line:
        line.add(pid)
        pid = parent(pid)
    return line


def raise_descriptors() -> None:
    """As many open files as this process may have: each agent takes up to nine."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def is_alive(pid: int) -> bool:
    """There, and not a zombie."""
    return state(pid) not in ("", "Z", "X")


def cgroup_line(pid: int | str, controller: str = "") -> str | None:
    """The path /proc/PID/cgroup gives for a v1 controller, or for cgroup v2 (""); None when it cannot be told."""
    for line in _read(pid, "cgroup").decode(errors="replace").splitlines():
        number, _, rest = line.partition(":")
        names, _, path = rest.partition(":")
        if (number == "0" and not names) if not controller else controller in names.split(","):
            return path.removesuffix(" (deleted)")
    return None


def pid_namespace(pid: int | str) -> int | None:
    """Inode of the PID namespace; None when it cannot be read."""
    try:
        return Path(f"/proc/{pid}/ns/pid").stat().st_ino
    except OSError:
        return None


def every_pid() -> list[int]:
    """All processes that /proc shows."""
    try:
        with os.scandir("/proc") as entries:
            return [int(entry.name) for entry in entries if entry.name.isdigit()]
    except OSError:
        return []


def members(namespace: int) -> list[int]:
    """Live processes of a PID namespace, as far as their links can be read."""
    return [pid for pid in every_pid() if pid_namespace(pid) == namespace and is_alive(pid)]


def command_line(pid: int) -> str:
    """For people; hostile text."""
    return _read(pid, "cmdline", 400).replace(b"\0", b" ").decode(errors="replace").strip()


def describe(pid: int) -> dict[str, object]:
    """Evidence of one process."""
    try:
        exe = str(Path(f"/proc/{pid}/exe").readlink())
    except OSError:
        exe = ""
    return {"pid": pid, "start": start_ticks(pid), "exe": exe[:200], "cmdline": command_line(pid)[:200]}


def wait_channel(pid: int) -> str:
    """Where the kernel holds it, when it says so."""
    return _read(pid, "wchan", 100).decode(errors="replace").strip()


def kill_is_pending(pid: int) -> bool:
    """Whether SIGKILL was delivered and the process only has to die."""
    for line in _read(pid, "status").splitlines():
        if line.startswith((b"SigPnd:", b"ShdPnd:")) and int(line.split()[1], 16) & _SIGKILL_BIT:
            return True
    return False


@dataclass(frozen=True, slots=True)
class Marked:
    """A process whose environment says that it is an agent of this instance."""

    pid: int
    start_ticks: int
    agent_id: str


def find_marked(instance_id: str, run_dir: Path) -> Iterator[Marked]:
    """Processes with an agent's id and this instance's id or socket folder in their environment. Evidence, not coverage."""
    id_mark = f"{AGENT_VARIABLE}=".encode()
    instance_marks = (f"{INSTANCE_VARIABLE}={instance_id}".encode(), f"{AGENT_SOCKET_VARIABLE}={run_dir}/".encode())
    for pid in every_pid():
        raw = _read(pid, "environ", 1 << 20)
        if id_mark not in raw:
            continue
        variables = raw.split(b"\0")
        if not any(v == instance_marks[0] or v.startswith(instance_marks[1]) for v in variables):
            continue
        started = start_ticks(pid)
        named = next((v[len(id_mark) :] for v in variables if v.startswith(id_mark)), b"")
        if started is not None and named:
            yield Marked(pid, started, named.decode(errors="replace")[:63])


class Handle:
    """One process held by a pidfd: pid reuse cannot confuse it (pidfd_open(2))."""

    def __init__(self, pid: int, ticks: int) -> None:
        """ProcessLookupError when the process with that start time is not there (any more)."""
        if pid <= 1:
            raise ProcessLookupError(f"pid {pid} is never signalled")
        self.pid = pid
        self.start_ticks = ticks
        self.fd = os.pidfd_open(pid)
        if start_ticks(pid) != ticks:
            self.close()
            raise ProcessLookupError(f"pid {pid} is not the process that was meant")
        self.namespace = pid_namespace(pid)

    def send(self, number: int) -> str:
        """ "sent", "gone", or why not; never raises."""
        try:
            signal.pidfd_send_signal(self.fd, number)
        except ProcessLookupError:
            return "gone"
        except OSError as error:
            return f"failed: {error.strerror}"
        return "sent"

    def is_alive(self) -> bool:
        """A pidfd turns readable when its process ended."""
        if self.fd < 0:
            return False
        poll = select.poll()
        poll.register(self.fd, select.POLLIN)
        return not poll.poll(0)

    def close(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1
