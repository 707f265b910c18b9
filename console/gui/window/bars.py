"""Top bar with the kill banner over it; foot with the status bar, and what lies over that: notice and stale data. No page moves."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPen, QResizeEvent
from PySide6.QtWidgets import QAbstractButton, QSizePolicy, QWidget

from console.gui.kit.layout import STRETCH, row
from console.gui.notices import Notice
from console.gui.theme import fonts
from console.gui.theme.icons import icon_pixmap
from console.gui.theme.tokens import STATUS_BAR, TOP_BAR, ink
from console.gui.widgets.armed import ArmedLight
from console.gui.widgets.banner import KillBanner
from console.gui.widgets.buttons import Button, paint_key
from console.gui.widgets.marks import draw_text
from console.gui.widgets.safe_text import safe_text, tooltip
from console.gui.window.old import OldStrip
from console.panic.control import PanicControl
from console.panic.marks import draw_mark

_SEAL = 330
"""Least room in which the status bar is worth showing beside a notice."""

_LACKS = 200
"""Least room in which what the desktop lacks says something."""


class Brand(QWidget):
    """Mark, name and host; the host is what makes two consoles different."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._host = ""
        self.setFixedSize(136, 44)

    def say(self, host: str) -> None:
        shown = safe_text(host, 40)
        if shown == self._host:
            return
        self._host = shown
        self.setAccessibleName(f"Watchfloor on {self._host}")
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        colours = ink()
        painter = QPainter(self)
        painter.drawPixmap(0, 8, icon_pixmap("logo", colours.accent, 28))
        draw_text(painter, QRectF(38, 3, 98, 20), "Watchfloor", fonts.ui(15, fonts.SEMIBOLD), colours.text)
        draw_text(painter, QRectF(38, 24, 98, 16), self._host, fonts.ui(11), colours.text2)
        painter.end()


