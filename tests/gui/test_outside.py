"""Tray and notifications: a real daemon shows them, an agent's words come out as they are, and what is not to be had is said."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from socket import socket
from threading import Event, Thread
from types import SimpleNamespace
from typing import Any, cast, get_args

import pytest
from jeepney import HeaderFields, Message
from PySide6.QtCore import QObject
from PySide6.QtWidgets import QSystemTrayIcon
from pytestqt.qtbot import QtBot

from console.api.alerts import AlertKind, AlertsView, AlertView, WebhookView
from console.api.messages import Delta
from console.api.policy.approvals import ApprovalDetailView, ApprovalRow
from console.gui.models.fleet import NEWS, Fleet, Row
from console.gui.models.switch import Switch
from console.gui.pages.approvals.answers import Answers
from console.gui.pages.approvals.book import Book, Entry
from console.gui.pages.approvals.notified import Notified
from console.gui.pages.approvals.page import ApprovalsPage
from console.gui.pages.approvals.words import call_line
from console.gui.requests import Requests
from console.gui.window import desktop
from console.gui.window import tray as tray_module
from console.gui.window.alerts import Alerts, asked_alert, kill_alert, state_alert
from console.gui.window.desktop import Alert, Desktop, body_of
from console.gui.window.main import Window
from console.gui.window.outside import Outside, webhook_lacks
from console.gui.window.tray import Tray, light_icon
from console.settings.options import AlertName, save_options
from console.settings.places import Places, find_places
from tests.fakes import gui_fixture as fixture
from tests.fakes.desktop_session import DesktopSession
from tests.fakes.instance import Instance
from tests.fakes.operator_server import FakeHouse
from tests.fakes.standing import short_folder

HOSTILE = '<b>Approve</b> &amp; <a href="file:///etc/passwd">x</a> <img src="/etc/icon.png"/>\u202egnp\n'


def test_a_breach_a_question_and_a_kill_reach_a_real_daemon_and_hostile_words_stay_words(
    tmp_path: Path, make_house: Callable[..., FakeHouse], open_window: Callable[..., Window], qtbot: QtBot
) -> None:
    house = make_house("mockup")
    window = open_window("fleet")
    with DesktopSession(tmp_path / "desktop", stays=False) as session:
        outside = Outside(window, Desktop(session.address))
        outside.start()
        try:
            qtbot.waitUntil(lambda: outside.desktop.why_not == "")
            assert session.shown() == [], "what was there when the console opened is no news"
            agents = house.supervisor.agents
            breach = agents["inbox-reader"].replaced(state="over_budget", name=HOSTILE, state_reason=HOSTILE)
            asks = agents["linux-x64"].replaced(state="needs_ok", last_action="asks: rm -rf <b>/</b>")
            house.on_loop(lambda: house.supervisor.upsert(breach, asks))
            qtbot.waitUntil(lambda: len(session.shown()) == 2)
            seen = {one["summary"]: one for one in session.shown()}
            over = seen["Over budget"]
            assert "&lt;b&gt;Approve&lt;/b&gt; &amp;amp; &lt;a href" in over["body"] and "\\u202e" in over["body"]
            assert "<a" not in over["message"] and "<img" not in over["message"] and "<b>Approve" not in over["message"]
            assert over["timeout"] == 0 < seen["Waits for you"]["timeout"], "a breach stays until it is dismissed"
            assert "asks: rm -rf &lt;b&gt;/&lt;/b&gt;" in seen["Waits for you"]["body"]
            window.sync.follower.kill_began.emit("k-0038")
            qtbot.waitUntil(lambda: session.shown()[0]["summary"] == "Kill started")
        finally:
            outside.stop()
    assert window.status.accessibleDescription() == "No tray icon: this desktop has no tray"


@pytest.mark.parametrize("bus", ["none", "nobody there", "no daemon"])
def test_without_a_daemon_the_window_says_so_and_nothing_hangs(
    bus: str, tmp_path: Path, make_house: Callable[..., FakeHouse], open_window: Callable[..., Window], qtbot: QtBot
) -> None:
    make_house("0")
    window = open_window("fleet")
    with DesktopSession(tmp_path / "d", daemon=False) as session:
        address = {"none": "", "nobody there": f"unix:path={tmp_path}/gone", "no daemon": session.address}[bus]
        outside = Outside(window, Desktop(address))
        outside.start()
        try:
            outside.desktop.show(Alert("x", "y"))
            words = {
                "none": "there is no session bus",
                "nobody there": "the session bus does not answer",
                "no daemon": "no notification daemon",
            }
            qtbot.waitUntil(lambda: words[bus] in outside.desktop.why_not)
            qtbot.waitUntil(lambda: f"No notifications: {words[bus]}" in window.status.accessibleDescription())
        finally:
            outside.stop()


def test_what_waits_for_a_daemon_that_hangs_does_not_hold_up_the_end(monkeypatch: pytest.MonkeyPatch, qtbot: QtBot) -> None:
    began, go, sent = Event(), Event(), list[Alert]()

    class Hangs:
        def __init__(self, _address: str) -> None: ...

        def greet(self) -> str:
            return ""

        def wait(self, bell: socket) -> list[Alert]:
            bell.recv(1)
            return []

        def send(self, alert: Alert) -> str:
            sent.append(alert)
            began.set()
            go.wait()
            return ""

        def close(self) -> None: ...

    monkeypatch.setattr(desktop, "_Talk", Hangs)
    shown = Desktop("x")
    shown.start()
    for number in range(4):
        shown.show(Alert(f"{number}", ""))
    began.wait()
    ending = Thread(target=shown.stop)
    ending.start()
    qtbot.waitUntil(lambda: shown._queue.qsize() == 4)
    go.set()
    ending.join()
    assert len(sent) == 1


@pytest.mark.parametrize("odd", [(7,), (None,), (), ([], [])])
def test_a_daemon_that_answers_nonsense_is_none(odd: tuple[object, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    talk = desktop._Talk("unix:path=/nowhere")
    monkeypatch.setattr(desktop, "open_dbus_connection", lambda _address: SimpleNamespace(close=lambda: None))
    monkeypatch.setattr(talk, "_call", lambda *_asked: SimpleNamespace(body=odd))
    assert talk.greet().startswith("the session bus does not answer")


def test_a_body_is_escaped_or_carries_nothing_that_could_begin_a_tag() -> None:
    assert body_of("<b>x</b> & y", markup=True) == "&lt;b&gt;x&lt;/b&gt; &amp; y"
    assert body_of("<b>x</b>", markup=False) == "‹b›x‹/b›"
    assert len(body_of("a" * 5000, markup=True)) <= 400
    assert "\u202e" not in body_of("\u202egnp", markup=False)


def rows(number: int, state: str) -> list[Row]:
    return [Row(view.replaced(state=state)) for view in fixture.many_agents(number)]


def test_many_agents_are_one_notification_and_a_kill_says_what_is_proven() -> None:
    alert = state_alert("over_budget", rows(200, "over_budget"))
    assert alert.title == "Over budget: 200 agents" and alert.text.endswith(" and 197 more") and alert.urgent
    proven = kill_alert(fixture.receipt(fixture.mockup_agents(), proven=True, now=1000.0, kill_id="k"))
    bad = kill_alert(fixture.receipt(fixture.mockup_agents(), proven=False, now=1000.0, kill_id="k"))
    assert proven.title == "Killed" and "All processes of" in proven.text
    assert bad.title == "NOT PROVEN" and bad.urgent


def test_news_is_what_changed_since_the_console_knows_the_fleet() -> None:
    fleet, shown = Fleet(), list[Alert]()
    alerts = Alerts(fleet, Switch(), shown.append)
    views = fixture.many_agents(3)
    fleet.replace([views[0].replaced(state="over_budget"), *views[1:]])
    alerts.look()
    assert shown == []
    fleet.replace([views[0], views[1].replaced(state="needs_ok"), views[2]])  # after a gap in the stream
    fleet.upsert(views[2].replaced(state="needs_ok"))
    fleet.upsert(views[2])  # answered before anybody looked
    alerts.look()
    assert [alert.title for alert in shown] == ["Waits for you"]
    for number in range(2 * NEWS):
        fleet.upsert(views[0].replaced(state="frozen" if number % 2 else "running"))
    assert len(fleet.news) <= NEWS


@pytest.mark.qt_log_ignore("systemTrayWindowChanged")  # what Qt misses where there is no tray
def test_the_tray_shows_the_light_in_words_and_leads_back(
    monkeypatch: pytest.MonkeyPatch, make_house: Callable[..., FakeHouse], open_window: Callable[..., Window]
) -> None:
    make_house("0")
    window = open_window("fleet")
    none = Tray(window)
    none.start()
    assert none.icon is None and none.why_not == "this desktop has no tray"
    monkeypatch.setattr(QSystemTrayIcon, "isSystemTrayAvailable", staticmethod(lambda: True))
    tray, asked = Tray(window), list[bool]()
    tray.asked.connect(lambda: asked.append(True))
    tray.start()
    tray.say("armed", "Armed <b>")
    assert tray.icon is not None and tray.icon.toolTip() == "Watchfloor: Armed ‹b›" and tray.why_not == ""
    tray.icon.activated.emit(QSystemTrayIcon.ActivationReason.Trigger)
    assert asked == [True]
    pictures = [light_icon(state).pixmap(44, 44).toImage() for state in ("armed", "in_doubt", "killed")]
    assert len({bytes(picture.constBits()) for picture in pictures}) == 3
    assert light_icon("whatever").pixmap(44, 44).toImage() == light_icon("unknown").pixmap(44, 44).toImage()
    tray.stop()
    assert tray.icon is None


@pytest.mark.qt_log_ignore("systemTrayWindowChanged")
def test_a_tray_that_comes_after_the_console_is_found_and_the_window_stops_saying_that_there_is_none(
    monkeypatch: pytest.MonkeyPatch, make_house: Callable[..., FakeHouse], open_window: Callable[..., Window], qtbot: QtBot
) -> None:
    make_house("0")
    window = open_window("fleet")
    monkeypatch.setattr(tray_module, "LOOK_MS", 10)
    there = [False]
    monkeypatch.setattr(QSystemTrayIcon, "isSystemTrayAvailable", staticmethod(lambda: there[0]))
    outside = Outside(window, Desktop(""))
    outside.start()
    try:
        assert "No tray icon: this desktop has no tray" in window.status.accessibleDescription()
        there[0] = True
        qtbot.waitUntil(lambda: outside.tray.icon is not None)
        assert "No tray icon" not in window.status.accessibleDescription()
        icon = outside.tray.icon
        assert icon is not None and icon.toolTip().startswith("Watchfloor: "), "in words from the first moment"
    finally:
        outside.stop()


def test_a_notification_of_requests_names_the_worst_danger_first() -> None:
    def row(argument: str, **more: Any) -> ApprovalRow:
        filled: dict[str, Any] = {"id": "q", "agent_id": "a", "tool": "shell", "argument": argument, "rule": "r", "reason": "why", **more}
        return ApprovalRow(**filled, digest="d", group="g", asked_at=1.0, state="waiting", scope="once")

    plain = row("cargo build")
    worse = row("dd of=/dev/sda", danger="destroys", danger_rank=1, reason="destroys: it overwrites what is on a disk")
    assert asked_alert([worse]).title.startswith("Destroys: ") and asked_alert([worse]).text.startswith("destroys: it overwrites")
    assert asked_alert([plain, worse]).title.startswith("Destroys: ")
    assert not asked_alert([plain]).title.startswith("Destroys") and asked_alert([plain]).text == "a asks: cargo build"
    assert call_line(worse).startswith("DESTROYS ") and call_line(plain) == "cargo build"


def test_a_click_opens_the_place_of_the_alert_and_decides_nothing(
    tmp_path: Path, make_house: Callable[..., FakeHouse], open_window: Callable[..., Window], qtbot: QtBot
) -> None:
    make_house("mockup")
    window = open_window("fleet")
    with DesktopSession(tmp_path / "desktop") as session:
        outside = Outside(window, Desktop(session.address))
        outside.start()
        try:
            qtbot.waitUntil(lambda: outside.desktop.why_not == "")
            window.hide()
            outside.desktop.show(Alert("Waits for you", "x", page="approvals", subject="agent a"))
            qtbot.waitUntil(lambda: session.displayed() == 1)
            for number in range(1, 20):
                session.forge("/org/freedesktop/Notifications", "ActionInvoked", "us", number, "default")
            qtbot.wait(300)
            assert not window.isVisible(), "a click is believed from the daemon alone"
            session.click()
            qtbot.waitUntil(window.isVisible)
            assert window.page is not None and window.page.spec.name == "approvals"
        finally:
            outside.stop()


def test_one_subject_is_one_notification_and_a_flood_is_counted(tmp_path: Path, qtbot: QtBot) -> None:
    with DesktopSession(tmp_path / "desktop") as session:
        shown = Desktop(session.address)
        shown.start()
        try:
            qtbot.waitUntil(lambda: shown.why_not == "")
            for number in range(3):
                shown.show(Alert(f"Kill {number}", "x", urgent=True, subject="kill"))
            qtbot.waitUntil(lambda: session.displayed() == 1)
            for number in range(60):
                shown.show(Alert(f"Over budget {number}", HOSTILE, subject=f"agent {number}"))
            shown.show(Alert("Panic", "y", urgent=True, kind=AlertKind.PANIC, subject="panic"))
            # The kill took three of ten places, so seven more are shown, one that counts, and the panic.
            qtbot.waitUntil(lambda: session.displayed() + session.waits() == desktop.BURST)
            titles = [one["summary"] for one in session.shown()]
        finally:
            shown.stop()
    assert titles.count("Kill 2") == 1 and "Kill 0" not in titles, "the last of a subject is the one that stays"
    assert "Panic" in titles and titles.count("Many alerts") == 1 and len(titles) == desktop.BURST


def test_what_concerns_a_stop_is_shown_however_much_agents_ask(tmp_path: Path, qtbot: QtBot) -> None:
    with DesktopSession(tmp_path / "desktop") as session:
        shown = Desktop(session.address)
        shown.start()
        try:
            qtbot.waitUntil(lambda: shown.why_not == "")
            for number in range(200):
                shown.show(Alert(f"Asks {number}", HOSTILE, kind=AlertKind.APPROVAL_WAITING, subject=f"agent {number}"))
            for kind in sorted(desktop.URGENT):
                shown.show(Alert(kind, "x", urgent=True, kind=kind, subject=kind))
            qtbot.waitUntil(lambda: {one["summary"] for one in session.shown()} >= set(desktop.URGENT))
        finally:
            shown.stop()


@pytest.mark.qt_log_ignore("systemTrayWindowChanged")
def test_without_a_daemon_the_tray_shows_the_alert_and_its_click_opens_the_place(
    monkeypatch: pytest.MonkeyPatch, make_house: Callable[..., FakeHouse], open_window: Callable[..., Window], qtbot: QtBot
) -> None:
    make_house("0")
    window = open_window("fleet")
    monkeypatch.setattr(QSystemTrayIcon, "isSystemTrayAvailable", staticmethod(lambda: True))
    said = list[tuple[str, str]]()
    monkeypatch.setattr(QSystemTrayIcon, "showMessage", lambda _icon, title, text, *_: said.append((title, text)))
    outside = Outside(window, Desktop(""))
    outside.start()
    try:
        outside.desktop.show(Alert("Waits <b>", HOSTILE, page="approvals"))
        qtbot.waitUntil(lambda: said != [])
        assert "<" not in "".join(said[0]) and "\u202e" not in said[0][1] and said[0][0] == "Waits ‹b›"
        window.hide()
        icon = outside.tray.icon
        assert icon is not None
        icon.messageClicked.emit()
        assert window.isVisible() and window.page is not None and window.page.spec.name == "approvals"
    finally:
        outside.stop()


@pytest.mark.qt_log_ignore("systemTrayWindowChanged")
def test_the_window_can_be_hidden_from_the_tray_and_comes_back(
    monkeypatch: pytest.MonkeyPatch, make_house: Callable[..., FakeHouse], open_window: Callable[..., Window]
) -> None:
    make_house("0")
    window = open_window("fleet")
    window.show()
    monkeypatch.setattr(QSystemTrayIcon, "isSystemTrayAvailable", staticmethod(lambda: True))
    outside = Outside(window, Desktop(""))
    outside.start()
    try:
        icon = outside.tray.icon
        assert icon is not None
        actions = {action.text(): action for action in icon.contextMenu().actions()}
        actions["Hide the window; alerts still come"].trigger()
        assert not window.isVisible()
        actions["Open Watchfloor"].trigger()
        assert window.isVisible()
    finally:
        outside.stop()


def raised(event: str, age_s: float = 0.0, **facts: object) -> Delta:
    at = datetime.fromtimestamp(time.time() - age_s, UTC).isoformat()
    view = AlertView(id="x", event=AlertKind(event), time=at, host="h", instance="i", facts=facts)
    return Delta(seq=1, kind="alert", data=view.as_data())


def test_readiness_lost_and_a_return_are_notifications_and_each_kind_can_be_turned_off() -> None:
    switch, shown = Switch(), list[Alert]()
    fleet = Fleet()
    alerts = Alerts(fleet, switch, shown.append)
    lost = raised("readiness_lost", why=["local: <b>gone</b>"])
    back = raised("agent_came_back", agent_id="a-1", name=HOSTILE, kill_id="k-1", certain=True, killed_again=True)
    for delta in (lost, back, raised("panic"), raised("approval_waiting"), Delta(seq=1, kind="notice", data={"text": "x"})):
        alerts.take(delta)
    assert [(one.title, one.page, one.argument) for one in shown] == [
        ("Kill switch not ready", "kill-switch", ""),
        ("Came back after a kill", "receipt", "k-1"),
    ]
    shown.clear()
    alerts.take(raised("readiness_lost", age_s=3600))
    assert not shown, "what is old is no news"
    off = AlertsView(desktop_off=[one.value for one in AlertKind])
    switch.status = fixture.status().replaced(alerts=off)
    views = fixture.many_agents(2)
    fleet.replace(views)
    fleet.upsert(views[0].replaced(state="over_budget"))
    alerts.look()
    alerts.take(lost)
    alerts.kill_began("k-1")
    assert shown == []
    fleet.upsert(views[1].replaced(state="lost"))
    alerts.look()
    assert [one.title for one in shown] == ["Lost"], "what is none of the six stays"


def asks(it: Instance, argument: str, **more: Any) -> str:
    """An agent that waits for a person; its id."""
    return it.python(f"print(agent.permission('shell', {argument!r}))\ntime.sleep(300)", **more)


def state_of(it: Instance) -> list[str]:
    seen = it.api.approvals()
    return [row.state for row in (*seen.waiting, *seen.decided)]


@pytest.mark.usefixtures("forked")
def test_a_person_approves_and_denies_in_a_notification_while_the_window_is_hidden(
    places: Places, tmp_path: Path, open_window: Callable[..., Window], qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Instance(places.state_dir, "--discover-root", str(tmp_path)) as it, DesktopSession(tmp_path / "desktop") as session:
        window = open_window("fleet")
        outside = Outside(window, Desktop(session.address))
        outside.start()
        try:
            qtbot.waitUntil(lambda: outside.desktop.why_not == "" and window.switch.status is not None)
            window.hide()
            for label, state in (("Approve once", "approved"), ("Deny", "denied")):
                agent = asks(it, "frobnicate '<b>now</b>' later", name="builder")
                qtbot.waitUntil(lambda: session.displayed() > 0)
                qtbot.wait(int(desktop.READ_S * 1000) + 200)
                offered = session.choose(label)
                assert "Approve once" in offered and "Deny" in offered and "<b>now" not in offered
                qtbot.waitUntil(lambda: bool(approvals_of(window).deciding.answers.held))
                assert state_of(it).count("waiting") == 1, "it is held first"
                qtbot.waitUntil(lambda: state_of(it)[0] != "waiting", timeout=30_000)
                assert state_of(it)[0] in (state, "used" if state == "approved" else state)
                assert not window.isVisible()
                it.api.kill(agent)
                session.shown()
            asks(it, "frobnicate again", name="builder")
            qtbot.waitUntil(lambda: session.displayed() > 0)
            qtbot.wait(int(desktop.READ_S * 1000) + 200)
            # What the notification shows is of before this change: nothing may be decided by it.
            for entry in approvals_of(window).book.entries.values():
                entry.row = entry.row.replaced(digest="0" * 64)
            monkeypatch.setattr(approvals_of(window).book, "denial_needs_reason", True)
            session.choose("Deny")
            qtbot.waitUntil(window.isVisible)
            assert state_of(it).count("waiting") == 1 and not approvals_of(window).deciding.answers.held
            assert any("Not decided: A denial needs a reason here." in one.text for one in window.notices.all)
        finally:
            outside.stop()
            window.close()


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({}, ""),
        ({"digest": "e" * 64}, "not what the notification showed"),
        ({"state": "denied"}, "not what the notification showed"),
        ({"danger": "destroys", "danger_rank": 1}, "more to it"),
        ({"argument": "cargo build " + "x" * 200}, "more to it"),
    ],
)
def test_an_approval_holds_for_exactly_what_the_notification_showed(
    more: dict[str, Any], words: str, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot
) -> None:
    book, said, row = Book(), list[str](), asked_row()
    book.entries["q"] = Entry(row, time.monotonic() + 60)
    parent = QObject()
    answers = Answers(cast(Requests, None), book, parent)
    notified = Notified(cast(Requests, None), Switch(), book, answers, parent)
    notified.undecided.connect(lambda _row, why: said.append(why))
    monkeypatch.setattr("console.gui.pages.approvals.case.is_bound", lambda _detail: True)
    notified._came(row, "approve", ApprovalDetailView(row=row.replaced(**more)))
    assert [one.verdict for one in answers.held] == ([] if words else ["approve"])
    qtbot.waitUntil(lambda: (words in said[0]) if words and said else not words)
    answers.drop_all()


def approvals_of(window: Window) -> ApprovalsPage:
    page = window.pages["approvals"]
    assert isinstance(page, ApprovalsPage)
    return page


def asked_row(**more: Any) -> ApprovalRow:
    filled: dict[str, Any] = {"id": "q", "agent_id": "a", "agent_name": "builder", "tool": "shell", "argument": "cargo build", "cwd": "/w"}
    filled |= {"rule": "r", "reason": "why", "digest": "d" * 64, "group": "g", "asked_at": 1.0, "state": "waiting", "scope": "once"}
    return ApprovalRow(**{**filled, **more})


@pytest.mark.parametrize(
    "more",
    [
        {"danger": "destroys", "danger_rank": 1},
        {"danger": "publishes", "danger_rank": 4},
        {"danger_rank": 3},
        {"argument": ""},
        {"argument": "x" * 161},
        {"argument_more": 1},
        {"argument": "cargo build\nrm -rf /"},
        {"argument": "cargo \u202egnp"},
        {"argument": "c\u0430rgo build"},
        {"cwd": "/w" * 60},
        {"agent_name": "builder asks: ls"},
        {"agent_name": HOSTILE},
        {"tool": "x" * 41},
    ],
)
def test_what_is_dangerous_or_not_shown_whole_has_no_button_that_approves(more: dict[str, Any]) -> None:
    whole = asked_alert([asked_row()], may_decide=True)
    assert [key for key, _ in whole.choices] == ["approve", "deny"] and "cargo build (in /w)" in whole.text
    asked = asked_alert([asked_row(**more)], may_decide=True)
    assert [key for key, _ in asked.choices] == ["deny"]
    assert asked_alert([asked_row()]).choices == (), "a role that cannot decide is offered nothing"
    assert asked_alert([asked_row(), asked_row(id="p")], may_decide=True).choices == ()


def test_only_what_was_offered_and_could_be_read_counts() -> None:
    talk, now, long_ago = desktop._Talk("x"), time.monotonic(), time.monotonic() - 60
    asked, danger = (asked_alert([asked_row(**more)], may_decide=True) for more in ({}, {"danger": "spends", "danger_rank": 3}))
    talk._may_choose = True
    assert talk._meant(asked, long_ago, now, "approve") == [(asked, "approve")]
    assert talk._meant(danger, long_ago, now, "approve") == [], "a daemon can send a key that no button has"
    assert talk._meant(danger, long_ago, now, "deny") == [(danger, "deny")]
    assert talk._meant(asked, now, now, "approve") == [(asked, "")], "it took the place of another one: look first"
    assert talk._meant(asked, long_ago, now, 7) == []
    talk._may_choose = False
    assert talk._meant(asked, long_ago, now, "approve") == [] and talk._meant(asked, long_ago, now, "default") == [(asked, "")]


def test_a_click_counts_for_what_was_shown_when_it_was_made(tmp_path: Path) -> None:
    """It waits in the queue while the next text takes the same place; and one that is looked at late was made early all the same."""
    with DesktopSession(tmp_path / "desktop") as session:
        talk = desktop._Talk(session.address)
        assert talk.greet() == ""
        first, second = (asked_alert([asked_row(id=one)], may_decide=True) for one in ("REQ-A", "REQ-B"))
        assert talk.send(first) == ""
        [number] = talk._shown
        talk._shown[number] = first, time.monotonic() - 60
        header = SimpleNamespace(fields={HeaderFields.member: "ActionInvoked", HeaderFields.sender: talk._daemon})
        talk._signals.append(cast(Message, SimpleNamespace(header=header, body=(number, "approve"))))
        assert talk.send(second) == "" and talk._clicks == [(first, "approve")]
        talk._signals.append(cast(Message, SimpleNamespace(header=header, body=(number, "approve"))))
        [(at, message)] = talk._signals
        talk._shown[number] = second, at - 0.1
        time.sleep(0.01)
        talk._hear()
        assert talk._clicks[1:] == [(second, "")], "it came before the text could be read"
        talk.close()


@pytest.mark.parametrize(
    "more", [{"tool": "deploy", "argument": "prod"}, {"argument": "ls (in /tmp)", "cwd": ""}, {"argument": "x " * 200}]
)
def test_what_could_be_read_as_another_call_is_approved_in_the_window_alone(more: dict[str, Any]) -> None:
    assert [key for key, _ in asked_alert([asked_row()], may_decide=True).choices] == ["approve", "deny"]
    assert [key for key, _ in asked_alert([asked_row(**more)], may_decide=True).choices] == ["deny"]


def test_a_daemon_in_an_agents_cgroup_decides_nothing(tmp_path: Path) -> None:
    for pid, text in ((7, "0::/user.slice/x\n"), (8, "0::/watchfloor-01234567/agents/a-1-0123abcd/y\n")):
        (tmp_path / str(pid)).mkdir()
        (tmp_path / str(pid) / "cgroup").write_text(text)
    assert not desktop.is_of_agent(7, tmp_path)
    assert desktop.is_of_agent(8, tmp_path) and desktop.is_of_agent(9, tmp_path), "in doubt it is one"


def test_each_alert_of_the_settings_is_one_that_is_raised() -> None:
    assert {*get_args(AlertName), "test"} == {one.value for one in AlertKind}


def test_the_window_says_how_many_alerts_the_webhook_has_not_delivered_and_since_when() -> None:
    assert webhook_lacks(WebhookView()) == webhook_lacks(WebhookView(url="x", waiting=1, waiting_since=1.0)) == []
    [words] = webhook_lacks(WebhookView(url="x", waiting=3, waiting_since=1.0, trouble="refused"))
    assert words.startswith("Webhook: 3 alerts not delivered since ")
    [words] = webhook_lacks(WebhookView(url="x", given_up=1, given_up_since=1.0))
    assert words.startswith("Webhook: 1 alert never delivered")


@pytest.fixture
def places() -> Iterator[Places]:
    with short_folder() as folder:
        yield find_places(str(folder / "s"), create=True)


@pytest.mark.usefixtures("forked")
def test_alerts_of_a_real_supervisor_reach_a_real_desktop_while_the_window_is_hidden(
    places: Places, tmp_path: Path, open_window: Callable[..., Window], qtbot: QtBot
) -> None:
    """A setting turns one of them off; a click brings the window back on the request, which still waits."""
    save_options(places.settings_file, {"alerts.desktop_off": ["limit_reached"]})
    with Instance(places.state_dir, "--discover-root", str(tmp_path)) as it, DesktopSession(tmp_path / "desktop") as session:
        window = open_window("fleet")
        outside = Outside(window, Desktop(session.address))
        outside.start()
        try:
            qtbot.waitUntil(lambda: outside.desktop.why_not == "" and window.switch.status is not None)
            window.hide()
            spender = it.python("agent.usage(tokens=500)\ntime.sleep(300)", limits={"tokens": 400})
            it.state_becomes(spender, "halted")
            it.python("agent.permission('launch_rocket', '<b>now</b>')\ntime.sleep(300)", name=HOSTILE)
            qtbot.waitUntil(lambda: session.displayed() > 0)
            session.click()
            qtbot.waitUntil(window.isVisible)
            assert window.page is not None and window.page.spec.name == "approvals" and len(it.api.approvals().waiting) == 1
            qtbot.waitUntil(lambda: window.switch.light(time.time())[0] == "armed")
            guard = it.living_guard()
            os.kill(guard, signal.SIGSTOP)
            try:
                qtbot.waitUntil(lambda: "Kill switch not ready" in [one["summary"] for one in session.shown()])
            finally:
                os.kill(guard, signal.SIGCONT)
            shown = session.shown()
        finally:
            outside.stop()
            window.close()
    titles = [one["summary"] for one in shown]
    assert "Waits for you" in titles
    assert not [title for title in titles if "udget" in title], "this one was turned off"
    assert not any("<b>now" in one["body"] or "\u202e" in one["body"] for one in shown)
