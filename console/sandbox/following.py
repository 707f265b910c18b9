"""What managed and bubblewrap share after ``prepare``: the gate, the wait, the end, and following an agent after a restart."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from functools import partial
from typing import Any

from console.domain.agent import AgentId
from console.domain.errors import Conflict, ConsoleError, NotFound, TimedOut
from console.domain.ids import ControlLevel
from console.domain.sandbox import Given
from console.sandbox import launcher
from console.sandbox.bounds import limits_of, out_of_memory
from console.sandbox.hardening import Mode, judge, refuse_unless, unseen
from console.sandbox.interface import Prepared
from console.sandbox.processes import open_process, wait_gone

NOBODY_INSIDE = "there is no Python in the sandbox to look from inside"


class Followed:
    """Holds the descriptors of this supervisor's sandboxes, by agent."""

    control_level = ControlLevel.MANAGED
    mode = Mode.MANAGED

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._launched: dict[AgentId, launcher.Launched] = {}
        self._given: dict[AgentId, tuple[Given, ...]] = {}
        self._attached: dict[AgentId, int | None] = {}
        """Agents of an earlier supervisor: the pidfd of their init, None when it had ended before we looked."""

    def _hold(self, agent_id: AgentId, launched: launcher.Launched) -> None:
        with self._lock:
            taken = agent_id in self._launched or agent_id in self._attached
            if not taken:
                self._launched[agent_id] = launched
        if taken:
            launcher.end(launched)
            launched.close()
            raise Conflict(f"Agent {agent_id} exists already.", "Release it first.")

    def _find(self, agent_id: AgentId) -> launcher.Launched | None:
        with self._lock:
            return self._launched.get(agent_id)

    def _find_attached(self, agent_id: AgentId) -> int | None:
        with self._lock:
            if agent_id not in self._attached:
                raise NotFound(f"No sandbox of agent {agent_id} is held here.", "It was released, or never prepared.")
            return self._attached[agent_id]

    def go(self, prepared: Prepared) -> None:
        """Opens the gate. Raises ConsoleError when the sandbox is gone or was opened before."""
        launched = self._find(prepared.agent_id)
        if launched is None:
            raise ConsoleError("Only a sandbox of this supervisor can be started.", "Launch the agent again.")
        launcher.open_gate(launched, partial(self._judge, prepared.agent_id, launched))

    def _judge(self, agent_id: AgentId, launched: launcher.Launched, facts: dict[str, Any] | None) -> None:
        """Raises Denied when the sandbox is not what it must be."""
        if facts is None:
            given = unseen(NOBODY_INSIDE)
        else:
            bounds = limits_of(launched.child or launched.init)
            given = judge(self.mode, {**facts, **bounds, "asked_full": launched.asked_full})
            refuse_unless(given, self.mode)
        with self._lock:
            self._given[agent_id] = given

    def hardening(self, agent_id: AgentId) -> tuple[Given, ...]:
        """What its sandbox is made of, as read back when it started; empty for an agent of an earlier supervisor."""
        with self._lock:
            return self._given.get(agent_id, ())

    def abort(self, prepared: Prepared) -> None:
        """Ends the sandbox, started or not, and lets go of it. Raises TimedOut when it has not ended in time."""
        launched = self._find(prepared.agent_id)
        if launched is not None:
            launcher.end(launched)
        else:
            self._end_attached(prepared.agent_id)
        self.release(prepared)

    def _end_attached(self, agent_id: AgentId) -> None:
        with contextlib.suppress(NotFound):
            pidfd = self._find_attached(agent_id)
            if pidfd is not None:
                with contextlib.suppress(ProcessLookupError):
                    signal.pidfd_send_signal(pidfd, signal.SIGKILL)
                if not wait_gone(pidfd, launcher.END_S):
                    raise TimedOut("The sandbox has not ended yet.", "The guard goes on killing it.")

    def wait(self, prepared: Prepared, timeout: float | None) -> int | None:
        """Exit code once the sandbox is gone; None when an earlier supervisor started it. Raises TimedOut, NotFound."""
        launched = self._find(prepared.agent_id)
        if launched is not None:
            return launcher.wait_end(launched, timeout)
        pidfd = self._find_attached(prepared.agent_id)
        if pidfd is not None and not wait_gone(pidfd, timeout):
            raise TimedOut("The agent still runs.", "")
        return None

    def ended_by(self, prepared: Prepared) -> str:
        """The memory limit, when the kernel ended something of it for that."""
        launched = self._find(prepared.agent_id)
        return out_of_memory((launched.leaf, *launched.limit_leaves)) if launched is not None else ""

    def release(self, prepared: Prepared) -> None:
        """Ends what is left in the leaf and closes every descriptor held for the agent. Twice is once."""
        with self._lock:
            launched = self._launched.pop(prepared.agent_id, None)
            pidfd = self._attached.pop(prepared.agent_id, None)
            self._given.pop(prepared.agent_id, None)
        if launched is not None:
            launcher.end_leaf(launched.leaf)
            launched.close()
        if pidfd is not None:
            os.close(pidfd)

    def reattach(self, agent_id: AgentId, pid: int, start_ticks: int, container_id: str = "") -> Prepared:
        """Follows the init of an agent that an earlier supervisor started; its exit code stays unknown."""
        with self._lock:
            if agent_id in self._launched or agent_id in self._attached:
                raise Conflict(f"Agent {agent_id} exists already.", "Release it first.")
            # Only its parent can collect an exit code (wait(2)), and this supervisor is not that.
            self._attached[agent_id] = open_process(pid, start_ticks)
        return Prepared(agent_id, pid, start_ticks, control_level=self.control_level, notes=("Its exit code will not be known.",))
