"""An answer in the window is held before the agent gets it: taken back, replaced, sent early, or lost with the window, never sent twice."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from console.gui.pages.approvals import answers
from console.gui.pages.approvals.page import ApprovalsPage
from console.gui.theme.tokens import ANSWER_BAR
from console.gui.window.main import Window
from tests.fakes import approval_routes as fake
from tests.fakes.approval_routes import FakeApprovals
from tests.fakes.operator_server import FakeHouse

House = Callable[..., FakeHouse]
Opener = Callable[..., Window]
A, D, S, Y, Z = Qt.Key.Key_A, Qt.Key.Key_D, Qt.Key.Key_S, Qt.Key.Key_Y, Qt.Key.Key_Z
PLAIN, DANGEROUS, OTHER = "ap-0001", "ap-0002", "ap-0003"


@pytest.fixture
def house(make_house: House) -> FakeHouse:
    return make_house("0")


@pytest.fixture
def desk(house: FakeHouse) -> FakeApprovals:
    house.supervisor.approvals.waiting = fake.mockup()
    return house.supervisor.approvals


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer is held for a second: long enough for a test's keys."""
    monkeypatch.setattr(answers, "HOLD_S", 1.0)


def opened(window: Window, approval_id: str, qtbot: QtBot) -> ApprovalsPage:
    page = window.page
    assert isinstance(page, ApprovalsPage)
    assert page.inbox.view.choose(f"r:{approval_id}")
    qtbot.waitUntil(lambda: page.pane.case.is_read and page.pane.case.rows[0].id == approval_id)
    qtbot.waitUntil(lambda: page.why_not("approvals.deny") == "")
    return page


def press(page: ApprovalsPage, *codes: Qt.Key) -> None:
    for code in codes:
        QTest.keyClick(page.inbox.view, code)


def verdicts(desk: FakeApprovals) -> list[tuple[str, str, str]]:
    return [(one.id, body.verdict, body.scope) for body in desk.log for one in body.requests]


def quiet(page: ApprovalsPage, qtbot: QtBot) -> None:
    """Until nothing is held any more, and a little longer than an answer takes."""
    qtbot.waitUntil(lambda: not page.deciding.answers.held and not page.deciding.answers.sending)
    qtbot.wait(300)


def test_an_answer_reaches_the_agent_after_five_seconds(desk: FakeApprovals, open_window: Opener, qtbot: QtBot) -> None:
    page = opened(open_window("approvals"), PLAIN, qtbot)
    began = time.monotonic()
    press(page, A)
    assert page.deciding.bar.words.text().startswith("Approve once, sent in 5 s: ") and page.book.entries[PLAIN].held == "Approval held"
    qtbot.waitUntil(lambda: bool(desk.log))
    assert time.monotonic() - began >= 5.0
    assert verdicts(desk) == [(PLAIN, "approve", "once")]
    qtbot.waitUntil(lambda: page.pane.countdown.gone == "approved once")
    assert page.deciding.bar.answer is None


def test_the_same_key_again_and_the_button_send_it_at_once(desk: FakeApprovals, open_window: Opener, qtbot: QtBot) -> None:
    page = opened(open_window("approvals"), PLAIN, qtbot)
    began = time.monotonic()
    press(page, A, A)
    qtbot.waitUntil(lambda: len(desk.log) == 1)
    page = opened(open_window("approvals"), OTHER, qtbot)
    press(page, S)
    page.deciding.bar.now.click()
    qtbot.waitUntil(lambda: len(desk.log) == 2)
    assert time.monotonic() - began < 60  # a busy machine; held ones would have been sent by now too, but only once:
    quiet(page, qtbot)
    assert verdicts(desk) == [(PLAIN, "approve", "once"), (OTHER, "approve", "session")]


