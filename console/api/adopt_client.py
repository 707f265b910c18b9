"""Adoption, asked through operator.sock."""

from __future__ import annotations

from console.api.adopt_messages import AdoptBody, AdoptedView, CandidatesView
from console.api.wire import Wire

ADOPT_S = 30.0


class AdoptRoutes:
    """Which process a seen agent is, and taking it over."""

    _wire: Wire

    def adopt_candidates(self, agent_id: str) -> CandidatesView:
        """GET /api/adopt/candidates."""
        return self._wire.ask(CandidatesView, "GET", "/api/adopt/candidates", query={"agent": agent_id}, timeout_s=ADOPT_S)

    def adopt(self, body: AdoptBody) -> AdoptedView:
        """POST /api/adopt; Conflict when the process is not what was shown."""
        return self._wire.ask(AdoptedView, "POST", "/api/adopt", body=body, timeout_s=ADOPT_S)
