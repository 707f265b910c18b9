"""The targets of a kill: what was asked for, how each is signalled, and what proves that nothing of it is left."""

from __future__ import annotations

import contextlib
import os
import select
import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from console.domain.kill import Outcome, Survivor, Target
from console.killswitch.kernel import processes
from console.killswitch.kernel.cgroups import Leaf, Mount, Mounts, Refused, Tree, container_folder, kind_of, members
from console.killswitch.kernel.descendants import strike
from console.killswitch.kernel.engine import Engine, EngineSilent, Running
from console.killswitch.store.registry import Entry, Held

Sending = Callable[[Callable[[], bool]], None]
"""Told that SIGKILL is about to go out, and how to see whether there is anybody it could reach."""
CAN_LEAVE_NOTE = "It may leave its cgroup and has no PID namespace: what it started elsewhere can only be looked for."
BEST_EFFORT_NOTE = "It shares this PID namespace and has no cgroup: what it started can only be looked for."


@dataclass(frozen=True, slots=True)
class Order:
    """Who asked for what."""

    kill_id: str
    scope: str
    """``all`` or a comma-separated list of agent ids."""
    reason: str
    by: str
    remote_order: str = ""

    @property
    def is_all(self) -> bool:
        return self.scope == "all"


@dataclass(frozen=True, slots=True)
class Field:
    """What a kill works on."""

    instance_id: str
    run_dir: Path
    tree: Tree | None
    engine: Engine | None
    containers_ever: bool
    spared: Callable[[], frozenset[int]]
    """Pids never signalled: the guard, the supervisor, the presser and their ancestors."""
    incomplete: str = ""
    """Why there may be agents that no aim stands for; zero is unknown then."""
    agent_uids: frozenset[int] = frozenset()
    """Other accounts than ours that agents of this instance were launched under."""


