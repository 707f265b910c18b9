"""GET /api/persistence: what the hunts found; with ``?session=ID`` a look now. A read: it stays up while killed."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from console.api.persistence import PersistenceReport, PersistenceView
from console.domain.agent import CONTEXT_ID
from console.domain.errors import NotFound, Unavailable, UsageProblem
from console.supervisor.answers import answer
from console.supervisor.parts import Parts


def hunt_routes(parts: Parts) -> list[Route]:
    """The route, for the operator's door alone."""

    async def persistence(request: Request) -> Response:
        if parts.hunt is None:
            raise Unavailable("There is no hunt in this supervisor.", "")
        session = request.query_params.get("session")
        if session is not None:
            if not CONTEXT_ID.match(session):
                raise UsageProblem(f"Session {session[:80]!r} is not valid.", "Use a-z, 0-9 and -, 1 to 63 characters.")
            if not any(a.context_id == session for a in parts.core.state.agents.values()):
                raise NotFound(f"There is no session {session}.", "watchfloor fleet shows the sessions.")
            await parts.hunt.look([session])
        found = [r for r in parts.hunt.reports.values() if session in (None, r.context_id)]
        return answer(PersistenceView(reports=[PersistenceReport.model_validate(r.as_json()) for r in found]))

    return [Route("/api/persistence", persistence, methods=["GET"])]
