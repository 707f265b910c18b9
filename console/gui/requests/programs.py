"""Programs and agents that are started from the window, what their hooks have asked, and talking to them."""

from __future__ import annotations

from console.api import messages as m
from console.api.agents import first_run as fr
from console.api.agents import programs as pm
from console.gui.link.http import Link, segment
from console.gui.link.pending import Pending

START_S = 300.0
TALK_S = 30.0
END_S = 75.0
"""A turn under way has 30 s to finish."""


class ProgramRequests:
    """What can be started, what it could do at worst, starting it, talking to it."""

    def __init__(self, link: Link) -> None:
        self._link = link

    def listed(self) -> Pending[pm.ProgramsView]:
        """Programs, templates, free memory."""
        return self._link.get("/api/programs", pm.ProgramsView)

    def preview(self, item: pm.ProgramItem) -> Pending[pm.ProgramPreviews]:
        """Nothing is started."""
        return self._link.send("POST", "/api/programs/preview", pm.ProgramPreviews, pm.ProgramsBody(items=[item]), timeout_s=TALK_S)

    def preview_command(self, body: m.LaunchBody) -> Pending[pm.ProgramPreview]:
        """The same of any command."""
        return self._link.send("POST", "/api/programs/preview-command", pm.ProgramPreview, body, timeout_s=TALK_S)

    def start(self, item: pm.ProgramItem, dangerous_ok: str = "") -> Pending[pm.ProgramsStarted]:
        """One program; Unconfirmed when its words name dangerous operations and no reason is given."""
        body = pm.ProgramsBody(items=[item], dangerous_ok=dangerous_ok)
        return self._link.send("POST", "/api/programs", pm.ProgramsStarted, body, timeout_s=START_S)

    def say(self, agent_id: str, text: str, dangerous_ok: str = "") -> Pending[pm.SaidView]:
        """Refused (Denied) with why; Unconfirmed as a start is."""
        return self._talk(agent_id, "message", pm.SayBody(text=text, dangerous_ok=dangerous_ok))

    def interrupt(self, agent_id: str) -> Pending[pm.SaidView]:
        """The end of its present turn; TimedOut when the program does not confirm it."""
        return self._talk(agent_id, "interrupt", pm.InterruptBody())

    def _talk(self, agent_id: str, verb: str, body: pm.SayBody | pm.InterruptBody) -> Pending[pm.SaidView]:
        return self._link.send("POST", f"/api/agents/{segment(agent_id)}/{verb}", pm.SaidView, body, timeout_s=TALK_S)

    def end(self, agent_id: str, reason: str = "") -> Pending[pm.EndedView]:
        """No more comes to it; what the guard has then seen of it. Refused (Denied) with why; nothing is killed."""
        path = f"/api/agents/{segment(agent_id)}/end"
        return self._link.send("POST", path, pm.EndedView, pm.EndBody(reason=reason), timeout_s=END_S)

    def first_run(self) -> Pending[fr.FirstRunView]:
        """Agent sockets, hooks and the kill file as they are found, and what holds unless told otherwise."""
        return self._link.get("/api/first-run", fr.FirstRunView)

    def test_kill_switch(self) -> Pending[fr.SelfTestView]:
        """Starts a process of its own and kills it through the guard."""
        return self._link.send("POST", "/api/kill-switch/test", fr.SelfTestView, timeout_s=TALK_S)

    def hook_preview(self, program: str) -> Pending[fr.HookPreview]:
        """What install-hook would change in the operator's own settings; nothing is written."""
        return self._link.get(f"/api/hooks/{segment(program)}/preview", fr.HookPreview)
