"""The dialog that starts an agent: how it is held and capped, and what it could do at worst, seen before it starts."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QSize
from PySide6.QtWidgets import QFrame, QScrollArea, QWidget

from console.api import endpoints as ep
from console.api.agents.programs import ProgramPreview, ProgramPreviews, ProgramsBody, ProgramsStarted, ProgramsView
from console.api.agents.sessions import ContextsView
from console.api.messages import LaunchBody, LaunchedView
from console.domain.errors import ConsoleError, Denied
from console.gui.kit.layout import row
from console.gui.pages.fleet.agent_form import AgentForm, hidden_words
from console.gui.pages.fleet.dangers import DangerBox
from console.gui.pages.fleet.reach import UNKNOWN, ReachPane
from console.gui.pages.interface import Desk
from console.gui.timers import every, once
from console.gui.widgets.dialog import Dialog
from console.gui.widgets.safe_text import tooltip

DANGERS_HIGH = 150
TYPED_MS = 350
"""After the last edit the supervisor is asked again what it could do."""
_KILLED_MS = 300
_ASKED = "What it could do is being asked."


class NewAgentDialog(Dialog):
    """``started`` is called with the new agent's id. It starts only what was shown: fields and worst case belong together."""

    def __init__(self, desk: Desk, started: Callable[[str], None], parent: QWidget) -> None:
        super().__init__("New agent", "Start", "primary", parent, width=min(960, max(560, parent.width() - 20)))
        self._desk, self._started = desk, started
        self.form, self.reach = AgentForm(), ReachPane()
        self.programs: ProgramsView | None = None
        self._serial = 0
        self._shown = ""
        """Why what is shown may not be started; empty: it may."""
        self._sent = False
        self._room = parent.height() - 200
        self._areas = [Area(part, max(240, min(540, self._room))) for part in (self.form, self.reach)]
        self.body.addLayout(row(*zip(self._areas, (55, 45), strict=True), spacing=20))
        self.hidden = self.paragraph("", "warn", "triangle")
        self.hidden.hide()
        self.dangers = DangerBox(self)
        self.body.addWidget(self.dangers)
        self._typed = once(self, TYPED_MS, self.look)
        self._watch = every(self, _KILLED_MS, self._allow)
        self._watch.start()
        self.form.changed.connect(self._edited)
        self.dangers.changed.connect(self._allow)
        self.main.clicked.connect(self._send)
        self._read()
        desk.requests.ask(ep.CONTEXTS).while_alive(self).then(self._contexts_came)
        self._edited()
        self.form.prompt.setFocus()

    # --- what is known -----------------------------------------------------------------------------------------------

    def _read(self) -> None:
        asked = self._desk.requests.ask(ep.PROGRAMS).while_alive(self)
        asked.then(self._programs_came).failed(lambda error: self.reach.memory.say(f"Free memory is not known: {error.what}", "warn"))

    def _programs_came(self, view: ProgramsView) -> None:
        self.programs = view
        self.reach.say_memory(view)
        missing = {p.agent: p.why_not for p in view.programs}
        for agent, pill in self.form.kind.pills.items():
            pill.setToolTip(
                "" if agent == "command" else tooltip(missing.get(agent, "not available, because the supervisor does not know it"))
            )
        self.form.offer(view.templates)
        self._areas[0].updateGeometry()  # it may be wider now

    def _contexts_came(self, view: ContextsView) -> None:
        latest = sorted(view.contexts, key=lambda c: -c.last_used)
        self.form.offer_sessions([c.context_id for c in latest if not c.stateless])

    # --- what it could do --------------------------------------------------------------------------------------------

    def _edited(self) -> None:
        self._serial += 1
        self._shown = _ASKED
        self.problem.hide()
        self._typed.start()
        self._allow()

    def look(self) -> None:
        """Asks what the fields as they stand would start; an answer to earlier ones is dropped."""
        self._typed.stop()
        self._serial += 1
        serial = self._serial
        said = hidden_words(self.form.written())
        self.hidden.setText(said)
        self.hidden.setVisible(bool(said))
        try:
            body = self.form.to_send()
        except ConsoleError as error:
            self._cannot(error)
            return
        self._shown = _ASKED
        self.reach.waiting()
        if isinstance(body, LaunchBody):
            asked = self._desk.requests.ask(ep.PREVIEW_COMMAND, body=body).while_alive(self)
            asked.then(lambda view: self._came(serial, view)).failed(lambda error: self._failed_look(serial, error))
        else:
            many = self._desk.requests.ask(ep.PREVIEW_PROGRAMS, body=ProgramsBody(items=[body]), wait_s=ep.TALK_S).while_alive(self)
            many.then(lambda view: self._came(serial, _first(view))).failed(lambda error: self._failed_look(serial, error))
        self._allow()

    def _came(self, serial: int, preview: ProgramPreview) -> None:
        if serial != self._serial:
            return
        self.reach.say(preview)
        self.dangers.say(preview.dangers)
        for area in self._areas:  # what is to be confirmed stands below them, within the window
            area.setFixedHeight(max(200, min(540, self._room - (DANGERS_HIGH if preview.dangers else 0))))
        self._shown = preview.why_not or ("" if preview.reach else UNKNOWN)
        if preview.why_not:
            self._read()  # memory may be what is short
        self._allow()

    def _failed_look(self, serial: int, error: ConsoleError) -> None:
        if serial == self._serial:
            self._cannot(error)

    def _cannot(self, error: ConsoleError) -> None:
        self.reach.none(f"{error.what} {error.remedy}".strip())
        self._shown = error.what
        self._allow()

    def why_not(self) -> str:
        """Empty when what is shown can be started now."""
        if self._sent:
            return "It is being started."
        if self._desk.switch.is_killed:
            return "Killed: nothing starts until you rearm."
        return self._shown or self.form.missing() or self.dangers.missing()

    def _allow(self) -> None:
        self.main.allow(self.why_not())

    # --- the act -----------------------------------------------------------------------------------------------------

    def _send(self) -> None:
        if self.why_not():
            return
        try:
            body = self.form.to_send()
        except ConsoleError as error:
            self.refused(error)
            return
        self._sent = True
        self.problem.hide()
        self._allow()
        requests, confirmed = self._desk.requests, self.dangers.confirmed()
        if isinstance(body, LaunchBody):
            body = body.replaced(dangerous_ok=confirmed)
            requests.ask(ep.LAUNCH, body=body).then(self._launched).failed(self._failed)
        else:
            many = ProgramsBody(items=[body], dangerous_ok=confirmed)
            requests.ask(ep.START, body=many).then(self._programs_started).failed(self._failed)

    def _programs_started(self, view: ProgramsStarted) -> None:
        one = view.items[0] if view.items else None
        if one is None or one.error or not one.id:
            what = one.error if one is not None and one.error else "The supervisor does not say that it started."
            self._failed(Denied(what, one.remedy if one is not None else "Look at the fleet before you try again."))
            return
        self._runs(one.id, one.control_level, one.network_mode, one.notes, enforced=one.network_enforced)

    def _launched(self, view: LaunchedView) -> None:
        self._runs(view.id, view.control_level, view.network_mode, view.notes, enforced=view.network_enforced)

    def _runs(self, agent_id: str, level: str, mode: str, notes: list[str], *, enforced: bool) -> None:
        doubtful = not enforced and mode != "FULL"
        words = f"{agent_id} runs, {level}, {mode}{' (NOT enforced)' if doubtful else ''}. {' '.join(notes)}".strip()
        self._desk.notices.say("amber" if doubtful else "info", words)
        self._desk.ask_sync()
        self._started(agent_id)
        if self.is_open:
            self.accept()

    def _failed(self, error: ConsoleError) -> None:
        self._desk.ask_sync()
        if not self.is_open:
            self._desk.notices.fail(error)
            return
        self._sent = False
        self.refused(error)
        self._allow()


def _first(view: ProgramPreviews) -> ProgramPreview:
    return view.items[0] if view.items else ProgramPreview(agent="", why_not="The supervisor gives no details.")


class Area(QScrollArea):
    """Scrolls up and down, and is as wide as what is in it at least: no field is cut off."""

    def __init__(self, inner: QWidget, height: int) -> None:
        super().__init__()
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setFixedHeight(height)
        self.setWidget(inner)

    def minimumSizeHint(self) -> QSize:
        inner = self.widget()
        return QSize(inner.minimumSizeHint().width() + self.verticalScrollBar().sizeHint().width() if inner is not None else 0, 0)