@dataclass(slots=True)
class Aim:
    """A target while it is being killed. Its methods never raise."""

    agent_id: str
    held: Held | None
    outcome: Outcome = Outcome.DYING
    ms: float | None = None
    writes: dict[str, str] = field(default_factory=dict)
    engine_answer: str = ""
    strays: list[str] = field(default_factory=list)
    why: str = ""
    engine_says_gone: bool | None = None
    """Only for a container that was never confirmed: whether the engine lists it as running."""
    loose: list[processes.Handle] = field(default_factory=list)
    """Strays of it that were alive when they were given up."""
    came_back: bool = False
    """A container that started after the kill: a target of its own."""
    amended: list[dict[str, Any]] = field(default_factory=list)
    """What the receipt said before it was found dead."""
    last_survivors: list[Survivor] = field(default_factory=list)
    """Who was left when it was given up."""

    @property
    def container_id(self) -> str:
        return self.held.entry.container_id if self.held else ""

    @property
    def control_level(self) -> str:
        return self.held.entry.control_level if self.held else "unknown"

    @property
    def is_best_effort(self) -> bool:
        """No PID namespace of its own, and no cgroup or one that it may leave: no kernel proof exists."""
        held = self.held
        if held is not None and (held.entry.can_leave or held.entry.loose):
            return True
        if held is None or held.leaf is not None or held.container is not None or held.entry.leaf or held.entry.container_leaf:
            return False
        return held.entry.kind == "process" and bool(held.entry.confirmed or held.entry.pid) and held.entry.pid_namespace == 0

    @property
    def is_pending_container(self) -> bool:
        held = self.held
        return held is not None and held.entry.kind == "container" and not held.entry.confirmed

    @property
    def is_unknown(self) -> bool:
        """No look at it can prove anything: nothing to wait for."""
        return self.held is None or bool(self.held.doubt)

    def strike(
        self,
        mount: Mount | None,
        below: Path | None,
        spare_leaf: bool = False,
        spared: Callable[[], frozenset[int]] = frozenset,
        sending: Sending = lambda is_there: None,
    ) -> None:
        """SIGKILL by every way but ``strike_descendants``. ``spare_leaf``: the one recursive write on ``agents`` has covered it.

        ``spared``: pids that no pidfd is ever used on. ``sending`` is told just before each write, its checks behind it.
        """
        if (held := self.held) is None:
            return
        if held.unopened:
            held.open()
        if held.leaf is not None and not spare_leaf:
            self.writes["cgroup.kill"] = _checked_kill(held.leaf, mount, below, sending)
        if held.container is not None:
            self.writes["container cgroup.kill"] = _checked_kill(held.container, mount, None, sending)
        # The shim of a followed agent goes last: while it lives, orphans come to it and stay in sight.
        if held.init is not None and (held.follow() is None or held.leaf is not None):
            self.writes["pidfd SIGKILL"] = _checked_signal(held, spared, sending)

    def is_zero(self) -> bool:
        """Kernel proof: cgroups unpopulated, init gone, its PID namespace empty."""
        held = self.held
        if held is None or held.doubt or held.is_populated() or any(stray.is_alive() for stray in self.loose):
            return False
        if held.closure is not None and not held.closure.is_quiet():
            return False
        if self.is_pending_container:
            return self.engine_says_gone is True
        entry = held.entry
        if held.leaf is None and held.container is None and entry.pid_namespace:
            try:
                return not processes.members(entry.pid_namespace)
            except OSError as error:
                self.why = f"Its PID namespace could not be looked at: {error.strerror}."
                return False
        return bool(entry.leaf or entry.container_leaf or entry.pid)

    def settle(self, ms: float) -> bool:
        """Looks once; True when the target is zero (now or before)."""
        if self.outcome is Outcome.DYING and self.held is not None and self.is_zero():
            self.outcome = Outcome.BEST_EFFORT if self.is_best_effort else Outcome.PROVEN_ZERO
            self.held.seen_over = True
            self.ms = round(ms, 3)
            if self.came_back:
                self.held.close()  # nobody else holds it
        return self.outcome is not Outcome.DYING and self.outcome is not Outcome.NOT_PROVEN

    def prove_late(self, ms: float) -> bool:
        """One look after it was given up: True when it is dead by now. What was said of it then is kept."""
        if not self.is_zero():
            return False
        then = {"outcome": self.outcome.value, "ms": self.ms, "why": self.why, "left": [asdict(s) for s in self.last_survivors]}
        self.amended.append(then)
        self.outcome, self.ms, self.why = Outcome.DYING, None, ""
        for stray in self.loose:
            stray.close()
        self.loose.clear()
        return self.settle(ms)

    def give_up(self, ms: float) -> None:
        """The time is over and zero was not seen."""
        if self.outcome is Outcome.DYING:
            self.outcome = Outcome.NOT_PROVEN
            self.ms = round(ms, 3)
            self.why = self.why or self._why_not()
            self.last_survivors = self.survivors()

    def _why_not(self) -> str:
        if self.held is None:
            return "Not registered with this guard: nothing is known that could be signalled."
        if self.is_pending_container and not self.held.is_populated():
            return "Its container was never confirmed and the engine does not say that it is gone."
        if self.held.doubt:
            return self.held.doubt
        if self.held.entry.adopting:
            return "It was still being moved into its cgroup."
        if self.held.unopened:
            return f"Its cgroup or its process could not be opened: {self.held.unopened}."
        return f"Still there after SIGKILL. {self.note()}".strip()

    def survivors(self) -> list[Survivor]:
        """What is left of it, with state and wait channel."""
        if self.outcome is Outcome.PROVEN_ZERO:
            return []
        found = []
        for pid in [*(self.held.pids()[:200] if self.held else []), *(stray.pid for stray in self.loose if stray.is_alive())]:
            if not processes.is_alive(pid):
                continue
            letter, why = processes.state(pid), "SIGKILL is pending" if processes.kill_is_pending(pid) else self.why
            found.append(Survivor(self.agent_id, pid, letter, processes.wait_channel(pid), processes.command_line(pid)[:200], why))
        return found

    def target(self) -> Target:
        """As the receipt shows it."""
        evidence: dict[str, Any] = {"writes": dict(self.writes)}
        if self.held is not None:
            entry = self.held.entry
            evidence |= {"cgroup": entry.leaf or entry.container_leaf, "inode": entry.inode or entry.container_inode, "pid": entry.pid}
            evidence |= {"method": self._method(), "confirmed": entry.confirmed}
            # Nobody had looked when it was pressed without a guard, and SIGKILL waits for no look: unknown, not none.
            evidence |= {"pids_before": list(self.held.before)} if self.held.looked else {"processes_before": "not looked at"}
            if entry.container_id:
                evidence |= {"container_id": entry.container_id, "container_cgroup": entry.container_leaf}
        if self.outcome is Outcome.PROVEN_ZERO:
            evidence["populated"] = 0
        extra: dict[str, Any] = {"engine": self.engine_answer, "strays": list(self.strays), "why": self.why, "note": self.note()}
        extra |= {"amended": list(self.amended), "came_back": self.came_back}
        evidence |= {key: value for key, value in extra.items() if value}
        return Target(self.agent_id, self.control_level, self.outcome, self.ms, evidence)

    def name(self) -> str:
        """For a sentence."""
        return f"{self.agent_id} (container {self.container_id[:12]})" if self.container_id else self.agent_id

    def note(self) -> str:
        """Why no kernel proof of its death is possible; empty: it is."""
        if not self.is_best_effort:
            return ""
        if self.held is not None and self.held.entry.loose:
            return f"{self.held.entry.loose}.".capitalize()
        return CAN_LEAVE_NOTE if self.held is not None and self.held.entry.can_leave else BEST_EFFORT_NOTE

    def _method(self) -> str:
        if (held := self.held) is None:
            return "none"
        if held.entry.container_leaf:
            return "cgroup.kill on the container's cgroup; proof: populated 0"
        if held.entry.leaf and held.closure is not None:
            return "cgroup.kill on its leaf, and SIGKILL to whatever left it and was found by parent or session; no proof"
        if held.entry.leaf:
            return "cgroup.kill on its leaf; proof: populated 0"
        if held.entry.pid_namespace:
            return "SIGKILL of the PID namespace's init through a pidfd; proof: pidfd readable, namespace empty"
        if held.closure is not None:
            return "SIGKILL to every descendant found by parent or session, until several looks in a row found none; no proof"
        return "SIGKILL through a pidfd"


