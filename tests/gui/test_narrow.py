"""What a person must not miss is read in the smallest window, and usual figures are whole in a usual one."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from console.gui.pages.fleet.page import FleetPage
from console.gui.pages.network.page import NetworkPage
from console.gui.pages.receipt.page import ReceiptPage
from console.gui.theme import fonts
from console.gui.theme.tokens import ink
from console.gui.widgets.rows import RowView
from console.gui.window.main import Window
from tests.fakes.operator_server import FakeHouse

MakeHouse = Callable[..., FakeHouse]
Opener = Callable[..., Window]


def has_colour(part: QWidget, colour: str) -> bool:
    image = part.grab().toImage()
    return any(image.pixelColor(x, y).name().upper() == colour.upper() for y in range(image.height()) for x in range(image.width()))


def room(view: RowView, key: str) -> int:
    """Pixels of a column; 0 where it is hidden."""
    at = [column.key for column in view.row_model.columns].index(key)
    return 0 if view.titles.isSectionHidden(at) else view.titles.sectionSize(at)


@pytest.mark.parametrize("width", [800, 1024, 1440])
def test_agents_over_their_budget_are_counted_at_every_width(width: int, make_house: MakeHouse, open_window: Opener, qtbot: QtBot) -> None:
    make_house("mockup")
    page = open_window("fleet", (width, 560)).page
    assert isinstance(page, FleetPage)
    header = page.table.header
    qtbot.waitUntil(lambda: "Over budget 2" in header.accessibleName())
    assert has_colour(header, ink().danger), "the diamond of what is over its budget"


def test_a_run_of_a_day_and_a_state_that_is_not_confirmed_are_whole(make_house: MakeHouse, open_window: Opener, qtbot: QtBot) -> None:
    make_house("mockup")
    page = open_window("fleet", (1440, 900)).page
    assert isinstance(page, FleetPage)
    qtbot.waitUntil(lambda: page.pane.isVisible())
    assert room(page.view, "runtime") >= fonts.metrics(fonts.ui(12)).horizontalAdvance("19 h 02 min") + 8
    assert room(page.view, "state") >= 19 + fonts.metrics(fonts.ui(12, fonts.SEMIBOLD)).horizontalAdvance("Not confirmed") + 4


def test_the_agent_of_a_request_is_whole_in_the_smallest_window(make_house: MakeHouse, open_window: Opener) -> None:
    make_house("mockup")
    page = open_window("network", (800, 560)).page
    assert isinstance(page, NetworkPage)
    assert room(page.tabs.log.view, "agent") >= fonts.metrics(fonts.ui(12, fonts.MEDIUM)).horizontalAdvance("dependency-audit") + 4


def test_what_ends_a_block_is_read_beside_a_banner_that_is_too_narrow_for_its_head(
    make_house: MakeHouse, open_window: Opener, qtbot: QtBot
) -> None:
    house = make_house("1")
    window = open_window("fleet", (800, 560))
    house.on_loop(house.guard.press_now)
    qtbot.waitUntil(lambda: window.banner.isVisible() and window.banner.height() < 60)
    assert [line.partition(" · ")[0] for line in window.banner.lines()] == ["New agents are blocked", "until you rearm"]
    window.resize(1440, 900)
    qtbot.waitUntil(lambda: window.banner.lines()[0] == "New agents are blocked until you rearm")


def test_a_receipt_without_targets_says_why_its_list_is_empty(make_house: MakeHouse, open_window: Opener, qtbot: QtBot) -> None:
    house = make_house("0")
    window = open_window("fleet")
    house.on_loop(house.guard.press_now)
    qtbot.waitUntil(lambda: isinstance(window.page, ReceiptPage) and window.page.no_targets.isVisible())
    page = window.page
    assert isinstance(page, ReceiptPage) and "no agents" in page.no_targets.text()


def test_beside_an_open_drawer_the_tab_that_is_shown_is_read_and_all_are_back_after_it(
    make_house: MakeHouse, open_window: Opener, qtbot: QtBot
) -> None:
    make_house("mockup")
    window = open_window("network", (800, 560))
    page = window.page
    assert isinstance(page, NetworkPage)
    pills = page.tabs.bar.tabs.pills.values()

    def read() -> list[str]:
        cut = any(pill.width() < pill.sizeHint().width() for pill in pills if pill.isVisible())
        return [] if cut else [pill.text().split()[0] for pill in pills if pill.isVisible()]

    qtbot.waitUntil(lambda: len(read()) == len(pills))
    window.do("network.new")
    qtbot.waitUntil(lambda: page.drawer.isVisible() and 0 < len(read()) < len(pills))
    assert read()[0] == "Allowlist"
    window.do("network.discard")
    qtbot.waitUntil(lambda: len(read()) == len(pills))
