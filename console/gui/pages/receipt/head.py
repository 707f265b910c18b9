"""The headline and the timeline of the eight steps. Green needs a verified zero; anything else is amber as a whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QEvent, QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QHelpEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QToolTip, QWidget

from console.domain.headline import headline_of
from console.domain.kill import PROOF, Outcome, Receipt, Step, StepName, StepStatus
from console.domain.verdict import verdict
from console.gui.models.operators import person
from console.gui.models.seen import running_words
from console.gui.models.switch import STEP_TITLES, step_of
from console.gui.pages.budgets.reasons import plain_reason
from console.gui.pages.receipt.amended import late
from console.gui.theme import fonts
from console.gui.theme.tokens import ink
from console.gui.widgets.marks import draw_text, lines_of
from console.gui.widgets.safe_text import safe_text, tooltip
from console.gui.widgets.words import plural, took
from console.panic.guard_state import GuardState
from console.panic.marks import draw_mark

_MARKS = {StepStatus.OK: "check", StepStatus.FAILED: "triangle", StepStatus.UNKNOWN: "triangle", StepStatus.SKIPPED: "ring"}


@dataclass(frozen=True, slots=True)
class Headline:
    """kind: proven, late (proven, but only after the receipt had said otherwise), doubt or running."""

    kind: str
    text: str
    line: str


def headline(receipt: Receipt | None, guard: GuardState, seen: Sequence[str] = (), now: float | None = None) -> Headline:
    """About this host only. ``seen``: agents that were only seen and still run; while there is one, nothing is green."""
    if receipt is None:
        text = f"{guard.proven} of {guard.total} confirmed dead so far" if guard.total else "Waiting for the receipt"
        return Headline("running", text, "SIGKILL is out; the proof is being read")
    found, reason = verdict(receipt), f"This host · reason “{plain_reason(receipt.reason)}” · by {person(receipt.by)}"
    words = headline_of(receipt, now)
    if receipt.zero.status is StepStatus.PENDING and not receipt.complete:
        return Headline("running", words, reason)
    kind = "proven"
    if not found.is_confirmed:
        kind = "doubt"
    elif number := late(receipt):
        kind, words = "late", f"{words} {plural(number, 'agent')} only after this receipt had said NOT PROVEN."
    return Headline("doubt", f"{words} {running_words(list(seen))}.", reason) if seen else Headline(kind, words, reason)


def open_points(receipt: Receipt | None, seen: Sequence[str] = ()) -> list[str]:
    """What is open: agents with pid and state, those only seen that still run, failed and unknown steps."""
    if receipt is None:
        return []
    points = [f"{name}: only seen, still runs; it was not signalled" for name in seen]
    points += [f"{s.agent_id}: pid {s.pid}, state {s.state}{', ' + s.wchan if s.wchan else ''}" for s in receipt.survivors]
    known = {s.agent_id for s in receipt.survivors}
    points += [
        f"{t.agent_id}: {t.outcome.value.replace('_', ' ')}"
        for t in receipt.targets
        if t.outcome in (Outcome.NOT_PROVEN, Outcome.DYING) and t.agent_id not in known
    ]
    points += [
        f"step {STEP_TITLES[s.name]}: {s.status.value} · {s.detail}"
        for s in receipt.steps
        if s.status in (StepStatus.FAILED, StepStatus.UNKNOWN)
    ]
    return points


def is_amber(step: Step) -> bool:
    """Whether a decided step is amber. What was skipped is not set up or not meant; a check that was skipped is not known."""
    return step.status is not StepStatus.OK and (step.status is not StepStatus.SKIPPED or step.name in PROOF)


class ReceiptHead(QWidget):
    """Crumb, ring, headline 22, one line."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setFixedHeight(92)
        self._crumb = ""
        self.headline = Headline("running", "Waiting for the receipt", "")

    def say(self, kill_id: str, head: Headline) -> None:
        self._crumb, self.headline = f"Kill switch  ›  Receipts  ›  {safe_text(kill_id, 60)}", head
        self.setAccessibleName(f"{head.text}. {safe_text(head.line)}")
        self.setToolTip(tooltip(head.text))
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        colours = ink()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        draw_text(painter, QRectF(0, 8, self.width(), 16), self._crumb, fonts.ui(11), colours.text2)
        role = {"proven": "ok", "doubt": "warn"}.get(self.headline.kind, "text2")
        colour = getattr(colours, role)
        painter.setPen(QPen(QColor(colour), 2))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        middle = QPointF(15, 50)
        painter.drawEllipse(middle, 13.5, 13.5)
        shape = {"proven": "check", "late": "check", "doubt": "triangle"}.get(self.headline.kind, "pause")
        draw_mark(painter, shape, QRectF(middle.x() - 6, middle.y() - 6.5, 12, 11), colour)
        text = colours.warn if self.headline.kind == "doubt" else colours.text
        self._paint_headline(painter, QRectF(42, 36, self.width() - 42, 28), text)
        draw_text(painter, QRectF(42, 65, self.width() - 42, 18), safe_text(self.headline.line, 300), fonts.ui(12), colours.text2)
        painter.end()

    def _paint_headline(self, painter: QPainter, box: QRectF, colour: str) -> None:
        """One line, or two smaller ones: what speaks against a clean kill stands behind the first sentence."""
        large, small = fonts.ui(22, fonts.SEMIBOLD), fonts.ui(13, fonts.SEMIBOLD)
        if fonts.metrics(large).horizontalAdvance(self.headline.text) <= box.width():
            draw_text(painter, box, self.headline.text, large, colour)
            return
        painter.setFont(small)
        painter.setPen(QColor(colour))
        is_one = fonts.metrics(small).horizontalAdvance(self.headline.text) <= box.width()
        place = Qt.AlignmentFlag.AlignVCenter if is_one else Qt.AlignmentFlag.AlignTop
        painter.drawText(box.adjusted(0, -7, 0, 1), Qt.TextFlag.TextWordWrap | place, self.headline.text)


