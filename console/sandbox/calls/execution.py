"""One judged call in a sandbox of its own: bubblewrap as for a contained agent, without network and without any socket of ours.

The same launch as an agent's (shim, gate, look from inside), in a group below the agent's own leaf. It does not outlive its supervisor,
and whatever it leaves in its PID namespace or its group ends with it.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import secrets
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from console.domain.agent import AgentId
from console.domain.errors import TimedOut, Unavailable, UsageProblem
from console.domain.network import STRICTEST
from console.domain.sandbox import Given
from console.sandbox import bubblewrap, launcher, seccomp
from console.sandbox.bounds import limits_of, out_of_memory
from console.sandbox.calls.plans import Plan
from console.sandbox.hardening import Mode, judge, refuse_unless
from console.sandbox.interface import KILLED_EXIT_CODE, LaunchSpec, Ticket

STEPS = Path(__file__).with_name("steps.py")
# It must fit into one pipe, which an ordinary account may enlarge to 1 MiB (pipe(7), pipe-max-size).
PLAN_BYTES = 512 * 1024
SAID_BYTES = 64 * 1024
"""Of what bubblewrap itself says."""
# A step of the same account may write into this pipe without end; what comes after this is not read.
REPORT_BYTES = 256 * 1024
REFUSED_CHARS = 400
# F_SEAL_SEAL closes the set: nothing that holds the descriptor can take a seal away or add one.
_SEALS = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
_F_SETPIPE_SZ = 1031


@dataclass(frozen=True, slots=True)
class CallSpec:
    """Where and how tightly a plan is carried out."""

    agent_id: AgentId
    workspace: Path
    uid: int
    gid: int
    env: dict[str, str]
    hide: tuple[Path, ...]
    pids_max: int
    memory_max_bytes: int
    cpus: float
    scratch: Path
    """A file that is gone as soon as the sandbox stands: what bubblewrap says goes there."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a call came to its end, as its own first process told it."""

    code: int
    signal: int = 0
    refused: str = ""
    """Why a step was not executed though the call was judged: something is not what it was."""
    steps: tuple[tuple[int, int], ...] = ()
    """(number of the step, its exit code)"""


class Execution:
    """A sandbox that waits at its gate, then runs one plan. Owned by one task, which gives it back through ``close``."""

    def __init__(self, spec: CallSpec, launched: launcher.Launched, stdout: int, stderr: int, report: int, token: str) -> None:
        self.spec, self.launched = spec, launched
        self.stdout, self.stderr = stdout, stderr
        """Read ends, not blocking: what the steps write."""
        self._report, self._token, self._said = report, token, b""
        self.given: tuple[Given, ...] = ()

    @property
    def pidfd(self) -> int:
        """Readable once everything in its PID namespace has ended."""
        return self.launched.init_pidfd

    @property
    def process(self) -> tuple[int, int]:
        """(host pid, start time) of the first process in the sandbox."""
        return self.launched.init, self.launched.ticks

    def go(self, is_wanted: Callable[[], bool]) -> None:
        """Opens the gate once it was looked at from inside. Raises ConsoleError when it is not as hard as it must be."""
        launcher.open_gate(self.launched, self._judge, is_wanted)

    def _judge(self, facts: dict[str, Any] | None) -> None:
        bounds = limits_of(self.launched.child or self.launched.init)
        self.given = judge(Mode.BUBBLEWRAP, {**(facts or {}), **bounds, "asked_full": False})
        refuse_unless(self.given, Mode.BUBBLEWRAP)

    def finish(self) -> bool:
        """Ends whatever is left of it; whether the kernel says that nothing is. Blocks; twice is once."""
        try:
            launcher.end(self.launched)
        except TimedOut:
            return False
        return True

    def ended(self) -> Ended:
        """What its first process told, after the end; without a word of it, it was killed."""
        code, signal_number, refused, steps = self._code(), 0, "", []
        for message in self._messages():
            if "refused" in message:
                refused = str(message["refused"])[:REFUSED_CHARS]
                continue
            # Where we share its uid a step may have found out the word: nothing here is believed to have a shape.
            with contextlib.suppress(ValueError, KeyError, TypeError, OverflowError):
                step = (int(message["step"]), int(message["code"]))
                signal_number = int(message["signal"])
                steps.append(step)
        return Ended(code, signal_number if code == 128 + signal_number else 0, refused, tuple(steps))

    def _code(self) -> int:
        try:
            return launcher.wait_end(self.launched, 0.0)
        except TimedOut:
            return KILLED_EXIT_CODE

    def _messages(self) -> Iterable[dict[str, Any]]:
        with contextlib.suppress(BlockingIOError):
            while len(self._said) < REPORT_BYTES and (part := os.read(self._report, 65536)):
                self._said += part
        for line in self._said.splitlines():
            with contextlib.suppress(ValueError, KeyError, TypeError, RecursionError):
                message = json.loads(line)
                if secrets.compare_digest(str(message["token"]), self._token):
                    yield message

    def hit(self) -> str:
        """Which limit of ours something of it ran into, in words; empty: none."""
        leaves = (self.launched.leaf, *self.launched.limit_leaves)
        return out_of_memory(leaves) or _out_of_processes(leaves)

    def close(self) -> None:
        """Gives every descriptor back. Twice is once."""
        self.launched.close()
        for name in ("stdout", "stderr", "_report"):
            fd = getattr(self, name)
            setattr(self, name, -1)
            if fd >= 0:
                os.close(fd)


def why_not() -> str:
    """Why no call can be executed on this host; empty: it can."""
    available = bubblewrap.probe()
    if not available.ok:
        return available.reason
    return "" if bubblewrap.looker() else "the sandbox has no Python, which must start the checked programs one by one"


