"""Programs and agents that are started from the window, what their hooks have asked, and talking to them."""

from __future__ import annotations

from console.api import endpoints as ep
from console.api import messages as m
from console.api.agents import first_run as fr
from console.api.agents import programs as pm
from console.gui.link.http import Link
from console.gui.link.pending import Pending

END_S = 75.0
"""A turn under way has 30 s to finish."""


class ProgramRequests:
    """What can be started, what it could do at worst, starting it, talking to it."""

    def __init__(self, link: Link) -> None:
        self._link = link

    def listed(self) -> Pending[pm.ProgramsView]:
        """Programs, templates, free memory."""
        return self._link.ask(ep.PROGRAMS)

    def preview(self, item: pm.ProgramItem) -> Pending[pm.ProgramPreviews]:
        """Nothing is started."""
        return self._link.ask(ep.PREVIEW_PROGRAMS, body=pm.ProgramsBody(items=[item]), wait_s=ep.TALK_S)

    def preview_command(self, body: m.LaunchBody) -> Pending[pm.ProgramPreview]:
        """The same of any command."""
        return self._link.ask(ep.PREVIEW_COMMAND, body=body)

    def start(self, item: pm.ProgramItem, dangerous_ok: str = "") -> Pending[pm.ProgramsStarted]:
        """One program; Unconfirmed when its words name dangerous operations and no reason is given."""
        body = pm.ProgramsBody(items=[item], dangerous_ok=dangerous_ok)
        return self._link.ask(ep.START, body=body)

    def say(self, agent_id: str, text: str, dangerous_ok: str = "") -> Pending[pm.SaidView]:
        """Refused (Denied) with why; Unconfirmed as a start is."""
        return self._link.ask(ep.MESSAGE, agent_id, body=pm.SayBody(text=text, dangerous_ok=dangerous_ok))

    def interrupt(self, agent_id: str) -> Pending[pm.SaidView]:
        """The end of its present turn; TimedOut when the program does not confirm it."""
        return self._link.ask(ep.INTERRUPT, agent_id, body=pm.InterruptBody())

    def end(self, agent_id: str, reason: str = "") -> Pending[pm.EndedView]:
        """No more comes to it; what the guard has then seen of it. Refused (Denied) with why; nothing is killed."""
        return self._link.ask(ep.FINISH, agent_id, body=pm.EndBody(reason=reason), wait_s=END_S)

    def first_run(self) -> Pending[fr.FirstRunView]:
        """Agent sockets, hooks and the kill file as they are found, and what holds unless told otherwise."""
        return self._link.ask(ep.FIRST_RUN)

    def test_kill_switch(self) -> Pending[fr.SelfTestView]:
        """Starts a process of its own and kills it through the guard."""
        return self._link.ask(ep.SELF_TEST)

    def hook_preview(self, program: str) -> Pending[fr.HookPreview]:
        """What install-hook would change in the operator's own settings; nothing is written."""
        return self._link.ask(ep.HOOK_PREVIEW, program)
