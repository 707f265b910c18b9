"""Answer GET /api/persistence: what the persistence checks found; with ``?session=ID`` a check now. A read: it works while killed.

An agent decides how many places it changes and how much it writes there. So the answer is cut, and tells when it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict

from starlette.requests import Request
from starlette.responses import Response

from console.api import endpoints as ep
from console.api.persistence import FindingView, PersistenceReport, PersistenceView
from console.domain.errors import NotFound, UsageProblem
from console.domain.ids import CONTEXT_ID
from console.enforcement.state import EngineState
from console.rollback.persistence.differ import bounded
from console.rollback.persistence.findings import Report, shown
from console.services.persistence.results import Kept
from console.services.persistence.scan import Hunt
from console.services.routes.responses import Handlers, answer
from console.settings.places import Places

FINDINGS_MAX = 1000
BYTES_MAX = 1 << 20
"""Findings of one answer, and the bytes of JSON they may take together."""
DOUBTS_MAX = 20
DOUBT_MAX = 400


def hunt_routes(hunt: Hunt, state: Callable[[], EngineState], places: Places) -> Handlers:
    """The route, for the operator's door alone."""
    kept = Kept(places)

    async def persistence(request: Request) -> Response:
        session = request.query_params.get("session")
        if session is not None:
            if not CONTEXT_ID.match(session):
                raise UsageProblem(f"Session {session[:80]!r} is not valid.", "Use a-z, 0-9 and -, 1 to 63 characters.")
            if not any(a.context_id == session for a in state().agents.values()):
                raise NotFound(f"There is no session {session}.", "watchfloor fleet shows the sessions.")
            await hunt.look([session])
        await kept.into(hunt.reports)
        found = [r for r in hunt.reports.values() if session in (None, r.context_id)]
        return answer(view_of(found))

    return {ep.PERSISTENCE: persistence}


def view_of(reports: Iterable[Report]) -> PersistenceView:
    """Every report, in its order; findings until the bounds are reached, and how many are left out."""
    reports = list(reports)
    cut = bounded(reports, FINDINGS_MAX, BYTES_MAX)
    views = [_report(one) for one in cut]
    left = sum(one.left_out for one in cut) - sum(one.left_out for one in reports)
    words = (
        f"{left:,} findings are left out of this answer: ask for one session, or read persistence.json of its case folder" if left else ""
    )
    return PersistenceView(reports=views, left_out=left, words=words)


def _report(report: Report) -> PersistenceReport:
    """A report as it is shown; none of its doubts goes unsaid."""
    more = len(report.doubts) - DOUBTS_MAX
    doubts = [shown(doubt, DOUBT_MAX) for doubt in report.doubts[:DOUBTS_MAX]] + ([f"and {more} doubts more"] if more > 0 else [])
    return PersistenceReport(
        context_id=report.context_id,
        looked_at=report.looked_at,
        baseline_at=report.baseline_at,
        doubts=doubts,
        findings=[FindingView.read(asdict(finding)) for finding in report.findings],
        left_out=report.left_out,
        not_looked=list(report.not_looked),
        quarantine=report.quarantine,
    )
