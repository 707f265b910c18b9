"""The panic control: freeze at the press, kill at the end of the hold, thaw when let go, and what happens without a guard."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from time import monotonic

import pytest
from PySide6.QtCore import QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QMouseEvent
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from console.domain.errors import ExitCode
from console.domain.guard import ANSWER_S, HELD_GRACE_S, HOLD_S
from console.domain.process.account import operator
from console.gui import app as console_app
from console.gui.window.main import Window
from console.panic import event_time
from console.panic.control import PanicControl
from console.panic.guard_link import GuardLink
from console.panic.machine import PanicMachine, PanicState
from console.panic.orders import GuardPort
from console.panic.window import PanicWindow
from console.settings.places import Places
from tests.fakes.guard_socket import FakeGuard
from tests.fakes.operator_server import FakeHouse

Make = Callable[..., FakeHouse]
LEFT = Qt.MouseButton.LeftButton
OpenPanic = Callable[[], PanicWindow]


@pytest.fixture
def open_panic(places: Places, qtbot: QtBot) -> Iterator[OpenPanic]:
    """Opens panic windows on the instance; their sockets are closed with the test."""
    console_app.make_application("dark")
    windows: list[PanicWindow] = []

    def make() -> PanicWindow:
        window = PanicWindow(places.state_dir, places.guard_sock)
        qtbot.addWidget(window)
        windows.append(window)
        window.bring()
        return window

    yield make
    for window in windows:
        window.guard.stop()


def ops(house: FakeHouse) -> list[str]:
    return [str(op["op"]) for op in house.guard.ops if op["op"] != "status"]


def test_a_guard_that_held_but_did_not_kill_is_pressed(make_house: Make, places: Places, qtbot: QtBot) -> None:
    house = make_house()
    console_app.make_application("dark")
    link = GuardLink(places.guard_sock)
    link.start(60_000)
    qtbot.waitUntil(lambda: link.is_alive)
    port = GuardPort(link, places.state_dir, "test", "test")
    port.make_sure()
    qtbot.waitUntil(lambda: ops(house) == ["press"])
    qtbot.waitUntil(lambda: house.guard.latched)
    assert [op["by"] for op in house.guard.ops if op["op"] == "press"] == [f"{operator()}, test"]
    port.make_sure()
    qtbot.wait(300)
    assert ops(house) == ["press"], "a guard that killed is left alone"
    link.stop()


def test_mouse_hold_on_the_plate_kills_everything(make_house: Make, open_window: Callable[..., Window], qtbot: QtBot) -> None:
    house = make_house()
    window = open_window("fleet")
    plate = window.plate
    QTest.mouseClick(plate, LEFT, pos=QPoint(38, 28))
    assert window.machine.state is PanicState.ARMED and ops(house) == []
    pressed = monotonic()
    QTest.mousePress(plate, LEFT, pos=QPoint(38, 28))
    qtbot.waitUntil(lambda: ops(house) == ["hold"])
    assert next(op["at"] for op in house.guard.ops if op["op"] == "hold") - pressed < 20.0, "the freeze waits for nothing"
    qtbot.waitUntil(lambda: house.guard.latched)
    # A release before the window has heard of the kill is a let go, which the guard refuses; here it has heard.
    qtbot.waitUntil(lambda: window.machine.state in (PanicState.KILLING, PanicState.KILLED))
    QTest.mouseRelease(plate, LEFT, pos=QPoint(38, 28))
    qtbot.waitUntil(lambda: window.machine.state is PanicState.KILLED)
    qtbot.waitUntil(lambda: window.page is not None and window.page.spec.name == "receipt")
    assert ops(house) == ["hold"]


@pytest.fixture
def long_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hold that no machine is too busy to let go of in time."""
    for place in ("console.panic.machine", "tests.fakes.guard_socket"):
        monkeypatch.setattr(f"{place}.HOLD_S", 120.0)


def test_keyboard_hold_and_let_go(long_hold: None, make_house: Make, open_window: Callable[..., Window], qtbot: QtBot) -> None:
    house = make_house()
    window = open_window("fleet")
    window.activateWindow()
    QTest.keyClick(window, Qt.Key.Key_Backspace, Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier)
    qtbot.waitUntil(lambda: window.machine.state is PanicState.ARMED and window.plate.hasFocus())
    QTest.keyPress(window.plate, Qt.Key.Key_Space)
    qtbot.waitUntil(lambda: ops(house) == ["hold"])
    QTest.keyRelease(window.plate, Qt.Key.Key_Space)
    qtbot.waitUntil(lambda: ops(house) == ["hold", "let_go"])
    assert not house.guard.latched and house.guard.frozen == 0


