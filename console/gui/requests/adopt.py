"""Adoption, asked by the window."""

from __future__ import annotations

from console.api import endpoints as ep
from console.api.agents.adopt import AdoptBody, AdoptedView, CandidatesView
from console.gui.link.http import Link
from console.gui.link.pending import Pending


class AdoptRequests:
    """Which process a seen agent is, and taking it over."""

    def __init__(self, link: Link) -> None:
        self._link = link

    def candidates(self, agent_id: str) -> Pending[CandidatesView]:
        """Nothing is moved."""
        return self._link.ask(ep.CANDIDATES, agent=agent_id[:80])

    def adopt(self, body: AdoptBody) -> Pending[AdoptedView]:
        """Refused when the process is not what was shown."""
        return self._link.ask(ep.ADOPT, body=body)
