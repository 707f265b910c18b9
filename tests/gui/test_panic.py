"""The panic control: freeze at the press, kill at the end of the hold, thaw when let go, and what happens without a guard."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from time import monotonic

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from console.domain.errors import ExitCode
from console.domain.guard import ANSWER_S
from console.gui import app as console_app
from console.gui.link.guard import GuardLink
from console.gui.link.panic import GuardPort
from console.gui.panic_button import Facts, PanicWindow, face
from console.gui.widgets.panic import PanicMachine, PanicState
from console.gui.window.main import Window
from console.settings.places import Places
from tests.fakes.guard_socket import FakeGuard
from tests.fakes.operator_server import FakeHouse

Make = Callable[..., FakeHouse]
LEFT = Qt.MouseButton.LeftButton


class Port:
    """Writes down what it is told; answers holds when asked to."""

    def __init__(self, answers: bool = True) -> None:
        self.told: list[str] = []
        self.answers = answers
        self.late: list[Callable[[str | None], None]] = []

    def hold(self, done: Callable[[str | None], None]) -> None:
        self.told.append("hold")
        if self.answers:
            done("h-1")
        else:
            self.late.append(done)

    def let_go(self, hold_id: str) -> None:
        self.told.append(f"let_go {hold_id}")

    def press(self) -> None:
        self.told.append("press")

    def make_sure(self) -> None:
        self.told.append("make sure")

    def without_guard(self) -> None:
        self.told.append("without guard")


@pytest.fixture
def machine(qtbot: QtBot) -> PanicMachine:
    made = PanicMachine(Port())
    made.set_guard(True)
    return made


def told(machine: PanicMachine) -> list[str]:
    port = machine._port
    assert isinstance(port, Port)
    return port.told


def test_a_press_on_the_closed_guard_does_nothing(machine: PanicMachine) -> None:
    machine.press_down()
    machine.press_up()
    assert told(machine) == [] and machine.state is PanicState.READY


def test_the_guard_closes_by_itself(machine: PanicMachine, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("console.gui.widgets.panic.ARMED_S", 0.1)
    machine.arm()
    assert machine.state is PanicState.ARMED
    qtbot.waitUntil(lambda: machine.state is PanicState.READY)
    assert told(machine) == []


def test_freeze_goes_out_at_the_press(machine: PanicMachine) -> None:
    machine.arm()
    machine.press_down()
    assert told(machine) == ["hold"] and machine.state is PanicState.HOLDING


def test_letting_go_early_thaws(machine: PanicMachine, qtbot: QtBot) -> None:
    machine.arm()
    machine.press_down()
    machine.press_up()  # at once, and no event is looked at in between: a process kept waiting for 0.8 s has not held
    assert told(machine) == ["hold", "let_go h-1"]
    assert machine.state is PanicState.AGAIN and machine.note.startswith("Let go at 0.")
    qtbot.wait(1000)
    assert told(machine) == ["hold", "let_go h-1"], "no kill may follow"


def test_the_hold_kills_and_the_guard_does_it(machine: PanicMachine, qtbot: QtBot) -> None:
    machine.arm()
    machine.press_down()
    qtbot.waitUntil(lambda: machine.state is PanicState.KILLING)
    machine.press_up()
    assert told(machine) == ["hold"], "the guard kills by itself, a release is too late"
    machine.set_kill(True, True)
    machine.set_kill(False, True)
    assert machine.state is PanicState.KILLED
    qtbot.wait(700)
    assert told(machine) == ["hold"]


def test_a_guard_that_says_nothing_after_the_hold_is_asked(machine: PanicMachine, qtbot: QtBot) -> None:
    machine.arm()
    machine.press_down()
    qtbot.waitUntil(lambda: "make sure" in told(machine))


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
    port.make_sure()
    qtbot.wait(300)
    assert ops(house) == ["press"], "a guard that killed is left alone"
    link.stop()


def test_a_second_press_kills_at_once(machine: PanicMachine, qtbot: QtBot) -> None:
    machine.arm()
    machine.press_down()
    machine.press_up()
    machine.press_down()
    assert told(machine) == ["hold", "let_go h-1", "press"] and machine.state is PanicState.KILLING


def test_the_second_press_must_come_in_time(machine: PanicMachine, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("console.gui.widgets.panic.AGAIN_S", 0.1)
    machine.arm()
    machine.press_down()
    machine.press_up()
    qtbot.waitUntil(lambda: machine.state is PanicState.READY)
    machine.press_down()
    assert "press" not in told(machine)


def test_a_silent_guard_is_replaced_at_the_end_of_the_hold(qtbot: QtBot) -> None:
    port = Port(answers=False)
    machine = PanicMachine(port)
    machine.set_guard(True)
    machine.arm()
    machine.press_down()
    port.late[0](None)
    assert not machine.guard_alive and port.told == ["hold"]
    qtbot.waitUntil(lambda: port.told == ["hold", "without guard"])


def test_a_late_hold_answer_after_letting_go_is_let_go(qtbot: QtBot) -> None:
    port = Port(answers=False)
    machine = PanicMachine(port)
    machine.arm()
    machine.press_down()
    machine.press_up()
    port.late[0]("h-9")
    assert port.told == ["hold", "let_go h-9"]


def test_a_kill_from_elsewhere_is_shown_and_rearm_makes_it_ready(machine: PanicMachine) -> None:
    machine.set_kill(False, True)
    assert machine.state is PanicState.KILLED
    machine.arm()
    machine.press_down()
    assert told(machine) == []
    machine.set_kill(False, False)
    assert machine.state is PanicState.READY  # type: ignore[comparison-overlap]


def ops(house: FakeHouse) -> list[str]:
    return [str(op["op"]) for op in house.guard.ops if op["op"] != "status"]


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
    for place in ("console.gui.widgets.panic", "tests.fakes.guard_socket"):
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


def test_without_any_guard_the_window_kills_by_the_command_line(places: Places, fake_python: Path, qtbot: QtBot) -> None:
    console_app.make_application("dark")
    window = PanicWindow(places)
    qtbot.addWidget(window)
    window.show()
    assert face(window.machine, window.facts, 0.0).strip == "No guard"
    QTest.mouseClick(window, LEFT, pos=QPoint(46, 57))
    QTest.mousePress(window, LEFT, pos=QPoint(46, 57))
    qtbot.waitUntil(lambda: window.machine.state is PanicState.KILLED)
    asked = fake_python.read_text().split("\n")
    assert asked[:3] == ["-m", "console", "panic"] and asked[-3:-1] == ["--state-dir", str(places.state_dir)]
    assert any("panic-button" in word for word in asked)
    shown = face(window.machine, window.facts, 0.0)
    assert (shown.head, shown.band_role) == ("STOPPED", "ok")
    window.close()


@pytest.mark.parametrize("code", [ExitCode.NOT_PROVEN, ExitCode.BEST_EFFORT])
def test_without_a_guard_doubt_is_amber(code: ExitCode, places: Places, fake_python: Path, qtbot: QtBot) -> None:
    (fake_python.parent / "code").write_text(str(int(code)))
    console_app.make_application("dark")
    window = PanicWindow(places)
    qtbot.addWidget(window)
    window.machine.arm()
    window.machine.press_down()
    qtbot.waitUntil(lambda: window.machine.state is PanicState.KILLED)
    shown = face(window.machine, window.facts, 0.0)
    assert (shown.head, shown.band_role, shown.strip_role) == ("STOPPED?", "warn", "warn")
    window.close()


def test_a_command_line_that_fails_is_not_called_a_kill(places: Places, fake_python: Path, qtbot: QtBot) -> None:
    (fake_python.parent / "code").write_text("1")
    console_app.make_application("dark")
    window = PanicWindow(places)
    qtbot.addWidget(window)
    window.machine.arm()
    window.machine.press_down()
    qtbot.waitUntil(lambda: window.facts.exit_code == 1)
    assert window.machine.state is PanicState.READY and "NOT killed" in face(window.machine, window.facts, 0.0).line
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
    link.start(60_000)
    qtbot.waitUntil(lambda: link.is_alive)
    monkeypatch.setattr("console.gui.link.guard.ANSWER_S", ANSWER_S)
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
    link.start(60_000)
    qtbot.waitUntil(lambda: link.is_alive)
    monkeypatch.setattr("console.gui.link.guard.ANSWER_S", ANSWER_S)
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
    monkeypatch.setattr("console.gui.link.guard.ANSWER_S", ANSWER_S)
    link._late.stop()  # the test judges, on a clock of its own
    now = monotonic()
    monkeypatch.setattr("console.gui.link.guard.monotonic", lambda: now)
    seen: list[object] = []
    link.alive.connect(seen.append)
    link.call(op, scope="all").failed(seen.append)
    now += ANSWER_S - 0.01
    link._judge_late()
    assert seen == []
    now += 0.02
    link._judge_late()
    assert len(seen) == 2 and seen[-1] is False
    link.stop()


@pytest.mark.parametrize("proven", [True, False])
def test_the_panic_window_follows_a_kill(proven: bool, make_house: Make, places: Places, qtbot: QtBot) -> None:
    make_house(guard=FakeGuard(kill_s=0.5, proven=proven))
    console_app.make_application("dark")
    window = PanicWindow(places)
    qtbot.addWidget(window)
    window.show()
    qtbot.waitUntil(lambda: window.machine.guard_alive)
    assert face(window.machine, window.facts, 0.0).band == "Own path answers"
    window.setFocus()
    QTest.keyClick(window, Qt.Key.Key_Space)
    QTest.keyPress(window, Qt.Key.Key_Space)
    qtbot.waitUntil(lambda: window.machine.state is PanicState.KILLED)
    QTest.keyRelease(window, Qt.Key.Key_Space)
    shown = face(window.machine, window.facts, 0.0)
    assert (shown.head, shown.band_role) == (("STOPPED", "ok") if proven else ("STOPPED?", "warn"))
    window.close()


def test_a_kill_that_nobody_proved_is_never_green(qtbot: QtBot) -> None:
    machine = PanicMachine(Port())
    machine.set_kill(False, True)
    facts = Facts(__import__("console.gui.models.switch", fromlist=["GuardState"]).GuardState())
    assert face(machine, facts, 0.0).band_role != "ok"
