"""Start the shim, speak its protocol and follow what it started: the common half of ``managed`` and ``bubblewrap``.

The protocol: the spec goes down one pipe. JSON lines come back on another (``init`` a pid, ``ready``, ``error``, ``exit`` a code). One byte
``G`` on the gate starts the agent. End-of-file there ends the sandbox unstarted.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import select
import signal
import stat
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from console.domain.errors import ConsoleError, TimedOut
from console.sandbox import outside
from console.sandbox.bounds import MEMORY_FILES, lower
from console.sandbox.interface import KILLED_EXIT_CODE, PREPARE_S, LaunchSpec, Ticket
from console.sandbox.processes import start_ticks, wait_gone

SHIM = Path(__file__).with_name("shim.py")
LOOK = Path(__file__).with_name("look.py")
END_S = 10.0
"""Seconds a sandbox may take to vanish after SIGKILL."""
# The bound that the hardening table asks for (FILES_MAX); an unbounded agent could use up the machine's files.
_OPEN_FILES = 65536
_REMEDY = "watchfloor doctor shows what is missing here."
# Short, so that a frozen group is noticed before much of the time that does not count has been counted.
_LOOK_S = 0.2


@dataclass(frozen=True, slots=True)
class Plan:
    """How the shim shall start this agent; what differs between managed and bubblewrap."""

    pid_namespace: bool = False
    mount_namespace: bool = False
    net_namespace: bool = False
    drop: bool = False
    """Change to the spec's uid and gid (root only)."""
    wrap: tuple[str, ...] = ()
    """bwrap's absolute path, or empty."""
    wrap_options: tuple[str, ...] = ()
    seccomp: bytes = b""
    looker: tuple[str, ...] = ()
    """With bubblewrap: the command inside that runs look.py; empty: the sandbox cannot be checked from inside."""
    look_inside: bool = False
    """look.py has to be brought into the sandbox."""
    passed: tuple[int, ...] = ()
    """Descriptors of ours that the command inside gets, under the same numbers."""
    tied: bool = False
    """It ends together with the process that started it."""

    @property
    def looks(self) -> bool:
        """Whether what was built is looked at from inside before the agent runs."""
        return bool(self.looker) or not self.wrap


@dataclass(slots=True)
class Launched:
    """The descriptors of one sandbox. Owned by one adapter, which gives them back through ``close``."""

    init: int
    """Host pid of the shim's init."""
    init_pidfd: int
    ticks: int
    status: int
    gate: int
    leaf: str
    child: int = 0
    """Host pid of bwrap's init; 0 without bwrap."""
    child_pidfd: int = -1
    looks: bool = False
    """It reports what it sees from inside and waits for an answer once the gate is open."""
    asked_full: bool = False
    limit_leaves: tuple[str, ...] = ()
    code: int | None = None
    """The exit code the shim reported; None: none yet."""
    buffer: bytes = b""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def close(self) -> None:
        """Closes what is still open; an unopened gate ends the sandbox."""
        for name in ("gate", "status", "init_pidfd", "child_pidfd"):
            fd = getattr(self, name)
            setattr(self, name, -1)
            if fd >= 0:
                os.close(fd)


class Patience:
    """How long a sandbox may take: ``PREPARE_S``. For as long as ``is_wanted``, time in which its group is frozen does not count."""

    def __init__(self, leaf: str, is_wanted: Callable[[], bool] | None = None) -> None:
        self._events = Path(leaf, "cgroup.events")
        self._is_wanted = is_wanted
        self._left = PREPARE_S

    def wait(self, fd: int) -> bool:
        """Whether ``fd`` became readable in time."""
        while True:
            began = time.monotonic()
            if wait_gone(fd, min(_LOOK_S, self._left)):
                return True
            if self._is_wanted is None or not self._is_frozen():
                self._left -= time.monotonic() - began
            if self._left <= 0 or (self._is_wanted is not None and not self._is_wanted()):
                return False

    def _is_frozen(self) -> bool:
        """As the kernel says; unreadable reads as not."""
        try:
            return "frozen 1" in self._events.read_text()
        except OSError:
            return False