def test_losing_the_focus_lets_go(long_hold: None, make_house: Make, open_window: Callable[..., Window], qtbot: QtBot) -> None:
    house = make_house()
    window = open_window("fleet")
    window.activateWindow()
    window.do("console.panic")
    QTest.keyPress(window.plate, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: ops(house) == ["hold"])
    window.pages["fleet"].setFocus()
    window.plate.clearFocus()
    qtbot.waitUntil(lambda: ops(house) == ["hold", "let_go"])


@pytest.fixture
def fake_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stands in for ``python -m console panic``: writes its arguments down and ends with the code in ``code``."""
    script = tmp_path / "python"
    log = tmp_path / "asked"
    (tmp_path / "code").write_text("0")
    script.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {log}\nexit "$(cat {tmp_path / "code"})"\n')
    script.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(script))
    return log


def test_without_any_guard_the_window_kills_by_the_command_line(
    places: Places, fake_python: Path, qtbot: QtBot, open_panic: OpenPanic
) -> None:
    window = open_panic()
    assert window.shown().strip == "Guard not answering"
    QTest.mouseClick(window.control, LEFT, pos=QPoint(46, 33))
    QTest.mousePress(window.control, LEFT, pos=QPoint(46, 33))
    qtbot.waitUntil(lambda: window.machine.state is PanicState.KILLED)
    asked = fake_python.read_text().split("\n")
    assert asked[:3] == ["-m", "console", "panic"] and asked[-3:-1] == ["--state-dir", str(places.state_dir)]
    assert any("panic-button" in word for word in asked)
    shown = window.shown()
    assert (shown.head, shown.band_role) == ("STOPPED", "ok")
    window.close()


@pytest.mark.parametrize("code", [ExitCode.NOT_PROVEN, ExitCode.BEST_EFFORT])
def test_without_a_guard_doubt_is_amber(code: ExitCode, fake_python: Path, qtbot: QtBot, open_panic: OpenPanic) -> None:
    (fake_python.parent / "code").write_text(str(int(code)))
    window = open_panic()
    window.machine.arm()
    window.machine.press_down()
    qtbot.waitUntil(lambda: window.machine.state is PanicState.KILLED)
    shown = window.shown()
    assert (shown.head, shown.band_role, shown.strip_role) == ("STOPPED?", "warn", "warn")
    window.close()


def test_a_command_line_that_fails_is_not_called_a_kill(fake_python: Path, qtbot: QtBot, open_panic: OpenPanic) -> None:
    (fake_python.parent / "code").write_text("1")
    window = open_panic()
    window.machine.arm()
    window.machine.press_down()
    qtbot.waitUntil(lambda: window.facts.exit_code == 1)
    assert window.machine.state is PanicState.READY and "NOT killed" in window.shown().line
    window.close()


def test_a_hung_guard_is_noticed_within_its_time(
    make_house: Make, places: Places, fake_python: Path, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    house = make_house()
    console_app.make_application("dark")
    link = GuardLink(places.guard_sock)
    port = GuardPort(link, places.state_dir, "test", "test")
    machine = PanicMachine(port)
    link.alive.connect(machine.set_guard)
    qtbot.addWidget(PanicControl(machine))  # its timer is the machine's
    link.start(60_000)
    qtbot.waitUntil(lambda: link.is_alive)
    monkeypatch.setattr("console.panic.guard_link.ANSWER_S", ANSWER_S)
    house.guard.mute = True
    machine.arm()
    machine.press_down()
    qtbot.waitUntil(fake_python.exists)
    qtbot.waitUntil(lambda: port._process is None)
    assert machine.state is PanicState.KILLING
    link.stop()


def test_a_guard_that_hangs_at_the_press_is_pressed_past(
    make_house: Make, places: Places, fake_python: Path, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    house = make_house()
    console_app.make_application("dark")
    link = GuardLink(places.guard_sock)
    port = GuardPort(link, places.state_dir, "test", "test")
    machine = PanicMachine(port)
    link.alive.connect(machine.set_guard)
    qtbot.addWidget(PanicControl(machine))  # its timer is the machine's
    link.start(60_000)
    qtbot.waitUntil(lambda: link.is_alive)
    monkeypatch.setattr("console.panic.guard_link.ANSWER_S", ANSWER_S)
    machine.arm()
    machine.press_down()
    machine.press_up()
    house.guard.mute = True
    machine.press_down()
    assert machine.state is PanicState.KILLING
    qtbot.waitUntil(fake_python.exists)  # the command line kills from the registry
    qtbot.waitUntil(lambda: port._process is None)
    assert "--state-dir" in fake_python.read_text()
    link.stop()


@pytest.mark.parametrize("op", ["press", "hold", "let_go", "status"])
def test_whoever_does_not_answer_within_300_ms_counts_as_dead(
    op: str, make_house: Make, places: Places, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    house = make_house()
    console_app.make_application("dark")
    link = GuardLink(places.guard_sock)
    link.start(60_000)
    qtbot.waitUntil(lambda: link.is_alive and not link._waiting)
    house.guard.mute = True
    monkeypatch.setattr("console.panic.guard_link.ANSWER_S", ANSWER_S)
    link._late.stop()  # the test judges, on a clock of its own
    now = monotonic()
    monkeypatch.setattr("console.panic.guard_link.monotonic", lambda: now)
    seen: list[object] = []
    link.alive.connect(seen.append)
    link.call(op, failed=seen.append, scope="all")
    now += ANSWER_S - 0.01
    link._judge_late()
    assert seen == []
    now += 0.02
    link._judge_late()
    assert len(seen) == 2 and seen[-1] is False
    link.stop()


@pytest.mark.parametrize("proven", [True, False])
def test_the_panic_window_follows_a_kill(proven: bool, make_house: Make, qtbot: QtBot, open_panic: OpenPanic) -> None:
    make_house(guard=FakeGuard(kill_s=0.5, proven=proven))
    window = open_panic()
    qtbot.waitUntil(lambda: window.machine.guard_alive)
    assert window.shown().band == "Ready to kill"
    QTest.keyClick(window.control, Qt.Key.Key_Space)
    QTest.keyPress(window.control, Qt.Key.Key_Space)
    qtbot.waitUntil(lambda: window.machine.state is PanicState.KILLED)
    QTest.keyRelease(window.control, Qt.Key.Key_Space)
    shown = window.shown()
    assert (shown.head, shown.band_role) == (("STOPPED", "ok") if proven else ("STOPPED?", "warn"))
    window.close()


def test_a_kill_without_proof_is_never_green(open_panic: OpenPanic) -> None:
    window = open_panic()
    window.machine.set_kill(False, True)
    assert window.shown().band_role != "ok"


@pytest.mark.parametrize(("age_s", "busy_s", "held_s"), [(30.0, 0.0, 0.0), (30.0, 4.0, 0.0), (3.0, 4.0, HOLD_S - HELD_GRACE_S)])
def test_a_press_counts_from_its_own_moment_only_while_the_thread_was_busy(
    qtbot: QtBot, monkeypatch: pytest.MonkeyPatch, age_s: float, busy_s: float, held_s: float
) -> None:
    """A display whose clock is half a minute behind ours makes no tap a hold."""
    now = monotonic()
    monkeypatch.setattr(event_time.Attention.__init__, "__defaults__", (None, lambda: now))
    held: list[float] = []
    machine = PanicMachine(NoOrders(held), lambda: now)
    control = PanicControl(machine)
    qtbot.addWidget(control)
    control.show()
    machine.arm()
    for _ in range(2):
        now += event_time.FAST_BEAT_S
        control._attention.timeout.emit()
    now += busy_s
    if busy_s:
        control._attention.timeout.emit()  # the timer is served before what waited
    at = QPointF(38, 28)
    down = QMouseEvent(QEvent.Type.MouseButtonPress, at, at, LEFT, LEFT, Qt.KeyboardModifier.NoModifier)
    down.setTimestamp(round(1000 * (now - age_s)))
    control.mousePressEvent(down)
    assert held == [pytest.approx(held_s, abs=0.01)]


class NoOrders:
    """A port that carries nothing out."""

    def __init__(self, held: list[float]) -> None:
        self.held = held

    def hold(self, held_s: float, done: Callable[[str | None], None]) -> None:
        self.held.append(held_s)

    def let_go(self, hold_id: str, done: Callable[[bool], object]) -> None: ...

    def press(self) -> None: ...

    def make_sure(self) -> None: ...

    def without_guard(self) -> None: ...
