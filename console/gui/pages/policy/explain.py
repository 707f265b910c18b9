"""Explain: a call that is only typed (or one that was recorded), judged while it is typed: each part, rule and step, and the verdict."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QLineEdit, QPlainTextEdit, QWidget

from console.api import endpoints as ep
from console.api.policy.page import ExplainBody, ExplainedPart, ExplainView
from console.domain.errors import ConsoleError
from console.gui.kit.layout import STRETCH, Part, column, scrolled
from console.gui.kit.table import Cell, listing
from console.gui.models.fleet import Row
from console.gui.pages.interface import Desk
from console.gui.pages.policy.listing import RESULT, FormTab
from console.gui.pages.policy.words import AskedCall, shape_of
from console.gui.theme import fonts
from console.gui.timers import once
from console.gui.widgets.lines import Line, Lines
from console.gui.widgets.reading import empty_note
from console.gui.widgets.rows import ManyRowView
from console.gui.widgets.safe_text import is_plain, safe_lines, safe_text
from console.gui.widgets.text import Text
from console.gui.widgets.words import plural

AFTER_MS = 250
"""After the last key."""
LONGEST = 65_536
EMPTY = (
    "Enter a tool and its arguments. Each part of the call appears here with its result, the rule that decided it and the step. "
    "Nothing is recorded, and nothing is done."
)
_HIDDEN = "It holds hidden characters, shown here as codes. The exact call is checked until you change it."
_TYPED = "The text has hidden characters, and is checked with them."


COLUMNS: tuple[Cell[ExplainedPart], ...] = (
    Cell("verdict", "Verdict", 90, words=lambda row: shape_of(row.verdict)[0], shape=lambda row: shape_of(row.verdict), quiet="text"),
    Cell("step", "Step", 84, hide_below=420, words=lambda row: row.step, role="text2"),
    Cell("text", "Part of the call", share=5, words=lambda row: row.text, mono=True),
    Cell("rule", "Rule", share=4, words=lambda row: row.rule, mono=True),
    Cell("reason", "Why", share=5, hide_below=560, words=lambda row: row.reason, role="text2"),
)


def result_lines(view: ExplainView) -> list[Line]:
    """Below the verdict: sequences, what would be executed, what the answer does not know."""
    lines = [Line(f"Sequence: it {one}.", "triangle", "warn") for one in view.sequences]
    if view.parts_count > len(view.parts):
        lines.append(Line(f"{view.parts_count - len(view.parts):,} more parts are not shown.", "ring"))
    for step in view.steps:
        words = " ".join(word if word and " " not in word else repr(word) for word in step.argv)
        where = step.program or "not on this machine"
        lines.append(Line(f"executes {step.joined} {where}: {words}".replace("  ", " "), "check", mono=True, quiet=True))
    if view.words:
        lines.append(Line(view.words))
    return lines


class CallField(QPlainTextEdit):
    """Plain text; Tab leaves it, Esc gives the focus back."""

    left = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setFont(fonts.mono(12))
        self.setTabChangesFocus(True)
        self.setAccessibleName("Command, path or URL")
        self.setPlaceholderText("Command, path or URL")

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            self.left.emit()
            return
        super().keyPressEvent(event)


class Explainer(FormTab):
    """Asks off the GUI's thread; an answer for other words than what stands there now is none."""

    def __init__(self, desk: Desk, parent: QWidget | None = None) -> None:
        super().__init__(380, parent)
        self._desk = desk
        self._exact: AskedCall | None = None
        """A recorded call that cannot be shown as it is. It is checked as recorded until a field is changed."""
        self.shown: ExplainView | None = None
        self.agent = self._line("Agent: name or id. Empty: check by the rules alone", 200)
        self.tool = self._line("Tool", 200)
        self.tool.setText("shell")
        self.call = CallField(self)
        self.hidden = Text("", 12, fonts.MEDIUM, "warn", wrap=True, mark="triangle")
        self.hidden.hide()
        self.whose = Text("", 12, role="text2", wrap=True)
        self.verdict = Text("", 15, fonts.SEMIBOLD, mark="")
        self.why = Text("", 12, role="text2", wrap=True)
        self.parts = listing("Parts of the call", COLUMNS, lambda row: f"{row.step}\0{row.rule}\0{row.text}", self, ManyRowView)
        self.model = self.parts.row_model
        self.parts.order.keep("", "The parts stand in the order in which they are checked.")
        self.empty = empty_note(self.parts, EMPTY)
        self.empty.show()
        self.lines = Lines(12, self)
        self._late = once(self, AFTER_MS, self.ask)
        self._build()
        for field in (self.agent, self.tool):
            field.textChanged.connect(lambda _text: self._edited())
        self.call.textChanged.connect(self._edited)
        self.call.left.connect(self.parts.setFocus)

    def _line(self, name: str, longest: int) -> QLineEdit:
        field = QLineEdit(self)
        field.setMaxLength(longest)
        field.setAccessibleName(name)
        field.setPlaceholderText(name)
        return field

    def _build(self) -> None:
        self.call.setMinimumHeight(90)
        self.call.setMaximumHeight(260)
        named = (("Agent", self.agent, 0), ("Tool", self.tool, 0), ("Call", self.call, 1))
        fields: list[Part] = [part for words, field, share in named for part in (Text(words, 11, fonts.MEDIUM, "text2"), (field, share))]
        form = column(*fields, self.hidden, self.whose, STRETCH, margins=(16, 12, 16, 12), spacing=6)
        head = column(self.verdict, self.why, margins=(16, 12, 16, 10), spacing=4)
        below = scrolled(self, self.lines, margins=(16, 10, 16, 10), spacing=-1)
        self.lay(form, column(head, (self.parts, 3), (below, 2), margins=RESULT))

    # --- what is asked -----------------------------------------------------------------------------------------------

    def take(self, call: AskedCall) -> None:
        """A recorded call, exactly; what is hidden in it is shown as codes."""
        self._exact = None
        plain = all(is_plain(line) for line in call.argument.split("\n")) and is_plain(call.tool)
        row = self._desk.fleet.rows.get(call.agent_id)
        self.agent.setText(row.id if row is not None else "")
        self.tool.setText(safe_text(call.tool, 200))
        self.call.setPlainText(call.argument[:LONGEST] if plain else safe_lines(call.argument, LONGEST))
        self._exact = call
        self._say_hidden()
        if call.agent_id and row is None:
            self.whose.setText(f"Its agent, {call.agent_id}, is no longer in the fleet. The call is checked by the rules alone.")
        self._late.start()

    def asked(self) -> tuple[ExplainBody | None, str]:
        """(what would be asked, why not)."""
        if self._exact is not None:
            tool, argument, cwd = self._exact.tool, self._exact.argument, self._exact.cwd
        else:
            tool, argument, cwd = self.tool.text().strip(), self.call.toPlainText(), ""
        if not tool.strip() or not argument.strip():
            return None, ""
        if len(argument) > LONGEST or len(tool) > 200:
            return None, f"A call is explained up to {LONGEST:,} characters."
        agent_id, why = self._agent()
        if why:
            return None, why
        try:
            argument.encode()
            tool.encode()
        except UnicodeEncodeError:
            return None, "It is not valid UTF-8: such a call is denied."
        return ExplainBody(tool=tool, argument=argument, agent_id=agent_id, cwd=cwd[:4096]), ""

    def ask(self) -> None:
        """Asks about exactly what stands in the fields."""
        self._late.stop()
        body, why = self.asked()
        if body is None:
            self._nothing(why)
            return
        asked = self._desk.requests.ask(ep.EXPLAIN, body=body).while_alive(self)
        asked.then(lambda view: self._came(body, view)).failed(lambda error: self._failed(body, error))

    def _agent(self) -> tuple[str, str]:
        """Return (agent id, why not). An empty id: the call is checked by the rules alone, without an agent."""
        wanted = self.agent.text().strip()
        if not wanted:
            return "", ""
        rows = self._desk.fleet.rows
        if wanted in rows:
            return wanted, ""
        named: list[Row] = [row for row in rows.values() if row.name == wanted]
        if len(named) == 1:
            return named[0].id, ""
        many = f"{plural(len(named), 'agent')} have that name: write the id" if named else "No agent of that name or id is in the fleet"
        return "", f"{many}."

    def _edited(self) -> None:
        self._exact = None
        self.shown = None
        self._say_hidden()
        self.whose.setText("")
        body, why = self.asked()
        if body is None:
            self._nothing(why)
            self._late.stop()
            return
        self.verdict.say("Checking…", "text2", "ring")
        self._late.start()

    def _say_hidden(self) -> None:
        exact = self._exact
        if exact is not None:
            words = "" if is_plain(exact.tool) and all(is_plain(one) for one in exact.argument.split("\n")) else _HIDDEN
        else:
            words = "" if all(is_plain(one) for one in self.call.toPlainText().split("\n")) else _TYPED
        self.hidden.setText(words)
        self.hidden.setVisible(bool(words))

    # --- what came ---------------------------------------------------------------------------------------------------

    def _nothing(self, why: str) -> None:
        self.shown = None
        self.parts.show_rows([])
        self.lines.say([])
        self.verdict.say(why, "warn", "triangle" if why else "")
        self.why.setText("")
        self.empty.show()

    def _came(self, body: ExplainBody, view: ExplainView) -> None:
        if self.asked()[0] != body:
            return  # the answer is for another text
        self.shown = view
        word, mark, role = shape_of(view.verdict)
        self.verdict.say(f"{word}: {view.rule}", role if role != "text2" else "text", mark)
        self.why.setText(view.reason)
        self.parts.show_rows(list(view.parts))
        self.empty.setVisible(not view.parts)
        self.lines.say(result_lines(view))

    def _failed(self, body: ExplainBody, error: ConsoleError) -> None:
        if self.asked()[0] == body:
            self._nothing(f"Not known: {error}")