@contextmanager
def favoured(tree: Tree | None, aims: Sequence[Aim]) -> Iterator[None]:
    """Meanwhile targets that were struck and are not confirmed dead have the most of the processors. Taken back in every ending."""
    struck = [aim for aim in aims if aim.outcome is Outcome.DYING and not aim.writes.get("cgroup.kill", "").startswith("refused")]
    groups = [aim.held.leaf.path for aim in struck if aim.held is not None and aim.held.leaf is not None]
    if tree is None or not groups:
        yield
        return
    tree.favour(groups, is_over=False)
    try:
        yield
    finally:
        tree.favour(groups, is_over=True)


def strike_descendants(aims: Iterable[Aim], spared: Callable[[], frozenset[int]], sending: Sending = lambda is_there: None) -> None:
    """Kill the targets that no kernel object holds together: each process by a pidfd, the keeper last."""
    # One walk over /proc serves all of them. So it comes after all that needs none, and never runs on the guard's loop.
    found = [(aim, aim.held, one) for aim in aims if aim.held is not None and (one := aim.held.follow()) is not None]
    if found:
        sending(lambda: True)
        for (aim, held, _), words in zip(found, strike([one for _, _, one in found], spared()), strict=True):
            aim.writes["descendants" if held.leaf else "pidfd SIGKILL"] = words


