"""A click on a title sorts every list of the window, unless the list says why it keeps its order; the arrow shows which it is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QCursor, QGuiApplication, QMouseEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from console.gui.pages.activity.feed import FeedModel
from console.gui.pages.approvals.page import ApprovalsPage
from console.gui.pages.budgets.page import BudgetsPage
from console.gui.pages.fleet.page import FleetPage
from console.gui.pages.network.page import NetworkPage
from console.gui.widgets.columns import Column
from console.gui.widgets.held_order import HeldOrder
from console.gui.widgets.rows import ManyRowView, RowModel, RowView, by_words
from console.gui.window.main import Window
from console.gui.window.remembered import Remembered
from tests.fakes.operator_server import FakeHouse

Make = Callable[..., FakeHouse]
Open = Callable[..., Window]
Entry = tuple[str, float | None]
COLUMNS = (Column("name", "Name", share=2), Column("cost", "Cost", 100), Column("note", "Note", 100))
ROWS: list[Entry] = [("b", 2.0), ("Ä", None), ("a", 10.0), ("c", 2.0)]


def words(row: Entry, key: str) -> str:
    return row[0] if key == "name" else str(row[1])


def a_list(qtbot: QtBot) -> RowView:
    sorts = {**by_words(words, "name"), "cost": lambda row: row[1]}
    view = RowView(RowModel(COLUMNS, words), lambda _canvas, _row: None, lambda row: str(row[0]), sorts=sorts)
    qtbot.addWidget(view)
    view.resize(600, 300)
    view.show()
    view.show_rows(list(ROWS))
    return view


def shown(view: RowView) -> list[Any]:
    model = view.model()
    assert isinstance(model, RowModel)
    return model.rows


def title(view: RowView, key: str) -> QPoint:
    """The middle of a title."""
    number = [column.key for column in view.titles.columns].index(key)
    return QPoint(view.titles.sectionViewportPosition(number) + view.titles.sectionSize(number) // 2, view.titles.height() // 2)


def click(view: RowView, key: str) -> None:
    QTest.mouseClick(view.titles.viewport(), Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, title(view, key))


def pointer(view: RowView, at: QPoint) -> Qt.CursorShape:
    """How the pointer looks there."""
    viewport, button = view.titles.viewport(), Qt.MouseButton.NoButton
    there = QPointF(viewport.mapToGlobal(at))
    QApplication.sendEvent(
        viewport, QMouseEvent(QMouseEvent.Type.MouseMove, QPointF(at), there, button, button, Qt.KeyboardModifier.NoModifier)
    )
    return viewport.cursor().shape()


def test_words_begin_with_a_and_figures_with_the_greatest_and_the_third_click_gives_the_lists_own_order(qtbot: QtBot) -> None:
    view = a_list(qtbot)
    view.choose("a")
    click(view, "name")
    assert [row[0] for row in shown(view)] == ["a", "b", "c", "Ä"] and view.titles.sorted_by == ("name", False)
    click(view, "cost")
    assert [row[0] for row in shown(view)] == ["a", "b", "c", "Ä"] and view.titles.sorted_by == ("cost", True)
    click(view, "cost")
    assert [row[0] for row in shown(view)] == ["b", "c", "a", "Ä"], "what is not known comes last both ways"
    click(view, "cost")
    assert shown(view) == ROWS and view.titles.sorted_by == ("", False) and view.current()[0] == "a"
    click(view, "note")
    assert shown(view) == ROWS and view.titles.sorted_by == ("", False)


def test_an_answer_that_comes_later_has_the_order_that_was_asked_for(qtbot: QtBot) -> None:
    view = a_list(qtbot)
    click(view, "cost")
    view.show_rows([*ROWS, ("d", 5.0)])
    assert [row[0] for row in shown(view)] == ["a", "d", "b", "c", "Ä"]


def test_a_click_sorts_though_a_selected_row_holds_the_order(qtbot: QtBot) -> None:
    view = a_list(qtbot)
    model = view.model()
    assert isinstance(model, RowModel)
    held = HeldOrder(view, model, lambda row: str(row[0]))
    held.released.connect(lambda: held.show(list(ROWS)))
    view.choose("c")
    click(view, "cost")
    assert ([row[0] for row in shown(view)], held.moved) == (["a", "b", "c", "Ä"], False)
    held.show([("b", 99.0), *ROWS[1:]])
    assert ([row[0] for row in shown(view)], held.moved) == (["a", "b", "c", "Ä"], True), "figures move no row while one is selected"
    held.ask()
    held.show([("b", 99.0), *ROWS[1:]])
    assert ([row[0] for row in shown(view)], held.moved) == (["b", "a", "c", "Ä"], False)


def test_a_pointer_holds_the_order_once_it_moved(qtbot: QtBot) -> None:
    """A window that opens below a pointer at rest is shown as it is: nobody aims yet."""
    view = a_list(qtbot)
    model = view.model()
    assert isinstance(model, RowModel)
    view.hide()
    QCursor.setPos(view.viewport().mapToGlobal(view.visualRect(model.index(0, 0)).center()))
    held = HeldOrder(view, model, lambda row: str(row[0]))
    view.show()
    view.viewport().underMouse = lambda: True  # type: ignore[method-assign]
    first, *others = shown(view)
    held.show([*others, first])
    assert shown(view) == [*others, first] and not held.moved
    QCursor.setPos(QCursor.pos() + QPoint(1, 0))
    held.show([first, *others])
    assert shown(view) == [*others, first] and held.moved


def test_what_belongs_to_a_row_goes_with_it(qtbot: QtBot) -> None:
    view = a_list(qtbot)
    view.order.depth = lambda row: len(row[0])
    tree: list[Entry] = [("b", 1.0), ("b2", 1.0), ("b1", 7.0), ("b?", None), ("a", 3.0), ("a1", 4.0)]
    view.show_rows(tree)
    click(view, "cost")
    assert [row[0] for row in shown(view)] == ["a", "a1", "b", "b1", "b2", "b?"]


def test_the_pointer_is_a_hand_where_a_click_sorts_and_nowhere_else(qtbot: QtBot) -> None:
    view = a_list(qtbot)
    assert pointer(view, title(view, "cost")) is Qt.CursorShape.PointingHandCursor
    assert pointer(view, title(view, "note")) is not Qt.CursorShape.PointingHandCursor
    edge = QPoint(view.titles.sectionViewportPosition(1) + view.titles.sectionSize(1) - 1, 15)
    assert pointer(view, edge) is not Qt.CursorShape.PointingHandCursor, "an edge is dragged"


LISTS = (
    ("fleet", "Agents"),
    ("approvals", "Decided requests"),
    ("audit", "Audit records"),
    ("activity", "Activity"),
    ("budgets", "Budgets"),
    ("rollback", "Rollback records"),
    ("network", "Allowlist"),
    ("network", "Egress log"),
    ("network", "Sandboxes"),
    ("network", "Versions of the allowlist"),
    ("kill-switch", "Earlier kills"),
    ("kill-switch", "Other hosts"),
    ("receipt", "Targets"),
    ("receipt", "What could bring an agent back"),
    ("policy", "Forbidden sequences"),
    ("policy", "Steps that stand"),
    ("settings", "Settings"),
)
KEPT = {"Audit records": ("seq", True), "Activity": ("time", False), "Settings": ("", False)}
"""Lists whose order means something, and the arrow that tells it."""
ONE_AT_A_TIME = {"Allowlist", "Forbidden sequences", "Rollback records", "Sandboxes", "Settings", "Versions of the allowlist"}
"""Lists with actions that mean one row."""


def test_every_list_sorts_or_says_why_not(make_house: Make, open_window: Open) -> None:
    make_house("1")
    window = open_window("fleet")
    found = {(name, view.accessibleName()): view for name, page in window.pages.items() for view in page.findChildren(RowView)}
    assert set(LISTS) <= set(found)
    for (name, words), view in found.items():
        titled = {column.key for column in view.titles.columns if column.title}
        if view.titles.isHidden() and words != "Decided requests":
            continue
        if view.order.meaning:
            assert not view.titles.sectionsClickable() and view.titles.sorted_by == KEPT.get(words, view.titles.sorted_by), words
        else:
            assert view.titles.sectionsClickable() and set(view.order._sorts) >= titled, (name, words)
    assert {words for words in KEPT if not any(v.order.meaning for (_n, w), v in found.items() if w == words)} == set()


def list_of(window: Window, page: str, name: str) -> RowView:
    """The page's list of that name; no other page is made for it."""
    return {view.accessibleName(): view for view in window.pages[page].findChildren(RowView)}[name]


