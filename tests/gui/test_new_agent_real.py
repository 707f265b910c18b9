"""A person starts an agent from the window, on a real supervisor and guard: seen ahead, started, selected."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from pytestqt.qtbot import QtBot

from console.gui.pages.activity.page import ActivityPageView
from console.gui.pages.fleet.new_agent import NewAgentDialog
from console.gui.pages.fleet.page import FleetPage
from console.gui.window.main import Window
from console.settings.places import Places, find_places
from tests.fakes.instance import Instance
from tests.fakes.standing import short_folder


@pytest.fixture
def places() -> Iterator[Places]:
    with short_folder() as folder:
        yield find_places(str(folder / "s"), create=True)


@pytest.mark.usefixtures("forked")
def test_a_command_is_seen_ahead_started_and_selected(places: Places, open_window: Callable[..., Window], qtbot: QtBot) -> None:
    with Instance(places.state_dir) as it:
        window = open_window("fleet")
        page = window.page
        assert isinstance(page, FleetPage)
        page.do("fleet.run")
        [dialog] = window.findChildren(NewAgentDialog)
        form = dialog.form
        qtbot.waitUntil(lambda: form.templates is not None)
        assert form.templates is not None and list(form.templates.pills) == ["careful", "container", "open"]
        form.kind.pills["command"].click()
        form.templates.pills["open"].click()
        form.command.setText("sleep 600")
        form.name.setText("sleeper <b>x</b>")
        form.scopes["READ_FS"].click()
        qtbot.waitUntil(dialog.main.isEnabled)
        lines = {line.what: line for line in dialog.reach.shown}
        assert lines["program"].words == "sleep 600" and "kinds of effects: READ_FS;" in lines["scopes"].words
        assert lines["files"].amber and lines["hosts"].amber and "1.00 USD at most" in lines["cost"].words
        assert not it.api.fleet().agents, "a look ahead starts nothing"
        dialog.main.click()
        qtbot.waitUntil(lambda: page.view.current() is not None and page.view.current().name == "sleeper <b>x</b>")
        [agent] = it.api.fleet().agents
        assert (agent.limits["cost_usd"], agent.limits["wall_s"], agent.scopes) == (1.0, 3600.0, ["READ_FS"])
        window.goto("activity", agent.id)
        shown = window.page
        assert isinstance(shown, ActivityPageView)
        qtbot.waitUntil(lambda: "not started as a program" in shown.talk.state.text())
        window.close()
