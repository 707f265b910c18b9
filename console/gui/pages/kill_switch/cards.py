"""Head, path cards and the table of what a press will do now."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QBrush, QColor, QFont, QPainter, QPaintEvent, QPen, QTextLayout
from PySide6.QtWidgets import QWidget

from console.api.armed import PathView
from console.gui.pages.kill_switch.words import LEVELS, PATH_STATES, PATHS, level_words
from console.gui.theme import fonts
from console.gui.theme.icons import icon_pixmap
from console.gui.theme.tokens import Ink, ink
from console.gui.widgets.facts import Card
from console.gui.widgets.marks import chip_width, draw_chip, draw_text
from console.gui.widgets.safe_text import safe_text, tooltip
from console.gui.widgets.words import age, plural, span
from console.panic.marks import draw_mark


class SwitchHead(QWidget):
    """Ring, state in one word, one sentence. The ring is whole and green only while everything needed is proven."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setFixedHeight(64)
        self._light, self._word, self._line, self._fine, self._chip = "unknown", "Not known", "", "", ""

    def say(self, light: str, word: str, line: str, fine: str, chip: str) -> None:
        """light: armed, in_doubt, unknown, killing, killed. ``chip`` is a doubt about other hosts."""
        self._light, self._word, self._line, self._fine, self._chip = light, word, safe_text(line), safe_text(fine), safe_text(chip)
        self.setAccessibleName(f"{word}. {self._line}. {self._fine}. {self._chip}")
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        colours = ink()
        painter = QPainter(self)
        paint_ring(painter, QRectF(1, 6, 50, 50), self._light, colours)
        title = fonts.ui(22, fonts.MEDIUM)
        draw_text(painter, QRectF(66, 0, 300, 28), self._word, title, colours.text)
        if self._chip:
            x = 66 + fonts.metrics(title).horizontalAdvance(self._word) + 14
            draw_chip(painter, QRectF(x, 4, chip_width(self._chip, True, 22), 22), self._chip, "warning", "warn", colours)
        role = colours.text2 if self._light in ("armed", "killed") else colours.warn
        draw_text(painter, QRectF(66, 28, self.width() - 66, 18), self._line, fonts.ui(13), role)
        draw_text(painter, QRectF(66, 46, self.width() - 66, 16), self._fine, fonts.ui(11), colours.text2)
        painter.end()


def paint_ring(painter: QPainter, box: QRectF, light: str, colours: Ink) -> None:
    """Green ring and disc; amber ring with a gap; a cross when latched."""
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setBrush(Qt.BrushStyle.NoBrush)
    inner = box.adjusted(1.5, 1.5, -1.5, -1.5)
    if light == "armed":
        painter.setPen(QPen(QColor(colours.ok), 2))
        painter.drawEllipse(inner)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(colours.ok))
        painter.drawEllipse(box.center(), 13, 13)
    elif light == "killed":
        painter.setPen(QPen(QColor(colours.text2), 2))
        painter.drawEllipse(inner)
        draw_mark(painter, "cross", QRectF(box.center().x() - 10, box.center().y() - 10, 20, 20), colours.text)
    else:
        painter.setPen(QPen(QColor(colours.warn), 2.4))
        painter.drawArc(inner, 120 * 16, 300 * 16)
        draw_mark(painter, "triangle", QRectF(box.center().x() - 9, box.center().y() - 9, 18, 16), colours.warn)
    painter.restore()


