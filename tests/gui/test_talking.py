"""Talking to a started program below its feed: sent once, seen in the feed, refused with why, never to another agent."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel
from pytestqt.qtbot import QtBot

from console.api.agents.programs import EndedView
from console.gui.pages.activity.page import ActivityPageView
from console.gui.pages.activity.talk import EndDialog
from console.gui.widgets.safe_text import is_plain
from console.gui.window.main import Window
from tests.fakes.operator_server import FakeHouse

House = Callable[..., FakeHouse]
Opener = Callable[..., Window]
ONE, OTHER = "release-captain", "support-triage"


def page_of(window: Window, agent_id: str, qtbot: QtBot) -> ActivityPageView:
    window.goto("activity", agent_id)
    page = window.page
    assert isinstance(page, ActivityPageView)
    qtbot.waitUntil(lambda: page.talk.agent_id == agent_id and "not known yet" not in page.talk.why_not("say"))
    return page


def test_a_message_is_sent_once_and_appears_in_the_feed(make_house: House, open_window: Opener, qtbot: QtBot) -> None:
    programs = make_house("mockup").supervisor.programs
    programs.talks[ONE] = ""
    page = page_of(open_window("fleet"), ONE, qtbot)
    talk = page.talk
    assert talk.field.isVisible() and not talk.send.isEnabled() and page.why_not("activity.say") == ""
    talk.field.setPlainText("and the docs\ntoo")
    assert talk.send.isEnabled()
    QTest.keyClick(talk.field, Qt.Key.Key_Return)
    talk.say()  # pressed twice: the first is under way
    qtbot.waitUntil(lambda: talk.state.text() == "Sent, and on record.")
    assert programs.said == [(ONE, "said", "and the docs\ntoo")] and not talk.field.toPlainText()
    qtbot.waitUntil(lambda: any("and the docs" in item.row.text for item in page.feed.model.rows))
    page.do("activity.interrupt")
    qtbot.waitUntil(lambda: "it confirmed that" in talk.state.text())
    assert programs.said[-1] == (ONE, "interrupted", "")


def test_what_is_written_while_a_message_is_on_its_way_stays(make_house: House, open_window: Opener, qtbot: QtBot) -> None:
    programs = make_house("mockup").supervisor.programs
    programs.talks[ONE] = ""
    talk = page_of(open_window("fleet"), ONE, qtbot).talk
    talk.field.setPlainText("first")
    talk.say()
    talk.field.setPlainText("second")
    qtbot.waitUntil(lambda: talk.state.text() == "Sent, and on record.")
    assert talk.field.toPlainText() == "second" and [text for _, _, text in programs.said] == ["first"]


def test_a_refusal_keeps_what_was_written_and_says_why(make_house: House, open_window: Opener, qtbot: QtBot) -> None:
    programs = make_house("mockup").supervisor.programs
    programs.talks[ONE] = ""
    window = open_window("fleet")
    page = page_of(window, ONE, qtbot)
    talk = page.talk
    programs.refuse = (403, "release-captain gets no message: it is over its budget (cost <b>2.00</b>).")
    talk.field.setPlainText("go on")
    talk.say()
    qtbot.waitUntil(lambda: "over its budget" in talk.state.text())
    assert talk.field.toPlainText() == "go on", "what was refused is not lost"
    said = len(programs.said)
    talk.field.setPlainText("A" * 60_001)
    talk.say()
    assert "60,001 characters" in talk.state.text() and len(programs.said) == said, "not even sent"
    talk.field.setPlainText("for the captain alone")
    programs.talks[OTHER] = ""
    page_of(window, OTHER, qtbot)
    assert not talk.field.toPlainText(), "never to another agent"
    assert all(is_plain(label.text()) for label in talk.findChildren(QLabel))


def test_whom_nobody_can_talk_to_says_why_and_follows_its_state(make_house: House, open_window: Opener, qtbot: QtBot) -> None:
    house = make_house("mockup")
    programs = house.supervisor.programs
    window = open_window("fleet")
    page = page_of(window, OTHER, qtbot)
    talk = page.talk
    assert not talk.field.isVisible() and "not started as a program" in talk.state.text()
    programs.talks[OTHER] = "it is frozen (operator:0: looks odd)"
    qtbot.waitUntil(lambda: "it is frozen" in talk.state.text())
    assert page.why_not("activity.interrupt").startswith("it is frozen")
    talk.say()
    assert not programs.said
    programs.talks[OTHER] = ""
    qtbot.waitUntil(talk.field.isVisible)
    talk.field.setPlainText("hello")
    house.on_loop(house.guard.press_now)
    qtbot.waitUntil(lambda: "is stopped" in talk.why_not("say"))
    talk.say()
    assert not programs.said and "is stopped" in talk.state.text()


def test_one_is_asked_to_end_after_a_question_and_what_was_seen_is_said(make_house: House, open_window: Opener, qtbot: QtBot) -> None:
    programs = make_house("mockup").supervisor.programs
    programs.talks[ONE] = ""
    talk = page_of(open_window("fleet"), ONE, qtbot).talk
    assert talk.finish.isVisible() and talk.finish.isEnabled()
    talk.finish.click()
    talk.window().findChildren(EndDialog)[-1].reject()
    assert not programs.said, "it is asked first"
    programs.ending = EndedView(id="", done="runs", words="still runs: <b>3</b> processes")
    talk.ask_end()
    asked = talk.window().findChildren(EndDialog)[-1]
    asked.reason.setText(" enough ")
    asked.main.click()
    qtbot.waitUntil(lambda: "Still active: still runs" in talk.state.text())
    programs.ending = EndedView(id="", done="ended", words="no process of it is left")
    talk.ask_end()
    talk.window().findChildren(EndDialog)[-1].main.click()
    qtbot.waitUntil(lambda: "It has ended: no process" in talk.state.text())
    assert programs.said == [(ONE, "end", "enough"), (ONE, "end", "")]
    assert all(is_plain(label.text()) for label in talk.findChildren(QLabel))
    programs.talks[ONE] = "it is frozen (operator:0)"
    talk.look()
    qtbot.waitUntil(lambda: not talk.finish.isEnabled())
    talk.ask_end()
    assert "it is frozen" in talk.state.text() and len(programs.said) == 2
