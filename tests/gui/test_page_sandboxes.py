"""Sandboxes on the network page and the history in the fleet's pane, against the stand-in supervisor."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from PySide6.QtCore import QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QHelpEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLabel, QToolTip, QWidget
from pytestqt.qtbot import QtBot

from console.api.messages import Delta, EgressView
from console.gui.pages.fleet.egress_lines import KEPT, SHOWN
from console.gui.pages.fleet.page import FleetPage
from console.gui.pages.network.page import NetworkPage
from console.gui.pages.network.ratchet import StricterDialog
from console.gui.widgets.safe_text import is_plain
from console.gui.window.main import Window
from tests.fakes.gui_fixture import HOSTILE_NAMES
from tests.fakes.operator_server import FakeHouse
from tests.fakes.sandbox_routes import change, history

House = Callable[..., FakeHouse]
Opener = Callable[..., Window]


def sandboxes(window: Window) -> NetworkPage:
    window.goto("network", "sandboxes")
    assert isinstance(window.page, NetworkPage)
    return window.page


def fleet(window: Window) -> FleetPage:
    assert isinstance(window.page, FleetPage)
    return window.page


def dialog_of(window: Window, qtbot: QtBot) -> StricterDialog:
    qtbot.waitUntil(lambda: any(d.isVisible() for d in window.findChildren(StricterDialog)))
    return next(d for d in window.findChildren(StricterDialog) if d.isVisible())


def texts(widget: QWidget) -> str:
    return " | ".join(label.text() for label in widget.findChildren(QLabel) if label.isVisibleTo(widget))


@pytest.mark.parametrize("number", [0, 1, 200])
def test_one_row_for_each_living_agent(number: int, make_house: House, open_window: Opener, qtbot: QtBot) -> None:
    make_house(str(number))
    page = sandboxes(open_window("network"))
    box = page.tabs.sandboxes
    assert len(box.model.rows) == number and box.empty.isVisible() == (number == 0)
    qtbot.waitUntil(lambda: page.tabs.bar.tabs.pills["sandboxes"].text() == f"Sandboxes {number}")
    if number:
        assert box.view.current() is box.model.rows[0] and {r.view.sandbox for r in box.model.rows} <= {"docker", "none"}


def test_ten_thousand_rows_are_filtered_sorted_and_painted_within_a_frame_or_two(
    make_house: House, open_window: Opener, qtbot: QtBot
) -> None:
    make_house("10000")
    window = open_window("network")
    page = sandboxes(window)
    qtbot.waitUntil(lambda: len(page.tabs.sandboxes.model.rows) == 10_000)
    began = time.thread_time()
    for text in ("docker none", ""):
        page.tabs.bar.search.setText(text)
    for key in ("why", "agent", "since"):
        page.tabs.sandboxes.view.sort_asked.emit(key)
    for _ in range(10):
        page.tabs.sandboxes.view.viewport().repaint()
    assert time.thread_time() - began < 4
    assert len(page.tabs.sandboxes.model.rows) == 10_000
    assert page.tabs.sandboxes.model.rows[0].view.network_since >= page.tabs.sandboxes.model.rows[-1].view.network_since


def test_what_is_not_enforceable_says_because_of_what(make_house: House, open_window: Opener, qtbot: QtBot) -> None:
    make_house("mockup")
    page = sandboxes(open_window("network"))
    QTest.keyClick(page.tabs.sandboxes.view, Qt.Key.Key_Slash)
    page.tabs.bar.search.setText("not enforced")
    [row] = page.tabs.sandboxes.model.rows
    assert row.id == "infra-janitor" and page.tabs.bar.shown.text() == "1 of 213 shown"
    why = [c.key for c in page.tabs.sandboxes.model.columns].index("why")
    assert page.tabs.sandboxes.model.words(0, why).startswith("PROXIED is not enforceable here, because it shares the host's network")
    QTest.keyClick(page.tabs.bar.search, Qt.Key.Key_Escape)
    assert len(page.tabs.sandboxes.model.rows) == 213 and page.tabs.sandboxes.view.hasFocus()


def test_by_keyboard_a_session_is_switched_once_a_reason_is_there(make_house: House, open_window: Opener, qtbot: QtBot) -> None:
    house = make_house("mockup")
    boxes = house.supervisor.boxes
    window = open_window("network")
    page = window.page
    assert isinstance(page, NetworkPage)
    assert page.why_not("network.stricter") == "The sandboxes are not shown (S)."
    QTest.keyClick(page.tabs.view, Qt.Key.Key_S)
    page.tabs.sandboxes.view.choose("inbox-reader")
    assert page.keys()[1] == ("Enter", "switch stricter…")
    QTest.keyClick(page.tabs.sandboxes.view, Qt.Key.Key_R)
    dialog = dialog_of(window, qtbot)
    qtbot.waitUntil(lambda: dialog.sentence.text() == "1 agent will be switched.")
    assert not dialog.main.isEnabled() and [b.dry_run for b in boxes.asked] == [True]
    assert "Portals are closed" in texts(dialog) and "never loosened" in texts(dialog) and "keep working" in texts(dialog)
    QTest.keyClicks(dialog.reason, "odd traffic")
    assert dialog.main.isEnabled()
    dialog.main.click()
    qtbot.waitUntil(lambda: not dialog_is_open(window))
    sent = boxes.asked[-1]
    assert (sent.scope.target, sent.mode, sent.reason, sent.dry_run) == ("inbox-reader", "NONE", "odd traffic", False)
    qtbot.waitUntil(lambda: window.fleet.rows["inbox-reader"].view.network_mode == "NONE")
    assert page.why_not("network.stricter") == "It has no network: there is nothing stricter."
    page.do("network.sandboxes")
    assert page.tabs.bar.tabs.chosen() == "list"


def dialog_is_open(window: Window) -> bool:
    return any(d.isVisible() for d in window.findChildren(StricterDialog))


def test_refusals_and_what_nothing_would_hold_are_told_before_and_after(make_house: House, open_window: Opener, qtbot: QtBot) -> None:
    house = make_house("mockup")
    boxes = house.supervisor.boxes
    boxes.open_ends = {"infra-janitor": "it shares the host's network"}
    window = open_window("network")
    page = sandboxes(window)
    page.tabs.sandboxes.view.choose("infra-janitor")
    row = page.tabs.sandboxes.view.current()
    act = [c.key for c in page.tabs.sandboxes.model.columns].index("act")
    page.tabs.sandboxes.view.pressed_at.emit(row, QPointF(page.tabs.sandboxes.view.columnViewportPosition(act) + 5, 20))
    dialog = dialog_of(window, qtbot)
    qtbot.waitUntil(lambda: bool(dialog.doubts._facts))
    assert dialog.doubts._facts[0].left == "infra-janitor: it shares the host's network" and dialog.doubts._facts[0].left_role == "warn"
    dialog.reason.setText("x")
    boxes.refuse = (403, "Session s is in NONE: PROXIED is not stricter.")
    dialog.main.click()
    qtbot.waitUntil(dialog.problem.isVisible)
    assert "not stricter. Look at it again." in dialog.problem.text() and dialog.main.isEnabled()
    boxes.refuse = None
    dialog.main.click()
    qtbot.waitUntil(lambda: "0 of 1 agents verified" in dialog.sentence.text())
    assert dialog.isVisible() and not dialog.main.isVisible() and dialog.cancel.text() == "Close"
    assert window.strip.notice is not None and window.strip.notice.level == "amber"
    dialog.close()
    boxes.why_not = "Session s is in NONE already."
    page.do("network.stricter")
    dialog = dialog_of(window, qtbot)
    qtbot.waitUntil(lambda: dialog.problem.text() == "Session s is in NONE already.")
    dialog.reason.setText("x")
    assert not dialog.main.isEnabled()
    dialog.close()


def test_hostile_names_stay_visible_words(make_house: House, open_window: Opener, qtbot: QtBot) -> None:
    make_house("hostile")
    window = open_window("network")
    page = sandboxes(window)
    model = page.tabs.sandboxes.model
    assert len(model.rows) == len(HOSTILE_NAMES)
    for number in range(len(model.rows)):
        for column in range(len(model.columns)):
            assert is_plain(model.words(number, column)) and len(model.words(number, column)) <= 1000
    tip = model.data(model.index(0, 0), Qt.ItemDataRole.ToolTipRole)
    assert "&lt;b&gt;APPROVED&lt;/b&gt;" in tip
    assert page.why_not("network.stricter") == "It is only observed: nothing here can restrict it."
    page.tabs.sandboxes.view.viewport().repaint()


def test_the_pane_tells_how_the_session_came_to_its_mode(
    make_house: House, open_window: Opener, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    house = make_house("mockup")
    hostile = change(time.time() - 5, "operator", "NONE", by="operator:0", words="operator:0: <b>x</b>\u202egnp")
    seen = history("ctx-000a", time.time())
    house.supervisor.boxes.histories["ctx-000a"] = seen.replaced(changes=[hostile, *seen.changes[2:]], left_out=3)
    window = open_window("fleet")
    page = fleet(window)
    page.view.choose("support-triage")
    card = page.pane.modes
    qtbot.waitUntil(lambda: card.timeline.isVisible() and len(card.timeline._lines) == 4)
    assert "None" in card.timeline.accessibleName() and "\\u202e" in card.timeline.accessibleName()
    assert [part.kind for part in card.timeline._parts] == ["open", "open", "closed", "middle", "closed"]
    assert card.timeline._more == "and 3 earlier changes"
    shown: list[str] = []
    monkeypatch.setattr(QToolTip, "showText", lambda _at, text, _widget: shown.append(text))
    event = QHelpEvent(QEvent.Type.ToolTip, QPoint(30, 50), card.timeline.mapToGlobal(QPoint(30, 50)))
    QApplication.sendEvent(card.timeline, event)
    assert "&lt;b&gt;x&lt;/b&gt;\\u202e" in shown[0]
    assert card.timeline.tip_at(2, 5).startswith("FULL for ")
    assert card.timeline._ends[1] == "now"
    house.supervisor.boxes.histories["ctx-000a"] = seen.replaced(changes=[])
    changed = window.fleet.rows["support-triage"].view.replaced(network_mode="NONE")
    house.on_loop(lambda: house.supervisor.upsert(changed))
    qtbot.waitUntil(lambda: card.words.text() == "Nothing ever asked for a stricter mode.")
    page.view.choose("changelog-writer")
    qtbot.waitUntil(lambda: card.timeline._ends[1].startswith("ended "))
    house.supervisor.boxes.refuse_history = (500, "The ledger cannot be read.")
    page.view.choose("data-sync")
    qtbot.waitUntil(lambda: "The ledger cannot be read" in card.words.text())
    card._came(seen, "support-triage")  # an answer that was on its way when another agent was chosen
    assert not card.timeline.isVisible(), "another session's history stood in"


def test_the_panes_requests_are_live_newest_first_and_bounded(make_house: House, open_window: Opener, qtbot: QtBot) -> None:
    make_house("mockup")
    window = open_window("fleet")
    page = fleet(window)
    page.view.choose("support-triage")
    lines = page.pane.requests
    qtbot.waitUntil(lambda: len(lines.lines) == 5)
    page._poll.stop()
    rule = "no entry for GET <b>evil</b>.example"
    for number in range(300):
        view = EgressView(
            at=time.time() + number, agent_id="support-triage", method="GET", host="<b>evil</b>.example", path=f"/{number}",
            status=403, allowed=False, rule=rule,
        )  # fmt: skip
        page.handle(Delta(seq=number, kind="egress", data=view.as_data()))
    page.handle(Delta(seq=999, kind="egress", data=view.replaced(agent_id="data-sync", path="/other").as_data()))
    page.handle(Delta(seq=1000, kind="egress", data={"agent_id": "support-triage", "at": "never"}))
    assert len(lines.lines) == KEPT and lines.lines[0].view.path == "/299" and lines.height() == SHOWN * 34
    assert "GET <b>evil</b>.example/299: Blocked, HTTP 403. no entry for GET" in lines.accessibleName()
    page.view.choose("data-sync")
    assert not any(line.view.path == "/299" for line in lines.lines)