def start(spec: LaunchSpec, ticket: Ticket, plan: Plan, is_wanted: Callable[[], bool] | None = None) -> Launched:
    """A sandbox built up to its gate. Raises ConsoleError, and then nothing of it is left. ``is_wanted``: see ``Patience``."""
    pipes = _Pipes()
    shim: subprocess.Popen[bytes] | None = None
    try:
        output = pipes.add(open_output(spec.output))
        numbers = (pipes.spec[0], pipes.status[1], pipes.gate[0], output)
        shim = outside.start(str(SHIM), numbers, (*numbers, *plan.passed))
        pipes.close(*numbers)
        send(pipes.spec[1], json.dumps(shim_spec(spec, ticket, plan)).encode(), time.monotonic() + PREPARE_S)
        # The shim reads its order to end-of-file, so it waits until the last writer has closed.
        pipes.close(pipes.spec[1])
        launched = _await_ready(pipes, ticket, Patience(ticket.leaf, is_wanted))
        launched.limit_leaves = ticket.limit_leaves
        launched.looks, launched.asked_full = plan.looks, not spec.network_mode.is_restricted
        pipes.keep(launched.status, launched.gate)
        return launched
    except OSError as error:
        end_leaf(ticket.leaf)
        raise ConsoleError(f"The sandbox could not be started: {error.strerror or error}.", _REMEDY) from error
    except ConsoleError:
        end_leaf(ticket.leaf)
        raise
    finally:
        pipes.close_all()  # the gate's end-of-file ends a half-built sandbox where there is no leaf
        if shim is not None:
            _collect(shim)


class _Pipes:
    """The three pipes of one launch, each descriptor closed exactly once."""

    def __init__(self) -> None:
        self._open: set[int] = set()
        self.spec, self.status, self.gate = (self._pipe() for _ in range(3))

    def _pipe(self) -> tuple[int, int]:
        ends = os.pipe()
        self._open.update(ends)
        return ends

    def add(self, fd: int) -> int:
        self._open.add(fd)
        return fd

    def keep(self, *fds: int) -> None:
        self._open.difference_update(fds)

    def close(self, *fds: int) -> None:
        for fd in fds:
            if fd in self._open:
                self._open.discard(fd)
                os.close(fd)

    def close_all(self) -> None:
        self.close(*tuple(self._open))


def shim_spec(spec: LaunchSpec, ticket: Ticket, plan: Plan) -> dict[str, Any]:
    """What goes down the pipe: every key shim.py reads."""
    rlimits = {"RLIMIT_NOFILE": _OPEN_FILES}
    if spec.memory_max_bytes and not any(lower(ticket, name, spec.memory_max_bytes) for name in MEMORY_FILES):
        # Only where no cgroup bounds memory: this limit counts each process by itself, so a tree can exceed it.
        rlimits["RLIMIT_DATA"] = spec.memory_max_bytes
    if spec.pids_max and not lower(ticket, "pids.max", spec.pids_max) and not plan.drop:
        # Counts all processes of the account (getrlimit(2)), the operator's own too: a small number could refuse the agent its first fork.
        rlimits["RLIMIT_NPROC"] = max(spec.pids_max, 64)
    return {
        "leaf": ticket.leaf,
        "limit_leaves": list(ticket.limit_leaves),
        "pid_namespace": plan.pid_namespace,
        "mount_namespace": plan.mount_namespace,
        "net_namespace": plan.net_namespace,
        "drop": plan.drop,
        "uid": spec.uid,
        "gid": spec.gid,
        "hide": [str(path.resolve()) for path in spec.hide],
        "keep": keeps(spec),
        "cwd": str(spec.workspace),
        "argv": list(spec.argv),
        "env": dict(spec.env),
        "rlimits": rlimits,
        "output_max": spec.output_max_bytes,
        "seccomp": plan.seccomp.hex(),
        "wrap": list(plan.wrap),
        "wrap_options": list(plan.wrap_options),
        "looker": list(plan.looker),
        "look_inside": plan.look_inside,
        "look_source": str(LOOK),
        "tied": plan.tied,
    }


def keeps(spec: LaunchSpec) -> list[tuple[str, str, bool]]:
    """What stays visible under the masks: (source, path inside, read-only)."""
    door = socket_door(spec)
    result = [(str(spec.workspace), str(spec.workspace), False)]
    result += [] if spec.doorless else [(str(door), str(door), True)]
    result += [(str(source.resolve()), target, True) for source, target in spec.extra_binds]
    return result


