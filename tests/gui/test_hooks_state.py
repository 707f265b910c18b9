"""Whether hooks reach us is shown as it was seen: a program that never asked is never called enforced."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pytestqt.qtbot import QtBot

from console.api.messages import AgentDetailView, AgentView
from console.gui.pages.fleet.hooks import NEVER, hook_words
from console.gui.pages.fleet.page import FleetPage
from console.gui.window.main import Window
from tests.fakes.operator_server import FakeHouse


def test_an_agents_pane_says_it_in_the_supervisors_words(
    make_house: Callable[..., FakeHouse], open_window: Callable[..., Window], qtbot: QtBot
) -> None:
    programs = make_house("mockup").supervisor.programs
    programs.hook_words = "not enforced: no call has reached the supervisor"
    page = open_window("fleet").page
    assert isinstance(page, FleetPage)
    qtbot.waitUntil(page.pane._hook.isVisible)
    assert page.pane._hook.text() == f"Tool calls: {NEVER}."
    programs.hook_words = ""
    qtbot.waitUntil(lambda: not page.pane._hook.isVisible())


@pytest.mark.parametrize(
    ("detail", "words"),
    [
        (AgentDetailView(agent=AgentView(id="a", source="claude_code")), "watchfloor install-hook claude-code"),
        (AgentDetailView(agent=AgentView(id="a", source="processes", seen_by=["codex", "processes"])), "watchfloor install-hook codex"),
        (AgentDetailView(agent=AgentView(id="a", source="claude_code"), hook="enforced: 3 tool calls were checked"), "enforced: 3"),
    ],
)
def test_only_what_was_seen_is_enforced(detail: AgentDetailView, words: str) -> None:
    assert words in hook_words(detail)
    assert ("not enforced" in hook_words(detail)) == (not detail.hook)


def test_a_program_without_hooks_has_no_line() -> None:
    assert hook_words(AgentDetailView(agent=AgentView(id="a", source="docker"))) == ""
