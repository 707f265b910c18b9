"""``--sandbox none``: our own process tree. As root a leaf, PID, mount and IPC namespaces and another uid; else what there is."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

from console.domain.agent import SandboxKind
from console.domain.ids import ControlLevel
from console.sandbox import bubblewrap, launcher, outside, seccomp, session
from console.sandbox.following import Followed
from console.sandbox.interface import Availability, LaunchSpec, Prepared, Ticket
from console.sandbox.processes import start_ticks
from console.sandbox.program_access import check_program

_PROBE = "import ctypes,sys; sys.exit(0 if ctypes.CDLL(None).unshare(0x68020000) == 0 else 1)"  # PID, mount, IPC and network
_PROBE_S = 20.0
USER_NAMESPACES = "It may create user namespaces, because its program builds a sandbox of its own (agents.own_sandbox)."


class Managed(Followed):
    """Agents as processes of this machine, as firmly held as the account we run under allows."""

    kind = SandboxKind.NONE

    def available(self) -> Availability:
        """Always: what cannot be enforced is in the notes of each launch."""
        if os.geteuid() == 0:
            if may_unshare():
                return Availability(True, "Own cgroup, PID, mount and network namespaces, another uid.")
            return Availability(True, "Own cgroup and another uid; this machine refuses namespaces.", "Give the supervisor CAP_SYS_ADMIN.")
        wrapper = bubblewrap.probe()
        if wrapper.ok:
            return Availability(True, "PID and mount namespaces through bubblewrap; same uid as the operator.")
        return Availability(True, f"Best effort: no namespaces ({wrapper.reason}); same uid as the operator.", wrapper.remedy)

    def prepare(self, spec: LaunchSpec, ticket: Ticket) -> Prepared:
        """A process tree that waits at its gate. Raises ConsoleError, and then nothing of it is left."""
        spec.check()
        cut = spec.network_mode.is_restricted
        if os.geteuid() == 0:
            check_program(spec)
            names = may_unshare()
            plan = launcher.Plan(
                pid_namespace=names,
                mount_namespace=names,
                net_namespace=names and cut,
                drop=True,
                seccomp=seccomp.program(strict=False, user_namespaces=spec.user_namespaces),
            )
        elif bubblewrap.probe().ok:
            plan = launcher.Plan(
                wrap=(bubblewrap.program(),),
                wrap_options=bubblewrap.host_view_options(spec),
                seccomp=seccomp.program(strict=False, user_namespaces=spec.user_namespaces),
                # The host's files are in sight here, so the supervisor's own Python can look from inside.
                looker=(sys.executable, "-I", "-S", "-X", "utf8", str(launcher.LOOK)),
            )
        else:
            plan = launcher.Plan(seccomp=seccomp.program(strict=False, user_namespaces=spec.user_namespaces))
        launched = launcher.start(spec, ticket, plan)
        self._hold(spec.agent_id, launched)
        return _describe(spec, ticket, plan, launched, cut)


_lock = threading.Lock()
_namespaces: list[bool] = []


def may_unshare() -> bool:
    """Whether the kernel lets us make namespaces without bubblewrap; tried once, in a process of its own."""
    with _lock:
        if not _namespaces:
            command = [*outside.prefix(), sys.executable, "-I", "-S", "-c", _PROBE]
            # In a process of its own: the namespaces that were made cannot be left again.
            result = subprocess.run(command, env={}, stdin=subprocess.DEVNULL, capture_output=True, timeout=_PROBE_S, check=False)
            _namespaces.append(result.returncode == 0)
        return _namespaces[0]


def _describe(spec: LaunchSpec, ticket: Ticket, plan: launcher.Plan, launched: launcher.Launched, cut: bool) -> Prepared:
    wrapped = bool(plan.wrap)
    has_pids = plan.pid_namespace or wrapped
    pid = launched.child or launched.init
    return Prepared(
        agent_id=spec.agent_id,
        pid=pid,
        start_ticks=start_ticks(pid) if wrapped else launched.ticks,
        notes=tuple(_notes(ticket, plan, has_pids, cut)) + ((USER_NAMESPACES,) if spec.user_namespaces else ()),
        netns=plan.net_namespace or (wrapped and cut),
        userns=wrapped,
        mask=plan.mount_namespace or wrapped,
        control_level=ControlLevel.MANAGED,
    )


def _notes(ticket: Ticket, plan: launcher.Plan, has_pids: bool, cut: bool) -> list[str]:
    notes = []
    if not ticket.leaf:
        notes.append("It has no cgroup of its own.")
    if not has_pids:
        held = ticket.leaf and plan.drop  # another uid cannot write itself out of its cgroup
        notes.append("It has no PID namespace: it sees every process of its user." + ("" if held else " A stop is best effort."))
    if not (plan.mount_namespace or plan.wrap):
        notes.append("The state directory is not masked.")
    if plan.wrap and (more := session.unmasked()):
        notes.append(f"{more} more folders of ssh agents in /tmp are not masked: only {session.AGENTS_MAX} are.")
    if not plan.drop:
        notes.append("It runs under the operator's own uid: what it asks the operator's other programs to start is best effort.")
    if cut and not (plan.net_namespace or plan.wrap):
        notes.append("Its network mode is not enforced: no network namespace could be made.")
    if not plan.seccomp:
        notes.append("No system call filter: this processor is not known to it.")
    return notes
