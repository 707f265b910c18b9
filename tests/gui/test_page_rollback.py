"""The rollback page against the stand-in supervisor: list, diff, dry run, restore with typed words, conflicts."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from console.api.records import DiffLine, RollbackRow
from console.gui.pages.audit.page import AuditLogPage
from console.gui.pages.rollback.diff import changed_part, halves
from console.gui.pages.rollback.page import RollbackRecordsPage
from console.gui.pages.rollback.plan import Plan, numbers
from console.gui.pages.rollback.rows import Group, Item, arrange, cell_words, state_words
from console.gui.widgets.safe_text import is_plain
from console.gui.window.main import Window
from tests.fakes import pages_fixture as fixture
from tests.fakes.gui_fixture import HOSTILE_NAMES
from tests.fakes.operator_server import FakeHouse
from tests.fakes.pages_routes import FakeRooms

House = Callable[..., FakeHouse]
Opener = Callable[..., Window]


def page_of(window: Window) -> RollbackRecordsPage:
    assert isinstance(window.page, RollbackRecordsPage)
    return window.page


def key(where: QWidget, code: Qt.Key) -> None:
    QTest.keyClick(where, code)


@pytest.fixture
def rooms(make_house: House) -> FakeRooms:
    return make_house("mockup").supervisor.rooms


def restores(rooms: FakeRooms) -> list[str]:
    return [record_id for verb, record_id, _ in rooms.log if verb == "restore"]


def choose(page: RollbackRecordsPage, record_id: str, qtbot: QtBot) -> None:
    page.view.choose(f"r:{record_id}")
    qtbot.waitUntil(lambda: page.pane.bar.plan.details != () and page.pane.bar.plan.details[0].row.record_id == record_id)


# --- pure ---------------------------------------------------------------------------------------------------------------


def test_a_row_that_the_record_does_not_stand_behind_is_in_doubt_whatever_it_says() -> None:
    facts: dict[str, Any] = {"record_id": "r-1", "agent_id": "a", "context_id": "s", "kind": "file_write", "path": "x", "created_at": 1.0}
    sound, doubtful = (RollbackRow(**facts, state="restored", doubt=doubt) for doubt in ("", "it was changed <b>after</b>"))
    assert state_words(sound)[0] != "In doubt" and state_words(doubtful) == ("In doubt", "triangle", "warn")
    assert "it was changed" in cell_words(Item(doubtful, False), "state") and is_plain(cell_words(Item(doubtful, False), "state"))


def test_before_stands_left_and_what_is_on_disk_right() -> None:
    old, new = halves(DiffLine(sign="~", left_no=3, left="x = 2", right_no=4, right="x = 1"))
    assert (old.number, old.sign, old.text, old.mark) == (4, "−", "x = 1", (4, 5))
    assert (new.number, new.sign, new.text, new.mark) == (3, "+", "x = 2", (4, 5))
    old, new = halves(DiffLine(sign="-", left_no=3, left="added by the agent"))
    assert old.number is None and new.sign == "+" and new.text == "added by the agent"
    old, new = halves(DiffLine(sign="+", right_no=7, right="taken away by the agent"))
    assert new.number is None and old.sign == "−" and old.number == 7


@pytest.mark.parametrize("text", HOSTILE_NAMES)
def test_lines_are_shown_literally(text: str) -> None:
    old, new = halves(DiffLine(sign="~", left_no=1, left=text, right_no=1, right=f"\t{text}"))
    assert is_plain(old.text) and is_plain(new.text)


def test_the_changed_part_of_long_lines_is_found_in_linear_time() -> None:
    began = time.thread_time()
    assert changed_part("a" * 200_000, "a" * 199_999) == ((199_999, 200_000), (199_999, 199_999))
    assert time.thread_time() - began < 1
    assert changed_part("same", "same") == ((4, 4), (4, 4))


def test_records_stand_under_their_agent_and_fold() -> None:
    records = fixture.records(1000.0)
    lines = arrange(records, "", set(), {"r-20418"})
    assert [line.agent_id for line in lines if isinstance(line, Group)] == [
        "backfill-worker",
        "dependency-audit",
        "snapshot-pruner",
        "support-triage",
    ]
    assert [line.view.record_id for line in lines if isinstance(line, Item) and line.marked] == ["r-20418"]
    assert len(arrange(records, "", {"backfill-worker"}, set())) == len(lines) - 6
    assert len(arrange(records, "cargo.lock", {"dependency-audit"}, set())) == 2


def test_conflicts_are_counted_and_never_written() -> None:
    records = fixture.records(1000.0)
    plan = Plan(tuple(fixture.record_detail(r) for r in records))
    assert plan.typed == "restore 10" and len(plan.skipped) == 1
    assert [(words, number) for words, number, _ in numbers(plan)] == [("put back", 10), ("already restored", 1), ("conflict, skipped", 1)]
    assert "not complete" in Plan(plan.details, 1).why_not()
    assert Plan((fixture.record_detail(records[0]),)).why_not()


# --- the page -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [0, 1, 200])
def test_lists_of_any_length(number: int, rooms: FakeRooms, open_window: Opener) -> None:
    rooms.records = fixture.records(time.time(), number)
    page = page_of(open_window("rollback"))
    assert sum(isinstance(line, Item) for line in page.list.model.rows) == number
    assert page.list.empty.isVisible() == (number == 0)
    assert page.pane.isVisible() == (number > 0)


def test_a_conflict_is_said_and_offers_nothing(rooms: FakeRooms, open_window: Opener, qtbot: QtBot) -> None:
    page = page_of(open_window("rollback"))
    assert page.pane.conflict.isVisible() and "changed since" in page.pane.conflict.text()
    assert not page.pane.bar.button.isEnabled() and not page.pane.bar.typed.isVisible()
    assert "Conflict" in page.why_not("rollback.restore")


def test_a_restore_needs_the_typed_words_and_a_reason(rooms: FakeRooms, open_window: Opener, qtbot: QtBot) -> None:
    page = page_of(open_window("rollback"))
    choose(page, "r-20417", qtbot)
    shown = page.pane.bar.plan.details[0].now_sha256
    key(page.view, Qt.Key.Key_R)
    bar = page.pane.bar
    assert bar.typed.hasFocus()
    QTest.keyClicks(bar.typed, "restore 2")
    bar.reason.setText("wrong orders")
    assert not bar.button.isEnabled() and page.pane._unwritten.isVisible()
    key(bar.reason, Qt.Key.Key_Return)
    assert not restores(rooms)
    bar.typed.setText("restore 1")
    assert bar.button.isEnabled()
    bar.button.click()
    qtbot.waitUntil(lambda: "1 of 1 record restored" in bar.outcome.text())
    body = next(body for verb, _, body in rooms.log if verb == "restore")
    assert body == {"reason": "wrong orders", "expect_now_sha256": shown}
    qtbot.waitUntil(lambda: any(r.record_id == "r-20417" and r.state == "restored" for r in page.list.records))
    assert bar.typed.text() == ""
    qtbot.waitUntil(page.pane._unwritten.isHidden)


def test_a_file_that_changed_since_it_was_shown_is_a_conflict(rooms: FakeRooms, open_window: Opener, qtbot: QtBot) -> None:
    page = page_of(open_window("rollback"))
    choose(page, "r-20417", qtbot)
    row = next(r for r in rooms.records if r.record_id == "r-20417")
    rooms.details["r-20417"] = fixture.record_detail(row).replaced(now_sha256=fixture.sha("another content"))
    bar = page.pane.bar
    bar.typed.setText("restore 1")
    bar.reason.setText("r")
    bar.button.click()
    qtbot.waitUntil(lambda: "not what you looked at" in bar.outcome.text())
    assert "0 of 1 record restored" in bar.outcome.text() and bar.typed.text() == ""
    qtbot.waitUntil(lambda: bar.plan.details[0].now_sha256 == fixture.sha("another content"))
    assert rooms.records[1].state == "can_restore"


def test_a_changed_plan_empties_the_typed_words(rooms: FakeRooms, open_window: Opener, qtbot: QtBot) -> None:
    page = page_of(open_window("rollback"))
    choose(page, "r-20417", qtbot)
    bar = page.pane.bar
    bar.typed.setText("restore 1")
    page._read_plan()
    qtbot.waitUntil(lambda: page.desk.requests.in_flight == 0)
    assert bar.typed.text() == "restore 1", "the same plan"
    row = next(r for r in rooms.records if r.record_id == "r-20417")
    rooms.details["r-20417"] = fixture.record_detail(row).replaced(conflict="It changed again.")
    page._read_plan()
    qtbot.waitUntil(lambda: page.pane.conflict.text() == "It changed again.")
    assert bar.typed.text() == "" and not bar.button.isEnabled()


def test_space_selects_several_and_they_go_one_after_the_other(rooms: FakeRooms, open_window: Opener, qtbot: QtBot) -> None:
    page = page_of(open_window("rollback"))
    for record_id in ("r-20418", "r-20417", "r-20416"):
        page.view.choose(f"r:{record_id}")
        key(page.view, Qt.Key.Key_Space)
    bar = page.pane.bar
    qtbot.waitUntil(lambda: len(bar.plan.details) == 3 and bar.plan.reading == 0)
    assert bar.plan.typed == "restore 2", "the conflict is counted apart"
    bar.typed.setText("restore 2")
    bar.reason.setText("both")
    bar.button.click()
    qtbot.waitUntil(lambda: "2 of 2 records restored" in bar.outcome.text())
    assert restores(rooms) == ["r-20417", "r-20416"]
    assert not page.list.marks


def test_escape_stops_between_two_records(rooms: FakeRooms, open_window: Opener, qtbot: QtBot) -> None:
    page = page_of(open_window("rollback"))
    page.view.choose("g:dependency-audit")
    key(page.view, Qt.Key.Key_Space)
    bar = page.pane.bar
    qtbot.waitUntil(lambda: bar.plan.typed == "restore 3")
    bar.typed.setText("restore 3")
    bar.reason.setText("all")
    bar.run()
    key(page.view, Qt.Key.Key_Escape)
    qtbot.waitUntil(lambda: "stopped, 2 left" in bar.outcome.text())
    assert len(restores(rooms)) == 1


def test_keys_fold_filter_and_lead_to_the_audit(rooms: FakeRooms, open_window: Opener, qtbot: QtBot) -> None:
    window = open_window("rollback")
    page = page_of(window)
    before = len(page.list.model.rows)
    key(page.view, Qt.Key.Key_Left)
    assert isinstance(page.view.current(), Group)
    key(page.view, Qt.Key.Key_Left)
    assert len(page.list.model.rows) == before - 6
    key(page.view, Qt.Key.Key_Right)
    assert len(page.list.model.rows) == before
    key(page.view, Qt.Key.Key_Slash)
    QTest.keyClicks(page.list.search, "backfill_2")
    key(page.list.search, Qt.Key.Key_Return)
    page.view.choose("r:r-20417")
    key(page.view, Qt.Key.Key_O)
    assert isinstance(window.page, AuditLogPage)
    qtbot.waitUntil(lambda: window.page is not None and window.page.is_ready())
    assert window.page.log.book.query == "etl/orders/backfill_2.py"
    assert window.page.log.book.rows and all("backfill_2" in row.what for row in window.page.log.book.rows)


def test_hostile_text_is_shown_literally(rooms: FakeRooms, open_window: Opener, qtbot: QtBot) -> None:
    rows = fixture.records(time.time(), len(HOSTILE_NAMES))
    rooms.records = [r.replaced(path=n, agent_name=n, agent_id=f"a{i}") for i, (r, n) in enumerate(zip(rows, HOSTILE_NAMES, strict=True))]
    page = page_of(open_window("rollback"))
    model = page.list.model
    assert all(is_plain(model.words(r, c)) for r in range(len(model.rows)) for c in range(len(model.columns)))
    page.grab()


def test_binary_content_has_no_lines(rooms: FakeRooms, open_window: Opener, qtbot: QtBot) -> None:
    row = rooms.records[1]
    rooms.details[row.record_id] = fixture.record_detail(row).replaced(binary=True, diff=[])
    page = page_of(open_window("rollback"))
    choose(page, row.record_id, qtbot)
    assert "Not text" in page.pane.diff.accessibleDescription()


def test_two_thousand_lines_paint_only_what_is_in_sight(rooms: FakeRooms, open_window: Opener, qtbot: QtBot) -> None:
    row = rooms.records[1]
    lines = [DiffLine(sign="~", left_no=n, left=f"new {n} " + "x" * 900, right_no=n, right=f"old {n} " + "y" * 900) for n in range(1, 2001)]
    rooms.details[row.record_id] = fixture.record_detail(row).replaced(diff=lines, truncated=True)
    page = page_of(open_window("rollback"))
    choose(page, row.record_id, qtbot)
    page.grab()
    assert len(page.pane.diff._halves) < 60


def test_narrow_windows_show_the_detail_over_the_list(rooms: FakeRooms, open_window: Opener, qtbot: QtBot) -> None:
    page = page_of(open_window("rollback", (1024, 700)))
    assert page.list.isVisible() and not page.pane.isVisible()
    key(page.view, Qt.Key.Key_Return)
    assert page.pane.isVisible() and not page.list.isVisible()
    key(page.pane, Qt.Key.Key_Escape)
    assert page.list.isVisible() and not page.pane.isVisible()
