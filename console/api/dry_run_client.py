"""Requests about dry-run and its plans, over the one client."""

from __future__ import annotations

from console.api import dry_run_messages as dm
from console.api.wire import Wire, segment

CHANGE_S = 30.0


class DryRunRoutes:
    """Who is in dry-run, what it planned, and the decision on that."""

    _wire: Wire

    def dry_run(self, body: dm.DryRunBody) -> dm.DryRunView:
        """POST /api/dry-run."""
        return self._wire.ask(dm.DryRunView, "POST", "/api/dry-run", body=body, timeout_s=CHANGE_S)

    def plans(self, agent_id: str) -> dm.PlansView:
        """GET /api/plans/{agent}."""
        return self._wire.ask(dm.PlansView, "GET", f"/api/plans/{segment(agent_id)}", timeout_s=CHANGE_S)

    def decide_plan(self, body: dm.PlanBody) -> dm.PlanDecidedView:
        """POST /api/plans; Conflict when the plan is not the one that was shown."""
        return self._wire.ask(dm.PlanDecidedView, "POST", "/api/plans", body=body, timeout_s=CHANGE_S)
