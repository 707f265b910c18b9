"""``--sandbox docker``: an agent in a hardened container that starts behind a gate and never restarts by itself.

Every call to the engine is bounded in time. A kill never depends on the engine: the guard kills the container's cgroup.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import signal
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from docker import APIClient
from docker.errors import DockerException, NotFound
from requests import RequestException

from console.domain.agent import AgentId, ControlLevel, SandboxKind
from console.domain.errors import Conflict, ConsoleError, TimedOut, Unavailable
from console.domain.errors import NotFound as NotHeld
from console.domain.network import NetworkMode
from console.sandbox import image, launcher, seccomp
from console.sandbox.container_output import Follower
from console.sandbox.docker_config import AGENT_LABEL, OUTPUT_LABEL, container_config
from console.sandbox.interface import OUTPUT_BYTES, PREPARE_S, Availability, LaunchSpec, Prepared, Ticket
from console.sandbox.processes import open_process, start_ticks, wait_gone

ENGINE_S = 30
"""Longest wait in seconds for one answer of the engine."""
DEFAULT_SOCKET = "/var/run/docker.sock"
INIT = Path(__file__).with_name("container_init.py")
_REMEDY = "Start the Docker engine, or name its socket in DOCKER_HOST."


def find_socket(engine_socket: str | None) -> str:
    """The engine's socket path: as given, else DOCKER_HOST, else the usual place. Raises Unavailable for a remote engine."""
    named = engine_socket or os.environ.get("DOCKER_HOST", "") or DEFAULT_SOCKET
    path = named.removeprefix("unix://")
    if not path.startswith("/"):
        raise Unavailable(f"{named[:100]} is not a local engine.", "Only an engine on this machine can be held: name its unix socket.")
    return path


def _knock(path: str) -> None:
    """Raises OSError when nothing listens there: docker-py would leave its own attempt's socket open."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
        sock.settimeout(ENGINE_S)
        sock.connect(path)


@dataclass(slots=True)
class Held:
    """One container of ours and what we hold open for it."""

    container_id: str
    pidfd: int | None
    """None: its init had ended before we looked."""
    gate: int = -1
    control: Path | None = None
    follower: Follower | None = None

    def shut_gate(self) -> None:
        """Closes the gate; a container that has no orders yet then ends."""
        if self.gate >= 0:
            os.close(self.gate)
            self.gate = -1


class Docker:
    """Contained agents as containers of a local engine."""

    kind = SandboxKind.DOCKER

    def __init__(self, engine_socket: str | None = None) -> None:
        self._engine_socket = engine_socket
        self._lock = threading.Lock()
        self._held: dict[AgentId, Held] = {}
        self._orders: dict[AgentId, bytes] = {}

    def available(self) -> Availability:
        """Whether an engine answers on its socket."""
        try:
            with self._engine("answer") as engine:
                version = str(engine.version().get("Version", ""))
        except ConsoleError as error:
            return Availability(False, error.what, error.remedy)
        return Availability(True, f"Docker {version[:40]} answers on {find_socket(self._engine_socket)}.")

    @contextlib.contextmanager
    def _engine(self, what: str) -> Iterator[APIClient]:
        """A client for a few calls. Whatever goes wrong between us and the engine becomes a ConsoleError."""
        path = find_socket(self._engine_socket)
        try:
            _knock(path)
            client = APIClient(base_url=f"unix://{path}", version="auto", timeout=ENGINE_S)
            with contextlib.closing(client):
                yield client
        except (DockerException, RequestException, OSError) as error:
            words = str(getattr(error, "explanation", "") or error)[:300]
            raise ConsoleError(f"The Docker engine did not {what}: {words}", _REMEDY) from error

    def prepare(self, spec: LaunchSpec, ticket: Ticket) -> Prepared:
        """A running container that waits at its gate. Raises ConsoleError, and then nothing of it is left."""
        spec.check()
        with self._lock:
            if spec.agent_id in self._held:
                raise Conflict(f"Agent {spec.agent_id} exists already.", "Release it first.")
        with self._engine("build the agent image") as engine:
            tag = image.ensure_image(engine)
        name = f"watchfloor-{spec.agent_id}-{secrets.token_hex(4)}"
        control = spec.output.parent / f".gate-{name}"
        held = Held("", None, control=control)
        try:
            with self._engine("start the container") as engine:
                os.close(launcher.open_output(spec.output))
                _furnish_control(control)
                made = engine.create_container_from_config(container_config(spec, tag, control), name)  # type: ignore[no-untyped-call]
                held.container_id = str(made["Id"])
                engine.start(held.container_id)
                held.gate = _open_gate(engine, held.container_id, control)
                pid = int(engine.inspect_container(held.container_id)["State"]["Pid"])
                ticks = start_ticks(pid)
                held.pidfd = open_process(pid, ticks)
                _check_network(pid, spec.network_mode)
            held.follower = self._follow(held.container_id, spec.output, spec.output_max_bytes)
        except ConsoleError:
            self._discard(held, name)
            raise
        with self._lock:
            self._held[spec.agent_id] = held
            self._orders[spec.agent_id] = _orders(spec)
        return _describe(spec, held, pid, ticks, made.get("Warnings") or ())

    def _follow(self, container_id: str, output: Path, limit: int) -> Follower:
        try:
            return Follower(find_socket(self._engine_socket), container_id, output, limit)
        except OSError as error:
            raise ConsoleError(f"The container's output cannot be kept: {str(error)[:300]}", _REMEDY) from error

    def _discard(self, held: Held, name: str) -> None:
        held.shut_gate()
        with contextlib.suppress(ConsoleError):
            self._remove(name)
        _let_go(held)

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
        if orders is None or held.gate < 0:
            raise ConsoleError("The container was started or ended before.", "Launch the agent again.")
        try:
            launcher.send(held.gate, orders, time.monotonic() + PREPARE_S)
        except OSError as error:
            raise ConsoleError("The container ended before it was started.", "Launch the agent again.") from error
        finally:
            held.shut_gate()
            if held.control is not None:
                (held.control / "gate").unlink(missing_ok=True)

    def abort(self, prepared: Prepared) -> None:
        """Ends the container, started or not, by its init and by the engine, and removes it. Raises ConsoleError when it stays."""
        with contextlib.suppress(NotHeld):
            held = self._find(prepared.agent_id)
            held.shut_gate()
            if held.pidfd is not None:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    signal.pidfd_send_signal(held.pidfd, signal.SIGKILL)
            self.release(prepared)

    def wait(self, prepared: Prepared, timeout: float | None) -> int | None:
        """Exit code once the container's init is gone; None when the engine cannot say. Raises TimedOut."""
        held = self._find(prepared.agent_id)
        if held.pidfd is not None and not wait_gone(held.pidfd, timeout):
            raise TimedOut("The agent still runs.", "")
        code = self._exit_code(held.container_id)
        if held.follower is not None:
            held.follower.finish(launcher.END_S)
        return code

    def _exit_code(self, container_id: str) -> int | None:
        deadline = time.monotonic() + launcher.END_S
        while True:
            try:
                with self._engine("say how the container ended") as engine:
                    state = engine.inspect_container(container_id)["State"]
            except ConsoleError:
                return None
            if not state["Running"]:
                return int(state["ExitCode"])
            if time.monotonic() > deadline:
                return None
            time.sleep(0.05)

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
                self._remove(held.container_id)
        finally:
            _let_go(held)

    def _remove(self, name: str) -> None:
        with self._engine("remove the container") as engine, contextlib.suppress(NotFound):
            engine.remove_container(name, force=True, v=True)

    def reattach(self, agent_id: AgentId, pid: int, start_ticks: int, container_id: str) -> Prepared:
        """Follows a container that an earlier supervisor started; its exit code is known as long as it is not removed."""
        held = Held(container_id, open_process(pid, start_ticks))
        try:
            with self._engine("find the container") as engine:
                config = engine.inspect_container(container_id)["Config"]
            labels = config["Labels"]
            if labels.get(AGENT_LABEL) != agent_id:
                raise Conflict(f"Container {container_id[:12]} is not agent {agent_id}'s.", "It is left alone.")
            held.follower = self._follow(container_id, Path(labels[OUTPUT_LABEL]), OUTPUT_BYTES)
        except Conflict:
            _let_go(held)
            raise
        except ConsoleError:
            pass  # the engine is away, or has forgotten it: the init's pidfd still tells when it ends
        with self._lock:
            self._held[agent_id] = held
        return Prepared(agent_id, pid, start_ticks, container_id, mask=True, control_level=ControlLevel.CONTAINED)


