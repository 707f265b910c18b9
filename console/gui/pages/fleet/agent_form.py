"""The fields of an agent that is about to be started; what they hold is read as a whole, or refused with the field named."""

from __future__ import annotations

import shlex
from typing import Any

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QGridLayout, QHBoxLayout, QLineEdit, QPlainTextEdit, QWidget

from console.api.agents.programs import ProgramItem, TemplateView
from console.api.messages import LaunchBody
from console.domain.budget import parse_limit
from console.domain.conversation import checked_model, checked_text
from console.domain.errors import UsageProblem
from console.domain.message import Malformed
from console.gui.kit.layout import STRETCH, column, fill, row
from console.gui.pages.network.register import LEVELS
from console.gui.theme import fonts
from console.gui.widgets.buttons import Pill, Pills
from console.gui.widgets.choice import Choice
from console.gui.widgets.safe_text import kind_of, safe_text, tooltip
from console.gui.widgets.text import Text
from console.gui.widgets.words import plural
from console.policy.scopes import Scope
from console.wording.agent_kinds import STARTABLE

KINDS = {**STARTABLE, "command": "Any command"}
SANDBOXES = {"none": "none: own cgroup", "bubblewrap": "bubblewrap", "docker": "Docker", "gvisor": "gVisor"}
NETWORKS = {"": "as its data asks", "FULL": "FULL: whole network", "PROXIED": "PROXIED: allowlist", "NONE": "NONE: no network"}
SESSIONS = 50
"""Sessions that can be chosen; the one used last first."""
_UNWRITTEN = "(not written yet)"


