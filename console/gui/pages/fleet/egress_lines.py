"""The newest requests of one agent: time, method, destination, verdict and rule, newest first."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QRectF
from PySide6.QtGui import QHelpEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from console.api.messages import EgressView
from console.gui.pages.network.egress import Line, moment, short_rule, verdict
from console.gui.theme import fonts
from console.gui.theme.tokens import ink
from console.gui.widgets.marks import draw_text
from console.gui.widgets.safe_text import safe_text, tooltip
from console.panic.marks import draw_mark

SHOWN = 8
KEPT = 100
HEIGHT = 34
EMPTY = "No request went through Envoy yet."
_EMPTY_HEIGHT = 20


class RequestLines(QWidget):
    """Two lines each; the page feeds what was read and what comes live."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.lines: list[Line] = []
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        self.setFixedHeight(_EMPTY_HEIGHT)

    def say(self, views: Sequence[EgressView]) -> None:
        """A page of the ledger, newest first; what came live and is not in it yet stays on top."""
        read = [Line(view) for view in views[:KEPT]]
        known = {line.identity for line in read}
        newest = read[0].view.at if read else 0.0
        fresh = [line for line in self.lines if line.view.at >= newest and line.identity not in known]
        self._take([*fresh, *read])

    def clear(self) -> None:
        """Another agent is shown."""
        self._take([])

    def add(self, view: EgressView) -> None:
        """One that just passed or was blocked."""
        self._take([Line(view), *self.lines])

    def _take(self, lines: list[Line]) -> None:
        self.lines = lines[:KEPT]
        shown = self.lines[:SHOWN]
        self.setFixedHeight(len(shown) * HEIGHT or _EMPTY_HEIGHT)
        self.setAccessibleName("; ".join(safe_text(words_of(line), 200) for line in shown) or EMPTY)
        self.update()

    def event(self, event: QEvent) -> bool:
        if isinstance(event, QHelpEvent) and event.type() is QEvent.Type.ToolTip:
            number = event.pos().y() // HEIGHT
            words = words_of(self.lines[number]) if 0 <= number < min(SHOWN, len(self.lines)) else ""
            QToolTip.showText(event.globalPos(), tooltip(words), self)
            return True
        return super().event(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        colours = ink()
        painter = QPainter(self)
        width = self.width()
        if not self.lines:
            draw_text(painter, QRectF(0, 0, width, _EMPTY_HEIGHT), EMPTY, fonts.ui(12), colours.text2)
        for number, line in enumerate(self.lines[:SHOWN]):
            y = number * HEIGHT
            word, shape, role = verdict(line)
            draw_mark(painter, shape, QRectF(1, y + 4, 9, 9), getattr(colours, role))
            draw_text(painter, QRectF(21, y, width - 21, 18), safe_text(asked_for(line.view), 200), fonts.mono(12), colours.text)
            strong = role != "text2"
            face = fonts.ui(11, fonts.MEDIUM if strong else fonts.REGULAR)
            room = fonts.metrics(face).horizontalAdvance(word) + 8
            draw_text(painter, QRectF(21, y + 16, room, 16), word, face, getattr(colours, role))
            rule = safe_text(short_rule(line.view.rule), 120)
            draw_text(painter, QRectF(21 + room, y + 16, width - 21 - room - 82, 16), rule, fonts.ui(11), colours.text2)
            draw_text(painter, QRectF(width - 80, y + 16, 80, 16), moment(line.view.at), fonts.mono(11), colours.text3, right=True)
        painter.end()


def asked_for(view: EgressView) -> str:
    """``GET crates.io/dl/x``; a tunnel has no path."""
    return f"{view.method or '—'} {view.host}{'' if view.method == 'CONNECT' else view.path}"


def words_of(line: Line) -> str:
    """All of one request, for the tooltip and a screen reader."""
    return f"{moment(line.view.at)} {asked_for(line.view)}: {verdict(line)[0]}, HTTP {line.view.status}. {line.view.rule}"
