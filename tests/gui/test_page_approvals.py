"""The approvals page against the stand-in supervisor: decided by keys on exactly what is shown, dead keys, void in place, killed."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
import shiboken6
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from console.api.messages import AgentView
from console.api.policy.approvals import ApprovalPart, ApprovalRow, GrantRow
from console.gui.pages.approvals.book import Item
from console.gui.pages.approvals.dialogs import DenyDialog, TakeBackDialog
from console.gui.pages.approvals.page import ApprovalsPage
from console.gui.pages.approvals.rule import RuleDialog
from console.gui.pages.fleet.page import FleetPage
from console.gui.widgets.reading import TargetsView
from console.gui.widgets.safe_text import is_plain
from console.gui.widgets.words import day_clock
from console.gui.window.alerts import Alerts
from console.gui.window.desktop import Alert
from console.gui.window.main import Window
from tests.fakes import approval_routes as fake
from tests.fakes.approval_routes import FakeApprovals
from tests.fakes.operator_server import FakeHouse

House = Callable[..., FakeHouse]
Opener = Callable[..., Window]


def page_of(window: Window) -> ApprovalsPage:
    assert isinstance(window.page, ApprovalsPage)
    return window.page


def key(where: QWidget, *codes: Qt.Key) -> None:
    for code in codes:
        QTest.keyClick(where, code)


def now(page: ApprovalsPage, code: Qt.Key) -> None:
    """An answer that is not held: the same key again."""
    key(page.inbox.view, code, code)


@pytest.fixture
def house(make_house: House) -> FakeHouse:
    return make_house("0")


@pytest.fixture
def desk(house: FakeHouse) -> FakeApprovals:
    house.supervisor.approvals.waiting = fake.mockup()
    return house.supervisor.approvals


def look_at(page: ApprovalsPage, wanted: str, qtbot: QtBot) -> None:
    assert page.inbox.view.choose(wanted)
    item = page.inbox.view.current()
    qtbot.waitUntil(lambda: page.pane.case.is_read and {r.id for r in page.pane.case.rows} == {e.row.id for e in item.live})
    qtbot.waitUntil(lambda: page.why_not("approvals.deny") == "")


def current(page: ApprovalsPage) -> Item:
    found = page.inbox.view.current()
    assert isinstance(found, Item)
    return found


@pytest.mark.parametrize("number", [0, 1, 100])
def test_lists_of_any_length(number: int, desk: FakeApprovals, open_window: Opener) -> None:
    desk.waiting = fake.many(number)
    window = open_window("approvals")
    page = page_of(window)
    assert len(page.inbox.model.rows) == number and page.pane.isVisible() == (number > 0)
    assert page.inbox.empty.isVisible() == (number == 0)
    badge = page.badge()
    assert (badge.words if badge else "") == (f"{number}" if number else "")


def test_a_request_is_shown_whole_and_titled_by_the_call(desk: FakeApprovals, open_window: Opener, qtbot: QtBot) -> None:
    page = page_of(open_window("approvals"))
    assert [item.first.row.agent_name for item in page.inbox.model.rows][:2] == ["dependency-audit", "cert-rotator"]
    look_at(page, "r:ap-0002", qtbot)
    pane = page.pane
    assert pane.title.text() == "cargo publish, in a shell line of 3 commands"
    assert pane.says.text() == "Agent says  “Publish report-core 0.9 to crates.io”"
    assert [one.code for one in pane.findings.found] == ["U+200B", "U+202E", "ESC [2K"]
    assert page.badge() is not None and page.badge().words == "5"  # type: ignore[union-attr]
    focus = QApplication.focusWidget()
    assert focus is page.inbox.view, "none of the buttons"


def test_what_is_copied_is_what_is_seen(desk: FakeApprovals, open_window: Opener, qtbot: QtBot) -> None:
    window = open_window("approvals")
    page = page_of(window)
    look_at(page, "r:ap-0002", qtbot)
    page.pane.exact.selectAll()
    page.pane.exact.copy()
    copied = QGuiApplication.clipboard().text()
    assert "$CARGO<U+200B>_TOKEN" in copied and "<U+202E>oi.setarc" in copied and "<ESC>[2K" in copied
    assert QGuiApplication.clipboard().mimeData().formats() == ["text/plain"]
    assert "".join(copied.split("\n")).isprintable()
    ours = QGuiApplication.clipboard().mimeData()
    window.close()
    assert not shiboken6.isValid(ours), "it would be taken apart after the interpreter"
    assert QGuiApplication.clipboard().text() == copied


def test_approved_once_by_its_key_with_the_digest_that_was_shown(desk: FakeApprovals, open_window: Opener, qtbot: QtBot) -> None:
    page = page_of(open_window("approvals"))
    look_at(page, "r:ap-0002", qtbot)
    shown = page.pane.case.rows[0].digest
    key(page.inbox.view, Qt.Key.Key_A, Qt.Key.Key_Y, Qt.Key.Key_Y)
    qtbot.waitUntil(lambda: len(desk.log) == 1)
    body = desk.log[0]
    assert (body.verdict, body.scope, [(one.id, one.digest) for one in body.requests]) == ("approve", "once", [("ap-0002", shown)])
    qtbot.waitUntil(lambda: not current(page).live)
    assert current(page).first.row.id == "ap-0002" and page.pane.countdown.gone == "approved once"
    assert not page.pane.buttons["approvals.once"].isEnabled()
    key(page.inbox.view, Qt.Key.Key_A)
    key(page.inbox.view, Qt.Key.Key_Down)
    qtbot.waitUntil(lambda: "ap-0002" not in page.book.entries)
    assert len(desk.log) == 1 and current(page).first.row.agent_name == "cert-rotator"


def test_an_expired_request_is_announced_once_and_listed_with_its_time(
    house: FakeHouse, desk: FakeApprovals, open_window: Opener, qtbot: QtBot
) -> None:
    window = open_window("approvals")
    page = page_of(window)
    look_at(page, "r:ap-0001", qtbot)
    house.on_loop(lambda: desk.end("ap-0002", "expired"))
    qtbot.waitUntil(lambda: window.strip.notice is not None and "dependency-audit expired and was denied" in window.strip.notice.text)
    first = page.inbox.decided_model.rows[0]
    assert (first.id, page.inbox.decided_model.words(0, 0)) == ("ap-0002", day_clock(first.decided_at)) and not page.book.expired
    assert page.inbox.decided_model.words(0, 2).startswith("Expired")


def test_a_denial_is_one_key_and_has_a_reason_where_a_person_gives_one(desk: FakeApprovals, open_window: Opener, qtbot: QtBot) -> None:
    window = open_window("approvals")
    page = page_of(window)
    look_at(page, "r:ap-0001", qtbot)
    now(page, Qt.Key.Key_D)
    qtbot.waitUntil(lambda: len(desk.log) == 1)
    assert (desk.log[0].verdict, desk.log[0].reason) == ("deny", "") and not window.findChildren(DenyDialog)
    qtbot.waitUntil(lambda: page.pane.countdown.gone == "denied")
    look_at(page, "r:ap-0003", qtbot)
    key(page.inbox.view, Qt.Key.Key_N)
    dialog = next(one for one in window.findChildren(DenyDialog) if one.isVisible())
    assert dialog.focusWidget() is dialog.reason and dialog.main.isEnabled()
    QTest.keyClicks(dialog.reason, "still in use")
    key(dialog.reason, Qt.Key.Key_Return)
    assert len(desk.log) == 1 and page.deciding.answers.held
    key(page.inbox.view, Qt.Key.Key_N)
    qtbot.waitUntil(lambda: len(desk.log) == 2)
    assert (desk.log[1].verdict, desk.log[1].reason) == ("deny", "still in use")
    qtbot.waitUntil(lambda: page.pane.countdown.gone == "denied: still in use")


def test_where_a_setting_says_so_a_denial_needs_a_reason(desk: FakeApprovals, open_window: Opener, qtbot: QtBot) -> None:
    desk.denial_needs_reason = True
    window = open_window("approvals")
    page = page_of(window)
    look_at(page, "r:ap-0001", qtbot)
    key(page.inbox.view, Qt.Key.Key_D)
    dialog = next(one for one in window.findChildren(DenyDialog) if one.isVisible())
    assert not dialog.main.isEnabled()
    key(dialog.reason, Qt.Key.Key_Return)
    assert not page.deciding.answers.held and not desk.log
    QTest.keyClicks(dialog.reason, "still in use")
    key(dialog.reason, Qt.Key.Key_Return)
    key(page.inbox.view, Qt.Key.Key_D)
    qtbot.waitUntil(lambda: len(desk.log) == 1)
    assert desk.log[0].reason == "still in use"


def test_what_a_session_was_given_is_listed_and_taken_back(desk: FakeApprovals, open_window: Opener, qtbot: QtBot) -> None:
    window = open_window("approvals")
    page = page_of(window)
    look_at(page, "r:ap-0003", qtbot)
    now(page, Qt.Key.Key_S)
    qtbot.waitUntil(lambda: len(page.inbox.grants) == 1)
    assert desk.log[0].scope == "session"
    page.inbox.show_tab("given")
    qtbot.waitUntil(lambda: page.pane.case.is_read and page.pane.take_back.isVisible())
    assert not page.pane.buttons["approvals.once"].isVisible()
    assert page.pane.countdown.gone == "approved for the session by root (uid 0)"
    key(page.inbox.given, Qt.Key.Key_D)
    dialog = next(one for one in window.findChildren(TakeBackDialog) if one.isVisible())
    QTest.keyClicks(dialog.reason, "enough")
    key(dialog.reason, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: not page.inbox.grants)
    assert [(one.session, one.reason) for one in desk.taken_back] == [(desk.ended[0].session, "enough")]


def test_standing_approvals_of_several_sessions_are_taken_back_with_one_confirmation(
    desk: FakeApprovals, open_window: Opener, qtbot: QtBot
) -> None:
    desk.given = [
        GrantRow(approval_id=f"ap-{at}", session=session, tool="shell", argument=f"make {at}", digest=str(at), by="operator:0", at=1.0)
        for at, session in enumerate(("s-one", "s-two", "s-two", "s-three"))
    ]
    window = open_window("approvals")
    page = page_of(window)
    page.inbox.show_tab("given")
    qtbot.waitUntil(lambda: page.inbox.given.row_model.rowCount() == 4)
    page.inbox.given.setCurrentIndex(page.inbox.given.row_model.index(0, 0))
    QTest.keyClick(page.inbox.given, Qt.Key.Key_Down, Qt.KeyboardModifier.ShiftModifier)
    qtbot.waitUntil(lambda: page.why_not("approvals.deny") == "")
    key(page.inbox.given, Qt.Key.Key_D)
    dialog = next(one for one in window.findChildren(TakeBackDialog) if one.isVisible())
    named = dialog.findChildren(TargetsView)[0].toPlainText()
    assert "make 0" in named and "make 2" in named and "make 3" not in named, "all that ends, also of a session's other lines"
    QTest.keyClicks(dialog.reason, "enough")
    key(dialog.reason, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: [one.session for one in page.inbox.grants] == ["s-three"])
    assert [(one.session, one.reason) for one in desk.taken_back] == [("s-one", "enough"), ("s-two", "enough")]


def test_a_flood_is_opened_by_g_and_decided_as_a_whole_or_one_by_one(desk: FakeApprovals, open_window: Opener, qtbot: QtBot) -> None:
    page = page_of(open_window("approvals"))
    group = next(item for item in page.inbox.model.rows if item.is_group)
    look_at(page, group.key, qtbot)
    text = page.pane.exact.toPlainText()
    assert all(f"customer-{at}@" in text for at in range(12)), "everything that is decided is shown"
    key(page.inbox.view, Qt.Key.Key_G)
    assert len(page.inbox.model.rows) == 5 + 12
    look_at(page, "r:ap-0007", qtbot)
    now(page, Qt.Key.Key_A)
    qtbot.waitUntil(lambda: len(desk.log) == 1 and not current(page).live)
    assert [one.id for one in desk.log[0].requests] == ["ap-0007"]
    look_at(page, group.key, qtbot)
    now(page, Qt.Key.Key_A)
    qtbot.waitUntil(lambda: len(desk.log) == 2)
    assert len(desk.log[1].requests) == 11 and "ap-0007" not in [one.id for one in desk.log[1].requests]


def test_keys_are_dead_after_a_request_slid_in(house: FakeHouse, desk: FakeApprovals, open_window: Opener, qtbot: QtBot) -> None:
    window = open_window("approvals")
    page = page_of(window)
    look_at(page, "r:ap-0001", qtbot)
    arrived: list[ApprovalRow] = []
    page.arrived.connect(arrived.extend)
    page.deciding.quiet_until = time.monotonic() + 1000  # as long as the test looks
    for code in (Qt.Key.Key_A, Qt.Key.Key_S, Qt.Key.Key_D):
        key(page.inbox.view, code)
    page.pane.buttons["approvals.once"].click()
    assert (
        not page.deciding.answers.held
        and not page.deciding.answers.asked
        and not desk.log
        and not [one for one in window.findChildren(DenyDialog) if one.isVisible()]
    )
    page.deciding.quiet_until = 0.0
    before = time.monotonic()
    new = fake.row(60, "shell", "rm -rf /", left_s=5)
    house.on_loop(lambda: desk.ask(new))
    qtbot.waitUntil(lambda: bool(arrived))
    assert [one.id for one in arrived] == [new.id] and page.deciding.quiet_until > before + 0.5
    assert current(page).first.row.id == "ap-0001", "what is looked at stays"


def test_a_request_that_became_part_of_a_flood_is_still_the_one_that_is_decided(
    house: FakeHouse, desk: FakeApprovals, open_window: Opener, qtbot: QtBot
) -> None:
    page = page_of(open_window("approvals"))
    look_at(page, "r:ap-0001", qtbot)
    other = fake.row(61, "delete_file", "/etc/ssl/old/root.key", agent_id="cert-rotator", root_id="infra-janitor")
    house.on_loop(lambda: desk.ask(other))
    qtbot.waitUntil(lambda: len(page.book.entries) == 17)
    assert current(page).key == "r:ap-0001" and current(page).within
    qtbot.waitUntil(lambda: page.why_not("approvals.once") == "")
    now(page, Qt.Key.Key_A)
    qtbot.waitUntil(lambda: len(desk.log) == 1)
    assert [one.id for one in desk.log[0].requests] == ["ap-0001"]


def test_void_and_decided_elsewhere_turn_grey_in_place(house: FakeHouse, desk: FakeApprovals, open_window: Opener, qtbot: QtBot) -> None:
    page = page_of(open_window("approvals"))
    look_at(page, "r:ap-0002", qtbot)
    house.on_loop(lambda: desk.end("ap-0002", "void", words="the call changed"))
    qtbot.waitUntil(lambda: not current(page).live)
    assert current(page).first.row.id == "ap-0002" and page.pane.countdown.gone == "void: the call changed"
    assert "Already" in page.why_not("approvals.once") and not page.pane.buttons["approvals.deny"].isEnabled()
    look_at(page, "r:ap-0001", qtbot)
    desk.lost["ap-0001"] = "it is denied already by operator:7"
    now(page, Qt.Key.Key_A)
    qtbot.waitUntil(lambda: "NOT decided: it is denied already by uid 7" in page.pane.problem.text())
    assert page.pane.problem.isVisible()


def test_a_digest_that_is_not_that_of_the_text_cannot_be_approved(desk: FakeApprovals, open_window: Opener, qtbot: QtBot) -> None:
    desk.waiting = [desk.waiting[0].replaced(argument="/tmp/harmless")]
    page = page_of(open_window("approvals"))
    look_at(page, "r:ap-0001", qtbot)
    key(page.inbox.view, Qt.Key.Key_A)
    assert (
        not page.deciding.answers.held
        and not page.deciding.answers.asked
        and not desk.log
        and "digest is not that of what is shown" in page.why_not("approvals.once")
    )
    assert page.why_not("approvals.deny") == ""


def test_time_that_is_over_is_a_denial(desk: FakeApprovals, open_window: Opener, qtbot: QtBot) -> None:
    page = page_of(open_window("approvals"))
    look_at(page, "r:ap-0001", qtbot)
    page.book.entries["ap-0001"].ends_at = 0.0
    assert "denied automatically" in page.why_not("approvals.once")
    key(page.inbox.view, Qt.Key.Key_A)
    assert not page.deciding.answers.held and not page.deciding.answers.asked and not desk.log


def test_while_killed_it_is_read_only(desk: FakeApprovals, house: FakeHouse, open_window: Opener, qtbot: QtBot) -> None:
    window = open_window("approvals")
    page = page_of(window)
    look_at(page, "r:ap-0002", qtbot)
    house.on_loop(house.guard.press_now)
    qtbot.waitUntil(lambda: window.switch.is_killed)
    window.goto("approvals", "")
    qtbot.waitUntil(lambda: page.why_not("approvals.once") == "Killed: read only until you rearm.")
    for code in (Qt.Key.Key_A, Qt.Key.Key_S, Qt.Key.Key_D):
        key(page.inbox.view, code)
    assert (
        not page.deciding.answers.held
        and not page.deciding.answers.asked
        and not desk.log
        and not page.pane.buttons["approvals.deny"].isEnabled()
    )


def test_a_refusal_is_said_in_its_place(desk: FakeApprovals, open_window: Opener, qtbot: QtBot) -> None:
    desk.refuse = (503, "Everything was stopped.")
    page = page_of(open_window("approvals"))
    look_at(page, "r:ap-0002", qtbot)
    key(page.inbox.view, Qt.Key.Key_D, Qt.Key.Key_D)
    qtbot.waitUntil(lambda: "stopped" in page.pane.problem.text())
    assert page.pane.problem.isVisible() and current(page).live


def test_hostile_requests_are_words_everywhere(desk: FakeApprovals, open_window: Opener, qtbot: QtBot) -> None:
    desk.waiting = fake.hostile()
    window = open_window("approvals", (1024, 700))
    page = page_of(window)
    for at in range(len(fake.HOSTILE)):
        look_at(page, f"r:ap-{at:04d}", qtbot)
        pane = page.pane
        assert is_plain(pane.title.text()) and is_plain(pane.says.text())
        assert pane.exact.toPlainText().replace("\n", "").isprintable()
        window.grab()
    assert all(is_plain(page.inbox.model.words(number, 0)) for number in range(len(page.inbox.model.rows)))
    page.pane.countdown.say(0, 1, 0, "denied by \u202eoperator: <b>x</b>\n")
    assert is_plain(page.pane.countdown.accessibleName())
    page._show_over(True)
    assert page.pane.isVisible() and not page.inbox.isVisible()
    key(page, Qt.Key.Key_Escape)
    assert page.inbox.isVisible()


def test_a_part_without_words_of_the_request_says_its_reason(
    desk: FakeApprovals, open_window: Opener, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = ApprovalPart(text="", verdict="ask", rule="not described", step="options", reason="option -f does what cannot be checked")
    monkeypatch.setattr("tests.fakes.approval_routes.parts", lambda _view: [one])
    page = page_of(open_window("approvals"))
    qtbot.waitUntil(lambda: page.pane.case.is_read and "option -f does what cannot be checked" in page.pane.why.accessibleName())


def test_the_whole_judgement_and_the_agent(desk: FakeApprovals, open_window: Opener, qtbot: QtBot) -> None:
    window = open_window("approvals")
    page = page_of(window)
    window.goto("approvals", "dependency-audit")
    qtbot.waitUntil(lambda: page.pane.case.is_read and page.pane.case.rows[0].id == "ap-0002")
    folded = page.pane.why.height()
    key(page.inbox.view, Qt.Key.Key_E)
    assert page.pane.why.height() > folded and "a rule asks a person" in page.pane.why.accessibleName()
    key(page.inbox.view, Qt.Key.Key_J)
    assert window.page is not None and window.page.spec.name == "fleet"


def test_a_new_request_is_told_once_and_its_agent_leads_to_it(
    house: FakeHouse, desk: FakeApprovals, open_window: Opener, qtbot: QtBot
) -> None:
    window = open_window("fleet")
    page = window.pages["approvals"]
    assert isinstance(page, ApprovalsPage)
    qtbot.waitUntil(lambda: page.book.loaded)
    shown: list[Alert] = []
    alerts = Alerts(window.fleet, window.switch, shown.append)
    page.arrived.connect(alerts.asked)
    agent = AgentView(id="x-1", name="x-one", control_level="managed", state="running", started_at=time.time())
    house.on_loop(lambda: house.supervisor.upsert(agent))
    qtbot.waitUntil(lambda: "x-1" in window.fleet.rows)
    alerts.look()
    house.on_loop(lambda: house.supervisor.upsert(agent.replaced(state="needs_ok")))
    house.on_loop(lambda: desk.ask(fake.row(70, "shell", "rm -rf <b>/</b>", agent_id="x-1", says="tidy up")))
    qtbot.waitUntil(lambda: "ap-0070" in page.book.entries and window.fleet.rows["x-1"].view.state == "needs_ok")
    alerts.look()
    assert [one.text for one in shown] == ["x-1 asks: rm -rf <b>/</b>"], "the request and its agent's state are one piece of news"
    fleet = window.page
    assert isinstance(fleet, FleetPage)
    fleet.table.reveal("x-1")
    qtbot.waitUntil(lambda: fleet.pane.agent_id == "x-1" and fleet.pane.request.isVisible())
    fleet.pane.request.click()
    assert window.page is page
    qtbot.waitUntil(lambda: page.pane.case.is_read and page.pane.case.rows[0].id == "ap-0070")


def test_a_rule_is_put_in_force_only_as_it_was_tried(desk: FakeApprovals, open_window: Opener, qtbot: QtBot) -> None:
    window = open_window("approvals")
    page = page_of(window)
    look_at(page, "r:ap-0002", qtbot)
    key(page.inbox.view, Qt.Key.Key_R)
    dialog = next(one for one in window.findChildren(RuleDialog) if one.isVisible())
    qtbot.waitUntil(lambda: dialog.tried is not None)
    assert "14 of 2,310 recorded calls decided otherwise, 1 of them looser" in dialog.words.text()
    assert [line.role for line in dialog.calls.lines] == ["warn", "text2"] and "deny → allow" in dialog.calls.lines[0].words
    assert "reason" in dialog.why_not()
    dialog.reason.setText("reviewed")
    assert dialog.why_not() == "" and dialog.main.isEnabled()
    dialog.field.setPlainText("shell(cargo:*)")
    assert not dialog.main.isEnabled(), "another text was tried"
    qtbot.waitUntil(lambda: dialog.why_not() == "")
    dialog.main.click()
    qtbot.waitUntil(lambda: len(desk.saved) == 1)
    assert (desk.saved[0].text, desk.saved[0].base_sha256) == ("tried ['shell(cargo:*)']", "b" * 64)