class SearchButton(QAbstractButton):
    """Looks like a field, opens the command palette."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setFixedHeight(36)
        self.setMaximumWidth(420)
        self.setMinimumWidth(150)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAccessibleName("Find an agent or command, Ctrl K")
        self.setCursor(Qt.CursorShape.IBeamCursor)

    def sizeHint(self) -> QSize:
        return QSize(420, 36)

    def paintEvent(self, event: QPaintEvent) -> None:
        colours = ink()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(QColor(colours.accent if self.hasFocus() else colours.line2), 1))
        painter.setBrush(QColor(colours.bg2))
        painter.drawRoundedRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5), 5, 5)
        painter.drawPixmap(12, 10, icon_pixmap("search", colours.text3, 16))
        draw_text(painter, QRectF(34, 0, self.width() - 100, 36), "Find an agent or command", fonts.ui(13), colours.text2)
        paint_key(painter, self.width() - 9, 36, "Ctrl K", colours)
        painter.end()


class TopBar(QWidget):
    """Name, search, armed light, panic plate; a kill's banner lies over all of it but the plate, and over the light until you rearm."""

    def __init__(self, plate: PanicControl, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setFixedHeight(TOP_BAR)
        self._plate = plate
        self.brand = Brand(self)
        self.search = SearchButton(self)
        self.light = ArmedLight(self)
        # The light is as wide as its words: how fresh they are stands at their end.
        parts = (self.brand, 68, (self.search, 20), 21, self.light, STRETCH, 12, plate)
        self._gap = row(*parts, margins=(16, 0, 13, 0), on=self)
        self.banner = KillBanner(self)
        self.banner.changed.connect(self._place_banner)
        self.light.installEventFilter(self)

    def set_narrow(self, narrow: bool) -> None:
        """The rail is narrower than the navigation, so the search moves left."""
        item = self._gap.itemAt(1)
        spacer = item.spacerItem() if item is not None else None
        if spacer is not None:
            spacer.changeSize(0 if narrow else 68, 1)
        self.search.setMaximumWidth(300 if narrow else 420)
        self._gap.invalidate()

    def _place_banner(self) -> None:
        end, height = self._plate.x() - 12, self.banner.height()
        begin = 0 if height == TOP_BAR else max(0, self.light.x() - 12)
        self.banner.setGeometry(begin, (TOP_BAR - height) // 2, max(0, end - begin), height)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() in (QEvent.Type.Move, QEvent.Type.Resize):
            self._place_banner()
        return super().eventFilter(watched, event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._place_banner()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.fillRect(self.rect(), QColor(ink().bg1))
        painter.fillRect(QRectF(0, self.height() - 1, self.width(), 1), QColor(ink().line))
        painter.end()


class NoticeStrip(QWidget):
    """One notice at a time, amber or red with a shape; info is quiet. It stays until closed, info goes by itself."""

    receipt_asked = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._notice: Notice | None = None
        self.setFixedHeight(STATUS_BAR)
        self._receipt = Button("Open receipt", small=True, parent=self)
        self._receipt.clicked.connect(lambda: self.receipt_asked.emit(self._notice.receipt if self._notice else ""))
        self._close = Button("Dismiss", small=True, parent=self)
        self._close.clicked.connect(self.dismiss)
        row(STRETCH, self._receipt, self._close, margins=(16, 2, 10, 2), spacing=-1, on=self)
        self.hide()

    @property
    def notice(self) -> Notice | None:
        """What is shown."""
        return self._notice

    def show_notice(self, notice: Notice) -> None:
        """Shows it in place of the one before."""
        self._notice = notice
        self._receipt.setVisible(bool(notice.receipt))
        words = f"{notice.text} {notice.remedy}".strip()
        self.setAccessibleName(words)
        self.setToolTip(tooltip(words))
        self.show()
        self.update()

    def words_width(self) -> int:
        """What its words and buttons need."""
        if self._notice is None:
            return 0
        words = fonts.metrics(fonts.ui(13, fonts.MEDIUM)).horizontalAdvance(f"{self._notice.text} {self._notice.remedy}")
        return int(words) + self._close.sizeHint().width() + (self._receipt.sizeHint().width() + 8 if self._notice.receipt else 0) + 76

    def dismiss(self) -> None:
        """Hides it."""
        self._notice = None
        self.hide()

    def paintEvent(self, event: QPaintEvent) -> None:
        if self._notice is None:
            return
        colours = ink()
        kind = {"amber": "warn", "red": "danger"}.get(self._notice.level, "")
        painter = QPainter(self)
        painter.fillRect(self.rect(), QColor(getattr(colours, kind + "bg") if kind else colours.bg3))
        painter.fillRect(QRectF(0, 0, self.width(), 1), QColor(colours.line2))
        colour = getattr(colours, kind) if kind else colours.text2
        shape = {"warn": "triangle", "danger": "diamond"}.get(kind, "check")
        draw_mark(painter, shape, QRectF(18, 11, 10, 10), colour)
        face = fonts.ui(13, fonts.MEDIUM)
        room = self._close.x() - (self._receipt.width() + 8 if self._notice.receipt else 0) - 44
        width = min(fonts.metrics(face).horizontalAdvance(self._notice.text) + 4, room)
        draw_text(painter, QRectF(38, 0, width, STATUS_BAR), self._notice.text, face, colours.text)
        if room - width > 60:
            draw_text(painter, QRectF(46 + width, 0, room - width - 10, STATUS_BAR), self._notice.remedy, fonts.ui(12), colours.text2)
        painter.end()


class StatusBar(QWidget):
    """This page's keys at the left, the audit seal at the right."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setFixedHeight(STATUS_BAR)
        self._keys: tuple[tuple[str, str], ...] = ()
        self._seal, self._bad = "", False
        self._lacks = ""

    def show_lacks(self, words: str) -> None:
        """What this desktop does not give (a tray, notifications), where there is room for it; whole in the tooltip."""
        shown = safe_text(words, 300)
        if shown != self._lacks:
            self._lacks = shown
            self.setToolTip(tooltip(shown))
            self.setAccessibleDescription(shown)
            self.update()

    def show_keys(self, keys: tuple[tuple[str, str], ...]) -> None:
        if keys == self._keys:
            return
        self._keys = keys
        self.setAccessibleName(", ".join(f"{cap}: {words}" for cap, words in keys))
        self.update()

    def show_seal(self, words: str, bad: bool) -> None:
        """``bad``: the chain is broken or was not checked."""
        new = (safe_text(words), bad)
        if new != (self._seal, self._bad):
            self._seal, self._bad = new
            self.update()

    def _fitting(self, room: float) -> list[tuple[str, str]]:
        """The keys there is room for; the last one, which leads to all others, before any other."""

        def width(key: tuple[str, str]) -> float:
            cap, words = (fonts.metrics(fonts.ui(11, fonts.MEDIUM)).horizontalAdvance(part) for part in key)
            return cap + words + 43

        kept, left = list(self._keys[-1:]), room - sum(width(key) for key in self._keys[-1:])
        if left < 0:
            return []
        for key in self._keys[:-1]:
            left -= width(key)
            if left < 0:
                break
            kept.insert(len(kept) - 1, key)
        return kept

    def paintEvent(self, event: QPaintEvent) -> None:
        colours = ink()
        painter = QPainter(self)
        painter.fillRect(self.rect(), QColor(colours.bg1))
        painter.fillRect(QRectF(0, 0, self.width(), 1), QColor(colours.line))
        face = fonts.ui(11)
        seal = fonts.metrics(face).horizontalAdvance(self._seal) + (18 if self._bad else 4)
        x = 16.0
        lacks = fonts.metrics(face).horizontalAdvance(self._lacks) + 22 if self._lacks else 0
        lacks = min(lacks, max(0, self.width() - seal - 420))
        lacks = lacks if lacks >= _LACKS else 0  # words that cannot be read take no room from the keys
        for cap, words in self._fitting(self.width() - seal - lacks - 40):
            width = fonts.metrics(fonts.ui(11, fonts.MEDIUM)).horizontalAdvance(cap) + 12
            text = fonts.metrics(face).horizontalAdvance(words)
            paint_key(painter, int(x + width), self.height(), cap, colours)
            draw_text(painter, QRectF(x + width + 7, 0, text + 4, self.height()), words, face, colours.text2)
            x += width + text + 24
        if lacks:
            at = self.width() - seal - lacks - 28
            draw_mark(painter, "ring", QRectF(at, 11, 9, 9), colours.text3)
            draw_text(painter, QRectF(at + 15, 0, lacks - 18, self.height()), self._lacks, face, colours.text2)
        box = QRectF(self.width() - seal - 16, 0, seal, self.height())
        if self._bad:
            draw_mark(painter, "triangle", QRectF(box.x(), 11, 10, 10), colours.warn)
        draw_text(painter, box, self._seal, face, colours.warn if self._bad else colours.text2, right=True)
        painter.end()


class Foot(QWidget):
    """The last row of the window. Notice and stale data lie over the status bar, which has what they leave: the page keeps its size."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setFixedHeight(STATUS_BAR)
        self.status, self.old, self.strip = StatusBar(self), OldStrip(self), NoticeStrip(self)
        for part in (self.old, self.strip):
            part.installEventFilter(self)

    def _share(self) -> None:
        shown = [(part, part.words_width()) for part in (self.old, self.strip) if not part.isHidden()]
        wanted = sum(width for _part, width in shown)
        room = self.width() - (_SEAL if self.width() - _SEAL >= wanted else 0)
        x = 0
        for part, width in shown:
            if wanted > room:  # the header says what is old as well: the notice is read first
                width = room - x if len(shown) == 1 or x else max(self.old.least_width(), room - self.strip.words_width())
            part.setGeometry(x, 0, width, self.height())
            x += width
        if x and self.width() - x < _SEAL:
            shown[-1][0].setGeometry(shown[-1][0].x(), 0, self.width() - shown[-1][0].x(), self.height())
            x = self.width()
        self.status.setGeometry(x, 0, self.width() - x, self.height())

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() in (QEvent.Type.ShowToParent, QEvent.Type.HideToParent, QEvent.Type.ToolTipChange):
            self._share()
        return super().eventFilter(watched, event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._share()
