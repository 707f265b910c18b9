"""Rearm: what was killed and why, what is still open, a reason, and the passphrase or the kill's typed id; then who may come back."""

from __future__ import annotations

from PySide6.QtWidgets import QLineEdit, QWidget

from console.api import endpoints as ep
from console.api.messages import KillSwitchBody, KillSwitchView, LaunchedView
from console.api.rearm import AgainView, KilledView, RearmProof, RearmView
from console.domain.errors import ConsoleError
from console.domain.headline import headline_of
from console.domain.verdict import verdict
from console.gui.kit.layout import row
from console.gui.models.operators import person
from console.gui.models.switch import Switch
from console.gui.pages.interface import Desk
from console.gui.theme import fonts
from console.gui.timers import every
from console.gui.widgets.buttons import Button
from console.gui.widgets.dialog import IN_PROGRESS, NO_REASON, Dialog
from console.gui.widgets.text import Text
from console.gui.widgets.words import day_clock, plural

LOOK_MS = 2000
SHOWN = 4
"""Kills, and agents, named in a dialog; the rest is counted."""
LATER = 8
WEAK = "No passphrase is set: the typed id of the kill is all it takes. Set one on the kill switch page."


def still_open(switch: Switch) -> list[str]:
    """What speaks against rearming now, in words."""
    words = []
    receipt = switch.receipt
    if receipt is None:
        words.append("The receipt of this kill has not been read.")
    elif verdict(receipt).may_run:
        words.append(headline_of(receipt))
    if receipt is not None and not receipt.complete:
        words.append("Steps of the kill are still being carried out.")
    return words


def killed_words(kill: KilledView) -> str:
    """One kill: when, how it ended, and last its author and reason: hostile words, which stand behind the facts."""
    if not kill.has_receipt:
        return f"{kill.kill_id}: no receipt, it reads as killed"
    return f"{day_clock(kill.pressed_at or 0)} · {_cut(kill.headline, 600)} By {_cut(person(kill.by), 120)}: “{_cut(kill.reason, 300)}”"


def _cut(words: str, most: int) -> str:
    return words if len(words) <= most else f"{words[:most]}…"


