"""``--sandbox gvisor``: named, and honest about not being built yet."""

from __future__ import annotations

from typing import NoReturn

from console.domain.agent import AgentId, SandboxKind
from console.domain.errors import Unavailable
from console.sandbox.interface import Availability, LaunchSpec, Prepared, Ticket

REASON = "Sandboxes by gVisor are not part of this version: the portal would need a forwarder inside the sandbox, which is not built."
REMEDY = "Launch with --sandbox docker or --sandbox bubblewrap."


class Gvisor:
    """Never available; every launch is refused with the reason."""

    kind = SandboxKind.GVISOR

    def available(self) -> Availability:
        """Never, with the reason."""
        return Availability(False, REASON, REMEDY)

    def prepare(self, spec: LaunchSpec, ticket: Ticket) -> Prepared:
        """Raises Unavailable."""
        self._refuse()

    def go(self, prepared: Prepared) -> None:
        """Raises Unavailable."""
        self._refuse()

    def abort(self, prepared: Prepared) -> None:
        """Nothing was started, so nothing is left."""

    def wait(self, prepared: Prepared, timeout: float | None) -> int | None:
        """Raises Unavailable."""
        self._refuse()

    def release(self, prepared: Prepared) -> None:
        """Nothing is held."""

    def reattach(self, agent_id: AgentId, pid: int, start_ticks: int, container_id: str = "") -> Prepared:
        """Raises Unavailable."""
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise Unavailable(REASON, REMEDY)
