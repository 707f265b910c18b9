"""The ladder in the console: a preview before every act, the count on the button, refusals in words, over any scope."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel, QMenu, QWidget
from pytestqt.qtbot import QtBot

from console.api.agents.daemons import DaemonView
from console.gui.pages.fleet.page import FleetPage
from console.gui.pages.kill_switch.chooser import ScopeDialog
from console.gui.pages.kill_switch.page import KillSwitchPage
from console.gui.pages.kill_switch.rung import RungDialog
from console.gui.widgets.safe_text import is_plain
from console.gui.window.main import Window
from tests.fakes.gui_fixture import HOSTILE_NAMES, mockup_agents
from tests.fakes.operator_server import FakeHouse

Make = Callable[..., FakeHouse]
Open = Callable[..., Window]


def fleet_page(window: Window) -> FleetPage:
    page = window.pages["fleet"]
    assert isinstance(page, FleetPage)
    return page


def asked(window: Window, qtbot: QtBot, *, answered: bool = True) -> RungDialog:
    qtbot.waitUntil(lambda: any(d.isVisible() for d in window.findChildren(RungDialog)))
    found = next(d for d in window.findChildren(RungDialog) if d.isVisible())
    if answered:
        qtbot.waitUntil(lambda: found.preview is not None)
    return found


def words_of(widget: QWidget) -> str:
    return " ".join(w.accessibleName() for w in widget.findChildren(QWidget))


def acts(house: FakeHouse) -> list[tuple[str, str, str]]:
    return [(verb, target, data.get("reach", "")) for verb, target, data in house.supervisor.log]


@pytest.mark.parametrize("reach", ["agent", "tree", "session", "host"])
def test_a_rung_reaches_exactly_the_chosen_scope(reach: str, make_house: Make, open_window: Open, qtbot: QtBot) -> None:
    house = make_house()
    window = open_window("fleet")
    fleet_page(window).view.choose("support-triage")
    window.do(f"fleet.freeze-{reach}")
    dialog = asked(window, qtbot)
    ids = {"agent": "support-triage", "tree": "support-triage", "session": window.fleet.rows["support-triage"].view.session}
    number = {"agent": 1, "tree": 5, "session": 1}.get(reach, 0)
    assert dialog.preview is not None and dialog.preview.reach == reach and (dialog.preview.target or reach) == ids.get(reach, "host")
    assert dialog.main.text() == (f"Freeze {number} agent{'s' if number != 1 else ''}" if number else dialog.main.text())
    if reach == "host":
        assert "left alone" in words_of(dialog) and "only observed" in words_of(dialog)
    dialog.main.click()
    qtbot.waitUntil(lambda: acts(house) == [("freeze", ids.get(reach, "host"), reach)])
    qtbot.waitUntil(lambda: not [d for d in window.findChildren(RungDialog) if d.isVisible()])
    assert window.strip.notice is not None and "frozen" in window.strip.notice.text


def test_best_effort_is_amber_with_why_and_unnamed_ones_are_counted(make_house: Make, open_window: Open, qtbot: QtBot) -> None:
    make_house()
    window = open_window("fleet")
    fleet_page(window).view.choose("infra-janitor")
    window.do("fleet.isolate-tree")
    dialog = asked(window, qtbot)
    facts = {f.left: f for f in (*dialog.counted._facts, *dialog.whys._facts)}
    assert dialog.preview is not None and dialog.sentence.text() == "Isolate of agent infra-janitor and all below it: 3 agents."
    assert facts["it shares the host's network, so its own traffic cannot be cut"].left_role == "warn"
    assert any(f.right == "best effort, not confirmed" and f.right_role == "warn" for f in dialog.counted._facts)
    assert dialog.main.text() == "Isolate 3 agents"


def test_isolated_agents_are_marked_with_who_and_why_and_only_they_reconnect(make_house: Make, open_window: Open, qtbot: QtBot) -> None:
    house = make_house()
    window = open_window("fleet")
    page = fleet_page(window)
    page.view.choose("support-triage")
    assert page.why_not("fleet.reconnect-tree") == "None of it is isolated." == page.why_not("fleet.reconnect-host")
    window.do("fleet.isolate")
    dialog = asked(window, qtbot)
    dialog.reason.setText("odd <b>traffic</b>")
    dialog.main.click()
    qtbot.waitUntil(lambda: bool(window.fleet.rows["inbox-reader"].view.isolated))
    row = next(n for n, r in enumerate(page.table.model.rows) if r.id == "inbox-reader")
    network = [column.key for column in page.table.model.columns].index("network")
    qtbot.waitUntil(lambda: page.table.model.words(row, network) == "Isolated by root (uid 0): odd <b>traffic</b>")
    qtbot.waitUntil(lambda: page.pane.isolate.text() == "Reconnect")
    assert "root (uid 0): odd <b>traffic</b>" in page.pane._cut.text() and page.pane._cut.isVisible()
    page.view.choose("data-sync")
    assert page.why_not("fleet.reconnect-tree") and not page.why_not("fleet.reconnect-host")
    page.view.choose("support-triage")
    window.do("fleet.isolate")
    dialog = asked(window, qtbot)
    assert dialog.main.text() == "Reconnect 5 agents"
    dialog.main.click()
    qtbot.waitUntil(lambda: acts(house)[-1] == ("reconnect", "support-triage", "tree"))
    qtbot.waitUntil(lambda: not window.fleet.rows["inbox-reader"].view.isolated)


def test_refusals_and_half_done_acts_are_told_in_words(make_house: Make, open_window: Open, qtbot: QtBot) -> None:
    house = make_house()
    window = open_window("fleet")
    fleet_page(window).view.choose("support-triage")
    house.supervisor.stops.refuse_act = (503, "Everything was stopped: nothing changes until you rearm.")
    window.do("fleet.freeze-tree")
    dialog = asked(window, qtbot)
    dialog.main.click()
    qtbot.waitUntil(dialog.problem.isVisible)
    assert "nothing changes until you rearm. Rearm first." in dialog.problem.text() and dialog.main.isEnabled()
    house.supervisor.stops.refuse_act = None
    house.supervisor.stops.fails = {"inbox-reader": "the guard did not confirm it"}
    dialog.main.click()
    qtbot.waitUntil(lambda: "1 agent NOT frozen" in dialog.sentence.text())
    assert dialog.isVisible() and not dialog.main.isVisible() and "inbox-reader: the guard did not confirm it" in words_of(dialog)
    assert window.strip.notice is not None and window.strip.notice.level == "amber"


def test_without_a_preview_a_stop_is_still_possible_and_nothing_is_loosened(make_house: Make, open_window: Open, qtbot: QtBot) -> None:
    house = make_house()
    house.supervisor.stops.refuse = (503, "The registry cannot be read.")
    house.supervisor.agents["support-triage"] = house.supervisor.agents["support-triage"].replaced(causes=["operator"])
    window = open_window("fleet")
    fleet_page(window).view.choose("support-triage")
    window.do("fleet.thaw-tree")
    dialog = asked(window, qtbot, answered=False)
    qtbot.waitUntil(dialog.problem.isVisible)
    assert "registry cannot be read" in dialog.problem.text() and not dialog.main.isEnabled()
    dialog.close()
    window.do("fleet.kill-tree")
    dialog = asked(window, qtbot, answered=False)
    qtbot.waitUntil(lambda: dialog.main.text() == "Kill without a preview")
    dialog.main.click()
    qtbot.waitUntil(lambda: acts(house) == [("kill", "support-triage", "tree")])


def test_nothing_is_confirmed_before_the_preview_came(make_house: Make, open_window: Open, qtbot: QtBot) -> None:
    make_house()
    window = open_window("fleet")
    window.do("fleet.stop-tree")
    dialog = next(d for d in window.findChildren(RungDialog) if d.isVisible())
    assert not dialog.main.isEnabled() and dialog.preview is None
    qtbot.waitUntil(dialog.main.isEnabled)


def test_the_menu_offers_every_rung_over_every_reach(make_house: Make, open_window: Open, qtbot: QtBot) -> None:
    house = make_house()
    agents = mockup_agents()
    house.supervisor.agents[agents[0].id] = agents[0].replaced(name="R&D <b>x</b>\u202e")
    window = open_window("fleet")
    page = fleet_page(window)
    page.view.choose(agents[0].id)
    menu = page.acts.menu([page.view.current()], None)
    titles = [part.text() for part in menu.actions()]
    assert titles[0] == "R&&D <b>x</b>\\u202e alone" and titles[3] == "everything on this host" and all(is_plain(t) for t in titles)
    tips = [part.toolTip() for part in menu.actions()]
    assert tips[0].startswith("<qt>R&amp;D &lt;b&gt;x&lt;/b&gt;\\u202e") and all(tip.startswith("<qt>") for tip in tips if "R&" in tip)
    entries = list(menu.findChildren(QMenu)[1].actions())
    assert all(entry.toolTip().startswith("<qt>") for entry in entries)
    assert [e.text() for e in entries] == ["Freeze…", "Isolate…", "Kill…", "Resume…", "Reconnect…"]
    assert [e.isEnabled() for e in entries] == [True, True, True, False, False]
    entries[2].trigger()
    assert asked(window, qtbot).title.text().startswith("Kill R&D <b>x</b>")


def test_the_kill_switch_page_chooses_a_scope_first(make_house: Make, open_window: Open, qtbot: QtBot) -> None:
    house = make_house()
    window = open_window("kill-switch")
    page = window.page
    assert isinstance(page, KillSwitchPage)
    assert page.ladder.scope.reach == "host" and not page.ladder.buttons["reconnect"].isEnabled()
    page.ladder.pills.pills["tree"].click()
    qtbot.waitUntil(lambda: bool([d for d in window.findChildren(ScopeDialog) if d.isVisible()]))
    chooser = next(d for d in window.findChildren(ScopeDialog) if d.isVisible())
    QTest.keyClicks(chooser.field, "support")
    assert [choice.target for choice in chooser.model.rows] == ["support-triage"]
    QTest.keyClick(chooser.field, Qt.Key.Key_Return)
    assert page.ladder.scope.target == "support-triage" and page.ladder._over.text() == "over support-triage and 4 agents below it"
    window.do("switch.kill")
    dialog = asked(window, qtbot)
    assert dialog.main.text() == "Kill 5 agents" and "New agents can still start" in words_of(dialog)
    dialog.main.click()
    qtbot.waitUntil(lambda: acts(house) == [("kill", "support-triage", "tree")])
    qtbot.waitUntil(lambda: window.strip.notice is not None and bool(window.strip.notice.receipt))
    page.ladder.pills.pills["session"].click()
    chooser = next(d for d in window.findChildren(ScopeDialog) if d.isVisible())
    chooser.reject()
    assert page.ladder.pills.chosen() == "tree", "given up: the scope stays what it was"


def test_hostile_names_in_a_preview_stay_words(make_house: Make, open_window: Open, qtbot: QtBot) -> None:
    make_house("hostile")
    window = open_window("kill-switch")
    window.do("switch.kill")
    dialog = asked(window, qtbot)
    assert dialog.preview is not None and dialog.preview.excluded[0].name == HOSTILE_NAMES[0]
    assert dialog.preview.why_not and not dialog.main.isEnabled() and "stops no agent" in dialog.problem.text()
    assert all(is_plain(w.accessibleName()) for w in dialog.findChildren(QWidget))
    dialog.grab()


def test_a_kill_names_the_daemons_that_host_its_sessions_each_on_lines_of_its_own(
    make_house: Make, open_window: Open, qtbot: QtBot
) -> None:
    house = make_house()
    hostile = DaemonView(name="x\n\u202e<b>", pid=8, plan="is named only: " + "its socket folder can be written by others, " * 4)
    daemon = DaemonView(name="the Claude service", pid=7, plan="frozen until zero, then asked to drop it", other_sessions=["s2"])
    house.supervisor.stops.daemons = [daemon, hostile]
    window = open_window("fleet", (800, 560))
    fleet_page(window).view.choose("infra-janitor")
    window.do("fleet.stop-tree")
    dialog = asked(window, qtbot)
    said = [fact.left for fact in dialog.daemons._facts]
    assert " ".join(said).startswith("the Claude service, process 7: frozen until zero, then asked to drop it; other sessions in it: s2")
    assert len(said) == 2 and is_plain(dialog.daemons.accessibleName())
    qtbot.waitUntil(lambda: dialog.daemons.height() >= 5 * 16)  # in as many lines as they need
    assert dialog.outside.isVisible() and dialog.outside.text().startswith("8 agents could give work")
    for label in dialog.findChildren(QLabel):
        assert "\\x0a" not in label.text(), "a line break of the window's own is no text of an agent"
    house.supervisor.stops.refuse = (503, "The guard does not answer.")
    dialog._ask()
    qtbot.waitUntil(lambda: dialog.preview is None and not dialog.outside.isVisible() and not dialog.daemons._facts)