def socket_door(spec: LaunchSpec) -> Path:
    """The agent's socket, or the folder of its own that holds it (see LaunchSpec.agent_socket)."""
    folder = spec.agent_socket.parent
    return folder if folder.name == spec.agent_id else spec.agent_socket


def open_output(path: Path) -> int:
    """The file for stdout and stderr: 0600, append, never through a link. Raises OSError."""
    # O_NONBLOCK: a FIFO that an agent put in this place would block the open until it has a reader.
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, 0o600)
    if stat.S_ISREG(os.fstat(fd).st_mode):
        os.set_blocking(fd, True)
        return fd
    os.close(fd)
    raise ConsoleError(f"{path} is not a regular file.", "Remove it.")


def _await_ready(pipes: _Pipes, ticket: Ticket, patience: Patience) -> Launched:
    init, child, buffer = 0, -1, b""
    while not init or child < 0:  # two processes report through one pipe, in either order
        line, buffer = _read_line(pipes.status[0], buffer, patience)
        message: dict[str, Any] = json.loads(line)
        if "error" in message:
            raise ConsoleError(f"The sandbox could not be built: {message['error']}.", _REMEDY)
        init = int(message.get("init", init))
        child = int(message.get("child", child))
    pidfd = pipes.add(os.pidfd_open(init))  # it waits at the gate, so the pid is its own
    ticks = start_ticks(init)
    _check_leaf(ticket.leaf, init)
    launched = Launched(init, pidfd, ticks, pipes.status[0], pipes.gate[1], ticket.leaf, buffer=buffer)
    if child:
        launched.child = child
        launched.child_pidfd = os.pidfd_open(child)
        _check_leaf_or_close(launched)
    pipes.keep(pidfd)
    return launched


def _check_leaf(leaf: str, pid: int) -> None:
    """An agent outside its leaf would be proven dead while it runs: looked up, not assumed."""
    if leaf and str(pid) not in Path(leaf, "cgroup.procs").read_text().split():
        raise ConsoleError("The sandbox is not in its cgroup.", "Restart the guard.")


def _check_leaf_or_close(launched: Launched) -> None:
    try:
        _check_leaf(launched.leaf, launched.child)
    except (ConsoleError, OSError):
        os.close(launched.child_pidfd)
        raise


def _read_line(fd: int, buffer: bytes, patience: Patience) -> tuple[bytes, bytes]:
    """(next line, rest). ConsoleError at end-of-file, TimedOut when the patience ends."""
    while b"\n" not in buffer:
        if not patience.wait(fd):
            raise TimedOut("The sandbox did not answer in time.", "Try again; look at the machine's load.")
        part = os.read(fd, 4096)
        if not part:
            raise ConsoleError("The sandbox ended before it was ready.", _REMEDY)
        buffer += part
    line, _, rest = buffer.partition(b"\n")
    return line, rest


def send(fd: int, data: bytes, deadline: float) -> None:
    """Writes all of it without ever blocking past the deadline."""
    os.set_blocking(fd, False)
    poll = select.poll()
    poll.register(fd, select.POLLOUT)
    while data:
        if not poll.poll(max(0, int((deadline - time.monotonic()) * 1000))):
            raise TimedOut("The sandbox did not take its orders in time.", "Try again; look at the machine's load.")
        with contextlib.suppress(BlockingIOError):
            data = data[os.write(fd, data) :]


def _collect(shim: subprocess.Popen[bytes]) -> None:
    """Reaps the outer shim, which ends as soon as it has forked the init."""
    try:
        shim.wait(END_S)
    except subprocess.TimeoutExpired:
        shim.kill()
        shim.wait()


def open_gate(launched: Launched, accept: Callable[[dict[str, Any] | None], None], is_wanted: Callable[[], bool] | None = None) -> None:
    """Start the agent, once ``accept`` took what was seen from inside (None: no check from inside). ``is_wanted``: see ``Patience``.

    Raises ConsoleError when its sandbox is gone, or what ``accept`` raises. Then no instruction of the agent has run.
    """
    if launched.gate < 0:
        raise ConsoleError("The sandbox was started or ended before.", "Launch the agent again.")
    try:
        if not launched.looks:
            accept(None)
        os.write(launched.gate, b"G")
        if launched.looks:
            accept(_await_facts(launched, Patience(launched.leaf, is_wanted)))
            os.write(launched.gate, b"Y")
    except OSError as error:
        raise ConsoleError("The sandbox ended before it was started.", "Launch the agent again.") from error
    finally:
        os.close(launched.gate)
        launched.gate = -1


