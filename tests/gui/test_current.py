"""What the window shows is current, or marked as old: one store, one rule of age, for header, cards, tray and first-run page."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from PySide6.QtWidgets import QLabel
from pytestqt.qtbot import QtBot

from console.api.armed import ArmedView, PathView, fresh_for_s
from console.gui.models import switch as switch_model
from console.gui.pages.kill_switch.page import KillSwitchPage
from console.gui.widgets.words import age
from console.gui.window import sync as sync_module
from console.gui.window.main import Window
from tests.fakes import gui_fixture as fixture
from tests.fakes.operator_server import FakeHouse

Make = Callable[..., FakeHouse]
Open = Callable[..., Window]


def test_once_the_self_tests_stop_everything_that_showed_them_turns_amber_in_time(
    make_house: Make, open_window: Open, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    house = make_house()
    monkeypatch.setattr(sync_module, "STATUS_MS", 200)
    window = open_window("kill-switch")
    page = window.pages["kill-switch"]
    assert isinstance(page, KillSwitchPage)
    qtbot.waitUntil(lambda: window.switch.light(time.time())[0] == "armed")
    qtbot.waitUntil(lambda: window.top.light._state == "armed" and page.head._light == "armed")
    monkeypatch.setattr(switch_model, "fresh_for_s", lambda _period: 54.0)  # two seconds more than the oldest proof has
    qtbot.wait(300)
    assert window.switch.light(time.time())[0] == "armed", "while they are renewed nothing ages"
    house.supervisor.self_tests = False
    qtbot.waitUntil(lambda: window.switch.light(time.time())[0] == "in_doubt")
    qtbot.waitUntil(lambda: window.top.light._state == "in_doubt")
    assert "engine: no self-test for" in window.top.light.accessibleName()
    qtbot.waitUntil(lambda: page.head._light == "in_doubt" and "Not ready" in page.cards["engine"].accessibleName())
    assert window.switch.heard_at is not None and time.time() - window.switch.heard_at < 60, "the supervisor answers all the while"
    house.supervisor.self_tests = True
    house.supervisor.switch = fixture.kill_switch(time.time())
    qtbot.waitUntil(lambda: window.top.light._state == "armed")


def test_header_cards_and_status_speak_of_the_same_proof(make_house: Make, open_window: Open, qtbot: QtBot) -> None:
    """An hour without a change of the kill switch, while the status tells of a proof seven seconds ago."""
    house = make_house()
    window = open_window("kill-switch")
    page = window.pages["kill-switch"]
    assert isinstance(page, KillSwitchPage)
    now = time.time()
    old = fixture.kill_switch(now - 3600)
    window.switch.take_view(old, now - 1)
    local = PathView(name="local", state="proven", proof_age_s=7.0, period_s=60.0, checked_at=now - 7)
    window.switch.take_status(house.supervisor.status.replaced(armed=ArmedView(state="armed", paths=[local])), now)
    assert window.switch.verified_at() == pytest.approx(now - 7)
    assert window.switch.light(now) == ("armed", "Kill switch ready")
    assert [p.name for p in window.switch.paths(now)] == ["local"]
    window.state._light(window.switch, now)
    assert window.top.light._words == f"Kill switch ready · tested {age(now - 7, now)}"
    page.on_models()
    assert page.cards["local"]._path.proof_age_s == 7.0


def test_what_no_delta_tells_is_read_again_and_again(make_house: Make, open_window: Open, qtbot: QtBot) -> None:
    house = make_house()
    window = open_window("kill-switch")
    house.supervisor.switch = house.supervisor.switch.replaced(press={"managed": {"agents": 7, "processes": 9}})
    page = window.pages["kill-switch"]
    assert isinstance(page, KillSwitchPage)
    qtbot.waitUntil(lambda: "managed: 7 agents" in page.press.accessibleName())


def test_what_a_panic_leaves_alone_is_promised_nothing(make_house: Make, open_window: Open, qtbot: QtBot) -> None:
    house = make_house(3)
    window = open_window("kill-switch")
    press = {"observed": {"agents": 2, "processes": 2, "left_alone": 2}, "best_effort": {"agents": 1, "processes": 1}}
    house.supervisor.switch = house.supervisor.switch.replaced(press=press)
    page = window.pages["kill-switch"]
    assert isinstance(page, KillSwitchPage)
    qtbot.waitUntil(lambda: "observed: 2 agents, 2 processes, left alone, not stopped" in page.press.accessibleName())
    said = [label.text() for label in page.findChildren(QLabel) if "New agents stay blocked" in label.text()]
    assert said == [
        "New agents stay blocked until you rearm, also after a restart; 1 agent best effort at most; "
        "2 agents only observed: a panic does not stop them"
    ]
    press["observed"] = {"agents": 2, "processes": 2, "left_alone": 1}
    house.supervisor.switch = house.supervisor.switch.replaced(press=dict(press))
    qtbot.waitUntil(lambda: "1 left alone, others: best effort at most" in page.press.accessibleName())


def test_one_rule_of_age() -> None:
    assert fresh_for_s(60.0) == 132.0 and fresh_for_s(None) == 132.0 and fresh_for_s(10.0) == 32.0


def test_an_answer_that_stops_coming_is_behind_though_others_come(
    make_house: Make, open_window: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    switch = switch_model.Switch()
    switch.guard.alive = True
    switch.take_view(fixture.kill_switch(1000.0), 1000.0)
    switch.take_status(fixture.status(1000.0), 1000.0)
    monkeypatch.setattr(switch_model, "BEHIND_S", 10.0)
    assert switch.light(1001.0)[0] == "armed"
    switch.take_status(fixture.status(1011.0), 1011.0)
    assert switch.light(1011.5) == ("unknown", "Self-tests not read for 12 s") and switch.is_old(1011.5)
