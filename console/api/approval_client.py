"""Asks the supervisor for approvals: one method a route."""

from __future__ import annotations

from console.api import approval_messages as a
from console.api.hook_messages import HooksView
from console.api.wire import Wire, segment


class ApprovalRoutes:
    """Part of the client."""

    _wire: Wire

    def approvals(self) -> a.ApprovalsView:
        """GET /api/approvals."""
        return self._wire.ask(a.ApprovalsView, "GET", "/api/approvals")

    def approval(self, approval_id: str) -> a.ApprovalDetailView:
        """GET /api/approvals/{id}. Raises NotFound."""
        return self._wire.ask(a.ApprovalDetailView, "GET", f"/api/approvals/{segment(approval_id)}")

    def hooks(self) -> HooksView:
        """GET /api/hooks."""
        return self._wire.ask(HooksView, "GET", "/api/hooks")

    def decide(self, body: a.DecideBody) -> a.DecideView:
        """POST /api/approvals. Raises UsageProblem, Killed."""
        return self._wire.ask(a.DecideView, "POST", "/api/approvals", body=body)

    def grants(self) -> a.GrantsView:
        """GET /api/approvals/grants."""
        return self._wire.ask(a.GrantsView, "GET", "/api/approvals/grants")

    def end_grants(self, body: a.EndGrantBody) -> a.GrantsView:
        """POST /api/approvals/grants/end. Raises NotFound."""
        return self._wire.ask(a.GrantsView, "POST", "/api/approvals/grants/end", body=body)
