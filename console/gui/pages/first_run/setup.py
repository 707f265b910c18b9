"""The set-up: four steps, each of which can be passed over; it can be opened again at any time."""

from __future__ import annotations

from PySide6.QtWidgets import QStackedWidget, QWidget

from console.gui.pages.first_run.hook import HookDialog
from console.gui.pages.first_run.steps import FoundStep, KillStep, LimitStep, ProfileStep, Step
from console.gui.pages.interface import Desk
from console.gui.theme import fonts
from console.gui.widgets.buttons import Button
from console.gui.widgets.dialog import Dialog
from console.gui.widgets.text import Text

WIDTH = 720


class SetupDialog(Dialog):
    """Nothing is changed but by the buttons inside a step."""

    def __init__(self, desk: Desk, parent: QWidget) -> None:
        super().__init__("", "Next", "primary", parent, width=min(WIDTH, max(520, parent.width() - 80)))
        self.setWindowTitle("Set up Watchfloor")
        self.setModal(False)  # the panic button stays in reach
        self._desk = desk
        self.found = FoundStep(desk)
        self.steps: tuple[Step, ...] = (self.found, ProfileStep(desk), LimitStep(desk), KillStep(desk))
        self.where = Text("", 12, fonts.MEDIUM, "text2")
        self.body.addWidget(self.where)
        self.stack = QStackedWidget(self)
        self.stack.setFixedHeight(max(220, min(380, parent.height() - 260)))
        for step in self.steps:
            self.stack.addWidget(step)
        self.body.addWidget(self.stack)
        self.back = Button("Back", parent=self)
        self.button_row.insertWidget(1, self.back)
        self.cancel.setText("Skip")
        self.back.clicked.connect(lambda: self.go(self.stack.currentIndex() - 1))
        self.main.clicked.connect(self._on)
        self.found.hook_asked.connect(self._hook)
        self.go(0)
        self.main.setFocus()

    def go(self, at: int) -> None:
        """To a step."""
        at = max(0, min(at, len(self.steps) - 1))
        self.stack.setCurrentIndex(at)
        step = self.steps[at]
        self.title.setText(step.title)
        self.where.setText(f"Set-up, step {at + 1} of {len(self.steps)}")
        self.back.allow("" if at else "This is the first step.")
        is_last = at == len(self.steps) - 1
        self.main.setText("Done" if is_last else "Next")
        self.cancel.setText("Close" if is_last else "Skip")
        step.enter()

    def _on(self) -> None:
        if self.stack.currentIndex() == len(self.steps) - 1:
            self.accept()
        else:
            self.go(self.stack.currentIndex() + 1)

    def _hook(self, kind: str) -> None:
        dialog = HookDialog(self._desk, kind, self)
        dialog.changed.connect(self.found.enter)
        dialog.open()