def _furnish_control(control: Path) -> None:
    """The folder bound at /.watchfloor: the init and the gate, readable by any uid, writable by none but ours."""
    control.mkdir(mode=0o755)
    control.chmod(0o755)
    shutil.copyfile(INIT, control / "init.py")
    (control / "init.py").chmod(0o644)
    os.mkfifo(control / "gate", 0o644)
    (control / "gate").chmod(0o644)


def _open_gate(engine: APIClient, container_id: str, control: Path) -> int:
    """The gate's writing end, once the container's init waits at the other (fifo(7): until then ENXIO)."""
    deadline = time.monotonic() + PREPARE_S
    look = time.monotonic() + 1.0
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError):
            return os.open(control / "gate", os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        if time.monotonic() > look:
            look = time.monotonic() + 1.0
            if not engine.inspect_container(container_id)["State"]["Running"]:
                said = engine.logs(container_id, tail=5).decode(errors="replace")[-300:]
                raise ConsoleError(f"The container ended before its gate: {said}", "Look at the engine's log.")
        time.sleep(0.02)
    raise TimedOut("The container did not come to its gate in time.", "Try again; look at the machine's load.")


def _check_network(pid: int, mode: NetworkMode) -> None:
    """A container that shall have no network has loopback alone: looked up, not assumed."""
    lines = Path(f"/proc/{pid}/net/dev").read_text().splitlines()[2:]
    names = sorted(line.split(":", 1)[0].strip() for line in lines)
    if mode is not NetworkMode.FULL and names != ["lo"]:
        raise ConsoleError(f"The container should have loopback only and has {', '.join(names)[:200]}.", "Look at the engine's networks.")


def _orders(spec: LaunchSpec) -> bytes:
    orders: dict[str, Any] = {
        "argv": list(spec.argv),
        "env": dict(spec.env),
        "cwd": str(spec.workspace),
        "seccomp": seccomp.program(strict=True).hex(),
    }
    return json.dumps(orders).encode()


def _describe(spec: LaunchSpec, held: Held, pid: int, ticks: int, warnings: tuple[str, ...]) -> Prepared:
    notes = [str(text)[:200] for text in warnings]
    is_full = spec.network_mode is NetworkMode.FULL
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


def _let_go(held: Held) -> None:
    if held.follower is not None:
        held.follower.stop()
    if held.pidfd is not None:
        os.close(held.pidfd)
        held.pidfd = None
    if held.control is not None:
        shutil.rmtree(held.control, ignore_errors=True)