def _checked_kill(leaf: Leaf, mount: Mount | None, below: Path | None, sending: Sending) -> str:
    try:
        leaf.check(mount, below)
    except Refused as refusal:
        return f"refused: {refusal.what}"
    except OSError as error:
        return f"refused: {error.strerror}"
    sending(leaf.is_populated)
    return leaf.kill()


def _checked_signal(held: Held, spared: Callable[[], frozenset[int]], sending: Sending) -> str:
    """SIGKILL to its init: never to this process, its parent or PID 1; nor, without a cgroup that says whose it is, to one spared."""
    assert held.init is not None
    pid = held.init.pid
    if pid in (1, os.getpid(), os.getppid()) or (held.leaf is None and held.container is None and pid in spared()):
        return f"refused: process {pid} is the guard, the caller, or an ancestor of one of them"
    sending(held.init.is_alive)
    return held.init.send(signal.SIGKILL)


def watch(aims: list[Aim]) -> tuple[select.poll, dict[int, tuple[Aim, Callable[[], bool]]]]:
    """A poll that wakes for every target, and what each of its descriptors says: still alive?"""
    poll, by_fd = select.poll(), dict[int, tuple[Aim, Callable[[], bool]]]()
    for aim in aims:
        held = aim.held
        for leaf in (held.leaf, held.container) if held is not None else ():
            if leaf is not None and leaf.is_populated():
                poll.register(leaf.events_fd, select.POLLPRI)
                by_fd[leaf.events_fd] = (aim, leaf.is_populated)
        inits = [held.init] if held is not None and held.init is not None else []
        for process in (*inits, *aim.loose):
            # A pidfd of a dead process is readable at once and for ever: registered, it would make the poll spin.
            if process.is_alive():
                poll.register(process.fd, select.POLLIN)
                by_fd[process.fd] = (aim, process.is_alive)
    return poll, by_fd


def kill_listed(engine: Engine, listed: Running, mount: Mount | None) -> Aim | None:
    """Kills a container that the engine lists as running: its cgroup first, then its init, then the engine's own kill, which keeps a
    restart policy from bringing it back. Gives the target it was; None when nothing of it lives (the engine's list was late).
    """
    entry = Entry(
        listed.agent_id or listed.container_id[:12], "container", "contained", 0, confirmed=True, container_id=listed.container_id
    )
    try:
        held = _find_container(engine, entry, mount)
    except EngineSilent as error:
        held = Held(entry, doubt=f"The engine lists it as running and does not say as which process ({error}).")
    aim = Aim(entry.agent_id, held, came_back=True)
    aim.strike(mount, None)
    aim.engine_answer = engine.kill(entry.container_id)
    engine.forbid_restart(entry.container_id)
    return aim if held is not None else None


def _find_container(engine: Engine, entry: Entry, mount: Mount | None) -> Held | None:
    """The pid that the engine names counts only if that process's cgroup names the container; otherwise there is only doubt."""
    pid = engine.init_pid(entry.container_id)
    ticks = processes.start_ticks(pid) if pid > 1 else None
    if pid <= 1 or not processes.is_alive(pid):
        return None
    if ticks is None:
        return Held(entry, doubt=f"The engine says that it runs as process {pid}, which cannot be looked at.")
    if not processes.names_container(pid, entry.container_id):
        return Held(entry, doubt=f"The engine says that it runs as process {pid}, which is in no cgroup of it.")
    entry = replace(entry, pid=pid, start_ticks=ticks, pid_namespace=processes.pid_namespace(pid) or 0)
    with contextlib.suppress(OSError, Refused):
        folder = container_folder(pid, entry.container_id, mount) if mount is not None else None
        if folder is not None:
            entry = replace(entry, container_leaf=str(folder), container_inode=folder.stat().st_ino)
    held = Held(entry)
    held.open()
    return held


