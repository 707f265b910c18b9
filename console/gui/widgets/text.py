"""Labels: always plain text, always through safe_text, elided with the whole text in tooltip and accessible name."""

from __future__ import annotations

from PySide6.QtCore import QPoint, QRect, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QContextMenuEvent, QGuiApplication, QPainter, QPaintEvent
from PySide6.QtWidgets import QLabel, QMenu, QSizePolicy, QWidget

from console.gui.theme import fonts
from console.gui.theme.tokens import ink
from console.gui.widgets.marks import draw_text
from console.gui.widgets.safe_text import safe_text, tooltip
from console.panic.marks import draw_mark

_FLAGS = int(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignTop | Qt.TextFlag.TextWordWrap)


def copy_menu(widget: QWidget, words: str) -> QMenu:
    """A menu that copies ``words``."""
    menu = QMenu(widget)
    menu.addAction("Copy").triggered.connect(lambda: QGuiApplication.clipboard().setText(words))
    menu.aboutToHide.connect(menu.deleteLater)
    return menu


def offer_copy(widget: QWidget, words: str, at: QPoint) -> None:
    """Opens it at a point of the screen, when there is something to copy."""
    if words.strip():
        copy_menu(widget, words).popup(at)


class Text(QLabel):
    """A line (or, with ``wrap``, a paragraph) in a colour of the theme named by ``role``: text, text2, text3, warn, danger, ok, accent."""

    def __init__(
        self,
        text: str = "",
        size: int = 13,
        weight: int = fonts.REGULAR,
        role: str = "text",
        *,
        mono: bool = False,
        wrap: bool = False,
        right: bool = False,
        mark: str = "",
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self.setTextFormat(Qt.TextFormat.PlainText)
        self._face = fonts.mono(size, min(weight, fonts.MEDIUM)) if mono else fonts.ui(size, weight)
        self.setFont(self._face)
        self._role = role
        self._wrap = wrap
        self._right = right
        self._mark = mark
        self._mark_role = role
        policy = QSizePolicy.Policy.Preferred
        self.setSizePolicy(policy, QSizePolicy.Policy.Minimum if wrap else QSizePolicy.Policy.Fixed)
        if wrap:
            shape = self.sizePolicy()
            shape.setHeightForWidth(True)
            self.setSizePolicy(shape)
            self.setWordWrap(True)
            self.setAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignTop)
            self.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
            self.setFocusPolicy(Qt.FocusPolicy.NoFocus)  # a click on words takes no key away from the list
        self.setText(text)

    def say(self, text: str, role: str = "", mark: str | None = None) -> None:
        """New text, and colour and shape when given; a dot is green, every other shape has the text's colour."""
        before = (self._role, self._mark_role, self._mark)
        if role:
            self._role = role
            self._mark_role = "ok" if mark == "dot" else role
        if mark is not None:
            self._mark = mark
        self.setText(text)
        if before != (self._role, self._mark_role, self._mark):
            self.updateGeometry()
            self.update()

    def setText(self, text: str) -> None:
        shown = safe_text(text, 2000 if self._wrap else 300)
        if shown != self.text():
            super().setText(shown)
            self.setAccessibleName(shown)
            self.setToolTip("" if self._wrap else tooltip(shown) if len(shown) > 12 else "")
            self.updateGeometry()

    def _indent(self) -> int:
        return self.fontMetrics().height() - 1 if self._mark else 0

    def sizeHint(self) -> QSize:
        seen = fonts.metrics(self._face)
        if self._wrap:
            width = min(seen.horizontalAdvance(self.text()) + 2, 360)
            return QSize(width + self._indent(), self.heightForWidth(width + self._indent()))
        return QSize(seen.horizontalAdvance(self.text()) + 2 + self._indent(), seen.height() + 2)

    def minimumSizeHint(self) -> QSize:
        return QSize(24, fonts.metrics(self._face).height() + 2)

    def hasHeightForWidth(self) -> bool:
        return self._wrap

    def heightForWidth(self, width: int) -> int:
        seen = fonts.metrics(self._face)
        return seen.boundingRect(QRect(0, 0, max(20, width - self._indent()), 100_000), _FLAGS, self.text()).height() + 3

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        offer_copy(self, self.selectedText() or self.text(), event.globalPos())

    def paintEvent(self, event: QPaintEvent) -> None:
        if self.hasSelectedText():
            self.setContentsMargins(self._indent(), 0, 0, 0)
            super().paintEvent(event)  # Qt shows what is selected
            return
        colours = ink()
        painter = QPainter(self)
        colour = getattr(colours, self._role) if self.isEnabled() else colours.text3
        box = QRectF(self.rect())
        if self._mark:
            side = min(10, fonts.metrics(self._face).height() - 6)
            top = 3 if self._wrap else (self.height() - side) / 2
            draw_mark(painter, self._mark, QRectF(1, top, side, side), getattr(colours, self._mark_role))
            box.setLeft(self._indent())
        if self._wrap:
            painter.setFont(self._face)
            painter.setPen(QColor(colour))
            painter.drawText(box, _FLAGS, self.text())
        else:
            draw_text(painter, box, self.text(), self._face, colour, right=self._right)
        painter.end()
