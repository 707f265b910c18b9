"""Several requests are selected and denied together, after one question that names each in full; none is approved so."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from console.api.policy.approvals import ApprovalsView
from console.gui.pages.approvals.dialogs import DenyDialog
from console.gui.pages.approvals.page import ApprovalsPage
from console.gui.widgets.reading import TargetsView
from console.gui.window.main import Window
from tests.fakes import approval_routes as fake
from tests.fakes.approval_routes import FakeApprovals
from tests.fakes.operator_server import FakeHouse

Make = Callable[..., FakeHouse]
Open = Callable[..., Window]
CTRL, SHIFT = Qt.KeyboardModifier.ControlModifier, Qt.KeyboardModifier.ShiftModifier


@pytest.fixture
def waiting(make_house: Make) -> FakeApprovals:
    house = make_house("0")
    house.supervisor.approvals.waiting = fake.mockup()
    return house.supervisor.approvals


def page_of(window: Window) -> ApprovalsPage:
    assert isinstance(window.page, ApprovalsPage)
    return window.page


def click(page: ApprovalsPage, number: int, keys: Qt.KeyboardModifier = Qt.KeyboardModifier.NoModifier) -> None:
    at = page.inbox.view.visualRect(page.inbox.view.model().index(number, 0)).center()
    QTest.mouseClick(page.inbox.view.viewport(), Qt.MouseButton.LeftButton, keys, at)


def asked(window: Window) -> list[DenyDialog]:
    return [one for one in window.findChildren(DenyDialog) if one.isVisible()]


def test_selected_requests_are_denied_together_after_one_question(waiting: FakeApprovals, open_window: Open, qtbot: QtBot) -> None:
    window = open_window("approvals")
    page = page_of(window)
    group = next(number for number, item in enumerate(page.inbox.model.rows) if item.is_group)
    click(page, 1)
    click(page, group, CTRL)
    qtbot.waitUntil(lambda: page.why_not("approvals.deny") == "")
    assert "13 requests are selected" in page.deciding.bar.words.text() and page.pane.buttons["approvals.deny"].text() == "Deny 13…"
    QTest.keyClick(page.inbox.view, Qt.Key.Key_D)
    (dialog,) = asked(window)
    assert dialog.title.text() == "Deny 13 requests of 2 agents?" and dialog.main.text() == "Deny 13 requests"
    shown = " ".join(dialog.findChildren(TargetsView)[0].toPlainText().split())
    assert "/etc/ssl/old/*.pem" in shown and all(f"customer-{at}@example.com" in shown for at in range(12))
    dialog.main.click()
    assert not waiting.log and page.book.entries["ap-0001"].held == "Denial held", "it can be taken back for 5 s"
    QTest.keyClick(page.inbox.view, Qt.Key.Key_Z)
    assert not page.deciding.answers.held
    QTest.keyClick(page.inbox.view, Qt.Key.Key_N)
    QTest.keyClicks(asked(window)[0].reason, "not today")
    QTest.keyClick(asked(window)[0].reason, Qt.Key.Key_Return)
    QTest.keyClick(page.inbox.view, Qt.Key.Key_N)
    qtbot.waitUntil(lambda: len(waiting.log) == 1)
    body = waiting.log[0]
    assert (body.verdict, body.reason, len(body.requests)) == ("deny", "not today", 13), "one order"
    assert {one.id: one.digest for one in body.requests}["ap-0001"] == fake.mockup()[0].digest
    qtbot.waitUntil(lambda: page.book.entries["ap-0001"].gone == "denied: not today")


@pytest.mark.parametrize("is_left", [False, True])
def test_an_answer_to_a_look_that_was_made_before_a_decision_brings_nothing_back(
    is_left: bool, waiting: FakeApprovals, open_window: Open, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``is_left``: another request is looked at meanwhile, and the decided one has gone from the list."""
    late, came, take = Event(), list[int](), ApprovalsPage._came

    def counted(page: ApprovalsPage, number: int, view: ApprovalsView) -> None:
        take(page, number, view)
        came.append(number)

    monkeypatch.setattr(ApprovalsPage, "_came", counted)
    page = page_of(open_window("approvals"))
    click(page, 1)
    [name] = [entry.row.id for entry in page.inbox.model.rows[1].entries]
    qtbot.waitUntil(lambda: page.why_not("approvals.deny") == "")
    waiting.late = late
    page._read()
    number = page._reads
    qtbot.waitUntil(lambda: waiting.late is None)
    QTest.keyClick(page.inbox.view, Qt.Key.Key_D)
    QTest.keyClick(page.inbox.view, Qt.Key.Key_D)
    qtbot.waitUntil(lambda: page.book.entries[name].gone == "denied" and max(came) > number)
    if is_left:
        click(page, 0)
        qtbot.waitUntil(lambda: name not in page.book.entries)
    late.set()
    qtbot.waitUntil(lambda: number in came)
    assert name not in {entry.row.id for entry in page.book.waiting()} and page.deciding.quiet_until == 0.0


