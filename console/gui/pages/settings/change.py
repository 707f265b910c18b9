"""The question before a setting changes: what holds, what is typed, when it takes effect, and why it is done."""

from __future__ import annotations

import json
from typing import Any

from PySide6.QtWidgets import QLineEdit, QWidget

from console.api import endpoints as ep
from console.api.settings import SettingBody, SettingRow, SettingsView
from console.domain.errors import ConsoleError, UsageProblem
from console.gui.pages.interface import Desk
from console.gui.pages.settings.rows import shown
from console.gui.theme import fonts
from console.gui.widgets.choice import Choice
from console.gui.widgets.dialog import Dialog
from console.gui.widgets.text import Text

LONGEST = 10_000
NEXT_START = "It takes effect when Watchfloor is started again."


def typed(row: SettingRow, value: Any) -> str:
    """A value as a person types it."""
    return value if isinstance(value, str) and row.kind in ("text", "choice") else json.dumps(value, ensure_ascii=False)


def read(row: SettingRow, text: str) -> Any:
    """The reverse. Raises UsageProblem. What the setting takes is checked by the supervisor."""
    if row.kind in ("text", "choice"):
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        example = ", for example {}" if row.kind == "table" else ", for example []" if row.kind == "list" else ""
        raise UsageProblem(f"It takes {row.takes}{example}.", "") from error


class ChangeDialog(Dialog):
    """Nothing is sent without a reason. ``is_reset``: the value of this account is taken out."""

    def __init__(self, desk: Desk, row: SettingRow, parent: QWidget, *, is_reset: bool = False) -> None:
        title = f"Reset {row.key}" if is_reset else f"Change {row.key}"
        super().__init__(title, "Reset" if is_reset else "Change", "primary", parent, width=520)
        self.desk, self.row, self.is_reset = desk, row, is_reset
        self.paragraph(row.words)
        if is_reset:
            self.paragraph(
                f"Takes {shown(row.next_value, row.unit)} out of this account's settings. Other files, or the default, then count."
            )
        else:
            self._ask_value()
        self.paragraph(NEXT_START)
        self.reason = self.ask_reason()
        self.reason.textChanged.connect(lambda _text: self.allow())
        self.reason.returnPressed.connect(self.main.click)
        self.main.clicked.connect(self._send)
        self.allow()

    def _ask_value(self) -> None:
        row = self.row
        unit = f", in {row.unit}" if row.unit else ""
        self.body.addWidget(Text(f"New value: {row.takes}{unit}", 11, fonts.MEDIUM, "text2", wrap=True))
        choices = ["true", "false"] if row.kind == "bool" else row.choices
        self.choice, self.field = Choice(self), QLineEdit(self)
        for choice in choices:
            self.choice.addItem(choice or "not set", choice)
        now = typed(row, row.next_value)
        self.choice.setCurrentIndex(max(0, self.choice.findData(now)))
        self.choice.setVisible(bool(choices))
        self.choice.setAccessibleName("New value")
        self.choice.currentIndexChanged.connect(lambda _index: self.allow())
        self.field.setMaxLength(LONGEST)
        self.field.setText(now)
        self.field.setVisible(not choices)
        self.field.setAccessibleName("New value")
        self.field.textChanged.connect(lambda _text: self.allow())
        self.body.addWidget(self.choice)
        self.body.addWidget(self.field)
        (self.choice if choices else self.field).setFocus()
        self.field.selectAll()

    def value(self) -> Any:
        """What is asked for. Raises UsageProblem."""
        if self.choice.count():
            return read(self.row, str(self.choice.currentData()))
        return read(self.row, self.field.text())

    def missing(self) -> str:
        """What has to be filled in first, or empty."""
        if not self.is_reset:
            try:
                if self.value() == self.row.next_value:
                    return "Nothing differs from what is set."
            except UsageProblem as error:
                return error.what
        return "" if self.reason.text().strip() else "Give a reason: it is recorded."

    def allow(self) -> None:
        """The main button is off, with why, until it can be sent."""
        self.main.allow(self.missing())

    def _send(self) -> None:
        reason = self.reason.text().strip()
        value = None if self.is_reset else self.value()
        body = SettingBody(key=self.row.key, value=value, reset=self.is_reset, reason=reason)
        self.problem.hide()
        self.main.allow("In progress.")
        self.desk.requests.ask(ep.CHANGE_CONFIG, body=body).then(self._done).failed(self._failed)

    def _failed(self, error: ConsoleError) -> None:
        if self.is_open:
            self.refused(error)
        else:
            self.desk.notices.fail(error)

    def _done(self, view: SettingsView) -> None:
        self.desk.ask_sync()
        row = next((row for row in view.rows if row.key == self.row.key), self.row)
        when = NEXT_START if row.is_waiting else "It is in force."
        self.desk.notices.say("info", f"{row.key} is set to {shown(row.next_value, row.unit)}. {when}")
        if self.is_open:
            self.accept()