def start(spec: CallSpec, plan: Plan, ticket: Ticket, is_wanted: Callable[[], bool]) -> Execution:
    """A sandbox built up to its gate. Raises ConsoleError, and then nothing of it is left.

    A freeze of its agent holds it, for as long as ``is_wanted``.
    """
    if not ticket.leaf:
        raise Unavailable("Executing calls is not available, because the agent has no cgroup here.", "watchfloor doctor says why.")
    # A step may write into the report's pipe; only a line with this word comes from the first process.
    token = secrets.token_hex(16)
    text = json.dumps(
        {"token": token, "workspace": str(spec.workspace), "steps": list(plan.steps), "rlimits": {"RLIMIT_NPROC": spec.pids_max}}
    ).encode()
    if len(text) > PLAN_BYTES:
        raise UsageProblem("The call's arguments are too long to be executed.", "Put the input into a file.")
    fds = _Descriptors()
    try:
        taken = fds.taken(text, plan.code)
        out_r, err_r, report_r = fds.own
        numbers = [str(number) for number in taken]
        command = (*bubblewrap.looker()[:-1], f"/proc/self/fd/{taken[-1]}", *numbers)
        launch = _launch_spec(spec, command)
        launched = launcher.start(launch, ticket, _launch_plan(launch, fds.passed), is_wanted)
        fds.keep(out_r, err_r, report_r)
        return Execution(spec, launched, out_r, err_r, report_r, token)
    except OSError as error:
        raise Unavailable(f"The call's sandbox could not be started: {error.strerror}.", "watchfloor doctor says why.") from error
    finally:
        with contextlib.suppress(OSError):
            spec.scratch.unlink()
        fds.close()


def _launch_spec(spec: CallSpec, command: tuple[str, ...]) -> LaunchSpec:
    return LaunchSpec(
        agent_id=spec.agent_id,
        argv=command,
        env=spec.env,
        workspace=spec.workspace,
        agent_socket=spec.scratch,
        output=spec.scratch,
        network_mode=STRICTEST,
        hide=spec.hide,
        uid=spec.uid,
        gid=spec.gid,
        # Bounded by the guard in its group, and by steps.py in its own user namespace: a limit set out here would count others of this uid.
        pids_max=0,
        memory_max_bytes=spec.memory_max_bytes,
        cpus=spec.cpus,
        output_max_bytes=SAID_BYTES,
        # A call is judged before it runs, so it needs no way to ask for more; an agent's socket would be one.
        doorless=True,
    )


def _launch_plan(spec: LaunchSpec, passed: tuple[int, ...]) -> launcher.Plan:
    is_root = os.geteuid() == 0
    spec.check()
    return launcher.Plan(
        mount_namespace=is_root,
        drop=is_root,
        wrap=(bubblewrap.program(),),
        wrap_options=bubblewrap.contained_options(spec),
        seccomp=seccomp.program(strict=True),
        looker=bubblewrap.looker(),
        look_inside=True,
        passed=passed,
        # A call without a supervisor has no listener for its output and no clock, so it ends with it.
        tied=True,
    )


class _Descriptors:
    """The pipes and memory files of one call, each closed exactly once."""

    def __init__(self) -> None:
        self._open: set[int] = set()
        self.own: tuple[int, ...] = ()
        self.passed: tuple[int, ...] = ()

    def taken(self, plan: bytes, code: bytes | None) -> tuple[int, ...]:
        """The six descriptors of steps.py: plan, report, stdout, stderr, code (-1: none), its own text."""
        pipes = [self._pipe() for _ in range(4)]
        fcntl.fcntl(pipes[0][1], _F_SETPIPE_SZ, max(len(plan), 4096))
        # Nothing reads it yet: a plan that does not fit must fail here and not hang the supervisor's thread.
        os.set_blocking(pipes[0][1], False)
        if os.write(pipes[0][1], plan) != len(plan):
            raise BlockingIOError(11, "the plan does not fit into a pipe")
        self._close(pipes[0][1])
        self.own = tuple(pipe[0] for pipe in (pipes[2], pipes[3], pipes[1]))
        for fd in self.own:
            os.set_blocking(fd, False)
        sealed = -1 if code is None else self._sealed(code)
        found = (pipes[0][0], pipes[1][1], pipes[2][1], pipes[3][1], sealed, self._sealed(STEPS.read_bytes()))
        self.passed = tuple(fd for fd in found if fd >= 0)
        return found

    def _pipe(self) -> tuple[int, int]:
        ends = os.pipe()
        self._open.update(ends)
        return ends

    def _sealed(self, content: bytes) -> int:
        """Return a memory file that no process can change any more (memfd_create(2), F_ADD_SEALS)."""
        fd = os.memfd_create("watchfloor", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        self._open.add(fd)
        with open(fd, "wb", closefd=False) as file:  # noqa: PTH123 - a descriptor
            file.write(content)
        os.lseek(fd, 0, os.SEEK_SET)
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, _SEALS)
        return fd

    def keep(self, *fds: int) -> None:
        self._open.difference_update(fds)

    def _close(self, fd: int) -> None:
        self._open.discard(fd)
        os.close(fd)

    def close(self) -> None:
        for fd in tuple(self._open):
            self._close(fd)


def _out_of_processes(leaves: Iterable[str]) -> str:
    """``processes limit 64`` when the kernel refused a fork of this call for it (cgroup-v2.rst, pids.events)."""
    for folder in map(Path, leaves):
        with contextlib.suppress(OSError, ValueError):
            words = dict(line.split() for line in (folder / "pids.events").read_text().splitlines())
            if int(words.get("max", 0)):
                return f"processes limit {(folder / 'pids.max').read_text().strip()}"
    return ""
