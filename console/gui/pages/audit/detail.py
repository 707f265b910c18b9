"""One record: its place in the chain between its neighbours, and the record as JSON."""

from __future__ import annotations

import json

from PySide6.QtCore import QPointF, QRectF, Signal
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from console.api.records import AuditRow
from console.gui.pages.audit.rows import actor_look, moment, short_hash, verdict_look
from console.gui.theme import fonts
from console.gui.theme.tokens import ink
from console.gui.widgets.buttons import Button
from console.gui.widgets.facts import Chips, ChipSpec, Fact, Facts, Rule
from console.gui.widgets.marks import draw_text
from console.gui.widgets.reading import PlainView
from console.gui.widgets.side_pane import SidePane
from console.gui.widgets.text import Text
from console.gui.widgets.words import day_clock

WIDTH = 388
GENESIS = "0" * 64
_ICONS = {"ban": "ban", "triangle": "warning", "check": "check"}
_KINDS = {"danger": "danger", "warn": "warn"}


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


class DetailPane(SidePane):
    """``asked`` carries an action id of the page."""

    asked = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.row: AuditRow | None = None
        column = QVBoxLayout(self)
        column.setContentsMargins(1, 0, 0, 0)
        column.setSpacing(0)
        body = QVBoxLayout()
        body.setContentsMargins(19, 12, 20, 12)
        body.setSpacing(0)
        self._crumb = Text("", 11, fonts.REGULAR, "text2")
        self._what = Text("", 14, fonts.MEDIUM, mono=True)
        self._chips = Chips()
        self._place = Place()
        self.checks = Facts(24)
        self.json = PlainView("The record as JSON", parent=self)
        title = Text("Place in the chain", 13, fonts.SEMIBOLD)
        for part, room in (
            (self._crumb, 4),
            (self._what, 7),
            (self._chips, 0),
            (Rule(9), 0),
            (title, 6),
            (self._place, 4),
            (self.checks, 0),
        ):
            body.addWidget(part)
            body.addSpacing(room)
        body.addWidget(Rule(9))
        line = QHBoxLayout()
        line.addWidget(Text("Raw, canonical JSON", 13, fonts.SEMIBOLD))
        line.addStretch(1)
        line.addWidget(Text("C copies it", 11, fonts.REGULAR, "text2", right=True))
        body.addLayout(line)
        body.addSpacing(7)
        body.addWidget(self.json, 1)
        column.addLayout(body, 1)
        column.addLayout(self._build_foot())

    def _build_foot(self) -> QHBoxLayout:
        row = QHBoxLayout()
        row.setContentsMargins(19, 12, 20, 12)
        row.setSpacing(8)
        self.agent = Button("Agent", "fleet", keys="J", parent=self)
        self.rollback = Button("Rollback", "rollback", parent=self)
        self.copy = Button("Copy", "copy", keys="C", parent=self)
        for button, action in ((self.agent, "audit.agent"), (self.rollback, "audit.rollback"), (self.copy, "audit.copy")):
            button.clicked.connect(lambda _on=False, name=action: self.asked.emit(name))
            row.addWidget(button, 1)
        return row

    def show_row(self, row: AuditRow) -> None:
        """The record; its neighbours come with ``show_place``."""
        if self.row is not None and self.row == row:
            return
        self.row = row
        self._crumb.setText(f"Record {row.seq:,}  ·  {row.kind}  ·  {day_clock(row.at)[:6]} {moment(row.at)}")
        self._what.setText(row.what or "—")
        word, shape, role = verdict_look(row.verdict)
        name, icon, _ = actor_look(row.actor)
        chips = [ChipSpec(word, _ICONS[shape], _KINDS.get(role, "plain"))] if shape else []
        self._chips.say([*chips, ChipSpec(name, icon)])
        self.json.say(as_json(row))
        self.show_place(row, None, None, read=False)

    def show_place(self, row: AuditRow, before: AuditRow | None, after: AuditRow | None, *, read: bool) -> None:
        """The neighbours of the record that is shown; another's are ignored."""
        if self.row is None or row.seq != self.row.seq:
            return
        self._place.say(row, before, after)
        self.checks.say(checks(row, before, after, read=read))