class PathCard(Card):
    """One way to stop this host: state with age, worst case, four facts. 176 high."""

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__("plain", parent)
        self.setFixedHeight(176)
        self._path = PathView(name=name, state="in_doubt", detail="not known yet")
        self._now, self._seen, self._old = 0.0, 0.0, False

    def say(self, path: PathView, now: float, seen: float, *, old: bool = False) -> None:
        """``seen``: when the supervisor said so; ages count on from there. Both in seconds since the epoch. ``old``: it is silent now."""
        self._path, self._now, self._seen, self._old = path, now, seen, old
        self.set_kind("warn" if path.state == "in_doubt" else "plain")
        word = state_words(path.state, old)[0]
        self.setAccessibleName(f"{PATHS.get(path.name, (path.name, ''))[0]}: {word}. {safe_text(path.detail)}")
        self.setToolTip(tooltip(path_words(path)))
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        path, colours = self._path, ink()
        painter = QPainter(self)
        title, icon = PATHS.get(path.name, (safe_text(path.name, 30), "shield"))
        right = self.width() - 14
        painter.drawPixmap(14, 14, icon_pixmap(icon, colours.text2, 16))
        draw_text(painter, QRectF(38, 11, right - 110, 22), title, fonts.ui(14, fonts.MEDIUM), colours.text)
        word, shape, role = state_words(path.state, self._old)
        draw_mark(painter, shape, QRectF(16, 40, 10, 10), getattr(colours, role))
        state = fonts.ui(12, fonts.MEDIUM)
        width = fonts.metrics(state).horizontalAdvance(word) + 3
        draw_text(painter, QRectF(38, 36, width, 18), word, state, getattr(colours, role))
        proof = proof_words(path, self._now, self._seen, old=self._old)
        draw_text(painter, QRectF(42 + width, 36, right - 130 - width, 18), proof, fonts.ui(12), colours.text2)
        self._paint_worst(painter, right)
        painter.fillRect(QRectF(14, 62, right - 14, 1), QColor(colours.line))
        doubtful = path.state == "in_doubt"
        first = 68.0
        if doubtful or path.state == "unavailable" or not path.facts:
            # why it is amber stands before any fact; two lines of it when there are facts below
            room = QRectF(14, 70, right - 14, 34 if path.facts else 98)
            face = fonts.ui(12, fonts.MEDIUM if doubtful else fonts.REGULAR)
            _paint_wrapped(painter, room, safe_text(path.detail, 300), face, colours.warn if doubtful else colours.text)
            first = 107.0
        for number, (left, words) in enumerate(path.facts[: 4 if first < 100 else 2]):
            y = first + 25 * number
            shown = safe_text(words, 80)
            share = fonts.metrics(fonts.ui(12)).horizontalAdvance(safe_text(left, 30)) + 10 if left else 0
            draw_text(painter, QRectF(14, y, share, 24), safe_text(left, 30), fonts.ui(12), colours.text2)
            draw_text(painter, QRectF(14 + share, y, right - 14 - share, 24), shown, fonts.ui(12), colours.text, right=bool(left))
        painter.end()

    def _paint_worst(self, painter: QPainter, right: float) -> None:
        colours, path = ink(), self._path
        if path.worst_s is None and path.state != "in_doubt":
            return
        known = path.worst_s is not None
        words = f"{path.worst_s:.1f} s" if path.worst_s is not None else "not known"
        face = fonts.ui(13, fonts.MEDIUM)
        draw_text(painter, QRectF(right - 80, 11, 80, 22), words, face, colours.text if known else colours.warn, right=True)
        draw_text(painter, QRectF(right - 80, 32, 80, 16), "worst case", fonts.ui(11), colours.text2, right=True)


def state_words(state: str, old: bool) -> tuple[str, str, str]:
    """(word, shape, colour); what is stale was proven once, and has no tick."""
    return ("Last tested", "ring", "text2") if old and state == "proven" else PATH_STATES[state]


def proof_words(path: PathView, now: float, seen: float, *, old: bool = False) -> str:
    """How old the proof is, counted on since the supervisor said so; a path in doubt says when it was last proven."""
    at = seen - path.proof_age_s if path.proof_age_s is not None else path.checked_at if path.state == "proven" else None
    if path.state in ("not_configured", "unavailable"):
        return ""
    if at is None:
        return "no proof" if path.state == "in_doubt" else ""
    if old:
        return f"{span(now - at)} ago"
    return age(at, now) if path.state == "proven" else f"proof {span(now - at)} old"


