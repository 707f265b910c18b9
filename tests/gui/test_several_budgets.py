"""Several rows of the Budgets page: limits of all with one question, pause and kill as one order; and who counts as over."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from console.gui.pages.budgets.limits import LimitsDialog
from console.gui.pages.budgets.page import BudgetsPage
from console.gui.pages.budgets.several import SeveralLimitsDialog
from console.gui.pages.kill_switch.rung import RungDialog
from console.gui.widgets.reading import TargetsView
from console.gui.window.main import Window
from tests.fakes.budget_routes import FakeBudgets
from tests.fakes.operator_server import FakeHouse

Make = Callable[..., FakeHouse]
Open = Callable[..., Window]
CTRL = Qt.KeyboardModifier.ControlModifier


@pytest.fixture
def books(make_house: Make) -> FakeBudgets:
    return make_house("mockup").supervisor.budgets


def selected(window: Window, *keys: str) -> BudgetsPage:
    """The page with these lines selected, as by Ctrl and a click."""
    page = window.page
    assert isinstance(page, BudgetsPage)
    for number, line in enumerate(page.list.model.rows):
        if line.key in keys:
            first = len(page.list.picked()) < 2 and line.key == keys[0]
            at = page.view.visualRect(page.view.model().index(number, 0)).center()
            QTest.mouseClick(page.view.viewport(), Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier if first else CTRL, at)
    assert len(page.list.picked()) == len(keys)
    return page


def limits(window: Window) -> SeveralLimitsDialog:
    return next(one for one in window.findChildren(SeveralLimitsDialog) if one.isVisible())


def sent(books: FakeBudgets) -> list[tuple[str, str, dict[str, float], list[str], str]]:
    return [(one["scope"], one["key"], one["limits"], one["clear"], one["reason"]) for one in books.log if not one["dry_run"]]


def test_limits_of_several_are_set_with_one_question(books: FakeBudgets, open_window: Open, qtbot: QtBot) -> None:
    window = open_window("budgets")
    page = selected(window, "tree:support-triage", "tree:data-sync")
    assert page.list.shown.text().startswith("2 selected · ")
    QTest.keyClick(page.view, Qt.Key.Key_L)
    dialog = limits(window)
    dialog.fields["cost_usd"].setText("200")
    dialog.fields["tokens"].setText("none")
    dialog.reason.setText("ticket 12")
    assert not dialog.main.isEnabled() and not sent(books)
    qtbot.waitUntil(dialog.main.isEnabled)
    shown = " ".join(dialog.targets.toPlainText().split())
    assert "tree support-triage" in shown and "cost: $160.00 → $200.00" in shown and "cost: $80.00 → $200.00" in shown
    assert dialog.main.text() == "Set limits of 2" and dialog.sentence.text() == "It halts no agent now."
    dialog.main.click()
    qtbot.waitUntil(lambda: len(sent(books)) == 2)
    assert sent(books) == [("tree", name, {"cost_usd": 200.0}, ["tokens"], "ticket 12") for name in ("support-triage", "data-sync")]
    qtbot.waitUntil(lambda: [one.text for one in window.notices.all][-1:] == ["Limits of 2 of 2 set."])


def test_whom_it_halts_is_named_and_counted_once(books: FakeBudgets, open_window: Open, qtbot: QtBot) -> None:
    window = open_window("budgets")
    books.halts, books.cannot_stop = ["refund-drafter"], ["docs-gardener"]
    selected(window, "tree:support-triage", "agent:refund-drafter").do("budgets.limits")
    dialog = limits(window)
    dialog.fields["cost_usd"].setText("1")
    qtbot.waitUntil(lambda: dialog.main.text() == "Set, and halt 1 agent")
    assert "refund-drafter" in dialog.whom.accessibleName() and "only observed: goes on" in dialog.whom.accessibleName()
    dialog.fields["cost_usd"].setText("1x")
    assert "is no number" in dialog.sentence.text() and not dialog.main.isEnabled() and not dialog.whom.accessibleName()
    dialog.reject()


def test_a_refusal_is_told_with_its_target(books: FakeBudgets, open_window: Open, qtbot: QtBot) -> None:
    window = open_window("budgets")
    selected(window, "tree:support-triage", "tree:data-sync").do("budgets.limits")
    dialog = limits(window)
    dialog.fields["wall_s"].setText("12h")
    dialog.reason.setText("r")
    qtbot.waitUntil(dialog.main.isEnabled)
    books.refused = "The disk is full."
    dialog.main.click()
    qtbot.waitUntil(lambda: dialog.sentence.text() == "Limits of 0 of 2 set.")
    assert "data-sync: The disk is full." in dialog.whom.accessibleName() and not dialog.main.isVisible()
    assert window.notices.all[-1].level == "amber"
    dialog.reject()


def test_what_was_confirmed_is_sent_though_the_dialog_is_closed(books: FakeBudgets, open_window: Open, qtbot: QtBot) -> None:
    window = open_window("budgets")
    selected(window, "tree:support-triage", "tree:data-sync").do("budgets.limits")
    dialog = limits(window)
    dialog.fields["cost_usd"].setText("300")
    dialog.reason.setText("r")
    qtbot.waitUntil(dialog.main.isEnabled)
    dialog.main.click()
    dialog.reject()
    qtbot.waitUntil(lambda: len(sent(books)) == 2)
    qtbot.waitUntil(lambda: [one.text for one in window.notices.all][-1:] == ["Limits of 2 of 2 set."])


def test_several_trees_are_killed_by_one_order(make_house: Make, open_window: Open, qtbot: QtBot) -> None:
    house = make_house("mockup")
    window = open_window("budgets")
    page = selected(window, "tree:support-triage", "agent:refund-drafter", "tree:data-sync")
    page.do("budgets.stop-tree")
    dialog = next(one for one in window.findChildren(RungDialog) if one.isVisible())
    shown = dialog.findChildren(TargetsView)[0].toPlainText()
    assert "Agent support-triage" in shown and "Agent data-sync" in shown and "refund-drafter" not in shown, "it is in the other's tree"
    qtbot.waitUntil(lambda: dialog.preview is not None)
    dialog.main.click()
    qtbot.waitUntil(lambda: [(verb, target) for verb, target, _ in house.supervisor.log] == [("kill", "support-triage,data-sync")])


def test_a_button_of_the_pane_means_its_row_alone(books: FakeBudgets, open_window: Open) -> None:
    window = open_window("budgets")
    page = selected(window, "tree:support-triage", "tree:data-sync")
    page.pane.limits.click()
    assert len(page.list.picked()) == 1 and any(one.isVisible() for one in window.findChildren(LimitsDialog))


def test_agents_that_a_limit_halted_raise_no_badge(make_house: Make, open_window: Open, qtbot: QtBot) -> None:
    house = make_house("mockup")
    for name in ("cve-lookup", "licence-scan"):
        house.supervisor.agents[name] = house.supervisor.agents[name].replaced(state="halted", ended_at=time.time() - 60)
    window = open_window("budgets")
    page = window.page
    assert isinstance(page, BudgetsPage)
    badge = page.badge()
    assert badge is not None and (badge.words, badge.kind) == ("4", "warn"), "above 75 %; of the 2 that are over none lives"
    qtbot.waitUntil(lambda: "Over 0. " in page.list.head.accessibleName())
    assert "2 agents were halted at a limit" in page.list.head.accessibleName()
