"""The lower part of the page: today's burn, windows of subscriptions, cost by model. It reads itself, seldom: pictures change slowly."""

from __future__ import annotations

from PySide6.QtCore import QRectF
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QWidget

from console.api import endpoints as ep
from console.api.budgets import BudgetPictures, BudgetTotals
from console.domain.errors import ConsoleError
from console.gui.kit.layout import column, row
from console.gui.pages.budgets.burn_chart import BurnChart
from console.gui.pages.budgets.model_chart import ModelChart
from console.gui.pages.budgets.windows import HEIGHT, WindowStrip
from console.gui.pages.interface import Desk
from console.gui.theme.tokens import ink

AGAIN_S = 20.0
FULL_HEIGHT = 330
SMALL_HEIGHT = 176
"""In a low window: without legend and subscription windows; ``C`` shows all of it."""


class Pictures(QWidget):
    """``ready`` once an answer, or a refusal, has come."""

    def __init__(self, desk: Desk, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._desk = desk
        self._asked_at = 0.0
        self._asking = False
        self._view: BudgetPictures | None = None
        self._totals = BudgetTotals()
        self.ready = False
        self.burn = BurnChart(self)
        self.windows = WindowStrip(self)
        self.models = ModelChart(self)
        left = column((self.burn, 1), self.windows)
        row((left, 61), (self.models, 39), margins=(0, 1, 0, 0), on=self)

    def look(self, now: float, *, again: bool = False) -> None:
        """Reads when the last answer is old, one question at a time."""
        if self._asking or (not again and now - self._asked_at < AGAIN_S):
            return
        self._asking, self._asked_at = True, now
        self._desk.requests.ask(ep.BUDGET_PICTURES).while_alive(self).then(self._came).failed(self._failed)

    def say(self, totals: BudgetTotals) -> None:
        """The moment of the day's cap comes with the header's figures."""
        before, self._totals = self._totals, totals
        if totals.passes_cap_at != before.passes_cap_at or totals.day != before.day:
            self._show()
        if (totals.spending == 0) != (before.spending == 0):
            self.look(self._desk.clock(), again=True)  # the projection ends, or begins, with the agents

    def _came(self, view: BudgetPictures) -> None:
        self._asking, self.ready, self._view = False, True, view
        self._show()

    def _failed(self, error: ConsoleError) -> None:
        self._asking, self.ready, self._view = False, True, None
        why = f"not available, because {error.what[:1].lower()}{error.what[1:]}"
        for part in (self.burn, self.windows, self.models):
            part.fail(why)

    def _show(self) -> None:
        if self._view is None:
            return
        now = self._view.at or self._desk.clock()
        self.burn.say(self._view.burn, now, self._totals.passes_cap_at)
        self.windows.say(self._view.windows, now)
        self.models.say(self._view.models, self._totals.day, self._view.prices, self._view.models_note)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.windows.setVisible(self.height() >= HEIGHT + 150)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.fillRect(self.rect(), QColor(ink().bg1))
        painter.fillRect(QRectF(0, 0, self.width(), 1), QColor(ink().line2))
        painter.end()
