"""Starting an agent from the window: what it could do is seen first, and only what was seen is started."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtWidgets import QLabel
from pytestqt.qtbot import QtBot

from console.api.agents.programs import ProgramItem, ProgramPreview, ReachView
from console.api.messages import LaunchBody
from console.gui.pages.fleet.agent_form import hidden_words
from console.gui.pages.fleet.new_agent import NewAgentDialog
from console.gui.pages.fleet.page import FleetPage
from console.gui.pages.fleet.reach import ReachPane, memory_words, ordered
from console.gui.widgets.safe_text import is_plain
from console.gui.window.main import Window
from tests.fakes.operator_server import FakeHouse

House = Callable[..., FakeHouse]
Opener = Callable[..., Window]


def asked(window: Window, qtbot: QtBot) -> NewAgentDialog:
    window.do("fleet.run")
    qtbot.waitUntil(lambda: any(d.isVisible() for d in window.findChildren(NewAgentDialog)))
    dialog = next(d for d in window.findChildren(NewAgentDialog) if d.isVisible())
    qtbot.waitUntil(lambda: dialog.form.templates is not None and bool(dialog.reach.shown))
    return dialog


def test_what_it_could_do_is_seen_before_it_starts_and_its_row_is_selected(make_house: House, open_window: Opener, qtbot: QtBot) -> None:
    house = make_house("mockup")
    window = open_window("fleet")
    page = window.page
    assert isinstance(page, FleetPage) and page.table.header.new.isEnabled()
    dialog = asked(window, qtbot)
    assert not dialog.main.isEnabled() and dialog.why_not() == "Write what it is asked to do."
    assert [line.what for line in dialog.reach.shown] == ["files", "hosts", "scopes", "data", "cost", "program"]
    assert dialog.form.sandbox.currentData() == "bubblewrap" and "6,144 MiB are free" in dialog.reach.memory.text()
    dialog.form.prompt.setPlainText("Tidy up --dangerously-skip-permissions\n$(id)")
    assert not dialog.main.isEnabled(), "other fields than those whose worst case is shown"
    qtbot.waitUntil(dialog.main.isEnabled)
    dialog.form.cost.setText("2.50")
    dialog.form.wall.setText("5")
    dialog.form.limits.setText("tokens=1000")
    dialog.form.scopes["READ_FS"].click()
    dialog.form.model.setText("m-1")
    qtbot.waitUntil(dialog.main.isEnabled)
    assert any("2.50 USD at most" in line.words for line in dialog.reach.shown)
    dialog.main.click()
    qtbot.waitUntil(lambda: page.view.current() is not None and page.view.current().id == "started-1")
    [sent] = house.supervisor.programs.started
    assert sent == house.supervisor.programs.previews[-1], "what was shown is what is started"
    assert sent.prompt == "Tidy up --dangerously-skip-permissions\n$(id)" and (sent.agent, sent.model) == ("claude-code", "m-1")
    assert sent.limits == {"cost": 2.5, "wall": 300.0, "tokens": 1000.0} and sent.scopes == ["READ_FS"]
    assert (sent.sandbox, sent.network_mode, sent.sensitivity) == ("bubblewrap", "PROXIED", "INTERNAL")
    assert not any(d.isVisible() for d in window.findChildren(NewAgentDialog))


def test_refusals_stay_in_the_dialog_with_their_figures(make_house: House, open_window: Opener, qtbot: QtBot) -> None:
    programs = make_house("mockup").supervisor.programs
    window = open_window("fleet")
    dialog = asked(window, qtbot)
    programs.why_not = "Memory is short: 512 MiB are free, and 1,024 MiB are wanted."
    programs.view = programs.view.replaced(memory_free_mib=512)
    dialog.form.prompt.setPlainText("do it")
    qtbot.waitUntil(lambda: "512 MiB are free, and 1,024" in dialog.reach.state.text())
    assert not dialog.main.isEnabled() and not dialog.reach.shown
    qtbot.waitUntil(lambda: "too short" in dialog.reach.memory.text())
    programs.why_not, programs.fails = "", "The sandbox could not be built."
    dialog.form.prompt.setPlainText("do it now")
    qtbot.waitUntil(dialog.main.isEnabled)
    dialog.main.click()
    qtbot.waitUntil(dialog.problem.isVisible)
    assert "could not be built" in dialog.problem.text() and dialog.main.isEnabled(), "one may try again"
    for text, words in (("x", "needs a number"), ("nan", "finite"), ("-1", "zero or more")):
        dialog.form.cost.setText(text)
        qtbot.waitUntil(lambda words=words: words in dialog.reach.state.text())  # type: ignore[misc]
        assert not dialog.main.isEnabled()
    dialog.form.cost.setText("")
    dialog.form.limits.setText("money=3")
    qtbot.waitUntil(lambda: "no limit 'money'" in dialog.reach.state.text())
    assert len(programs.started) == 1


def test_any_command_is_seen_before_it_starts_too(make_house: House, open_window: Opener, qtbot: QtBot) -> None:
    house = make_house("mockup")
    window = open_window("fleet")
    page = window.page
    assert isinstance(page, FleetPage)
    dialog = asked(window, qtbot)
    dialog.form.kind.pills["command"].click()
    assert dialog.form.templates is not None
    dialog.form.templates.pills["open"].click()
    dialog.form.command.setText("python3 'agent one.py'")
    qtbot.waitUntil(dialog.main.isEnabled)
    assert {line.what for line in dialog.reach.shown if line.amber} == {"files", "hosts"}
    dialog.main.click()
    qtbot.waitUntil(lambda: page.view.current() is not None and page.view.current().id == "new-1")
    [(_, _, body)] = [entry for entry in house.supervisor.log if entry[0] == "launch"]
    last = house.supervisor.programs.previews[-1]
    assert body["argv"] == ["python3", "agent one.py"] and isinstance(last, LaunchBody) and last.as_data() == body


def test_hostile_and_endless_text_is_plain_and_refused_with_the_figure(make_house: House, open_window: Opener, qtbot: QtBot) -> None:
    programs = make_house("hostile").supervisor.programs
    window = open_window("fleet", (1024, 700))
    dialog = asked(window, qtbot)
    dialog.form.prompt.setPlainText("<b>x</b>\u202e" + "A" * 65_536)
    qtbot.waitUntil(lambda: "65,545 characters; at most 60,000" in dialog.reach.state.text())
    assert "1 hidden character" in dialog.hidden.text() and not dialog.main.isEnabled()
    assert all(not isinstance(p, ProgramItem) or len(p.prompt) <= 60_000 for p in programs.previews), "it is not even sent"
    dialog.reach._put([ReachView(what="<i>new</i>", words="\u202e<img src=x>" * 500, amber=True)])
    assert all(is_plain(label.text()) for label in dialog.findChildren(QLabel))
    dialog.form.offer_sessions(["<b>s</b>\u202e", *(f"s{n}" for n in range(500))])
    assert dialog.form.session.count() == 51 and is_plain(dialog.form.session.itemText(1))
    assert dialog.height() <= 700


def test_nothing_starts_while_killed_and_it_says_why(make_house: House, open_window: Opener, qtbot: QtBot) -> None:
    house = make_house("mockup")
    window = open_window("fleet")
    page = window.page
    assert isinstance(page, FleetPage)
    dialog = asked(window, qtbot)
    dialog.form.prompt.setPlainText("do it")
    qtbot.waitUntil(dialog.main.isEnabled)
    house.on_loop(house.guard.press_now)
    qtbot.waitUntil(lambda: not dialog.main.isEnabled() and "Killed" in dialog.main.toolTip())
    dialog._send()
    assert not house.supervisor.programs.started
    dialog.close()
    window.goto("fleet", "")  # a kill leads to its receipt
    qtbot.waitUntil(lambda: not page.table.header.new.isEnabled())
    assert page.why_not("fleet.run") == "Killed: nothing starts until you rearm."


def test_it_is_offered_on_every_page_and_once(make_house: House, open_window: Opener, qtbot: QtBot) -> None:
    make_house("mockup")
    window = open_window("fleet")
    assert [a.id for a in window.verbs() if a.title == "New agent…"] == ["fleet.run"]
    window.goto("audit", "")
    assert [a.id for a in window.verbs() if a.title == "New agent…"] == ["console.new-agent"] and not window.why_not("console.new-agent")
    window.do("console.new-agent")
    assert isinstance(window.page, FleetPage) and window.findChildren(NewAgentDialog)


def test_what_is_not_known_is_never_called_narrow_and_blank_letters_are_hidden_ones(qtbot: QtBot) -> None:
    pane = ReachPane()
    qtbot.addWidget(pane)
    pane.say(ProgramPreview(agent="codex"))
    assert pane.state.text() == "What it could do is not known."
    assert hidden_words("rm\u3164 -rf\u00a0/\ufe0f\u200b\n\tx").startswith("4 hidden characters") and not hidden_words("a\n\tb é")


def test_memory_and_order_in_words() -> None:
    assert memory_words(None) == ("Free memory is not known yet.", False)
    lines = [ReachView(what=what, words="") for what in ("new", "cost", "files")]
    assert [line.what for line in ordered(lines)] == ["files", "cost", "new"]
