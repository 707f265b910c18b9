"""The question before suspects of a kill are ended: which, why each is one, and what became of it."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QCheckBox, QFrame, QWidget

from console.domain.errors import ConsoleError
from console.domain.kill import Receipt, Suspect
from console.gui.kit.layout import Part, scrolled
from console.gui.pages.interface import Desk
from console.gui.theme import fonts
from console.gui.widgets.dialog import Dialog
from console.gui.widgets.safe_text import safe_text, tooltip
from console.gui.widgets.text import Text
from console.gui.widgets.words import plural

_WHAT = "A kill ends no suspect. Each one that you choose is checked again, then killed. Cannot be undone."
_HEIGHT = 300
_LONGEST = 64


class SuspectsDialog(Dialog):
    """The preselected ones are chosen. A suspect by working folder alone never is: a person has to choose it."""

    def __init__(self, desk: Desk, receipt: Receipt, parent: QWidget) -> None:
        super().__init__("Kill suspects of this kill?", "Kill", "danger", parent, width=600)
        self._desk, self._kill_id = desk, receipt.kill_id
        self.paragraph(_WHAT)
        self.boxes: list[tuple[QCheckBox, Suspect]] = []
        self.told: dict[int, Text] = {}
        """By pid: why it is a suspect, and afterwards what became of it."""
        parts = [part for one in receipt.suspects for part in self._parts(one)]
        scroll = scrolled(self, *parts, margins=(0, 0, 8, 0), spacing=4)
        scroll.setFrameShape(QFrame.Shape.NoFrame)
        scroll.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        scroll.setFixedHeight(min(_HEIGHT, 16 + 62 * len(receipt.suspects)))
        self.body.addWidget(scroll)
        self.main.clicked.connect(self._send)
        self._choose()

    def _parts(self, one: Suspect) -> list[Part]:
        words = safe_text(f"{one.pid}  {one.command or one.exe or 'unknown program'}", _LONGEST)
        box = QCheckBox(words.replace("&", "&&"), self)
        box.setFont(fonts.mono(12))
        box.setToolTip(tooltip(one.command or one.exe))
        box.setChecked(one.preselected)
        box.toggled.connect(self._choose)
        self.boxes.append((box, one))
        self.told[one.pid] = Text(f"{one.agent_id}: {one.why}", 12, fonts.REGULAR, "text2", wrap=True)
        is_cut = len(one.command) + len(str(one.pid)) + 2 > _LONGEST
        whole = [Text(one.command, 12, fonts.REGULAR, "text2", mono=True, wrap=True)] if is_cut else []
        return [box, *whole, self.told[one.pid], 6]

    def chosen(self) -> list[int]:
        """Pids of the suspects that are ticked."""
        return [one.pid for box, one in self.boxes if box.isChecked()]

    def _choose(self) -> None:
        n = len(self.chosen())
        self.main.setText(f"Kill {plural(n, 'process', 'processes')}" if n else "Kill")
        self.main.allow("" if n else "None is chosen.")

    def _send(self) -> None:
        self.problem.hide()
        self.main.allow("In progress.")
        for box, _ in self.boxes:
            box.setEnabled(False)
        self.cancel.setText("Close")
        self._desk.end_suspects(self._kill_id, self.chosen(), self._ended, self._refused)

    def _ended(self, answer: dict[str, Any]) -> None:
        """The guard's answer; its words hold no text of an agent, and are shown as text all the same."""
        n, done = answer.get("n"), answer.get("n_done")
        self._desk.notices.say("info" if n == done else "amber", f"{done} of {plural(n if isinstance(n, int) else 0, 'suspect')} dead.")
        self._desk.ask_sync()
        if not self.is_open:
            return
        rows = answer.get("ended")
        for row in rows if isinstance(rows, list) else []:
            if isinstance(row, dict) and (text := self.told.get(row.get("pid", 0))) is not None:
                is_dead = row.get("done") is True
                text.say(str(row.get("words", ""))[:300], "text" if is_dead else "warn", "check" if is_dead else "triangle")
        self.main.hide()

    def _refused(self, error: ConsoleError) -> None:
        if not self.is_open:
            self._desk.notices.fail(error)
            return
        for box, _ in self.boxes:
            box.setEnabled(True)
        self.refused(error)
        self._choose()
