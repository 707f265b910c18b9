"""After an approval the inbox offers a rule for exactly that call, on a key of its own; the Policy page lists it and removes it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from console.api.policy.rules import ExactOffer
from console.gui.pages.approvals import answers
from console.gui.pages.approvals.exact_rule import ExactRuleDialog
from console.gui.pages.approvals.page import ApprovalsPage
from console.gui.pages.fleet.page import FleetPage
from console.gui.pages.policy.page import PolicyPage, RemoveDialog
from console.gui.widgets.safe_text import is_plain
from console.gui.window.main import Window
from tests.fakes import approval_routes as fake
from tests.fakes.approval_routes import FakeApprovals
from tests.fakes.operator_server import FakeHouse

House = Callable[..., FakeHouse]
Opener = Callable[..., Window]
PLAIN, DANGEROUS = "ap-0003", "ap-0002"


@pytest.fixture
def desk(make_house: House) -> FakeApprovals:
    desk = make_house("0").supervisor.approvals
    desk.waiting = fake.mockup()
    desk.offer = ExactOffer(rule=fake.exact_rule(), recorded=2310, answered=12)
    return desk


def approve(window: Window, approval_id: str, qtbot: QtBot, *codes: Qt.Key) -> ApprovalsPage:
    page = window.page
    assert isinstance(page, ApprovalsPage) and page.inbox.view.choose(f"r:{approval_id}")
    qtbot.waitUntil(lambda: page.pane.case.is_read and page.why_not("approvals.once") == "")
    for code in codes:
        QTest.keyClick(page.inbox.view, code)
    qtbot.waitUntil(lambda: page.pane.countdown.gone == "approved once")
    return page


def test_an_approved_call_becomes_a_rule_on_a_key_of_its_own(desk: FakeApprovals, open_window: Opener, qtbot: QtBot) -> None:
    window = open_window("approvals")
    page = window.page
    assert isinstance(page, ApprovalsPage)
    assert page.why_not("approvals.exact") and not page.deciding.bar.rule.isVisible()
    approve(window, PLAIN, qtbot, Qt.Key.Key_A, Qt.Key.Key_A)
    assert page.deciding.bar.rule.isVisible() and "exactly this call" in page.deciding.bar.words.text()
    QTest.keyClick(page.inbox.view, Qt.Key.Key_A)
    assert desk.made == [] and not window.findChildren(ExactRuleDialog), "the approving key makes no rule"
    QTest.keyClick(page.inbox.view, Qt.Key.Key_X)
    dialog = next(one for one in window.findChildren(ExactRuleDialog) if one.isVisible())
    qtbot.waitUntil(lambda: dialog.main.isEnabled())
    assert "It would have answered 12 of 2,310 recorded calls in 14 days." in dialog.words.text() and "ctx-0003" in dialog.words.text()
    digest = page.book.decided[0].digest
    dialog.main.click()
    qtbot.waitUntil(lambda: len(desk.made) == 1)
    assert (desk.made[0][0], desk.made[0][1].digest) == (PLAIN, digest)
    qtbot.waitUntil(lambda: window.strip.notice is not None and "x-0123456789ab" in window.strip.notice.text)


def test_what_the_supervisor_refuses_is_said_and_cannot_be_made(desk: FakeApprovals, open_window: Opener, qtbot: QtBot) -> None:
    desk.offer = ExactOffer(why_not="it reads secrets")
    window = open_window("approvals")
    page = approve(window, PLAIN, qtbot, Qt.Key.Key_A, Qt.Key.Key_A)
    page.deciding.bar.rule.click()
    dialog = next(one for one in window.findChildren(ExactRuleDialog) if one.isVisible())
    qtbot.waitUntil(lambda: "it reads secrets" in dialog.words.text())
    assert not dialog.main.isEnabled()
    dialog.main.click()
    assert desk.made == []


def test_what_is_dangerous_is_offered_no_rule(desk: FakeApprovals, open_window: Opener, qtbot: QtBot) -> None:
    window = open_window("approvals")
    page = approve(window, DANGEROUS, qtbot, Qt.Key.Key_A, Qt.Key.Key_Y, Qt.Key.Key_Y)
    assert not page.deciding.bar.rule.isVisible() and "it publishes" in page.why_not("approvals.exact")
    QTest.keyClick(page.inbox.view, Qt.Key.Key_X)
    assert not window.findChildren(ExactRuleDialog)


def test_equal_questions_are_one_item_with_their_count(desk: FakeApprovals, open_window: Opener, qtbot: QtBot) -> None:
    equal = [fake.row(at, "shell", "make docs", agent_id=f"worker-{at}", root_id="builder") for at in (30, 31, 32)]
    other = [fake.row(at, "shell", f"make docs {at}", agent_id="x", root_id="other") for at in (40, 41)]
    desk.waiting = [*equal, *other]
    window = open_window("approvals")
    page = window.page
    assert isinstance(page, ApprovalsPage)
    assert [(len(item.entries), item.alike) for item in page.inbox.model.rows] == [(3, "equal"), (2, "similar")]
    assert ", 3 equal: " in page.inbox.model.words(0, 0)
    qtbot.waitUntil(lambda: page.pane.title.text().startswith("3 equal requests: "))
    qtbot.waitUntil(lambda: page.why_not("approvals.once") == "")
    QTest.keyClick(page.inbox.view, Qt.Key.Key_A)
    QTest.keyClick(page.inbox.view, Qt.Key.Key_A)
    qtbot.waitUntil(lambda: len(desk.log) == 1)
    assert {one.digest for one in desk.log[0].requests} == {row.digest for row in equal} and len({row.digest for row in equal}) == 3


def test_an_equal_request_that_arrives_later_asks_again(
    make_house: House, open_window: Opener, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answers, "HOLD_S", 2.0)
    house = make_house("0")
    asked = house.supervisor.approvals
    first, second, later = (fake.row(at, "shell", "make docs", agent_id=f"worker-{at}", root_id="builder") for at in (30, 31, 32))
    asked.waiting = [first, second]
    page = open_window("approvals").page
    assert isinstance(page, ApprovalsPage)
    qtbot.waitUntil(lambda: page.why_not("approvals.once") == "")
    QTest.keyClick(page.inbox.view, Qt.Key.Key_A)
    house.on_loop(lambda: asked.ask(later))
    qtbot.waitUntil(lambda: later.id in page.book.entries)
    assert page.deciding.answers.held, "it came while the answer to the others was held"
    qtbot.waitUntil(lambda: len(asked.log) == 1)
    assert [one.id for one in asked.log[0].requests] == [first.id, second.id]
    qtbot.waitUntil(lambda: not page.deciding.answers.sending)
    assert [entry.row.id for entry in page.book.waiting()] == [later.id]


def test_how_much_people_are_asked_stands_in_the_head(desk: FakeApprovals, open_window: Opener, qtbot: QtBot) -> None:
    desk.load = (2.44, 0.381)
    window = open_window("approvals")
    page = window.page
    assert isinstance(page, ApprovalsPage)
    words = "2.4 questions/h; a rule could answer 38%"
    qtbot.waitUntil(lambda: words in page.inbox.head.accessibleName())
    window.goto("fleet", "")
    fleet = window.page
    assert isinstance(fleet, FleetPage)
    qtbot.waitUntil(lambda: words in fleet.table.header.accessibleName())


def test_the_policy_page_lists_such_rules_and_removes_them(desk: FakeApprovals, open_window: Opener, qtbot: QtBot) -> None:
    desk.policy = desk.policy.replaced(exact=[fake.exact_rule("make \u202e test")])
    window = open_window("policy")
    page = window.page
    assert isinstance(page, PolicyPage)
    rules = page.tabs.rules
    row = rules.model.rows[-1]
    assert row.rule.startswith("exactly(shell make ") and row.hits == 7 and page.why_not("policy.remove")
    assert rules.view.choose(f"allow {row.rule} x-0123456789ab") and page.why_not("policy.remove") == ""
    told = " ".join(line.words for line in page.pane.lines.lines)
    assert is_plain(told) and "ctx-0003" in told and "until" in told and "uid 0" in told
    assert page.pane.isVisible() and page.pane.offers["policy.remove"].isVisible()
    page.pane.offers["policy.remove"].click()
    dialog = next(one for one in window.findChildren(RemoveDialog) if one.isVisible())
    dialog.reason.setText("no more")
    dialog.main.click()
    qtbot.waitUntil(lambda: len(desk.removed) == 1 and not [one for one in rules.model.rows if one.rule.startswith("exactly(")])
    assert (desk.removed[0].id, desk.removed[0].reason) == ("x-0123456789ab", "no more")
