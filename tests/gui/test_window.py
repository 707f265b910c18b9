"""The window as a person uses it: keys, palette, themes, confirmations, rearm, a supervisor that goes and comes."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtCore import QObject, QSettings, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QApplication, QLabel, QLineEdit, QWidget
from pytestqt.qtbot import QtBot

from console.api.rearm import KilledView, RearmView
from console.gui import app as console_app
from console.gui.pages.budgets.page import BudgetsPage
from console.gui.pages.fleet.page import FleetPage
from console.gui.pages.kill_switch.passphrase import PassphraseDialog
from console.gui.pages.kill_switch.rearm import AgainDialog, RearmDialog
from console.gui.pages.kill_switch.rung import RungDialog
from console.gui.theme.tokens import ink
from console.gui.widgets.safe_text import safe_text
from console.gui.widgets.text import Text, copy_menu
from console.gui.window.help import HelpDialog
from console.gui.window.main import Window
from console.gui.window.palette import KeySheet, Palette
from console.gui.window.remembered import Remembered
from console.settings.places import Places
from tests.fakes.gui_fixture import HOSTILE_NAMES
from tests.fakes.operator_server import FakeHouse

Make = Callable[..., FakeHouse]
Open = Callable[..., Window]


def fleet_page(window: Window) -> FleetPage:
    page = window.pages["fleet"]
    assert isinstance(page, FleetPage)
    return page


def dialog(window: Window, kind: type[QWidget], qtbot: QtBot) -> QWidget:
    qtbot.waitUntil(lambda: any(d.isVisible() for d in window.findChildren(kind)))
    return next(d for d in window.findChildren(kind) if d.isVisible())


def rung_dialog(window: Window, qtbot: QtBot) -> RungDialog:
    """The question, once the preview has come."""
    found = dialog(window, RungDialog, qtbot)
    assert isinstance(found, RungDialog)
    qtbot.waitUntil(lambda: found.preview is not None)
    return found


def keys(widget: QWidget, *pressed: Qt.Key) -> None:
    for key in pressed:
        QTest.keyClick(widget, key)


def as_they_came(window: Window) -> FleetPage:
    """The mock-up's order, its first row selected."""
    page = fleet_page(window)
    page.do("fleet.urgent")
    page.view.choose("release-captain")
    return page


def acts(house: FakeHouse) -> list[tuple[str, str]]:
    return [(verb, agent) for verb, agent, _ in house.supervisor.log]


def test_arrows_fold_move_and_enter_leads_to_the_detail(make_house: Make, open_window: Open, qtbot: QtBot) -> None:
    make_house()
    window = open_window("fleet")
    page = as_they_came(window)
    view = page.view
    window.activateWindow()
    qtbot.waitUntil(view.hasFocus)
    assert view.current().id == "release-captain" and page.pane.isVisible()
    keys(view, Qt.Key.Key_Down, Qt.Key.Key_Down)
    assert view.current().id == "linux-x64"
    keys(view, Qt.Key.Key_Left, Qt.Key.Key_Left)
    assert view.current().id == "build-matrix" and "linux-x64" not in [row.id for row in page.table.model.rows]
    keys(view, Qt.Key.Key_Right)
    assert "linux-x64" in [row.id for row in page.table.model.rows]
    keys(view, Qt.Key.Key_Return)
    assert not page.pane.isVisible()
    window.resize(1024, 700)
    qtbot.waitUntil(page.pane.isVisible)  # narrow: the same key shows it over the table
    keys(view, Qt.Key.Key_Return)
    assert not page.pane.isVisible()


def test_letters_act_only_outside_fields(make_house: Make, open_window: Open, qtbot: QtBot) -> None:
    house = make_house()
    window = open_window("fleet")
    window.activateWindow()
    page = as_they_came(window)
    keys(page.view, Qt.Key.Key_Slash)
    qtbot.waitUntil(page.table.bar.search.hasFocus)
    QTest.keyClicks(page.table.bar.search, "xpi")
    assert page.table.bar.search.text() == "xpi" and acts(house) == []
    keys(page.table.bar.search, Qt.Key.Key_Escape)
    assert page.table.bar.search.text() == "" and page.view.hasFocus()
    keys(page.view, Qt.Key.Key_P)
    asked = rung_dialog(window, qtbot)
    qtbot.waitUntil(asked.reason.hasFocus)
    QTest.keyClicks(asked.reason, "odd traffic")
    assert acts(house) == [], "nothing is done before it is confirmed"
    keys(asked.reason, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: acts(house) == [("freeze", "release-captain")])
    qtbot.waitUntil(lambda: window.fleet.rows["release-captain"].view.state == "frozen")
    qtbot.waitUntil(lambda: page.pane.pause.text() == "Resume")
    window.activateWindow()
    qtbot.waitUntil(page.view.hasFocus)
    keys(page.view, Qt.Key.Key_P)
    again = rung_dialog(window, qtbot)
    keys(again.reason, Qt.Key.Key_Return)
    assert acts(house)[-1][0] == "freeze", "what loosens is not one Enter away"
    again.main.click()
    qtbot.waitUntil(lambda: acts(house)[-1] == ("thaw", "release-captain"))


