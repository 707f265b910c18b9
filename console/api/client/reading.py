"""What the quick verbs ask of a supervisor: the same routes as the client, without waiting for the messages' types to load."""

from __future__ import annotations

from typing import TYPE_CHECKING

from console.api.client.wire import Wire, segment
from console.settings.places import Places

if TYPE_CHECKING:
    from console.api.ladder import LadderPreview
    from console.api.messages import AgentDetailView, FleetView, KillSwitchView, StatusView
    from console.api.policy.approvals import ApprovalsView
    from console.api.policy.hooks import HooksView
    from console.domain.ladder import Scope


class ReadingClient:
    """Looks, and changes nothing. Errors as of the client."""

    def __init__(self, places: Places, timeout_s: float = 10) -> None:
        self._wire = Wire(places, timeout_s)

    def fleet(self) -> FleetView:
        """GET /api/fleet."""

        def view() -> type[FleetView]:
            from console.api.messages import FleetView

            return FleetView

        return self._wire.look(view, "GET", "/api/fleet")

    def agent(self, agent_id: str) -> AgentDetailView:
        """GET /api/agents/{id}."""

        def view() -> type[AgentDetailView]:
            from console.api.messages import AgentDetailView

            return AgentDetailView

        return self._wire.look(view, "GET", f"/api/agents/{segment(agent_id)}")

    def status(self) -> StatusView:
        """GET /api/status."""

        def view() -> type[StatusView]:
            from console.api.messages import StatusView

            return StatusView

        return self._wire.look(view, "GET", "/api/status")

    def kill_switch(self) -> KillSwitchView:
        """GET /api/kill-switch."""

        def view() -> type[KillSwitchView]:
            from console.api.messages import KillSwitchView

            return KillSwitchView

        return self._wire.look(view, "GET", "/api/kill-switch")

    def hooks(self) -> HooksView:
        """GET /api/hooks."""

        def view() -> type[HooksView]:
            from console.api.policy.hooks import HooksView

            return HooksView

        return self._wire.look(view, "GET", "/api/hooks")

    def approvals(self) -> ApprovalsView:
        """GET /api/approvals."""

        def view() -> type[ApprovalsView]:
            from console.api.policy.approvals import ApprovalsView

            return ApprovalsView

        return self._wire.look(view, "GET", "/api/approvals")

    def preview(self, action: str, scope: Scope, reason: str) -> LadderPreview:
        """POST /api/ladder/preview: what it will do; nothing is done."""

        def view() -> type[LadderPreview]:
            from console.api.ladder import LadderPreview

            return LadderPreview

        named = {"reach": scope.reach.value, "target": scope.target, "others": list(scope.targets[1:])}
        body = {"action": action, "scope": named, "reason": reason}
        return self._wire.look(view, "POST", "/api/ladder/preview", body)
