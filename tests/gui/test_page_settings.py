"""The settings page over real files of settings: the list, origins, locks, a change with a reason, and what is broken."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from console.gui.pages.settings.change import ChangeDialog
from console.gui.pages.settings.page import SettingsPage
from console.gui.pages.settings.rows import Heading, Item, cell_words, shown
from console.gui.widgets.safe_text import is_plain
from console.gui.window.main import Window
from console.settings.places import Places
from console.settings.table import KEYS
from tests.fakes.gui_fixture import HOSTILE_NAMES
from tests.fakes.operator_server import FakeHouse

House = Callable[..., FakeHouse]
Opener = Callable[..., Window]


@pytest.fixture
def etc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "etc"
    (folder / "conf.d").mkdir(parents=True)
    monkeypatch.setenv("WATCHFLOOR_ETC", str(folder))
    (folder / "watchfloor.toml").write_text(
        'locked = ["panic.*", "budgets.day"]\n[panic]\ninclude_observed = true\n[budgets.day]\ncost = 50\n'
    )
    (folder / "conf.d" / "10-team.toml").write_text("[spawn]\nmax_depth = 4\n")
    return folder


@pytest.fixture
def house(etc: Path, make_house: House) -> FakeHouse:
    return make_house("mockup")


def page_of(window: Window) -> SettingsPage:
    assert isinstance(window.page, SettingsPage)
    return window.page


def dialog_of(window: Window, qtbot: QtBot) -> ChangeDialog:
    qtbot.waitUntil(lambda: bool(window.findChildren(ChangeDialog)))
    return window.findChildren(ChangeDialog)[-1]


def keys(where: QWidget, text: str) -> None:
    QTest.keyClicks(where, text)


def is_waiting(page: SettingsPage, name: str) -> bool:
    row = page.current()
    return row is not None and row.key == name and row.is_waiting


def choose(page: SettingsPage, name: str) -> None:
    assert page.view.choose(f"s:{name}"), name


def test_a_number_is_written_the_same_as_default_and_in_a_file() -> None:
    assert [shown(600.0, "s"), shown(240, "s"), shown(0.5, "s"), shown(True)] == [
        "600 s",
        "240 s",
        "0.5 s",
        "true",
    ]


def test_every_setting_is_listed_with_origin_and_lock(house: FakeHouse, etc: Path, open_window: Opener) -> None:
    page = page_of(open_window("settings"))
    lines = page.view.model().rows  # type: ignore[attr-defined]
    assert [line.row.key for line in lines if isinstance(line, Item)] == list(KEYS)
    assert "Limits on agent trees" in [line.words for line in lines if isinstance(line, Heading)]
    choose(page, "panic.include_observed")
    said = {caption: value.text() for caption, (_, value) in page.pane.facts.items()}
    assert said["In force"] == "true" and said["Default"] == "false" and said["Takes"] == "true or false"
    assert said["Locked by"] == f"{etc}/watchfloor.toml:1" and said["From"] == f"Administrator: {etc}/watchfloor.toml:3"
    assert not page.pane.offers["settings.change"].isEnabled() and "locks it" in page.pane.offers["settings.change"].toolTip()
    assert "watchfloor.toml:1 locks it" in page.why_not("settings.change")
    choose(page, "spawn.max_depth")
    assert page.pane.offers["settings.change"].isEnabled() and not page.pane.offers["settings.reset"].isEnabled()


def test_the_filter_finds_names_words_files_and_locks(house: FakeHouse, open_window: Opener, qtbot: QtBot) -> None:
    page = page_of(open_window("settings"))
    for text, found in (
        ("max_depth", {"spawn.max_depth"}),
        ("10-team", {"spawn.max_depth"}),
        ("locked", {"panic.include_observed", "budgets.day"}),
    ):
        page.search.setText(text)
        lines = page.view.model().rows  # type: ignore[attr-defined]
        assert {line.row.key for line in lines if isinstance(line, Item)} == found, text
        assert isinstance(lines[0], Heading)
    page.search.setText("nothing like it")
    assert page.empty.isVisible() and not page.pane.isVisible()


def test_a_setting_is_changed_and_reset_by_the_keyboard_alone_with_a_reason(
    house: FakeHouse, places: Places, open_window: Opener, qtbot: QtBot
) -> None:
    window = open_window("settings")
    page = page_of(window)
    keys(page.view, "/")
    qtbot.waitUntil(page.search.hasFocus)
    keys(page.search, "max_depth")
    QTest.keyClick(page.search, Qt.Key.Key_Return)
    qtbot.waitUntil(page.view.hasFocus)
    keys(page.view, "e")
    dialog = dialog_of(window, qtbot)
    qtbot.waitUntil(dialog.field.hasFocus)
    assert dialog.field.text() == "4" and dialog.missing() == "Nothing differs from what is set."
    keys(dialog.field, "7")
    assert dialog.missing() == "Give a reason: it is recorded." and not dialog.main.isEnabled()
    QTest.keyClick(dialog.field, Qt.Key.Key_Tab)
    qtbot.waitUntil(dialog.reason.hasFocus)
    keys(dialog.reason, "the release")
    QTest.keyClick(dialog.reason, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: page.trouble.isVisible() and "spawn.max_depth" in page.trouble.text())
    assert json.loads(places.settings_file.read_text()) == {"spawn": {"max_depth": 7}}
    record = house.settings.records[-1]
    assert (record.actor, record.kind, record.data["old"], record.data["new"]) == ("operator:1000", "settings.changed", 4, 7)
    row = page.current()
    assert row is not None and row.is_waiting and cell_words(Item(row), "state") == "At next start"
    assert cell_words(Item(row), "value") == f"{row.value} → {row.next_value}"  # its origin is the one of the value to come
    qtbot.waitUntil(lambda: window.nav.items["settings"].accessibleName() == "Settings, check")
    window.activateWindow()  # without a window manager no window follows a dialog
    qtbot.waitUntil(page.view.hasFocus)
    keys(page.view, "r")
    dialog = dialog_of(window, qtbot)
    keys(dialog.reason, "it is out")
    QTest.keyClick(dialog.reason, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: json.loads(places.settings_file.read_text()) == {})
    qtbot.waitUntil(lambda: not page.trouble.isVisible())


def test_a_refused_value_stays_in_the_dialog_with_the_reason(house: FakeHouse, places: Places, open_window: Opener, qtbot: QtBot) -> None:
    window = open_window("settings")
    page = page_of(window)
    choose(page, "spawn.max_depth")
    page.do("settings.change")
    dialog = dialog_of(window, qtbot)
    dialog.field.setText("many")
    assert dialog.missing() == "It takes a whole number from 1 to 20."
    dialog.field.setText("99")
    dialog.reason.setText("x")
    dialog.main.click()
    qtbot.waitUntil(dialog.problem.isVisible)
    assert "a whole number from 1 to 20, not 99" in dialog.problem.text() and dialog.main.isEnabled()
    house.settings.refuses = True
    dialog.field.setText("5")
    dialog.main.click()
    qtbot.waitUntil(lambda: "The log is full" in dialog.problem.text())
    assert not places.settings_file.exists()
    dialog.reject()


def test_a_choice_and_a_table_can_be_changed_too(house: FakeHouse, places: Places, open_window: Opener, qtbot: QtBot) -> None:
    window = open_window("settings")
    page = page_of(window)
    for name, fill in (
        ("remote.lease", lambda dialog: dialog.choice.setCurrentIndex(1)),
        ("programs.hooks", lambda dialog: dialog.choice.setCurrentIndex(1)),
        ("budgets.agent", lambda dialog: dialog.field.setText('{"cost": 5}')),
        ("host_name", lambda dialog: dialog.field.setText("<b>here</b>")),
    ):
        choose(page, name)
        page.do("settings.change")
        dialog = dialog_of(window, qtbot)
        fill(dialog)  # type: ignore[no-untyped-call]
        dialog.reason.setText("test")
        dialog.main.click()
        qtbot.waitUntil(partial(is_waiting, page, name))
        qtbot.waitUntil(lambda: not window.findChildren(ChangeDialog))
    kept = json.loads(places.settings_file.read_text())
    assert kept == {
        "remote": {"lease": "alarm"},
        "programs": {"hooks": False},
        "budgets": {"agent": {"cost": 5.0}},
        "host_name": "<b>here</b>",
    }


def test_a_broken_drop_in_is_amber_and_named(house: FakeHouse, etc: Path, open_window: Opener, qtbot: QtBot) -> None:
    window = open_window("settings")
    page = page_of(window)
    os.mkfifo(etc / "conf.d" / "20-\x1b[31m<b>.toml")
    assert house._loop is not None
    asyncio.run_coroutine_threadsafe(house.settings.desk.look(), house._loop).result(60)
    page.on_show()
    qtbot.waitUntil(page.trouble.isVisible)
    assert "is no regular file" in page.trouble.text() and is_plain(page.trouble.text())
    page.desk.ask_sync()
    qtbot.waitUntil(lambda: window.nav.items["settings"].accessibleName() == "Settings, check")


@pytest.mark.parametrize("text", HOSTILE_NAMES)
def test_hostile_text_is_literal(text: str, etc: Path, places: Places, make_house: House, open_window: Opener) -> None:
    places.settings_file.write_text(json.dumps({"host_name": text}))
    name = text.replace("/", "").replace("\0", "")[:40] + ".toml"
    (etc / "conf.d" / name).write_text("canary_s = 30\n")
    make_house("mockup")
    page = page_of(open_window("settings"))
    for key in ("host_name", "canary_s"):
        choose(page, key)
        assert all(is_plain(value.text()) for _, value in page.pane.facts.values())
        model, number = page.view.model(), page.view.currentIndex().row()
        assert all(is_plain(str(model.data(model.index(number, column)))) for column in range(3))
    page.grab()


@pytest.mark.parametrize("size", [(800, 560), (1024, 700), (1440, 900)])
def test_the_pane_when_narrow(size: tuple[int, int], house: FakeHouse, open_window: Opener) -> None:
    page = page_of(open_window("settings", size))
    assert page.pane.isVisible() == (size[0] >= 1200)
    QTest.keyClick(page.view, Qt.Key.Key_Return)
    assert page.pane.isVisible() == (size[0] < 1200)
