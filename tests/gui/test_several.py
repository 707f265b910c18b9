"""Several agents are selected, asked about once with every target in full, and stopped by one order."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from console.gui.models.fleet import Fleet, Row
from console.gui.pages.fleet.acts import FleetActs
from console.gui.pages.fleet.page import FleetPage
from console.gui.pages.kill_switch.rung import RungDialog
from console.gui.pages.kill_switch.rung_words import refusals, targets_of
from console.gui.widgets.reading import PlainView
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


def asked(window: Window, qtbot: QtBot) -> RungDialog:
    """The question, once its preview has come."""
    qtbot.waitUntil(lambda: any(d.isVisible() for d in window.findChildren(RungDialog)))
    found = next(d for d in window.findChildren(RungDialog) if d.isVisible())
    qtbot.waitUntil(lambda: "…" not in found.sentence.text())
    return found


def targets(dialog: RungDialog) -> PlainView:
    return next(iter(dialog.findChildren(PlainView)))


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


def test_one_question_names_every_target_and_sends_one_order(make_house: Make, open_window: Open, qtbot: QtBot) -> None:
    house = make_house()
    window = open_window("fleet")
    page = fleet_of(window)
    page.view.choose("support-triage")
    triage = page.view.picked()[0]
    ids = [click(page, 0), str(page.table.model.rows[triage].id)]
    click(page, triage, CTRL)
    below = next(number for number, row in enumerate(page.table.model.rows) if row.view.parent_id == ids[0])
    click(page, below, CTRL)
    window.do("fleet.pause")
    dialog = asked(window, qtbot)
    shown = targets(dialog).toPlainText()
    assert all(f"Agent {one} " in shown for one in ids) and "1. " in shown and "3. " not in shown, "what is below another is in its tree"
    assert acts(house) == set() and dialog.title.text() == "Freeze 2 agents and all below them?"
    assert dialog.preview is not None and dialog.main.text().startswith("Freeze ") and dialog.main.text().endswith(" agents")
    dialog.main.click()
    qtbot.waitUntil(lambda: acts(house) == {("freeze", ",".join(ids), "tree")})
    qtbot.waitUntil(lambda: not dialog_open(window))
    assert " agents frozen" in window.notices.all[-1].text


def test_a_kill_of_two_agents_is_one_order_with_one_receipt(make_house: Make, open_window: Open, qtbot: QtBot) -> None:
    house = make_house()
    window = open_window("fleet")
    page = fleet_of(window)
    ids = [click(page, 1), click(page, 3, CTRL)]
    window.do("fleet.kill-agent")
    dialog = asked(window, qtbot)
    assert dialog.main.text() == "Kill 2 agents"
    QTest.keyClick(dialog.reason, Qt.Key.Key_Return)
    assert acts(house) == set() and dialog.is_open, "Enter in a field confirms no kill"
    dialog.main.click()
    qtbot.waitUntil(lambda: not dialog_open(window))
    assert house.supervisor.log == [("kill", ",".join(ids), {"reach": "agent", "reason": ""})], "one order"
    qtbot.waitUntil(lambda: window.strip.notice is not None and bool(window.strip.notice.receipt))


def test_what_an_agent_calls_itself_begins_no_line_of_the_question(make_house: Make, open_window: Open, qtbot: QtBot) -> None:
    make_house()
    window = open_window("fleet")
    page = fleet_of(window)
    click(page, 1)
    click(page, 3, CTRL)
    page.view.picked_rows()[0].view.cwd = "/tmp/a\n   → 9 agents killed.\u202e\u2028x"
    page.view.picked_rows()[1].view.cwd = "/" + " ".join(f"{'x' * pad} → 9 agents killed. 2. agent" for pad in range(1, 40)) + "\u6f22" * 90
    window.do("fleet.freeze-agent")
    dialog = asked(window, qtbot)
    lines = targets(dialog).toPlainText().splitlines()
    blocks = [targets(dialog).document().findBlockByNumber(number) for number in range(len(lines))]
    assert all(block.layout().lineCount() <= 1 for block in blocks), "the view wraps no line by itself"
    assert not [line for line in lines if re.match(r" {0,6}→ 9| {0,6}2\. agent", line)] and "\u202e" not in "".join(lines)
    dialog.cancel.click()


def test_a_button_of_the_pane_means_its_agent_alone(make_house: Make, open_window: Open, qtbot: QtBot) -> None:
    make_house()
    window = open_window("fleet")
    page = fleet_of(window)
    click(page, 1)
    last = click(page, 3, CTRL)
    page.pane.asked.emit("fleet.pause")
    qtbot.waitUntil(lambda: any(d.isVisible() for d in window.findChildren(RungDialog)))
    dialog = next(d for d in window.findChildren(RungDialog) if d.isVisible())
    assert picked(page) == [last] and not dialog.findChildren(PlainView)
    dialog.reject()


def test_more_than_a_person_reads_is_refused(make_house: Make, open_window: Open) -> None:
    make_house("10000")
    window = open_window("fleet")
    page = fleet_of(window)
    QTest.keyClick(page.view, Qt.Key.Key_A, CTRL)
    assert "More than 200" in window.why_not("fleet.stop-tree")


@pytest.mark.parametrize("several", [False, True])
def test_ctrl_c_copies_the_rows_and_ctrl_shift_c_the_whole_ids(several: bool, make_house: Make, open_window: Open) -> None:  # noqa: FBT001 - pytest gives it by name
    make_house()
    window = open_window("fleet")
    page = fleet_of(window)
    ids = [click(page, 1)] + ([click(page, 3, CTRL)] if several else [])
    QTest.keyClick(page.view, Qt.Key.Key_C, CTRL)
    assert QGuiApplication.clipboard().text().count("\t") == 7 * len(ids)
    QTest.keyClick(page.view, Qt.Key.Key_C, CTRL | SHIFT)
    assert QGuiApplication.clipboard().text() == "\n".join(ids)


def two_asked(window: Window, qtbot: QtBot, action: str = "fleet.freeze-agent") -> RungDialog:
    """The question about the second and the fourth row."""
    page = fleet_of(window)
    click(page, 1)
    click(page, 3, CTRL)
    window.do(action)
    qtbot.waitUntil(lambda: dialog_open(window))
    return next(d for d in window.findChildren(RungDialog) if d.isVisible())


def dialog_open(window: Window) -> bool:
    return any(d.isVisible() for d in window.findChildren(RungDialog))


def test_a_preview_that_hangs_holds_up_no_stop(make_house: Make, open_window: Open, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("console.gui.pages.kill_switch.rung.AGAIN_MS", 100)
    house = make_house()
    window = open_window("fleet")
    house.supervisor.stops.hanging = {str(fleet_of(window).table.model.rows[3].id)}
    dialog = two_asked(window, qtbot, "fleet.kill-agent")
    qtbot.waitUntil(dialog.main.isEnabled)
    assert dialog.main.text() == "Kill without a preview" and dialog.sentence._role == "warn"
    qtbot.waitUntil(lambda: window.pages["fleet"].desk.requests.in_flight < 5)  # one preview at a time: they do not pile up
    house.supervisor.stops.hanging = set()
    qtbot.waitUntil(lambda: dialog.main.text() == "Kill 2 agents")
    dialog.main.click()
    qtbot.waitUntil(lambda: len(acts(house)) == 1)


def test_nothing_is_loosened_while_a_preview_hangs(
    make_house: Make, open_window: Open, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("console.gui.pages.kill_switch.rung.AGAIN_MS", 50)
    house = make_house()
    for agent in list(house.supervisor.agents.values()):
        house.supervisor.agents[agent.id] = agent.replaced(causes=["operator"])
    window = open_window("fleet")
    house.supervisor.stops.hanging = {str(fleet_of(window).table.model.rows[3].id)}
    dialog = two_asked(window, qtbot, "fleet.thaw-agent")
    qtbot.waitUntil(dialog.problem.isVisible)
    assert not dialog.main.isEnabled()
    house.supervisor.stops.hanging = set()
    qtbot.waitUntil(dialog.main.isEnabled)
    assert dialog.main.text() == "Resume 2 agents"
    dialog.reject()


def test_who_was_left_alone_is_not_done(make_house: Make, open_window: Open, qtbot: QtBot) -> None:
    house = make_house()
    window = open_window("fleet")
    second = str(fleet_of(window).table.model.rows[3].id)
    dialog = two_asked(window, qtbot)
    qtbot.waitUntil(dialog.main.isEnabled)
    house.supervisor.agents[second] = house.supervisor.agents[second].replaced(control_level="observed")
    dialog.main.click()
    qtbot.waitUntil(lambda: not dialog_open(window))
    assert window.notices.all[-1].text == "1 agent frozen. 1 agent left alone." and window.notices.all[-1].level == "amber"


def acts_on(make_house: Make, open_window: Open, fleet: str = "mockup", **changed: dict[str, object]) -> tuple[Window, FleetActs]:
    """A window on a fleet in which some agents are otherwise."""
    house = make_house(fleet)
    for name, update in changed.items():
        agent_id = name.replace("_", "-")
        house.supervisor.agents[agent_id] = house.supervisor.agents[agent_id].replaced(**update)
    window = open_window("fleet")
    return window, fleet_of(window).acts


def test_no_agent_is_lost_where_parents_lead_in_a_circle(make_house: Make, open_window: Open) -> None:
    window, acts = acts_on(make_house, open_window, "40")
    for name, parent in (("a-1", "a-2"), ("a-2", "a-1"), ("a-3", "a-2")):
        window.fleet.upsert(window.fleet.rows[name].view.replaced(parent_id=parent))
    for ids, kept in (
        (["a-1", "a-2", "a-20"], {"a-1", "a-20"}),
        (["a-3", "a-1", "a-20"], {"a-1", "a-20"}),
        (["a-3", "a-20"], {"a-3", "a-20"}),
        (["a-12", "a-13", "a-20"], {"a-12"}),
        (["a-13", "a-20", "a-12"], {"a-12"}),
    ):
        targets = targets_of(acts.scope_of([window.fleet.rows[one] for one in ids], "tree"))
        assert set(targets) == kept, ids
        covered = {row.id for target in targets for row in window.fleet.tree(target)}
        assert covered >= {row.id for one in ids for row in window.fleet.tree(one)}, "none that was selected is left out"


def test_a_row_without_a_session_is_not_dropped_silently(make_house: Make, open_window: Open) -> None:
    window, acts = acts_on(make_house, open_window, data_sync={"session": ""})
    rows = [window.fleet.rows[name] for name in ("support-triage", "data-sync")]
    assert acts.why_not(rows, "fleet.kill-session", None) == "1 of 2 agents selected: no session."
    assert acts.why_not(rows[1:], "fleet.kill-session", None) == "It has no session." and not acts.why_not(rows, "fleet.kill-agent", None)
    acts.act(rows, "fleet.kill-session")
    assert not window.findChildren(RungDialog)
    assert window.notices.all[-1].text == "1 of 2 agents selected: no session."


def test_the_bound_counts_what_a_person_reads(make_house: Make, open_window: Open) -> None:
    window, acts = acts_on(make_house, open_window, "900")
    rows = list(window.fleet.rows.values())
    refused = {reach: acts.why_not(rows, f"fleet.kill-{reach}", None) for reach in ("agent", "tree", "session", "host")}
    assert "More than 200 agents" in refused["agent"] and "More than 200 agents" in refused["tree"]
    assert "More than 200 sessions" in refused["session"] and not refused["host"]
    assert not acts.why_not(rows[:590], "fleet.kill-session", None), "197 sessions"
    acts.act(rows, "fleet.kill-host")
    question = next(d for d in window.findChildren(RungDialog) if d.isVisible())
    assert question.title.text() == "Kill everything on this host?"
    question.reject()


def test_a_menu_of_many_looks_at_each_agent_once_for_each_reach(
    make_house: Make, open_window: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged: list[int] = []
    walked: list[str] = []

    def counting(rows: list[Row], *, killed: bool) -> dict[str, str]:
        judged.append(len(rows))
        return refusals(rows, killed=killed)

    def walking(fleet: Fleet, agent_id: str) -> list[Row]:
        walked.append(agent_id)
        return tree(fleet, agent_id)

    tree = Fleet.tree
    window, acts = acts_on(make_house, open_window, "10000")
    monkeypatch.setattr("console.gui.pages.fleet.acts.refusals", counting)
    monkeypatch.setattr(Fleet, "tree", walking)
    rows = [window.fleet.rows[f"a-{number}"] for number in range(200)]
    menu = acts.menu(rows, None)
    assert [one.text() for one in menu.actions()][:4] == [
        "200 agents alone",
        "17 agents and all below them",
        "67 sessions",
        "everything on this host",
    ]
    assert judged == [200, 204, 201, 10_000] and len(walked) < 200
    menu.deleteLater()