def _await_facts(launched: Launched, patience: Patience) -> dict[str, Any]:
    """What look.py reports from inside. Raises ConsoleError, TimedOut."""
    line, launched.buffer = _read_line(launched.status, launched.buffer, patience)
    try:
        facts = json.loads(line)["facts"]
    except (ValueError, KeyError, TypeError) as error:
        raise ConsoleError(
            "The sandbox ended before it was looked at from inside.", "Its output says why; launch the agent again."
        ) from error
    if not isinstance(facts, dict):
        raise ConsoleError("What was seen from inside the sandbox cannot be read.", "Launch the agent again.")
    return facts


def wait_end(launched: Launched, timeout: float | None) -> int:
    """The exit code, once the init (and with it its PID namespace) is gone. TimedOut after ``timeout`` seconds."""
    if not wait_gone(launched.init_pidfd, timeout):
        raise TimedOut("The agent still runs.", "")
    # bwrap's init does not follow our shim into death before its gate has opened (measured), so it is sent after it.
    _kill(launched.child_pidfd)
    if launched.child_pidfd >= 0 and not wait_gone(launched.child_pidfd, END_S):
        raise TimedOut("The agent still runs.", "")
    wait_empty(launched.leaf)
    with launched.lock:
        if launched.code is None:
            launched.code = _read_code(launched)
        return launched.code


def _read_code(launched: Launched) -> int:
    """The last report in the pipe; without one the init was killed."""
    if launched.status < 0:
        return KILLED_EXIT_CODE
    os.set_blocking(launched.status, False)
    with contextlib.suppress(BlockingIOError):
        while part := os.read(launched.status, 4096):
            launched.buffer += part
    for line in reversed(launched.buffer.splitlines()):
        with contextlib.suppress(ValueError, KeyError, TypeError):
            return int(json.loads(line)["exit"])
    return KILLED_EXIT_CODE


def end(launched: Launched) -> None:
    """Ends a sandbox, started or not: gate shut, SIGKILL to its init, its leaf emptied. Raises TimedOut when it stays."""
    if launched.gate >= 0:
        os.close(launched.gate)
        launched.gate = -1
    for pidfd in (launched.child_pidfd, launched.init_pidfd):
        # bwrap's init and ours are both named: before the gate opens neither ends with the other.
        _kill(pidfd)
    end_leaf(launched.leaf)
    for pidfd in (launched.child_pidfd, launched.init_pidfd):
        if pidfd >= 0 and not wait_gone(pidfd, END_S):
            raise TimedOut("The sandbox has not ended yet.", "The guard goes on killing it.")
    if not wait_empty(launched.leaf):
        raise TimedOut("The sandbox has not ended yet.", "The guard goes on killing it.")


def _kill(pidfd: int) -> None:
    if pidfd >= 0:
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(pidfd, signal.SIGKILL)


def wait_empty(leaf: str) -> bool:
    """Whether the leaf is empty within END_S: helpers outside of the PID namespace (shim, bwrap's monitor) outlive its init by a little."""
    if not leaf:
        return True
    deadline = time.monotonic() + END_S
    try:
        with Path(leaf, "cgroup.events").open("rb", buffering=0) as events:
            poll = select.poll()
            # The kernel wakes a poller of cgroup.events at each change (cgroup-v2.rst), so nothing is read in a loop.
            poll.register(events, select.POLLPRI)
            while b"populated 1" in os.pread(events.fileno(), 4096, 0):
                if (left := deadline - time.monotonic()) <= 0:
                    return False
                poll.poll(int(left * 1000) + 1)
    except OSError as error:  # no leaf (any more): it was empty; what cannot be read is not
        return error.errno in (errno.ENOENT, errno.ENODEV)
    return True


def end_leaf(leaf: str) -> None:
    """Kills whatever is in this one agent's leaf (cgroups(7), cgroup.kill). The leaf itself belongs to the guard."""
    if leaf:
        with contextlib.suppress(OSError):
            Path(leaf, "cgroup.kill").write_text("1")
