"""The table of the fleet: header, filter bar, tree; sorting, filtering, folding."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic, time
from typing import Any

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtWidgets import QWidget

from console.gui.kit.layout import STRETCH, column, fill_bar
from console.gui.models.fleet import SORTS, Fleet, Row, unread_today
from console.gui.models.order import indent_again
from console.gui.pages.fleet.header import HISTORY, FleetHeader
from console.gui.pages.fleet.rows import COLUMNS, Mood, cell_words, chevron_box, paint_row, row_sign
from console.gui.theme import fonts
from console.gui.widgets.buttons import Button, Pill, Pills, SearchField
from console.gui.widgets.held_order import HeldOrder, moved_button
from console.gui.widgets.rows import ManyRowView, RowModel
from console.gui.widgets.safe_text import tooltip
from console.gui.widgets.side_pane import Ground
from console.gui.widgets.text import Text

TITLES = {"all": "All", "attention": "Attention", "full": "Full network", "deep": "Deep ≥ 3"}
_SEEN = 1000
"""Agents whose end was seen that are remembered, the newest."""
_SUMMED = 2000
"""More agents than this are not summed for the line under the burn rate."""


_TYPED = 96
"""Pixels that a field keeps for a typed filter, however narrow the bar is: what hides agents can be read."""

_WIDE = 800
"""A bar narrower than this has no room for its order (T) beside the words of a filter."""


class FilterBar(Ground):
    """Search, pills, and how many are shown."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.search = SearchField("Filter this list", "/", parent=self, kept="filter")
        self.search.setMaximumWidth(191)
        self.search.textChanged.connect(lambda text: self.search.setMinimumWidth(_TYPED if text else 0))
        self.pills = Pills(TITLES, self, kept="tab")
        self.urgent = Pill("Attention first", self, alone=True)
        self.urgent.setToolTip(tooltip("Trees with an agent that needs a person come first, trees that are over come last (T)"))
        self.moved = moved_button(self)
        self.shown = Text("", 12, fonts.REGULAR, "text2", right=True)
        self.all = Button("Show all", "cross", small=True, parent=self)
        self.all.setToolTip(tooltip("A filter hides agents. Press Esc in the filter field, or this, to see all of them."))
        self.all.hide()
        fill_bar(self, (self.search, 2), self.pills, self.urgent, STRETCH, self.moved, self.shown, self.all, spacing=8)

    def say(self, filtered: str, shown: str) -> None:
        """How many are shown; amber while a filter hides some, with what it is in the tooltip."""
        if not filtered:
            self.shown.say(shown, "text2", "")
        else:
            self.shown.say(f"Filtered: {shown.removesuffix(' shown')}", "warn", "triangle")
            self.shown.setToolTip(tooltip(f"{filtered}. Attention, counts and Panic mean every agent, whatever the filter."))
        self.all.setVisible(bool(filtered))
        self.urgent.setVisible(not filtered or self.width() >= _WIDE)


def filter_words(fleet: Fleet) -> str:
    """``Filter: Attention, “build”``; empty while nothing is filtered."""
    parts = [TITLES[fleet.filter]] if fleet.filter != "all" else []
    parts += [f"“{fleet.text.strip()}”"] if fleet.text.strip() else []
    return f"Filter: {', '.join(parts)}" if parts else ""


def shown_words(view: ManyRowView, model: RowModel, fleet: Fleet) -> str:
    """``3 selected · 16 of 16 shown``."""
    number = len(view.picked())
    return (f"{number:,} selected · " if number > 1 else "") + f"{len(model.rows):,} of {len(fleet.rows):,} shown"


