"""Buttons, pills and search fields."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from PySide6.QtCore import QEvent, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QFocusEvent, QKeyEvent, QPainter, QPaintEvent, QPen, QResizeEvent
from PySide6.QtWidgets import QAbstractButton, QHBoxLayout, QLineEdit, QSizePolicy, QWidget

from console.gui.theme import fonts
from console.gui.theme.icons import icon_pixmap
from console.gui.theme.tokens import Ink, ink
from console.gui.widgets.marks import draw_text
from console.gui.widgets.safe_text import safe_text, tooltip

_GAP = 6


class Button(QAbstractButton):
    """kind: plain, danger (outlined red), primary (filled). ``keys`` shows the key in front. ``small`` is 28 high, else 34."""

    def __init__(
        self, text: str, icon: str = "", kind: str = "plain", *, keys: str = "", small: bool = False, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._icon, self._kind, self._keys = icon, kind, keys
        self._face = fonts.ui(12 if small else 13, fonts.MEDIUM)
        self.setText(text)
        self.setFixedHeight(28 if small else 34)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        self.setCursor(Qt.CursorShape.PointingHandCursor)

    def setText(self, text: str) -> None:
        shown = safe_text(text, 80)
        if shown != self.text():
            super().setText(shown)
            self.setAccessibleName(shown)
            self.updateGeometry()

    def allow(self, why_not: str) -> None:
        """Enabled when ``why_not`` is empty, else disabled with the reason as its tooltip."""
        if self.isEnabled() == bool(why_not):
            self.setEnabled(not why_not)
        if tooltip(why_not) != self.toolTip():
            self.setToolTip(tooltip(why_not))
            self.setAccessibleDescription(safe_text(why_not, 300))

    def set_keys(self, keys: str) -> None:
        """Another key in front."""
        if keys != self._keys:
            self._keys = keys
            self.updateGeometry()
            self.update()

    def set_face(self, text: str, icon: str) -> None:
        """Other words and icon (Freeze becomes Resume)."""
        if (icon, safe_text(text, 80)) != (self._icon, self.text()):
            self._icon = icon
            self.setText(text)
            self.update()

    def _colours(self, colours: Ink) -> tuple[str, str, str]:
        if not self.isEnabled():
            return colours.line, colours.bg1, colours.text3
        if self._kind == "primary":
            return colours.accent, colours.accent, colours.on_accent
        pressed = colours.bg3 if self.isDown() or self.underMouse() else colours.bg2
        if self._kind == "danger":
            return colours.danger, colours.dangerbg if self.isDown() or self.underMouse() else colours.bg2, colours.danger
        return colours.line2, pressed, colours.text

    def _parts(self) -> tuple[int, int, int]:
        seen = fonts.metrics(self._face)
        key = fonts.metrics(fonts.ui(11, fonts.MEDIUM)).horizontalAdvance(self._keys) + 18 if self._keys else 0
        return key, 20 if self._icon else 0, seen.horizontalAdvance(self.text())

    def sizeHint(self) -> QSize:
        return QSize(sum(self._parts()) + 28, self.height())

    def minimumSizeHint(self) -> QSize:
        return QSize(min(self.sizeHint().width(), 72), self.height())

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and not event.isAutoRepeat():
            self.click()
        else:
            super().keyPressEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        colours = ink()
        edge, fill, colour = self._colours(colours)
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        box = QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5)
        painter.setPen(QPen(QColor(colours.accent if self.hasFocus() and self._kind != "primary" else edge), 1.6 if self.hasFocus() else 1))
        painter.setBrush(QColor(fill))
        painter.drawRoundedRect(box, 6, 6)
        if self.hasFocus() and self._kind == "primary":  # a ring in its own colour would not be seen
            painter.setPen(QPen(QColor(colours.on_accent), 1.6))
            painter.drawRoundedRect(box.adjusted(2.5, 2.5, -2.5, -2.5), 4, 4)
        key, icon, text = self._parts()
        room = self.width() - 12
        x = max(6.0, (self.width() - key - icon - text) / 2)
        if key:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(QColor(colours.sel if self._kind == "primary" and self.isEnabled() else colours.bg3))
            painter.drawRoundedRect(QRectF(x, self.height() / 2 - 9, key - 8, 18), 4, 4)
            draw_text(painter, QRectF(x + 5, 0, key - 12, self.height()), self._keys, fonts.ui(11, fonts.MEDIUM), colours.text2)
            x += key
        if icon:
            painter.drawPixmap(int(x), (self.height() - 14) // 2, icon_pixmap(self._icon, colour, 14))
            x += icon
        draw_text(painter, QRectF(x, 0, room - x + 8, self.height()), self.text(), self._face, colour)
        painter.end()


class OneOf(QAbstractButton):
    """One of several, of which one is on: Tab leads to that one, and from there the arrows go on. ``alone``: it is on or off by itself."""

    def __init__(self, parent: QWidget | None = None, *, alone: bool = False) -> None:
        super().__init__(parent)
        self.setCheckable(True)
        self.setAutoExclusive(not alone)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus if alone else Qt.FocusPolicy.ClickFocus)
        if not alone:
            self.toggled.connect(self._stop_here)

    def _stop_here(self, on: bool) -> None:  # Qt does it only when a key moves the focus, not when a page chooses
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus if on else Qt.FocusPolicy.ClickFocus)


class Pill(OneOf):
    """One of a row of filters, 28 high."""

    def __init__(self, text: str, parent: QWidget | None = None, *, alone: bool = False) -> None:
        super().__init__(parent, alone=alone)
        self.setFixedHeight(28)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self.setText(text)

    def setText(self, text: str) -> None:
        if text != self.text():
            super().setText(safe_text(text, 60))
            self.setAccessibleName(self.text())
            self.updateGeometry()
            self.update()

    def sizeHint(self) -> QSize:
        return QSize(fonts.metrics(fonts.ui(12, fonts.MEDIUM)).horizontalAdvance(self.text()) + 22, 28)

    def paintEvent(self, event: QPaintEvent) -> None:
        colours = ink()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        on = self.isChecked()
        painter.setPen(QPen(QColor(colours.accent if on or self.hasFocus() else colours.line2), 1))
        painter.setBrush(QColor(colours.sel if on else colours.bg3 if self.underMouse() else colours.bg2))
        painter.drawRoundedRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5), 6, 6)
        if self.hasFocus():  # the one that is chosen has an edge in the accent too
            painter.setPen(QPen(QColor(colours.text if on else colours.accent), 1.6))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(QRectF(self.rect()).adjusted(2.5, 2.5, -2.5, -2.5), 4, 4)
        draw_text(
            painter, QRectF(11, 0, self.width() - 12, 28), self.text(), fonts.ui(12, fonts.MEDIUM), colours.text if on else colours.text2
        )
        painter.end()


class Pills(QWidget):
    """A row of filters of which one is on. Where not all have room, that one stays, and the last of the others go."""

    changed = Signal(str)

    def __init__(self, choices: dict[str, str], parent: QWidget | None = None, *, kept: str = "") -> None:
        """``kept``: what the choice is called among what its page remembers until the next start; empty: it is not remembered."""
        super().__init__(parent)
        self.kept = kept
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(_GAP)
        row.setAlignment(Qt.AlignmentFlag.AlignLeft)
        self.pills: dict[str, Pill] = {}
        for key, words in choices.items():
            pill = Pill(words, self)
            pill.clicked.connect(self._tell(key))
            row.addWidget(pill)
            self.pills[key] = pill
            pill.toggled.connect(self._fit)
        next(iter(self.pills.values())).setChecked(True)

    def _fit(self) -> None:
        if not self.isVisible():
            return
        room = self.width() + _GAP
        for pill in sorted(self.pills.values(), key=lambda one: not one.isChecked()):
            room -= pill.sizeHint().width() + _GAP
            pill.setVisible(room >= 0 or pill.isChecked())

    def sizeHint(self) -> QSize:
        wide = [pill.sizeHint().width() + _GAP for pill in self.pills.values()]
        return QSize(sum(wide) - _GAP, 28)

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()  # the parts beside it give way first

    def event(self, event: QEvent) -> bool:
        if event.type() in (QEvent.Type.Resize, QEvent.Type.Show, QEvent.Type.LayoutRequest):
            self._fit()
        return super().event(event)

    def _tell(self, key: str) -> Callable[[], None]:
        return lambda: self.changed.emit(key)

    def chosen(self) -> str:
        """The key of the filter that is on."""
        return next((k for k, p in self.pills.items() if p.isChecked()), "")

    def remembered(self) -> dict[str, Any]:
        """The filter that is on; empty while it is the first."""
        return {"on": self.chosen()} if self.chosen() != next(iter(self.pills)) else {}

    def recall(self, kept: dict[str, Any]) -> None:
        """Chooses it as a click would; one that there is no more is ignored."""
        pill = self.pills.get(str(kept.get("on", "")))
        if pill is not None and not pill.isChecked():
            pill.click()


class SearchField(QLineEdit):
    """A field with a magnifier and, while empty, the key that leads to it. Esc clears and gives the focus back."""

    left = Signal()
    """Esc, Enter or Down: the focus should go back to the list."""

    def __init__(
        self, placeholder: str, keys: str, height: int = 28, parent: QWidget | None = None, *, kept: str = "", short: str = "Filter"
    ) -> None:
        """``kept``: as of ``Pills``. ``short`` stands in a field that has no room for ``placeholder``."""
        super().__init__(parent)
        self._keys, self.kept, self._short = keys, kept, short
        self.setFont(fonts.ui(12 if height < 30 else 13))
        self.setAccessibleName(placeholder)
        self.setMaxLength(200)
        self.setFixedHeight(height)
        self.textChanged.connect(lambda _text: self._leave_room())

    def remembered(self) -> dict[str, Any]:
        """What is typed."""
        return {"text": self.text()} if self.text() else {}

    def recall(self, kept: dict[str, Any]) -> None:
        """Types it again."""
        text = kept.get("text")
        self.setText(text[: self.maxLength()] if isinstance(text, str) else "")

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            self.clear()
            self.left.emit()
        elif event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Down):
            self.left.emit()
        else:
            super().keyPressEvent(event)

    def _leave_room(self) -> None:
        """The words in an empty field end before its key; where they have no room as a whole there is one word, or none."""
        key = key_width(self._keys) + 8 if self._keys and not self.text() else 0
        self.setTextMargins(22, 0, key, 0)
        room = self.width() - 22 - key - 26
        words = self.accessibleName(), self._short
        self.setPlaceholderText(next((one for one in words if self.fontMetrics().horizontalAdvance(one) <= room), ""))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._leave_room()

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        colours = ink()
        painter = QPainter(self)
        painter.drawPixmap(10, (self.height() - 14) // 2, icon_pixmap("search", colours.text3, 14))
        if self._keys and not self.text() and not self.hasFocus():
            paint_key(painter, self.width() - 8, self.height(), self._keys, colours)
        painter.end()


def key_width(keys: str) -> int:
    """How wide a key cap is."""
    return int(fonts.metrics(fonts.ui(11, fonts.MEDIUM)).horizontalAdvance(keys)) + 12


def paint_key(painter: QPainter, right: int, height: int, keys: str, colours: Ink) -> None:
    """A key cap whose right edge is at ``right``, centred in ``height``."""
    width = key_width(keys)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(QColor(colours.bg3))
    box = QRectF(right - width, height / 2 - 9, width, 18)
    painter.drawRoundedRect(box, 4, 4)
    draw_text(painter, box.adjusted(6, 0, -2, 0), keys, fonts.ui(11, fonts.MEDIUM), colours.text2)
