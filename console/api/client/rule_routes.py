"""The client's routes to approvals, rules, dry runs and their plans."""

from __future__ import annotations

from console.api.client.wire import Wire, segment
from console.api.policy import approvals as a
from console.api.policy import dry_run as dm
from console.api.policy import rules as p
from console.api.policy.hooks import HooksView

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