@pytest.mark.parametrize("name", [name for _page, name in LISTS if name not in KEPT and name != "Agents"])
def test_cells_sort(name: str, make_house: Make, open_window: Open, qtbot: QtBot) -> None:
    make_house()
    shows = next(page for page, one in LISTS if one == name)
    window = open_window(shows, (1280, 800))
    view = list_of(window, shows, name)
    if name == "Versions of the allowlist" or name == "Sandboxes":
        page = window.page
        assert isinstance(page, NetworkPage)
        page.do("network.history" if name.startswith("Versions") else "network.sandboxes")
    if name == "Decided requests":
        page = window.page
        assert isinstance(page, ApprovalsPage)
        page.inbox.show_tab("decided")
        assert not view.titles.isHidden()
    for key, value in view.order._sorts.items():
        assert value is not None
        for descending in (True, False):
            view.order.recall({"by": [key, descending]})
            heads = [row for row in shown(view) if view.order.depth(row) <= min(map(view.order.depth, shown(view)))]
            known = [found for row in heads if (found := value(row)) is not None]
            assert known == sorted(known, reverse=descending), (name, key)
            assert view.titles.sorted_by == (key, descending)


@pytest.mark.parametrize(("page", "name"), [one for one in LISTS if one[0] != "policy"])
def test_ctrl_c(page: str, name: str, make_house: Make, open_window: Open, qtbot: QtBot) -> None:
    """The selected rows of every list, as they read on the screen."""
    make_house()
    window = open_window(page, (1280, 800))
    view = list_of(window, page, name)
    window.activateWindow()
    view.setParent(window)  # also of a tab that is not in front
    view.show()
    if not shown(view):
        return
    view.setFocus()
    view.setCurrentIndex(view.model().index(0, 0))
    assert isinstance(view, ManyRowView) is (name not in ONE_AT_A_TIME)
    several = isinstance(view, ManyRowView) and len(shown(view)) > 1
    if several:
        QTest.keyClick(view, Qt.Key.Key_Down, Qt.KeyboardModifier.ShiftModifier)
    QGuiApplication.clipboard().clear()
    QTest.keyClick(view, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    lines = QGuiApplication.clipboard().text().split("\n")
    model = view.model()
    assert isinstance(model, RowModel)
    assert lines == ["\t".join(model.words(n, c) for c in range(len(model.columns))) for n in range(2 if several else 1)]
    assert [one.text() for one in view.actions()][0] == "Copy" and view.actions()[0].shortcut().toString() == "Ctrl+C"


def test_hostile_text_is_copied_as_it_is_shown_and_breaks_no_cell(qtbot: QtBot) -> None:
    view = ManyRowView(RowModel(COLUMNS, words), lambda _canvas, _row: None, lambda row: str(row[0]))
    qtbot.addWidget(view)
    view.show_rows([("a\tb\nrm -rf /\r\u202e\x1b[2J\x00", 1.0), ("c", 2.0)])
    view.selectAll()
    view.actions()[0].trigger()
    lines = QGuiApplication.clipboard().text().split("\n")
    assert len(lines) == 2 and [line.count("\t") for line in lines] == [2, 2]
    assert not set("\r\u202e\x1b\x00") & set(lines[0])


def test_rows_that_come_above_take_no_part_of_the_selection(qtbot: QtBot) -> None:
    model = FeedModel(COLUMNS, words)
    view = ManyRowView(model, lambda _canvas, _row: None, lambda row: str(row[0]))
    qtbot.addWidget(view)
    view.show_rows(list(ROWS))
    view.setCurrentIndex(model.index(0, 0))
    QTest.keyClick(view, Qt.Key.Key_Down, Qt.KeyboardModifier.ShiftModifier)
    model.prepend([("new", 1.0)])  # type: ignore[list-item]
    assert [row[0] for row in view.picked_rows()] == ["b", "Ä"]


def test_what_lies_below_a_tree_stays_below_it(make_house: Make, open_window: Open) -> None:
    make_house()
    window = open_window("budgets", (1280, 800))
    page = window.page
    assert isinstance(page, BudgetsPage)
    before = [(line.parent, line.key) for line in shown(page.list.view) if line.below]
    assert before
    click(page.list.view, "who")
    lines = shown(page.list.view)
    trees = [line.name.lower() for line in lines if line.row is not None and not line.below]
    assert trees == sorted(trees) and page.list.view.titles.sorted_by == ("who", False)
    above = ""
    for line in lines:
        above = line.row.key if line.row is not None and not line.below else above
        assert not line.below or line.parent == above
    assert sorted((line.parent, line.key) for line in lines if line.below) == sorted(before)


def test_the_order_is_there_at_the_next_start(make_house: Make, open_window: Open, tmp_path: Path) -> None:
    make_house()
    kept = Remembered(tmp_path / "window.ini")
    first = open_window("network", (1280, 800))
    click(list_of(first, "network", "Allowlist"), "hits")
    click(list_of(first, "network", "Egress log"), "agent")
    fleet = first.pages["fleet"]
    assert isinstance(fleet, FleetPage)
    fleet.view.sort_asked.emit("burn")
    kept.keep(first)
    second = open_window("network", (1280, 800))
    Remembered(tmp_path / "window.ini").restore(second)
    allowlist, log = list_of(second, "network", "Allowlist"), list_of(second, "network", "Egress log")
    assert (allowlist.order.by, log.order.by) == (("hits", True), ("agent", False))
    assert list_of(second, "fleet", "Agents").titles.sorted_by == second.fleet.sort == ("burn", True)


@pytest.mark.parametrize("kept", [{"by": 7}, {"by": ["no", True]}, {"by": ["cost", "x"]}, {"by": ["cost"]}, {"x": 1}])
def test_an_order_that_cannot_be_read_is_forgotten(kept: dict[str, object], qtbot: QtBot) -> None:
    view = a_list(qtbot)
    view.order.recall(kept)
    assert shown(view) == ROWS and view.order.remembered() == {}
