"""A supervisor that falls silent while the window is open: every page says that what it shows is old, and nothing on it is green."""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable

import pytest
from PySide6.QtGui import QColor, QImage
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from console.api import endpoints as ep
from console.gui.models import switch as switch_model
from console.gui.pages.registry import PAGES
from console.gui.theme.tokens import DARK
from console.gui.window.main import Window
from console.gui.window.old import old_words
from tests.fakes.operator_server import FakeHouse
from tests.unit.gui.test_switch_model import armed


def greens(image: QImage) -> list[tuple[int, int]]:
    """Where the colour of what is well is painted, pure: the soft fills of a diff are another one."""
    image = image.convertToFormat(QImage.Format.Format_RGB32)
    pixels = array("I", bytes(image.constBits()))
    wanted = QColor(DARK.ok).rgb()
    return [(at % image.width(), at // image.width()) for at, pixel in enumerate(pixels) if pixel == wanted]


def test_after_the_supervisor_is_gone_every_page_says_how_old_it_is_and_nothing_is_green(
    make_house: Callable[..., FakeHouse], open_window: Callable[..., Window], qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    house = make_house("mockup")
    window = open_window("fleet", (1024, 700))
    names = [kind.spec.name for kind in PAGES]
    for name in names:
        window.goto(name, "k-0036" if name == "receipt" else "")
        qtbot.waitUntil(lambda: window.page is not None and window.page.is_ready())
    assert not window.old.isVisible()
    assert greens(window.grab().toImage()), "what is well is green while somebody says so"
    house.stop()
    monkeypatch.setattr(switch_model, "SILENT_S", 0.2)
    qtbot.waitUntil(lambda: window.old.isVisible())
    assert "Stale since" in window.old.accessibleName() and "has not answered" in window.old.accessibleName()
    for name in names:
        window.goto(name, "k-0036" if name == "receipt" else "")
        window.state.refresh()
        assert window.page is not None
        window.page.on_tick(window.desk.clock())
        QApplication.processEvents()
        assert window.old.isVisible(), name
        if name in ("audit", "receipt"):
            continue  # a hash that was compared here, a kill that was proven then: these stay true
        assert greens(window.grab().toImage()) == [], name
    monkeypatch.setattr(switch_model, "SILENT_S", 60.0)
    house.start()
    qtbot.waitUntil(lambda: not window.old.isVisible())


def test_what_was_told_of_a_silent_supervisor_goes_with_its_first_answer(
    make_house: Callable[..., FakeHouse], open_window: Callable[..., Window], qtbot: QtBot
) -> None:
    house = make_house("1")
    window = open_window("fleet")
    house.stop()
    window.wires.link.ask(ep.AUDIT, limit=1).failed(window.notices.fail)
    qtbot.waitUntil(lambda: window.strip.notice is not None and window.strip.notice.text == "The supervisor does not answer.")
    window.switch.heard_at = time.time() - 90
    window.state.refresh()
    assert "Updated 1 min 30 s ago" in window.top.light.accessibleName()
    house.start()
    qtbot.waitUntil(lambda: window.strip.notice is None)


def test_changes_are_heard_as_soon_as_the_supervisor_answers_again(
    make_house: Callable[..., FakeHouse], open_window: Callable[..., Window], qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("console.gui.link.events.FIRST_WAIT_MS", 600_000)
    monkeypatch.setattr("console.gui.link.events.LONGEST_WAIT_MS", 600_000)
    house = make_house("1")
    window = open_window("fleet")
    qtbot.waitUntil(lambda: window.switch.deaf_since is None)
    house.stop()
    qtbot.waitUntil(lambda: window.switch.deaf_since is not None)
    house.start()
    qtbot.waitUntil(lambda: window.switch.deaf_since is None)


def test_a_kill_does_not_hide_that_the_news_is_old() -> None:
    switch = armed()
    switch.guard.latched = True
    assert switch.light(1000.0 + 600)[0] == "killed" and switch.is_old(1000.0 + 600)
    assert not switch.is_old(1000.0 + 1)


def test_a_stream_that_broke_is_old_news_although_somebody_still_answers() -> None:
    switch = armed()
    switch.deaf_since = 1000.0 - 80
    assert switch.is_old(1000.0)
    assert switch.light(1000.0) == ("unknown", "No changes heard for 1 min 20 s")
    assert "changes" in old_words(switch, 1000.0)
    switch.deaf_since = None
    assert switch.light(1000.0)[0] == "armed" and old_words(switch, 1000.0) == ""
