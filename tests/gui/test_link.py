"""The link to the supervisor: requests to nobody do not deafen it, what a person does goes first, what waited too long is not sent."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from types import SimpleNamespace

import pytest
from PySide6.QtCore import QEventLoop
from pytestqt.qtbot import QtBot

from console.api import endpoints as ep
from console.api.messages import StatusView
from console.domain.errors import ConsoleError, TimedOut, Unreachable
from console.gui.link import http
from console.gui.link.http import AT_ONCE, Link
from console.gui.window.main import Window
from console.settings.places import Places
from tests.fakes.operator_server import FakeHouse

BURST = 4 * AT_ONCE
"""More than Qt opens connections for."""


def test_after_a_burst_of_requests_to_nobody_the_next_supervisor_is_heard(
    places: Places, make_house: Callable[..., FakeHouse], qtbot: QtBot
) -> None:
    link, failed, came = Link(places.operator_sock), list[ConsoleError](), list[StatusView]()
    for _ in range(BURST):
        link.ask(ep.STATUS).failed(failed.append)
    assert link.in_flight == BURST
    qtbot.waitUntil(lambda: len(failed) == BURST)
    assert all(isinstance(error, Unreachable) for error in failed) and link.in_flight == 0
    make_house("1")
    for _ in range(BURST):
        link.ask(ep.STATUS).then(came.append)
    qtbot.waitUntil(lambda: len(came) == BURST)
    link.close()


def test_a_link_that_nobody_needs_is_gone_before_qt_deletes_its_answers(places: Places, qtbot: QtBot) -> None:
    assert qtbot
    link, loop = Link(places.operator_sock), QEventLoop()
    link.ask(ep.STATUS).failed(lambda _error: loop.quit())
    loop.exec()  # ends with the answer: nothing was deleted yet
    gone = weakref.ref(link)
    del link
    gc.collect()
    assert gone() is None, "an answer holds it, and deleting that answer would delete the answer again"


def test_a_window_finds_the_supervisor_again_however_long_it_was_gone(
    make_house: Callable[..., FakeHouse], open_window: Callable[..., Window], qtbot: QtBot
) -> None:
    house = make_house("1")
    window = open_window("fleet")
    house.stop()
    failed = list[ConsoleError]()
    for _ in range(BURST):  # what pages ask for in the meantime
        window.wires.link.ask(ep.FLEET).failed(failed.append)
    qtbot.waitUntil(lambda: len(failed) == BURST)
    gone_at = window.desk.clock()
    house.start()
    qtbot.waitUntil(lambda: (window.switch.heard_at or 0) > gone_at and window.switch.deaf_since is None)


def test_what_a_person_does_goes_before_what_is_read_and_what_waited_too_long_is_not_sent(
    places: Places, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot
) -> None:
    assert qtbot
    link, sent, refused = Link(places.operator_sock), list[str](), list[ConsoleError]()

    class Reply:
        """One that never ends."""

        finished = SimpleNamespace(connect=lambda _slot: None)

    def take(_request: object, verb: bytes, _data: bytes) -> Reply:
        sent.append(verb.decode())
        return Reply()

    monkeypatch.setattr(link, "manager", SimpleNamespace(sendCustomRequest=take))
    for _ in range(AT_ONCE + 2):
        link.ask(ep.STATUS).failed(refused.append)
    link.ask(ep.KILL_AGENT, "a").failed(refused.append)
    assert sent == ["GET"] * AT_ONCE
    link._open.pop()
    link._next()
    assert sent[-1] == "POST"
    monkeypatch.setattr(http, "monotonic", lambda: 1e12)
    link._expire()
    assert len(sent) == AT_ONCE + 1 and len(refused) == 2 and all(isinstance(error, TimedOut) for error in refused)
    assert "not sent" in refused[0].what and not link._expiry.isActive()
