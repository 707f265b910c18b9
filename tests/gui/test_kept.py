"""Tab and filter of every list page are there at the next start; what an emergency needs whole begins whole."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtCore import QSettings
from pytestqt.qtbot import QtBot

from console.gui.pages.budgets.page import BudgetsPage
from console.gui.pages.fleet.page import FleetPage
from console.gui.widgets.buttons import Pills
from console.gui.window.main import Window
from console.gui.window.remembered import Remembered, kept_parts
from tests.fakes.operator_server import FakeHouse

Make = Callable[..., FakeHouse]
Open = Callable[..., Window]
PAGES = ("fleet", "policy", "network", "budgets", "rollback", "audit", "settings", "activity")
WHOLE = ("approvals", "kill-switch", "receipt")
"""Nothing of these is hidden at a start by what a person looked for before."""


def filters(window: Window) -> dict[str, str]:
    """What every page of ``PAGES`` is set to: its tabs and its filter."""
    return {
        f"{name}.{part.kept}": part.chosen() if isinstance(part, Pills) else part.text()
        for name in PAGES
        for part in kept_parts(window.pages[name])
    }


def test_tabs_and_filters_are_there_at_the_next_start(make_house: Make, open_window: Open, tmp_path: Path, qtbot: QtBot) -> None:
    make_house()
    first = open_window("fleet")
    for part in (part for name in PAGES for part in kept_parts(first.pages[name])):
        if isinstance(part, Pills):
            list(part.pills.values())[1].click()
        else:
            part.setText("build")
    asked = filters(first)
    assert {key.split(".")[0] for key, value in asked.items() if value == "build"} == set(PAGES), "every list page keeps its filter"
    Remembered(tmp_path / "window.ini").keep(first)
    second = open_window("fleet")
    Remembered(tmp_path / "window.ini").restore(second)
    assert filters(second) == asked
    fleet, budgets = second.pages["fleet"], second.pages["budgets"]
    assert isinstance(fleet, FleetPage) and isinstance(budgets, BudgetsPage)
    qtbot.waitUntil(lambda: "Filtered" in fleet.table.bar.shown.text())
    assert (second.fleet.filter, second.fleet.text, budgets.list.order) == ("attention", "build", "spend"), "they filter, too"


@pytest.mark.parametrize("name", WHOLE)
def test_what_an_emergency_needs_begins_whole(name: str, make_house: Make, open_window: Open) -> None:
    make_house()
    assert not kept_parts(open_window("fleet").pages[name])


def test_what_cannot_be_read_is_forgotten(make_house: Make, open_window: Open, tmp_path: Path) -> None:
    make_house()
    broken = QSettings(str(tmp_path / "window.ini"), QSettings.Format.IniFormat)
    for key, value in (
        ("fleet.tab", '{"on": 7}'),
        ("policy.tab", '{"on": "gone"}'),
        ("fleet.filter", '{"text": 3}'),
        ("audit.filter", "x"),
    ):
        broken.setValue(f"pages/{key}", value)
    broken.sync()
    window = open_window("fleet")
    before = filters(window)
    Remembered(tmp_path / "window.ini").restore(window)
    assert filters(window) == before


def test_a_window_is_no_larger_than_the_screen(make_house: Make, open_window: Open, tmp_path: Path) -> None:
    make_house("1")
    window = open_window("fleet", (3000, 2000))
    Remembered(tmp_path / "window.ini").restore(window)
    room = window.screen().availableSize()
    assert window.width() <= room.width() and window.height() < room.height()
