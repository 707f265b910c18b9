"""What a supervisor asks its guard, by name: tests stand in for it."""

from __future__ import annotations

from typing import Any

from console.killswitch.client.guard_client import GuardClient


class SupervisorClient(GuardClient):
    """A connection to ``guard-supervisor.sock``, or to the operators' socket, to see that it has no such operations."""

    def ticket(
        self, agent_id: str, kind: str, control_level: str, pids_max: int | None = None, memory_max: int | None = None
    ) -> dict[str, Any]:
        """{leaf, limit_leaves, generation, inode}. Killed while latched, Denied while stopped otherwise."""
        return self.call("ticket", agent_id=agent_id, kind=kind, control_level=control_level, pids_max=pids_max, memory_max=memory_max)

    def confirm(self, agent_id: str, generation: int, pid: int, start_ticks: int, container_id: str = "") -> dict[str, Any]:
        """Killed when a press came in between: abort the launch."""
        return self.call("confirm", agent_id=agent_id, generation=generation, pid=pid, start_ticks=start_ticks, container_id=container_id)

    def forget(self, agent_id: str) -> dict[str, Any]:
        return self.call("forget", agent_id=agent_id)

    def heartbeat(self, planned_restart_s: float | None = None) -> dict[str, Any]:
        fields = {} if planned_restart_s is None else {"planned_restart_s": planned_restart_s}
        return self.call("heartbeat", **fields)

    def lease(self, seconds: float | None) -> dict[str, Any]:
        return self.call("lease", seconds=seconds)

    def prove(self, kind: str, generation: int, by: str = "", *, kill_id: str = "", passphrase: str = "", nonce: str = "") -> str:
        """A ticket for ``unlatch``: ``typed`` (kill_id), ``passphrase`` or ``signature`` (nonce). Denied when it is wrong."""
        given = {"kill_id": kill_id, "passphrase": passphrase, "nonce": nonce}
        return str(self.call("prove", timeout_s=None, kind=kind, generation=generation, by=by, **given)["proof"])

    def unlatch(self, generation: int, kills: list[str], by: str = "", *, proof: str = "") -> dict[str, Any]:
        """Conflict unless the generation is current and every latched kill is covered and over; Denied without a ticket of ``prove``."""
        return self.call("unlatch", generation=generation, kills=kills, by=by, proof=proof)
