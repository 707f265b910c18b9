"""Painted pieces of one request: lines in columns, the tree with its costs, the blast radius, the clock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QEvent, QRectF, Qt
from PySide6.QtGui import QColor, QHelpEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QGridLayout, QSizePolicy, QToolTip, QWidget

from console.api.policy.approvals import BlastLine, TreeCost
from console.gui.pages.approvals.hostile import Finding
from console.gui.pages.approvals.words import clock_words, is_late
from console.gui.theme import fonts
from console.gui.theme.icons import icon_pixmap
from console.gui.theme.tokens import ink
from console.gui.widgets.marks import draw_gauge, draw_text
from console.gui.widgets.safe_text import safe_text, tooltip
from console.gui.widgets.text import Text
from console.gui.widgets.words import clock, plural, usd
from console.panic.marks import draw_mark

LINE = 25
TREE_LINE = 24
_LEVELS_SHOWN = 6


@dataclass(frozen=True, slots=True)
class Cell:
    """Words in one column: ``width`` 0 takes what is left."""

    words: str
    width: int = 0
    role: str = "text"
    mono: bool = False
    mark: str = ""
    right: bool = False


class Grid(QWidget):
    """Lines of cells, all the same height, each with its whole text as tooltip."""

    def __init__(self, name: str, *, ruled: bool = True, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._name, self._ruled = name, ruled
        self._rows: tuple[tuple[Cell, ...], ...] = ()
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        self.setFixedHeight(0)

    def say(self, rows: Sequence[tuple[Cell, ...]]) -> None:
        """Other lines."""
        new = tuple(rows)
        if new != self._rows:
            self._rows = new
            self.setFixedHeight(len(new) * LINE + 1)
            self.setAccessibleName(f"{self._name}: " + "; ".join(", ".join(safe_text(c.words) for c in row if c.words) for row in new))
            self.update()

    def event(self, event: QEvent) -> bool:
        if isinstance(event, QHelpEvent) and event.type() is QEvent.Type.ToolTip:
            number = event.pos().y() // LINE
            words = "  ".join(c.words for c in self._rows[number] if c.words) if 0 <= number < len(self._rows) else ""
            QToolTip.showText(event.globalPos(), tooltip(words), self)
            return True
        return super().event(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        colours = ink()
        painter = QPainter(self)
        for number, row in enumerate(self._rows):
            top = number * LINE
            if self._ruled:
                painter.fillRect(QRectF(0, top + LINE, self.width(), 1), QColor(colours.line))
            left = max(40, self.width() - sum(c.width for c in row)) // max(1, sum(not c.width for c in row))
            x = 0.0
            for cell in row:
                width = cell.width or left
                lead = 0
                if cell.mark:
                    draw_mark(painter, cell.mark, QRectF(x, top + LINE / 2 - 4.5, 9, 9), getattr(colours, cell.role))
                    lead = 16
                face = fonts.mono(11) if cell.mono else fonts.ui(12, fonts.MEDIUM if cell.role in ("warn", "danger") else fonts.REGULAR)
                box = QRectF(x + lead, top, width - lead - (0 if cell.right else 10), LINE)
                draw_text(painter, box, safe_text(cell.words), face, getattr(colours, cell.role), right=cell.right)
                x += width
        painter.end()


class Findings(QWidget):
    """Each kind of hostile character: its chip, and what a terminal would have shown."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.found: tuple[Finding, ...] = ()
        self.setFixedHeight(0)

    def say(self, found: Sequence[Finding]) -> None:
        """Other findings."""
        if tuple(found) != self.found:
            self.found = tuple(found)
            self.setFixedHeight(len(self.found) * 22 + (4 if self.found else 0))
            self.setAccessibleName("; ".join(f"{one.code}: {one.words}" for one in self.found))
            self.setToolTip(tooltip("; ".join(f"{one.code}: {one.words}" for one in self.found)))
            self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        colours = ink()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        face = fonts.mono(10, fonts.MEDIUM)
        widest = max((fonts.metrics(face).horizontalAdvance(safe_text(one.code, 16)) for one in self.found), default=0) + 14
        for number, one in enumerate(self.found):
            code = safe_text(one.code, 16)
            width = fonts.metrics(face).horizontalAdvance(code) + 10
            box = QRectF(0.5, 4.5 + number * 22, width, 16)
            painter.setPen(QColor(colours.warn))
            painter.setBrush(QColor(colours.warnbg))
            painter.drawRoundedRect(box, 3, 3)
            draw_text(painter, box.adjusted(5, 0, 4, 0), code, face, colours.warn)
            words = f"{one.words} ({one.count:,} times)" if one.count > 1 and one.code != "EMPTY" else one.words
            x = max(66, widest)
            draw_text(painter, QRectF(x, 2 + number * 22, self.width() - x, 21), safe_text(words, 300), fonts.ui(12), colours.text2)
        painter.end()


