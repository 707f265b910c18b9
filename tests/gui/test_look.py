"""Renders pages in their states; with WATCHFLOOR_LOOK=folder the pictures are kept to be looked at."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from console.gui.theme import fonts, style
from console.gui.theme.tokens import DARK, LIGHT
from console.gui.widgets.facts import Fact, Facts
from console.gui.widgets.marks import lines_of
from console.gui.window.main import Window
from console.panic.machine import PanicState
from tests.fakes.guard_socket import FakeGuard
from tests.fakes.operator_server import FakeHouse

KEEP = os.environ.get("WATCHFLOOR_LOOK", "")


def picture(window: Window, name: str, qtbot: QtBot) -> bytes:
    qtbot.wait(150)
    grabbed = window.grab()
    assert grabbed.width() == window.width()
    if KEEP:
        grabbed.save(str(Path(KEEP) / f"{name}.png"))
    colours = {grabbed.toImage().pixel(x, y) for x in range(0, grabbed.width(), 37) for y in range(0, grabbed.height(), 29)}
    assert len(colours) > 6, "an empty picture"
    return name.encode()


@pytest.mark.parametrize("page", ["fleet", "kill-switch", "receipt"])
def test_pages_render(page: str, make_house: Callable[..., FakeHouse], open_window: Callable[..., Window], qtbot: QtBot) -> None:
    make_house()
    window = open_window("fleet")
    window.goto(page, "k-0036" if page == "receipt" else "")
    qtbot.waitUntil(lambda: window.page is not None and window.page.is_ready())
    running = QApplication.instance()
    assert isinstance(running, QApplication)
    for size in ((1440, 900), (1024, 700)):
        window.resize(*size)
        for theme in (LIGHT, DARK):
            style.apply(running, theme)
            picture(window, f"{page}-{theme.name}-{size[0]}", qtbot)


@pytest.mark.parametrize("proven", [True, False], ids=["proven", "not-proven"])
def test_a_kill_is_seen(proven: bool, make_house: Callable[..., FakeHouse], open_window: Callable[..., Window], qtbot: QtBot) -> None:
    house = make_house(guard=FakeGuard(proven=proven))
    window = open_window("fleet")
    house.guard.lasting = True  # until it was seen, whatever else this machine does
    window.machine.arm()
    picture(window, f"kill-{proven}-0-armed", qtbot)
    window.machine.press_down()
    qtbot.wait(400)
    picture(window, f"kill-{proven}-1-holding", qtbot)
    qtbot.waitUntil(lambda: window.machine.state is PanicState.KILLING and window.switch.guard.proven > 20)
    window.goto("fleet", "")
    picture(window, f"kill-{proven}-2-killing", qtbot)
    house.guard.lasting = False
    qtbot.waitUntil(lambda: window.switch.receipt is not None and window.switch.receipt.complete)
    qtbot.waitUntil(lambda: window.machine.state is PanicState.KILLED)
    window.goto("fleet", "")
    picture(window, f"kill-{proven}-3-killed-fleet", qtbot)
    window.goto("receipt", "")
    picture(window, f"kill-{proven}-4-receipt", qtbot)
    window.goto("kill-switch", "")
    picture(window, f"kill-{proven}-5-switch", qtbot)
    assert [op["op"] for op in house.guard.ops if op["op"] not in ("status",)] == ["hold"]


@pytest.mark.parametrize("fleet", ["0", "hostile", "1"])
def test_odd_fleets_render(fleet: str, make_house: Callable[..., FakeHouse], open_window: Callable[..., Window], qtbot: QtBot) -> None:
    make_house(fleet)
    picture(open_window("fleet"), f"odd-{fleet}", qtbot)
    picture(open_window("fleet", (1024, 700)), f"odd-{fleet}-narrow", qtbot)


def test_nobody_answers(open_window: Callable[..., Window], qtbot: QtBot) -> None:
    window = open_window("fleet", wait=False)
    qtbot.waitUntil(lambda: "No supervisor" in window.switch.light(0)[1])
    picture(window, "silent", qtbot)
    window.goto("kill-switch", "")
    picture(window, "silent-switch", qtbot)
    light, words = window.switch.light(0)
    assert light == "unknown" and "No supervisor" in words


def test_a_fact_with_nothing_at_the_right_has_as_many_lines_as_it_needs(qtbot: QtBot) -> None:
    facts = Facts(24)
    qtbot.addWidget(facts)
    facts.say([Fact("short", "right", "check"), Fact("no home is looked at, because this instance has its own folder " * 3, indent=True)])
    assert facts.heightForWidth(3000) == 48 and facts.heightForWidth(300) == 48 + 3 * 16, "four lines at most"
    facts.say([Fact("long words " * 30, "right")])
    assert facts.heightForWidth(200) == 24, "beside words at the right there is one line"


def test_lines_of_a_text_hold_all_of_it(qtbot: QtBot) -> None:
    text = "\U0001f600 one two \U0001f600\U0001f600 three /a/folder/without/a/place/to/break/at/all four"
    lines = lines_of(text, fonts.ui(12), 90, 50)
    assert "".join(lines).replace(" ", "") == text.replace(" ", "") and len(lines) > 3
    assert lines_of(text, fonts.ui(12), 90, 2)[0] == lines[0] and len(lines_of(text, fonts.ui(12), 90, 2)) == 2
    assert lines_of("", fonts.ui(12), 90, 2) == ("",)
