"""The verdicts on an agent's calls in the fleet's pane: live, bounded, never colour alone, each leading to its judgement or record."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from console.api.messages import AgentView
from console.domain.activity import Entry, Kind
from console.gui.pages.audit.page import AuditLogPage
from console.gui.pages.fleet import verdicts
from console.gui.pages.fleet.page import FleetPage
from console.gui.pages.fleet.verdicts import VerdictStream, cell_words
from console.gui.pages.policy.page import PolicyPage
from console.gui.widgets.safe_text import is_plain
from console.gui.window.main import Window
from tests.fakes.operator_server import FakeHouse

House = Callable[..., FakeHouse]
Opener = Callable[..., Window]
AGENT = "a-1"


def call(number: int, verdict: str, text: str = "", *, audit: int = 0, who: str = "agent:a-1", tool: str = "shell") -> list[Entry]:
    at, pair = time.time() + number * 0.001, f"p{number}"
    return [
        Entry(Kind.TOOL_CALL, f"c{number}", at, text or f"ls {number}", tool=tool, pair=pair, ref="/w/sub"),
        Entry(Kind.VERDICT, f"v{number}", at, f"shell(ls:*): rule {number}", who=who, pair=pair, verdict=verdict, audit=audit),
    ]


@pytest.fixture
def house(make_house: House) -> FakeHouse:
    made = make_house("0")
    made.supervisor.agents[AGENT] = AgentView(id=AGENT, name=AGENT, session="ctx-1", control_level="managed", state="running")
    return made


def stream_of(window: Window) -> VerdictStream:
    assert isinstance(window.page, FleetPage)
    return window.page.pane.verdicts


def test_verdicts_arrive_live_newest_first_each_with_word_and_shape(house: FakeHouse, open_window: Opener, qtbot: QtBot) -> None:
    window = open_window("fleet")
    stream = stream_of(window)
    qtbot.waitUntil(lambda: stream.loaded)
    assert stream.words.text().startswith("No call of this agent was checked yet") and not stream.view.isVisible()
    plain = Entry(Kind.TOOL_CALL, "t0", time.time(), "command: ls", tool="Bash", pair="t0")
    house.on_loop(lambda: house.supervisor.activity.keep(AGENT, [plain, *call(1, "allow", audit=7), *call(2, "deny"), *call(3, "odd")]))
    qtbot.waitUntil(lambda: len(stream.model.rows) == 3)
    assert [verdicts.shape_of(item) for item in stream.model.rows] == [
        ("Unknown", "triangle", "warn"),
        ("Denied", "ban", "danger"),
        ("Allowed", "check", "text2"),
    ]
    assert "Denied: shell ls 2; shell(ls:*): rule 2" in cell_words(stream.model.rows[1], "call")
    asked = Entry(Kind.VERDICT, "v4j", time.time(), "no rule: x", who="waits for approval", pair="p4", verdict="ask")
    house.on_loop(lambda: house.supervisor.activity.keep(AGENT, [call(4, "allow")[0], asked]))
    qtbot.waitUntil(lambda: len(stream.model.rows) == 4 and verdicts.shape_of(stream.model.rows[0])[0] == "Asked")
    house.on_loop(lambda: house.supervisor.activity.keep(AGENT, [call(4, "allow")[1]]))
    qtbot.waitUntil(lambda: verdicts.shape_of(stream.model.rows[0])[0] == "Allowed")


def test_a_verdict_leads_to_its_judgement_and_its_record(house: FakeHouse, open_window: Opener, qtbot: QtBot) -> None:
    hostile = "rm -rf \u202e/ \x1b[2J"
    entries = [*call(1, "allow", audit=5), *call(2, "deny", hostile, audit=6), *call(3, "allow", who="the program")]
    house.supervisor.activity.keep(AGENT, entries)
    window = open_window("fleet")
    stream = stream_of(window)
    qtbot.waitUntil(lambda: len(stream.model.rows) == 3)
    QTest.keyClick(QApplication.focusWidget() or window, Qt.Key.Key_V)
    assert QApplication.focusWidget() is stream.view
    assert stream.view.choose(stream.model.rows[0].key) and not stream.explain.isEnabled() and not stream.audit.isEnabled()
    QTest.keyClick(stream.view, Qt.Key.Key_Down)
    assert stream.explain.isEnabled() and stream.audit.isEnabled()
    assert "\x1b" not in stream.model.words(1, 0) and is_plain(stream.model.words(1, 0))
    QTest.keyClick(stream.view, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: isinstance(window.page, PolicyPage))
    qtbot.waitUntil(lambda: bool(house.supervisor.policy.asked))
    body = house.supervisor.policy.asked[-1]
    assert (body.tool, body.argument, body.agent_id, body.cwd) == ("shell", hostile, AGENT, "/w/sub")
    window.goto("fleet", AGENT)
    stream.audit.click()
    assert isinstance(window.page, AuditLogPage)


def test_a_flood_is_bounded_and_another_agent_starts_anew(
    house: FakeHouse, open_window: Opener, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verdicts, "KEPT", 100)
    other = AgentView(id="b-1", name="b-1", session="ctx-2", control_level="managed", state="running")
    house.supervisor.agents["b-1"] = other
    window = open_window("fleet")
    stream = stream_of(window)
    qtbot.waitUntil(lambda: stream.loaded)
    flood = [entry for number in range(1, 1001) for entry in call(number, "allow")]
    house.on_loop(lambda: house.supervisor.activity.keep(stream.agent_id, flood))
    qtbot.waitUntil(lambda: bool(stream.model.rows) and stream.model.rows[0].row.text == "ls 1000")
    assert len(stream.book.items) <= 100 and len(stream.book._calls) <= 110
    assert stream.view.height() == verdicts.SHOWN * verdicts.HEIGHT
    assert isinstance(window.page, FleetPage)
    window.page.table.reveal("b-1" if stream.agent_id == AGENT else AGENT)
    assert not stream.model.rows
    qtbot.waitUntil(lambda: stream.loaded)
    assert stream.words.text().startswith("No call of this agent")


def test_what_cannot_be_read_is_said(house: FakeHouse, open_window: Opener, qtbot: QtBot) -> None:
    house.supervisor.activity.broken = "The store is gone."
    stream = stream_of(open_window("fleet"))
    qtbot.waitUntil(lambda: "store is gone" in stream.words.text())
    assert stream.words.isVisible()
