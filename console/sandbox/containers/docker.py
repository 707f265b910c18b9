"""``--sandbox docker``: an agent in a hardened container that starts behind a gate and never restarts by itself.

Every call to the engine is bounded in time. A kill never depends on the engine: the guard kills the container's cgroup.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import signal
import threading
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from docker import APIClient

from console.domain.agent import AgentId, SandboxKind
from console.domain.errors import Conflict, ConsoleError, TimedOut
from console.domain.errors import NotFound as NotHeld
from console.domain.ids import ControlLevel
from console.domain.network import NetworkMode
from console.domain.sandbox import Given
from console.sandbox import launcher
from console.sandbox.bounds import limits_of
from console.sandbox.containers import image
from console.sandbox.containers.config import AGENT_LABEL, CONTROL, OUTPUT_LABEL, container_config, described
from console.sandbox.containers.engine import Engine
from console.sandbox.containers.gate import PORTAL, Gate
from console.sandbox.containers.output import Follower
from console.sandbox.hardening import Mode, judge, refuse_unless
from console.sandbox.interface import OUTPUT_BYTES, Availability, LaunchSpec, Prepared, Ticket
from console.sandbox.processes import open_process, start_ticks, wait_gone


@dataclass(slots=True)
class Held:
    """One container of ours and what we hold open for it."""

    container_id: str
    pidfd: int | None
    """None: its init had ended before we looked."""
    gate: Gate | None = None
    follower: Follower | None = None
    given: tuple[Given, ...] = ()
    group: Path | None = None
    """A cgroup that we made for it; empty once it has ended."""

    def shut_gate(self) -> None:
        """Closes the gate; a container that has no orders yet then ends."""
        if self.gate is not None:
            self.gate.shut()

    def let_go(self) -> None:
        """Closes and removes all of it but the container itself."""
        if self.follower is not None:
            self.follower.stop()
        if self.pidfd is not None:
            os.close(self.pidfd)
            self.pidfd = None
        if self.gate is not None:
            self.gate.remove()
        if self.group is not None:
            with contextlib.suppress(OSError):  # the guard removes it with the leaf it lies in
                self.group.rmdir()


class Docker:
    """Contained agents as containers of a local engine."""

    kind = SandboxKind.DOCKER
    mode = Mode.RUNC
    runtime = ""
    """The engine's name of the runtime; empty: its default."""

    def __init__(self, engine_socket: str | None = None) -> None:
        self._engine = Engine(engine_socket)
        self._lock = threading.Lock()
        self._held: dict[AgentId, Held] = {}
        self._orders: dict[AgentId, bytes] = {}

    def available(self) -> Availability:
        """Whether an engine answers on its socket."""
        return self._engine.available()

    def prepare(self, spec: LaunchSpec, ticket: Ticket) -> Prepared:
        """A running container that waits at its gate. Raises ConsoleError, and then nothing of it is left."""
        spec.check()
        with self._lock:
            if spec.agent_id in self._held:
                raise Conflict(f"Agent {spec.agent_id} exists already.", "Release it first.")
        with self._engine.calls("build the agent image") as engine:
            # By digest, never by tag: a tag can be moved to another image between this check and the start.
            digest = image.ensure_image(engine)
        # The engine refuses a name twice, and a container of the same agent may still be waiting for its removal.
        name = f"watchfloor-{spec.agent_id}-{secrets.token_hex(4)}"
        control = spec.output.parent / f".gate-{name}"
        held = Held("", None, Gate(control))
        try:
            with self._engine.calls("start the container") as engine:
                os.close(launcher.open_output(spec.output))
                assert held.gate is not None
                held.gate.furnish()
                config = self._config(spec, digest, control)
                made = engine.create_container_from_config(config, name)  # type: ignore[no-untyped-call]
                held.container_id = str(made["Id"])
                engine.start(held.container_id)
                facts = held.gate.await_facts(partial(_must_run, engine, held.container_id))
                found = engine.inspect_container(held.container_id)
                pid = int(found["State"]["Pid"])
                ticks = start_ticks(pid)
                # Held before anything else is decided: from here on the number cannot be given to another process unseen.
                held.pidfd = open_process(pid, ticks)
                _check_network(pid, spec.network_mode)
                held.group = self._settle(held.container_id, ticket)
                # The engine's own description comes last and wins: what an init reports from inside is only its word.
                facts |= described(found) | limits_of(pid) | {"asked_full": not spec.network_mode.is_restricted}
                held.given = judge(self.mode, facts)
                refuse_unless(held.given, self.mode)
            held.follower = self._engine.follow(held.container_id, spec.output, spec.output_max_bytes)
        except ConsoleError:
            self._discard(held, name)
            raise
        with self._lock:
            self._held[spec.agent_id] = held
            self._orders[spec.agent_id] = _orders(spec, portal=self._forwards and spec.network_mode.is_restricted)
        described_as = _describe(spec, held, pid, ticks, made.get("Warnings") or ())
        return replace(described_as, portal_door=control / PORTAL) if self._forwards else described_as

    def _config(self, spec: LaunchSpec, digest: str, control: Path) -> dict[str, Any]:
        return container_config(spec, digest, control, self.runtime)

    _forwards = False
    """Its network cannot be entered from outside: a forwarder inside leads to the portal's socket."""

    def _settle(self, container_id: str, ticket: Ticket) -> Path | None:
        """What a runtime needs besides, while the container waits at its gate; the cgroup that was made for it, if any."""
        return None

    def hardening(self, agent_id: AgentId) -> tuple[Given, ...]:
        """As read back at the gate; empty for an agent of an earlier supervisor."""
        with self._lock:
            held = self._held.get(agent_id)
        return held.given if held is not None else ()

    def ended_by(self, prepared: Prepared) -> str:
        """The memory limit, when the kernel ended the container for it."""
        try:
            found = self._engine.inspect(prepared.container_id)
        except ConsoleError:
            return ""
        return f"memory limit {int(found['HostConfig']['Memory']) >> 20} MiB" if found["State"]["OOMKilled"] else ""

    def _discard(self, held: Held, name: str) -> None:
        held.shut_gate()
        with contextlib.suppress(ConsoleError):
            self._engine.remove(name)
        held.let_go()

    def _find(self, agent_id: AgentId) -> Held:
        with self._lock:
            held = self._held.get(agent_id)
        if held is None:
            raise NotHeld(f"No container of agent {agent_id} is held here.", "It was released, or never prepared.")
        return held

    def go(self, prepared: Prepared) -> None:
        """Hands the container its orders. Raises ConsoleError when it is gone or had them before."""
        held = self._find(prepared.agent_id)
        with self._lock:
            orders = self._orders.pop(prepared.agent_id, None)
        if orders is None or held.gate is None or not held.gate.is_open():
            raise ConsoleError("The container was started or ended before.", "Launch the agent again.")
        try:
            held.gate.give(orders)
        except OSError as error:
            raise ConsoleError("The container ended before it was started.", "Launch the agent again.") from error
        finally:
            held.shut_gate()

    def abort(self, prepared: Prepared) -> None:
        """Ends the container, started or not, by its init and by the engine, and removes it. Raises ConsoleError when it stays."""
        with contextlib.suppress(NotHeld):
            held = self._find(prepared.agent_id)
            held.shut_gate()
            if held.pidfd is not None:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    # Through the kernel first: measured, an engine under load takes seconds for a kill of its own.
                    signal.pidfd_send_signal(held.pidfd, signal.SIGKILL)
            self.release(prepared)

    def wait(self, prepared: Prepared, timeout: float | None) -> int | None:
        """Exit code once the container's init is gone; None when the engine cannot say. Raises TimedOut."""
        held = self._find(prepared.agent_id)
        if held.pidfd is not None and not wait_gone(held.pidfd, timeout):
            raise TimedOut("The agent still runs.", "")
        code = self._engine.exit_code(held.container_id, launcher.END_S)
        if held.follower is not None:
            held.follower.finish(launcher.END_S)
        return code

    def release(self, prepared: Prepared) -> None:
        """Removes the container (ending it if need be) and everything held for it. Raises ConsoleError when the engine refuses."""
        with self._lock:
            held = self._held.pop(prepared.agent_id, None)
            self._orders.pop(prepared.agent_id, None)
        if held is None:
            return
        held.shut_gate()
        try:
            if held.container_id:
                self._engine.remove(held.container_id)
        finally:
            held.let_go()

    def reattach(self, agent_id: AgentId, pid: int, start_ticks: int, container_id: str) -> Prepared:
        """Follows a container that an earlier supervisor started; its exit code is known as long as it is not removed."""
        held = Held(container_id, open_process(pid, start_ticks))
        try:
            found = self._engine.inspect(container_id)
            labels = found["Config"]["Labels"]
            if labels.get(AGENT_LABEL) != agent_id:
                raise Conflict(f"Container {container_id[:12]} is not agent {agent_id}'s.", "It is left alone.")
            held.gate = gate_of(found, Path(labels[OUTPUT_LABEL]).parent)
            held.follower = self._engine.follow(container_id, Path(labels[OUTPUT_LABEL]), OUTPUT_BYTES)
        except Conflict:
            held.let_go()
            raise
        except ConsoleError:
            pass  # the engine is away, or has forgotten it: the init's pidfd still tells when it ends
        with self._lock:
            self._held[agent_id] = held
        door = held.gate.folder / PORTAL if self._forwards and held.gate is not None else None
        return Prepared(agent_id, pid, start_ticks, container_id, mask=True, control_level=ControlLevel.CONTAINED, portal_door=door)