def path_words(path: PathView) -> str:
    """Everything the card has no room for."""
    parts = [path.detail, f"proof: {path.how}" if path.how else ""]
    if path.period_s is not None:
        parts.append(f"tried every {path.period_s:.0f} s")
    if path.measured_ms is not None:
        parts.append(f"the last canary took {path.measured_ms:.1f} ms to die")
    if path.heartbeat_age_s is not None:
        parts.append(f"the poller's last answer came {path.heartbeat_age_s:.0f} s before this was said")
    if path.lease_left_s is not None:
        parts.append(f"{path.lease_left_s:.0f} s were left of the lease")
    if path.clock_off_s is not None:
        parts.append(f"this clock is {path.clock_off_s:+.1f} s off the bucket's")
    return ". ".join(part for part in parts if part)


def _paint_wrapped(painter: QPainter, box: QRectF, words: str, face: QFont, colour: str) -> None:
    """As many whole lines as there is room for; the last one says when it is not all."""
    height = fonts.metrics(face).lineSpacing()
    room = max(1, int(box.height() // height))
    painter.setPen(QColor(colour))
    text = QTextLayout(words, face)
    text.beginLayout()
    for number in range(room):
        line = text.createLine()
        if not line.isValid():
            break
        if number == room - 1:
            rest = words[line.textStart() :]
            draw_text(painter, QRectF(box.x(), box.y() + number * height, box.width(), height), rest, face, colour)
            break
        line.setLineWidth(box.width())
        line.setPosition(QPointF(0, number * height))
        line.draw(painter, box.topLeft())
    text.endLayout()


class PressTable(QWidget):
    """Counts by control level over a bar told apart by hatch; observed is always amber."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._counts: dict[str, tuple[int, int]] = {}
        self._left: dict[str, int] = {}
        self.setFixedHeight(54 + 30 * 4)

    def say(self, press: dict[str, dict[str, int]]) -> None:
        """control level -> {agents, processes}."""
        self._counts = {level: (c.get("agents", 0), c.get("processes", 0)) for level, c in press.items()}
        self._left = {level: c.get("left_alone", 0) for level, c in press.items()}
        words = (
            f"{level}: {plural(a, 'agent')}, {plural(p, 'process', 'processes')}, {', '.join(level_words(level, a, self._left[level]))}"
            for level, (a, p) in self._counts.items()
        )
        self.setAccessibleName("; ".join(words))
        self.update()

    def total(self) -> str:
        """``217 agents · 1,486 processes``."""
        agents, processes = sum(a for a, _ in self._counts.values()), sum(p for _, p in self._counts.values())
        return f"{plural(agents, 'agent')} · {plural(processes, 'process', 'processes')}"

    def paintEvent(self, event: QPaintEvent) -> None:
        colours = ink()
        painter = QPainter(self)
        self._paint_bar(painter, colours)
        width = self.width()
        columns = (0.0, width * 0.2, width * 0.32, width * 0.46, width * 0.74)
        heads = ("Control level", "Agents", "Processes", "How", "Promise")
        for number, words in enumerate(heads):
            box = self._cell(columns, number, 22, 30)
            draw_text(painter, box, words, fonts.ui(11, fonts.MEDIUM), colours.text2, right=number in (1, 2))
        painter.fillRect(QRectF(0, 52, width, 1), QColor(colours.line2))
        levels = [*LEVELS, *sorted(set(self._counts) - set(LEVELS))]
        levels.sort(key=lambda level: self._counts.get(level, (0, 0))[0] == 0)  # there is room for four: those that count come first
        for line, level in enumerate(levels[:4]):
            agents, processes = self._counts.get(level, (0, 0))
            how, promise = level_words(level, agents, self._left.get(level, 0))
            doubtful = level not in ("contained", "managed", "adopted") and agents > 0
            y = 54.0 + 30 * line
            role = colours.warn if doubtful else colours.text
            draw_mark(painter, "triangle" if doubtful else "check", QRectF(2, y + 10, 9, 9), colours.warn if doubtful else colours.text2)
            figures = (f"{agents:,}", f"{processes:,}") if self.accessibleName() else ("?", "?")  # nothing was said of them
            cells = (safe_text(level.replace("_", " "), 20), *figures, how, promise)
            for number, words in enumerate(cells):
                face = fonts.ui(
                    13 if number == 1 else 12, fonts.MEDIUM if number in (0, 1) or (doubtful and number == 4) else fonts.REGULAR
                )
                colour = role if number in (0, 4) else colours.text if number == 1 else colours.text2
                box = self._cell(columns, number, y, 30)
                draw_text(painter, box.adjusted(20, 0, 0, 0) if number == 0 else box, words, face, colour, right=number in (1, 2))
            painter.fillRect(QRectF(0, y + 29, width, 1), QColor(colours.line))
        painter.end()

    def _cell(self, columns: tuple[float, ...], number: int, y: float, height: float) -> QRectF:
        left = columns[number]
        end = columns[number + 1] if number + 1 < len(columns) else self.width()
        return QRectF(left, y, end - left - 12, height)

    def _paint_bar(self, painter: QPainter, colours: Ink) -> None:
        total = sum(a for a, _ in self._counts.values())
        x = 0.0
        painter.fillRect(QRectF(0, 4, self.width(), 10), QColor(colours.track))
        for level in LEVELS:
            agents = self._counts.get(level, (0, 0))[0]
            if not agents or not total:
                continue
            part = max(6.0, (self.width() - 6) * agents / total)
            box = QRectF(x, 4, part, 10)
            painter.fillRect(box, QColor(colours.warnfill if level in ("observed", "best_effort") else colours.bar))
            if level != "contained":
                pattern = Qt.BrushStyle.BDiagPattern if level == "managed" else Qt.BrushStyle.Dense5Pattern
                painter.fillRect(box, QBrush(QColor(colours.bg2), pattern))
            painter.fillRect(QRectF(box.right() - 1, 4, 2, 10), QColor(colours.bg2))
            x += part


class Rungs(QWidget):
    """The ladder: freeze, isolate, kill, with how each is undone. Its buttons lie over the right edge."""

    LINES = (
        ("Freeze", "nothing runs, nothing is lost", "pause", "undone by resume"),
        ("Isolate", "no egress, connections cut", "ban", "undone by reconnect"),
        ("Kill", "stops now; unsaved work is lost", "alert", "cannot be undone"),
    )

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setFixedHeight(56 * 3)
        self.setAccessibleName("; ".join(f"{a}: {b}, {d}" for a, b, _, d in self.LINES))

    def paintEvent(self, event: QPaintEvent) -> None:
        colours = ink()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        for number, (title, words, shape, undone) in enumerate(self.LINES):
            y = 56.0 * number
            colour = colours.danger if number == 2 else colours.text2
            if number < 2:
                painter.fillRect(QRectF(11.5, y + 42, 1, 20), QColor(colours.line2))
            painter.setPen(QPen(QColor(colour if number == 2 else colours.line2), 1.4))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawEllipse(QPointF(12, y + 28), 11, 11)
            draw_mark(painter, shape, QRectF(8, y + 24, 8, 8), colour)
            face, room = fonts.ui(13, fonts.MEDIUM), self.width() - 36 - 226
            draw_text(painter, QRectF(36, y + 9, room, 18), title, face, colours.danger if number == 2 else colours.text)
            after = fonts.metrics(face).horizontalAdvance(title) + 10
            draw_text(painter, QRectF(36 + after, y + 9, room - after, 18), undone, fonts.ui(12), colours.text2)
            draw_text(painter, QRectF(36, y + 28, room, 16), words, fonts.ui(12), colours.text2)
        box = QRectF(self.width() - 108, 56 * 2, 108, 56)
        draw_text(painter, box.adjusted(0, 11, 0, -29), "Panic, top right,", fonts.ui(11, fonts.MEDIUM), colours.text, right=True)
        draw_text(painter, box.adjusted(0, 28, 0, -12), "kills all and blocks", fonts.ui(11), colours.text2, right=True)
        painter.end()