class AgentForm(QWidget):
    """``changed`` with every edit."""

    changed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._quiet = False
        self.kind = Pills(KINDS, self)
        self.kind.changed.connect(lambda _kind: self._kind_changed())
        self.prompt = QPlainTextEdit(self)
        self.prompt.setAccessibleName("Prompt")
        self.prompt.setPlaceholderText("What it is asked to do. No word of it becomes an option.")
        self.prompt.setTabChangesFocus(True)
        self.prompt.setFixedHeight(84)
        self.prompt.setFont(fonts.ui(13))
        self.prompt.textChanged.connect(self._edited)
        self.command = self._line("Command", "python3 agent.py", 4000, mono=True)
        self.name = self._line("Name", "optional", 200)
        self.model = self._line("Model", "its own choice", 100, mono=True)
        self.sandbox = self._choice("Sandbox", SANDBOXES)
        self.network = self._choice("Network", NETWORKS)
        self.data = self._choice("Data", {level: level for level in LEVELS})
        self.session = self._choice("Session", {"": "a session of its own"})
        self.cost = self._line("May cost, USD", "no limit", 12)
        self.wall = self._line("May run, minutes", "no limit", 12)
        self.limits = self._line("Other limits", "tokens=100000 tool_calls=50", 200, mono=True)
        self.project = self._line("Project", "charged too; optional", 200)
        self.scopes = {scope.value: self._scope(scope.value) for scope in Scope}
        self.dry_run = Pill("start it in dry-run", self, alone=True)
        self.dry_run.setToolTip(tooltip("Its calls are checked and planned, not executed, until an operator takes it out of dry-run."))
        self.dry_run.toggled.connect(lambda _on: self._edited())
        self._build()
        self._kind_changed()

    def _line(self, name: str, hint: str, longest: int, *, mono: bool = False) -> QLineEdit:
        field = QLineEdit(self)
        field.setAccessibleName(name)
        field.setPlaceholderText(hint)
        field.setMaxLength(longest)
        if mono:
            field.setFont(fonts.mono(12))
        field.textChanged.connect(lambda _text: self._edited())
        return field

    def _choice(self, name: str, choices: dict[str, str]) -> Choice:
        box = Choice(self)
        box.setAccessibleName(name)
        box.setMinimumContentsLength(8)
        box.setSizeAdjustPolicy(Choice.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        for key, words in choices.items():
            box.addItem(words, key)
        box.currentIndexChanged.connect(lambda _index: self._edited())
        return box

    def _scope(self, name: str) -> Pill:
        pill = Pill(name.replace("_", " ").lower(), self, alone=True)
        pill.setToolTip(tooltip("Grant only the marked kinds of effects; none marked: as the settings say."))
        pill.toggled.connect(lambda _on: self._edited())
        return pill

    def _build(self) -> None:
        self.templates_row = row(spacing=6)
        self.templates: Pills | None = None
        grid = QGridLayout()
        grid.setHorizontalSpacing(12)
        grid.setVerticalSpacing(8)
        fields = (
            (self.name, self.model), (self.sandbox, self.network), (self.data, self.session), (self.cost, self.wall),
            (self.limits, self.project),
        )  # fmt: skip
        for line, pair in enumerate(fields):
            for place, field in enumerate(pair):
                label = Text(field.accessibleName(), 11, fonts.MEDIUM, "text2")
                grid.addLayout(column(label, field, spacing=3), line, place)
        grid.setColumnStretch(0, 1)
        grid.setColumnStretch(1, 1)
        pills = list(self.scopes.values())
        words = Text("Effects it may have (none marked: as the settings say)", 11, fonts.MEDIUM, "text2")
        asked = (_row(self.kind), self.templates_row, self.prompt, self.command, grid)
        effects = (words, _row(*pills[:4]), _row(*pills[4:]), _row(self.dry_run))
        column(*asked, *effects, STRETCH, margins=(0, 0, 10, 0), spacing=8, on=self)

    # --- what is chosen ----------------------------------------------------------------------------------------------

    @property
    def is_command(self) -> bool:
        """Any command, else a program that can be talked to."""
        return self.kind.chosen() == "command"

    def offer(self, templates: list[TemplateView]) -> None:
        """The supervisor's templates; the first is taken. Once."""
        if self.templates is not None or not templates:
            return
        by_name = {t.name: t for t in templates[:5]}
        self.templates = Pills({name: name.capitalize() for name in by_name}, self)
        self.templates.changed.connect(lambda name: self.fill(by_name[name]))
        for name, template in by_name.items():
            self.templates.pills[name].setToolTip(tooltip(template.words))
        fill(self.templates_row, Text("Begin with", 11, fonts.MEDIUM, "text2"), self.templates, STRETCH)
        self.fill(next(iter(by_name.values())))

    def offer_sessions(self, sessions: list[str]) -> None:
        """Sessions it may share a workspace with; ids are hostile."""
        chosen, self._quiet = self.session.currentData(), True
        while self.session.count() > 1:
            self.session.removeItem(1)
        for one in sessions[:SESSIONS]:
            self.session.addItem(safe_text(one, 70), one)
        self.session.setCurrentIndex(max(0, self.session.findData(chosen)))
        self._quiet = False

    def fill(self, template: TemplateView) -> None:
        """A template's beginning: how it is held and capped, never what it is asked."""
        self._quiet = True
        for box, wanted in (
            (self.sandbox, template.sandbox),
            (self.data, template.sensitivity),
            (self.network, template.network_mode or ""),
        ):
            box.setCurrentIndex(max(0, box.findData(wanted)))
        limits = dict(template.limits)
        cost, wall = limits.pop("cost", None), limits.pop("wall", None)
        self.cost.setText("" if cost is None else f"{cost:g}")
        self.wall.setText("" if wall is None else f"{wall / 60:g}")
        self.limits.setText(" ".join(f"{name}={value:g}" for name, value in limits.items()))
        self._quiet = False
        self._edited()

    # --- what is sent ------------------------------------------------------------------------------------------------

    def missing(self) -> str:
        """Why it cannot start yet though it can be looked at ahead; empty: nothing is missing."""
        if self.is_command:
            return "" if self.command.text().strip() else "Write the command."
        return "" if self.prompt.toPlainText().strip() else "Write what it is asked to do."

    def written(self) -> str:
        """All that a person typed or pasted."""
        fields = (self.command, self.name, self.model, self.limits, self.project)
        return "\n".join((self.prompt.toPlainText(), *(field.text() for field in fields)))

    def to_send(self) -> ProgramItem | LaunchBody:
        """What stands there; with nothing written yet a stand-in, for a look ahead. Raises UsageProblem that names the field."""
        shared: dict[str, Any] = {
            "name": self.name.text().strip(),
            "context_id": self.session.currentData() or None,
            "sandbox": self.sandbox.currentData(),
            "sensitivity": self.data.currentData(),
            "network_mode": self.network.currentData() or None,
            "limits": self._limits(),
            "project": self.project.text().strip(),
            "scopes": [name for name, pill in self.scopes.items() if pill.isChecked()] or None,
            "dry_run": self.dry_run.isChecked(),
        }
        try:
            if self.is_command:
                return LaunchBody.made(argv=self._argv(), **shared)
            text = self.prompt.toPlainText()
            prompt = checked_text(text) if text.strip() else _UNWRITTEN
            return ProgramItem.made(agent=self.kind.chosen(), prompt=prompt, model=checked_model(self.model.text().strip()), **shared)
        except Malformed as error:
            raise UsageProblem(f"{error.where.partition('.')[0] or 'A field'} cannot be sent as it is.", error.words) from error

    def _argv(self) -> list[str]:
        try:
            return shlex.split(self.command.text()) or [_UNWRITTEN]
        except ValueError as error:
            raise UsageProblem(f"The command cannot be read: {error}.", "Close the quotes.") from error

    def _limits(self) -> dict[str, float]:
        limits: dict[str, float] = {}
        for field, name, factor in ((self.cost, "cost", 1.0), (self.wall, "wall", 60.0)):
            if text := field.text().strip():
                limits[name] = parse_limit(f"{name}={text}")[1] * factor
        for word in self.limits.text().split():
            name, value = parse_limit(word)
            limits[name] = value
        return limits

    def _kind_changed(self) -> None:
        self.prompt.setVisible(not self.is_command)
        self.command.setVisible(self.is_command)
        self.model.setEnabled(not self.is_command)
        self._edited()

    def _edited(self) -> None:
        if not self._quiet:
            self.changed.emit()


def hidden_words(text: str) -> str:
    """What was pasted may hold more than is seen; empty: nothing is hidden in it."""
    hidden = 0 if text.isascii() and text.isprintable() else sum(kind_of(c) == "hidden" and c not in "\n\t" for c in text)
    return f"{plural(hidden, 'hidden character')} in what is written here: it may say more than you see." if hidden else ""


def _row(*widgets: QWidget) -> QHBoxLayout:
    return row(*widgets, STRETCH, spacing=6)
