"""Offscreen windows on a stand-in supervisor and guard."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

os.environ["QT_QPA_PLATFORM"] = "offscreen"
os.environ["QT_SCALE_FACTOR"] = "1"
if os.environ.get("LC_ALL") in ("C", "POSIX"):
    os.environ["LC_ALL"] = "C.UTF-8"  # what Qt does by itself, with a warning, and a warning is an error here

from PySide6.QtWidgets import QApplication  # noqa: E402 - after the platform is chosen
from pytestqt.qtbot import QtBot  # noqa: E402

from console.api.records import AccountsView, AccountView  # noqa: E402
from console.gui import app as console_app  # noqa: E402
from console.gui.models.operators import OPERATORS  # noqa: E402
from console.gui.notices import Notices  # noqa: E402
from console.gui.window.main import Window  # noqa: E402
from console.settings.places import Places, find_places  # noqa: E402
from tests.fakes.operator_server import FakeHouse  # noqa: E402

Opener = Callable[..., Window]


class Patient(QtBot):
    """Waits as long as a loaded machine takes."""

    def waitUntil(self, callback: Callable[[], bool | None], *, timeout: int = 60_000) -> None:  # noqa: N802 - pytest-qt's name
        super().waitUntil(callback, timeout=timeout)


@pytest.fixture
def qtbot(qapp: QApplication, request: pytest.FixtureRequest) -> QtBot:
    """pytest-qt's, with patience."""
    return Patient(request)


@pytest.fixture(autouse=True)
def patient_link(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in that is only slow, on a busy machine, is not pressed past as one that hangs, nor is what it said old.

    Root's name is known from the beginning: when it comes depends on the machine.
    """
    OPERATORS.learn(AccountsView(accounts=[AccountView(0, "root")]))
    monkeypatch.setattr("console.panic.guard_link.ANSWER_S", 60.0)
    monkeypatch.setattr("console.gui.models.switch.SILENT_S", 60.0)
    monkeypatch.setattr("console.gui.models.switch.BEHIND_S", 60.0)


@pytest.fixture(autouse=True)
def pages_when_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """A window makes approvals and budgets ahead, but not its dozen other pages: each test would pay for all of them.

    That they are made ahead is proven in test_window.py.
    """
    monkeypatch.setattr("console.gui.window.pages.REST_MS", 3_600_000)


@pytest.fixture
def places(tmp_path: Path) -> Places:
    return find_places(str(tmp_path / "s"), create=True)


@pytest.fixture
def make_house(places: Places) -> Iterator[Callable[..., FakeHouse]]:
    """Starts stand-ins; they end with the test."""
    houses: list[FakeHouse] = []

    def make(fleet: str = "mockup", **more: object) -> FakeHouse:
        house = FakeHouse(places, fleet, **more)  # type: ignore[arg-type]
        house.start()
        houses.append(house)
        return house

    yield make
    for house in houses:
        house.stop()


@pytest.fixture
def open_window(qtbot: QtBot, places: Places) -> Iterator[Opener]:
    """Opens windows that have read their fleet; closes them and their sockets."""
    console_app.make_application("dark")
    windows: list[Window] = []

    def make(page: str = "fleet", size: tuple[int, int] = (1440, 900), *, wait: bool = True) -> Window:
        window = Window(places, Notices())
        window.resize(*size)
        window.start(page)
        window.show()
        qtbot.addWidget(window)
        windows.append(window)
        if wait:
            qtbot.waitUntil(lambda: window.fleet.loaded and window.switch.view is not None and window.switch.guard.alive)
            qtbot.waitUntil(lambda: window.page is not None and window.page.is_ready())
        return window

    yield make
    for window in windows:
        window.close()
    running = QApplication.instance()
    assert isinstance(running, QApplication)
    running.processEvents()
