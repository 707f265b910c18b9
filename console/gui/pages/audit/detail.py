"""One record: its place in the chain between its neighbours, and the record as JSON."""

from __future__ import annotations

import json

from PySide6.QtCore import QPointF, QRectF
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QWidget

from console.api.records import AuditRow
from console.gui.kit.layout import PANE, STRETCH, column, row
from console.gui.kit.pane import Offer, Pane
from console.gui.kit.table import LOUD
from console.gui.pages.audit.rows import actor_look, record_moment, short_hash, verdict_look
from console.gui.theme import fonts
from console.gui.theme.tokens import ink
from console.gui.widgets.facts import Chips, ChipSpec, Fact, Facts, Rule
from console.gui.widgets.marks import draw_text
from console.gui.widgets.reading import PlainView
from console.gui.widgets.text import Text

GENESIS = "0" * 64
_ICONS = {"ban": "ban", "triangle": "warning", "check": "check"}
OFFERS = (
    Offer("audit.agent", "Agent", "fleet", "J"),
    Offer("audit.rollback", "Rollback", "rollback"),
    Offer("audit.copy", "Copy", "copy", "C"),
)


def as_json(row: AuditRow) -> str:
    """The record as ASCII JSON: every other character is an escape, so what is copied is what is seen."""
    fields = {
        name: getattr(row, name) for name in ("seq", "at", "actor", "kind", "what", "verdict", "agent_id", "data", "previous", "hash")
    }
    return json.dumps(fields, indent=2, ensure_ascii=True, sort_keys=False)


def checks(row: AuditRow, before: AuditRow | None, after: AuditRow | None, *, read: bool) -> list[Fact]:
    """What the two joints of this record say; what has not been read is said to be so."""
    return [_joint_before(row, before, read), _joint_after(row, after, read)]


def _joint_before(row: AuditRow, before: AuditRow | None, read: bool) -> Fact:
    words = "Holds the hash before it"
    if row.seq == 1:
        first = row.previous == GENESIS
        return Fact(words, "the first record" if first else "not the beginning", *(("check", "ok") if first else ("alert", "danger")))
    if before is None:
        return Fact(words, "record before is missing", "alert", "danger", right_role="danger") if read else Fact(words, "reading…", "ring")
    if before.hash == row.previous:
        return Fact(words, f"{short_hash(before.hash)} … matches", "check", "ok", right_role="text")
    return Fact(words, f"{short_hash(row.previous)} is not {short_hash(before.hash)}", "alert", "danger", right_role="danger")


def _joint_after(row: AuditRow, after: AuditRow | None, read: bool) -> Fact:
    words = "Held by the next record"
    if after is None:
        return Fact(words, "it is the newest" if read else "reading…", "ring")
    if after.previous == row.hash:
        return Fact(words, f"{short_hash(row.hash)} … matches", "check", "ok", right_role="text")
    return Fact(words, f"{after.seq:,} holds another hash", "alert", "danger", right_role="danger")


class Place(QWidget):
    """Three boxes: the record before, this one, the one after."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setFixedHeight(50)
        self._boxes: list[tuple[str, str, bool]] = []

    def say(self, row: AuditRow, before: AuditRow | None, after: AuditRow | None) -> None:
        none = ("—", "", False)
        self._boxes = [
            (f"{before.seq:,}", short_hash(before.hash), False) if before else none,
            (f"{row.seq:,}", short_hash(row.hash), True),
            (f"{after.seq:,}", short_hash(after.hash), False) if after else none,
        ]
        self.setAccessibleName("Place in the chain: " + ", ".join(f"{number} {text}".strip() for number, text, _ in self._boxes))
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        colours = ink()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        wide = (self.width() - 52) / 3
        for at, (number, text, on) in enumerate(self._boxes):
            box = QRectF(at * (wide + 26) + 0.5, 2.5, wide - 1, 45)
            if at:
                y = box.center().y()
                painter.setPen(QPen(QColor(colours.line2), 1.4))
                painter.drawLine(QPointF(box.x() - 24, y), QPointF(box.x() - 4, y))
                painter.drawLine(QPointF(box.x() - 8, y - 3.5), QPointF(box.x() - 4, y))
                painter.drawLine(QPointF(box.x() - 8, y + 3.5), QPointF(box.x() - 4, y))
            painter.setPen(QPen(QColor(colours.accent if on else colours.line2), 1))
            painter.setBrush(QColor(colours.sel if on else colours.bg2))
            painter.drawRoundedRect(box, 4, 4)
            face = fonts.ui(12, fonts.MEDIUM)
            lead = max(6.0, (box.width() - fonts.metrics(face).horizontalAdvance(number)) / 2)
            draw_text(
                painter, QRectF(box.x() + lead, box.y() + 4, box.width() - lead, 19), number, face, colours.text if on else colours.text2
            )
            mono = fonts.mono(11)
            lead = max(6.0, (box.width() - fonts.metrics(mono).horizontalAdvance(text)) / 2)
            draw_text(painter, QRectF(box.x() + lead, box.y() + 22, box.width() - lead, 18), text, mono, colours.text2)
        painter.end()


class RecordPane(Pane):
    """One record and its neighbours, each as far as it was read."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.row: AuditRow | None = None
        self._actor = ""
        self._crumb = Text("", 11, fonts.REGULAR, "text2")
        self._what = Text("", 14, fonts.MEDIUM, mono=True)
        self.chips = Chips()
        self._place = Place()
        self.checks = Facts(24)
        self.json = PlainView("The record as JSON", parent=self)
        place = (Text("Place in the chain", 13, fonts.SEMIBOLD), 6, self._place, 4, self.checks)
        hint = Text("C copies it", 11, fonts.REGULAR, "text2", right=True)
        raw = (row(Text("Raw, canonical JSON", 13, fonts.SEMIBOLD), STRETCH, hint, spacing=-1), 7, (self.json, 1))
        body = column(self._crumb, 4, self._what, 7, self.chips, Rule(9), *place, Rule(9), *raw, margins=PANE)
        self.lay((body, 1), offers=OFFERS)

    def show_row(self, record: AuditRow) -> None:
        """The record; its neighbours come with ``show_place``."""
        name, icon, _ = actor_look(record.actor)
        if self.row is not None and self.row == record and name == self._actor:
            return
        self.row, self._actor = record, name
        self._crumb.setText(f"Record {record.seq:,}  ·  {record.kind}  ·  {record_moment(record)}")
        self._what.setText(record.what or "—")
        word, shape, role = verdict_look(record.verdict)
        chips = [ChipSpec(word, _ICONS[shape], role if role in LOUD else "plain")] if shape else []
        self.chips.say([*chips, ChipSpec(name, icon)])
        self.json.say(as_json(record))
        self.show_place(record, None, None, read=False)

    def show_place(self, record: AuditRow, before: AuditRow | None, after: AuditRow | None, *, read: bool) -> None:
        """The neighbours of the record that is shown; another's are ignored."""
        if self.row is None or record.seq != self.row.seq:
            return
        self._place.say(record, before, after)
        self.checks.say(checks(record, before, after, read=read))