def test_several_requests_are_not_approved_together(waiting: FakeApprovals, open_window: Open, qtbot: QtBot) -> None:
    page = page_of(open_window("approvals"))
    click(page, 1)
    QTest.keyClick(page.inbox.view, Qt.Key.Key_Down, SHIFT)
    assert len(page.inbox.several()) == 2
    for code in (Qt.Key.Key_A, Qt.Key.Key_S):
        QTest.keyClick(page.inbox.view, code)
    assert not page.deciding.answers.held and page.deciding.answers.asked is None and not waiting.log
    assert "approved by itself" in page.why_not("approvals.once") and not page.pane.buttons["approvals.once"].isEnabled()
    click(page, 1)
    qtbot.waitUntil(lambda: page.why_not("approvals.once") == "")
    assert page.pane.buttons["approvals.deny"].text() == "Deny"


def test_a_request_that_is_selected_twice_is_denied_once(waiting: FakeApprovals, open_window: Open) -> None:
    page = page_of(open_window("approvals"))
    page.inbox.view.choose(next(item.key for item in page.inbox.model.rows if item.is_group))
    QTest.keyClick(page.inbox.view, Qt.Key.Key_G)
    QTest.keyClick(page.inbox.view, Qt.Key.Key_A, CTRL)
    assert len(page.inbox.model.rows) == 5 + 12 and len(page.inbox.several()) == 16


def test_more_than_one_order_takes_is_refused(waiting: FakeApprovals, open_window: Open) -> None:
    waiting.waiting = fake.many(101)
    page = page_of(open_window("approvals"))
    QTest.keyClick(page.inbox.view, Qt.Key.Key_A, CTRL)
    assert page.why_not("approvals.deny") == "More than 100 requests are selected. Choose fewer."


def test_what_a_request_says_begins_no_line_of_the_question(waiting: FakeApprovals, open_window: Open, qtbot: QtBot) -> None:
    waiting.waiting = fake.hostile()
    window = open_window("approvals", (800, 560))
    page = page_of(window)
    QTest.keyClick(page.inbox.view, Qt.Key.Key_A, CTRL)
    qtbot.waitUntil(lambda: page.why_not("approvals.deny") == "")
    QTest.keyClick(page.inbox.view, Qt.Key.Key_D)
    (dialog,) = asked(window)
    lines = dialog.findChildren(TargetsView)[0].toPlainText().splitlines()
    assert [line.split(".")[0] for line in lines if not line.lstrip("\u2068").startswith("   ")] == [str(number) for number in range(1, 10)]
    assert "\u202e" not in "".join(lines) and dialog.height() <= 560
    dialog.reject()


def test_a_selection_keeps_its_requests_when_others_come(waiting: FakeApprovals, open_window: Open, qtbot: QtBot) -> None:
    page = page_of(open_window("approvals"))
    click(page, 1)
    click(page, 2, CTRL)
    meant = {row.id for row in page.inbox.several()}
    waiting.waiting = [fake.row(60, "shell", "rm -rf /", left_s=5, danger="destroys", danger_rank=1), *waiting.waiting]
    page._read()
    qtbot.waitUntil(lambda: "ap-0060" in page.book.entries)
    assert {row.id for row in page.inbox.several()} == meant