# Measured (kernel 6.18): of a process whose first thread has ended while others of its run, the kernel sends SIGKILL to the first thread
# alone, a zombie that takes no signal any more, and skips it at every later write since the signal is pending there. And in a threaded
# group, which an agent that is root may have made of its own, the write is refused (cgroup-v2.rst): there it is every process.

MOST_FROZEN = 100_000
AFTER_MS = 150.0
"""Since the press: before that the kernel is still at work on a fleet, and every look of ours would only delay it."""


def strike_leaderless(held: Held | None, mount: Mount | None, below: Path | None, spared: Callable[[], frozenset[int]]) -> int:
    """Send SIGKILL to zombie-led members of its cgroups; return how many. Never raises.

    Processes in ``spared`` are left alone, and groups that ``Leaf.check`` refuses (``mount``, ``below``). A threaded group is frozen first,
    so that no process in it forks ahead of us.
    """
    sent = 0
    for leaf, root in ((held.leaf, below), (held.container, None)) if held is not None else ():
        if leaf is None:
            continue
        with contextlib.suppress(Refused, OSError):
            leaf.check(mount, root)
            if is_threaded := kind_of(leaf.path) == "threaded":
                leaf.freeze(True)
            left = [pid for pid in leaf.pids() if is_threaded or processes.state(pid) == "Z"]
            never = {os.getpid(), os.getppid(), *spared()} if left else set()
            sent += sum(_send(leaf, pid) for pid in left if pid not in never)
    return sent


def _send(leaf: Leaf, pid: int) -> bool:
    with contextlib.suppress(OSError):
        descriptor = os.pidfd_open(pid)
        try:
            if pid in leaf.pids():  # whoever is held now is a member, and no one who was given its number meanwhile
                signal.pidfd_send_signal(descriptor, signal.SIGKILL)
                return True
        finally:
            os.close(descriptor)
    return False


# A task that is frozen there keeps SIGKILL pending until it is thawed, and cgroup.kill does not thaw it
# (docs/decisions/0001-kill-by-kernel-objects.md).


def thaw_v1(held: Held | None, mounts: Mounts | None, spared: Callable[[], frozenset[int]]) -> int:
    """Let the processes of a target die that a freezer of cgroup v1 holds, after SIGKILL was sent; return how many. Never raises.

    A frozen group that holds nothing else is thawed. Where other processes are frozen beside them, only the target's processes leave the
    group, for the hierarchy's root, which is never frozen. So a kill thaws no other process.
    """
    freezer = mounts.v1.get("freezer") if mounts is not None else None
    if held is None or freezer is None:
        return 0
    own = set(held.pids()) - {1, os.getpid(), os.getppid()}
    frozen: dict[Path, list[int]] = {}
    for pid in own - spared() if own else ():
        line = processes.cgroup_line(pid, "freezer")
        folder = freezer.locate(line) if line is not None else None
        if folder is not None and folder != freezer.point and _reads(folder / "freezer.state") not in ("THAWED", ""):
            frozen.setdefault(_frozen_by(folder, freezer.point), []).append(pid)
    return sum(_thaw(folder, pids, own, freezer.point) for folder, pids in frozen.items())


def _frozen_by(folder: Path, top: Path) -> Path:
    """The group that was asked to freeze: this one, or the nearest above it (freezer-subsystem.rst, self_freezing)."""
    found = folder
    while found != top and _reads(found / "freezer.self_freezing") != "1":
        found = found.parent
    return folder if found == top else found


def _thaw(folder: Path, pids: list[int], own: set[int], top: Path) -> int:
    thawed = 0
    with contextlib.suppress(OSError):
        if set(members(folder, MOST_FROZEN)) <= own:
            (folder / "freezer.state").write_text("THAWED")
            return len(pids)
    for pid in pids:
        with contextlib.suppress(OSError):
            (top / "cgroup.procs").write_text(str(pid))
            thawed += 1
    return thawed


def _reads(file: Path) -> str:
    try:
        return file.read_text().strip()
    except OSError:
        return ""
