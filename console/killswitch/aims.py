"""One target of a kill: how it is signalled, and what proves that nothing of it is left."""

from __future__ import annotations

import contextlib
import os
import signal
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from console.domain.kill import Outcome, Survivor, Target
from console.killswitch import processes
from console.killswitch.cgroups import Leaf, Mount, Refused, container_folder
from console.killswitch.engine_socket import Engine, EngineSilent
from console.killswitch.registry import Held

CAN_LEAVE_NOTE = "It may leave its cgroup and has no PID namespace: what it started elsewhere can only be looked for."
BEST_EFFORT_NOTE = "It shares this PID namespace and has no cgroup: what it started can only be looked for."


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
        if held is not None and held.entry.can_leave:
            return True
        if held is None or held.leaf is not None or held.container is not None or held.entry.leaf or held.entry.container_leaf:
            return False
        return held.entry.kind == "process" and held.entry.confirmed and held.entry.pid_namespace == 0

    @property
    def is_pending_container(self) -> bool:
        held = self.held
        return held is not None and held.entry.kind == "container" and not held.entry.confirmed

    @property
    def is_unknown(self) -> bool:
        """No look at it can prove anything: nothing to wait for."""
        return self.held is None or bool(self.held.doubt)

    def strike(self, mount: Mount | None, below: Path | None, spare_leaf: bool = False) -> None:
        """SIGKILL by every way there is. ``spare_leaf``: the one recursive write on ``agents`` has covered the leaf."""
        held = self.held
        if held is None:
            return
        if held.unopened:
            held.open()
        if held.leaf is not None and not spare_leaf:
            self.writes["cgroup.kill"] = _checked_kill(held.leaf, mount, below)
        if held.container is not None:
            self.writes["container cgroup.kill"] = _checked_kill(held.container, mount, None)
        if held.init is not None and not self._is_ours(held.init.pid):
            self.writes["pidfd SIGKILL"] = held.init.send(signal.SIGKILL)

    def _is_ours(self, pid: int) -> bool:
        return pid in (1, os.getpid(), os.getppid())

    def is_zero(self) -> bool:
        """Kernel proof: cgroups unpopulated, init gone, its PID namespace empty."""
        held = self.held
        if held is None or held.doubt or held.is_populated():
            return False
        if self.is_pending_container:
            return self.engine_says_gone is True
        entry = held.entry
        if held.leaf is None and held.container is None and entry.pid_namespace:
            return self._is_empty(entry.pid_namespace)
        return bool(entry.leaf or entry.container_leaf or entry.pid)

    def _is_empty(self, namespace: int) -> bool:
        try:
            return not processes.members(namespace)
        except OSError as error:
            self.why = f"Its PID namespace could not be looked at: {error.strerror}."
            return False

    def settle(self, ms: float) -> bool:
        """Looks once; True when the target is zero (now or before)."""
        if self.outcome is Outcome.DYING and self.is_zero():
            self.outcome = Outcome.BEST_EFFORT if self.is_best_effort else Outcome.PROVEN_ZERO
            self.ms = round(ms, 3)
        return self.outcome is not Outcome.DYING and self.outcome is not Outcome.NOT_PROVEN

    def give_up(self, ms: float) -> None:
        """The time is over and zero was not seen."""
        if self.outcome is Outcome.DYING:
            self.outcome = Outcome.NOT_PROVEN
            self.ms = round(ms, 3)
            self.why = self.why or self._why_not()

    def _why_not(self) -> str:
        if self.held is None:
            return "Not registered with this guard: nothing is known that could be signalled."
        if self.is_pending_container and not self.held.is_populated():
            return "Its container was never confirmed and the engine does not say that it is gone."
        if self.held.doubt:
            return self.held.doubt
        if self.held.unopened:
            return f"Its cgroup or its process could not be opened: {self.held.unopened}."
        return f"Still there after SIGKILL. {self._note()}".strip()

    def survivors(self) -> list[Survivor]:
        """What is left of it, with state and wait channel."""
        if self.held is None or self.outcome is Outcome.PROVEN_ZERO:
            return []
        found = []
        for pid in self.held.pids()[:200]:
            letter = processes.state(pid)
            if not processes.is_alive(pid):
                continue
            why = "SIGKILL is pending" if processes.kill_is_pending(pid) else self.why
            found.append(Survivor(self.agent_id, pid, letter, processes.wait_channel(pid), processes.command_line(pid)[:200], why))
        return found

    def target(self) -> Target:
        """As the receipt shows it."""
        evidence: dict[str, Any] = {"writes": dict(self.writes)}
        if self.held is not None:
            entry = self.held.entry
            evidence |= {"cgroup": entry.leaf or entry.container_leaf, "inode": entry.inode or entry.container_inode, "pid": entry.pid}
            evidence |= {"pids_before": list(self.held.before), "method": self._method(), "confirmed": entry.confirmed}
            if entry.container_id:
                evidence |= {"container_id": entry.container_id, "container_cgroup": entry.container_leaf}
        if self.outcome is Outcome.PROVEN_ZERO:
            evidence["populated"] = 0
        extra = {"engine": self.engine_answer, "strays": list(self.strays), "why": self.why, "note": self._note()}
        evidence |= {key: value for key, value in extra.items() if value}
        return Target(self.agent_id, self.control_level, self.outcome, self.ms, evidence)

    def _note(self) -> str:
        if not self.is_best_effort:
            return ""
        return CAN_LEAVE_NOTE if self.held is not None and self.held.entry.can_leave else BEST_EFFORT_NOTE

    def _method(self) -> str:
        held = self.held
        if held is None:
            return "none"
        if held.entry.container_leaf:
            return "cgroup.kill on the container's cgroup; proof: populated 0"
        if held.entry.leaf:
            return "cgroup.kill on its leaf; proof: populated 0"
        if held.entry.pid_namespace:
            return "SIGKILL of the PID namespace's init through a pidfd; proof: pidfd readable, namespace empty"
        return "SIGKILL through a pidfd"


def _checked_kill(leaf: Leaf, mount: Mount | None, below: Path | None) -> str:
    try:
        leaf.check(mount, below)
    except Refused as refusal:
        return f"refused: {refusal.what}"
    except OSError as error:
        return f"refused: {error.strerror}"
    return leaf.kill()


def kill_running_container(engine: Engine, container_id: str, mount: Mount | None) -> int:
    """Kills a container that the engine lists as running: cgroup first, then its init, then the engine's own kill.

    Gives its init's pid when that was alive, 0 when the engine's list was only late.
    """
    pid = 0
    with contextlib.suppress(EngineSilent):
        pid = engine.init_pid(container_id)
    alive = pid > 1 and processes.is_alive(pid)
    if alive and mount is not None:
        with contextlib.suppress(OSError, Refused):
            leaf = Leaf(container_folder(pid, container_id, mount))
            try:
                _checked_kill(leaf, mount, None)
            finally:
                leaf.close()
    engine.kill(container_id)
    return pid if alive else 0
