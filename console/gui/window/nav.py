"""The navigation: 204 wide with words, or a rail of 60 with icons under 1200."""

from __future__ import annotations

from PySide6.QtCore import QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from console.gui.kit.layout import STRETCH, column
from console.gui.pages.declared import PageSpec
from console.gui.pages.interface import Badge
from console.gui.theme import fonts
from console.gui.theme.icons import icon_pixmap
from console.gui.theme.tokens import NAV, NAV_RAIL, ink
from console.gui.widgets.buttons import OneOf
from console.gui.widgets.marks import draw_text
from console.gui.widgets.safe_text import safe_text, tooltip
from console.panic.marks import draw_mark

_BADGE_FONT = (12, fonts.MEDIUM)
RAIL_SHAPES = {"warn": "triangle", "danger": "diamond"}
"""Told apart by shape, not by colour alone."""


class NavItem(OneOf):
    """One page."""

    def __init__(self, spec: PageSpec, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.spec = spec
        self.rail = False
        self._badge: Badge | None = None
        self.setFixedHeight(34)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAccessibleName(spec.title)
        self.setToolTip(tooltip(spec.title))

    def show_badge(self, badge: Badge | None) -> None:
        """Words at the right; on the rail a shape for warn and danger, and the words in the tooltip."""
        if badge == self._badge:
            return
        self._badge = badge
        words = f", {safe_text(badge.words, 40)}" if badge else ""
        self.setAccessibleName(f"{self.spec.title}{words}")
        self.setToolTip(tooltip(f"{self.spec.title}{words}"))
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        colours = ink()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        on = self.isChecked()
        if on or self.underMouse() or self.hasFocus():
            painter.setPen(QPen(QColor(colours.accent)) if self.hasFocus() else Qt.PenStyle.NoPen)
            painter.setBrush(QColor(colours.sel if on else colours.bg3))
            painter.drawRoundedRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5), 6, 6)
        if on:
            painter.fillRect(QRectF(0, 9, 3, 16), QColor(colours.accent))
        colour = colours.text if on else colours.text2
        painter.drawPixmap((self.width() - 16) // 2 if self.rail else 12, 9, icon_pixmap(self.spec.icon, colour, 16))
        if self.rail:
            self._paint_mark(painter)
        else:
            draw_text(painter, QRectF(38, 0, 100, 34), self.spec.title, fonts.ui(13, fonts.MEDIUM), colour)
            self._paint_badge(painter)
        painter.end()

    def _paint_mark(self, painter: QPainter) -> None:
        shape = RAIL_SHAPES.get(self._badge.kind) if self._badge is not None else None
        if self._badge is not None and shape is not None:
            draw_mark(painter, shape, QRectF(self.width() - 15, 4, 9, 9), getattr(ink(), self._badge.kind))

    def _paint_badge(self, painter: QPainter) -> None:
        if self._badge is None:
            return
        colours = ink()
        words = safe_text(self._badge.words, 24)
        width = fonts.metrics(fonts.ui(*_BADGE_FONT)).horizontalAdvance(words)
        icon = 16 if self._badge.icon else 0
        box = QRectF(self.width() - width - icon - 22, 7, width + icon + 14, 20)
        colour = colours.text2
        if self._badge.kind in ("warn", "danger"):
            colour = getattr(colours, self._badge.kind)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(QColor(getattr(colours, self._badge.kind + "bg")))
            painter.drawRoundedRect(box, 4, 4)
        if icon:
            painter.drawPixmap(int(box.x() + 6), 11, icon_pixmap(self._badge.icon, colour, 12))
        draw_text(painter, QRectF(box.x() + 7 + icon, 7, width + 6, 20), words, fonts.ui(*_BADGE_FONT), colour)


class _Caption(QWidget):
    def __init__(self, words: str, parent: QWidget) -> None:
        super().__init__(parent)
        self._words = words
        self.rail = False
        self.setFixedHeight(30)

    def paintEvent(self, event: QPaintEvent) -> None:
        if not self.rail:
            painter = QPainter(self)
            draw_text(painter, QRectF(8, 6, self.width() - 8, 18), self._words, fonts.ui(11, fonts.MEDIUM), ink().text2)
            painter.end()


class _Person(QWidget):
    """Who is at the console, at the foot of the navigation."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.rail = False
        self._name, self._line = "operator", ""
        self.setFixedHeight(60)

    def say(self, name: str, line: str) -> None:
        new = (safe_text(name or "operator", 40), safe_text(line, 60))
        if new == (self._name, self._line):
            return
        self._name, self._line = new
        self.setAccessibleName(f"{self._name}. {self._line}")
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        colours = ink()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QColor(colours.line))
        painter.drawLine(0, 0, self.width(), 0)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(colours.bg3))
        x = (self.width() - 30) / 2 if self.rail else 15
        painter.drawEllipse(QRectF(x, 15, 30, 30))
        painter.drawPixmap(int(x + 8), 23, icon_pixmap("user", colours.text2, 14))
        if not self.rail:
            draw_text(painter, QRectF(54, 13, self.width() - 60, 18), self._name, fonts.ui(12, fonts.MEDIUM), colours.text)
            draw_text(painter, QRectF(54, 31, self.width() - 60, 16), self._line, fonts.ui(11), colours.text2)
        painter.end()


class Nav(QWidget):
    """``chosen`` names the page."""

    chosen = Signal(str)

    def __init__(self, specs: list[PageSpec], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("panel")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.items: dict[str, NavItem] = {}
        self._captions: list[_Caption] = []
        inner = column(margins=(8, 0, 8, 0), spacing=4)
        group = ""
        for spec in specs:
            if spec.group != group:
                group = spec.group
                caption = _Caption(group, self)
                self._captions.append(caption)
                inner.addWidget(caption)
            item = NavItem(spec, self)
            item.clicked.connect(lambda _on=False, name=spec.name: self.chosen.emit(name))
            inner.addWidget(item)
            self.items[spec.name] = item
        self.person = _Person(self)
        column(inner, STRETCH, self.person, margins=(0, 10, 0, 0), spacing=4, on=self)
        self.set_rail(False)

    def set_rail(self, rail: bool) -> None:
        """Icons only."""
        self.setFixedWidth(NAV_RAIL if rail else NAV)
        for item in self.items.values():
            item.rail = rail
        for caption in self._captions:
            caption.rail = rail
            caption.setFixedHeight(14 if rail else 30)
        self.person.rail = rail
        self.update()

    def select(self, name: str) -> None:
        """Marks a page without telling anybody; a page that is not listed leaves the mark where it is."""
        if name in self.items:
            self.items[name].setChecked(True)

    def sizeHint(self) -> QSize:
        return QSize(self.width(), 400)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.fillRect(self.rect(), QColor(ink().bg1))
        painter.fillRect(QRectF(self.width() - 1, 0, 1, self.height()), QColor(ink().line))
        painter.end()
