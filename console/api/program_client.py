"""Requests about started programs, over the one client."""

from __future__ import annotations

from console.api import program_messages as pm
from console.api.wire import Wire, segment

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
