"""The page before the first agent: where it looks, in the sources' own words, and never a tick for what does not look."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

import pytest
from PySide6.QtCore import QEvent, QPoint, Qt
from PySide6.QtGui import QGuiApplication, QHelpEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QToolTip
from pytestqt.qtbot import QtBot

from console.api.installing import GainView, InstallingView
from console.api.messages import AgentView, SourceView
from console.gui.app import show_lines
from console.gui.notices import Notices
from console.gui.pages.first_run.cards import audit_fact
from console.gui.pages.first_run.hook import HookDialog
from console.gui.pages.first_run.sources import HEAD, ROW, SourceTable, now_words, tally, whole_words
from console.gui.pages.fleet.page import FleetPage
from console.gui.pages.kill_switch.page import KillSwitchPage
from console.gui.widgets.safe_text import is_plain
from console.gui.window.main import Window
from tests.fakes import gui_fixture as fixture
from tests.fakes.operator_server import FakeHouse


def test_the_page_tells_where_it_looks_and_what_each_source_can_see_and_stop(
    make_house: Callable[..., FakeHouse], open_window: Callable[..., Window], qtbot: QtBot
) -> None:
    make_house("0")
    page = open_window("fleet").page
    assert isinstance(page, FleetPage) and page.first_run.isVisible()
    table = page.first_run.sources
    qtbot.waitUntil(lambda: "~/.claude/projects" in table.accessibleName() and "Claude hook: Judging." in table.accessibleName())
    assert "Stops: Those that Watchfloor started, with proof" in table.accessibleName()
    assert "Processes: Silent. its look takes longer than 10 s" in table.accessibleName()
    assert "Looks in remote.bucket" in table.accessibleName()
    assert page.first_run._tally.text() == "4 watching · 3 not found · 2 need you"
    assert table.height() == HEAD + 9 * ROW


def test_a_persons_own_instance_shows_what_the_hosts_would_change(
    make_house: Callable[..., FakeHouse], open_window: Callable[..., Window], qtbot: QtBot
) -> None:
    supervisor = make_house("0").supervisor
    kill = GainView(name="kill of an agent without a sandbox", now="best effort", then="confirmed")
    own = {"mode_note": "user mode: best effort", "installing": InstallingView(how="sudo true", gains=[kill])}
    supervisor.status = supervisor.status.replaced(**own)
    page = open_window("fleet").page
    assert isinstance(page, FleetPage)
    shown = page.first_run.mode.gains
    qtbot.waitUntil(lambda: shown[0].isVisible() and "best effort → confirmed" in shown[0].text())
    assert not shown[1].isVisible()


def test_while_the_demo_is_prepared_the_page_says_what_is_done_and_not_that_nothing_runs(qtbot: QtBot) -> None:
    notices, (read, write) = Notices(), os.pipe()
    window = Window(None, notices)
    qtbot.addWidget(window)
    try:
        window.start("fleet")
        page = window.page
        assert isinstance(page, FleetPage)
        assert page.first_run._title.text().startswith("Watchfloor is not running")
        show_lines(notices, window.switch, window, read)
        os.write(write, b"launched market-research: 8 agents\x1b[31m\nhalf a li")
        qtbot.waitUntil(lambda: any("market-research" in one.text for one in notices.all))
        page.first_run.on_models()
        assert page.first_run._title.text() == "The demo is being prepared."
        assert "launched market-research: 8 agents" in page.first_run._line.text() and "\x1b" not in page.first_run._line.text()
        os.close(write)
        qtbot.wait(50)  # the end of the other program is no step, and no busy loop
        assert page.first_run._title.text() == "The demo is being prepared."
    finally:
        window.close()
        os.close(read)


@pytest.mark.parametrize(
    ("source", "word", "shape"),
    [
        (SourceView(source="a", available=True, reason="", state="watching"), "Watching", "check"),
        (SourceView(source="a", available=True, reason=""), "Watching", "check"),
        (SourceView(source="a", available=True, reason="", state="broken"), "Broken", "triangle"),
        (SourceView(source="a", available=False, reason="", state="broken"), "Broken", "triangle"),
        (SourceView(source="a", available=True, reason="", state="silent"), "Silent", "triangle"),
        (SourceView(source="a", available=True, reason="", state="dreaming"), "Not known", "triangle"),
        (SourceView(source="a", available=False, reason="", state="polling"), "Not found", "ring"),
        (SourceView(source="otlp", available=True, reason="", state="listening"), "Listening", "check"),
        (SourceView(source="a", available=False, reason="", state="absent"), "Not available", "ring"),
        (SourceView(source="agent_sockets", available=True, reason="", state="ready"), "Ready", "check"),
        (SourceView(source="hook_codex", available=True, reason="", state="heard"), "Judging", "check"),
        (SourceView(source="hook_codex", available=False, reason="", state="installed"), "Installed", "ring"),
        (SourceView(source="hook_codex", available=False, reason="", state="not_installed"), "Not installed", "triangle"),
        (SourceView(source="hook_codex", available=False, reason="", state="skipped"), "Skipped", "triangle"),
        (SourceView(source="remote_file", available=True, reason="", state="in_doubt"), "Not ready", "triangle"),
        (SourceView(source="remote_file", available=False, reason="", state="not_configured"), "Not configured", "ring"),
        (SourceView(source="remote_file", available=True, reason="", state="unknown"), "Not known", "triangle"),
    ],
)
def test_only_a_source_that_looks_and_can_is_a_tick(source: SourceView, word: str, shape: str) -> None:
    assert now_words(source)[:2] == (word, shape)
    assert (now_words(source)[2] == "ok") == (shape == "check")
    assert now_words(source, known=False) == ("Not known", "triangle", "warn"), "old news is never a tick"


def test_hostile_words_of_a_source_stay_words(qtbot: QtBot, monkeypatch: pytest.MonkeyPatch, open_window: Callable[..., Window]) -> None:
    hostile = SourceView(source="<b>x</b>", available=True, reason="\u202egnp", looks_in=["/tmp/<img src=x>\n"], can_see="<b>" * 900)
    table = SourceTable()
    qtbot.addWidget(table)
    table.resize(700, 100)
    table.say([hostile, *fixture.sources(time.time())], time.time())
    assert is_plain(table.accessibleName())
    shown: list[str] = []
    monkeypatch.setattr(QToolTip, "showText", lambda _at, text, _widget: shown.append(text))
    at = QPoint(30, HEAD + 5)
    QApplication.sendEvent(table, QHelpEvent(QEvent.Type.ToolTip, at, table.mapToGlobal(at)))
    assert "&lt;b&gt;x&lt;/b&gt;" in shown[0] and "<img" not in shown[0] and len(shown[0]) < 8000
    table.grab()
    assert whole_words(hostile).startswith("<b>x</b>: Watching.") and tally([hostile]) == "1 watching"


def test_what_holds_by_default_and_each_way_to_stop_are_told(
    make_house: Callable[..., FakeHouse], open_window: Callable[..., Window], qtbot: QtBot
) -> None:
    house = make_house("0")
    page = open_window("fleet").page
    assert isinstance(page, FleetPage)
    first = page.first_run
    qtbot.waitUntil(lambda: "Cost $5.00 an agent, $20.00 a day" in first.defaults.facts.accessibleName())
    assert "Audit 1.2 M records, log intact" in first.defaults.facts.accessibleName()
    assert "Local kill: Ready. canary dead in 6 ms" in first.armed.paths.accessibleName()
    # The supervisor cannot say any more: the rows stay, unknown, and no default is claimed.
    house.supervisor.programs.first_run = None
    qtbot.waitUntil(lambda: "Agent sockets: Not known." in first.sources.accessibleName())
    assert first.defaults.facts.accessibleName() == "" and first.defaults.problem.text().startswith("Not known: ")


def test_of_old_news_nothing_stays_ticked(
    make_house: Callable[..., FakeHouse], open_window: Callable[..., Window], qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    house = make_house("0")
    page = open_window("fleet").page
    assert isinstance(page, FleetPage)
    first = page.first_run
    qtbot.waitUntil(
        lambda: "Claude Code: Watching." in first.sources.accessibleName() and "docker works" in first.engines.facts.accessibleName()
    )
    first._poll.stop()
    first.read()  # one is on its way when the supervisor ends: whether its answer comes is chance, and so is which rows there are
    house.stop()
    monkeypatch.setattr("console.gui.models.switch.SILENT_S", 0.2)

    def rows() -> int:
        return len(fixture.sources(0.0)) + len(first._told.looks)

    qtbot.waitUntil(lambda: first._tally.text() == f"{rows()} need you")  # by the time alone: nobody tells that nobody tells
    shown = first.sources.accessibleName() + first.armed.paths.accessibleName() + first.engines.facts.accessibleName()
    assert (
        not any(word in shown for word in ("Watching.", "Ready.", "Judging.", "Tested", "works"))
        and shown.count("Not known.") == rows() + 4
    )
    assert first._title.text() == "Watchfloor is not running. Agents may still be." and "Supervisor silent" in first.defaults.problem.text()


@pytest.mark.parametrize(
    ("whole", "words", "role"),
    [(True, "log intact 4 s ago", "text"), (None, "log not checked yet", "warn"), (False, "log broken", "danger")],
)
def test_the_chain_is_whole_only_where_it_was_checked(whole: bool | None, words: str, role: str) -> None:
    fact = audit_fact(fixture.status(100.0).replaced(audit_whole=whole, audit_checked_at=96.0), 100.0)
    assert words in fact.right and fact.right_role == role


def test_h_shows_what_the_hook_would_change_and_changes_nothing(
    make_house: Callable[..., FakeHouse], open_window: Callable[..., Window], qtbot: QtBot
) -> None:
    programs = make_house("0").supervisor.programs
    assert programs.hook_preview is not None
    hostile = ["+ <b>\u202egnp</b>", *programs.hook_preview.diff]
    programs.hook_preview = programs.hook_preview.replaced(diff=hostile, file="/tmp/<img src=x>\u202e")
    window = open_window("fleet")
    QTest.keyClick(QApplication.focusWidget() or window, Qt.Key.Key_H)
    dialog = window.findChild(HookDialog)
    assert dialog is not None
    qtbot.waitUntil(lambda: "PreToolUse" in dialog.diff.toPlainText())
    assert dialog.diff.isReadOnly() and "+ <b>\\u202egnp</b>" in dialog.diff.toPlainText() and is_plain(dialog.file.text())
    dialog.other.click()
    qtbot.waitUntil(lambda: dialog.command_line.text() == "watchfloor install-hook codex" and "It would change" in dialog.file.text())
    programs.hook_preview = None
    dialog.other.click()
    qtbot.waitUntil(dialog.problem.isVisible)
    assert dialog.file.text() == "What it would change is not known." and dialog.diff.toPlainText() == ""
    assert not dialog.main.isEnabled()
    dialog.copy_command.click()
    assert QGuiApplication.clipboard().text() == "watchfloor install-hook gemini"


def test_a_click_on_the_row_of_a_hook_shows_its_diff(
    make_house: Callable[..., FakeHouse], open_window: Callable[..., Window], qtbot: QtBot
) -> None:
    make_house("0")
    window = open_window("fleet")
    page = window.page
    assert isinstance(page, FleetPage)
    table = page.first_run.sources
    qtbot.waitUntil(lambda: "Codex hook: Not installed." in table.accessibleName())
    QTest.mouseClick(table, Qt.MouseButton.LeftButton, pos=QPoint(300, HEAD + 1 * ROW + 9))  # a source
    assert window.findChild(HookDialog) is None
    QTest.mouseClick(table, Qt.MouseButton.LeftButton, pos=QPoint(300, HEAD + 7 * ROW + 9))
    dialog = window.findChild(HookDialog)
    assert dialog is not None and dialog.program == "codex"
    dialog.reject()


@pytest.mark.parametrize("size", [(1024, 700), (1440, 900)])
def test_nothing_stands_beside_the_window(
    make_house: Callable[..., FakeHouse], open_window: Callable[..., Window], size: tuple[int, int]
) -> None:
    make_house("0")
    page = open_window("fleet", size).page
    assert isinstance(page, FleetPage)
    first = page.first_run
    stacked = size[0] < 1400
    assert (first.armed.mapTo(first, QPoint(0, 0)).y() > first.sources.mapTo(first, QPoint(0, 0)).y()) == stacked
    for part in (first.sources, first.armed, first.defaults, first.engines, first.hook, first.demo, first.run):
        left = part.mapTo(first, QPoint(0, 0)).x()
        assert left >= 0 and left + part.width() <= first.width() and part.height() > 0
    assert first.demo.accessibleName() and first.hook.accessibleName()


def test_the_keys_before_the_first_agent(make_house: Callable[..., FakeHouse], open_window: Callable[..., Window], qtbot: QtBot) -> None:
    house = make_house("0")
    window = open_window("fleet")
    page = window.page
    assert isinstance(page, FleetPage)
    assert page.keys() == (("Enter", "new agent…"), ("D", "copy demo"), ("H", "install hook…"), ("U", "set up…"), ("K", "kill switch"))
    QTest.keyClick(QApplication.focusWidget() or window, Qt.Key.Key_D)
    assert QGuiApplication.clipboard().text() == "watchfloor demo"
    house.on_loop(lambda: house.supervisor.upsert(AgentView(id="a", name="a", session="a", control_level="observed", state="running")))
    qtbot.waitUntil(lambda: "a" in window.fleet.rows and page.view.current() is not None)
    assert page.keys()[0][0] != "Enter" and "observed" in page.why_not("fleet.data"), "D is about data again"
    QTest.keyClick(QApplication.focusWidget() or window, Qt.Key.Key_K)
    assert isinstance(window.page, KillSwitchPage)