class RearmDialog(Dialog):
    """The button works once a reason and a proof are there; a refusal is shown in the supervisor's words."""

    def __init__(self, desk: Desk, kill_id: str, parent: QWidget) -> None:
        super().__init__("Rearm: let agents start again?", "Rearm", "danger", parent, width=560)
        self._desk, self._kill_id, self._window = desk, kill_id, parent
        self._view: RearmView | None = None
        """What the person reads, and what a rearm would release."""
        self._shown: RearmView | None = None
        """The same, unless something else is shown instead."""
        self._is_newer = False
        self._is_sent = False
        self.paragraph("Nothing that was killed comes back. Launches are allowed again, and the kill switch is ready for the next kill.")
        self.killed = self.paragraph("Reading what was killed…", "text")
        self.earlier: list[Text] = []
        """A paragraph for each kill before the newest, and one that counts the rest."""
        self.open_steps = self.paragraph("", "warn", "triangle")
        self._show_open()
        state = desk.switch.view.passphrase if desk.switch.view is not None else "unknown"
        self._label("Reason, for the record")
        self.reason = self._field("Reason", 500)
        self.weak = self.paragraph(WEAK, "warn", "triangle")
        self.weak.setVisible(state == "not_set")
        self.typed = self._field("Kill id", 80, label=f"Type the id of the kill: {kill_id}", mono=True)
        self.passphrase = self._field("Passphrase", 256, label="Passphrase", secret=True)
        self._takes(state)
        self._judge()
        for field in (self.reason, self.typed, self.passphrase):
            field.textChanged.connect(self._judge)
        self.main.clicked.connect(self._send)
        self.finished.connect(self.passphrase.clear)
        self.reason.setFocus()
        self._blocker = ""
        # An order may be released, and the host rearmed, from another place while this is open.
        self._again = every(self, LOOK_MS, self._look)
        self._again.start()
        self._look()

    def _look(self) -> None:
        if not self._is_sent:  # its answer tells what came of it
            self._desk.requests.ask(ep.REARM).while_alive(self).then(self._looked).failed(self._unread)

    def _show_open(self) -> None:
        words = " ".join(still_open(self._desk.switch))
        self.open_steps.say(words, "warn", "triangle")
        self.open_steps.setVisible(bool(words))

    def _label(self, words: str) -> Text:
        text = Text(words, 11, fonts.MEDIUM, "text2")
        self.body.addWidget(text)
        return text

    def _field(self, name: str, longest: int, *, label: str = "", mono: bool = False, secret: bool = False) -> QLineEdit:
        field = QLineEdit(self)
        field.setMaxLength(longest)
        field.setAccessibleName(name)
        if label:
            field.setProperty("label", self._label(label))
        if mono:
            field.setFont(fonts.mono(12))
        if secret:
            field.setEchoMode(QLineEdit.EchoMode.NoEcho)
            field.setPlaceholderText("nothing is shown while you type")
        self.body.addWidget(field)
        return field

    def _takes(self, state: str) -> None:
        """Which proof is asked for. Broken: none helps; only the owner's reset does."""
        self._state = state
        for field, wanted in ((self.typed, state in ("not_set", "unknown")), (self.passphrase, state == "set")):
            field.setVisible(wanted)
            field.property("label").setVisible(wanted)
        self.weak.setVisible(state in ("not_set", "broken"))
        if state == "broken":
            self.weak.say("The passphrase cannot be checked. The owner resets it at a terminal: watchfloor secrets passphrase reset")

    def _looked(self, view: RearmView) -> None:
        """What a rearm releases, by the supervisor's word."""
        if self._is_sent:
            return
        self._show_open()
        # A kill that came meanwhile is not what the person read. The generation rises with each.
        before = self._view
        self._is_newer = before is not None and view.killed and (not before.killed or view.generation != before.generation)
        if self._is_newer:
            self._say_kills(["A newer kill came: close this and open it again to read what was killed."], "warn", "triangle")
        elif view != self._shown:
            self._show_view(view)
        self._judge()

    def _show_view(self, view: RearmView) -> None:
        self._view = view
        kills = [killed_words(k) for k in reversed(view.kills[-SHOWN:])]
        more = len(view.kill_ids) - len(kills)
        words = kills or ["Nothing is blocked. Agents can start."]
        self._say_kills([*words, *([f"and {plural(more, 'earlier kill')}"] if more > 0 else [])], "text", "")
        if view.passphrase != "unknown" and view.passphrase != self._state:  # noqa: S105 - a state
            self._takes(view.passphrase)
        if view.blockers:
            self.problem.setText(view.blockers[0])
            self.problem.show()
        elif self._blocker and self.problem.text() == self._blocker:
            self.problem.hide()
        self._blocker = view.blockers[0] if view.blockers else ""

    def _say_kills(self, paragraphs: list[str], role: str, mark: str) -> None:
        """What was killed, the newest first, or why that is not shown."""
        self._shown = None if mark else self._view
        for text in self.earlier:
            self.body.removeWidget(text)
            text.deleteLater()
        self.earlier.clear()
        self.killed.say(paragraphs[0], role, mark)
        for words in paragraphs[1:]:
            text = Text(words, 13, fonts.REGULAR, "text", wrap=True)
            self.body.insertWidget(self.body.indexOf(self.killed) + 1 + len(self.earlier), text)
            text.show()  # at once: what is not shown yet has no height
            self.earlier.append(text)

    def _unread(self, error: ConsoleError) -> None:
        if not self._is_sent:
            self._say_kills([f"What was killed could not be read: {error.what}"], "warn", "triangle")

    def _judge(self) -> None:
        """What was not read, what is released already, and what another kill came after is not rearmed from here."""
        self.main.allow(self._why_not())

    def _why_not(self) -> str:
        if self._is_sent:
            return IN_PROGRESS
        if self._view is None:
            return "What was killed has not been read."
        if not self._view.killed:
            return "Nothing is blocked."
        if self._is_newer:
            return "A newer kill came: close this and open it again."
        if self._state == "broken":
            return "The passphrase cannot be checked."
        if not self.reason.text().strip():
            return NO_REASON
        if self._state == "set":
            return "" if self.passphrase.text() else "The passphrase is needed."
        return "" if self.typed.text().strip() == self._kill_id else f"Type the id of the kill: {self._kill_id}"

    def _send(self) -> None:
        self._is_sent = True
        self._judge()
        self.problem.hide()
        proof = RearmProof(generation=self._view.generation if self._view is not None else None)
        if self._state == "set":
            proof.passphrase = self.passphrase.text()
            self.passphrase.clear()
        else:
            proof.via = "console"
        body = KillSwitchBody(action="rearm", reason=self.reason.text().strip(), kill_id=self._kill_id, proof=proof)
        asked = self._desk.requests.ask(ep.SWITCH, body=body).while_alive(self)
        asked.then(self._done).failed(self._refused)

    def _refused(self, error: ConsoleError) -> None:
        self._is_sent = False
        self.refused(error)
        self._judge()

    def _done(self, view: KillSwitchView) -> None:
        self._desk.notices.say("info", "Rearmed. Agents can start again; none was started.")
        if view.rearm_note:
            self._desk.notices.say("amber", view.rearm_note)
        self._desk.ask_sync()
        ready = [a for a in self._view.was_running if not a.again_as] if self._view is not None else []
        self.accept()
        if ready:
            AgainDialog(self._desk, ready, self._window).open()


class AgainDialog(Dialog):
    """Who ran before the kill, each with a button of its own. There is none for all of them."""

    def __init__(self, desk: Desk, agents: list[AgainView], parent: QWidget) -> None:
        super().__init__("Rearmed. These ran before the kill", "Done", "plain", parent, width=560)
        self._desk = desk
        self.paragraph("Each comes back only when you start it: the same command in the same session, with the same limits.")
        self.buttons: dict[str, Button] = {}
        self.states: dict[str, Text] = {}
        for agent in agents[:LATER]:
            self._row(agent)
        if len(agents) > LATER:
            self.paragraph(f"and {len(agents) - LATER} more: watchfloor run --again AGENT")
        self.cancel.hide()
        self.main.clicked.connect(self.accept)

    def _row(self, agent: AgainView) -> None:
        state = Text(agent.id, 11, fonts.REGULAR, "text2", mono=True)
        button = Button("Start again", parent=self)
        button.clicked.connect(lambda: self._start(agent.id))
        self.body.addLayout(row((Text(agent.name or agent.id, 13, fonts.MEDIUM), 1), state, button, spacing=-1))
        self.buttons[agent.id], self.states[agent.id] = button, state

    def _start(self, agent_id: str) -> None:
        self.buttons[agent_id].allow("It is started.")
        asked = self._desk.requests.ask(ep.AGAIN, agent_id).while_alive(self)
        asked.then(lambda view: self._started(agent_id, view)).failed(lambda error: self._not_started(agent_id, error))

    def _started(self, agent_id: str, view: LaunchedView) -> None:
        self.states[agent_id].say(f"runs as {view.id}", "text", "dot")
        self._desk.ask_sync()

    def _not_started(self, agent_id: str, error: ConsoleError) -> None:
        self.buttons[agent_id].allow("")
        self.refused(error)
