"""The audit page against the stand-in supervisor: paging, following, filter, detail, verify."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from functools import partial

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from console.api.messages import Delta
from console.api.records import AuditVerdict
from console.gui.kit.paged import PAGE, TRIMMED, Book
from console.gui.pages.audit.chain import Known, chain_words
from console.gui.pages.audit.detail import as_json, checks
from console.gui.pages.audit.page import AcknowledgeDialog, AuditLogPage
from console.gui.pages.audit.rows import verdict_look
from console.gui.pages.fleet.page import FleetPage
from console.gui.pages.rollback.page import RollbackRecordsPage
from console.gui.widgets.safe_text import is_plain
from console.gui.window.main import Window
from tests.fakes import pages_fixture as fixture
from tests.fakes.gui_fixture import HOSTILE_NAMES
from tests.fakes.operator_server import FakeHouse

House = Callable[..., FakeHouse]
Opener = Callable[..., Window]


def page_of(window: Window) -> AuditLogPage:
    assert isinstance(window.page, AuditLogPage)
    return window.page


def key(where: QWidget, code: Qt.Key) -> None:
    QTest.keyClick(where, code)


def hold(house: FakeHouse, number: int, hostile: bool = False) -> None:
    """The log of the stand-in has ``number`` records, and its status says so."""
    supervisor = house.supervisor
    supervisor.rooms.audit = fixture.audit_rows(time.time(), number, newest=number, hostile=hostile)
    supervisor.status = supervisor.status.replaced(audit_records=number, audit_whole=None, audit_checked_at=None)


def write(house: FakeHouse, number: int) -> None:
    """That many more records."""
    supervisor = house.supervisor
    total = len(supervisor.rooms.audit) + number
    supervisor.rooms.audit = [*supervisor.rooms.audit, *fixture.audit_rows(time.time(), number, newest=total)]
    supervisor.status = supervisor.status.replaced(audit_records=total)
    house.on_loop(lambda: supervisor.tell("audit", {"newest": total, "total": total}))


# --- pure ---------------------------------------------------------------------------------------------------------------


def test_pages_join_at_both_ends() -> None:
    rows = list(reversed(fixture.audit_rows(0.0, 1000, newest=1000)))
    book = Book()
    book.take_older(rows[100:300])
    assert book.seen == 900 and not book.at_end
    assert book.take_older(rows[290:490]) == rows[300:490], "what is there already is not there twice"
    book.take_newest(rows[:200], 1000)
    assert book.rows == rows[:490] and book.seen == 1000 and book.waiting == 0
    book.take_older(rows[490:690])
    assert not book.at_end
    book.take_older(rows[690:890])
    book.take_older(rows[890:1000])
    assert book.at_end


def test_a_gap_at_the_upper_end_is_never_hidden() -> None:
    rows = list(reversed(fixture.audit_rows(0.0, 1000, newest=1000)))
    book = Book()
    book.take_older(rows[500:700])
    book.take_newest(rows[:PAGE], 1000)
    assert book.rows == rows[:PAGE] and not book.at_end


def test_following_for_days_stays_bounded() -> None:
    rows = list(reversed(fixture.audit_rows(0.0, 5000, newest=5000)))
    book = Book()
    book.take_older(rows[4800:])
    for upper in range(4700, -1, -100):
        book.take_newest(rows[upper : upper + PAGE], 5000 - upper)
    assert len(book.rows) == TRIMMED and book.rows[0].seq == 5000 and not book.at_end


def test_words_of_the_chain() -> None:
    assert chain_words(Known(), 9, 0.0)[0] == "9 records · not verified yet"
    assert chain_words(Known(True, 9, at=10.0), 12, 50.0)[:2] == (
        "12 records · log intact up to record 9, verified 40 s ago",
        "3 written since then, not verified yet",
    )
    words, why, shape, role = chain_words(Known(False, 9, 4, "hash"), 9, 0.0)
    assert "first bad record 4" in words and (why, shape, role) == ("hash", "alert", "danger")
    words, why, shape, role = chain_words(Known(True, 9, at=10.0, unknown=("an older log was set aside",)), 9, 50.0)
    assert words.endswith("1 thing not known") and (why, shape, role) == ("an older log was set aside", "triangle", "warn")


def test_joints_of_a_record() -> None:
    before, row, after = fixture.audit_rows(0.0, 3, newest=30)
    assert [c.mark_role for c in checks(row, before, after, read=True)] == ["ok", "ok"]
    forged = before.replaced(hash="f" * 64)
    assert checks(row, forged, after, read=True)[0].mark == "alert"
    assert checks(row, None, after, read=True)[0].mark == "alert", "a record before it has to be there"
    assert checks(row, None, None, read=False)[0].mark == "ring"
    first = fixture.audit_rows(0.0, 1, newest=1)[0]
    assert checks(first, None, None, read=True)[0].mark_role == "ok"
    assert checks(first.replaced(previous="a" * 64), None, None, read=True)[0].mark_role == "danger"


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_json_is_ascii_and_reads_back(name: str) -> None:
    row = fixture.audit_rows(0.0, 1)[0].replaced(what=name, data={"x": name})
    text = as_json(row)
    assert text.isascii() and json.loads(text)["what"] == name and json.loads(text)["data"] == {"x": name}


def test_an_unknown_verdict_is_amber() -> None:
    assert verdict_look("perhaps")[2] == "warn" and verdict_look("deny")[2] == "danger" and verdict_look("")[1] == ""


# --- the page -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [0, 1, 200])
def test_logs_of_any_length(number: int, make_house: House, open_window: Opener) -> None:
    hold(make_house("mockup"), number)
    page = page_of(open_window("audit"))
    assert len(page.log.model.rows) == number
    assert page.log.empty.isVisible() == (number == 0)
    assert page.pane.isVisible() == (number > 0)
    assert "not verified yet" in page.chain.words.text()


def test_ten_thousand_records_are_read_in_pages_as_one_scrolls(make_house: House, open_window: Opener, qtbot: QtBot) -> None:
    house = make_house("mockup")
    hold(house, 10_000)
    page = page_of(open_window("audit"))
    assert len(page.log.model.rows) == PAGE
    bar = page.view.verticalScrollBar()
    spent = 0.0

    def grew(have: int) -> bool:
        return len(page.log.model.rows) > have and bar.maximum() > bar.value()

    while len(page.log.model.rows) < 10_000:
        have = len(page.log.model.rows)
        began = time.thread_time()
        bar.setValue(bar.maximum())
        spent = max(spent, time.thread_time() - began)
        qtbot.waitUntil(partial(grew, have))
    assert [row.seq for row in page.log.model.rows] == list(range(10_000, 0, -1))
    assert page.log.book.at_end and spent < 0.5
    asked = [query for verb, _, query in house.supervisor.rooms.log if verb == "audit" and query.get("limit") == "200"]
    assert len(asked) <= 52, "each page is asked for once"


def test_new_records_come_at_the_top_and_wait_while_it_is_scrolled(make_house: House, open_window: Opener, qtbot: QtBot) -> None:
    house = make_house("mockup")
    hold(house, 600)
    page = page_of(open_window("audit"))
    write(house, 3)
    qtbot.waitUntil(lambda: page.log.model.rows[0].seq == 603)
    assert page.log.shown.text().startswith("3 new · "), "what came is announced"
    qtbot.waitUntil(lambda: page.log.shown.text() == "603 records")
    page.view.verticalScrollBar().setValue(900)
    top = page.log.model.rows[0].seq
    write(house, 12)
    qtbot.waitUntil(lambda: page.log.newer.isVisible() and page.log.newer.text() == "12 new")
    qtbot.wait(100)
    assert page.log.model.rows[0].seq == top
    key(page.view, Qt.Key.Key_Home)
    qtbot.waitUntil(lambda: page.log.model.rows[0].seq == 615)
    assert page.view.current().seq == 615 and not page.log.newer.isVisible()


def test_the_status_alone_tells_of_new_records(make_house: House, open_window: Opener, qtbot: QtBot) -> None:
    house = make_house("mockup")
    hold(house, 10)
    page = page_of(open_window("audit"))
    supervisor = house.supervisor
    supervisor.rooms.audit = fixture.audit_rows(time.time(), 11, newest=11)
    supervisor.status = supervisor.status.replaced(audit_records=11)
    qtbot.waitUntil(lambda: page.log.model.rows[0].seq == 11)


@pytest.mark.parametrize("number", [10, 400])
def test_another_log_in_the_place_of_the_one_that_was_read_is_read_from_its_start(
    number: int, make_house: House, open_window: Opener, qtbot: QtBot
) -> None:
    """An older copy was put in place while the supervisor was down: what it does not hold is shown no more."""
    house = make_house("mockup")
    hold(house, 300)
    window = open_window("audit")
    page = page_of(window)
    qtbot.waitUntil(lambda: page.log.book.newest == 300 and page.current() is not None)
    page.view.verticalScrollBar().setValue(page.view.verticalScrollBar().maximum())
    window.sync.read_all()
    qtbot.wait(300)
    assert page.view.verticalScrollBar().value() > 0, "the same log: whoever reads further down keeps the place"
    house.supervisor.rooms.audit = [row.replaced(hash="f" * 64) for row in fixture.audit_rows(time.time(), number, newest=number)]
    house.supervisor.status = house.supervisor.status.replaced(audit_records=number)
    window.sync.read_all()
    qtbot.waitUntil(lambda: [row.seq for row in page.log.model.rows][:1] == [number] and page.log.book.newest == number)
    qtbot.waitUntil(lambda: page.log.shown.text().endswith(f"{number} records") and {row.hash for row in page.log.model.rows} == {"f" * 64})
    qtbot.waitUntil(lambda: f"{number} records" in page.chain.words.text() and not page.log.newer.isVisible())


def test_the_filter_asks_the_supervisor(make_house: House, open_window: Opener, qtbot: QtBot) -> None:
    house = make_house("mockup")
    hold(house, 3000)
    page = page_of(open_window("audit"))
    key(page.view, Qt.Key.Key_Slash)
    QTest.keyClicks(page.log.search, "CREDENTIALS")
    qtbot.waitUntil(lambda: page.log.book.query == "CREDENTIALS" and not page.log.is_asking)
    assert len(page.log.model.rows) == PAGE and all("credentials" in row.what for row in page.log.model.rows)
    page.view.verticalScrollBar().setValue(page.view.verticalScrollBar().maximum())
    qtbot.waitUntil(lambda: len(page.log.model.rows) == 300)
    QTest.keyClicks(page.log.search, "nothing holds this")
    qtbot.waitUntil(lambda: page.log.empty.isVisible())
    assert "No records match" in page.log.empty.text()
    key(page.log.search, Qt.Key.Key_Escape)
    qtbot.waitUntil(lambda: page.log.book.query == "" and len(page.log.model.rows) == PAGE)


def test_verify_says_whole_with_its_age(make_house: House, open_window: Opener, qtbot: QtBot) -> None:
    house = make_house("mockup")
    hold(house, 50)
    page = page_of(open_window("audit"))
    key(page.view, Qt.Key.Key_V)
    qtbot.waitUntil(lambda: "log intact" in page.chain.words.text())
    assert "50 records" in page.chain.took.text() and page.badge() is None
    write(house, 2)
    qtbot.waitUntil(lambda: "2 written since then" in page.chain.more.text())


def test_a_broken_chain_is_red_and_leads_there(make_house: House, open_window: Opener, qtbot: QtBot) -> None:
    house = make_house("mockup")
    hold(house, 2000)
    house.supervisor.rooms.verdict = AuditVerdict(
        whole=False, records=777, first_bad=778, why="<b>hash</b> differs", checked_at=time.time()
    )
    page = page_of(open_window("audit"))
    page.chain.verify.click()
    qtbot.waitUntil(lambda: "first bad record 778" in page.chain.words.text())
    assert page.chain.more.text() == "<b>hash</b> differs" and page.chain.jump.isVisible()
    qtbot.waitUntil(lambda: page.view.current() is not None and page.view.current().seq == 778)
    assert page.badge() is not None and page.log.newer.isVisible()
    key(page.view, Qt.Key.Key_Home)
    qtbot.waitUntil(lambda: page.log.model.rows[0].seq == 2000)


def test_a_loss_stays_red_until_it_is_acknowledged_with_a_reason(make_house: House, open_window: Opener, qtbot: QtBot) -> None:
    house = make_house("mockup")
    hold(house, 6)
    supervisor = house.supervisor
    lost = {"audit_whole": False, "audit_lost": True, "audit_why": "the log before this one <b>is missing</b>"}
    supervisor.status = supervisor.status.replaced(**lost)
    window = open_window("audit")
    page = page_of(window)
    qtbot.waitUntil(page.chain.acknowledge.isVisible)
    assert "records of before are lost" in page.chain.words.text() and "<b>is missing</b>" in page.chain.more.text()
    page.chain.verify.click()  # the log that is there is whole in itself: that changes nothing
    qtbot.waitUntil(lambda: any(verb == "verify" for verb, _, _ in supervisor.rooms.log) and not page.chain.is_verifying)
    assert page.chain.acknowledge.isVisible() and "lost" in page.chain.words.text()
    key(page.view, Qt.Key.Key_A)
    dialog = window.findChild(AcknowledgeDialog)
    assert dialog is not None and not dialog.main.isEnabled(), "a reason is needed"
    dialog.reason.setText("disk failure, ticket 4711")
    dialog.main.click()
    qtbot.waitUntil(lambda: ("acknowledge", "disk failure, ticket 4711", {}) in supervisor.rooms.log)
    supervisor.status = supervisor.status.replaced(audit_whole=True, audit_lost=False, audit_why="", audit_checked_at=time.time())
    qtbot.waitUntil(lambda: not page.chain.acknowledge.isVisible() and "log intact" in page.chain.words.text())
    assert page.why_not("audit.acknowledge") == "No loss of records waits to be acknowledged."


def test_a_chain_that_cannot_be_verified_is_never_called_whole(make_house: House, open_window: Opener, qtbot: QtBot) -> None:
    house = make_house("mockup")
    hold(house, 5)
    page = page_of(open_window("audit"))
    house.stop()
    key(page.view, Qt.Key.Key_V)
    qtbot.waitUntil(lambda: "Could not be verified" in page.chain.more.text())
    assert "whole" not in page.chain.words.text()


def test_the_detail_shows_the_place_and_copies_what_it_shows(make_house: House, open_window: Opener, qtbot: QtBot) -> None:
    house = make_house("mockup")
    hold(house, 300, hostile=True)
    page = page_of(open_window("audit"))
    page.view.choose("260")
    qtbot.waitUntil(lambda: page.pane.row is not None and page.pane.row.seq == 260)
    qtbot.waitUntil(lambda: page.pane.checks.accessibleName().count("matches") == 2)
    key(page.view, Qt.Key.Key_C)
    copied = QGuiApplication.clipboard().text()
    assert copied == page.pane.json.toPlainText() and json.loads(copied)["seq"] == 260
    model = page.log.model
    assert all(is_plain(model.words(r, c)) for r in range(200) for c in range(len(model.columns)))
    page.grab()


def test_keys_lead_to_agent_and_rollback(make_house: House, open_window: Opener, qtbot: QtBot) -> None:
    house = make_house("mockup")
    hold(house, 20)
    window = open_window("audit")
    page = page_of(window)
    row = next(row for row in page.log.model.rows if row.what.startswith("file_write etl"))
    page.view.choose(str(row.seq))
    assert page.pane.offers["audit.agent"].isEnabled() and page.pane.offers["audit.rollback"].isEnabled()
    key(page.view, Qt.Key.Key_O)
    rollback = window.pages["rollback"]
    assert window.page is rollback and isinstance(rollback, RollbackRecordsPage)
    qtbot.waitUntil(lambda: rollback.list.current() is not None and rollback.list.current().record_id == row.data["rollback_id"])  # type: ignore[union-attr]
    window.goto("audit", "")
    assert page.view.current().seq == row.seq, "coming back finds the same record"
    key(page.view, Qt.Key.Key_J)
    fleet = window.pages["fleet"]
    assert window.page is fleet and isinstance(fleet, FleetPage) and fleet.view.current().id == "backfill-worker"


def test_a_delta_for_another_room_changes_nothing(make_house: House, open_window: Opener) -> None:
    hold(make_house("mockup"), 5)
    page = page_of(open_window("audit"))
    page.handle(Delta(seq=1, kind="egress", data={"newest": 99}))
    page.handle(Delta(seq=2, kind="audit", data={"newest": "99"}))
    assert page.log.book.newest == 5


def test_narrow_windows_open_the_detail_with_enter(make_house: House, open_window: Opener) -> None:
    hold(make_house("mockup"), 50)
    page = page_of(open_window("audit", (1024, 700)))
    assert not page.pane.isVisible()
    key(page.view, Qt.Key.Key_Return)
    assert page.pane.isVisible() and page.view.width() > 400
    key(page.view, Qt.Key.Key_Return)
    assert not page.pane.isVisible()
