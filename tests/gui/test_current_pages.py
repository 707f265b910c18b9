"""Every page by itself: a figure that is not told any more is marked as old, and spend that nothing reads is no zero."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import pytest
from PySide6.QtCore import QEvent, QRect
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from console.api import budgets as b
from console.api.messages import AgentView, StatusView
from console.api.policy.approvals import ApprovalRow, ApprovalsView
from console.domain.headline import headline_of
from console.domain.kill import Outcome, Target
from console.gui.models import switch as switch_model
from console.gui.pages.approvals.book import Book
from console.gui.pages.approvals.page import ApprovalsPage
from console.gui.pages.audit.chain import Known, chain_words, is_overdue
from console.gui.pages.budgets.page import BudgetsPage
from console.gui.pages.budgets.rows import Line, cell_words
from console.gui.pages.fleet import rows as fleet_rows
from console.gui.pages.fleet.page import FleetPage
from console.gui.pages.receipt import page as receipt_module
from console.gui.pages.receipt.head import headline
from console.gui.pages.receipt.page import ReceiptPage
from console.gui.widgets.banner import BannerStep
from console.gui.widgets.held_order import HeldOrder
from console.gui.widgets.rows import Column, RowModel, RowView
from console.gui.window.main import Window
from console.panic.guard_state import GuardState
from tests.fakes import gui_fixture as fixture
from tests.fakes.operator_server import FakeHouse

Make = Callable[..., FakeHouse]
Open = Callable[..., Window]


# --- a receipt ------------------------------------------------------------------------------------------------------------


def receipt_page(window: Window, qtbot: QtBot) -> ReceiptPage:
    window.goto("receipt", "k-0036")
    page = window.page
    assert isinstance(page, ReceiptPage)
    qtbot.waitUntil(lambda: page.is_ready() and page.head.headline.kind == "proven")
    return page


@pytest.mark.parametrize("is_told", [True, False])
def test_a_receipt_in_front_follows_what_the_guard_finds_out_later(
    is_told: bool, make_house: Make, open_window: Open, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tree's kill, which does not latch: its return watch finds a process after the receipt was opened. Told by the stream, or read."""
    house = make_house()
    whole = replace(fixture.receipt(fixture.mockup_agents()[:3], proven=True, kill_id="k-0036"), scope="release-captain")
    house.supervisor.receipts["k-0036"] = whole
    monkeypatch.setattr(receipt_module, "AGAIN_S", 3600.0 if is_told else 0.5)
    page = receipt_page(open_window("fleet"), qtbot)
    found = Target(whole.targets[0].agent_id, "managed", Outcome.NOT_PROVEN, None, {"pid": 7})
    amended = replace(whole, targets=(*whole.targets, found), verified_zero=False)
    if is_told:
        house.on_loop(lambda: house.supervisor.tell("kill", {"state": "killing", "kill_id": "k-0036", "receipt": amended.as_json()}))
    else:
        house.supervisor.receipts["k-0036"] = amended
    qtbot.waitUntil(lambda: page.head.headline.kind == "doubt" and "NOT PROVEN" in page.head.headline.text)


def test_a_return_watch_that_is_over_is_not_said_to_watch() -> None:
    receipt = replace(fixture.receipt(fixture.mockup_agents()[:1], proven=True), watch_until=1000.0)
    assert "watching until" in headline_of(receipt) and "watching until" in headline_of(receipt, 999.0)
    assert "Return watch: ended at" in headline_of(receipt, 1001.0)
    shown = headline(receipt, GuardState(), (), 1001.0)
    assert "ended at" in shown.text and "watching" not in shown.text


# --- the inbox ------------------------------------------------------------------------------------------------------------


def ask(name: str, left_s: float, rank: int) -> ApprovalRow:
    given = {"id": name, "agent_id": "a", "tool": "shell", "argument": name, "rule": "r", "reason": "", "digest": name, "group": name}
    return ApprovalRow.read({**given, "asked_at": 0.0, "left_s": left_s, "state": "waiting", "scope": "", "danger_rank": rank})


