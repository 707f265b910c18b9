"""What stands side by side has room: words are not cut where there is space, and nothing is painted over its neighbour."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import pytest
from PySide6.QtCore import QRectF
from PySide6.QtGui import QColor, QFont, QPainter, QPixmap
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from console.api.messages import AgentView
from console.gui.models.fleet import Fleet
from console.gui.pages.activity.page import ActivityPageView
from console.gui.pages.fleet.header import FleetHeader
from console.gui.pages.fleet.page import FleetPage
from console.gui.pages.fleet.rows import cell_words
from console.gui.pages.fleet.words import gauges
from console.gui.pages.interface import Badge
from console.gui.pages.kill_switch.cards import _paint_wrapped
from console.gui.pages.network.page import NetworkPage
from console.gui.pages.network.tabs import UrlField
from console.gui.pages.policy.page import PolicyPage
from console.gui.pages.receipt.head import Timeline
from console.gui.theme import fonts
from console.gui.widgets.buttons import SearchField
from console.gui.widgets.words import share_words
from console.gui.window.bars import StatusBar
from console.gui.window.main import Window
from console.gui.window.nav import _BADGE_FONT, RAIL_SHAPES, NavItem
from tests.fakes.gui_fixture import receipt
from tests.fakes.operator_server import FakeHouse


@pytest.mark.parametrize("width", [1024, 1440])
def test_how_fresh_the_light_is_is_read_to_its_end(
    width: int, make_house: Callable[..., FakeHouse], open_window: Callable[..., Window], qtbot: QtBot
) -> None:
    make_house("1")
    window = open_window("fleet", (width, 700))
    light = window.top.light
    light.show_light("armed", "Kill switch ready · tested 1 min 04 s ago", "Updated 0.1 s ago · guard not answering: Panic still works")
    qtbot.waitUntil(lambda: light.width() >= light.sizeHint().width())


def test_badges_of_the_kill_switch_stand_clear_of_its_name(
    make_house: Callable[..., FakeHouse], open_window: Callable[..., Window], qtbot: QtBot
) -> None:
    assert qtbot
    make_house("1")
    item = open_window("fleet").nav.items["kill-switch"]
    name_ends = 38 + fonts.metrics(fonts.ui(13, fonts.MEDIUM)).horizontalAdvance(item.spec.title)
    for words in ("check", "blocked"):
        badge_begins = item.width() - fonts.metrics(fonts.ui(*_BADGE_FONT)).horizontalAdvance(words) - 16 - 22
        assert badge_begins >= name_ends + 4, words


def test_a_line_there_is_no_room_for_is_not_painted_in_half(qtbot: QtBot) -> None:
    assert qtbot
    fonts.load_fonts()
    picture = QPixmap(200, 100)
    picture.fill(QColor("#000000"))
    painter = QPainter(picture)
    _paint_wrapped(painter, QRectF(0, 0, 200, 34), "the engine is away " * 12, fonts.ui(12), "#ffffff")
    painter.end()
    image, two = picture.toImage(), 2 * fonts.metrics(fonts.ui(12)).lineSpacing()
    lit = {y for y in range(100) if any(image.pixelColor(x, y).lightness() > 40 for x in range(200))}
    assert lit and max(lit) <= two and len([y for y in lit if y > two // 2]) > 4, "two whole lines, and nothing of a third"


@pytest.mark.parametrize(("page", "aside"), [("policy", "pane"), ("network", "drawer")])
def test_tab_goes_from_the_bar_to_the_list_to_what_stands_beside_it(
    page: str, aside: str, make_house: Callable[..., FakeHouse], open_window: Callable[..., Window], qtbot: QtBot
) -> None:
    assert qtbot
    make_house("1")
    shown = open_window(page).page
    assert isinstance(shown, PolicyPage | NetworkPage)
    chain: list[QWidget] = [shown]
    while (further := chain[-1].nextInFocusChain()) is not None and further is not shown:
        chain.append(further)
    first = shown.tabs.rules.view if isinstance(shown, PolicyPage) else shown.tabs.view
    beside = [at for at, widget in enumerate(chain) if getattr(shown, aside).isAncestorOf(widget) and widget.focusPolicy().value]
    assert chain.index(shown.tabs.bar.search) < chain.index(first) < min(beside)


def test_who_is_dead_reaches_and_burns_nothing(
    make_house: Callable[..., FakeHouse], open_window: Callable[..., Window], qtbot: QtBot
) -> None:
    view = AgentView(
        id="a", name="a", state="killed", control_level="managed", network_mode="FULL", session="s", limits={"cost_usd": 2.0},
        usage={"cost_usd": 1.0}, burn_usd_per_h=3.0, started_at=time.time(),
    )  # fmt: skip
    assert [note for *_, note in gauges(view)] == ["$1.00 left"]
    assert "limit in about" in gauges(view.replaced(state="running"))[0][-1]
    house = make_house("0")
    house.supervisor.agents["a"] = view
    page = open_window("fleet").page
    assert isinstance(page, FleetPage)
    qtbot.waitUntil(lambda: page.pane.agent_id == "a")
    assert page.pane._chips.accessibleName() == "Killed, FULL until its end, Depth 1 of 3"
    assert cell_words(page.view.current(), "network") == "FULL"


def test_on_the_rail_a_warning_and_a_danger_are_told_by_shape_and_in_words(
    make_house: Callable[..., FakeHouse], open_window: Callable[..., Window], qtbot: QtBot
) -> None:
    assert qtbot and len(set(RAIL_SHAPES.values())) == len(RAIL_SHAPES)
    make_house("1")
    item = open_window("approvals", (1024, 700)).nav.items["budgets"]
    assert isinstance(item, NavItem) and item.rail
    silhouettes = []
    for kind in ("warn", "danger"):
        item.show_badge(None)
        plain = item.grab().toImage()
        item.show_badge(Badge("2", kind))
        shown = item.grab().toImage()
        pixels = [(x, y) for x in range(shown.width()) for y in range(shown.height())]
        silhouettes.append({at for at in pixels if shown.pixelColor(*at) != plain.pixelColor(*at)})
        assert "2" in item.toolTip()
    assert silhouettes[0] and silhouettes[1] and silhouettes[0] != silhouettes[1]


def test_titles_and_results_of_a_receipts_steps_are_whole_at_every_width(qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    fonts.load_fonts()
    made = receipt([AgentView(id="a", name="a", state="running", control_level="managed", network_mode="NONE", session="s")], proven=True)
    cut: set[tuple[int, str]] = set()

    def paint(_painter: QPainter, box: QRectF, text: str, font: QFont, *_colour: str) -> None:
        if text.endswith("…") or fonts.metrics(font).horizontalAdvance(text) > box.width():
            cut.add((line.width(), text))

    monkeypatch.setattr("console.gui.pages.receipt.head.draw_text", paint)
    line = Timeline()
    qtbot.addWidget(line)
    line.say(made)
    for width in range(740, 1400, 20):
        line.resize(width, line.height())
        line.grab()
    assert cut == set()


def test_more_than_999_percent_stands_clear_of_its_gauge(qtbot: QtBot) -> None:
    assert qtbot
    fonts.load_fonts()
    words = share_words(math.inf), share_words(9.999), share_words(1e12), share_words(0.5)
    assert words == ("?", ">999%", ">999%", "50%")
    assert 101 - fonts.metrics(fonts.ui(12, fonts.SEMIBOLD)).horizontalAdvance(">999%") >= 54 + 4, "where both lists paint it"


def test_a_narrow_field_for_an_address_is_not_called_a_filter(qtbot: QtBot) -> None:
    fonts.load_fonts()
    field = UrlField()
    qtbot.addWidget(field)
    field.resize(110, 28)
    field.show()
    assert field.placeholderText() == "URL"


def test_a_field_of_a_narrow_bar_shows_whole_words_beside_its_key(qtbot: QtBot) -> None:
    fonts.load_fonts()
    field = SearchField("Filter this list", "/")
    qtbot.addWidget(field)
    shown = {}
    for width in (300, 100, 60):
        field.resize(width, 28)
        field.show()
        shown[width] = field.placeholderText()
        assert field.fontMetrics().horizontalAdvance(shown[width]) + 22 + 24 <= width
    assert shown == {300: "Filter this list", 100: "Filter", 60: ""} and field.accessibleName() == "Filter this list"


def test_the_seconds_of_the_light_move_nothing_and_are_read_to_their_end_in_the_smallest_window(
    make_house: Callable[..., FakeHouse], open_window: Callable[..., Window], qtbot: QtBot
) -> None:
    assert qtbot
    make_house("1")
    window = open_window("fleet", (1024, 700))
    light, places = window.top.light, set()
    for seconds in ("9 s", "1 min 09 s", "11 s", "1 s"):
        light.show_light("armed", f"Kill switch ready · tested {seconds} ago", "Updated 0.1 s ago")
        QApplication.processEvents()
        places.add((window.top.search.geometry().getRect(), light.x()))
    assert len(places) <= 2, "it may grow once, and stays so"
    window.resize(800, 560)
    QApplication.processEvents()
    for line, face in zip(light.lines(), (fonts.ui(13, fonts.MEDIUM), fonts.ui(11)), strict=True):
        assert fonts.metrics(face).horizontalAdvance(line) <= light.width() - 15, line
    assert "tested 1 s ago" in " ".join(light.lines())


def test_an_empty_feed_says_how_to_choose_an_agent(
    make_house: Callable[..., FakeHouse], open_window: Callable[..., Window], qtbot: QtBot
) -> None:
    assert qtbot
    make_house("0")
    page = open_window("activity", (800, 560)).page
    assert isinstance(page, ActivityPageView)
    assert page.feed.empty.isVisible() and "Choose one on the Fleet page" in page.feed.empty.text()


def test_sums_in_the_head_of_the_fleet_stand_long_enough_to_be_read(qtbot: QtBot) -> None:
    header, fleet = FleetHeader(), Fleet()
    qtbot.addWidget(header)
    fleet.spend_today_usd = 1.0
    header.take(fleet)
    seen, until = {header.accessibleName()}, time.monotonic() + 0.5
    while time.monotonic() < until:
        fleet.spend_today_usd += 0.01
        header.take(fleet)
        seen.add(header.accessibleName())
    assert len(seen) == 1
    time.sleep(0.5)
    header.take(fleet)
    assert header.accessibleName() not in seen


def test_beside_a_notice_no_key_is_painted_over_the_state_of_the_log(qtbot: QtBot) -> None:
    fonts.load_fonts()
    bar = StatusBar()
    qtbot.addWidget(bar)
    bar.resize(330, bar.height())
    bar.show_seal("Audit log 1,276 records · log intact up to record 1,268, 5 s ago", False)
    alone = bar.grab().toImage()
    bar.show_keys((("?", "all keys"),))
    assert bar.grab().toImage() == alone
    bar.resize(600, bar.height())
    wide = bar.grab().toImage()
    bar.show_keys(())
    assert bar.grab().toImage() != wide


def test_what_a_desktop_lacks_takes_no_room_from_the_keys_where_it_cannot_be_read(qtbot: QtBot) -> None:
    fonts.load_fonts()
    bar = StatusBar()
    qtbot.addWidget(bar)
    bar.show_keys((("A", "activity"), ("?", "all keys")))
    bar.show_seal("Audit log 39 records · log intact up to record 39, 29 s ago", False)
    for width, changes in ((800, False), (1440, True)):
        bar.resize(width, bar.height())
        bar.show_lacks("")
        before = bar.grab().toImage()
        bar.show_lacks("No notifications: there is no session bus (DBUS_SESSION_BUS_ADDRESS is not set).")
        assert (bar.grab().toImage() != before) is changes
        assert "session bus" in bar.accessibleDescription()


def test_the_field_that_a_filter_key_leads_to_shows_that_key(
    make_house: Callable[..., FakeHouse], open_window: Callable[..., Window], qtbot: QtBot
) -> None:
    make_house("1")
    window = open_window("fleet")
    for name, kind in window.pages.kinds.items():
        if any(verb.id == f"{name}.filter" for verb in kind.spec.verbs):
            window.goto(name, "")
            window.activateWindow()
            window.do(f"{name}.filter")
            qtbot.waitUntil(lambda: isinstance(window.focusWidget(), SearchField))
            field = window.focusWidget()
            assert isinstance(field, SearchField) and field.textMargins().right() > 8, f"{name}: no room for its key"
