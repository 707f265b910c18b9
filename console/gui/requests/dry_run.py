"""Dry-run: who is in it, what it planned, and the decision on a whole plan."""

from __future__ import annotations

from console.api.policy import dry_run as dm
from console.gui.link.http import Link, segment
from console.gui.link.pending import Pending

CHANGE_S = 30.0


class DryRunRequests:
    """Reads, changes, decides."""

    def __init__(self, link: Link) -> None:
        self._link = link

    def plans(self, agent_id: str) -> Pending[dm.PlansView]:
        """The plans that its calls are in."""
        return self._link.get(f"/api/plans/{segment(agent_id)}", dm.PlansView)

    def change(self, body: dm.DryRunBody) -> Pending[dm.DryRunView]:
        """Into it or out of it."""
        return self._link.send("POST", "/api/dry-run", dm.DryRunView, body, timeout_s=CHANGE_S)

    def decide(self, body: dm.PlanBody) -> Pending[dm.PlanDecidedView]:
        """Conflict when the plan is not the one that was shown."""
        return self._link.send("POST", "/api/plans", dm.PlanDecidedView, body, timeout_s=CHANGE_S)
