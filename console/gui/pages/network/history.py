"""The versions of the allowlist: who changed what and why, and going back to one of them."""

from __future__ import annotations

from PySide6.QtCore import QRectF, Signal
from PySide6.QtGui import QColor, QPainter, QPaintEvent
from PySide6.QtWidgets import QWidget

from console.api import endpoints as ep
from console.api.allowlist_review import AllowlistHistoryView, AllowlistVersionView, BacktestBody, RevertBody
from console.api.messages import AllowlistChangedView
from console.domain.errors import ConsoleError
from console.gui.kit.layout import column, row, scrolled
from console.gui.kit.table import Cell, listing
from console.gui.link.pending import Pending
from console.gui.models.operators import person
from console.gui.pages.interface import Desk
from console.gui.pages.network.backtest import ChangeDialog
from console.gui.theme import fonts
from console.gui.theme.tokens import ink
from console.gui.widgets.buttons import Button
from console.gui.widgets.facts import Fact, Facts
from console.gui.widgets.reading import empty_note, say_empty
from console.gui.widgets.rows import RowView
from console.gui.widgets.text import Text
from console.gui.widgets.words import day_clock, plural

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


COLUMNS: tuple[Cell[AllowlistVersionView], ...] = (
    Cell(
        "version",
        "Version",
        96,
        words=lambda row: f"v{row.version}, {plural(row.entries, 'entry', 'entries')}",
        size=13,
        mono=True,
        text=lambda row: f"v{row.version} · {row.entries}",
        weight=fonts.MEDIUM,
        sort=lambda row: row.version,
    ),
    Cell("when", "When", 112, words=lambda row: day_clock(row.at), role="text2", mono=True, sort=lambda row: row.at),
    Cell("by", "By", 116, hide_below=420, words=lambda row: person(row.by), role="text2", sort="words"),
    Cell(
        "changes",
        "Changes",
        share=2,
        hide_below=520,
        words=change_words,
        role=lambda row: "text" if row.readable else "warn",
        sort=lambda row: len(row.changes),
    ),
    Cell("reason", "Reason", share=3, words=lambda row: row.reason, sort="words"),
)


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
        self.view = listing("Versions of the allowlist", COLUMNS, lambda row: str(row.version), self, RowView)
        self.empty = empty_note(self.view, "The list was never changed.")
        self.title = Text("", 13, fonts.SEMIBOLD)
        self.why = Text("", 12, fonts.REGULAR, "text2", wrap=True)
        self.diff = Facts(21)
        self.back = Button("Go back to this version…", "rollback", small=True, parent=self)
        self.back.clicked.connect(self.ask_back)
        self.back.allow(self.why_not())
        self.view.chosen.connect(lambda _row: self._show())
        pane = QWidget(self)
        lines = scrolled(pane, self.diff, spacing=-1)
        column(self.title, self.why, (lines, 1), self.back, margins=(16, 12, 16, 10), spacing=-1, on=pane)
        row((self.view, 3), (pane, 2), on=self)

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
        say_empty(self.empty, self.view, "", False, str(error))

    def _show(self) -> None:
        shown = self.view.current()
        self.title.setText(f"v{shown.version}: {change_words(shown)}" if shown is not None else "")
        self.why.setText(f"{person(shown.by)}: {shown.reason}" if shown is not None else "")
        self.diff.say(diff_lines(shown) if shown is not None else [])
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


class RevertDialog(ChangeDialog):
    """An old version's entries become the newest version's, once a reason is there."""

    def __init__(self, desk: Desk, version: AllowlistVersionView, live: int, parent: QWidget) -> None:
        super().__init__(desk, f"Go back to v{version.version}?", f"Go back to v{version.version}", "primary", parent, width=540)
        self._version, self._live = version.version, live
        entries = plural(version.entries, "entry", "entries")
        self.paragraph(f"The {entries} of v{version.version} become v{live + 1}. Nothing of the history is lost.")
        self.ask_with(BacktestBody(version=version.version))

    def send(self, reason: str) -> Pending[AllowlistChangedView]:
        return self.desk.requests.ask(ep.REVERT, body=RevertBody(version=self._version, reason=reason, base_version=self._live))

    def answered(self, answer: AllowlistChangedView) -> None:
        self.desk.notices.say("info", f"The list is as it was at v{self._version}. v{answer.version}: {answer.words}")
