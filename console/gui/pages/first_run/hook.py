"""What installing the hook would change in the operator's own settings: the diff, read only, and the command that does it."""

from __future__ import annotations

from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QHBoxLayout, QWidget

from console.api.agents.first_run import HookPreview
from console.domain.errors import ConsoleError
from console.gui.pages.interface import Desk
from console.gui.widgets.buttons import Button
from console.gui.widgets.dialog import Dialog
from console.gui.widgets.reading import PlainView
from console.wording.agent_kinds import PLACES, TITLES

WHY_NOT_HERE = (
    "It is written from a terminal, by you: these are your own settings, outside of what Watchfloor keeps. "
    "The command shows this diff again and asks; --undo takes it out, to the byte."
)


class HookDialog(Dialog):
    """Asks again for each program; nothing is written from here."""

    def __init__(self, desk: Desk, program: str, parent: QWidget) -> None:
        super().__init__("", "Copy the command", "primary", parent, width=min(860, max(520, parent.width() - 80)))
        self._desk = desk
        self.program = ""
        self.file = self.paragraph("")
        self.diff = PlainView("What would change", parent=self)
        self.diff.setFixedHeight(max(140, min(340, parent.height() - 420)))
        self.body.addWidget(self.diff)
        self.gaps = self.paragraph("", "warn", "triangle")
        self._why = self.paragraph(WHY_NOT_HERE)
        self.other = Button("", small=True, parent=self)
        self.other.clicked.connect(lambda: self.look(self._next()))
        row = QHBoxLayout()
        row.addWidget(self.other)
        row.addStretch(1)
        self.body.addLayout(row)
        self.cancel.setText("Close")
        self.main.clicked.connect(self.copy)
        self.look(program)

    @property
    def command(self) -> str:
        return f"watchfloor install-hook {self.program}"

    def _next(self) -> str:
        """The program behind the one that is shown, the first behind the last."""
        names = list(PLACES)
        return names[(names.index(self.program) + 1) % len(names)]

    def look(self, program: str) -> None:
        """Asks what it would change for this program."""
        self.program = program if program in PLACES else next(iter(PLACES))
        self.title.setText(f"Check every tool call of {TITLES[self.program]}: what the hook would change")
        self.other.setText(f"Show {TITLES[self._next()]} instead")
        self.file.say("Asking…", "text2", "")
        self.diff.say("")
        self.problem.hide()
        self.gaps.hide()
        asked = self.program
        pending = self._desk.requests.programs.hook_preview(asked).while_alive(self)
        pending.then(lambda view: self._came(asked, view)).failed(lambda error: self._not_known(asked, error))

    def adjustSize(self) -> None:
        """Paragraphs as high as they are at this width: by itself each would ask for the room of a narrower one."""
        sides = self.contentsMargins().left() + self.contentsMargins().right() + 48
        for text in (self.title, self.file, self.gaps, self._why):
            text.setFixedHeight(text.heightForWidth(self.width() - sides))
        super().adjustSize()

    def copy(self) -> None:
        """The command, for a terminal."""
        QGuiApplication.clipboard().setText(self.command)
        self._desk.notices.say("info", f"Copied, for a terminal: {self.command}. It shows the diff and asks; --undo takes it out again.")
        self.accept()

    def _came(self, asked: str, view: HookPreview) -> None:
        if asked != self.program:
            return
        if view.changed:
            self.file.say(f"{self.command} would change {view.file}; nothing has been changed.", "text2", "")
        else:
            self.file.say(f"{view.file} is as it should be already: nothing would change.", "text2", "ring")
        self.diff.say("\n".join(view.diff) or "No difference.")
        self.gaps.setText(" ".join(view.gaps))
        self.gaps.setVisible(bool(view.gaps))
        self.adjustSize()

    def _not_known(self, asked: str, error: ConsoleError) -> None:
        if asked != self.program:
            return
        self.file.say("What it would change is not known.", "warn", "triangle")
        self.refused(error)