class Tree(QWidget):
    """The way from the root to who asks and what it started, each with its largest share and its cost."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._rows: tuple[TreeCost, ...] = ()
        self._left_out = 0
        self.setFixedHeight(0)

    def say(self, rows: Sequence[TreeCost], left_out: int) -> None:
        """Another tree."""
        if (tuple(rows), left_out) != (self._rows, self._left_out):
            self._rows, self._left_out = tuple(rows), left_out
            self.setFixedHeight((len(self._rows) + bool(left_out)) * TREE_LINE)
            said = "; ".join(f"{safe_text(r.name or r.id)} {usd(r.cost_usd)}{', asks' if r.asks else ''}" for r in self._rows)
            self.setAccessibleName(f"Tree and cost so far: {said}")
            self.setToolTip(tooltip(said))
            self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        colours = ink()
        painter = QPainter(self)
        for number, row in enumerate(self._rows):
            top, level = number * TREE_LINE, min(row.level, _LEVELS_SHOWN)
            for step in range(level):
                painter.fillRect(QRectF(7 + step * 15, top, 1, TREE_LINE), QColor(colours.line2))
            x = level * 15 + (0 if not level else 1)
            money = usd(row.cost_usd)
            face = fonts.ui(12, fonts.SEMIBOLD if row.asks else fonts.REGULAR)
            gauge = 138 if row.share is not None else self.width() - 70
            role = colours.text if row.asks else colours.text2
            draw_text(painter, QRectF(x, top, gauge - x - 8, TREE_LINE), safe_text(row.name or row.id, 80), face, role)
            if row.share is not None:
                draw_gauge(painter, QRectF(138, top + 9, 50, 6), row.share, colours)
            draw_text(painter, QRectF(self.width() - 90, top, 90, TREE_LINE), money, face, role, right=True)
        if self._left_out:
            box = QRectF(0, len(self._rows) * TREE_LINE, self.width(), TREE_LINE)
            draw_text(painter, box, f"and {plural(self._left_out, 'more agent')} of the tree", fonts.ui(11), colours.text2)
        painter.end()


BLAST = {
    "files": ("Files", "file"),
    "hosts": ("Hosts", "network"),
    "programs": ("Programs", "terminal"),
    "data": ("Data class", "shield"),
    "undo": ("Undo", "rollback"),
}
_LEVELS = {"plain": "text", "warn": "warn", "danger": "danger"}


class _Icon(QWidget):
    """An icon in a colour of the theme, also of one that is switched to."""

    def __init__(self, name: str, role: str, parent: QWidget) -> None:
        super().__init__(parent)
        self._name, self._role = name, role
        self.setFixedSize(14, 16)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.drawPixmap(0, 1, icon_pixmap(self._name, getattr(ink(), self._role), 13))
        painter.end()


class Blast(QWidget):
    """What it could touch, from the judged parts; what is not known is amber."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.lines: tuple[BlastLine, ...] = ()
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setHorizontalSpacing(8)
        self._grid.setVerticalSpacing(7)
        self._grid.setColumnMinimumWidth(0, 14)
        self._grid.setColumnMinimumWidth(1, 62)
        self._grid.setColumnStretch(2, 1)

    def say(self, lines: Sequence[BlastLine]) -> None:
        """Other lines."""
        if tuple(lines) == self.lines:
            return
        self.lines = tuple(lines)
        while (item := self._grid.takeAt(0)) is not None:
            widget = item.widget()
            if widget is not None:
                widget.deleteLater()
        for number, line in enumerate(self.lines):
            title, icon = BLAST[line.kind]
            role = _LEVELS[line.level]
            top = Qt.AlignmentFlag.AlignTop
            self._grid.addWidget(_Icon(icon, role if role != "text" else "text2", self), number, 0, top)
            self._grid.addWidget(Text(title, 12, fonts.REGULAR, "text2"), number, 1, top)
            words = Text(line.words[:400], 12, fonts.MEDIUM if role != "text" else fonts.REGULAR, role, wrap=True)
            self._grid.addWidget(words, number, 2)


class Countdown(QWidget):
    """Until it is denied by itself; or what became of it."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._left = self._ttl = self._asked = 0.0
        self.gone = ""
        self._mark = ""
        self.setFixedHeight(78)

    def say(self, left_s: float, ttl_s: float, asked_at: float, gone: str = "", mark: str = "ban") -> None:
        """Every second."""
        new = (float(int(left_s)), ttl_s, asked_at, gone, mark)
        if new != (self._left, self._ttl, self._asked, self.gone, self._mark):
            self._left, self._ttl, self._asked, self.gone, self._mark = new
            self.setAccessibleName(safe_text(gone) or f"Denied automatically in {clock_words(left_s)} if not answered")
            self.setToolTip(tooltip(gone))
            self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        colours = ink()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        width = self.width()
        asked = f"asked {clock(self._asked)}"
        if self.gone:
            word, _, rest = safe_text(self.gone).partition(" ")
            face = fonts.ui(17, fonts.SEMIBOLD)
            word = word.rstrip(":").capitalize()
            room = fonts.metrics(face).horizontalAdvance(word) + 4
            draw_mark(painter, self._mark, QRectF(width - room - 18, 25, 11, 11), colours.text2)
            draw_text(painter, QRectF(width - room, 18, room, 24), word, face, colours.text2, right=True)
            draw_text(painter, QRectF(0, 43, width, 16), rest, fonts.ui(11), colours.text2, right=True)
            draw_text(painter, QRectF(0, 60, width, 16), asked, fonts.ui(11), colours.text2, right=True)
            painter.end()
            return
        late = is_late(self._left, self._ttl)
        draw_text(painter, QRectF(0, 0, width, 16), "Denied automatically in", fonts.ui(11), colours.text2, right=True)
        words = clock_words(self._left)
        draw_text(
            painter, QRectF(0, 16, width, 28), words, fonts.ui(22, fonts.SEMIBOLD), colours.warn if late else colours.text, right=True
        )
        bar = QRectF(width - 118, 48, 118, 5)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(colours.track))
        painter.drawRoundedRect(bar, 2.5, 2.5)
        share = min(1.0, self._left / max(1.0, self._ttl))
        painter.setBrush(QColor(colours.warnfill if late else colours.bar))
        painter.drawRoundedRect(QRectF(bar.x(), bar.y(), max(5.0, bar.width() * share), 5), 2.5, 2.5)
        draw_text(painter, QRectF(0, 60, width, 16), asked, fonts.ui(11), colours.text2, right=True)
        painter.end()
