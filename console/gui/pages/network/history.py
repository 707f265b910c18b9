"""The versions of the allowlist: who changed what and why, and going back to one of them."""

from __future__ import annotations

from PySide6.QtCore import QRectF, Signal
from PySide6.QtGui import QColor, QPainter, QPaintEvent
from PySide6.QtWidgets import QHBoxLayout, QScrollArea, QVBoxLayout, QWidget

from console.api import endpoints as ep
from console.api.allowlist_review import AllowlistHistoryView, AllowlistVersionView, BacktestBody, RevertBody
from console.api.messages import AllowlistChangedView
from console.domain.errors import Conflict, ConsoleError
from console.gui.pages.interface import Desk
from console.gui.pages.network.backtest import BacktestCard
from console.gui.theme import fonts
from console.gui.theme.tokens import ink
from console.gui.widgets.buttons import Button
from console.gui.widgets.dialog import Dialog
from console.gui.widgets.facts import Fact, Facts
from console.gui.widgets.reading import empty_note
from console.gui.widgets.rows import Canvas, Column, RowModel, RowView, Sorts, by_words
from console.gui.widgets.text import Text
from console.gui.widgets.words import day_clock, plural

COLUMNS = (
    Column("version", "Version", 96),
    Column("when", "When", 112),
    Column("by", "By", 116, hide_below=420),
    Column("changes", "Changes", share=2, hide_below=520),
    Column("reason", "Reason", share=3),
)
_VERSIONS = 100
"""Versions that are asked for, the newest ones."""
_SHOWN = 200
"""Lines of one difference; the rest is counted."""


def change_words(view: AllowlistVersionView) -> str:
    """``1 added, 2 changed``."""
    if not view.readable:
        return "damaged: reads as empty, which denies"
    counts = {what: sum(1 for c in view.changes if c.what == what) for what in ("added", "changed", "removed")}
    return ", ".join(f"{number} {what}" for what, number in counts.items() if number) or "nothing"


def cell_words(row: AllowlistVersionView, key: str) -> str:
    """What a cell says."""
    match key:
        case "version":
            return f"v{row.version}, {plural(row.entries, 'entry', 'entries')}"
        case "when":
            return day_clock(row.at)
        case "by":
            return row.by
        case "changes":
            return change_words(row)
    return row.reason


_SORTS: Sorts = {
    **by_words(cell_words, "by", "reason"),
    "version": lambda row: row.version,
    "when": lambda row: row.at,
    "changes": lambda row: len(row.changes),
}


def paint_version(canvas: Canvas, row: AllowlistVersionView) -> None:
    """One version."""
    canvas.text("version", f"v{row.version} · {row.entries}", mono=True, size=13, weight=fonts.MEDIUM)
    canvas.text("when", day_clock(row.at), "text2", mono=True)
    canvas.text("by", row.by, "text2")
    canvas.text("changes", change_words(row), "text" if row.readable else "warn")
    canvas.text("reason", row.reason)


def diff_lines(view: AllowlistVersionView) -> list[Fact]:
    """What that version changed against the one before, line by line; signs, not colour alone."""
    lines: list[Fact] = []
    signs = {"added": "+", "removed": "−", "changed": "~"}
    for change in view.changes:
        lines.append(Fact(f"{signs[change.what]} {change.host}", f"{change.what}, entry {change.entry_id}", mono=True))
        for field in change.fields:
            lines.append(Fact(f"− {field.field}: {field.before}", "", left_role="text2", mono=True, indent=True))
            lines.append(Fact(f"+ {field.field}: {field.after}", "", left_role="text", mono=True, indent=True))
    if len(lines) > _SHOWN:
        lines = [*lines[:_SHOWN], Fact(f"and {plural(len(lines) - _SHOWN, 'more line')}", "", left_role="text2")]
    return lines or [Fact("It changed no entry.", "", left_role="text2")]


