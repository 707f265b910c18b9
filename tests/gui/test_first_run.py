"""The page before the first agent: where it looks, in the sources' own words, and never a tick for what does not look."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from PySide6.QtCore import QEvent, QPoint, Qt
from PySide6.QtGui import QGuiApplication, QHelpEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QToolTip
from pytestqt.qtbot import QtBot

from console.api.messages import AgentView, SourceView
from console.gui.pages.fleet.page import FleetPage
from console.gui.pages.fleet.sources_table import HEAD, ROW, SourceTable, now_words, tally, whole_words
from console.gui.pages.kill_switch.page import KillSwitchPage
from console.gui.widgets.safe_text import is_plain
from console.gui.window.main import Window
from tests.fakes import gui_fixture as fixture
from tests.fakes.operator_server import FakeHouse


def test_the_page_tells_where_it_looks_and_what_each_source_can_see_and_stop(
    make_house: Callable[..., FakeHouse], open_window: Callable[..., Window], qtbot: QtBot
) -> None:
    make_house("0")
    page = open_window("fleet").page
    assert isinstance(page, FleetPage) and page.first_run.isVisible()
    table = page.first_run.sources
    qtbot.waitUntil(lambda: "~/.claude/projects" in table.accessibleName())
    assert "Stops: Those that Watchfloor started, with proof" in table.accessibleName()
    assert "Processes: Silent. its look takes longer than 10 s" in table.accessibleName()
    assert page.first_run._tally.text() == "2 watching · 2 not found · 1 in trouble"
    assert table.height() == HEAD + 5 * ROW


@pytest.mark.parametrize(
    ("source", "word", "shape"),
    [
        (SourceView(source="a", available=True, reason="", state="watching"), "Watching", "check"),
        (SourceView(source="a", available=True, reason=""), "Watching", "check"),
        (SourceView(source="a", available=True, reason="", state="broken"), "Broken", "triangle"),
        (SourceView(source="a", available=False, reason="", state="broken"), "Broken", "triangle"),
        (SourceView(source="a", available=True, reason="", state="silent"), "Silent", "triangle"),
        (SourceView(source="a", available=True, reason="", state="dreaming"), "Not known", "triangle"),
        (SourceView(source="a", available=False, reason="", state="polling"), "Not found", "ring"),
        (SourceView(source="otlp", available=True, reason="", state="listening"), "Listening", "check"),
        (SourceView(source="a", available=False, reason="", state="absent"), "Not available", "ring"),
    ],
)
def test_only_a_source_that_looks_and_can_is_a_tick(source: SourceView, word: str, shape: str) -> None:
    assert now_words(source)[:2] == (word, shape)
    assert (now_words(source)[2] == "ok") == (shape == "check")


def test_hostile_words_of_a_source_stay_words(qtbot: QtBot, monkeypatch: pytest.MonkeyPatch, open_window: Callable[..., Window]) -> None:
    hostile = SourceView(source="<b>x</b>", available=True, reason="\u202egnp", looks_in=["/tmp/<img src=x>\n"], can_see="<b>" * 900)
    table = SourceTable()
    qtbot.addWidget(table)
    table.resize(700, 100)
    table.say([hostile, *fixture.sources(time.time())], time.time())
    assert is_plain(table.accessibleName())
    shown: list[str] = []
    monkeypatch.setattr(QToolTip, "showText", lambda _at, text, _widget: shown.append(text))
    at = QPoint(30, HEAD + 5)
    QApplication.sendEvent(table, QHelpEvent(QEvent.Type.ToolTip, at, table.mapToGlobal(at)))
    assert "&lt;b&gt;x&lt;/b&gt;" in shown[0] and "<img" not in shown[0] and len(shown[0]) < 8000
    table.grab()
    assert whole_words(hostile).startswith("<b>x</b>: Watching.") and tally([hostile]) == "1 watching"


def test_the_keys_before_the_first_agent(make_house: Callable[..., FakeHouse], open_window: Callable[..., Window], qtbot: QtBot) -> None:
    house = make_house("0")
    window = open_window("fleet")
    page = window.page
    assert isinstance(page, FleetPage)
    assert page.keys() == (("Enter", "new agent…"), ("D", "demo"), ("H", "install hook"), ("K", "kill switch"))
    for code, command in ((Qt.Key.Key_D, "watchfloor demo"), (Qt.Key.Key_H, "watchfloor install-hook claude-code")):
        QTest.keyClick(QApplication.focusWidget() or window, code)
        assert QGuiApplication.clipboard().text() == command
    house.on_loop(lambda: house.supervisor.upsert(AgentView(id="a", name="a", session="a", control_level="observed", state="running")))
    qtbot.waitUntil(lambda: "a" in window.fleet.rows and page.view.current() is not None)
    assert page.keys()[0][0] != "Enter" and "observed" in page.why_not("fleet.data"), "D is about data again"
    QTest.keyClick(QApplication.focusWidget() or window, Qt.Key.Key_K)
    assert isinstance(window.page, KillSwitchPage)
