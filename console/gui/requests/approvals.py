"""The verbs of approvals: what waits, one request whole, a decision, and what sessions were given."""

from __future__ import annotations

from console.api import endpoints as ep
from console.api.policy import approvals as a
from console.api.policy import rules as p
from console.gui.link.http import Link
from console.gui.link.pending import Pending


class ApprovalRequests:
    """Reads, decides, takes back."""

    def __init__(self, link: Link) -> None:
        self._link = link

    def inbox(self) -> Pending[a.ApprovalsView]:
        """What waits, and what was decided last."""
        return self._link.ask(ep.APPROVALS)

    def detail(self, approval_id: str) -> Pending[a.ApprovalDetailView]:
        """One request with all that is needed to decide."""
        return self._link.ask(ep.APPROVAL, approval_id)

    def decide(self, body: a.DecideBody) -> Pending[a.DecideView]:
        """What became of each is in the answer; nothing is decided that is not on record."""
        return self._link.ask(ep.DECIDE, body=body)

    def draft(self, approval_id: str) -> Pending[p.DraftView]:
        """Narrow rules under which this request would have been allowed."""
        return self._link.ask(ep.DRAFT, approval_id)

    def offered_rule(self, approval_id: str) -> Pending[p.ExactOffer]:
        """The rule that an approval could become, with what it would have answered."""
        return self._link.ask(ep.OFFERED_RULE, approval_id)

    def add_rule(self, approval_id: str, body: p.ExactBody) -> Pending[p.ExactRule]:
        """Allows exactly this call for 30 days; on record first."""
        return self._link.ask(ep.ADD_RULE, approval_id, body=body)

    def policy(self) -> Pending[p.PolicyView]:
        """The rules in force."""
        return self._link.ask(ep.POLICY)

    def try_policy(self, body: p.PolicyTryBody) -> Pending[p.PolicyTryView]:
        """What a change would have decided otherwise; nothing is changed."""
        return self._link.ask(ep.TRY_POLICY, body=body)

    def save_policy(self, body: p.PolicySaveBody) -> Pending[p.PolicyView]:
        """Conflict when other rules are in force than those it was written over."""
        return self._link.ask(ep.SAVE_POLICY, body=body)

    def grants(self) -> Pending[a.GrantsView]:
        """What sessions were given."""
        return self._link.ask(ep.GRANTS)

    def end_grants(self, body: a.EndGrantBody) -> Pending[a.GrantsView]:
        """Takes back all that a session was given."""
        return self._link.ask(ep.END_GRANTS, body=body)