def test_stopping_a_tree_asks_first_and_counts_by_control_level(make_house: Make, open_window: Open, qtbot: QtBot) -> None:
    house = make_house()
    window = open_window("fleet")
    window.activateWindow()
    keys(as_they_came(window).view, Qt.Key.Key_X)
    asked = rung_dialog(window, qtbot)
    assert asked.title.text() == "Kill release-captain and 8 agents below it?"
    row = window.fleet.rows["release-captain"].view
    words = " ".join(w.accessibleName() for w in asked.findChildren(QWidget))
    assert f"Agent release-captain · session {row.session} · " in words and "host build-host" in words
    assert "contained will be confirmed dead" in words and asked.main.text() == "Kill 9 agents"
    keys(asked.reason, Qt.Key.Key_Return)
    keys(asked, Qt.Key.Key_Escape)
    assert acts(house) == [], "a kill is not one Enter away"
    window.activateWindow()
    qtbot.waitUntil(fleet_page(window).view.hasFocus)
    keys(fleet_page(window).view, Qt.Key.Key_X)
    again = rung_dialog(window, qtbot)
    again.reason.setText("loop")
    qtbot.waitUntil(again.main.isEnabled)
    keys(again.reason, Qt.Key.Key_Return)
    assert acts(house) == []
    QTest.keyClick(again.reason, Qt.Key.Key_Return, Qt.KeyboardModifier.ControlModifier)
    qtbot.waitUntil(lambda: acts(house) == [("kill", "release-captain")])
    assert house.supervisor.log[0][2] == {"reach": "tree", "reason": "loop"}
    qtbot.waitUntil(lambda: window.strip.notice is not None and "All processes of" in window.strip.notice.text)
    assert window.strip.notice is not None and window.strip.notice.receipt
    window.strip.receipt_asked.emit(window.strip.notice.receipt)
    assert window.page is not None and window.page.spec.name == "receipt"


