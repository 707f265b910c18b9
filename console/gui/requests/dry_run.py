"""Dry-run: who is in it, what it planned, and the decision on a whole plan."""

from __future__ import annotations

from console.api import endpoints as ep
from console.api.policy import dry_run as dm
from console.gui.link.http import Link
from console.gui.link.pending import Pending


class DryRunRequests:
    """Reads, changes, decides."""

    def __init__(self, link: Link) -> None:
        self._link = link

    def plans(self, agent_id: str) -> Pending[dm.PlansView]:
        """The plans that its calls are in."""
        return self._link.ask(ep.PLANS, agent_id)

    def change(self, body: dm.DryRunBody) -> Pending[dm.DryRunView]:
        """Into it or out of it."""
        return self._link.ask(ep.DRY_RUN, body=body)

    def decide(self, body: dm.PlanBody) -> Pending[dm.PlanDecidedView]:
        """Conflict when the plan is not the one that was shown."""
        return self._link.ask(ep.DECIDE_PLAN, body=body)
