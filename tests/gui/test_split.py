"""The line between a list and its pane is dragged, moved by key, and found again; a pane that was hidden comes back as wide as it was."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, QSettings, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from console.gui.pages.fleet.page import FleetPage
from console.gui.theme.tokens import DETAIL
from console.gui.widgets.split import Split
from console.gui.window.main import Window
from console.gui.window.remembered import Remembered
from tests.fakes.operator_server import FakeHouse

Make = Callable[..., FakeHouse]
Open = Callable[..., Window]


def fleet_of(window: Window) -> tuple[FleetPage, Split]:
    page = window.pages["fleet"]
    assert isinstance(page, FleetPage)
    return page, page.findChildren(Split)[0]


def drag(split: Split, by: int) -> None:
    """By mouse, where the line between the two parts is."""
    handle = split.handle(1)
    at = handle.rect().center()
    QTest.mousePress(handle, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, at)
    QTest.mouseMove(handle, at + QPoint(by, 0))
    QApplication.processEvents()
    QTest.mouseRelease(handle, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, at)


def test_the_pane_is_as_wide_as_a_person_made_it(make_house: Make, open_window: Open, tmp_path: Path, qtbot: QtBot) -> None:
    make_house()
    window = open_window("fleet")
    page, split = fleet_of(window)
    assert page.pane.width() == DETAIL
    drag(split, -120)
    qtbot.waitUntil(lambda: abs(page.pane.width() - DETAIL - 120) < 5)
    assert page.view.titles.length() <= page.view.viewport().width(), "the columns follow"
    page.do("fleet.detail")
    assert not page.pane.isVisible()
    page.do("fleet.detail")
    qtbot.waitUntil(lambda: abs(page.pane.width() - DETAIL - 120) < 5)
    drag(split, 2000)
    qtbot.waitUntil(lambda: 200 < page.pane.width() < DETAIL)
    drag(split, -300)
    qtbot.waitUntil(lambda: page.pane.width() > DETAIL)
    asked = page.pane.width()
    Remembered(tmp_path / "window.ini").keep(window)
    second = open_window("fleet")
    Remembered(tmp_path / "window.ini").restore(second)
    second.resize(1440, 900)
    qtbot.waitUntil(lambda: fleet_of(second)[0].pane.width() == asked)
    assert fleet_of(second)[0].table.width() > 300


def test_the_line_is_moved_by_key(make_house: Make, open_window: Open) -> None:
    make_house()
    window = open_window("fleet")
    page, _split = fleet_of(window)
    for action, wide in (("console.line-back", DETAIL + 40), ("console.line-on", DETAIL), ("console.line-on", DETAIL - 40)):
        window.do(action)
        assert page.pane.width() == wide
    page.do("fleet.detail")
    window.do("console.line-back")
    assert "line between" in window.notices.all[-1].text


HOSTILE = (
    *(f'"{state}"' for state in ("x", "", "AAAA", "é", "/////w==" * 40)),
    *(
        "[]",
        "[1]",
        "[1, 2, 3]",
        "[true, true]",
        "[-5, 300]",
        '["900", "300"]',
        "[900.5, 300]",
        "[0, 0]",
        "[100000, 300]",
        "[1e9, 1e9]",
        "{}",
        "null",
    ),
)


def test_a_broken_line_is_forgotten(make_house: Make, open_window: Open, tmp_path: Path) -> None:
    make_house("1")
    window = open_window("fleet")
    before = fleet_of(window)[1].sizes()
    for sizes in HOSTILE:
        for key in ("sizes", "state"):
            restored(window, tmp_path, f'{{"{key}": {sizes}}}')
            assert fleet_of(window)[1].sizes() == before, (key, sizes)


def restored(window: Window, tmp_path: Path, kept: str) -> Split:
    """The window after a start with a file that says so."""
    file = tmp_path / "window.ini"
    settings = QSettings(str(file), QSettings.Format.IniFormat)
    settings.setValue("pages/fleet.line0", kept)
    settings.sync()
    Remembered(file).restore(window)
    window.resize(1440, 900)  # the screen of this test is smaller
    QApplication.processEvents()
    return fleet_of(window)[1]


def test_a_file_turns_no_line_round_and_hides_no_part(make_house: Make, open_window: Open, tmp_path: Path) -> None:
    make_house("1")
    window = open_window("fleet")
    split = fleet_of(window)[1]
    other = Split(Qt.Orientation.Vertical, QWidget(), QWidget(), window)
    other.setChildrenCollapsible(True)
    other.setHandleWidth(99)
    other.resize(100, 100)
    other.setSizes([100, 0])
    state = bytes(other.saveState().toBase64().data()).decode("ascii")
    split = restored(window, tmp_path, f'{{"state": "{state}"}}')
    assert split.orientation() is Qt.Orientation.Horizontal and not split.childrenCollapsible() and split.handleWidth() == 0
    split = restored(window, tmp_path, '{"sizes": [99999, 1]}')
    assert all(size >= 200 for size in split.sizes()), "the pane keeps its buttons"


@pytest.mark.parametrize("size", [(800, 560), (1440, 900)])
def test_every_page_with_a_pane_has_a_line(size: tuple[int, int], make_house: Make, open_window: Open) -> None:
    make_house()
    window = open_window("fleet", size)
    for name in ("fleet", "audit", "settings", "budgets", "activity", "policy", "network", "approvals", "rollback", "receipt"):
        window.goto(name, "")
        line = window.pages[name].findChildren(Split)[0]
        for by in (-60, 60):
            line.move_line(by)
            QApplication.processEvents()
            shown = [part for at in range(2) if (part := line.widget(at)) is not None and part.isVisible()]
            assert all(part.width() > 0 for part in shown) and sum(line.sizes()) == line.width(), (name, line.sizes(), line.width())
