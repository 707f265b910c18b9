"""The network page against the stand-in supervisor: the list, the drawer, the test field, the egress log."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from PySide6.QtCore import QPointF, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from console.api.messages import Delta, EgressView
from console.gui.pages.interface import Badge
from console.gui.pages.network.draft import asked_for, offer, probe_url
from console.gui.pages.network.drawer import Judged
from console.gui.pages.network.editor import RemoveDialog
from console.gui.pages.network.egress import KEPT, EgressBook
from console.gui.pages.network.page import NetworkPage
from console.gui.widgets.safe_text import is_plain
from console.gui.window.main import Window
from tests.fakes import pages_fixture as fixture
from tests.fakes.gui_fixture import HOSTILE_NAMES
from tests.fakes.operator_server import FakeHouse
from tests.fakes.pages_routes import FakeRooms

House = Callable[..., FakeHouse]
Opener = Callable[..., Window]


def page_of(window: Window) -> NetworkPage:
    assert isinstance(window.page, NetworkPage)
    return window.page


def key(where: QWidget, code: Qt.Key, more: Qt.KeyboardModifier = Qt.KeyboardModifier.NoModifier) -> None:
    QTest.keyClick(where, code, more)


def asked(rooms: FakeRooms, what: str) -> list[dict[str, Any]]:
    return [body for verb, _, body in rooms.log if verb == what]


@pytest.fixture
def rooms(make_house: House) -> FakeRooms:
    return make_house("mockup").supervisor.rooms


def blocked(host: str, method: str = "GET", path: str = "/x", rule: str = "no entry for it") -> EgressView:
    return EgressView(at=1.0, agent_id="a", method=method, host=host, path=path, status=403, allowed=False, rule=rule)


# --- pure ---------------------------------------------------------------------------------------------------------------


def test_the_narrowest_entry_names_this_request_alone() -> None:
    made = offer(blocked("Crates.io:8080", path="/dl/x?token=1")).draft
    assert made is not None
    assert (made.host, made.port, made.methods, made.paths) == ("crates.io", 8080, ["GET"], ["/dl/x"])
    tunnel = offer(blocked("pastebin.com", "CONNECT", "")).draft
    secretive = offer(blocked("pastebin.com", "CONNECT", "").replaced(sensitivity="CONFIDENTIAL")).draft
    assert secretive is not None and secretive.may_receive == "CONFIDENTIAL"  # so that its next try is let through
    assert tunnel is not None and (tunnel.port, tunnel.methods, tunnel.paths) == (443, [], [])


@pytest.mark.parametrize(
    "host",
    [
        "169.254.169.254",
        "10.0.0.1:80",
        "127.1",
        "0x7f000001",
        "2130706433",
        "[::1]",
        "[fd00::1]:80",
        "metadata.google.internal",
        "METADATA.goog:80",
    ],
)
def test_addresses_and_metadata_are_never_offered(host: str) -> None:
    assert offer(blocked(host)).kind == "never"
    assert offer(blocked(host)).draft is None


@pytest.mark.parametrize(
    ("record", "kind"),
    [
        (blocked("a.example", rule="entry e1: the name leads to a private, own or metadata address it may not reach"), "never"),
        (blocked("a.example", "CONNECT", "", rule="entry e1: not TLS inside the tunnel"), "none"),
        (blocked("a.example:8443", "CONNECT", ""), "none"),
        (blocked("a.example:443"), "none"),
        (blocked("localhost"), "none"),
        (blocked("bad host\u202e"), "none"),
        (blocked("a.example", path="/x y"), "none"),
        (blocked(""), "none"),
    ],
)
def test_what_no_entry_would_allow_is_not_offered(record: EgressView, kind: str) -> None:
    assert offer(record).kind == kind


def test_test_field_and_probe() -> None:
    assert asked_for("POST https://a.example/x") == ("POST", "https://a.example/x")
    assert asked_for("a.example/x") == ("GET", "https://a.example/x")
    assert probe_url("*.a.example", 443, []) == "https://probe.a.example:443/"
    assert probe_url("a.example", 80, ["/v1/"]) == "http://a.example:80/v1/"


def test_the_log_is_bounded_and_joins_a_page_with_what_came_live() -> None:
    book = EgressBook()
    for view in reversed(fixture.egress(time.time(), 10_000)):
        book.add(view, time.monotonic())
    assert len(book.lines) == KEPT
    page = fixture.egress(1000.0, 5)
    book = EgressBook()
    book.add(page[0], 0.0)
    fresh = page[0].replaced(at=2000.0)
    book.add(fresh, 0.0)
    book.replace(page)
    assert [line.view for line in book.lines] == [fresh, *page]


# --- the page -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [0, 1, 200])
def test_lists_of_any_length(number: int, rooms: FakeRooms, open_window: Opener, qtbot: QtBot) -> None:
    rooms.entries, rooms.egress = fixture.entries(time.time(), number), fixture.egress(time.time(), number)
    page = page_of(open_window("network"))
    assert len(page.tabs.model.rows) == number and len(page.tabs.log.model.rows) == number
    assert page.tabs.empty.isVisible() == (number == 0) and page.tabs.log.empty.isVisible() == (number == 0)
    assert number or page.tabs.empty.text().endswith("Press N, or “Allow this…” below.")
    qtbot.waitUntil(lambda: page.header.facts.envoy[0] == "Healthy" and page.header.modes["FULL"] == 1)
    assert page.badge() is None, "the whole network alone is no alarm"
    row = next(row for row in page.desk.fleet.rows.values() if "full" in row.tags)
    page.desk.fleet.upsert(row.view.replaced(sensitivity="SECRET"))
    assert page.badge() == Badge("1", "warn", "warning")


def test_ten_thousand_requests_leave_the_window_responsive(rooms: FakeRooms, open_window: Opener, qtbot: QtBot) -> None:
    page = page_of(open_window("network"))
    views = fixture.egress(time.time() + 10, 10_000)
    began = time.thread_time()
    for number, view in enumerate(reversed(views)):
        page.handle(Delta(seq=number, kind="egress", data=view.as_data()))
    page.tabs.log.flush()
    assert time.thread_time() - began < 4
    assert len(page.tabs.log.model.rows) == KEPT and page.tabs.log.model.rows[0].view == views[0]


def test_the_log_waits_while_it_is_scrolled(rooms: FakeRooms, open_window: Opener, qtbot: QtBot) -> None:
    rooms.egress = fixture.egress(time.time(), 200)
    page = page_of(open_window("network"))
    page.tabs.log.view.verticalScrollBar().setValue(300)
    top = page.tabs.log.model.rows[0]
    for _ in range(3):
        page.handle(Delta(seq=1, kind="egress", data=fixture.egress(time.time(), 1)[0].as_data()))
    page.tabs.log.flush()
    assert page.tabs.log.model.rows[0] is top and page.tabs.log.newer.isVisible() and page.tabs.log.newer.text() == "3 new"
    key(page.tabs.view, Qt.Key.Key_L)
    qtbot.waitUntil(lambda: len(page.tabs.log.model.rows) == 203)
    assert not page.tabs.log.newer.isVisible() and page.tabs.log.view.verticalScrollBar().value() == 0


def test_adding_needs_envoys_word_on_exactly_this_text(rooms: FakeRooms, open_window: Opener, qtbot: QtBot) -> None:
    window = open_window("network")
    page = page_of(window)
    key(page.tabs.view, Qt.Key.Key_N)
    drawer = page.drawer
    assert drawer.isVisible() and not drawer.save.isEnabled()
    QTest.keyClicks(drawer.form.host, "new.example")
    qtbot.waitUntil(lambda: "reason and an owner" in drawer.verdict.text())
    assert drawer.judged is Judged.REFUSED and not drawer.save.isEnabled()
    drawer.form.owner.setText("platform")
    drawer.form.reason.setText("because")
    assert not drawer.save.isEnabled()
    key(window, Qt.Key.Key_S, Qt.KeyboardModifier.ControlModifier)
    assert not asked(rooms, "add"), "saved before Envoy answered"
    qtbot.waitUntil(lambda: drawer.save.isEnabled())
    assert asked(rooms, "test")[-1]["entry"]["host"] == "new.example" and asked(rooms, "test")[-1]["validate_with_envoy"]
    key(window, Qt.Key.Key_S, Qt.KeyboardModifier.ControlModifier)
    qtbot.waitUntil(lambda: "applied to 14 sandboxes" in drawer.outcome.text())
    assert asked(rooms, "add")[-1]["base_version"] == 118
    qtbot.waitUntil(lambda: any(r.view.host == "new.example" for r in page.tabs.model.rows))
    assert not drawer.is_dirty and not drawer.save.isEnabled()


def test_an_answer_about_an_older_text_opens_nothing(rooms: FakeRooms, open_window: Opener, qtbot: QtBot) -> None:
    page = page_of(open_window("network"))
    key(page.tabs.view, Qt.Key.Key_Return)
    drawer = page.drawer
    drawer.form.reason.setText("another")
    drawer._late.stop()
    drawer._validate()
    drawer.form.reason.setText("another one")
    drawer._late.stop()
    qtbot.waitUntil(lambda: page.desk.requests.in_flight == 0)
    assert drawer.judged is Judged.ASKING and not drawer.save.isEnabled()


def test_a_refused_change_keeps_the_list_and_shows_envoys_words(rooms: FakeRooms, open_window: Opener, qtbot: QtBot) -> None:
    page = page_of(open_window("network"))
    before = list(rooms.entries)
    key(page.tabs.view, Qt.Key.Key_Return)
    drawer = page.drawer
    rooms.envoy_says, rooms.envoy_words = False, "Duplicate filter chain"
    drawer.form.reason.setText("more")
    qtbot.waitUntil(lambda: "Duplicate filter chain" in drawer.verdict.text())
    assert not drawer.save.isEnabled()
    rooms.envoy_says = True
    drawer.form.reason.setText("more still")
    qtbot.waitUntil(lambda: drawer.save.isEnabled())
    rooms.refuse_save = "update_rejected: <b>bad</b>"
    drawer.save.click()
    qtbot.waitUntil(lambda: "update_rejected: <b>bad</b>" in drawer.outcome.text())
    assert "old list" in drawer.outcome.text() and rooms.entries == before and drawer.is_dirty


def test_envoy_that_cannot_be_asked_allows_no_save(rooms: FakeRooms, open_window: Opener, qtbot: QtBot) -> None:
    rooms.envoy_says, rooms.envoy = None, "unavailable"
    page = page_of(open_window("network"))
    assert page.header.facts.envoy[1] == "triangle"
    key(page.tabs.view, Qt.Key.Key_Return)
    page.drawer.form.reason.setText("more")
    qtbot.waitUntil(lambda: page.drawer.judged is Judged.REFUSED)
    assert not page.drawer.save.isEnabled()


def test_a_list_that_moved_on_is_a_conflict_not_a_lost_change(rooms: FakeRooms, open_window: Opener, qtbot: QtBot) -> None:
    page = page_of(open_window("network"))
    key(page.tabs.view, Qt.Key.Key_Return)
    drawer = page.drawer
    drawer.form.reason.setText("mine")
    qtbot.waitUntil(lambda: drawer.save.isEnabled())
    rooms.version = 130
    rooms.entries[0] = rooms.entries[0].replaced(reason="theirs")
    drawer.save.click()
    qtbot.waitUntil(lambda: "version 130" in drawer.outcome.text())
    assert rooms.entries[0].reason == "theirs"
    qtbot.waitUntil(lambda: page.reader.list is not None and page.reader.list.version == 130)
    qtbot.waitUntil(lambda: drawer.save.isEnabled())
    assert drawer.form.reason.text() == "mine"
    drawer.save.click()
    qtbot.waitUntil(lambda: rooms.entries[0].reason == "mine")
    assert asked(rooms, "edit")[-1]["base_version"] == 130


def test_removing_asks_for_a_reason(rooms: FakeRooms, open_window: Opener, qtbot: QtBot) -> None:
    window = open_window("network")
    page = page_of(window)
    page.tabs.view.choose("e3")
    key(page.tabs.view, Qt.Key.Key_Delete)
    dialog = window.findChild(RemoveDialog)
    assert dialog is not None and not dialog.main.isEnabled()
    dialog.reason.setText("not needed")
    rooms.version += 1
    dialog.main.click()
    problem = dialog.problem
    qtbot.waitUntil(lambda: "version 119" in problem.text())
    assert len(rooms.entries) == 38 and not dialog.main.isEnabled()
    dialog.reject()
    qtbot.waitUntil(lambda: page.reader.list is not None and page.reader.list.version == 119)
    page.do("network.remove")
    qtbot.waitUntil(lambda: len(window.findChildren(RemoveDialog)) > 0)
    dialog = window.findChildren(RemoveDialog)[-1]
    dialog.reason.setText("not needed")
    dialog.main.click()
    qtbot.waitUntil(lambda: len(page.tabs.model.rows) == 37)
    assert asked(rooms, "remove")[-1]["reason"] == "not needed"


def test_a_blocked_request_becomes_the_narrowest_draft(rooms: FakeRooms, open_window: Opener, qtbot: QtBot) -> None:
    page = page_of(open_window("network"))
    log = page.tabs.log
    log.view.setFocus()
    log.view.choose(log.model.rows[6].serial)
    key(log.view, Qt.Key.Key_A)
    assert not page.drawer.isVisible(), "a metadata address was offered"
    row = log.model.rows[2]
    act = log.view.columnViewportPosition(7) + 10
    log.view.pressed_at.emit(row, QPointF(act, 20))
    form = page.drawer.form
    assert page.drawer.isVisible()
    assert (form.host.text(), form.port.text(), form.paths.toPlainText()) == ("packages.internal", "80", "/api/v1/serde")
    assert form.now().methods == ("GET",) and form.owner.text() == ""


def test_escape_discards_and_a_draft_is_not_lost_by_another_entry(rooms: FakeRooms, open_window: Opener, qtbot: QtBot) -> None:
    page = page_of(open_window("network"))
    key(page.tabs.view, Qt.Key.Key_Return)
    page.drawer.form.reason.setText("mine")
    page.tabs.view.choose("e2")
    page.do("network.edit")
    assert page.drawer.draft.entry_id == "e1" and page.drawer.form.reason.text() == "mine"
    for field in (page.drawer.form.paths, page.drawer.form.reason):
        page.do("network.edit") if not page.drawer.isVisible() else None
        field.setFocus()
        key(field, Qt.Key.Key_Escape)
        assert not page.drawer.isVisible()
    assert not asked(rooms, "edit")


def test_the_test_field_asks_about_the_live_list_and_the_draft(rooms: FakeRooms, open_window: Opener, qtbot: QtBot) -> None:
    page = page_of(open_window("network"))
    key(page.tabs.view, Qt.Key.Key_T)
    assert page.tabs.bar.url.hasFocus() or QApplication.focusWidget() is page.tabs.bar.url
    QTest.keyClicks(page.tabs.bar.url, "https://new.example/x")
    qtbot.waitUntil(lambda: "Live list: blocked" in page.tabs.line.live.text())
    key(page.tabs.bar.url, Qt.Key.Key_Down)
    page.do("network.new")
    form = page.drawer.form
    form.host.setText("new.example")
    form.owner.setText("o")
    form.reason.setText("r")
    qtbot.waitUntil(lambda: "With the draft: allowed by the draft" in page.tabs.line.drafted.text())
    page.tabs.bar.url.setText("ftp://x")
    qtbot.waitUntil(lambda: "not an http" in page.tabs.line.live.text())
    key(page.tabs.bar.url, Qt.Key.Key_Escape)
    assert not page.tabs.line.isVisible()


def test_filter_and_configuration(rooms: FakeRooms, open_window: Opener, qtbot: QtBot) -> None:
    page = page_of(open_window("network"))
    key(page.tabs.view, Qt.Key.Key_Slash)
    QTest.keyClicks(page.tabs.bar.search, "stripe")
    assert page.tabs.model.rows and all("stripe" in row.view.host for row in page.tabs.model.rows)
    key(page.tabs.bar.search, Qt.Key.Key_Escape)
    assert len(page.tabs.model.rows) == 38
    key(page.tabs.view, Qt.Key.Key_V)
    qtbot.waitUntil(lambda: "egress_13" in page.tabs.config.toPlainText())
    assert page.tabs.config.isVisible() and page.tabs.config.isReadOnly()


def test_hostile_text_is_shown_literally(rooms: FakeRooms, open_window: Opener, qtbot: QtBot) -> None:
    now = time.time()
    rooms.entries = [e.replaced(reason=n, owner=n) for e, n in zip(fixture.entries(now), HOSTILE_NAMES, strict=False)]
    rooms.egress = [e.replaced(agent_name=n, rule=n, path=n) for e, n in zip(fixture.egress(now, 40), HOSTILE_NAMES, strict=False)]
    page = page_of(open_window("network"))
    for model in (page.tabs.model, page.tabs.log.model):
        assert all(is_plain(model.words(r, c)) for r in range(len(model.rows)) for c in range(len(model.columns)))
    page.tabs.view.choose("e2")
    page.do("network.edit")
    assert page.drawer.form.reason.text() == HOSTILE_NAMES[1]
    page.grab()


def test_killed_changes_nothing(make_house: House, open_window: Opener, qtbot: QtBot) -> None:
    house = make_house("mockup")
    page = page_of(open_window("network"))
    house.on_loop(house.guard.press_now)
    qtbot.waitUntil(lambda: page.desk.switch.is_killed)
    assert "rearm" in page.why_not("network.new") and "rearm" in page.why_not("network.allow")


def test_silence_is_not_green(make_house: House, open_window: Opener, qtbot: QtBot) -> None:
    house = make_house("mockup")
    page = page_of(open_window("network"))
    qtbot.waitUntil(lambda: page.header.facts.envoy == ("Healthy", "dot", "ok"))
    house.stop()
    page.reader.read_list()
    qtbot.waitUntil(lambda: page.header.facts.envoy[0] == "Not known")
    assert len(page.tabs.model.rows) == 38, "what was read stays to be read"


def test_an_envoy_that_works_again_leaves_the_navigation_while_the_page_is_hidden(
    rooms: FakeRooms, open_window: Opener, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("console.gui.pages.network.reader._AGAIN_S", 0.05)
    rooms.envoy = "failed"
    window = open_window("network")
    page = page_of(window)
    window.goto("fleet", "")
    qtbot.waitUntil(lambda: page.badge() == Badge("Envoy", "danger", "alert"))
    qtbot.wait(500)  # what is read when a window opens has come
    assert page.badge() == Badge("Envoy", "danger", "alert")
    rooms.envoy = "healthy"
    qtbot.waitUntil(lambda: page.badge() is None)


@pytest.mark.parametrize("size", [(1440, 900), (1024, 700)])
def test_the_drawer_leaves_room_for_the_list(size: tuple[int, int], rooms: FakeRooms, open_window: Opener, qtbot: QtBot) -> None:
    page = page_of(open_window("network", size))
    page.do("network.edit")
    qtbot.waitUntil(lambda: page.drawer.width() == 356)
    assert page.tabs.view.width() > 500
    assert page.drawer.geometry().right() < page.width()
