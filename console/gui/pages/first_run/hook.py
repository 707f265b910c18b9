"""What installing the hook would change in the operator's own settings: the diff, and a button that does it, or takes it out again."""

from __future__ import annotations

import os
import sys

from PySide6.QtCore import QObject, QProcess, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QWidget

from console.api import endpoints as ep
from console.api.agents.first_run import HookPreview
from console.domain.errors import ConsoleError
from console.gui.kit.layout import row
from console.gui.pages.interface import Desk
from console.gui.theme import fonts
from console.gui.timers import once
from console.gui.widgets.buttons import Button
from console.gui.widgets.dialog import IN_PROGRESS, Dialog
from console.gui.widgets.reading import PlainView
from console.gui.widgets.safe_text import safe_text
from console.gui.widgets.text import Text
from console.wording.agent_kinds import PLACES, TITLES

WHOSE = "These are your own settings. What was there stays, and the same button takes the hook out again, to the byte."
RUN_MS = 30_000
_NOT_DONE = "The command did not end in 30 s. Try it in a terminal."


class HookCommand(QObject):
    """Runs ``watchfloor install-hook`` under the account of this window, whose settings they are. ``done`` with why not, or empty."""

    done = Signal(str)

    def __init__(self, program: str, state_dir: str, *, undo: bool, parent: QObject) -> None:
        super().__init__(parent)
        self._process = QProcess(self)
        self._process.setProgram(sys.executable)
        words = ["-P", "-m", "console", "install-hook", program, "--yes", "--state-dir", state_dir]
        self._process.setArguments([*words, "--undo"] if undo else words)
        self._process.setStandardInputFile(QProcess.nullDevice())
        self._process.finished.connect(self._ended)
        self._process.errorOccurred.connect(lambda _error: self._end(self._process.errorString()))
        self._late = once(self, 0, self._too_late)
        self._is_over = False

    def run(self) -> None:
        """Once."""
        self._late.start(RUN_MS)
        self._process.start()

    def _too_late(self) -> None:
        self._end(_NOT_DONE)
        self._process.kill()  # our own child, by its handle

    def _ended(self, code: int, _status: QProcess.ExitStatus) -> None:
        said = bytes(self._process.readAllStandardError().data()).decode("utf-8", "replace").strip()
        self._end("" if code == 0 else safe_text(said, 600) or f"The command ended with exit code {code}.")

    def _end(self, why_not: str) -> None:
        if not self._is_over:
            self._is_over = True
            self._late.stop()
            self.done.emit(why_not)


class HookDialog(Dialog):
    """Asks again for each program. ``changed`` once something was written."""

    changed = Signal()

    def __init__(self, desk: Desk, program: str, parent: QWidget) -> None:
        super().__init__("", "Install the hook", "primary", parent, width=min(860, max(520, parent.width() - 80)))
        self._desk = desk
        self.program = ""
        self._is_installed = False
        self.file = self.paragraph("")
        self.diff = PlainView("What would change", parent=self)
        self.diff.setFixedHeight(max(140, min(340, parent.height() - 420)))
        self.body.addWidget(self.diff)
        self.gaps = self.paragraph("", "warn", "triangle")
        self._why = self.paragraph(WHOSE)
        self.other = Button("", small=True, parent=self)
        self.other.clicked.connect(lambda: self.look(self._next()))
        self.command_line = Text("", 12, fonts.REGULAR, "text2", mono=True)
        self.copy_command = Button("Copy the command", "copy", small=True, parent=self)
        self.copy_command.clicked.connect(self.copy)
        self.body.addLayout(row(self.other, self.copy_command, (self.command_line, 1), spacing=-1))
        self.cancel.setText("Close")
        self.main.clicked.connect(self.act)
        self.look(program)

    @property
    def command(self) -> str:
        """What the button runs."""
        return f"watchfloor install-hook {self.program}{' --undo' if self._is_installed else ''}"

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
        self.main.allow("What it would change is not known yet.")
        self._is_installed = False
        self.command_line.setText(self.command)
        asked = self.program
        pending = self._desk.requests.ask(ep.HOOK_PREVIEW, asked).while_alive(self)
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
        self._desk.notices.say("info", f"Copied, for a terminal: {self.command}. It shows the diff and asks.")

    def _why_not(self) -> str:
        """Why this window cannot write it, or empty."""
        status = self._desk.switch.status
        others = status is not None and status.mode != "user" and os.geteuid() != 0
        return "This is the host's instance. Install the hook in a terminal, under your own account." if others else ""

    def act(self) -> None:
        """Installs it, or takes it out."""
        status = self._desk.switch.status
        if status is None:
            self.refused(ConsoleError("The state of the supervisor is not known yet.", "Try again."))
            return
        self.main.allow(IN_PROGRESS)
        self.other.allow(IN_PROGRESS)
        run = HookCommand(self.program, status.state_dir, undo=self._is_installed, parent=self)
        run.done.connect(self._acted)
        run.run()

    def _acted(self, why_not: str) -> None:
        self.other.allow("")
        if why_not:
            self.refused(ConsoleError(why_not))
            return
        done = "taken out again" if self._is_installed else "installed. Sessions that run now may need a restart"
        self._desk.notices.say("info", f"The hook of {TITLES[self.program]} is {done}.")
        self.changed.emit()
        self.look(self.program)

    def _came(self, asked: str, view: HookPreview) -> None:
        if asked != self.program:
            return
        self._is_installed = not view.changed
        self.main.setText("Take the hook out" if self._is_installed else "Install the hook")
        self.main.allow(self._why_not())
        self.command_line.setText(self.command)
        if view.changed:
            self.file.say(f"It would change {view.file}; nothing has been changed.", "text2", "")
        else:
            self.file.say(f"The hook is installed in {view.file}: nothing would change.", "text2", "ring")
        self.diff.say("\n".join(view.diff) or "No difference.")
        self.gaps.setText(" ".join(view.gaps))
        self.gaps.setVisible(bool(view.gaps))

    def _not_known(self, asked: str, error: ConsoleError) -> None:
        if asked != self.program:
            return
        self.file.say("What it would change is not known.", "warn", "triangle")
        self.refused(error)
        self.main.allow("What it would change is not known.")
