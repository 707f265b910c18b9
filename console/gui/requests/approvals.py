"""The verbs of approvals: what waits, one request whole, a decision, and what sessions were given."""

from __future__ import annotations

from console.api import approval_messages as a
from console.gui.link.http import Link, segment
from console.gui.link.pending import Pending

DECIDE_S = 60.0
"""Each request of a group goes to audit and ledger first."""


class ApprovalRequests:
    """Reads, decides, takes back."""

    def __init__(self, link: Link) -> None:
        self._link = link

    def inbox(self) -> Pending[a.ApprovalsView]:
        """What waits, and what was decided last."""
        return self._link.get("/api/approvals", a.ApprovalsView)

    def detail(self, approval_id: str) -> Pending[a.ApprovalDetailView]:
        """One request with all that is needed to decide."""
        return self._link.get(f"/api/approvals/{segment(approval_id)}", a.ApprovalDetailView)

    def decide(self, body: a.DecideBody) -> Pending[a.DecideView]:
        """What became of each is in the answer; nothing is decided that is not on record."""
        return self._link.send("POST", "/api/approvals", a.DecideView, body, timeout_s=DECIDE_S)

    def grants(self) -> Pending[a.GrantsView]:
        """What sessions were given."""
        return self._link.get("/api/approvals/grants", a.GrantsView)

    def end_grants(self, body: a.EndGrantBody) -> Pending[a.GrantsView]:
        """Takes back all that a session was given."""
        return self._link.send("POST", "/api/approvals/grants/end", a.GrantsView, body, timeout_s=DECIDE_S)
