"""What a pointer reaches, the keyboard reaches: Tab leads to the choice that is on, and to what is longer than its room."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QScrollArea, QWidget
from pytestqt.qtbot import QtBot

from console.gui.pages.network.page import NetworkPage
from console.gui.widgets.buttons import Pill
from console.gui.window.main import Window
from console.gui.window.nav import NavItem
from tests.fakes.operator_server import FakeHouse

MakeHouse = Callable[..., FakeHouse]
Opener = Callable[..., Window]


def stops(window: Window) -> list[QWidget]:
    """Where Tab leads, from where the focus is until it comes there again."""
    found: list[QWidget] = []
    while (here := QApplication.focusWidget()) is not None and here not in found and len(found) < 100:
        found.append(here)
        QTest.keyClick(here, Qt.Key.Key_Tab)
    return found


def test_tab_leads_to_the_page_and_the_tab_that_are_chosen(make_house: MakeHouse, open_window: Opener, qtbot: QtBot) -> None:
    make_house("1")
    window = open_window("fleet")
    window.activateWindow()
    window.goto("network", "history")
    page = window.page
    assert isinstance(page, NetworkPage)
    qtbot.waitUntil(lambda: page.is_ready() and QApplication.focusWidget() is not None)
    found = stops(window)
    assert [item.spec.name for item in found if isinstance(item, NavItem)] == ["network"]
    assert [pill for pill in found if isinstance(pill, Pill)][-1] is page.tabs.bar.tabs.pills["history"]


@pytest.mark.parametrize("name", ["fleet", "budgets"])
def test_a_pane_that_is_longer_than_its_room_scrolls_by_key(name: str, make_house: MakeHouse, open_window: Opener, qtbot: QtBot) -> None:
    make_house("mockup")
    window = open_window(name, (1280, 560))
    window.activateWindow()
    qtbot.waitUntil(lambda: QApplication.focusWidget() is not None)
    page = window.page
    assert page is not None

    def longer() -> list[QScrollArea]:
        return [area for area in page.findChildren(QScrollArea) if area.isVisible() and area.verticalScrollBar().maximum() > 0]

    qtbot.waitUntil(lambda: bool(longer()))
    area = longer()[0]
    assert area in stops(window)
    area.setFocus(Qt.FocusReason.TabFocusReason)
    QTest.keyClick(area, Qt.Key.Key_PageDown)
    assert area.verticalScrollBar().value() > 0
    ring = area.grab().toImage().pixelColor(1, area.height() // 2)
    area.clearFocus()
    assert area.grab().toImage().pixelColor(1, area.height() // 2) != ring, "one sees where the focus is"
