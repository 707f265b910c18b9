"""The rollback page: records by agent at the left, one record with diff, dry run and restore at the right."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QKeyEvent, QPainter, QResizeEvent
from PySide6.QtWidgets import QWidget

from console.api import endpoints as ep
from console.api.messages import Delta
from console.api.records import RollbackDetailView, RollbackPage, RollbackRow
from console.domain.errors import ConsoleError
from console.gui.kit.head import PageHead, paint_count
from console.gui.kit.layout import bar, column
from console.gui.pages import declared
from console.gui.pages.interface import Desk, Page
from console.gui.pages.rollback.detail import DetailPane
from console.gui.pages.rollback.plan import Plan
from console.gui.pages.rollback.rows import COLUMNS, SORTS, Group, Item, Line, arrange, cell_words, painter_of
from console.gui.theme import fonts
from console.gui.theme.tokens import Ink
from console.gui.timers import once
from console.gui.widgets.buttons import SearchField
from console.gui.widgets.marks import draw_text
from console.gui.widgets.reading import empty_note, say_empty
from console.gui.widgets.rows import RowModel, RowView
from console.gui.widgets.side_pane import Ground
from console.gui.widgets.split import beside
from console.gui.widgets.text import Text

LIST = 424
MARKS_MAX = 100
_SOON_MS = 300
_LOOK_MS = 60
"""A key held down does not read every record it passes."""
_AGAIN_S = 5.0
_EMPTY = (
    "No snapshot yet. Before an agent may write or delete a file in its workspace, the old file is kept here. "
    "You can compare it and restore it."
)


class Head(PageHead):
    """Title, how many can be put back, how many are in conflict."""

    title = "Rollback"

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._counts: tuple[int, int] | None = None
        self._line = ""
        self._is_problem = False

    def say(self, can: int, bad: int, line: str) -> None:
        self._counts = (can, bad)
        self.tell(line)

    def tell(self, line: str, *, is_problem: bool = False) -> None:
        """The line alone: what was counted last stays, and what was never read is not counted."""
        self._line, self._is_problem = line, is_problem
        can, bad = self._counts or ("?", "?")
        self.setAccessibleName(f"Restorable {can}, conflicts {bad}. {line}")
        self.update()

    def paint_parts(self, painter: QPainter, colours: Ink) -> None:
        colour = colours.warn if self._is_problem else colours.text2
        draw_text(painter, QRectF(180, 14, self.width() - 196, 18), self._line, fonts.ui(11), colour, right=True)
        can, bad = self._counts or (None, 0)
        known = ("?", "ring") if can is None else (f"{can:,}", "check")
        x = paint_count(painter, 16.0, "Restorable", known[0], (known[1], "text2", "text"), fonts.REGULAR)
        if bad:
            paint_count(painter, x, "Conflicts", f"{bad:,}", ("triangle", "warn", "warn"), fonts.REGULAR)


class Records(Ground):
    """The list. ``chosen`` when another line is current, ``marked`` when the marks changed."""

    chosen = Signal()
    marks_changed = Signal()

    def __init__(self, desk: Desk, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.records: list[RollbackRow] = []
        self._loaded, self._problem = False, ""
        self.marks: set[str] = set()
        self._closed: set[str] = set()
        self.head = Head(self)
        self.search = SearchField("Filter", "/", parent=self, kept="filter")
        self.shown = Text("", 12, fonts.REGULAR, "text2", right=True)
        self.model = RowModel(COLUMNS, cell_words, self)
        self.view = RowView(self.model, painter_of(desk.clock), lambda line: str(line.key), self, sorts=SORTS)
        self.view.order.depth = lambda line: 0 if isinstance(line, Group) else 1
        self.view.setAccessibleName("Rollback records")
        self.empty = empty_note(self.view, _EMPTY)
        column(self.head, bar(self, (self.search, 1), self.shown, spacing=8), (self.view, 1), on=self)
        self.search.textChanged.connect(lambda _text: self.show_lines())
        self.search.left.connect(self.view.setFocus)
        self.view.chosen.connect(lambda _line: self.chosen.emit())
        self.view.fold_asked.connect(self._fold)
        self.view.pressed_at.connect(self._pressed)

    def current(self) -> RollbackRow | None:
        """The current record; None on a group."""
        line: Line | None = self.view.current()
        return line.view if isinstance(line, Item) else None

    def take(self, records: list[RollbackRow]) -> None:
        """The records as they are now, newest first."""
        self.records, self._loaded = records, True
        self.marks &= {r.record_id for r in records}
        states = [r.state for r in records]
        self.head.say(
            states.count("can_restore"), states.count("conflict"), f"{len(records):,} newest records" if len(records) >= 500 else ""
        )
        self.show_lines()

    def fail(self, error: ConsoleError) -> None:
        """They could not be read; those that were read last stay."""
        self._problem = str(error)
        self.head.tell(f"{'Stale' if self._loaded else 'Not known'}: {error.what}", is_problem=True)
        self.show_lines()

    def show_lines(self) -> None:
        """Arranges and shows; the selection stays."""
        lines = arrange(self.records, self.search.text(), self._closed, self.marks)
        self.view.show_rows(lines)
        if self.view.current() is None:
            first = next((line for line in self.model.rows if isinstance(line, Item)), None)
            if first is not None:
                self.view.choose(first.key)
        say_empty(self.empty, self.view, "No records match the filter." if self.records else _EMPTY, self._loaded, self._problem)
        marked = f"{len(self.marks)} selected · " if self.marks else ""
        self.shown.setText(f"{marked}{len(self.records):,} records" if self.records else "")

    def reveal(self, record_id: str) -> None:
        """Selects a record, whatever filter or fold hides it."""
        self.search.clear()
        self._closed.clear()
        self.show_lines()
        self.view.choose(f"r:{record_id}")

    def turn_mark(self) -> None:
        """Space: this record is chosen for a restore, or no longer; on a group, all of it."""
        line: Line | None = self.view.current()
        ids = [r.record_id for r in line.records] if isinstance(line, Group) else [line.view.record_id] if line is not None else []
        if all(i in self.marks for i in ids):
            self.marks -= set(ids)
        else:
            self.marks |= set(ids[: MARKS_MAX - len(self.marks)])
        self.show_lines()
        self.marks_changed.emit()

    def clear_marks(self) -> bool:
        """False when there were none."""
        if not self.marks:
            return False
        self.marks.clear()
        self.show_lines()
        self.marks_changed.emit()
        return True

    def _fold(self, line: Line, is_open: bool) -> None:
        if isinstance(line, Item):
            if not is_open:
                self.view.choose(f"g:{line.view.agent_id}")
            return
        if is_open:
            self._closed.discard(line.agent_id)
        else:
            self._closed.add(line.agent_id)
        self.show_lines()

    def _pressed(self, line: Line, at: QPointF) -> None:
        if isinstance(line, Group) and at.x() < 32:
            self._fold(line, not line.is_open)


class RollbackRecordsPage(Page):
    """See what agents changed, compare, put back."""

    spec = declared.ROLLBACK

    def __init__(self, desk: Desk, parent: QWidget | None = None) -> None:
        super().__init__(desk, parent)
        self._loaded = False
        self._stale = True
        self._read_at = 0.0
        self._details: dict[str, RollbackDetailView] = {}
        self._over = False
        """The detail stands over the list (narrow windows)."""
        self._wanted = ""
        self.list = Records(desk, self)
        self.view = self.list.view
        self.pane = DetailPane(desk, self)
        column(beside(self.list, self.pane, self), on=self)
        self._soon = once(self, _SOON_MS, self._read)
        self._look = once(self, _LOOK_MS, self._read_plan)
        self.list.chosen.connect(self._chose)
        self.list.marks_changed.connect(self._read_plan)
        self.view.opened.connect(lambda _line: self.do("rollback.detail"))
        self.pane.back_asked.connect(lambda: self._show_over(False))
        self.pane.audit_asked.connect(lambda: self.do("rollback.audit"))
        self.pane.bar.done.connect(self._ran)
        self.handlers = {
            "rollback.select": self.list.turn_mark,
            "rollback.restore": self._confirm,
            "rollback.audit": lambda: self.desk.goto("audit", record.path if (record := self.list.current()) is not None else ""),
            "rollback.detail": lambda: self._show_over(not self._over),
            "rollback.filter": self.list.search.setFocus,
        }

    # --- what the window tells -----------------------------------------------------------------------------------

    def on_show(self, argument: str = "") -> None:
        self._wanted = argument
        self._lay()
        if self._stale or not self._loaded:
            self._read()
        elif argument:
            self.list.reveal(argument)
        self.view.setFocus()

    def on_models(self) -> None:
        self.pane.bar.judge()

    def on_tick(self, now: float) -> None:
        if now - self._read_at > _AGAIN_S and not self.pane.bar.is_running:
            self._read()

    def handle(self, delta: Delta) -> None:
        if delta.kind == "rollback":
            self.resync()

    def resync(self) -> None:
        self._stale = True
        if self.isVisible() or not self._loaded:
            self._soon.start()

    def is_ready(self) -> bool:
        row = self.list.current()
        return self._loaded and (row is None or row.record_id in self._details)

    # --- actions ---------------------------------------------------------------------------------------------------

    def why_not(self, action_id: str) -> str:
        if action_id == "rollback.restore":
            if self.desk.switch.is_killed:
                return "Killed: nothing changes until you rearm."
            return self.pane.bar.plan.why_not()
        if action_id == "rollback.audit" and self.list.current() is None:
            return "No record is selected."
        return ""

    def _confirm(self) -> None:
        self._show_over(True)
        self.pane.bar.focus()

    # --- inside ------------------------------------------------------------------------------------------------------

    def _read(self) -> None:
        self._stale = False
        self._read_at = self.desk.clock()
        self.desk.requests.ask(ep.ROLLBACK).while_alive(self).then(self._came).failed(self._failed)

    def _failed(self, error: ConsoleError) -> None:
        self._stale = True
        self.list.fail(error)

    def _came(self, page: RollbackPage) -> None:
        self._loaded = True
        self.list.take(page.records)
        if self._wanted:
            wanted, self._wanted = self._wanted, ""
            self.list.reveal(wanted)
        self._lay()
        self._chose()

    def _chose(self) -> None:
        row = self.list.current()
        if row is not None:
            self.pane.show_row(row)
        self._lay()
        self._show_plan()
        self._look.start()

    def _chosen_ids(self) -> list[str]:
        """The marked records, newest first, or the current one."""
        marked = [r.record_id for r in self.list.records if r.record_id in self.list.marks]
        row = self.list.current()
        return marked or ([row.record_id] if row is not None else [])

    def _read_plan(self) -> None:
        """Reads again what is chosen and what is shown: the plan must be of what is on disk now."""
        if self.pane.bar.is_running:
            return
        row = self.list.current()
        ids = self._chosen_ids()
        for record_id in dict.fromkeys([*([row.record_id] if row is not None else []), *ids]):
            asked = self.desk.requests.ask(ep.ROLLBACK_DETAIL, record_id).while_alive(self)
            asked.then(self._detail_came).failed(partial(self._detail_failed, record_id))
        self._details = {i: d for i, d in self._details.items() if i in ids or (row is not None and i == row.record_id)}
        self._show_plan()

    def _detail_failed(self, record_id: str, error: ConsoleError) -> None:
        self._details.pop(record_id, None)
        if record_id == self.pane.record_id:
            self.pane.show_problem(str(error))
        self._show_plan()

    def _detail_came(self, detail: RollbackDetailView) -> None:
        self._details[detail.row.record_id] = detail
        self.pane.show_detail(detail)
        self._show_plan()

    def _show_plan(self) -> None:
        if self.pane.bar.is_running:
            return
        ids = self._chosen_ids()
        details = tuple(self._details[i] for i in ids if i in self._details)
        self.pane.show_plan(Plan(details, len(ids) - len(details)))

    def _ran(self) -> None:
        self.list.marks.clear()
        self._read()

    def _show_over(self, over: bool) -> None:
        self._over = over
        self._lay()
        if not over:
            self.view.setFocus()

    def _lay(self) -> None:
        narrow = self.is_narrow
        has_one = self.list.current() is not None
        self.list.setMinimumWidth(0 if narrow else LIST)
        self.list.setMaximumWidth(16_777_215 if narrow or not has_one else LIST)
        self.list.setVisible(not narrow or not (self._over and has_one))
        self.pane.setVisible(has_one and (not narrow or self._over))
        self.pane.back.setVisible(narrow)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._lay()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Space and self.view.hasFocus():
            self.do("rollback.select")
        elif event.key() == Qt.Key.Key_Escape:
            if not (self.pane.bar.stop() or (self.is_narrow and self._over) or self.list.clear_marks()):
                self.view.setFocus()
            if self.is_narrow and self._over and not self.pane.bar.is_running:
                self._show_over(False)
        else:
            super().keyPressEvent(event)
