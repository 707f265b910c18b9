"""A page with a list and the pane of what is selected in it. Enter hides the pane, and in a narrow window shows it over the list."""

from __future__ import annotations

from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QWidget

from console.gui.kit.layout import Placed, column
from console.gui.kit.pane import Pane
from console.gui.pages.interface import Desk, Page
from console.gui.widgets.split import beside


class ListPage(Page):
    """A subclass lays its list and its pane in ``lay``, and tells of the selected row with ``current``."""

    pane: Pane

    def __init__(self, desk: Desk, parent: QWidget | None = None) -> None:
        super().__init__(desk, parent)
        self._is_turned = False
        """The pane is hidden though there is room for it, or shown though there is not."""

    def lay(self, listed: Placed, pane: Pane, width: int, *above: Placed) -> None:
        """``above`` stands over both. Call it last: the pane's buttons and the list are connected here."""
        self.pane = pane
        pane.hide()
        pane.asked.connect(self.do)
        column(*above, (beside(listed, pane, self, width), 1), on=self)

    def current(self) -> object:
        """What is selected, or None."""
        raise NotImplementedError

    def turn_pane(self) -> None:
        """Enter."""
        self._is_turned = not self._is_turned
        self.show_pane()

    def show_pane(self) -> None:
        """Shows or hides the pane, and judges its buttons again."""
        self.pane.setVisible(self.current() is not None and self._is_turned is self.is_narrow)
        self.pane.judge(self.why_not)

    def show_names(self) -> None:
        self.show_pane()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.show_pane()
