"""Containers of ours that stand dead in the engine because their supervisor ended before it could take them away.

Only what bears this instance's label, and whose id the caller knows from its own ledger, is ever removed; a running one never: the
engine itself refuses that. What it wrote is kept first, up to the output's bound, in the agent's output file.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from console.domain.errors import Conflict, ConsoleError
from console.sandbox import launcher
from console.sandbox.containers.config import AGENT_LABEL, INSTANCE_LABEL
from console.sandbox.containers.docker import gate_of
from console.sandbox.containers.engine import Engine
from console.sandbox.interface import OUTPUT_BYTES

OVER = ("exited", "dead")
_REMEDY = "It is tried again; docker ps -a shows it."


@dataclass(frozen=True, slots=True)
class Left:
    """One of them."""

    container_id: str
    agent_id: str
    """As its label says; hostile."""


class LeftContainers:
    """Of one instance. Every call blocks, and is bounded in time."""

    def __init__(self, engine_socket: str | None, instance_id: str) -> None:
        self._engine, self._instance_id = Engine(engine_socket), instance_id

    def find(self) -> list[Left]:
        """Those that are over. ConsoleError when the engine does not say."""
        with self._engine.calls("list its dead containers", remedy=_REMEDY) as engine:
            listed = engine.containers(all=True, filters={"label": f"{INSTANCE_LABEL}={self._instance_id}", "status": list(OVER)})
            return [Left(str(c["Id"]), str((c.get("Labels") or {}).get(AGENT_LABEL, ""))) for c in listed]

    def remove(self, left: Left, output: Path) -> None:
        """Keeps what it wrote in ``output``, then removes it. ConsoleError when either fails, Conflict when it is not what it was."""
        with self._engine.calls("remove a dead container", remedy=_REMEDY) as engine:
            found = engine.inspect_container(left.container_id)
            labels, state = found["Config"]["Labels"] or {}, found["State"]
            if (labels.get(INSTANCE_LABEL), labels.get(AGENT_LABEL)) != (self._instance_id, left.agent_id):
                raise Conflict(f"Container {left.container_id[:12]} bears other labels than it did.", "It is left alone.")
            if state["Running"] or state.get("Paused") or state.get("Restarting") or state["Status"] not in OVER:
                raise Conflict(
                    f"Container {left.container_id[:12]} is {str(state['Status'])[:20]} again.", "Kill its agent; it is left alone."
                )
            follower = self._engine.follow(left.container_id, output, OUTPUT_BYTES)
            # The log goes with the container, so what an ended agent wrote is kept first or the container stays.
            if not follower.finish(launcher.END_S):
                follower.stop()
                raise ConsoleError(f"What container {left.container_id[:12]} wrote could not be kept whole: it is left alone.", _REMEDY)
            gate = gate_of(found, output.parent)
            engine.remove_container(left.container_id, v=True)  # without force: a running one is refused
            if gate is not None:
                gate.remove()