def test_what_is_taken_back_never_arrives(soon: None, desk: FakeApprovals, open_window: Opener, qtbot: QtBot) -> None:
    page = opened(open_window("approvals"), PLAIN, qtbot)
    ways: list[Callable[[], object]] = [lambda: press(page, Z), page.deciding.bar.back.click]
    for take_back in ways:
        press(page, A)
        assert page.deciding.answers.held
        take_back()
        assert not page.deciding.answers.held and page.book.entries[PLAIN].held == "" and page.why_not("approvals.undo")
    qtbot.wait(1500)
    assert desk.log == [] and page.why_not("approvals.once") == ""


@pytest.mark.parametrize(
    ("first", "second", "arrives"), [(A, D, ("deny", "once")), (D, A, ("approve", "once")), (A, S, ("approve", "session"))]
)
def test_of_two_answers_to_a_request_only_the_later_arrives(
    first: Qt.Key, second: Qt.Key, arrives: tuple[str, str], soon: None, desk: FakeApprovals, open_window: Opener, qtbot: QtBot
) -> None:
    page = opened(open_window("approvals"), PLAIN, qtbot)
    press(page, first, second)
    assert len(page.deciding.answers.held) == 1
    qtbot.waitUntil(lambda: bool(desk.log))
    quiet(page, qtbot)
    assert verdicts(desk) == [(PLAIN, *arrives)]


def test_a_dangerous_approval_needs_a_second_different_key(soon: None, desk: FakeApprovals, open_window: Opener, qtbot: QtBot) -> None:
    page = opened(open_window("approvals"), DANGEROUS, qtbot)
    press(page, A, A, A)
    assert page.deciding.answers.asked is not None and not page.deciding.answers.held
    assert (
        page.deciding.bar.words.text().startswith("This publishes. Press Y to approve once: ")
        and page.deciding.bar.second.isVisible()
        and not page.deciding.bar.now.isVisible()
    )
    qtbot.wait(1500)
    assert desk.log == [], "however often the first key is pressed, and however long it waits"
    press(page, Y)
    assert page.deciding.answers.held and page.deciding.bar.now.isVisible()
    qtbot.waitUntil(lambda: bool(desk.log))
    quiet(page, qtbot)
    assert verdicts(desk) == [(DANGEROUS, "approve", "once")]


def test_the_second_key_counts_only_for_the_request_that_it_was_asked_for(
    soon: None, desk: FakeApprovals, open_window: Opener, qtbot: QtBot
) -> None:
    window = open_window("approvals")
    page = opened(window, DANGEROUS, qtbot)
    press(page, Y)
    assert not page.deciding.answers.held and page.why_not("approvals.confirm")
    press(page, A)
    opened(window, PLAIN, qtbot)
    press(page, Y)
    opened(window, DANGEROUS, qtbot)
    press(page, Y, D)
    quiet(page, qtbot)
    qtbot.waitUntil(lambda: bool(desk.log))
    assert verdicts(desk) == [(DANGEROUS, "deny", "once")], "a denial needs no second key"


def test_answers_to_several_requests_are_held_side_by_side(soon: None, desk: FakeApprovals, open_window: Opener, qtbot: QtBot) -> None:
    window = open_window("approvals")
    page = opened(window, PLAIN, qtbot)
    press(page, A)
    opened(window, OTHER, qtbot)
    press(page, D)
    assert len(page.deciding.answers.held) == 2 and "1 more held" in page.deciding.bar.hint.text()
    press(page, Z)
    assert [answer.ids for answer in page.deciding.answers.held] == [{PLAIN}], "what the line shows is taken back"
    quiet(page, qtbot)
    assert verdicts(desk) == [(PLAIN, "approve", "once")]


def test_one_of_a_group_is_answered_otherwise(soon: None, desk: FakeApprovals, open_window: Opener, qtbot: QtBot) -> None:
    page = open_window("approvals").page
    assert isinstance(page, ApprovalsPage)
    group = next(item for item in page.inbox.model.rows if item.is_group)
    page.inbox.view.choose(group.key)
    qtbot.waitUntil(lambda: page.pane.case.is_group and page.why_not("approvals.once") == "")
    press(page, A, Qt.Key.Key_G)
    page.inbox.view.choose("r:ap-0007")
    qtbot.waitUntil(lambda: page.pane.case.is_read and page.pane.case.rows[0].id == "ap-0007")
    press(page, D)
    qtbot.waitUntil(lambda: len(desk.log) == 2)
    quiet(page, qtbot)
    assert ("ap-0007", "deny", "once") in verdicts(desk) and len(verdicts(desk)) == 12
    assert len([one for one in verdicts(desk) if one[1] == "approve"]) == 11


