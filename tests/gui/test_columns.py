"""The columns of a list fit their user: dragged, moved, hidden and sorted by mouse and menu, and found again at the next start."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, QSettings, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QMenu
from pytestqt.qtbot import QtBot

from console.gui.pages.fleet.page import FleetPage
from console.gui.pages.interface import Page
from console.gui.widgets.columns import Column, RowHeader, titles_in_front
from console.gui.widgets.rows import RowModel, RowView
from console.gui.window.main import Window
from console.gui.window.remembered import Remembered
from tests.fakes.operator_server import FakeHouse

Make = Callable[..., FakeHouse]
Open = Callable[..., Window]
COLUMNS = (Column("name", "Name", share=2), Column("state", "State", 100), Column("age", "Age", 80), Column("last", "Last", share=1))


def a_list(qtbot: QtBot, width: int = 900) -> tuple[RowView, dict[str, tuple[float, float]]]:
    """A list, and where each cell of its row was painted last: key -> (left, width)."""
    cells: dict[str, tuple[float, float]] = {}

    def paint(canvas: object, _row: str) -> None:
        cells.clear()
        cells.update({key: (box.x(), box.width()) for key, box in canvas.cells.items()})  # type: ignore[attr-defined]

    view = RowView(RowModel(COLUMNS, lambda row, _key: str(row)), paint, str, sorts={"state": None})
    qtbot.addWidget(view)
    view.resize(width, 300)
    view.show()
    view.show_rows(["a"])
    qtbot.waitUntil(lambda: bool(cells))
    return view, cells


def sizes(view: RowView) -> list[int]:
    return [view.columnWidth(number) for number in range(len(COLUMNS))]


def drag(header: RowHeader, number: int, by: int) -> None:
    """The right edge of a column, by mouse."""
    viewport, at = header.viewport(), QPoint(header.sectionViewportPosition(number) + header.sectionSize(number) - 1, 15)
    QTest.mousePress(viewport, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, at)
    for part in (by // 2, by):
        QTest.mouseMove(viewport, at + QPoint(part, 0))
        QApplication.processEvents()
    QTest.mouseRelease(viewport, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, at + QPoint(by, 0))


def choose(menu: QMenu, *path: str) -> None:
    """An entry of a menu, by its words."""
    for words in path[:-1]:
        part = next(one.menu() for one in menu.actions() if one.text() == words and one.menu() is not None)
        assert isinstance(part, QMenu)
        menu = part
    next(one for one in menu.actions() if one.text() == path[-1] and one.menu() is None).trigger()


def test_an_edge_is_dragged_and_the_rows_follow(qtbot: QtBot) -> None:
    view, cells = a_list(qtbot)
    before = sizes(view)
    drag(view.titles, 1, 60)
    after = sizes(view)
    assert after[:3] == [before[0], before[1] + 60, before[2]], "what stands before the edge stays, and so does what does not share"
    assert sum(after) == sum(before), "no column is pushed out of sight"
    qtbot.waitUntil(lambda: cells["state"] == (after[0], after[1] - 10))
    drag(view.titles, 1, -400)
    assert sizes(view)[1] == COLUMNS[1].narrowest
    drag(view.titles, 0, 2000)
    assert sizes(view)[3] >= COLUMNS[3].narrowest and sum(sizes(view)) <= view.viewport().width()


def test_what_was_dragged_stays_when_the_window_is_resized(qtbot: QtBot) -> None:
    view, _cells = a_list(qtbot)
    drag(view.titles, 1, 60)
    wide = sizes(view)
    view.resize(700, 300)
    narrow = sizes(view)
    assert narrow[1:3] == wide[1:3] and sum(narrow) <= view.viewport().width()
    assert abs(narrow[0] / narrow[3] - wide[0] / wide[3]) < 0.1, "those that share what is left go on sharing it as they were set"
    view.resize(300, 300)
    assert sum(sizes(view)) <= view.viewport().width(), "a width from a large screen gives room back on a small one"
    view.resize(900, 300)
    assert sizes(view) == wide


def test_the_name_stays_to_be_read_where_nothing_fits(make_house: Make, open_window: Open, qtbot: QtBot) -> None:
    make_house()
    window = open_window("fleet", (800, 560))
    page = window.page
    assert isinstance(page, FleetPage)
    page.view.titles.recall({"shown": {"burn": True, "runtime": True, "depth": True}})
    page.do("fleet.detail")
    qtbot.waitUntil(lambda: page.pane.isVisible() and page.view.width() < 450)
    assert page.view.columnWidth(0) >= 150


def test_a_column_is_hidden_shown_and_moved_by_the_menu(qtbot: QtBot) -> None:
    view, cells = a_list(qtbot)
    choose(view.titles.menu(), "State")
    qtbot.waitUntil(lambda: "state" not in cells)
    assert sum(sizes(view)) >= view.viewport().width() - 2, "the others take its room"
    choose(view.titles.menu(), "State")
    choose(view.titles.menu(), "Age", "Move left")
    qtbot.waitUntil(lambda: "state" in cells and cells["age"][0] < cells["state"][0])
    choose(view.titles.menu(), "Age", "Move left")
    assert view.titles.visualIndex(0) == 0, "the column that names the row stays first"
    before = view.columnWidth(1)
    choose(view.titles.menu(), "State", "Wider")
    assert view.columnWidth(1) > before
    choose(view.titles.menu(), "Default columns")
    assert view.titles.remembered() == {} and [view.titles.visualIndex(n) for n in range(4)] == [0, 1, 2, 3]


def test_only_a_column_whose_order_means_something_is_sorted_by(qtbot: QtBot) -> None:
    view, _cells = a_list(qtbot)
    asked: list[str] = []
    view.sort_asked.connect(asked.append)
    for number in (2, 1):
        at = QPoint(view.titles.sectionViewportPosition(number) + 20, 15)
        QTest.mouseClick(view.titles.viewport(), Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, at)
    assert asked == ["state"]
    age, state = (next(one.menu() for one in view.titles.menu().actions() if one.text() == t and one.menu()) for t in ("Age", "State"))
    assert isinstance(age, QMenu) and isinstance(state, QMenu)
    assert len(state.actions()) == len(age.actions()) + 1


@pytest.mark.parametrize(
    "kept",
    [
        {"widths": {"state": -4, "no": 50, "age": "x"}, "shown": {"name": False, "no": True, "age": 3}, "order": ["no", 7]},
        {"widths": [1], "shown": "x", "order": {"a": 1}},
        {"order": ["state", "name", "age", "last"]},
        {"widths": {"state": True, "age": False, "name": 80.5, "last": 10_000}},
    ],
)
def test_what_does_not_fit_is_ignored(kept: dict[str, object], qtbot: QtBot) -> None:
    view, cells = a_list(qtbot)
    before = dict(cells)
    view.titles.recall(kept)
    qtbot.wait(50)
    assert cells == before and view.titles.remembered() == {}


def test_no_file_makes_a_column_too_narrow_to_take_hold_of(qtbot: QtBot) -> None:
    view, _cells = a_list(qtbot)
    view.titles.recall({"widths": {"state": 1, "age": 2}})
    assert sizes(view)[1:3] == [56, 56]


def test_a_column_that_is_new_since_the_last_start_has_its_place(qtbot: QtBot) -> None:
    view, _cells = a_list(qtbot)
    view.titles.recall({"order": ["name", "last", "state"]})
    assert [COLUMNS[view.titles.logicalIndex(place)].key for place in range(4)] == ["name", "last", "age", "state"]


def test_any_column_of_any_page_can_be_hidden(make_house: Make, open_window: Open, qtbot: QtBot) -> None:
    """No painter fails on a cell that is not there: a slot that fails fails this test."""
    make_house()
    window = open_window("fleet")
    window.fleet.rows["release-captain"].view.budget_share = 0.9
    for name in window.pages:
        window.goto(name, "")
        page: Page | None = window.page
        assert page is not None
        for view in page.findChildren(RowView):
            everything = {column.key: False for column in view.titles.columns[1:]}
            view.titles.recall({"shown": everything})
            view.grab()
            view.titles.recall({"shown": dict.fromkeys(everything, True)})
            view.grab()


def test_columns_are_there_at_the_next_start(make_house: Make, open_window: Open, tmp_path: Path, qtbot: QtBot) -> None:
    make_house()
    kept = Remembered(tmp_path / "window.ini")
    first = open_window("fleet")
    page = first.page
    assert isinstance(page, FleetPage)
    drag(page.view.titles, 1, 40)
    choose(page.view.titles.menu(), "Depth")
    choose(page.view.titles.menu(), "Runtime", "Move left")
    asked = page.view.titles.remembered()
    kept.keep(first)
    second = open_window("fleet")
    Remembered(tmp_path / "window.ini").restore(second)
    again = second.page
    assert isinstance(again, FleetPage) and again.view.titles.remembered() == asked
    second.resize(1440, 900)
    qtbot.waitUntil(lambda: again.view.isColumnHidden(2) and again.view.columnWidth(1) == 152)
    broken = QSettings(str(tmp_path / "window.ini"), QSettings.Format.IniFormat)
    broken.setValue("pages/fleet.Agents", '{"widths": 3, "order": "a"}')
    broken.sync()
    Remembered(tmp_path / "window.ini").restore(second)
    assert again.view.titles.remembered() == {}


def test_the_menu_by_key_is_that_of_the_list_in_front(make_house: Make, open_window: Open) -> None:
    make_house()
    window = open_window("fleet")
    page = window.page
    assert isinstance(page, FleetPage)
    page.pane.verdicts.view.setFocus()  # one without titles
    titles = titles_in_front(window.stack)
    assert titles is page.view.titles
    choose(titles.menu(), "State")
    assert page.view.isColumnHidden(1)
    window.goto("audit", "")
    titles = titles_in_front(window.stack)
    assert titles is not None and titles.columns[0].key == "seq"