def test_the_worst_danger_stands_first_in_the_inbox_though_others_end_sooner() -> None:
    book = Book()
    book.take(ApprovalsView(waiting=[ask("ls", 5, 9), ask("push", 50, 4), ask("rm", 90, 1), ask("drop", 80, 1)]), 0.0)
    assert [item.first.row.id for item in book.items("", set())] == ["drop", "rm", "push", "ls"]
    assert [entry.row.id for entry in book.waiting()] == ["drop", "rm", "push", "ls"]


def test_an_inbox_that_is_not_read_does_not_say_that_nothing_waits(make_house: Make, open_window: Open, qtbot: QtBot) -> None:
    house = make_house("0")
    window = open_window("approvals")
    page = window.page
    assert isinstance(page, ApprovalsPage) and page.inbox.empty.text().startswith("No pending approvals")
    house.supervisor.approvals.unread = "The list of requests cannot be read."
    page._read()
    qtbot.waitUntil(lambda: page.inbox.head.problem.startswith("Not known: The list"))
    qtbot.waitUntil(lambda: page.inbox.empty.text().startswith("Pending approvals are not known now"))
    house.supervisor.approvals.unread = ""
    qtbot.waitUntil(lambda: page.inbox.empty.text().startswith("No pending approvals") and not page.inbox.head.problem)


# --- budgets and spend ----------------------------------------------------------------------------------------------------


