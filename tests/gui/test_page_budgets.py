"""The Budgets page against the stand-in supervisor: what ends first, limits with a reason, pictures, and what is not known."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from console.api import budgets as b
from console.api.messages import AgentView
from console.gui.pages.budgets.forecast import ForecastDialog
from console.gui.pages.budgets.head import BudgetHead, counts, forecast_words, passes_words
from console.gui.pages.budgets.limits import LimitsDialog
from console.gui.pages.budgets.page import BudgetsPage
from console.gui.pages.fleet.header import FleetHeader
from console.gui.pages.kill_switch.rung import RungDialog
from console.gui.theme import style
from console.gui.theme.tokens import DARK, LIGHT
from console.gui.widgets.safe_text import is_plain
from console.gui.window.main import Window
from tests.fakes import budget_routes as canned
from tests.fakes import gui_fixture as fixture
from tests.fakes.budget_routes import FakeBudgets
from tests.fakes.operator_server import FakeHouse

House = Callable[..., FakeHouse]
Opener = Callable[..., Window]


def page_of(window: Window) -> BudgetsPage:
    assert isinstance(window.page, BudgetsPage)
    return window.page


def key(where: QWidget, code: Qt.Key) -> None:
    QTest.keyClick(where, code)


def names(page: BudgetsPage) -> list[str]:
    return [line.name for line in page.list.model.rows]


@pytest.fixture
def books(make_house: House) -> FakeBudgets:
    return make_house("mockup").supervisor.budgets


def dialog(page: BudgetsPage, kind: type[QWidget], qtbot: QtBot) -> QWidget:
    def found() -> list[QWidget]:
        return [d for d in page.window().findChildren(kind) if d.isVisible()]

    qtbot.waitUntil(lambda: bool(found()))
    return found()[0]


def limits_of(page: BudgetsPage, qtbot: QtBot) -> LimitsDialog:
    page.do("budgets.limits")
    opened = dialog(page, LimitsDialog, qtbot)
    assert isinstance(opened, LimitsDialog)
    qtbot.waitUntil(lambda: bool(opened.caps))
    return opened


# --- what is shown ------------------------------------------------------------------------------------------------------


def test_what_ends_first_stands_on_top_and_there_are_other_orders(books: FakeBudgets, open_window: Opener, qtbot: QtBot) -> None:
    page = page_of(open_window("budgets"))
    assert names(page)[:4] == ["support-triage", "refund-drafter", "release-captain", "linux-arm64"]
    model = page.list.model
    assert [model.words(1, at) for at in (1, 2)] == ["3 min", "cost"]
    assert "98% of the nearest limit; $19.64 of $20.00" in model.words(1, 3)
    assert "unpriced" in model.words(4, 0) and "what has no price" in model.words(4, 3)
    assert page.list.shown.text() == "7 trees · 3 agents that end first"
    badge = page.badge()
    assert badge is not None and (badge.words, badge.kind) == ("2", "danger")
    assert page.pictures.height() == 330, "the list is as high as ten rows of the mock-up"

    whole = len(names(page))
    page.view.setFocus()
    key(page.view, Qt.Key.Key_Left)
    assert len(names(page)) == whole - 1 and page.list.current() is not None
    key(page.view, Qt.Key.Key_Right)
    page.list.search.setText("wall")
    assert names(page) == ["release-captain", "linux-arm64"], "the tree stays above the agent that is found"
    page.list.search.setText("no such thing")
    assert page.list.empty.isVisible() and "No row matches the filter" in page.list.empty.text()
    page.list.search.clear()

    page.list.pills.pills["spend"].click()
    qtbot.waitUntil(lambda: names(page)[:1] == ["support-triage"] and names(page)[2:4] == ["data-sync", "backfill-worker"])
    assert any(asked.startswith("page spend") for asked in books.asked)
    page.list.turn("project")
    assert names(page) == ["Projects", "/srv/shop", "north", "Sessions", "ctx-000a", "shop"]
    assert page.list.model.headerData(0, Qt.Orientation.Horizontal) == "Project or session"
    qtbot.waitUntil(lambda: page.pane.name.text() == "/srv/shop")
    assert "Choose" in page.why_not("budgets.stop-tree") and not page.pane.stop.isEnabled()
    key(page.view, Qt.Key.Key_O)
    assert names(page) == ["2026-11-18"]


def test_the_fleets_head_says_the_days_cap_as_the_budgets_have_it(books: FakeBudgets, open_window: Opener, qtbot: QtBot) -> None:
    window = open_window("fleet")
    [head] = window.page.findChildren(FleetHeader) if window.page is not None else []
    qtbot.waitUntil(lambda: head.accessibleName().endswith("of $600.00 for the day"))
    window.goto("budgets", "")
    shown = page_of(window)
    qtbot.waitUntil(lambda: books.view is not None)
    view = books.view
    assert view is not None
    books.view = view.replaced(totals=view.totals.replaced(day_cap_usd=None))
    qtbot.waitUntil(lambda: shown.list.data is not None and shown.list.data.totals.day_cap_usd is None)
    window.goto("fleet", "")
    qtbot.waitUntil(lambda: head.accessibleName().endswith("no limit for the day"))


def test_the_detail_says_every_limit_who_spends_and_who_changed_it(books: FakeBudgets, open_window: Opener, qtbot: QtBot) -> None:
    books.changes = [
        b.BudgetChange(
            at=time.time(), scope="tree", key="support-triage", limit="cost_usd", old=120, new=160, by="operator:0", reason="ticket peak"
        )
    ]
    page = page_of(open_window("budgets"))
    pane = page.pane
    assert "Cost: $118.90 of $160.00, 74% used. ends in 1 h 55 min at $21.30/h" in pane.gauges.lines[0].accessibleName()
    assert "Processor time, no limit" in pane.open.accessibleName()
    assert "refund-drafter $19.64 over budget" in pane.spenders.accessibleName() and "42 others $67.21" in pane.spenders.accessibleName()
    assert "root (uid 0): cost 120 → 160, ticket peak" in pane.changes.accessibleName() and pane.changes_of.text() == "last 1 of 1"
    assert "stopped at once" in pane.at_full.text()
    page.view.choose("agent:backfill-worker")
    qtbot.waitUntil(lambda: pane.view is not None and pane.view.row.key == "backfill-worker")
    assert "after the fact" in pane.metered.text()
    page.view.choose("tree:support-triage")
    qtbot.waitUntil(lambda: pane.view is not None and pane.view.row.key == "support-triage")

    key(page.view, Qt.Key.Key_F)
    forecast = dialog(page, ForecastDialog, qtbot)
    assert isinstance(forecast, ForecastDialog)
    assert "Cost: $118.90 of $160.00" in forecast.node.accessibleName() and "between $690.00 and $930.00" in forecast.day.accessibleName()
    forecast.reject()
    key(page.view, Qt.Key.Key_X)
    stop = dialog(page, RungDialog, qtbot)
    assert isinstance(stop, RungDialog) and stop._action == "kill" and stop._scope.target == "support-triage"
    stop.reject()
    qtbot.waitUntil(lambda: not stop.is_open)
    page.pane.pause.click()
    pause = dialog(page, RungDialog, qtbot)
    assert isinstance(pause, RungDialog) and pause._action == "freeze" and pause._scope.reach == "tree"
    pause.reject()


def test_nothing_of_one_node_is_left_beside_the_name_of_another(books: FakeBudgets, open_window: Opener, qtbot: QtBot) -> None:
    pane = page_of(open_window("budgets")).pane
    assert pane.open.accessibleName() and pane.at_full.text()
    pane.show_row("agent:other", b.BudgetRow(scope="agent", key="other"))
    said = (pane.open, pane.at_full, pane.changes, pane.changes_of, pane.spenders)
    assert pane.name.text() == "other" and [part.accessibleName() for part in said] == [""] * 5


def test_a_day_of_which_nothing_is_read_is_not_said_to_have_cost_nothing(qtbot: QtBot) -> None:
    head = BudgetHead()
    qtbot.addWidget(head)
    for spent, note, words in ((0.0, "", "$0.00"), (0.0, "2 agents: spend unknown, in no sum", "unknown"), (1.5, "2 agents", "$1.50")):
        head.say(b.BudgetTotals(spend_today_usd=spent), note)
        assert f"spend today {words}," in head.accessibleName()


def test_old_figures_are_never_green(qtbot: QtBot) -> None:
    head, totals = BudgetHead(), b.BudgetTotals(within=3)
    qtbot.addWidget(head)
    assert [shape for _, _, shape, role in counts(totals) if role == "ok"] == ["dot"]
    head.say(totals)
    fresh = head.grab().toImage()
    head.fail("")
    assert head.grab().toImage() != fresh and all(role != "ok" for *_, role in counts(totals, old=True))
    head.say(totals)
    assert head.grab().toImage() == fresh


def test_limits_are_not_sent_before_it_is_known_what_they_do(books: FakeBudgets, open_window: Opener, qtbot: QtBot) -> None:
    opened = limits_of(page_of(open_window("budgets")), qtbot)
    books.refused = "Not now."
    opened.fields["cost_usd"].setText("100")
    opened.reason.setText("ticket 12")
    assert not opened.main.isEnabled() and "not known yet" in opened.missing()
    qtbot.waitUntil(lambda: "Not now." in opened.sentence.text())
    assert not opened.main.isEnabled(), "whom it halts is not known"
    books.refused, books.halts = "", ["support-triage"]
    opened.fields["cost_usd"].setText("99")
    qtbot.waitUntil(lambda: opened.main.text() == "Set, and halt 1 agent")
    opened.pills.pills["day"].click()
    assert (opened.main.text(), opened.whom.accessibleName(), opened.would) == ("Set limits", "", None), "that was somebody else's"
    opened.reject()


def test_a_forecast_without_agents_is_no_less_than_what_was_spent() -> None:
    shown = [forecast_words(value) for value in (None, 0.001, 11.69, 412.8, 2.5e6)]
    assert shown == ["not known", "<$0.01", "$11.69", "$412", "$2.5 M"]


def test_a_measured_overshoot_is_said() -> None:
    from console.gui.pages.budgets.detail import overshoot_words

    row = b.BudgetRow(scope="agent", key="a", metered="after the fact", overshoot=0.42, overshoot_limit="cost_usd")
    assert overshoot_words(row).endswith("It had passed its limit on cost by $0.42, measured.")


def test_at_1024_the_detail_opens_and_closes_with_enter(books: FakeBudgets, open_window: Opener, qtbot: QtBot) -> None:
    page = page_of(open_window("budgets", (1024, 700)))
    assert not page.pane.isVisible() and page.pictures.height() < 200
    charts = page.pictures.models
    assert "C: " in charts.of(300.0) and charts.of(3.0) == "", "what a low window has no room for is a key away, and says so"
    key(page.view, Qt.Key.Key_Return)
    assert page.pane.isVisible()
    key(page.view, Qt.Key.Key_Escape)
    assert not page.pane.isVisible()
    key(page.view, Qt.Key.Key_C)
    qtbot.waitUntil(page.pictures.windows.isVisible)
    assert not page.list.isVisible()
    key(page, Qt.Key.Key_C)
    assert page.list.isVisible()


def test_hostile_names_are_shown_literally(make_house: House, open_window: Opener) -> None:
    make_house("hostile")
    page = page_of(open_window("budgets"))
    for number, line in enumerate(page.list.model.rows[:60]):
        assert line.key and all(is_plain(page.list.model.words(number, at)) for at in range(6))
    shown = [page.pane.name, page.pane.note, page.list.head, page.pictures.models, page.pictures.burn]
    assert all(is_plain(part.accessibleName()) for part in shown)
    running = QApplication.instance()
    assert isinstance(running, QApplication)
    for size, theme in (((1440, 900), LIGHT), ((1024, 700), DARK)):
        page.window().resize(*size)
        style.apply(running, theme)
        assert not page.window().grab().isNull()


def test_ten_thousand_agents_are_read_a_part_at_a_time(make_house: House, open_window: Opener, qtbot: QtBot) -> None:
    books = make_house("1").supervisor.budgets
    parents = {n: None if n % 12 == 0 else f"a-{n - n % 12}" for n in range(10_000)}
    books.view = canned.many((AgentView(id=f"a-{n}", name=f"agent-{n:05d}", parent_id=p) for n, p in parents.items()), time.time())
    page = page_of(open_window("budgets"))
    assert page.list.data is not None and len(page.list.data.trees) == 100 and page.list.shown.text() == "834 trees"
    assert names(page)[-1].startswith("734 more trees")
    page.list.search.setText("agent-0")
    qtbot.waitUntil(lambda: page.list.data is not None and len(page.list.data.trees) == 500)
    assert names(page)[-1] == "334 more trees, not searched"
    assert "page time 500" in books.asked


# --- what is not there --------------------------------------------------------------------------------------------------


def test_without_any_limit_it_says_how_to_set_one(make_house: House, open_window: Opener) -> None:
    house = make_house("200")
    house.supervisor.budgets.view = canned.many(fixture.many_agents(200), time.time(), capped=False)
    page = page_of(open_window("budgets"))
    assert (
        page.list.hint.isVisible()
        and page.list.hint.text().startswith("No limits set")
        and "watchfloor budget set" in page.list.hint.text()
    )
    assert page.list.model.words(0, 1) == "no limit, no limit is set"
    assert page.pane.no_limits.isVisible()


def test_nobody_yet(make_house: House, open_window: Opener, qtbot: QtBot) -> None:
    make_house("0")
    page = page_of(open_window("budgets"))
    assert "before anything starts" in page.list.empty.text() and not page.pane.isVisible()
    assert "no projection" in page.pictures.burn.accessibleName()
    assert "not available, because Claude Code's own files" in page.pictures.windows.accessibleName()
    opened = limits_of(page, qtbot)
    assert opened.target.scope == "day", "a limit can be set before anything runs"
    opened.reject()


def test_a_supervisor_that_cannot_say_is_no_zero(books: FakeBudgets, open_window: Opener, qtbot: QtBot) -> None:
    page = page_of(open_window("budgets"))
    books.broken = "The ledger cannot be read."
    page._read_all()
    page.pictures.look(time.time(), again=True)
    qtbot.waitUntil(lambda: "the figures are old" in page.list.head.accessibleName())
    qtbot.waitUntil(lambda: page.pictures.burn.accessibleName().endswith("because the ledger cannot be read."))
    qtbot.waitUntil(page.pane.problem.isVisible)
    assert names(page), "what was read stays, and is called old"
    second = open_window("budgets", wait=False)
    other = page_of(second)
    qtbot.waitUntil(lambda: "because the ledger cannot be read" in other.list.empty.text() and other.list.empty.isVisible())


def test_numbers_that_are_none_break_nothing(make_house: House, open_window: Opener, qtbot: QtBot) -> None:
    house = make_house("1")
    wild = b.BudgetRow(scope="tree", key="a-0", name="a", share=1e300, spent_usd=1e300, cap_usd=0.0, ends_in_s=1e300, burn_60=[1e300, -1.0])
    totals = b.BudgetTotals(spend_today_usd=1e300, day_cap_usd=0.0, forecast_usd=1e300, passes_cap_at=1e300, burn_60=[0.0])
    house.supervisor.budgets.view = b.BudgetsView(totals=totals, trees=[b.TreeBudget(tree=wild)])
    burn = b.DayBurn(since=-1e300, slice_s=0, usd_per_h=[1e300, -4.0], projected_usd_per_h=1e300, high_usd_per_h=1e308)
    models = [b.ModelDay(day="x" * 50, model="m", cost_usd=1e300), b.ModelDay(day="2026-11-18", model="", cost_usd=-5)]
    windows = [b.WindowView(program="p", window="w", share=1e300, renews_at=1e300)]
    house.supervisor.budgets.drawn = b.BudgetPictures(burn=burn, models=models, windows=windows)
    page = page_of(open_window("budgets"))
    assert page.list.model.words(0, 3).startswith(">999% of the nearest limit; >$1 T")
    for size in ((1440, 900), (1024, 700), (800, 560)):
        page.window().resize(*size)
        assert not page.window().grab().isNull()


# --- what is done -------------------------------------------------------------------------------------------------------


def test_a_limit_needs_a_reason_and_says_first_what_it_would_do(books: FakeBudgets, open_window: Opener, qtbot: QtBot) -> None:
    books.halts, books.cannot_stop = ["support-triage", "refund-drafter"], ["sentiment"]
    page = page_of(open_window("budgets"))
    opened = limits_of(page, qtbot)
    assert opened.fields["cost_usd"].text() == "160" and opened.fields["wall_s"].text() == "24h"
    assert "Nothing differs" in opened.missing()
    opened.fields["cost_usd"].setText("100")
    opened.fields["iterations"].setText("")
    opened.fields["step_s"].setText("10m")
    qtbot.waitUntil(lambda: opened.would is not None)
    assert opened.main.text() == "Set, and halt 2 agents" and not opened.main.isEnabled()
    said = opened.whom.accessibleName()
    assert "cost: $160.00 → $100.00 lowered" in said and "iterations: 400 → no limit cleared" in said
    assert "refund-drafter halted at once" in said and "sentiment only observed: goes on" in said
    assert [x["dry_run"] for x in books.log] == [True] and "reason" in opened.missing()
    opened.reason.setText("ticket 12")
    opened.main.click()
    qtbot.waitUntil(lambda: not books.log[-1]["dry_run"])
    sent = books.log[-1]
    assert (sent["scope"], sent["key"], sent["reason"]) == ("tree", "support-triage", "ticket 12")
    assert sent["limits"] == {"cost_usd": 100.0, "step_s": 600.0} and sent["clear"] == ["iterations"]
    qtbot.waitUntil(lambda: "of $100.00" in page.pane.gauges.lines[0].accessibleName())


def test_what_is_no_limit_is_never_sent_a_refusal_is_shown_and_a_name_may_come_later(
    books: FakeBudgets, open_window: Opener, qtbot: QtBot
) -> None:
    page = page_of(open_window("budgets"))
    opened = limits_of(page, qtbot)
    opened.reason.setText("r")
    for typed, why in (("abc", "no number"), ("-1", "zero or more"), ("inf", "zero or more"), ("nan", "zero or more"), ("1e40", "beyond")):
        opened.fields["tokens"].setText(typed)
        assert why in opened.missing() and not opened.main.isEnabled() and why in opened.sentence.text()
        opened._send()
        assert books.log == [] and why in opened.problem.text()
    opened.reject()
    qtbot.waitUntil(lambda: not opened.is_open)
    books.refused = ""

    opened = limits_of(page, qtbot)
    opened.fields["cost_usd"].setText("200")
    opened.reason.setText("more")
    qtbot.waitUntil(lambda: opened.would is not None)
    books.refused = "Nothing can be recorded."
    opened.main.click()
    qtbot.waitUntil(lambda: "Nothing can be recorded." in opened.problem.text())
    assert opened.isVisible() and opened.main.isEnabled() and opened.fields["cost_usd"].text() == "200"
    opened.reject()
    qtbot.waitUntil(lambda: not opened.is_open)
    books.refused = ""

    opened = limits_of(page, qtbot)
    opened.pills.pills["named"].click()
    assert "Name the session" in opened.missing()
    opened.kinds.pills["type"].click()
    opened.named.setText("claude-code")
    opened.named.editingFinished.emit()
    qtbot.waitUntil(lambda: bool(opened.caps))
    opened.fields["cost_usd"].setText("5")
    opened.reason.setText("all of them")
    qtbot.waitUntil(opened.main.isEnabled)
    opened.main.click()
    qtbot.waitUntil(lambda: books.log[-1]["scope"] == "type" and not books.log[-1]["dry_run"])
    assert (books.log[-1]["scope"], books.log[-1]["key"], books.log[-1]["limits"]) == ("type", "claude-code", {"cost_usd": 5.0})


def test_killed_means_no_change(make_house: House, open_window: Opener, qtbot: QtBot) -> None:
    house = make_house("mockup")
    page = page_of(open_window("budgets"))
    house.on_loop(house.guard.press_now)
    qtbot.waitUntil(lambda: page.desk.switch.is_killed)
    page.on_models()
    assert "rearm" in page.why_not("budgets.limits") and not page.pane.limits.isEnabled()


def test_without_an_agent_that_runs_nothing_burns_and_no_limit_is_passed() -> None:
    totals = b.BudgetTotals(day_cap_usd=400.0, spend_today_usd=120.0, spending=0, burn_usd_per_h=0.0, forecast_usd=120.0)
    assert passes_words(totals) == "no agent runs"
    assert "passes" in passes_words(totals.replaced(spending=3, passes_cap_at=time.time()))
