"""The bar that restores: words to type, a reason, and the run itself, one record after the other."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QLineEdit, QWidget

from console.api import endpoints as ep
from console.api.records import RestoreBody, RollbackDetailView, RollbackRow
from console.domain.errors import ConsoleError
from console.gui.kit.layout import STRETCH, column, row
from console.gui.pages.interface import Desk
from console.gui.pages.rollback.plan import Plan
from console.gui.theme import fonts
from console.gui.widgets.buttons import Button
from console.gui.widgets.side_pane import Foot
from console.gui.widgets.text import Text
from console.gui.widgets.words import plural


class ConfirmBar(Foot):
    """``done`` after a run, whether it ended well or not."""

    done = Signal()

    def __init__(self, desk: Desk, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._desk = desk
        self.plan = Plan()
        self._queue: list[RollbackDetailView] = []
        self._total = self._restored = 0
        self._stop = False
        self._reason = ""
        self.ask = Text("", 12, fonts.MEDIUM, "text2")
        self.typed = QLineEdit(self)
        self.typed.setFont(fonts.mono(12))
        self.typed.setMaxLength(40)
        self.typed.setFixedWidth(132)
        self.typed.setAccessibleName("Type the words to confirm")
        self.reason = QLineEdit(self)
        self.reason.setMaxLength(500)
        self.reason.setPlaceholderText("Reason, for the record")
        self.reason.setAccessibleName("Reason")
        self.button = Button("Restore", "rollback", parent=self)
        self.outcome = Text("", 12, fonts.MEDIUM, "text2")
        self.outcome.hide()
        line = row(self.ask, self.typed, (self.reason, 8), STRETCH, self.button, spacing=10)
        column(line, self.outcome, margins=(20, 11, 16, 12), spacing=6, on=self)
        self.typed.textChanged.connect(lambda _text: self.judge())
        self.reason.textChanged.connect(lambda _text: self.judge())
        self.typed.returnPressed.connect(self.reason.setFocus)
        self.reason.returnPressed.connect(self.run)
        self.button.clicked.connect(self.run)

    @property
    def is_running(self) -> bool:
        return self._total > 0

    def show_plan(self, plan: Plan) -> None:
        """Another plan empties the typed words."""
        if plan.identity != self.plan.identity:
            self.typed.clear()
        self.plan = plan
        self.judge()

    def forget(self) -> None:
        """Another record was chosen: the outcome of the last run is not about it."""
        if not self.is_running:
            self.outcome.hide()

    def why_not(self) -> str:
        """Empty when the button may work."""
        if self.is_running:
            return "A restore is under way; Esc stops it between two records."
        if self._desk.switch.is_killed:
            return "Killed: nothing changes until you rearm."
        why = self.plan.why_not()
        if why:
            return why
        if self.typed.text().strip() != self.plan.typed:
            return f"Type “{self.plan.typed}” first."
        return "" if self.reason.text().strip() else "Give a reason first."

    def judge(self) -> None:
        """Words and buttons again."""
        open_ = not self.plan.why_not() and not self.is_running
        self.ask.setText(f"Type  {self.plan.typed}" if open_ else self.plan.why_not() or "Restoring…")
        self.typed.setVisible(open_)
        self.reason.setVisible(open_)
        self.button.setText(f"Restore {len(self.plan.todo)}" if open_ else "Restore")
        self.button.allow(self.why_not())

    def focus(self) -> None:
        """R: to the words that have to be typed."""
        self.typed.setFocus()
        self.typed.selectAll()

    def run(self) -> None:
        """Restores what the plan shows; each with the content on disk that was shown."""
        if self.why_not():
            return
        self._queue = list(self.plan.todo)
        self._total, self._restored, self._stop = len(self._queue), 0, False
        self._reason = self.reason.text().strip()
        self._next()

    def stop(self) -> bool:
        """Between two records; False when nothing runs."""
        self._stop = self.is_running
        return self._stop

    def _next(self) -> None:
        if not self._queue or self._stop:
            self._end("", "")
            return
        self._say(f"Restoring {self._restored + 1} of {self._total}…", "text2", "ring")
        self.judge()
        detail = self._queue.pop(0)
        body = RestoreBody(reason=self._reason, expect_now_sha256=detail.now_sha256)
        sent = self._desk.requests.ask(ep.RESTORE, detail.row.record_id, body=body).while_alive(self)
        sent.then(self._restored_one).failed(lambda error: self._failed(detail, error))

    def _restored_one(self, _row: RollbackRow) -> None:
        self._restored += 1
        self._next()

    def _failed(self, detail: RollbackDetailView, error: ConsoleError) -> None:
        self._queue.insert(0, detail)
        self._end(f"{detail.row.path}: {error}", "warn")

    def _end(self, problem: str, role: str) -> None:
        left = len(self._queue)
        words = f"{self._restored} of {plural(self._total, 'record')} restored"
        if problem:
            words = f"{words}. {problem}"
        elif left:
            words, role = f"{words}; stopped, {left} left as they are", "warn"
        else:
            words = f"{words}, recorded in the audit; can itself be undone"
        self._total = 0
        self._say(words, role or "text2", "triangle" if role else "check")
        self.typed.clear()
        self.judge()
        self.done.emit()

    def _say(self, words: str, role: str, mark: str) -> None:
        self.outcome.say(words, role, mark)
        self.outcome.show()
