"""One record: what changed since, the diff, and the dry run of what is chosen."""

from __future__ import annotations

from PySide6.QtCore import QRectF, QSize, Signal
from PySide6.QtGui import QColor, QPainter, QPaintEvent
from PySide6.QtWidgets import QWidget

from console.api.records import RollbackDetailView, RollbackRow
from console.gui.kit.layout import STRETCH, column, fill, row, scrolled
from console.gui.models.operators import person
from console.gui.pages.interface import Desk
from console.gui.pages.rollback.confirm import ConfirmBar
from console.gui.pages.rollback.diff import DiffView, counts
from console.gui.pages.rollback.plan import Plan, numbers, sentences
from console.gui.pages.rollback.rows import kind_words, state_words
from console.gui.theme import fonts
from console.gui.theme.tokens import ink
from console.gui.widgets.buttons import Button
from console.gui.widgets.facts import Card, Chips, ChipSpec, Fact, Facts
from console.gui.widgets.marks import draw_text
from console.gui.widgets.side_pane import Ground
from console.gui.widgets.text import Text
from console.gui.widgets.words import day_clock, plural

_ICONS = {"triangle": "warning", "rollback": "rollback", "down": "down", "check": "check"}
_SENTENCES = 24
_ROW = 28


class DiffHead(QWidget):
    """What stands at the left and at the right."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setFixedHeight(30)
        self._left = self._right = self._counts = ""

    def say(self, left: str, right: str, counted: str) -> None:
        self._left, self._right, self._counts = left, right, counted
        self.setAccessibleName(f"Left: {left}. Right: {right}. {counted}")
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        colours = ink()
        painter = QPainter(self)
        half = self.width() / 2
        draw_text(painter, QRectF(14, 0, half - 166, 30), self._left, fonts.ui(11, fonts.MEDIUM), colours.text)
        draw_text(painter, QRectF(half - 150, 0, 138, 30), "restore puts this back", fonts.ui(11), colours.text2, right=True)
        draw_text(painter, QRectF(half + 14, 0, half - 120, 30), self._right, fonts.ui(11, fonts.MEDIUM), colours.text)
        draw_text(painter, QRectF(self.width() - 110, 0, 96, 30), self._counts, fonts.mono(11), colours.text2, right=True)
        painter.fillRect(QRectF(1, 29, self.width() - 2, 1), QColor(colours.line2))
        painter.fillRect(QRectF(half - 0.5, 0, 1, 30), QColor(colours.line2))
        painter.end()


class DetailPane(Ground):
    """``back_asked`` when the pane stands over the list and should go; ``audit_asked`` for the record's audit entries."""

    ground = "bg1"
    edges = ("left",)

    back_asked = Signal()
    audit_asked = Signal()

    def __init__(self, desk: Desk, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.record_id = ""
        self.bar = ConfirmBar(desk, self)
        self._crumb = Text("", 11, fonts.REGULAR, "text2")
        self._path = Text("", 15, fonts.MEDIUM, mono=True)
        self._chips = Chips()
        self.back = Button("Records", keys="Esc", small=True, parent=self)
        self.back.clicked.connect(self.back_asked)
        self.audit = Button("In the audit", "audit", keys="O", small=True, parent=self)
        self.audit.clicked.connect(self.audit_asked)
        self.conflict = Text("", 12, fonts.MEDIUM, "warn", wrap=True, mark="triangle")
        self._notice = Card("warn", self)
        self._notice.column.addWidget(self.conflict)
        self._notice.column.addWidget(
            Text("A restore is refused while it would overwrite that change. Nothing is written.", 12, fonts.REGULAR, "text")
        )
        self._head = DiffHead(self)
        self.diff = DiffView(self)
        self._title = Text("Dry run", 13, fonts.SEMIBOLD)
        self._counts = Chips()
        self._unwritten = Text("nothing is written yet", 11, fonts.REGULAR, "text2", right=True)
        self.steps = Facts(_ROW, ruled=True)
        self._build()

    def _build(self) -> None:
        diff = Card(parent=self)
        diff.column.setContentsMargins(1, 1, 1, 1)
        fill(diff.column, self._head, (self.diff, 1))
        steps = scrolled(self, self.steps, spacing=-1)
        steps.setMinimumHeight(2 * _ROW)
        steps.setMaximumHeight(6 * _ROW + 2)
        names = column(self._crumb, self._path, spacing=4)
        buttons = (column(self.back, STRETCH), column(self.audit, STRETCH))
        top = row((names, 1), *buttons, spacing=-1)
        dry_run = row(self._title, (self._counts, 1), self._unwritten, spacing=12)
        shown = (top, 6, self._chips, 8, self._notice, 8, (diff, 3), 10, dry_run, 6, (steps, 1))
        body = column(*shown, margins=(19, 12, 20, 10))
        column((body, 1), self.bar, margins=(1, 0, 0, 0), on=self)

    def show_row(self, row: RollbackRow) -> None:
        """What the list knows; the rest comes with ``show_detail``."""
        self._crumb.setText(f"{row.agent_name or row.agent_id}  ›  record {row.record_id}")
        self._path.setText(row.path)
        if row.record_id != self.record_id:
            self.record_id = row.record_id
            self._notice.hide()
            self.diff.say([], "Reading…")
            self._head.say("Before", "On disk now", "")
            self.bar.forget()
        self._chips.say(self._chips_of(row, None))

    def _chips_of(self, row: RollbackRow, sha256: str | None) -> list[ChipSpec]:
        word, shape, role = state_words(row)
        kind, icon = kind_words(row)
        by = f" by {person(row.restored_by)}" if row.restored_at else ""
        chips = [ChipSpec(kind, icon), ChipSpec(f"{word}{by}", _ICONS.get(shape, ""), "warn" if role == "warn" else "plain")]
        chips.append(ChipSpec(f"{row.before_size:,} bytes, {day_clock(row.created_at)}"))
        return [*chips, ChipSpec(f"sha256 {sha256[:4]} … {sha256[-4:]}", "chain")] if sha256 else chips

    def show_detail(self, detail: RollbackDetailView) -> None:
        """Diff and conflict of the record that is shown; another's is ignored."""
        if detail.row.record_id != self.record_id:
            return
        self._chips.say(self._chips_of(detail.row, detail.before_sha256))
        self.conflict.setText(detail.conflict)
        self._notice.setVisible(bool(detail.conflict))
        added, removed, changed = counts(detail.diff)
        before = f"Before, snapshot {day_clock(detail.row.created_at)}" if detail.before_sha256 else "Before: the file did not exist"
        now = "On disk now" if detail.now_sha256 else "On disk now: nothing"
        self._head.say(before, now, f"+{added} −{removed} ~{changed}" + (" cut" if detail.truncated else ""))
        self.diff.say(detail.diff, _why_no_lines(detail))

    def show_problem(self, words: str) -> None:
        """The record could not be read."""
        self.diff.say([], words)

    def show_plan(self, plan: Plan) -> None:
        """The dry run of what is chosen."""
        several = len(plan.details) + plan.reading > 1
        self._title.setText(f"Dry run: restore {plural(len(plan.details) + plan.reading, 'record')}" if several else "Dry run")
        self._counts.say(
            [ChipSpec(f"{number} {words}", "warning" if role else "", role or "plain") for words, number, role in numbers(plan)]
        )
        self._unwritten.setVisible(bool(plan.todo or plan.reading))
        said = sentences(plan.details)
        facts = [
            Fact(words, mark="triangle" if role else "", mark_role=role or "text2", left_role=role or "text")
            for words, role in said[:_SENTENCES]
        ]
        if len(said) > _SENTENCES:
            facts.append(Fact(f"and {len(said) - _SENTENCES} steps more", left_role="text2"))
        self.steps.say(facts)
        self.bar.show_plan(plan)

    def sizeHint(self) -> QSize:
        return QSize(812, 700)


def _why_no_lines(detail: RollbackDetailView) -> str:
    if detail.binary:
        return "Not text: no lines can be compared. Hash and size above tell the two apart."
    if detail.before_sha256 == detail.now_sha256:
        return "Nothing is there on either side." if detail.now_sha256 is None else "Both sides are the same: there is nothing to put back."
    return "No lines: the content is empty on both sides, or it cannot be read."