def gate_of(found: dict[str, Any], beside: Path) -> Gate | None:
    """The folder that a container of ours has at /.watchfloor; None unless it lies where we make them."""
    for mount in found.get("Mounts") or ():
        source = Path(str(mount.get("Source", "")))
        if mount.get("Destination") == CONTROL and source.parent == beside and source.name.startswith(".gate-watchfloor-"):
            return Gate(source)
    return None


def _must_run(engine: APIClient, container_id: str) -> None:
    """Raises ConsoleError with its last words when the container has ended."""
    if not engine.inspect_container(container_id)["State"]["Running"]:
        said = engine.logs(container_id, tail=5).decode(errors="replace")[-300:]
        raise ConsoleError(f"The container ended before its gate: {said}", "Look at the engine's log.")


def _check_network(pid: int, mode: NetworkMode) -> None:
    """A container that shall have no network has loopback alone: looked up, not assumed."""
    lines = Path(f"/proc/{pid}/net/dev").read_text().splitlines()[2:]
    names = sorted(line.split(":", 1)[0].strip() for line in lines)
    if mode.is_restricted and names != ["lo"]:
        raise ConsoleError(f"The container should have loopback only and has {', '.join(names)[:200]}.", "Look at the engine's networks.")


def _orders(spec: LaunchSpec, *, portal: bool) -> bytes:
    orders: dict[str, Any] = {
        "argv": list(spec.argv),
        "env": dict(spec.env),
        "cwd": str(spec.workspace),
        "portal": portal,
    }
    return json.dumps(orders).encode()


def _describe(spec: LaunchSpec, held: Held, pid: int, ticks: int, warnings: tuple[str, ...]) -> Prepared:
    notes = [str(text)[:200] for text in warnings]
    is_full = not spec.network_mode.is_restricted
    if is_full:
        notes.append("FULL: it reaches whatever the engine's default bridge reaches.")
    return Prepared(
        agent_id=spec.agent_id,
        pid=pid,
        start_ticks=ticks,
        container_id=held.container_id,
        notes=tuple(notes),
        netns=not is_full,
        userns=False,
        mask=True,
        control_level=ControlLevel.CONTAINED,
    )