@pytest.mark.parametrize("how", ["expired", "void"])
def test_a_request_that_ends_meanwhile_is_not_answered(
    how: str, soon: None, house: FakeHouse, desk: FakeApprovals, open_window: Opener, qtbot: QtBot
) -> None:
    page = opened(open_window("approvals"), PLAIN, qtbot)
    press(page, A)
    house.on_loop(lambda: desk.end(PLAIN, how))
    qtbot.waitUntil(lambda: how in page.pane.problem.text())
    assert page.pane.problem.text().startswith("Not sent: ") and not page.deciding.answers.held
    qtbot.wait(1500)
    assert desk.log == []


def test_time_that_runs_out_while_an_answer_is_held_is_a_denial(soon: None, desk: FakeApprovals, open_window: Opener, qtbot: QtBot) -> None:
    page = opened(open_window("approvals"), PLAIN, qtbot)
    press(page, A)
    desk.waiting = [one.replaced(left_s=0.0) if one.id == PLAIN else one for one in desk.waiting]
    page.resync()
    qtbot.waitUntil(lambda: page.pane.problem.text() == "Not sent: expired: denied automatically.")
    qtbot.wait(1500)
    assert desk.log == [] and not page.deciding.answers.held


def test_closing_the_window_sends_nothing_and_says_so(soon: None, desk: FakeApprovals, open_window: Opener, qtbot: QtBot) -> None:
    window = open_window("approvals")
    page = opened(window, PLAIN, qtbot)
    said: list[str] = []
    page.unsent.connect(said.append)
    press(page, A)
    assert page.deciding.bar.hint.text().endswith("Closing the window sends nothing.")
    window.close()
    qtbot.wait(1500)
    assert desk.log == [] and said == ["Not sent: the held answer to 1 request."]
    assert window.notices.all[-1].text == said[0]


@pytest.mark.parametrize("size", [(800, 560), (1024, 700), (1440, 900)])
def test_nothing_moves_and_the_sentence_can_be_read(size: tuple[int, int], desk: FakeApprovals, open_window: Opener, qtbot: QtBot) -> None:
    window = open_window("approvals", size)
    page = window.page
    assert isinstance(page, ApprovalsPage)
    page._show_over(True)
    opened(window, DANGEROUS, qtbot)

    def places() -> list[tuple[QPoint, int, int]]:
        parts: list[QWidget] = [page.pane, page.deciding.bar, page.pane.exact, *page.pane.buttons.values()]
        return [(part.mapTo(window, QPoint(0, 0)), part.width(), part.height()) for part in parts]

    qtbot.wait(50)
    before = places()
    assert page.deciding.bar.height() == ANSWER_BAR
    for code in (A, Y):
        press(page, code)
        qtbot.wait(50)
        assert places() == before
        hint = page.deciding.bar.hint
        assert hint.fontMetrics().horizontalAdvance(hint.text()) <= hint.width(), "whole"
        assert page.deciding.bar.words.width() >= 300
    press(page, Z)
    qtbot.wait(50)
    assert places() == before


def test_nothing_is_approved_that_is_not_shown(desk: FakeApprovals, open_window: Opener, qtbot: QtBot) -> None:
    page = opened(open_window("approvals", (1024, 700)), PLAIN, qtbot)
    assert not page.pane.isVisible() and page.why_not("approvals.once") == "Open the request first: Enter."
    press(page, A)
    assert not page.deciding.answers.held
    press(page, Qt.Key.Key_Return)
    assert page.pane.isVisible() and page.pane.buttons["approvals.once"].isEnabled()