class FleetTable(QWidget):
    """``mood`` says whether what is shown is stale or stands under a kill."""

    def __init__(self, fleet: Fleet, mood: Callable[[], Mood], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._fleet, self._mood = fleet, mood
        self._painted = mood()
        self.header = FleetHeader(self)
        self.bar = FilterBar(self)
        self.model = RowModel(COLUMNS, cell_words, self)
        self.view = ManyRowView(
            self.model,
            lambda canvas, row: paint_row(canvas, row, self._painted),
            lambda row: str(row.id),
            self,
            sign=lambda row: row_sign(row, self._painted),
            sorts=dict.fromkeys(SORTS),  # a tree: the fleet arranges it
            ident=lambda row: str(row.id),
        )
        self.view.setAccessibleName("Agents")
        self._arrange_after = 0.0
        """Structural changes are coalesced: arranging takes a twentieth of the time at most."""
        self._held = HeldOrder(self.view, self.model, lambda row: str(row.id), fleet.arrange)
        self._unread_after = 0.0
        """Whose spend nothing reads is looked for each second, or for a fiftieth of the time."""
        column(self.header, self.bar, (self.view, 1), on=self)
        self._looked_at = ""
        """The row a person selected last: how it ended is seen once they go on to another."""
        self.view.chosen.connect(self._look_at)
        self.view.picked_changed.connect(lambda: self.bar.say(filter_words(fleet), shown_words(self.view, self.model, fleet)))
        self.view.order.changed.connect(self._sort)
        self.view.fold_asked.connect(self._fold)
        self.view.pressed_at.connect(self._clicked)
        self._held.released.connect(self.refresh, Qt.ConnectionType.QueuedConnection)  # what came meanwhile takes its place now
        self.bar.moved.clicked.connect(self.arrange)
        self.bar.all.clicked.connect(self.show_all)
        self.bar.search.textChanged.connect(self._filter)
        self.bar.search.left.connect(self.view.setFocus)
        self.bar.pills.changed.connect(lambda _key: self._filter())
        self.bar.urgent.setChecked(fleet.urgent_first)
        self.bar.urgent.toggled.connect(lambda _on: self._filter())

    def refresh(self) -> None:
        """Reads the fleet again: arranged when its structure changed (coalesced), repainted in any case."""
        fleet = self._fleet
        began = monotonic()
        if (fleet.structure_changed or self._held.moved) and began >= self._arrange_after:
            self._held.show(fleet.arrange())
            if self._held.moved:
                indent_again(self.model.rows)
            self._arrange_after = monotonic() + 20 * (monotonic() - began)
        self.bar.moved.setVisible(self._held.moved)
        began = monotonic()
        if began >= self._unread_after:
            self.header.set_unread(unread_today(fleet, time()))
            self._unread_after = monotonic() + max(1.0, 50 * (monotonic() - began))
        self.look_again()
        self._sample()
        for key, words in (("attention", "Attention"), ("full", "Full network")):
            self.bar.pills.pills[key].setText(f"{words} {fleet.count(key):,}")
        self.bar.say(filter_words(fleet), shown_words(self.view, self.model, fleet))
        self._held.choose_first()

    def look_again(self) -> None:
        """Re-evaluate staleness."""
        self._painted = self._mood()
        self.header.take(self._fleet, old=self._painted.stale)
        self.view.refresh()

    def remembered(self) -> dict[str, Any]:
        """Order, folded trees, and whose end was seen."""
        fleet = self._fleet
        seen = dict(list(fleet.seen.items())[-_SEEN:])
        return {"urgent": fleet.urgent_first, "closed": sorted(fleet.closed & fleet.rows.keys()), "seen": seen}

    def recall(self, kept: dict[str, Any]) -> None:
        """Takes back what ``remembered`` gave."""
        fleet, closed, seen = self._fleet, kept.get("closed"), kept.get("seen")
        self.bar.urgent.setChecked(kept.get("urgent") is not False)
        fleet.closed = {str(one) for one in closed} if isinstance(closed, list) else set()
        fleet.seen = {str(key): str(value) for key, value in seen.items()} if isinstance(seen, dict) else {}
        self._filter()

    def _look_at(self, row: Row | None) -> None:
        self.leave()
        self._looked_at = row.id if row is not None and self._held.is_chosen else ""

    def leave(self) -> None:
        """The person goes on to something else: the selected row was seen."""
        if self._looked_at:
            self._fleet.see([self._looked_at])
            self._looked_at = ""

    def reveal(self, agent_id: str) -> None:
        """Selects an agent, whatever filter or fold hides it."""
        fleet = self._fleet
        if self.view.choose(agent_id) or agent_id not in fleet.rows:
            return
        self.show_all()
        at: Row | None = fleet.rows[agent_id]
        while at is not None and at.view.parent_id and at.view.parent_id in fleet.closed:
            fleet.closed.discard(at.view.parent_id)
            at = fleet.rows.get(at.view.parent_id)
        self.arrange()
        self.view.choose(agent_id)

    def show_all(self) -> None:
        """Takes the filter away."""
        self.bar.search.clear()
        self.bar.pills.pills["all"].setChecked(True)
        self._filter()

    def _sample(self) -> None:
        rows = self._fleet.rows.values()
        if len(rows) > _SUMMED:
            return
        slices = [0.0] * HISTORY
        for row in rows:
            for back, value in enumerate(reversed(row.view.burn[-HISTORY:])):
                slices[-1 - back] += value
        self.header.sample(slices)

    def _sort(self) -> None:
        self._fleet.sort = self.view.order.by
        self.arrange()

    def _filter(self) -> None:
        self._fleet.text = self.bar.search.text()
        self._fleet.filter = self.bar.pills.chosen()
        self._fleet.urgent_first = self.bar.urgent.isChecked()
        self.arrange()

    def arrange(self, *, forget: bool = False) -> None:
        """Shows the list in its present order, wherever the pointer is. ``forget``: the selected row holds no order from now on."""
        if forget:
            self._held.forget_chosen()
        self._held.ask()
        self._fleet.structure_changed = True
        self._arrange_after = 0.0
        self.refresh()

    def _fold(self, row: Row, is_open: bool) -> None:
        closed = self._fleet.closed
        if is_open:
            closed.discard(row.id)
        elif row.kids and row.is_open:
            closed.add(row.id)
        elif row.view.parent_id:
            self.view.choose(row.view.parent_id)
            return
        self.arrange()

    def _clicked(self, row: Row, at: QPointF) -> None:
        box: QRectF = chevron_box(row, 0)
        if row.kids and box.left() - 2 <= at.x() <= box.right() + 2:
            self._fold(row, not row.is_open)