def test_budgets_that_are_not_answered_are_old_though_the_supervisor_answers(
    make_house: Make, open_window: Open, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_house("mockup")
    window = open_window("budgets")
    page = window.page
    assert isinstance(page, BudgetsPage) and not page.list.head._note
    monkeypatch.setattr(page, "_read", lambda: None)  # the question hangs
    monkeypatch.setattr(switch_model, "BEHIND_S", 0.5)
    qtbot.waitUntil(lambda: page.list.head._old and page.list.head.accessibleName().startswith("stale since"))
    monkeypatch.undo()
    page._read()
    qtbot.waitUntil(lambda: not page.list.head._old and "spend today" in page.list.head.accessibleName())


def test_spend_that_nothing_reads_is_unknown_in_rows_and_sums(make_house: Make, open_window: Open, qtbot: QtBot) -> None:
    row = b.BudgetRow(scope="tree", key="a", unpriced=True, burn_usd_per_h=0.0, share=0.2)
    assert "; unknown, no limit on cost" in cell_words(Line(row), "spent") and cell_words(Line(row), "burn") == "unknown"
    priced = row.replaced(unpriced=False)
    assert "$0.00" in cell_words(Line(priced), "spent") and cell_words(Line(priced), "burn") == "$0.00/h"
    house = make_house("0")
    unread = AgentView(id="a-1", name="gemini", session="c", state="running", cost_usd=None, cost_unknown="no source reads it")
    house.supervisor.agents["a-1"] = unread
    house.supervisor.agents["a-2"] = unread.replaced(id="a-2", state="ended", ended_at=time.time())
    house.supervisor.agents["a-3"] = unread.replaced(id="a-3", state="ended", ended_at=time.time() - 2 * 86400)
    window = open_window("fleet")
    page = window.page
    assert isinstance(page, FleetPage)
    window.fleet.spend_today_usd = window.fleet.burn_usd_per_h = 0.0
    qtbot.waitUntil(lambda: "spend today unknown" in page.table.header.accessibleName())
    assert "2 agents unknown" in page.table.header.accessibleName()
    assert fleet_rows.cell_words(window.fleet.rows["a-1"], "burn") == "unknown"
    window.goto("budgets", "")
    budgets = window.page
    assert isinstance(budgets, BudgetsPage)
    qtbot.waitUntil(lambda: "2 agents: spend unknown, in no sum" in budgets.list.head.accessibleName())


# --- the log --------------------------------------------------------------------------------------------------------------


def test_records_that_are_not_verified_in_time_turn_the_tick_amber(make_house: Make, open_window: Open) -> None:
    known = Known(True, 9, at=1000.0)
    assert chain_words(known, 12, 1050.0)[2:] == ("check", "ok")
    assert chain_words(known, 12, 1100.0)[2:] == ("triangle", "warn")
    assert chain_words(known, 9, 9000.0)[2:] == ("check", "ok"), "nothing new: it stays verified"
    assert not is_overdue(Known(True, 1_000_000, at=1000.0), 1_000_009, 3000.0), "a long log takes longer"
    make_house("0")
    window = open_window("fleet")
    now = time.time()
    status = {"audit_whole": True, "audit_lost": False, "audit_records": 12, "audit_verified": 9}
    assert window.switch.status is not None
    for ago, is_bad in ((30, False), (120, True)):
        said: StatusView = window.switch.status.replaced(**{**status, "audit_checked_at": now - ago})
        window.switch.take_status(said, now)
        window.state._seal(window.switch, now)
        assert window.status._bad is is_bad


# --- the fleet's list -----------------------------------------------------------------------------------------------------


def test_at_800_an_agent_can_be_told_by_its_name(make_house: Make, open_window: Open) -> None:
    make_house("hostile")
    page = open_window("fleet", (800, 560)).page
    assert isinstance(page, FleetPage)
    assert page.view.columnWidth(0) >= 160
    assert not page.grab().isNull()


def test_no_row_moves_under_the_pointer(make_house: Make, open_window: Open, qtbot: QtBot) -> None:
    """Sorted by cost, an agent passes the one that is aimed at: the click hits what was seen, and the change is announced."""
    house = make_house("0")
    for number in range(6):
        agent = AgentView(id=f"a-{number}", name=f"agent {number}", session="c", state="running", cost_usd=10.0 - number)
        house.supervisor.agents[agent.id] = agent
    window = open_window("fleet")
    page = window.page
    assert isinstance(page, FleetPage)
    page.table.view.sort_asked.emit("cost")
    assert [row.id for row in page.table.model.rows][0] == "a-0"
    page.table._held.aimed_at = lambda: 0  # type: ignore[method-assign]
    aimed = page.view.visualRect(page.table.model.index(0, 0)).center()
    dearer = house.supervisor.agents["a-5"].replaced(cost_usd=99.0)
    house.on_loop(lambda: house.supervisor.upsert(dearer))
    qtbot.waitUntil(page.table.bar.moved.isVisible)
    assert page.table.model.rows[page.view.indexAt(aimed).row()].id == "a-0", "what is under the pointer stays there"
    assert window.fleet.rows["a-5"].view.cost_usd == 99.0, "its figures go on"
    page.table._held.aimed_at = lambda: -1  # type: ignore[method-assign]
    QApplication.sendEvent(page.view.viewport(), QEvent(QEvent.Type.Leave))
    qtbot.waitUntil(lambda: page.table.model.rows[0].id == "a-5" and not page.table.bar.moved.isVisible())


def test_a_selected_row_holds_the_order_and_new_agents_are_seen_all_the_same(make_house: Make, open_window: Open, qtbot: QtBot) -> None:
    house = make_house("0")
    for number in range(4):
        agent = AgentView(id=f"a-{number}", name=f"agent {number}", session="c", state="running", cost_usd=10.0 - number)
        house.supervisor.agents[agent.id] = agent
    window = open_window("fleet")
    page = window.page
    assert isinstance(page, FleetPage)
    page.table.view.sort_asked.emit("cost")

    def order() -> list[str]:
        return [row.id for row in page.table.model.rows]

    def cost(agent_id: str, usd: float) -> None:
        dearer = house.supervisor.agents[agent_id].replaced(cost_usd=usd)
        house.on_loop(lambda: house.supervisor.upsert(dearer))

    cost("a-3", 50.0)
    qtbot.waitUntil(lambda: order() == ["a-3", "a-0", "a-1", "a-2"])  # the first row was selected by no person
    assert page.view.choose("a-1")
    cost("a-2", 99.0)
    qtbot.waitUntil(page.table.bar.moved.isVisible)
    assert order() == ["a-3", "a-0", "a-1", "a-2"]
    newest = AgentView(id="a-9", name="runaway", session="c", state="running", cost_usd=200.0)
    house.on_loop(lambda: house.supervisor.upsert(newest))
    qtbot.waitUntil(lambda: order() == ["a-3", "a-0", "a-1", "a-2", "a-9"])
    window.do("fleet.arrange")
    assert order() == ["a-9", "a-2", "a-3", "a-0", "a-1"] and not page.table.bar.moved.isVisible()
    assert page.view.current().id == "a-1"


def test_agents_that_start_are_seen_though_the_pointer_is_over_the_list(make_house: Make, open_window: Open, qtbot: QtBot) -> None:
    """Whoever opens the window first and starts the agents then has the pointer in the middle of an empty list."""
    house = make_house("0")
    first = AgentView(id="a-1", name="first", session="c", state="running", control_level="managed")
    house.supervisor.agents[first.id] = first
    page = open_window("fleet").page
    assert isinstance(page, FleetPage)
    qtbot.waitUntil(lambda: [row.id for row in page.table.model.rows] == ["a-1"])

    def start(agent_id: str, parent: str = "") -> None:
        agent = AgentView(id=agent_id, name=agent_id, session="c", state="running", control_level="managed", parent_id=parent or None)
        house.on_loop(lambda: house.supervisor.upsert(agent))

    page.view.viewport().underMouse = lambda: True  # type: ignore[method-assign]
    assert page.table._held.aimed_at() == -1, "over none of the rows"
    start("a-2")
    qtbot.waitUntil(lambda: [row.id for row in page.table.model.rows] == ["a-1", "a-2"])
    page.table._held.aimed_at = lambda: 0  # type: ignore[method-assign]
    start("a-3", "a-1")
    qtbot.waitUntil(lambda: [row.id for row in page.table.model.rows] == ["a-1", "a-3", "a-2"])
    page.table._held.aimed_at = lambda: 2  # type: ignore[method-assign]
    start("a-4", "a-1")
    qtbot.waitUntil(page.table.bar.moved.isVisible)
    rows = page.table.model.rows
    assert [row.id for row in rows] == ["a-1", "a-3", "a-2", "a-4"], "no row moves, and none is hidden"
    assert [row.indent for row in rows] == [0, 1, 0, 0], "what stands apart from its parent is nobody else's child"
    assert [fleet_rows.beside_name(row) for row in rows] == ["", "", "", "child of first"]
    start("a-5", "a-4")
    qtbot.waitUntil(lambda: [row.indent for row in page.table.model.rows] == [0, 1, 0, 0, 1])
    page.table._held.aimed_at = lambda: -1  # type: ignore[method-assign]
    qtbot.waitUntil(lambda: [row.id for row in page.table.model.rows] == ["a-1", "a-3", "a-4", "a-5", "a-2"])
    assert [(row.indent, fleet_rows.beside_name(row)) for row in page.table.model.rows] == [(0, ""), (1, ""), (1, ""), (2, ""), (0, "")]


def test_budgets_and_inbox_hold_still_under_the_pointer(qtbot: QtBot) -> None:
    """Their lines are new objects with every answer: those that stay show the newest figures, in the old order."""
    model = RowModel((Column("name", "Name"),), lambda row, _key: str(row))
    view = RowView(model, lambda _canvas, _row: None, lambda row: str(row[0]))
    qtbot.addWidget(view)
    held = HeldOrder(view, model, lambda row: str(row[0]))
    told: list[bool] = []
    held.released.connect(lambda: told.append(True))
    held.show([("a", 1), ("b", 1)])
    held.aimed_at = lambda: 0  # type: ignore[method-assign]
    held.show([("c", 2), ("b", 2), ("a", 2)])
    assert model.rows == [("a", 2), ("b", 2), ("c", 2)] and held.moved, "what is new stands below, where it moves nothing"
    held.show([("b", 3)])
    assert model.rows == [("a", 2), ("b", 3), ("c", 2)] and held.moved, "what has gone stands there until the pointer leaves"
    QApplication.sendEvent(view.viewport(), QEvent(QEvent.Type.Leave))
    assert told == [True]
    held.ask()
    held.show([("c", 4), ("a", 4)])
    assert model.rows == [("c", 4), ("a", 4)] and not held.moved


@pytest.mark.parametrize("size", [(800, 560), (1440, 900)])
def test_no_banner_and_no_notice_moves_the_page(size: tuple[int, int], make_house: Make, open_window: Open, qtbot: QtBot) -> None:
    make_house("mockup")
    window = open_window("fleet", size)
    window.state.refresh = lambda: None  # type: ignore[method-assign]

    def place() -> QRect:
        QApplication.processEvents()
        return QRect(window.stack.mapTo(window, window.stack.rect().topLeft()), window.stack.size())

    before = place()
    steps = tuple(
        BannerStep(name, "", "waiting") for name in ("Latch", "Refuse", "Signal", "Zero", "Second look", "Rotate", "Remote", "Evidence")
    )
    window.banner.show_killing("Kill active", "All agents", steps, "0.42 s")
    assert window.banner.isVisible() and place() == before
    assert not window.banner.geometry().intersects(window.plate.geometry())
    window.banner.show_latched("Panic", "2 min ago")
    window.notices.say("red", "11 agents halted")
    window.old.say("Stale since 12:03:10: the supervisor has not answered for 11 s.")
    assert place() == before
    assert window.strip.isVisible() and window.old.isVisible() and not window.strip.geometry().intersects(window.old.geometry())
    assert window.strip.width() >= window.strip.words_width() and window.old.width() > 100
    window.notices.say("amber", "The supervisor is silent: its agents are frozen until it is back.")
    QApplication.processEvents()
    assert window.strip.width() >= window.strip.words_width() and "frozen" in window.strip.accessibleName()
    assert window.old.width() >= window.old.least_width()
    assert window.foot.rect().contains(window.strip.geometry()) and window.foot.rect().contains(window.old.geometry())


def test_what_a_person_asks_for_is_arranged_under_the_pointer_too(make_house: Make, open_window: Open, qtbot: QtBot) -> None:
    make_house("mockup")
    page = open_window("fleet").page
    assert isinstance(page, FleetPage)
    page.table._held.aimed_at = lambda: 0  # type: ignore[method-assign]
    page.table.view.sort_asked.emit("agent")
    names = [row.name.lower() for row in page.table.model.rows if not row.indent]
    assert names == sorted(names, reverse=True)
    page.table.bar.search.setText("cve-lookup")
    assert page.table.model.rows[-1].name == "cve-lookup" and not page.table.bar.moved.isVisible()


def test_a_change_that_moves_no_row_is_not_announced(make_house: Make, open_window: Open, qtbot: QtBot) -> None:
    """While a filter is typed every new figure may change the order: only one that does is worth a word."""
    house = make_house("mockup")
    window = open_window("fleet")
    page = window.page
    assert isinstance(page, FleetPage)
    page.table._held.aimed_at = lambda: 0  # type: ignore[method-assign]
    page.table.bar.search.setText("cve-lookup")
    dearer = house.supervisor.agents["cve-lookup"].replaced(cost_usd=99.0)
    house.on_loop(lambda: house.supervisor.upsert(dearer))
    qtbot.waitUntil(lambda: window.fleet.rows["cve-lookup"].view.cost_usd == 99.0 and not window.fleet.structure_changed)
    qtbot.waitUntil(lambda: not page.table.bar.moved.isVisible())
