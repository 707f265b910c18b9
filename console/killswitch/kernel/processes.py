"""What /proc says of a process, and signals that can only reach the process that was meant (pidfd and start time)."""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import select
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from console.domain.guard import AGENT_SOCKET_VARIABLE, AGENT_VARIABLE, INSTANCE_VARIABLE

CLOCK_TICKS = os.sysconf("SC_CLK_TCK")
_SIGKILL_BIT = 1 << (signal.SIGKILL - 1)
_EXITING = 0x4
"""PF_EXITING of linux/sched.h, in field 9 of /proc/PID/stat."""
_GONE = (errno.ENOENT, errno.ESRCH)
CANNOT_LOOK = (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EINTR, errno.EIO, errno.ETIMEDOUT)
"""Errors that speak of us, not of the process: what could not be looked at is never taken for gone."""


# Reading environ and cmdline takes the lock of a process's memory; one stuck in a page fault over FUSE or NFS never gives it back.
MEMORY_S = 0.5
"""A read of a process's memory is waited for that long; then the process counts as one that could not be looked at."""
MOST_WAITING = 8
RECENT_S = 0.02
"""A look at all processes that was over no longer ago is not made again."""


def _fetch(pid: int | str, name: str, limit: int = 65536) -> bytes:
    """OSError when it cannot be read; ENOENT or ESRCH when the process is gone."""
    fd = os.open(f"/proc/{pid}/{name}", os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(fd, limit)
    finally:
        os.close(fd)


def _read(pid: int | str, name: str, limit: int = 65536) -> bytes:
    try:
        return _fetch(pid, name, limit)
    except OSError:
        return b""


class _Reader(threading.Thread):
    """One read of a process's memory, on a thread of its own: a process that holds the lock of that memory can block the read forever."""

    def __init__(self, pid: int, name: str, limit: int) -> None:
        super().__init__(name="proc-memory", daemon=True)
        self._what = (pid, name, limit)
        self.data = b""
        self.error: OSError | None = OSError(errno.ETIMEDOUT, "a process does not let its memory be read")
        """What it comes to while it has not ended."""

    def run(self) -> None:
        try:
            self.data, self.error = _fetch(*self._what), None
        except OSError as error:
            self.error = error


_waiting: dict[int, _Reader] = {}
"""Reads that did not end in time, by pid."""


def _from_memory(pid: int, name: str, limit: int) -> bytes:
    """``cmdline`` or ``environ``; OSError as of ``_fetch``, and ETIMEDOUT for a process stuck in the kernel with its memory locked."""
    for stuck in [p for p, reader in list(_waiting.items()) if not reader.is_alive()]:
        _waiting.pop(stuck, None)
    reader = _Reader(pid, name, limit)
    if pid not in _waiting and len(_waiting) < MOST_WAITING:
        try:
            reader.start()
        except RuntimeError:  # no thread to be had
            return _fetch(pid, name, limit)
        reader.join(MEMORY_S)
        if reader.is_alive():
            _waiting[pid] = reader
    if reader.error is not None:
        raise reader.error
    return reader.data


def _fields(raw: bytes) -> list[bytes]:
    """Fields of /proc/PID/stat from the 3rd on (proc(5)); the name before them may hold anything, so cut at the last ')'."""
    # An agent names its own processes: "x) R 1" as a name would shift every field that is counted from the front.
    return raw[raw.rfind(b")") + 2 :].split() if b")" in raw else []


def _stat(pid: int | str) -> list[bytes]:
    return _fields(_read(pid, "stat"))


def stat_fields(pid: int) -> list[bytes]:
    """/proc/PID/stat from field 3 on, the state; empty when it cannot be read."""
    return _stat(pid)


def ticks_now() -> int:
    """Now, as field 22 of /proc/PID/stat counts."""
    return int(time.clock_gettime(time.CLOCK_BOOTTIME) * CLOCK_TICKS)


def start_ticks(pid: int) -> int | None:
    """Field 22; None when the process is gone, or when it cannot be read: that alone says nothing of its end."""
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


def own_line(*pids: int) -> frozenset[int]:
    """These processes, this one, and everything above them."""
    return frozenset().union(*(ancestors(pid) for pid in {os.getpid(), *pids} if pid > 1))


def raise_descriptors() -> None:
    """As many open files as this process may have: each agent takes up to nine."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def is_alive(pid: int) -> bool:
    """There, and not a zombie in all its threads. What cannot be read, though it is not gone, counts as alive."""
    try:
        fields = _fields(_fetch(pid, "stat"))
    except OSError as error:
        return error.errno not in _GONE
    if not fields or fields[0] == b"X":
        return False
    return fields[0] != b"Z" or _has_live_thread(pid)


def is_the_same(pid: int, ticks: int) -> bool:
    """Whether the process with that start time is alive. What cannot be read, though it is not gone, counts as alive."""
    return start_ticks(pid) in (ticks, None) and is_alive(pid)


def is_ending(pid: int) -> bool:
    """Whether the kernel is taking every thread of a process down: its memory is gone, and its files hide from all but root until they are
    closed. What cannot be read, though it is not gone, counts as going on."""
    try:
        threads = set(os.listdir(f"/proc/{pid}/task"))  # noqa: PTH208 - names alone
        for thread in threads:
            if not _is_exiting(pid, thread):
                return False
        # A thread that goes on was listed the first time, or was begun by one since: then it is listed now.
        return bool(threads) and set(os.listdir(f"/proc/{pid}/task")) <= threads  # noqa: PTH208
    except OSError as error:
        return error.errno in _GONE


def _is_exiting(pid: int, thread: str) -> bool:
    try:
        fields = _fields(_fetch(pid, f"task/{thread}/stat"))
    except OSError as error:
        if error.errno not in _GONE:
            raise
        return True
    return not fields or fields[0] in (b"Z", b"X") or bool(int(fields[6]) & _EXITING)


def _has_live_thread(pid: int) -> bool:
    """Whether a process whose first thread has ended goes on in others: /proc calls it a zombie all the same."""
    try:
        with os.scandir(f"/proc/{pid}/task") as tasks:
            threads = [task.name for task in tasks if task.name != str(pid)]
    except OSError as error:
        return error.errno not in _GONE
    return any(_stat(f"{pid}/task/{thread}")[:1] not in ([b"Z"], [b"X"]) for thread in threads)  # one that ended meanwhile: look again


def cgroup_line(pid: int | str, controller: str = "") -> str | None:
    """The path /proc/PID/cgroup gives for a v1 controller, or for cgroup v2 (""); None when it cannot be told."""
    for line in _read(pid, "cgroup").decode(errors="replace").splitlines():
        number, _, rest = line.partition(":")
        names, _, path = rest.partition(":")
        if (number == "0" and not names) if not controller else controller in names.split(","):
            return path.removesuffix(" (deleted)")
    return None


def names_container(pid: int, container_id: str) -> bool:
    """Whether the process is in a cgroup (of any hierarchy) that bears the container's id."""
    return any(container_id.encode() in line for line in _read(pid, "cgroup").splitlines()) if container_id else False


def short_name(pid: int) -> str:
    """What the kernel calls it: 15 bytes of the program's name, or what it gave itself."""
    return _read(pid, "comm", 64).decode(errors="replace").strip()


def uids(pid: int) -> set[int]:
    """Real, effective, saved and filesystem uid; empty when unknown."""
    for line in _read(pid, "status").splitlines():
        if line.startswith(b"Uid:"):
            return {int(word) for word in line.split()[1:]}
    return set()


def namespace_depth(pid: int | str) -> int:
    """In how many PID namespaces a process is, from here inwards (NSpid of proc_pid_status(5)); 0 when it is gone."""
    for line in _read(pid, "status").splitlines():
        if line.startswith(b"NSpid:"):
            return len(line.split()) - 1
    return 0


def process_of(thread: int) -> int:
    """The process that a thread is of; 0 when it is gone."""
    for line in _read(thread, "status").splitlines():
        if line.startswith(b"Tgid:"):
            return int(line.split()[1])
    return 0


def pid_namespace(pid: int | str) -> int | None:
    """Inode of the PID namespace; None when it cannot be read."""
    try:
        return _namespace(pid)
    except OSError:
        return None


def _namespace(pid: int | str) -> int | None:
    """None when the process is gone or hides it; OSError when we cannot look."""
    try:
        return os.stat(f"/proc/{pid}/ns/pid").st_ino  # noqa: PTH116 - of every process, again and again
    except OSError as error:
        if error.errno in CANNOT_LOOK:
            raise
        return None


def every_pid() -> list[int]:
    """All processes that /proc shows; none when they cannot be listed, so this proves nothing."""
    try:
        return _list_pids()
    except OSError:
        return []


def _list_pids() -> list[int]:
    with os.scandir("/proc") as entries:
        return [int(entry.name) for entry in entries if entry.name.isdigit()]


class _Seen(NamedTuple):
    """A look at everybody's namespace."""

    began: float
    over: float
    """CLOCK_MONOTONIC."""
    by_namespace: dict[int, list[int]]


_seen = _Seen(-1.0, -1.0, {})
"""The newest one."""
_looking = threading.Lock()


def members(namespace: int, *, since: float | None = None) -> list[int]:
    """Live processes of a PID namespace, as far as their links can be read. OSError when we cannot look.

    A look that was over just now serves for many agents; with ``since`` (CLOCK_MONOTONIC) any one that began then or later.
    """
    global _seen
    with _looking:
        began = time.monotonic()
        if began - _seen.over >= RECENT_S if since is None else _seen.began < since:
            found: dict[int, list[int]] = {}
            for pid in _list_pids():
                found.setdefault(_namespace(pid) or 0, []).append(pid)
            _seen = _Seen(began, time.monotonic(), found)
        there = _seen.by_namespace.get(namespace, ())
    return [pid for pid in there if is_alive(pid)]


def children(pid: int) -> list[int]:
    """Its children now, of each of its threads (proc(5): reliable only while it is frozen or stopped). Empty when it is gone."""
    found = list[int]()
    try:
        tasks = [task.name for task in Path(f"/proc/{pid}/task").iterdir()]
    except OSError:
        return found
    for task in tasks:
        found += [int(word) for word in _read(pid, f"task/{task}/children", 1 << 16).split()]
    return found


def command_line(pid: int, limit: int = 400) -> str:
    """For people; hostile text. Empty when it cannot be read, for whatever reason."""
    try:
        return _from_memory(pid, "cmdline", limit).replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        return ""


def link(pid: int, name: str) -> str:
    """Where ``exe`` or ``cwd`` leads; empty when this account cannot see it."""
    try:
        return os.readlink(f"/proc/{pid}/{name}")  # noqa: PTH115 - of every process, again and again
    except OSError:
        return ""


def describe(pid: int) -> dict[str, object]:
    """Evidence of one process."""
    return {"pid": pid, "start": start_ticks(pid), "exe": link(pid, "exe")[:200], "cmdline": command_line(pid)[:200]}


def wait_channel(pid: int) -> str:
    """Return where in the kernel the process waits, when that can be read."""
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
    """Processes with an agent's id and this instance's id or socket folder in their environment. Evidence, not coverage.

    OSError when we cannot look; at the end, when it is one process that does not let itself be looked at.
    """
    closed: OSError | None = None
    id_mark = f"{AGENT_VARIABLE}=".encode()
    instance_marks = (f"{INSTANCE_VARIABLE}={instance_id}".encode(), f"{AGENT_SOCKET_VARIABLE}={run_dir}/".encode())
    for pid in _list_pids():
        try:
            raw = environment(pid)
        except OSError as error:
            if error.errno != errno.ETIMEDOUT:
                raise
            closed = error
            continue
        if id_mark not in raw:
            continue
        variables = raw.split(b"\0")
        if not any(v == instance_marks[0] or v.startswith(instance_marks[1]) for v in variables):
            continue
        started = start_ticks(pid)
        named = next((v[len(id_mark) :] for v in variables if v.startswith(id_mark)), b"")
        if started is not None and named:
            yield Marked(pid, started, named.decode(errors="replace")[:63])
    if closed is not None:
        raise closed


def arguments(pid: int) -> bytes:
    """NUL between the words: a claim. Empty when they cannot be read, for whatever reason."""
    try:
        return _from_memory(pid, "cmdline", 16384)
    except OSError:
        return b""


def instance_mark(pid: int) -> str:
    """The instance that its environment names, or empty: evidence, which anybody can write. OSError when we cannot look."""
    mark = f"{INSTANCE_VARIABLE}=".encode()
    named = next((v[len(mark) :] for v in environment(pid).split(b"\0") if v.startswith(mark)), b"")
    return named.decode(errors="replace")[:63]


def environment(pid: int) -> bytes:
    """Empty when it is gone or hidden from us; OSError when we cannot look."""
    try:
        return _from_memory(pid, "environ", 1 << 20)
    except OSError as error:
        if error.errno in CANNOT_LOOK:
            raise
        return b""


def send_once(pid: int, ticks: int, number: int) -> str:
    """Sends a signal to the process with that start time: empty when it was sent, else why not. Never raises."""
    try:
        handle = Handle(pid, ticks)
    except OSError as error:
        return "it has ended" if isinstance(error, ProcessLookupError) else f"it could not be opened: {error.strerror or error}"
    try:
        said = handle.send(number)
    finally:
        handle.close()
    return "" if said == "sent" else said


class Handle:
    """One process held by a pidfd: pid reuse cannot confuse it (pidfd_open(2))."""

    def __init__(self, pid: int, ticks: int) -> None:
        """ProcessLookupError when the process with that start time is not there (any more); OSError when we cannot look."""
        if pid <= 1:
            raise ProcessLookupError(f"pid {pid} is never signalled")
        self.pid = pid
        self.start_ticks = ticks
        self.fd = os.pidfd_open(pid)
        try:
            fields = _fields(_fetch(pid, "stat"))
            if len(fields) <= 19 or int(fields[19]) != ticks:
                raise ProcessLookupError(f"pid {pid} is not the process that was meant")
            self.namespace = _namespace(pid)
        except OSError:
            self.close()
            raise

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