def test_what_a_stop_came_to_is_seen_though_a_warning_stands(
    make_house: Make, open_window: Open, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("console.gui.window.state._INFO_MS", 50)
    make_house()
    window, said = open_window("fleet"), list[str]()
    window.notices.said.connect(lambda _notice: said.append(window.strip.notice.text if window.strip.notice else ""))
    window.notices.say("amber", "No agent is confirmed dead.", receipt="k-1")
    window.notices.say("info", "Copied.")
    window.notices.say("info", "All processes of 4 agents are dead.", receipt="k-2")
    assert said == ["No agent is confirmed dead.", "No agent is confirmed dead.", "All processes of 4 agents are dead."]
    qtbot.waitUntil(lambda: window.strip.notice is not None and window.strip.notice.receipt == "k-1")


def test_a_viewer_sees_their_role_and_is_offered_no_kill_no_start_and_no_panic(make_house: Make, open_window: Open, qtbot: QtBot) -> None:
    house = make_house()
    house.supervisor.status = house.supervisor.status.replaced(your_roles=["viewer"], your_rights=["read"])
    window = open_window("fleet")
    qtbot.waitUntil(lambda: window.switch.rights == ["read"])
    window.activateWindow()
    qtbot.waitUntil(lambda: "role on this host: viewer" in window.nav.person.accessibleName())
    for action in ("fleet.stop-tree", "console.new-agent", "approvals.once", "switch.rearm", "console.panic"):
        assert window.why_not(action), action
        window.do(action)
        assert window.strip.notice is not None and (
            "This needs the role" in window.strip.notice.text or "Only root" in window.strip.notice.text
        )
    keys(as_they_came(window).view, Qt.Key.Key_X)
    assert not window.findChildren(RungDialog) and acts(house) == []
    assert not window.plate.isEnabled() and "the role responder" in window.plate.toolTip()
    assert not window.why_not("fleet.filter")


def test_a_responder_kills_and_is_told_why_nothing_can_be_approved(make_house: Make, open_window: Open, qtbot: QtBot) -> None:
    house = make_house()
    changed = {"your_roles": ["responder"], "your_rights": ["kill", "read"]}
    house.supervisor.status = house.supervisor.status.replaced(**changed)
    window = open_window("fleet")
    qtbot.waitUntil(lambda: window.switch.rights == ["kill", "read"])
    assert window.plate.isEnabled() and not window.why_not("fleet.stop-tree")
    assert "the role operator" in window.why_not("approvals.once")


def test_the_palette_finds_agents_and_actions(make_house: Make, open_window: Open, qtbot: QtBot) -> None:
    make_house()
    window = open_window("fleet")
    window.activateWindow()
    QTest.keyClick(window, Qt.Key.Key_K, Qt.KeyboardModifier.ControlModifier)
    palette = dialog(window, Palette, qtbot)
    assert isinstance(palette, Palette)
    QTest.keyClicks(palette.field, "cve-look")
    assert [found.agent_id for found in palette.model.rows] == ["cve-lookup"]
    keys(palette.field, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: fleet_page(window).view.current().id == "cve-lookup")
    window.do("console.find")
    palette = dialog(window, Palette, qtbot)
    assert isinstance(palette, Palette)
    QTest.keyClicks(palette.field, "settings")
    assert palette.model.rows[0].title == "Go to Settings", "and no action that only holds the word"
    palette.field.clear()
    QTest.keyClicks(palette.field, "kill")
    assert palette.model.rows[0].title.startswith("Kill"), "an action comes before a page of its name"
    palette.field.clear()
    QTest.keyClicks(palette.field, "go to kill")
    keys(palette.field, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: window.page is not None and window.page.spec.name == "kill-switch")


def test_what_cannot_be_done_says_why_in_the_palette(make_house: Make, open_window: Open, qtbot: QtBot) -> None:
    make_house()
    window = open_window("kill-switch")
    window.do("console.find")
    palette = dialog(window, Palette, qtbot)
    assert isinstance(palette, Palette)
    QTest.keyClicks(palette.field, "rearm")
    assert palette.model.rows[0].why_not == "Nothing is blocked."
    keys(palette.field, Qt.Key.Key_Return)
    assert palette.isVisible()


def test_the_key_sheet_lists_every_page(make_house: Make, open_window: Open, qtbot: QtBot) -> None:
    make_house()
    window = open_window("fleet")
    window.activateWindow()
    QTest.keyClicks(fleet_page(window).view, "?")
    sheet = dialog(window, KeySheet, qtbot)
    words = " ".join(w.accessibleName() for w in sheet.findChildren(QWidget))
    assert "Ctrl Shift Backspace" in words and "Freeze or resume" in words and "Rearm" in words


def test_the_theme_switches_live(make_house: Make, open_window: Open, qtbot: QtBot) -> None:
    make_house()
    window = open_window("fleet")
    running = QApplication.instance()
    assert isinstance(running, QApplication)
    window.theme_asked.connect(lambda: console_app.switch_theme(running))
    dark = window.grab().toImage().pixelColor(5, 300)
    window.do("console.theme")
    qtbot.waitUntil(lambda: window.grab().toImage().pixelColor(5, 300).lightness() > 200)
    assert not ink().is_dark and dark.lightness() < 60
    window.do("console.theme")
    assert ink().is_dark


def test_every_label_is_plain_and_no_hostile_text_reaches_a_widget(make_house: Make, open_window: Open, qtbot: QtBot) -> None:
    make_house("hostile")
    window = open_window("fleet")
    page = fleet_page(window)
    for number, name in enumerate(HOSTILE_NAMES):
        page.view.choose(f"h-{number}")
        qtbot.waitUntil(page.is_ready)
        assert page.pane._name.text() == safe_text(name, 120)
        window.do("fleet.stop-tree")
        rung_dialog(window, qtbot).close()
        for widget in window.findChildren(QWidget):
            if isinstance(widget, QLabel):
                assert widget.textFormat() is Qt.TextFormat.PlainText, widget
            for text in _texts(widget):
                assert not set(text) & set("\x00\x1b\r\u202e\u2066\u200b\u200d\u3164"), (widget, text)
    model = page.table.model
    cells = [str(model.data(model.index(r, c))) for r in range(len(model.rows)) for c in range(len(model.columns))]
    assert any("<b>APPROVED</b>" in cell for cell in cells) and any("\\u202e" in cell for cell in cells)
    tips = [str(model.data(model.index(r, 0), Qt.ItemDataRole.ToolTipRole)) for r in range(len(model.rows))]
    assert all(tip.startswith("<qt>") and "<b>" not in tip and "<img" not in tip for tip in tips)


def _texts(widget: QWidget) -> list[str]:
    shown = [widget.accessibleName(), widget.accessibleDescription(), widget.windowTitle()]
    if isinstance(widget, QLabel | QAbstractButton):
        shown.append(widget.text())
    return shown


def test_ten_thousand_agents_filter_sort_and_scroll(make_house: Make, open_window: Open, qtbot: QtBot) -> None:
    make_house("10000")
    window = open_window("fleet")
    page = fleet_page(window)
    assert len(page.table.model.rows) == 10_000
    page.view.verticalScrollBar().setValue(page.view.verticalScrollBar().maximum())
    window.grab()
    page.view.sort_asked.emit("agent")
    page.table.bar.search.setText("agent-0012")
    names = [row.name for row in page.table.model.rows]
    assert 10 <= len(names) < 40 and all(row.haystack for row in page.table.model.rows)
    assert "agent-00127" in names
    page.table.bar.search.clear()
    page.view.choose("a-0")
    page.view.verticalScrollBar().setValue(5000)
    place = page.view.verticalScrollBar().value()
    page.table.arrange()
    assert page.view.current().id == "a-0" and page.view.verticalScrollBar().value() == place, "selection and place survive"
    assert gc.get_freeze_count() > 10_000, "the collector does not go through them again and again"
    gc.unfreeze()


def test_a_supervisor_that_goes_and_comes_back(make_house: Make, open_window: Open, qtbot: QtBot) -> None:
    house = make_house("200")
    window = open_window("fleet")
    house.stop()
    qtbot.waitUntil(lambda: window.switch.light(window.desk.clock() + 61)[0] == "unknown")
    qtbot.waitUntil(lambda: not window.switch.guard.alive)
    assert len(window.fleet.rows) == 200, "what was known stays on the page"
    gone = house.supervisor.agents.pop("a-199")
    house.supervisor.seq = 0
    house.start()
    qtbot.waitUntil(lambda: gone.id not in window.fleet.rows)
    qtbot.waitUntil(lambda: window.switch.guard.alive)
    changed = house.supervisor.agents["a-0"].replaced(name="renamed")
    house.on_loop(lambda: house.supervisor.upsert(changed))
    qtbot.waitUntil(lambda: window.fleet.rows["a-0"].name == "renamed")


def test_a_first_sighting_replaces_the_first_run_page(make_house: Make, open_window: Open, qtbot: QtBot) -> None:
    house = make_house("0")
    window = open_window("fleet")
    page = fleet_page(window)
    assert page.first_run.isVisible() and not page.table.isVisible()
    from tests.fakes.gui_fixture import mockup_agents

    house.on_loop(lambda: house.supervisor.upsert(*mockup_agents()[:3]))
    qtbot.waitUntil(page.table.isVisible)
    assert not page.first_run.isVisible()


def test_rearm_needs_a_reason_and_the_id_and_shows_refusals(make_house: Make, open_window: Open, qtbot: QtBot) -> None:
    house = make_house()
    window = open_window("fleet")
    house.on_loop(house.guard.press_now)
    qtbot.waitUntil(lambda: window.switch.receipt is not None and window.switch.receipt.complete)
    assert window.page is not None and window.page.spec.name == "receipt", "it opens by itself"
    window.do("receipt.rearm")
    asked = dialog(window, RearmDialog, qtbot)
    assert isinstance(asked, RearmDialog)
    kill_id = window.switch.guard.kill_id
    asked.reason.setText("checked")
    asked.typed.setText(kill_id[:-1])
    assert not asked.main.isEnabled()
    asked.typed.setText(kill_id)
    qtbot.waitUntil(asked.main.isEnabled)  # what was killed is read
    house.supervisor.refuse_rearm = "A remote order still blocks new agents."
    asked.main.click()
    qtbot.waitUntil(asked.problem.isVisible)
    assert "A remote order still blocks new agents." in asked.problem.text() and "watchfloor remote release" in asked.problem.text()
    house.supervisor.refuse_rearm = ""
    asked.main.click()
    qtbot.waitUntil(lambda: not window.switch.is_killed)
    qtbot.waitUntil(lambda: not window.banner.isVisible())


def test_what_starts_after_a_rearm_stands_above_the_dead(make_house: Make, open_window: Open, qtbot: QtBot) -> None:
    house = make_house()
    window = open_window("fleet")
    page = fleet_page(window)
    QTest.mouseClick(page.view.viewport(), Qt.MouseButton.LeftButton, pos=page.view.visualRect(page.view.model().index(2, 0)).center())
    dead = page.view.current()
    house.on_loop(house.guard.press_now)
    qtbot.waitUntil(lambda: window.switch.receipt is not None and window.switch.receipt.complete)
    window.do("receipt.rearm")
    asked = dialog(window, RearmDialog, qtbot)
    assert isinstance(asked, RearmDialog)
    asked.reason.setText("checked")
    asked.typed.setText(window.switch.guard.kill_id)
    qtbot.waitUntil(asked.main.isEnabled)
    asked.main.click()
    qtbot.waitUntil(lambda: not window.switch.is_killed)
    window.goto("fleet", "")
    fresh = dead.view.replaced(id="fresh", name="fresh", parent_id="", state="running")
    house.on_loop(lambda: house.supervisor.upsert(fresh))
    qtbot.waitUntil(lambda: "fresh" in [row.id for row in page.table.model.rows])
    shown = [row.id for row in page.table.model.rows]
    assert shown.index("fresh") < shown.index("release-captain") and page.view.current() is dead


def test_a_notice_of_the_supervisor_goes_with_its_cause(make_house: Make, open_window: Open, qtbot: QtBot) -> None:
    house = make_house()
    window = open_window("fleet")
    lost = "the guard does not answer (refused); starting it again from its registry"
    house.on_loop(lambda: house.supervisor.tell("notice", {"level": "red", "text": lost}))
    qtbot.waitUntil(lambda: window.strip.notice is not None and window.strip.notice.level == "red")
    house.on_loop(lambda: house.supervisor.tell("notice", {"level": "over", "text": lost}))
    house.on_loop(lambda: house.supervisor.tell("notice", {"level": "info", "text": "the guard answers again"}))
    qtbot.waitUntil(lambda: window.strip.notice is not None and window.strip.notice.text == "the guard answers again")


def test_a_notice_of_the_guard_goes_with_its_cause(make_house: Make, open_window: Open, qtbot: QtBot) -> None:
    house = make_house()
    window = open_window("fleet")
    words = "The supervisor is silent: its agents are frozen until it is back."

    def shown() -> str:
        return window.strip.notice.text if window.strip.notice is not None else ""

    house.guard.notices = [words]
    qtbot.waitUntil(lambda: shown() == words)
    window.strip.dismiss()
    asked = len(house.guard.ops)
    qtbot.waitUntil(lambda: len(house.guard.ops) > asked + 1)
    assert not shown(), "told once, not at each answer of the guard"
    window.notices.say("amber", "Something else.")
    house.guard.notices = []
    qtbot.waitUntil(lambda: words not in [notice.text for notice in window.notices.all])
    assert shown() == "Something else."
    house.guard.notices = [words]
    qtbot.waitUntil(lambda: shown() == words)
    house.guard.notices = []
    qtbot.waitUntil(lambda: not shown())


def test_an_open_rearm_dialog_notices_a_release_and_a_rearm_from_elsewhere(
    make_house: Make, open_window: Open, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("console.gui.pages.kill_switch.rearm.LOOK_MS", 50)
    house = make_house()
    window = open_window("fleet")
    house.on_loop(house.guard.press_now)
    qtbot.waitUntil(lambda: window.switch.receipt is not None and window.switch.receipt.complete)
    house.supervisor.rearm_blockers = ["A remote order still blocks new agents."]
    window.do("receipt.rearm")
    asked = dialog(window, RearmDialog, qtbot)
    assert isinstance(asked, RearmDialog)
    qtbot.waitUntil(lambda: asked.problem.isVisible() and "A remote order" in asked.problem.text())
    asked.reason.setText("checked")
    asked.typed.setText(window.switch.guard.kill_id)
    house.supervisor.rearm_blockers = []
    qtbot.waitUntil(lambda: not asked.problem.isVisible())
    assert asked.main.isEnabled()
    house.on_loop(house.supervisor.rearmed)
    qtbot.waitUntil(lambda: "Nothing is blocked" in asked.killed.text())
    assert not asked.main.isEnabled() and not asked.earlier
    house.on_loop(house.guard.press_now)
    qtbot.waitUntil(lambda: "A newer kill" in asked.killed.text())
    assert "close this and open it again" in asked.killed.text() and "Nothing is blocked" not in asked.killed.text()
    asked.typed.setText(window.switch.guard.kill_id)
    assert not asked.main.isEnabled()


def rearm_asked(window: Window, house: FakeHouse, qtbot: QtBot) -> RearmDialog:
    """The dialog after a kill, filled in."""
    house.on_loop(house.guard.press_now)
    qtbot.waitUntil(lambda: window.switch.receipt is not None and window.switch.receipt.complete)
    window.do("receipt.rearm")
    asked = dialog(window, RearmDialog, qtbot)
    assert isinstance(asked, RearmDialog)
    asked.reason.setText("checked")
    asked.typed.setText(window.switch.guard.kill_id)
    return asked


def test_a_kill_that_comes_while_one_reads_of_another_is_told(
    make_house: Make, open_window: Open, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("console.gui.pages.kill_switch.rearm.LOOK_MS", 50)
    house = make_house()
    window = open_window("fleet")
    asked = rearm_asked(window, house, qtbot)
    qtbot.waitUntil(asked.main.isEnabled)

    def newer() -> None:
        house.supervisor.generation += 1

    house.on_loop(newer)
    qtbot.waitUntil(lambda: "A newer kill" in asked.killed.text() and not asked.main.isEnabled())
    asked.reason.setText("checked again")
    assert not asked.main.isEnabled()
    asked.reject()


def test_what_was_never_read_is_not_rearmed_and_a_failed_look_is_forgotten(
    make_house: Make, open_window: Open, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("console.gui.pages.kill_switch.rearm.LOOK_MS", 50)
    house = make_house()
    window = open_window("fleet")
    house.supervisor.rearm_unread = "The registry cannot be read."
    asked = rearm_asked(window, house, qtbot)
    qtbot.waitUntil(lambda: "could not be read" in asked.killed.text())
    assert not asked.main.isEnabled()
    for _ in range(2):  # the second time what is read is what was read before
        house.supervisor.rearm_unread = ""
        qtbot.waitUntil(lambda: " of " in asked.killed.text() and asked.main.isEnabled())
        assert (asked.killed._role, asked.killed._mark) == ("text", "")
        house.supervisor.rearm_unread = "The registry cannot be read."
        qtbot.waitUntil(lambda: "could not be read" in asked.killed.text())
    asked.reject()


def test_a_rearm_under_way_is_not_sent_twice(make_house: Make, open_window: Open, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("console.gui.pages.kill_switch.rearm.LOOK_MS", 50)
    house = make_house()
    window = open_window("fleet")
    asked = rearm_asked(window, house, qtbot)
    qtbot.waitUntil(asked.main.isEnabled)
    house.supervisor.rearm_hangs, house.supervisor.refuse_rearm = True, "A remote order still blocks new agents."
    asked.main.click()
    qtbot.waitUntil(lambda: bool(house.supervisor.log))
    asked.reason.setText("checked again")
    house.supervisor.rearm_blockers = ["Something else."]
    qtbot.wait(200)
    assert not asked.main.isEnabled()
    house.supervisor.rearm_hangs = False
    qtbot.waitUntil(asked.main.isEnabled)
    house.supervisor.refuse_rearm, house.supervisor.rearm_blockers = "", []
    asked.main.click()
    again = dialog(window, AgainDialog, qtbot)
    assert len([entry for entry in house.supervisor.log if entry[0] == "rearm"]) == 2
    again.close()


def test_with_a_passphrase_set_the_dialog_takes_it_unseen_and_offers_each_agent_alone(
    make_house: Make, open_window: Open, qtbot: QtBot
) -> None:
    house = make_house()
    window = open_window("kill-switch")
    window.do("switch.passphrase")
    setting = dialog(window, PassphraseDialog, qtbot)
    assert isinstance(setting, PassphraseDialog) and not setting.old.isVisible()
    for field, words in ((setting.new, "correct horse"), (setting.again, "correct hors")):
        field.setText(words)
    assert not setting.main.isEnabled() and setting.new.echoMode() is QLineEdit.EchoMode.NoEcho
    setting.again.setText("correct horse")
    setting.main.click()
    assert not setting.new.text() and not setting.again.text(), "no field keeps it"
    qtbot.waitUntil(lambda: window.switch.view is not None and window.switch.view.passphrase == "set")
    house.on_loop(house.guard.press_now)
    qtbot.waitUntil(lambda: window.switch.receipt is not None and window.switch.receipt.complete)
    window.do("receipt.rearm")
    asked = dialog(window, RearmDialog, qtbot)
    assert isinstance(asked, RearmDialog)
    assert asked.passphrase.isVisible() and not asked.typed.isVisible() and not asked.weak.isVisible()
    assert asked.passphrase.echoMode() is QLineEdit.EchoMode.NoEcho
    qtbot.waitUntil(lambda: " of " in asked.killed.text())
    asked.reason.setText("checked")
    assert not asked.main.isEnabled()
    asked.passphrase.setText("something else")
    asked.main.click()
    assert not asked.passphrase.text()
    qtbot.waitUntil(asked.problem.isVisible)
    assert "not the passphrase" in asked.problem.text() and window.switch.is_killed and not asked.main.isEnabled()
    asked.passphrase.setText("correct horse")
    asked.main.click()
    again = dialog(window, AgainDialog, qtbot)
    assert isinstance(again, AgainDialog) and len(again.buttons) == 3
    first = next(iter(again.buttons))
    assert not [entry for entry in house.supervisor.log if entry[0] in ("again", "launch")], "nothing starts by itself"
    again.buttons[first].click()
    qtbot.waitUntil(lambda: again.states[first].text() == "runs as new-1")
    assert [entry[:2] for entry in house.supervisor.log if entry[0] == "again"] == [("again", first)]
    again.accept()
    assert "correct horse" not in str(window.notices)


def test_each_kill_has_a_paragraph_newest_first_and_hostile_words_are_seen(make_house: Make, open_window: Open, qtbot: QtBot) -> None:
    house = make_house()
    window = open_window("fleet")
    house.on_loop(house.guard.press_now)
    qtbot.waitUntil(lambda: window.switch.receipt is not None and window.switch.receipt.complete)
    window.do("receipt.rearm")
    asked = dialog(window, RearmDialog, qtbot)
    assert isinstance(asked, RearmDialog)
    qtbot.waitUntil(lambda: " of " in asked.killed.text())
    kills = [KilledView(kill_id=f"k{n}", by="ann", reason=f"kill {n} \u202e\n<b>x</b>", pressed_at=n * 86400.0) for n in range(6)]
    asked._looked(
        RearmView(
            killed=True, generation=house.supervisor.generation, kill_ids=[f"k{n}" for n in range(9)], kills=kills, passphrase="not_set"
        )
    )
    said = [asked.killed.text(), *(text.text() for text in asked.earlier)]
    assert [words.partition("“")[2][:6] for words in said] == ["kill 5", "kill 4", "kill 3", "kill 2", ""] and said[
        -1
    ] == "and 5 earlier kills"
    assert all("\\u202e\\x0a<b>x</b>" in words for words in said[:-1])
    qtbot.waitUntil(lambda: [t.y() for t in (asked.killed, *asked.earlier)] == sorted({t.y() for t in (asked.killed, *asked.earlier)}))
    qtbot.waitUntil(
        lambda: all(text.height() >= text.heightForWidth(text.width()) for text in (asked.killed, *asked.earlier))
    )  # none is cut


def test_an_instance_that_appears_later_is_found(tmp_path: object, qtbot: QtBot, places: Places, make_house: Make) -> None:
    from console.gui.notices import Notices

    console_app.make_application("dark")
    window = Window(None, Notices())
    qtbot.addWidget(window)
    window.start()
    window.show()
    make_house("1")
    window.adopt(places)
    qtbot.waitUntil(lambda: window.fleet.loaded and len(window.fleet.rows) == 1)
    window.close()


@pytest.mark.parametrize("fleet", ["200"])
def test_a_thousand_events_a_second_leave_the_window_responsive(fleet: str, make_house: Make, open_window: Open, qtbot: QtBot) -> None:
    from time import thread_time

    from PySide6.QtCore import QTimer

    house = make_house(fleet)
    window = open_window("fleet")
    house.rate = 1000
    busy: list[float] = []
    last = [thread_time()]

    def beat() -> None:
        busy.append(thread_time() - last[0])  # what the window itself worked since the last beat: no wall clock, which counts others' work
        last[0] = thread_time()

    timer = QTimer(window)
    timer.timeout.connect(beat)
    timer.start(20)
    qtbot.wait(2000)
    qtbot.waitUntil(lambda: len(busy) > 20 and house.supervisor.seq > 500)
    timer.stop()
    house.rate = 0
    assert sorted(busy)[len(busy) // 2] < 0.25, "generous"


def test_the_receipt_page_opened_first_of_all_finds_the_newest_receipt(make_house: Make, open_window: Open, qtbot: QtBot) -> None:
    make_house("mockup")
    window = open_window("receipt")
    qtbot.waitUntil(lambda: window.page is not None and window.page.is_ready())


def test_f1_opens_the_document_of_the_page_in_front(make_house: Make, open_window: Open, qtbot: QtBot) -> None:
    make_house()
    window = open_window("network")
    window.activateWindow()
    QTest.keyClick(window, Qt.Key.Key_F1)
    qtbot.waitUntil(lambda: bool(window.findChildren(HelpDialog)))
    [shown] = window.findChildren(HelpDialog)
    assert shown.choice.currentText() == "how-to/operator.md" and shown.text.textCursor().block().text() == "Allow a host"
    assert shown.text.cursorRect().top() < 60, "the heading is at the top"
    assert "type set up." in shown.text.toPlainText(), "stars of Markdown are not shown"
    assert not shown.isModal() and shown.text.isReadOnly()
    shown.search.setText("backtest")
    assert shown.text.textCursor().selectedText() == "backtest"
    shown.choice.setCurrentText("how-to/budgets.md")
    assert shown.text.document().firstBlock().text() == "Budgets"
    shown.close()


def test_the_palette_leads_to_actions_of_other_pages_and_says_when_nothing_matches(
    make_house: Make, open_window: Open, qtbot: QtBot
) -> None:
    make_house()
    window = open_window("fleet")
    window.do("console.find")
    palette = dialog(window, Palette, qtbot)
    assert isinstance(palette, Palette)
    QTest.keyClicks(palette.field, "zzz qqq")
    assert palette.model.rows == [] and palette.nothing.isVisible() and "“zzz qqq”" in palette.nothing.text()
    palette.field.setText("next order")
    assert [found.title for found in palette.model.rows] == ["Budgets: Next order of the list"] and not palette.nothing.isVisible()
    keys(palette.field, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: window.page is not None and window.page.spec.name == "budgets")
    page = window.page
    assert isinstance(page, BudgetsPage) and page.list.order != "time"


def test_what_a_person_set_is_there_at_the_next_start(make_house: Make, open_window: Open, tmp_path: Path, qtbot: QtBot) -> None:
    make_house()
    kept = Remembered(tmp_path / "window.ini")
    first = open_window("budgets", (800, 640))
    table = fleet_page(first).table
    table.view.sort_asked.emit("burn")
    table.bar.search.setText("shard")
    table.bar.pills.pills["attention"].click()
    first.fleet.seen["gone"] = "halted"
    budgets = first.pages["budgets"]
    assert isinstance(budgets, BudgetsPage)
    budgets.list.turn("project")
    kept.keep_theme("light")
    kept.keep(first)
    again = Remembered(tmp_path / "window.ini")
    assert (again.page(""), again.page("audit"), again.theme("system"), again.theme("dark")) == ("budgets", "audit", "light", "dark")
    second = open_window("fleet")
    again.restore(second)
    assert second.height() == 640, "the screen of this test is 800 wide and high"
    assert (second.fleet.sort, second.fleet.text, second.fleet.filter) == (("burn", True), "shard", "attention")
    assert second.fleet.seen == {"gone": "halted"}
    restored = second.pages["budgets"]
    assert isinstance(restored, BudgetsPage) and restored.list.order == "project"
    bar = fleet_page(second).table.bar
    qtbot.waitUntil(lambda: bar.all.isVisible() and bar.shown.text().startswith("Filtered: "))
    bar.all.click()
    assert not bar.all.isVisible() and second.fleet.filter == "all" and second.fleet.text == ""


@pytest.mark.parametrize(
    "kept", ["x", "[]", '{"sort": 7, "filter": "no", "text": 3, "closed": "a", "seen": [1]}', '{"sort": ["<b>", true], "seen": 1}']
)
def test_what_cannot_be_read_of_the_last_time_is_forgotten(kept: str, make_house: Make, open_window: Open, tmp_path: Path) -> None:
    make_house("1")
    file = tmp_path / "window.ini"
    settings = QSettings(str(file), QSettings.Format.IniFormat)
    settings.setValue("pages/fleet", kept)
    settings.setValue("window/geometry", "no geometry")
    settings.sync()
    window = open_window("fleet")
    Remembered(file).restore(window)
    assert (window.fleet.sort, window.fleet.filter, window.fleet.text, window.fleet.closed) == (("", False), "all", "", set())


def test_a_row_its_id_and_words_can_be_copied(make_house: Make, open_window: Open) -> None:
    make_house()
    window = open_window("fleet")
    page = as_they_came(window)
    clipboard = QGuiApplication.clipboard()
    page.view.setFocus()
    page.view.actions()[1].trigger()
    assert clipboard.text() == "release-captain"
    page.view.actions()[0].trigger()
    assert clipboard.text().startswith("release-captain (release-captain), ") and clipboard.text().count("\t") == 7
    menu = page.acts.menu([page.view.current()], None)
    assert [one.text() for one in menu.actions()][4:] == ["Copy", "Copy the id", "Copy the session"]
    menu.actions()[-1].trigger()
    assert clipboard.text() == page.view.current().view.session
    words = Text("One reason\nof two lines", wrap=True, parent=window)
    words.setSelection(4, 6)
    assert words.hasSelectedText() and words.focusPolicy() is Qt.FocusPolicy.NoFocus
    copy_menu(words, words.selectedText()).actions()[0].trigger()
    assert clipboard.text() == "reason"


def test_typing_in_the_palette_judges_no_action_again(make_house: Callable[..., FakeHouse], open_window: Callable[..., Window]) -> None:
    make_house("40")
    window = open_window("fleet")
    judged: list[str] = []

    def why_not(action_id: str) -> str:
        judged.append(action_id)
        return window.why_not(action_id)

    palette = Palette(window.verbs(), why_not, window.fleet, lambda _found: None, window)
    for text in ("k", "ki", "kill", "", "x"):
        palette.field.setText(text)
    assert judged and len(judged) == len(set(judged)), "with 10,000 agents each judgement walks the fleet"
    palette.reject()


def test_pages_are_made_when_they_are_first_opened_and_the_rest_by_themselves(
    make_house: Make, open_window: Open, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("console.gui.window.pages.REST_MS", 10**6)
    make_house()
    first = open_window("fleet", wait=False)
    assert list(first.pages.there) == ["fleet"], "nothing else is waited for before the window is on the screen"
    qtbot.waitUntil(lambda: list(first.pages.there) == ["fleet", "approvals", "budgets"])  # whose badges must not be missed
    first.goto("audit", "")
    assert list(first.pages.there)[3:] == ["audit"]
    qtbot.waitUntil(lambda: first.pages["audit"].is_ready())
    monkeypatch.setattr("console.gui.window.pages.REST_MS", 1)
    second = open_window("fleet")
    qtbot.waitUntil(lambda: len(second.pages.there) == len(second.pages.kinds))


def test_what_a_window_left_is_collected_in_its_own_thread_however_much_another_makes(
    make_house: Make, open_window: Open, qtbot: QtBot
) -> None:
    make_house("1")
    open_window("fleet")
    ended_in = list[int]()

    def leave_a_ring() -> None:
        ring = QObject()
        ring.again = ring  # type: ignore[attr-defined]
        weakref.finalize(ring, lambda: ended_in.append(threading.get_ident()))

    leave_a_ring()
    others = threading.Thread(target=lambda: [[[]] for _ in range(300_000)])
    others.start()
    others.join()
    assert not ended_in, "a widget that ends in another thread takes the window down with it"
    kept: list[list[object]] = [[] for _ in range(2_000)]
    qtbot.waitUntil(lambda: bool(ended_in))
    assert kept and ended_in == [threading.get_ident()]
