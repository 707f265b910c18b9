"""Asks the supervisor for approvals: one method a route."""

from __future__ import annotations

from console.api import approval_messages as a
from console.api import policy_messages as p
from console.api.hook_messages import HooksView
from console.api.wire import Wire, segment

TRY_S = 30.0


class ApprovalRoutes:
    """Part of the client."""

    _wire: Wire

    def approvals(self) -> a.ApprovalsView:
        """GET /api/approvals."""
        return self._wire.ask(a.ApprovalsView, "GET", "/api/approvals")

    def approval(self, approval_id: str) -> a.ApprovalDetailView:
        """GET /api/approvals/{id}. Raises NotFound."""
        return self._wire.ask(a.ApprovalDetailView, "GET", f"/api/approvals/{segment(approval_id)}")

    def policy(self) -> p.PolicyView:
        """GET /api/policy."""
        return self._wire.ask(p.PolicyView, "GET", "/api/policy")

    def try_policy(self, body: p.PolicyTryBody) -> p.PolicyTryView:
        """POST /api/policy/backtest. Raises UsageProblem."""
        return self._wire.ask(p.PolicyTryView, "POST", "/api/policy/backtest", body=body, timeout_s=TRY_S)

    def save_policy(self, body: p.PolicySaveBody) -> p.PolicyView:
        """POST /api/policy. Raises UsageProblem, Conflict."""
        return self._wire.ask(p.PolicyView, "POST", "/api/policy", body=body)

    def profiles(self) -> p.ProfilesView:
        """GET /api/policy/profiles."""
        return self._wire.ask(p.ProfilesView, "GET", "/api/policy/profiles")

    def choose_profile(self, body: p.ProfileBody) -> p.ProfilesView:
        """POST /api/policy/profiles. Raises UsageProblem, NotFound."""
        return self._wire.ask(p.ProfilesView, "POST", "/api/policy/profiles", body=body)

    def draft_rule(self, approval_id: str) -> p.DraftView:
        """GET /api/approvals/{id}/draft. Raises NotFound."""
        return self._wire.ask(p.DraftView, "GET", f"/api/approvals/{segment(approval_id)}/draft")

    def offered_rule(self, approval_id: str) -> p.ExactOffer:
        """GET /api/approvals/{id}/rule. Raises NotFound."""
        return self._wire.ask(p.ExactOffer, "GET", f"/api/approvals/{segment(approval_id)}/rule")

    def add_rule(self, approval_id: str, body: p.ExactBody) -> p.ExactRule:
        """POST /api/approvals/{id}/rule. Raises NotFound, Conflict, Denied."""
        return self._wire.ask(p.ExactRule, "POST", f"/api/approvals/{segment(approval_id)}/rule", body=body)

    def remove_rule(self, body: p.ExactRemoveBody) -> p.PolicyView:
        """POST /api/policy/exact/remove. Raises NotFound."""
        return self._wire.ask(p.PolicyView, "POST", "/api/policy/exact/remove", body=body)

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
