"""Backtest: a change of the rules, tried on the recorded calls while it is written; only what was tried can be put in force."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QLineEdit, QPlainTextEdit, QWidget

from console.api import endpoints as ep
from console.api.policy.rules import DAYS, ChangedCall, PolicySaveBody, PolicyTryBody, PolicyTryView, PolicyView
from console.domain.errors import Conflict, ConsoleError
from console.gui.kit.layout import STRETCH, Part, column, row
from console.gui.kit.table import Cell, listing, paint_shape
from console.gui.pages.interface import Desk
from console.gui.pages.policy.listing import RESULT, FormTab
from console.gui.pages.policy.words import shape_of
from console.gui.theme import fonts
from console.gui.timers import once
from console.gui.widgets.buttons import Button, Pills
from console.gui.widgets.lines import Line, Lines
from console.gui.widgets.reading import empty_note
from console.gui.widgets.rows import Canvas, ManyRowView
from console.gui.widgets.safe_text import is_plain
from console.gui.widgets.text import Text
from console.gui.widgets.words import day_clock

AFTER_MS = 300
"""After the last key."""
FILE_MAX = 200_000
_RULE_MAX = 1024
_RULES_MAX = 50
MODES = {"deny": "Add deny", "ask": "Add ask", "allow": "Add allow", "file": "Whole file"}
EMPTY = (
    "Write a rule, or change the whole file. The recorded calls are decided again by it, and those that would have been "
    "decided differently appear here, the looser ones first. Nothing changes until you put it in force."
)
SAME = "No recorded call would have been decided differently."


def changed_words(view: PolicyTryView) -> str:
    """``Would have decided 14 of 2,310 differently, 1 of them looser.``"""
    looser = f", {view.looser:,} of them looser" if view.changed else ""
    left = f" {view.left_out:,} could not be tried: their agent is not known any more, or time was short." if view.left_out else ""
    if not view.recorded:
        return f"No call was recorded in {DAYS} days: what it would change is not known."
    named = f" The first {len(view.calls):,} are shown." if view.changed > len(view.calls) else ""
    return f"Would have decided {view.changed:,} of {view.recorded:,} differently{looser}.{named}{left}"


def _word(verdict: str) -> str:
    return shape_of(verdict)[0].lower()


def _change(row: ChangedCall) -> str:
    return f"{_word(row.before)} → {_word(row.after)}"


def _paint_change(canvas: Canvas, row: ChangedCall) -> None:
    """Looser is amber, with a triangle."""
    mark, role = ("triangle", "warn") if row.looser else ("check", "text2")
    paint_shape(canvas, "change", (_change(row), mark, role), "text", fonts.MEDIUM)


COLUMNS: tuple[Cell[ChangedCall], ...] = (
    Cell(
        "change",
        "Would be decided",
        150,
        words=lambda row: f"{'looser: ' if row.looser else 'stricter: '}{_change(row)}",
        paint=_paint_change,
        sort="words",
    ),
    Cell("at", "When", 100, hide_below=520, words=lambda row: day_clock(row.at), role="text2", mono=True, sort=lambda row: row.at),
    Cell("agent", "Agent", share=2, hide_below=620, words=lambda row: row.agent_id, role="text2", sort="words"),
    Cell("call", "Call", share=6, words=lambda row: f"{row.tool} {row.argument}", mono=True, sort="words"),
    Cell("rule", "By rule", share=3, hide_below=460, words=lambda row: row.rule, role="text2", mono=True, sort="words"),
)


def _key_of(row: ChangedCall) -> str:
    return f"{row.at} {row.agent_id} {row.tool} {row.argument}"


class Backtest(FormTab):
    """``saved`` once a file is in force; ``opened`` with the recorded call on Enter."""

    saved = Signal(object)
    opened = Signal(object)

    def __init__(self, desk: Desk, parent: QWidget | None = None) -> None:
        super().__init__(420, parent)
        self._desk = desk
        self.policy: PolicyView | None = None
        self.tried: PolicyTryView | None = None
        self._asked: tuple[PolicyTryBody, str] | None = None
        """What was asked last, and the hash of the rules it was written over."""
        self._file_base = ""
        """The hash of the file that was loaded into the field."""
        self._saving = False
        self.modes = Pills(MODES, self)
        self.field = QPlainTextEdit(self)
        self.words = Text("", 13, fonts.SEMIBOLD, wrap=True)
        self.findings = Lines(6, self)
        self.reason = QLineEdit(self)
        self.save = Button("Put in force", kind="primary", keys="Ctrl S", parent=self)
        self.again = Button("Load what is in force", "refresh", small=True, parent=self)
        self.problem = Text("", 12, fonts.MEDIUM, "warn", wrap=True, mark="triangle")
        self.view = listing("Calls that would be decided differently", COLUMNS, _key_of, self, ManyRowView)
        self.empty = empty_note(self.view, EMPTY)
        self.empty.show()
        self._late = once(self, AFTER_MS, self.attempt)
        self._build()
        self.modes.changed.connect(lambda _mode: self._turned())
        self.field.textChanged.connect(self._edited)
        self.reason.textChanged.connect(lambda _text: self.allow())
        self.save.clicked.connect(self.put_in_force)
        self.again.clicked.connect(self.load)
        self.view.opened.connect(self.opened)
        self._turned()

    def _build(self) -> None:
        self.field.setFont(fonts.mono(12))
        self.field.setTabChangesFocus(True)
        self.field.setAccessibleName("Rules, one a line")
        self.reason.setMaxLength(500)
        self.reason.setAccessibleName("Reason")
        self.problem.hide()
        self.hint = Text("", 11, fonts.MEDIUM, "text2", wrap=True)
        label = Text("Reason, for the record", 11, fonts.MEDIUM, "text2")
        written: tuple[Part, ...] = (row(self.modes, STRETCH), self.hint, (self.field, 1), self.again, self.findings)
        form = column(*written, label, self.reason, self.problem, self.save, margins=(16, 12, 16, 12), spacing=8)
        head = column(self.words, margins=(17, 14, 16, 12))
        self.lay(form, column(head, (self.view, 1), margins=RESULT))

    # --- what is written ---------------------------------------------------------------------------------------------

    def take(self, view: PolicyView) -> None:
        """The rules in force, read again."""
        changed = self.policy is None or self.policy.sha256 != view.sha256
        self.policy = view
        if changed and self.modes.chosen() == "file" and not self.field.toPlainText():
            self.load()
        elif changed and self.modes.chosen() != "file" and self.rules():
            self._edited()  # tried over other rules than those in force now
        self.allow()

    def rules(self) -> list[str]:
        """What stands in the field, one a line."""
        return [line.strip() for line in self.field.toPlainText().split("\n") if line.strip()]

    def body(self) -> tuple[PolicyTryBody | None, str]:
        """(what would be tried, why nothing can be)."""
        mode, text = self.modes.chosen(), self.field.toPlainText()
        if not text.strip():
            return None, ""
        if not all(is_plain(line.replace("\t", " ")) for line in text.split("\n")):
            return None, "Rules are plain text, without hidden characters."
        if mode == "file":
            fits = len(text) <= FILE_MAX
            return (PolicyTryBody(text=text), "") if fits else (None, f"A file of more than {FILE_MAX:,} characters is not tried here.")
        rules = self.rules()
        if len(rules) > _RULES_MAX or any(len(rule) > _RULE_MAX for rule in rules):
            return None, f"At most {_RULES_MAX} rules of {_RULE_MAX:,} characters are added at once."
        return PolicyTryBody.read({"add": rules, "to": mode}), ""

    def load(self) -> None:
        """The file in force, to be changed."""
        view = self.policy
        if view is None:
            self._say("The rules have not been read yet.", "warn", "triangle")
        elif len(view.text) > FILE_MAX or not all(is_plain(line.replace("\t", " ")) for line in view.text.split("\n")):
            self._say("This file is too long, or holds hidden characters: change it where it lies.", "warn", "triangle")
        else:
            self._file_base = view.sha256
            self.field.setPlainText(view.text)

    def _turned(self) -> None:
        mode = self.modes.chosen()
        whole = mode == "file"
        self.again.setVisible(whole)
        self.hint.setText("The whole file, as it would be in force" if whole else f"Rules to add to {mode}, one a line")
        self.field.setAccessibleName("The whole file" if whole else f"Rules to {mode}, one a line")
        self.field.setPlaceholderText("" if whole else {"deny": "shell(rm:*)", "ask": "shell(git push:*)"}.get(mode, "shell(make test:*)"))
        if whole and not self.field.toPlainText().lstrip().startswith("{"):
            self.load()
        elif not whole and self.field.toPlainText().lstrip().startswith("{"):
            self.field.setPlainText("")
        self._edited()

    def _edited(self) -> None:
        self.tried, self._asked = None, None
        self.view.show_rows([])
        self.empty.setText(EMPTY)
        self.empty.show()
        self.findings.say([])
        self.problem.hide()
        body, why = self.body()
        if body is None:
            self._late.stop()
            self._say(why, "warn", "triangle" if why else "")
        else:
            self._say("Checking the recorded calls again…", "text2", "ring")
            self._late.start()
        self.allow()

    # --- trying ------------------------------------------------------------------------------------------------------

    def attempt(self) -> None:
        """Tries exactly what stands in the field."""
        body, _ = self.body()
        if body is None or self.policy is None:
            return
        base = self._file_base if self.modes.chosen() == "file" else self.policy.sha256
        self._asked = this = (body, base)
        asked = self._desk.requests.ask(ep.TRY_POLICY, body=body).while_alive(self)
        asked.then(lambda view: self._came(this, view)).failed(lambda error: self._failed(this, error))

    def _came(self, this: tuple[PolicyTryBody, str], view: PolicyTryView) -> None:
        if self._asked is not this or self.body()[0] != this[0]:
            return  # the answer is for another text, or was tried over rules that are in force no more
        self.tried = view
        amber = bool(view.looser or view.findings or view.left_out or not view.recorded)
        self._say(changed_words(view), "warn" if amber else "text", "triangle" if amber else "check")
        self.view.show_rows(sorted(view.calls, key=lambda one: not one.looser))
        self.empty.setText(SAME if view.recorded else "No call is recorded to try it on.")
        self.empty.setVisible(not view.calls)
        self.findings.say([Line(f"Lint, {one}", "triangle", "warn", quiet=not one.startswith("refused")) for one in view.findings])
        self.allow()

    def _failed(self, this: tuple[PolicyTryBody, str], error: ConsoleError) -> None:
        if self._asked is this:
            self._say(f"It cannot be tried: {error}", "warn", "triangle")

    # --- saving ------------------------------------------------------------------------------------------------------

    def why_not(self) -> str:
        """Empty when exactly this can be put in force."""
        if self._desk.switch.is_killed:
            return "Killed: nothing changes until you rearm."
        if self._saving:
            return "It is being saved."
        body, why = self.body()
        if body is None:
            return why or "No rule stands in the field."
        if self.tried is None or self._asked is None or self._asked[0] != body:
            return "The recorded calls were not checked with exactly this yet."
        if len(self._asked[1]) != len(self.tried.sha256):
            return "Which rules are in force is not known, so nothing is put over them."
        if self.policy is None or self._asked[1] != self.policy.sha256:
            return "Other rules are in force than those it was tried over: load them, or change a letter to try again."
        if self.tried.sha256 == self.policy.sha256:
            return "These rules are in force already."
        return "" if self.reason.text().strip() else "A reason is needed."

    def allow(self) -> None:
        """The button, with the reason why not."""
        looser = self.tried.looser if self.tried is not None else 0
        self.save.setText(f"Put in force, {looser:,} looser" if looser else "Put in force")
        self.save.allow(self.why_not())

    def put_in_force(self) -> None:
        """What was tried, exactly; on record first."""
        why = self.why_not()
        if why or self.tried is None or self._asked is None:
            self.problem.setText(why)
            self.problem.setVisible(bool(why))
            return
        self._saving = True
        self.allow()
        body = PolicySaveBody(text=self.tried.text, base_sha256=self._asked[1], reason=self.reason.text().strip())
        self._desk.requests.ask(ep.SAVE_POLICY, body=body).while_alive(self).then(self._saved).failed(self._not_saved)

    def _saved(self, view: PolicyView) -> None:
        self._saving = False
        self.policy = view
        self.reason.clear()
        if self.modes.chosen() == "file":
            self.load()
        else:
            self.field.setPlainText("")
        self._edited()
        self._desk.notices.say("info", "The rules are in force, and on record. What waits already is still yours to decide.")
        self.saved.emit(view)

    def _not_saved(self, error: ConsoleError) -> None:
        self._saving = False
        if isinstance(error, Conflict):
            self.tried = None
        self.problem.setText(f"NOT saved: {error}")
        self.problem.show()
        self.allow()

    def _say(self, words: str, role: str, mark: str) -> None:
        self.words.say(words, role, mark)