_BESIDE = 33.0
"""Pixels of a step beside its title, where the title stands right of the ring."""


class Timeline(QWidget):
    """Eight steps, each with its result and the time since the press; a step not judged yet is a plain ring."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setFixedHeight(86)
        self._receipt: Receipt | None = None

    def say(self, receipt: Receipt | None) -> None:
        self._receipt = receipt
        words = []
        for name in StepName:
            step = step_of(receipt, name)
            words.append(f"{STEP_TITLES[name]}: {step.status.value if step else 'not yet'}")
        self.setAccessibleName("; ".join(words))
        self.update()

    def event(self, event: QEvent) -> bool:
        if isinstance(event, QHelpEvent) and event.type() is QEvent.Type.ToolTip:
            names = list(StepName)
            number = int((event.pos().x() - 16) / max(1.0, (self.width() - 32) / len(names)))
            name = names[max(0, min(number, len(names) - 1))]
            step = step_of(self._receipt, name)
            words = f"{step.status.value}: {step.detail}" if step else "not yet"
            QToolTip.showText(event.globalPos(), tooltip(f"{STEP_TITLES[name]}: {words}"), self)
            return True
        return super().event(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        colours = ink()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.fillRect(QRectF(0, 0, self.width(), 1), QColor(colours.line))
        painter.fillRect(QRectF(0, self.height() - 1, self.width(), 1), QColor(colours.line))
        width = (self.width() - 32) / len(StepName)
        widest = max(map(fonts.metrics(fonts.ui(12, fonts.SEMIBOLD)).horizontalAdvance, STEP_TITLES.values()))
        is_narrow = widest > width - _BESIDE
        for number, name in enumerate(StepName):
            x, step = 16 + number * width, step_of(self._receipt, name)
            self._paint_ring(painter, QPointF(x + 12, 41 if is_narrow else 35), step)
            beside = QRectF(x + 29, 0, width - _BESIDE, 18)
            if is_narrow:
                self._paint_title(painter, QRectF(x, 7, width - 4, 18), name, 10)
                self._paint_result(painter, QRectF(x, 53, width - 4, 16), beside.translated(0, 32), step)
            else:
                self._paint_title(painter, beside.translated(0, 8), name, 12)
                self._paint_result(painter, beside.translated(0, 25), None, step)
        painter.end()

    def _paint_ring(self, painter: QPainter, middle: QPointF, step: Step | None) -> None:
        colours = ink()
        amber = step is not None and is_amber(step)
        colour = colours.warn if amber else colours.text2 if step else colours.line2
        painter.setPen(QPen(QColor(colour), 1.6))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawEllipse(middle, 10.5, 10.5)
        if step is not None:
            draw_mark(painter, "triangle" if amber else _MARKS[step.status], QRectF(middle.x() - 4.5, middle.y() - 5, 9, 9), colour)

    def _paint_title(self, painter: QPainter, box: QRectF, name: StepName, size: int) -> None:
        colours = ink()
        role = colours.text if step_of(self._receipt, name) else colours.text3
        draw_text(painter, box, STEP_TITLES[name], fonts.ui(size, fonts.SEMIBOLD), role)

    def _paint_result(self, painter: QPainter, line: QRectF, time: QRectF | None, step: Step | None) -> None:
        """At most two lines from ``line`` on; ``time`` None: it stands below them."""
        colours = ink()
        amber = step is not None and is_amber(step)
        words = step.detail or step.status.value if step else "not yet"
        if step is not None and step.status in (StepStatus.FAILED, StepStatus.UNKNOWN) and step.detail:
            words = f"{step.status.value}: {words}"
        face, role = fonts.ui(12, fonts.MEDIUM if amber else fonts.REGULAR), colours.warn if amber else colours.text2
        lines = lines_of(safe_text(words), face, int(line.width()), 2)
        for number, part in enumerate(lines):
            draw_text(painter, line.translated(0, 16 * number), part, face, role)
        if step is not None and step.ms is not None:
            box = time or line.translated(0, 3 + 16 * len(lines))
            draw_text(painter, box, f"+{took(step.ms)}", fonts.mono(11), colours.text3)
