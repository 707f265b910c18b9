"""Several agents are selected, asked about once with every target in full, and each has its result."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from console.gui.pages.fleet.page import FleetPage
from console.gui.pages.kill_switch.rung import RungDialog
from console.gui.pages.kill_switch.several import SeveralDialog
from console.gui.window.main import Window
from tests.fakes.operator_server import FakeHouse

Make = Callable[..., FakeHouse]
Open = Callable[..., Window]
CTRL, SHIFT, NONE = Qt.KeyboardModifier.ControlModifier, Qt.KeyboardModifier.ShiftModifier, Qt.KeyboardModifier.NoModifier


def fleet_of(window: Window) -> FleetPage:
    """The page, in the order in which the agents came."""
    page = window.pages["fleet"]
    assert isinstance(page, FleetPage)
    page.table.bar.urgent.setChecked(False)
    page.view.setFocus()
    return page


def click(page: FleetPage, number: int, keys: Qt.KeyboardModifier = NONE) -> str:
    """The row at that place; returns its id."""
    at = page.view.visualRect(page.view.model().index(number, 0)).center()
    QTest.mouseClick(page.view.viewport(), Qt.MouseButton.LeftButton, keys, at)
    return str(page.table.model.rows[number].id)


def picked(page: FleetPage) -> list[str]:
    return [row.id for row in page.view.picked_rows()]


def asked(window: Window, qtbot: QtBot) -> SeveralDialog:
    qtbot.waitUntil(lambda: any(d.isVisible() for d in window.findChildren(SeveralDialog)))
    found = next(d for d in window.findChildren(SeveralDialog) if d.isVisible())
    qtbot.waitUntil(lambda: found.main.isEnabled() or bool(found._refused))
    return found


def acts(house: FakeHouse) -> set[tuple[str, str, str]]:
    return {(verb, target, data.get("reach", "")) for verb, target, data in house.supervisor.log}


def test_rows_are_selected_by_mouse_and_by_key(make_house: Make, open_window: Open) -> None:
    make_house()
    window = open_window("fleet")
    page = fleet_of(window)
    first, third = click(page, 0), click(page, 2, CTRL)
    assert picked(page) == [first, third] and "2 selected" in page.table.bar.shown.text()
    click(page, 4, SHIFT)
    assert len(picked(page)) == 4, "a range, and what was selected before"
    for number in (0, 2, 3):
        click(page, number, CTRL)
    assert picked(page) == [page.table.model.rows[4].id], "what Ctrl and a click took out is meant no longer"
    assert page.view.current().id == picked(page)[0]
    click(page, 0)
    assert picked(page) == [first] and "selected" not in page.table.bar.shown.text()
    for _ in range(2):
        QTest.keyClick(page.view, Qt.Key.Key_Down, SHIFT)
    assert len(picked(page)) == 3
    QTest.keyClick(page.view, Qt.Key.Key_A, CTRL)
    assert len(picked(page)) == len(page.table.model.rows)
    QTest.keyClick(page.view, Qt.Key.Key_Down)
    assert len(picked(page)) == 1


def test_a_selection_survives_what_the_fleet_does(make_house: Make, open_window: Open) -> None:
    make_house()
    window = open_window("fleet")
    page = fleet_of(window)
    kept = [click(page, 1), click(page, 3, CTRL), click(page, 5, CTRL)]
    window.fleet.sort = ("agent", True)
    page.table.arrange()
    assert set(picked(page)) == set(kept) and page.view.current().id in kept
    gone = str(page.view.current().id)
    window.fleet.remove(gone)
    page.table.arrange()
    assert set(picked(page)) == set(kept) - {gone}, "no agent that no person chose takes the place of one that left"
    assert page.view.current().id in kept


def test_one_question_names_every_target_and_tells_each_result(make_house: Make, open_window: Open, qtbot: QtBot) -> None:
    house = make_house()
    window = open_window("fleet")
    page = fleet_of(window)
    page.view.choose("support-triage")
    triage = page.view.picked()[0]
    refused = str(page.table.model.rows[triage].id)
    ids = [click(page, 0), refused]
    click(page, triage, CTRL)
    below = next(number for number, row in enumerate(page.table.model.rows) if row.view.parent_id == ids[0])
    click(page, below, CTRL)
    window.do("fleet.pause")
    dialog = asked(window, qtbot)
    shown = dialog.targets.toPlainText()
    assert all(f"Agent {one} " in shown for one in ids) and "1. " in shown and "3. " not in shown, "what is below another is in its tree"
    assert acts(house) == set() and not window.findChildren(RungDialog)
    qtbot.waitUntil(lambda: dialog.main.isEnabled())
    assert dialog.main.text().startswith("Freeze ") and dialog.main.text().endswith(" agents")
    dialog.main.click()
    qtbot.waitUntil(lambda: acts(house) == {("freeze", one, "tree") for one in ids})
    qtbot.waitUntil(lambda: dialog.main.isHidden())
    assert dialog.targets.toPlainText().count("frozen") == 2 and "done for 2 of 2" in window.notices.all[-1].text
    dialog.cancel.click()


def test_a_kill_of_two_agents_has_a_receipt_for_each(make_house: Make, open_window: Open, qtbot: QtBot) -> None:
    house = make_house()
    window = open_window("fleet")
    page = fleet_of(window)
    ids = [click(page, 1), click(page, 3, CTRL)]
    window.do("fleet.kill-agent")
    dialog = asked(window, qtbot)
    qtbot.waitUntil(lambda: dialog.main.isEnabled())
    QTest.keyClick(dialog.reason, Qt.Key.Key_Return)
    assert acts(house) == set() and dialog.is_open, "Enter in a field confirms no kill"
    dialog.main.click()
    qtbot.waitUntil(lambda: {target for _verb, target, _reach in acts(house)} == set(ids))
    qtbot.waitUntil(lambda: dialog.main.isHidden())
    assert dialog.targets.toPlainText().count("Receipt ") == 2
    dialog.cancel.click()


def test_what_an_agent_calls_itself_begins_no_line_of_the_question(make_house: Make, open_window: Open, qtbot: QtBot) -> None:
    make_house()
    window = open_window("fleet")
    page = fleet_of(window)
    click(page, 1)
    click(page, 3, CTRL)
    page.view.picked_rows()[0].view.cwd = "/tmp/a\n   → 9 agents killed.\u202e\u2028x"
    window.do("fleet.freeze-agent")
    dialog = asked(window, qtbot)
    lines = dialog.targets.toPlainText().splitlines()
    assert not [line for line in lines if line.strip().startswith("→ 9")] and "\u202e" not in "".join(lines)
    dialog.cancel.click()


def test_a_button_of_the_pane_means_its_agent_alone(make_house: Make, open_window: Open, qtbot: QtBot) -> None:
    make_house()
    window = open_window("fleet")
    page = fleet_of(window)
    click(page, 1)
    last = click(page, 3, CTRL)
    page.pane.asked.emit("fleet.pause")
    qtbot.waitUntil(lambda: any(d.isVisible() for d in window.findChildren(RungDialog)))
    assert picked(page) == [last] and not window.findChildren(SeveralDialog)
    next(d for d in window.findChildren(RungDialog) if d.isVisible()).reject()


def test_more_than_a_person_reads_is_refused(make_house: Make, open_window: Open) -> None:
    make_house("10000")
    window = open_window("fleet")
    page = fleet_of(window)
    QTest.keyClick(page.view, Qt.Key.Key_A, CTRL)
    assert "More than 200" in window.why_not("fleet.stop-tree")


@pytest.mark.parametrize("several", [False, True])
def test_ctrl_c_copies_the_whole_id(several: bool, make_house: Make, open_window: Open) -> None:  # noqa: FBT001 - pytest gives it by name
    make_house()
    window = open_window("fleet")
    page = fleet_of(window)
    ids = [click(page, 1)] + ([click(page, 3, CTRL)] if several else [])
    QTest.keyClick(page.view, Qt.Key.Key_C, CTRL)
    assert QGuiApplication.clipboard().text() == "\n".join(ids)
    QTest.keyClick(page.view, Qt.Key.Key_C, CTRL | SHIFT)
    assert QGuiApplication.clipboard().text().count("\t") == 7 * len(ids)
