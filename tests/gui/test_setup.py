"""The set-up in four steps: on a stand-in with hostile sources, and on a real supervisor with a real hook, rule, limit and kill."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from console.api.agents.first_run import FirstRunView, FoundProgram, SelfTestView
from console.api.messages import SourceView
from console.domain.errors import Conflict
from console.gui.pages.first_run.hook import HookDialog
from console.gui.pages.first_run.setup import SetupDialog
from console.gui.pages.first_run.steps import FoundStep, KillStep, LimitStep, ProfileStep
from console.gui.widgets.safe_text import is_plain
from console.gui.window.main import Window
from console.gui.window.remembered import Remembered
from console.settings.places import Places, find_places
from tests.fakes.approval_routes import HOSTILE
from tests.fakes.instance import Instance
from tests.fakes.operator_server import FakeHouse
from tests.fakes.standing import short_folder

House = Callable[..., FakeHouse]
Opener = Callable[..., Window]


def setup_of(window: Window) -> SetupDialog:
    [found] = window.findChildren(SetupDialog)
    return found


def test_the_set_up_walks_four_steps_by_keyboard_and_each_can_be_passed_over(make_house: House, open_window: Opener, qtbot: QtBot) -> None:
    house = make_house("0")
    window = open_window("fleet")
    QTest.keyClick(QApplication.focusWidget() or window, Qt.Key.Key_U)
    dialog = setup_of(window)
    assert not dialog.isModal() and window.isEnabled(), "the panic button stays in reach"
    titles = []
    for _ in range(4):
        titles.append(dialog.title.text())
        dialog.main.setFocus()
        QTest.keyClick(dialog.main, Qt.Key.Key_Space)
    assert [dialog.where.text(), len(set(titles))] == ["Set-up, step 4 of 4", 4]
    qtbot.waitUntil(lambda: not window.findChildren(SetupDialog))
    assert not house.supervisor.policy.profiles.choices and not house.supervisor.budgets.log, "passing over changes nothing"
    window.do("fleet.setup")
    again = setup_of(window)
    QTest.keyClick(again, Qt.Key.Key_Escape)
    qtbot.waitUntil(lambda: not window.findChildren(SetupDialog))


def test_programs_are_listed_with_what_is_seen_and_stopped_and_hostile_words_stay_words(
    make_house: House, open_window: Opener, qtbot: QtBot
) -> None:
    make_house("0")
    window = open_window("fleet")
    window.do("fleet.setup")
    found = setup_of(window).found
    assert isinstance(found, FoundStep)
    for text in HOSTILE:
        program = FoundProgram(kind="claude-code", title=text[:300], source="claude_code", path=text[:300])
        source = SourceView(source="claude_code", available=True, reason="", can_see=text[:300], can_stop=text[:300])
        found.take(FirstRunView(programs=[program, FoundProgram(kind="goose", title="Goose", wrote="~/goose")]), [source])
        row, other = found.rows()
        assert all(is_plain(shown.text()) for shown in row.findChildren(type(found.said)))
        assert not row.button.isHidden() and other.button.isHidden(), "a hook is offered where there is one"
        assert "Codex" in found.said.text() and "Claude Code" not in found.said.text()


def test_a_limit_that_halts_agents_is_asked_about_first(make_house: House, open_window: Opener, qtbot: QtBot) -> None:
    house = make_house("0")
    house.supervisor.budgets.halts = ["a-1", "<b>a-2</b>"]
    window = open_window("fleet")
    window.do("fleet.setup")
    dialog = setup_of(window)
    dialog.go(2)
    step = dialog.steps[2]
    assert isinstance(step, LimitStep)
    qtbot.waitUntil(lambda: bool(step.said.text()))
    step.field.setText("five")
    step.set.click()
    assert "no number" in step.said.text()
    step.field.setText("5")
    step.set.click()
    qtbot.waitUntil(lambda: "halts 2 agents at once" in step.said.text())
    assert [one["dry_run"] for one in house.supervisor.budgets.log] == [True]
    step.set.click()
    qtbot.waitUntil(lambda: len(house.supervisor.budgets.log) == 2)
    assert house.supervisor.budgets.log[1]["dry_run"] is False and house.supervisor.budgets.log[1]["limits"] == {"cost": 5.0}


def test_a_test_that_fails_is_red_and_a_refused_one_amber(make_house: House, open_window: Opener, qtbot: QtBot) -> None:
    make_house("0")
    window = open_window("fleet")
    window.do("fleet.setup")
    dialog = setup_of(window)
    dialog.go(3)
    step = dialog.steps[3]
    assert isinstance(step, KillStep)
    step.take(SelfTestView(proven=False, words="the canary was NOT confirmed dead"))
    assert step.result.text() == "NOT confirmed" and "doctor" in step.said.text()
    step.fail(Conflict("The kill switch is not tested while nothing may start.", "Rearm first."))
    assert step.result.text() == "Not tested" and "Rearm first." in step.said.text() and step.button.isEnabled()


def test_it_is_offered_once(tmp_path: Path) -> None:
    first = Remembered(tmp_path / "window.ini")
    assert not first.is_set_up()
    first.keep_set_up()
    assert Remembered(tmp_path / "window.ini").is_set_up()


@pytest.fixture
def places() -> Iterator[Places]:
    with short_folder() as folder:
        yield find_places(str(folder / "s"), create=True)


@pytest.mark.usefixtures("forked")
def test_on_a_real_supervisor_a_hook_a_profile_a_limit_and_a_kill(
    places: Places, open_window: Opener, qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    settings = home / ".claude" / "settings.json"
    (home / ".claude" / "projects").mkdir(parents=True)
    before = '{\n  "model": "opus"\n}\n'
    settings.write_text(before)
    monkeypatch.setenv("HOME", str(home))
    with Instance(places.state_dir, "--discover-root", str(home)) as it:
        window = open_window("fleet")
        window.do("fleet.setup")
        dialog = setup_of(window)
        found, profile, limit, test = dialog.steps
        assert isinstance(found, FoundStep) and isinstance(profile, ProfileStep)
        assert isinstance(limit, LimitStep) and isinstance(test, KillStep)
        qtbot.waitUntil(lambda: any(row.button.text() == "Add a hook…" for row in found.rows()))
        found.rows()[0].button.click()
        [hook] = dialog.findChildren(HookDialog)
        qtbot.waitUntil(lambda: hook.main.isEnabled() and window.switch.status is not None)
        hook.main.click()
        qtbot.waitUntil(lambda: hook.main.text() == "Take the hook out")
        assert str(places.hooks_sock) in settings.read_text() and json.loads(settings.read_text())["model"] == "opus"
        qtbot.waitUntil(lambda: any(row.button.text() == "Take the hook out…" for row in found.rows()))
        hook.main.click()
        qtbot.waitUntil(lambda: hook.main.text() == "Install the hook")
        assert settings.read_text() == before, "taken out to the byte"
        hook.reject()
        dialog.go(1)
        qtbot.waitUntil(lambda: "in force for every kind" in profile.said.text())
        profile.pills.pills["strict"].click()
        profile.use.click()
        qtbot.waitUntil(lambda: "Strict is in force for every kind" in profile.said.text())
        chosen = it.api.profiles().choices
        assert {one.profile for one in chosen} == {"strict"} and len(chosen) == 8
        dialog.go(2)
        qtbot.waitUntil(lambda: "No limit is set." in limit.said.text())
        limit.field.setText("20")
        limit.set.click()
        qtbot.waitUntil(lambda: "The limit is $20.00 a day." in limit.said.text())
        dialog.go(3)
        test.button.click()
        qtbot.waitUntil(lambda: test.result.text().startswith("Confirmed dead in "))
        window.close()
