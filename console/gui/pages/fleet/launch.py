"""The dialog that starts an agent: a command, how it is held, and what it may cost."""

from __future__ import annotations

import shlex

from pydantic import ValidationError
from PySide6.QtWidgets import QComboBox, QGridLayout, QLineEdit, QWidget

from console.api.messages import LaunchBody
from console.domain.errors import UsageProblem
from console.gui.theme import fonts
from console.gui.widgets.dialog import Dialog
from console.gui.widgets.text import Text

_SANDBOXES = {"none": "own cgroup and namespaces (managed)", "bubblewrap": "bubblewrap (contained)", "docker": "Docker (contained)"}
_SENSITIVITIES = ("PUBLIC", "INTERNAL", "CONFIDENTIAL", "SECRET")


class LaunchDialog(Dialog):
    """``body_to_send`` reads the fields; the main button is the caller's."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__("Run an agent", "Run", "primary", parent, width=520)
        self.paragraph("The same as: watchfloor run -- COMMAND. It runs in its own workspace, with a scrubbed environment.")
        grid = QGridLayout()
        grid.setHorizontalSpacing(12)
        grid.setVerticalSpacing(8)
        self.command = QLineEdit(self)
        self.command.setPlaceholderText("python3 agent.py")
        self.command.setFont(fonts.mono(12))
        self.name = QLineEdit(self)
        self.name.setMaxLength(200)
        self.sandbox = QComboBox(self)
        for key, words in _SANDBOXES.items():
            self.sandbox.addItem(words, key)
        self.sensitivity = QComboBox(self)
        self.sensitivity.addItems(_SENSITIVITIES)
        self.cost = QLineEdit("5.00", self)
        self.cost.setMaxLength(12)
        fields: tuple[tuple[str, QWidget], ...] = (
            ("Command", self.command),
            ("Name", self.name),
            ("Sandbox", self.sandbox),
            ("Data", self.sensitivity),
            ("May cost, USD", self.cost),
        )
        for row, (words, field) in enumerate(fields):
            grid.addWidget(Text(words, 12, fonts.REGULAR, "text2"), row, 0)
            grid.addWidget(field, row, 1)
            field.setAccessibleName(words)
        grid.setColumnStretch(1, 1)
        self.body.addLayout(grid)
        self.command.setFocus()

    def body_to_send(self) -> LaunchBody:
        """Raises UsageProblem that names the field."""
        try:
            argv = shlex.split(self.command.text())
        except ValueError as error:
            raise UsageProblem(f"The command cannot be read: {error}.", "Close the quotes.") from error
        if not argv:
            raise UsageProblem("There is no command to run.", "For example: python3 agent.py")
        limits: dict[str, float] = {}
        if self.cost.text().strip():
            try:
                limits["cost_usd"] = float(self.cost.text().strip())
            except ValueError as error:
                raise UsageProblem("The cost must be a number.", "For example 2.50; empty for no cap.") from error
        try:
            return LaunchBody(
                argv=argv,
                name=self.name.text().strip(),
                sandbox=self.sandbox.currentData(),
                sensitivity=self.sensitivity.currentText(),  # type: ignore[arg-type]
                limits=limits,
            )
        except ValidationError as error:
            raise UsageProblem("The fields cannot be sent as they are.", str(error.errors()[0]["msg"])) from error