class HistoryView(QWidget):
    """``reverted`` once an old version's entries are the newest."""

    reverted = Signal()

    def __init__(self, desk: Desk, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._desk = desk
        self.live = 0
        self.model = RowModel(COLUMNS, cell_words, self)
        self.view = RowView(self.model, paint_version, lambda row: str(row.version), self, sorts=_SORTS)
        self.view.setAccessibleName("Versions of the allowlist")
        self.empty = empty_note(self.view, "The list was never changed.")
        self.title = Text("", 13, fonts.SEMIBOLD)
        self.why = Text("", 12, fonts.REGULAR, "text2", wrap=True)
        self.diff = Facts(21)
        self.back = Button("Go back to this version…", "rollback", small=True, parent=self)
        self.back.clicked.connect(self.ask_back)
        self.view.chosen.connect(lambda _row: self._show())
        pane = QWidget(self)
        column = QVBoxLayout(pane)
        column.setContentsMargins(16, 12, 16, 10)
        column.addWidget(self.title)
        column.addWidget(self.why)
        scroll = QScrollArea(pane)
        scroll.setWidgetResizable(True)
        inner = QWidget(scroll)
        lines = QVBoxLayout(inner)
        lines.setContentsMargins(0, 0, 0, 0)
        lines.addWidget(self.diff)
        lines.addStretch(1)
        scroll.setWidget(inner)
        column.addWidget(scroll, 1)
        column.addWidget(self.back)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(0)
        row.addWidget(self.view, 3)
        row.addWidget(pane, 2)

    def read(self) -> None:
        """Asks for the versions again."""
        self._desk.requests.ask(ep.ALLOWLIST_HISTORY, limit=_VERSIONS).while_alive(self).then(self._came).failed(self._failed)

    def _came(self, view: AllowlistHistoryView) -> None:
        self.live = view.live
        self.view.show_rows(list(view.versions))
        if self.view.current() is None and view.versions:
            self.view.choose(str(view.versions[0].version))
        self.empty.setText("The list was never changed.")
        self.empty.setVisible(not view.versions)
        self._show()

    def _failed(self, error: ConsoleError) -> None:
        self.empty.setText(f"The history cannot be shown: {error}")
        self.empty.setVisible(not self.model.rows)

    def _show(self) -> None:
        row = self.view.current()
        self.title.setText(f"v{row.version}: {change_words(row)}" if row is not None else "")
        self.why.setText(f"{row.by}: {row.reason}" if row is not None else "")
        self.diff.say(diff_lines(row) if row is not None else [])
        self.back.allow(self.why_not())

    def why_not(self) -> str:
        """Empty when the selected version can be gone back to."""
        row = self.view.current()
        if row is None:
            return "No version is selected."
        if self._desk.switch.is_killed:
            return "Killed: nothing changes until you rearm."
        if row.version == self.live:
            return "This is the live version."
        return "" if row.readable else "This version is damaged: it cannot be gone back to."

    def ask_back(self) -> None:
        """Asks for the reason, with what it would have changed."""
        if self.why_not():
            return
        dialog = RevertDialog(self._desk, self.view.current(), self.live, self.window())
        dialog.accepted.connect(self.reverted)
        dialog.rejected.connect(self.read)
        dialog.open()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.fillRect(self.rect(), QColor(ink().bg1))
        painter.fillRect(QRectF(self.view.width(), 0, 1, self.height()), QColor(ink().line))
        painter.end()


class RevertDialog(Dialog):
    """An old version's entries become the newest version's, once a reason is there."""

    def __init__(self, desk: Desk, version: AllowlistVersionView, live: int, parent: QWidget) -> None:
        super().__init__(f"Go back to v{version.version}?", f"Go back to v{version.version}", "primary", parent, width=540)
        self._desk, self._version, self._live = desk, version.version, live
        what = (
            f"The {plural(version.entries, 'entry', 'entries')} of v{version.version} become v{live + 1}. Nothing of the history is lost."
        )
        self.paragraph(what)
        self.test = BacktestCard(self)
        self.body.addWidget(self.test)
        self.reason = self.ask_reason(needed=True)
        self.main.clicked.connect(self._send)
        self.test.asking()
        asked = desk.requests.ask(ep.BACKTEST, body=BacktestBody(version=version.version)).while_alive(self)
        asked.then(self.test.say).failed(self.test.fail)
        self.reason.setFocus()

    def _send(self) -> None:
        self.main.setEnabled(False)
        self.problem.hide()
        body = RevertBody(version=self._version, reason=self.reason.text().strip(), base_version=self._live)
        self._desk.requests.ask(ep.REVERT, body=body).while_alive(self).then(self._done).failed(self._failed)

    def _failed(self, error: ConsoleError) -> None:
        self.refused(error)
        if isinstance(error, Conflict):
            self.main.setEnabled(False)  # the list is another one now: look at it first

    def _done(self, view: AllowlistChangedView) -> None:
        self._desk.notices.say("info", f"The list is as it was at v{self._version}. v{view.version}: {view.words}")
        self.accept()
