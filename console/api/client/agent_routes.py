"""The client's routes to agents: what they did, adoption, and programs that are started and talked to."""

from __future__ import annotations

from collections.abc import Sequence

from console.api.agents import programs as pm
from console.api.agents.activity import ActivityEntryView, ActivityPage, McpView
from console.api.agents.adopt import AdoptBody, AdoptedView, CandidatesView
from console.api.client.wire import Wire, segment


class ActivityRoutes:
    """Reads only."""

    _wire: Wire

    def activity(
        self,
        agent_id: str,
        *,
        before: int | None = None,
        after: int | None = None,
        limit: int = 200,
        query: str = "",
        kinds: Sequence[str] = (),
    ) -> ActivityPage:
        """GET /api/agents/{id}/activity: the newest entries, those below ``before``, or those above ``after``; oldest first."""
        asked = {"before": before, "after": after, "limit": limit, "q": query or None, "kind": ",".join(kinds) or None}
        return self._wire.ask(ActivityPage, "GET", f"/api/agents/{segment(agent_id)}/activity", query=asked)

    def activity_entry(self, agent_id: str, seq: int) -> ActivityEntryView:
        """GET /api/agents/{id}/activity/{seq}: one entry with all that is kept of it."""
        return self._wire.ask(ActivityEntryView, "GET", f"/api/agents/{segment(agent_id)}/activity/{seq:d}")

    def mcp(self) -> McpView:
        """GET /api/mcp: MCP servers with the tools that agents were seen to call."""
        return self._wire.ask(McpView, "GET", "/api/mcp")


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


START_S = 600.0
"""Up to fifty programs, one after the other."""
TALK_S = 30.0


class ProgramRoutes:
    """What can be started, starting it, talking to it."""

    _wire: Wire

    def programs(self) -> pm.ProgramsView:
        """GET /api/programs."""
        return self._wire.ask(pm.ProgramsView, "GET", "/api/programs", timeout_s=TALK_S)

    def preview_programs(self, body: pm.ProgramsBody) -> pm.ProgramPreviews:
        """POST /api/programs/preview: nothing is started."""
        return self._wire.ask(pm.ProgramPreviews, "POST", "/api/programs/preview", body=body, timeout_s=START_S)

    def start_programs(self, body: pm.ProgramsBody) -> pm.ProgramsStarted:
        """POST /api/programs: each is judged before any starts."""
        return self._wire.ask(pm.ProgramsStarted, "POST", "/api/programs", body=body, timeout_s=START_S)

    def say(self, agent_id: str, text: str, dangerous_ok: str = "") -> pm.SaidView:
        """POST /api/agents/{id}/message; refused (Denied) with why; Unconfirmed when it names dangerous operations."""
        path = f"/api/agents/{segment(agent_id)}/message"
        return self._wire.ask(pm.SaidView, "POST", path, body=pm.SayBody(text=text, dangerous_ok=dangerous_ok), timeout_s=TALK_S)

    def interrupt(self, agent_id: str) -> pm.SaidView:
        """POST /api/agents/{id}/interrupt; TimedOut when the program does not confirm it."""
        path = f"/api/agents/{segment(agent_id)}/interrupt"
        return self._wire.ask(pm.SaidView, "POST", path, body=pm.InterruptBody(), timeout_s=TALK_S)

    def end(self, agent_id: str, reason: str = "", within_s: float = 30.0) -> pm.EndedView:
        """Send POST /api/agents/{id}/end. Nothing is killed.

        Raises Denied with the reason, or TimedOut when it is unknown whether the program ended.
        """
        body = pm.EndBody(reason=reason, within_s=within_s)
        path = f"/api/agents/{segment(agent_id)}/end"
        return self._wire.ask(pm.EndedView, "POST", path, body=body, timeout_s=within_s + TALK_S)
