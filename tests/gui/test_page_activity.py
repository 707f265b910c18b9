"""The activity page against the stand-in supervisor: a feed that is read, followed, searched; hostile text; jumps; what it does without."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel, QPlainTextEdit
from pytestqt.qtbot import QtBot

from console.api.agents.activity import ActivityRow
from console.domain.activity import Entry, Kind
from console.gui.pages.activity import book
from console.gui.pages.activity.book import Book, Item
from console.gui.pages.activity.page import ActivityPageView, OutputDialog
from console.gui.pages.activity.rows import HEIGHT, lines_of, words_of
from console.gui.pages.fleet.page import FleetPage
from console.gui.widgets.safe_text import is_plain
from console.gui.window.main import Window
from tests.fakes.activity_routes import HOSTILE, feed
from tests.fakes.operator_server import FakeHouse

House = Callable[..., FakeHouse]
Opener = Callable[..., Window]
AGENT = "linux-arm64"


def row(seq: int, kind: str = "message", **more: object) -> ActivityRow:
    return ActivityRow(seq=seq, kind=kind, **more)  # type: ignore[arg-type]


def front(window: Window) -> str:
    return window.page.spec.name if window.page is not None else ""


def opened(house: FakeHouse, open_window: Opener, qtbot: QtBot, many: int = 0, agent: str = AGENT) -> tuple[Window, ActivityPageView]:
    if many:
        house.supervisor.activity.store.add(agent, feed(many, time.time()))
    window = open_window("fleet")
    window.goto("activity", agent)
    page = window.page
    assert isinstance(page, ActivityPageView)
    qtbot.waitUntil(page.is_ready)
    return window, page


def keep(house: FakeHouse, *entries: Entry, agent: str = AGENT) -> None:
    house.on_loop(lambda: house.supervisor.activity.keep(agent, entries))


# --- pure


def test_a_call_holds_its_verdicts_and_its_result_wherever_the_page_was_cut() -> None:
    call, verdict = row(1, "tool_call", tool="Bash", text="command: ls", pair="t"), row(2, "verdict", pair="t", verdict="allow", audit=9)
    result = row(3, "tool_result", pair="t", text="a.txt")
    whole = Book()
    [item], _ = whole.older([call, verdict, result], at_start=True)
    assert item.result == result and item.audit == 9
    cut = Book()
    tail, _ = cut.older([verdict, result, row(4)], at_start=False)
    assert [i.row.seq for i in tail] == [2, 3, 4]
    head, adopted = cut.older([call], at_start=True)
    assert head[0].result == result and head[0].verdicts == [verdict] and adopted == tail[:2]
    live = Book()
    live.older([call], at_start=True)
    assert live.newer([verdict, result, result]) == [] and live.newest == 3


def test_a_refusal_is_what_counts_and_is_told_without_colour() -> None:
    item = Item(row(1, "tool_call", tool="Bash", text="command: rm"))
    item.verdicts = [row(2, "verdict", verdict="deny", text="policy"), row(3, "verdict", verdict="allow")]
    said = lines_of(item)
    assert (said.icon, said.second, said.main) == ("ban", "Denied · policy", "rm")
    item.verdicts, item.lines = [], None
    item.result = row(4, "tool_result", failed=True, text="no such file")
    assert lines_of(item).second == "failed · no such file"
    assert words_of(Item(row(1, "spend", tokens=5)), "spend") == "unpriced", "never $0"


def test_while_following_the_upper_end_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(book, "TRIM_FROM", 10)
    monkeypatch.setattr(book, "TRIM_TO", 4)
    one = Book()
    one.items.extend(one.newer([row(n) for n in range(1, 13)]))
    assert one.trimmed() == 8
    del one.items[:8]
    one.forget(8)
    assert (one.oldest, one.at_start) == (9, False)


@pytest.mark.parametrize("text", HOSTILE)
def test_whatever_an_agent_writes_is_a_line_of_plain_text(text: str) -> None:
    for kind in ("message", "tool_call", "tool_result", "file", "spawn", "error", "note", "verdict", "spend", "thinking", "unheard-of"):
        said = lines_of(Item(row(1, kind, text=text, who=text, tool=text, ref=text, verdict=text)))
        assert all(is_plain(part) for part in (said.title, said.main, said.second))
        assert not said.title or said.foreign or said.title in ("Result", "File", "Started", "Answer", "Decided", "Error", "Thinks")


# --- in the window


def test_the_fleet_leads_to_it_and_it_leads_to_child_audit_and_rollback(qtbot: QtBot, make_house: House, open_window: Opener) -> None:
    house = make_house()
    house.supervisor.activity.store.add("support-triage", feed(15, time.time()))
    window = open_window("fleet")
    QTest.keyClick(window, Qt.Key.Key_A)
    page = window.page
    assert isinstance(page, ActivityPageView)
    qtbot.waitUntil(page.is_ready)
    assert window.nav.items["fleet"].isVisible() and page.name.text() == "support-triage"
    by_kind = {item.row.kind + item.row.tool: item for item in page.feed.model.rows}
    assert page.why_not("activity.audit").startswith("No audit record")
    page.view.choose(by_kind["tool_callWrite"].key)
    assert page.pane.first.view.toPlainText().startswith("file_path: /work/src/fpu.c")
    window.do("activity.rollback")
    assert front(window) == "rollback"
    window.goto("activity", "support-triage")
    window.do("activity.audit")
    assert front(window) == "audit"
    window.goto("activity", "support-triage")
    page.view.choose(by_kind["spawn"].key)
    window.do("activity.agent")
    fleet = window.pages["fleet"]
    assert front(window) == "fleet" and isinstance(fleet, FleetPage) and fleet.view.current().id == "linux-x64"


def test_it_reads_back_to_the_beginning_as_one_scrolls_and_keeps_the_place(qtbot: QtBot, make_house: House, open_window: Opener) -> None:
    house = make_house()
    _, page = opened(house, open_window, qtbot, 900)
    view, bar = page.view, page.view.verticalScrollBar()
    assert (bar.value(), page.feed.following) == (bar.maximum(), True)
    view.choose(page.feed.model.rows[5].key)
    kept = view.current()
    qtbot.waitUntil(lambda: len(page.feed.model.rows) > 200)
    assert (view.current(), page.feed.following) == (kept, False)

    def at_start() -> bool:
        bar.setValue(0)
        return page.feed.book.at_start

    qtbot.waitUntil(at_start)
    seqs = [item.row.seq for item in page.feed.model.rows]
    assert seqs == sorted(seqs) and seqs[0] == 1 and page.feed.model.rowCount() == len(seqs)
    results = [i for i in page.feed.model.rows if i.row.kind in ("tool_result", "verdict")]
    assert not results, "every verdict and result found its call"


def test_it_follows_until_somebody_scrolls_and_then_says_how_many_wait(qtbot: QtBot, make_house: House, open_window: Opener) -> None:
    house = make_house()
    _, page = opened(house, open_window, qtbot, 60)
    bar = page.view.verticalScrollBar()
    keep(house, Entry(Kind.TOOL_CALL, "live", time.time(), "command: ls", tool="Bash", pair="live"))
    qtbot.waitUntil(lambda: page.feed.model.rows[-1].row.pair == "live")
    qtbot.waitUntil(lambda: bar.value() == bar.maximum())
    keep(house, Entry(Kind.TOOL_RESULT, "live2", time.time(), "a.txt", pair="live"))
    qtbot.waitUntil(lambda: page.feed.model.rows[-1].result is not None)
    bar.setValue(bar.maximum() // 2)
    place, rows = bar.value(), page.feed.model.rowCount()
    keep(house, *(Entry(Kind.NOTE, f"n{n}", time.time(), f"note {n}") for n in range(12)))
    qtbot.waitUntil(lambda: page.feed.newer.text() == "12 new")
    assert (bar.value(), page.feed.model.rowCount()) == (place, rows)
    QTest.keyClick(page.view, Qt.Key.Key_End)
    qtbot.waitUntil(lambda: page.feed.model.rows[-1].row.text == "note 11")
    qtbot.waitUntil(lambda: bar.value() == bar.maximum() and page.feed.newer.isHidden())


def test_search_and_kinds_are_asked_of_the_supervisor_as_one_types(qtbot: QtBot, make_house: House, open_window: Opener) -> None:
    house = make_house()
    _, page = opened(house, open_window, qtbot, 400)
    keep(house, Entry(Kind.FILE, "needle", time.time(), "edit", ref="/needle.txt", tool="edit"))
    before = len(house.supervisor.activity.asked)
    QTest.keyClicks(page.feed.search, "NEEDLE")
    qtbot.waitUntil(lambda: [i.row.ref for i in page.feed.model.rows] == ["/needle.txt"])
    assert len([a for a in house.supervisor.activity.asked[before:] if a.get("q")]) <= 3, "not one question for each letter"
    page.feed.search.clear()
    page.feed.kinds.pills["error"].click()
    qtbot.waitUntil(lambda: page.feed.loaded and {i.row.kind for i in page.feed.model.rows} == {"error"})
    QTest.keyClicks(page.feed.search, "no such words")
    qtbot.waitUntil(lambda: page.feed.empty.isVisible() and "matches" in page.feed.empty.text())


def test_nothing_yet_a_refusal_and_a_swept_file_are_said(qtbot: QtBot, make_house: House, open_window: Opener) -> None:
    house = make_house()
    window, page = opened(house, open_window, qtbot)
    assert page.feed.empty.isVisible() and "appear here" in page.feed.empty.text()
    house.supervisor.activity.broken = "activity.db cannot be used: disk full."
    page.feed.read()
    qtbot.waitUntil(lambda: "disk full" in page.feed.empty.text())
    assert "cannot be read" in page.words.text()
    house.supervisor.activity.broken = ""
    house.supervisor.activity.words = "Kept here: the program's own file is gone."
    house.supervisor.activity.store.add(AGENT, feed(3, time.time()))
    page.on_tick(time.time() + 60)
    qtbot.waitUntil(lambda: page.feed.model.rowCount() == 3 and "is gone" in page.words.text())
    assert window.page is page


def test_hostile_text_is_shown_plain_everywhere_and_copied_as_it_is_shown(qtbot: QtBot, make_house: House, open_window: Opener) -> None:
    house = make_house()
    _, page = opened(house, open_window, qtbot)
    house.on_loop(lambda: house.supervisor.activity.hostile(AGENT))
    qtbot.waitUntil(lambda: page.feed.model.rowCount() == 9 * len(HOSTILE))
    for item in page.feed.model.rows:
        page.view.choose(item.key)
        texts = [label.text() for label in page.findChildren(QLabel)] + [page.view.model().data(page.view.currentIndex())]
        for edit in page.findChildren(QPlainTextEdit):
            texts += edit.toPlainText().split("\n")
        assert all(is_plain(text) for text in texts), item.row.text[:40]
        page.do("activity.copy")
        copied = QGuiApplication.clipboard().text()
        assert all(is_plain(line) for line in copied.split("\n")) and "\x1b" not in copied and "\u202e" not in copied
    assert page.view.visualRect(page.view.currentIndex()).height() == HEIGHT


def test_a_long_text_is_shown_in_part_then_whole_and_what_was_not_kept_is_said(
    qtbot: QtBot, make_house: House, open_window: Opener
) -> None:
    house = make_house()
    _, page = opened(house, open_window, qtbot)
    keep(house, Entry(Kind.MESSAGE, "long", time.time(), "n" * 100_000))
    qtbot.waitUntil(lambda: page.feed.model.rowCount() == 1)
    page.view.choose(page.feed.model.rows[0].key)
    part = page.pane.first
    assert len(part.view.toPlainText()) < 1000 and part.more.isVisible()
    part.more.click()
    qtbot.waitUntil(lambda: part.view.toPlainText() == "n" * 16_384)
    assert part.more.isHidden()
    assert "83,616 characters were not kept" in part._left.text()


def test_narrow_the_detail_opens_over_the_feed_with_enter(qtbot: QtBot, make_house: House, open_window: Opener) -> None:
    house = make_house()
    house.supervisor.activity.store.add(AGENT, feed(30, time.time()))
    window = open_window("fleet", (1024, 700))
    window.goto("activity", AGENT)
    page = window.page
    assert isinstance(page, ActivityPageView)
    qtbot.waitUntil(page.is_ready)
    assert page.pane.isHidden()
    QTest.keyClick(page.view, Qt.Key.Key_Return)
    assert page.pane.isVisible()
    QTest.keyClick(window, Qt.Key.Key_Backspace)
    assert front(window) == "fleet"


def test_what_its_program_wrote_can_be_read_and_goes_on(qtbot: QtBot, make_house: House, open_window: Opener) -> None:
    house = make_house()
    window, page = opened(house, open_window, qtbot, 5)
    window.do("activity.output")
    dialog = window.findChild(OutputDialog)
    assert isinstance(dialog, OutputDialog)
    dialog._offset = 0
    qtbot.waitUntil(lambda: "\\x1b[31mred\\u202e" in dialog.view.toPlainText())
    house.supervisor.activity.output += "more\n"
    qtbot.waitUntil(lambda: "more" in dialog.view.toPlainText())
    assert all(is_plain(line) for line in dialog.view.toPlainText().split("\n"))
    dialog.main.click()
    qtbot.waitUntil(lambda: window.findChild(OutputDialog) is None)
    page.feed.show_agent("nobody")
    qtbot.waitUntil(lambda: page.feed.loaded)
    assert "only of agents that Watchfloor started" in page.why_not("activity.output")
