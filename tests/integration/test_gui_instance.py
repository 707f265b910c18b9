"""The window against a real supervisor, a real guard and real agents: what the plate promises happens to real processes."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from console.egress.children import readable

os.environ["QT_QPA_PLATFORM"] = "offscreen"
os.environ["QT_SCALE_FACTOR"] = "1"

from PySide6.QtCore import QPoint, Qt  # noqa: E402 - after the platform is chosen
from PySide6.QtTest import QTest  # noqa: E402
from PySide6.QtWidgets import QApplication  # noqa: E402
from pytestqt.qtbot import QtBot  # noqa: E402

from console.domain.errors import ConsoleError  # noqa: E402
from console.gui import app as console_app  # noqa: E402
from console.gui.notices import Notices  # noqa: E402
from console.gui.pages.kill_switch.rearm import RearmDialog  # noqa: E402
from console.gui.window.main import Window  # noqa: E402
from console.panic.machine import PanicState  # noqa: E402
from tests.fakes.in_time import code_in_time  # noqa: E402
from tests.fakes.instance import Instance, until  # noqa: E402

pytestmark = pytest.mark.usefixtures("forked")

LEFT, BUTTON = Qt.MouseButton.LeftButton, QPoint(38, 28)
LONG = 90_000


@pytest.fixture
def instance(tmp_path: Path) -> Iterator[Instance]:
    with Instance(tmp_path / "s") as running:
        yield running


@pytest.fixture
def window(instance: Instance, qtbot: QtBot) -> Iterator[Window]:
    console_app.make_application("dark")
    made = console_app.open_window(str(instance.state_dir), "fleet", Notices())
    qtbot.addWidget(made)
    made.show()
    qtbot.waitUntil(lambda: made.fleet.loaded and made.switch.guard.alive and made.switch.view is not None, timeout=LONG)
    yield made
    made.close()
    running = QApplication.instance()
    assert isinstance(running, QApplication)
    running.processEvents()


def ticks(pid: int) -> str:
    """Start time of a live process (proc(5), field 22), or empty: a reused pid is another process."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return ""
    return "" if fields[0] == "Z" else fields[19]


def three_agents(instance: Instance, window: Window, qtbot: QtBot) -> dict[int, str]:
    """Real ones, that ignore SIGTERM; pid -> start time."""
    code = "signal.signal(15, signal.SIG_IGN)\nwhile True: time.sleep(0.2)\n"
    ids = [instance.python("import signal\n" + code, name=f"agent {number}") for number in range(3)]
    qtbot.waitUntil(lambda: all(i in window.fleet.rows and window.fleet.rows[i].view.state == "running" for i in ids), timeout=LONG)
    pids = [instance.agent(i).pid for i in ids]
    alive = {pid: ticks(pid) for pid in pids if pid}
    assert len(alive) == 3 and all(alive.values())
    return alive


def end_supervisor(instance: Instance) -> None:
    """A kill without a supervisor starts one in killed state, to see the later steps through; the test ends it.

    The press waits 10 s for it, and then ends while it still starts.
    """

    def pid() -> int:
        with suppress(ConsoleError):
            return instance.api.status().pid
        return 0

    descriptor = os.pidfd_open(until(pid, words="the supervisor that the press started answers"))
    signal.pidfd_send_signal(descriptor, signal.SIGTERM)
    until(lambda: readable(descriptor, 0), words="the supervisor ends")
    os.close(descriptor)


def lift_and_press(window: Window) -> None:
    QTest.mouseClick(window.plate, LEFT, pos=BUTTON)
    QTest.mousePress(window.plate, LEFT, pos=BUTTON)


def test_a_hold_kills_with_proof_and_rearm_arms_again(instance: Instance, window: Window, qtbot: QtBot) -> None:
    alive = three_agents(instance, window, qtbot)
    lift_and_press(window)
    qtbot.waitUntil(lambda: window.machine.state is PanicState.KILLED, timeout=LONG)
    QTest.mouseRelease(window.plate, LEFT, pos=BUTTON)
    assert not [pid for pid, start in alive.items() if ticks(pid) == start], "the processes are gone, whatever the window says"
    qtbot.waitUntil(lambda: window.switch.receipt is not None and window.switch.receipt.complete, timeout=LONG)
    receipt = window.switch.receipt
    assert receipt is not None and code_in_time(receipt) == 0 and receipt.verified_zero and len(receipt.targets) == 3
    assert window.page is not None and window.page.spec.name == "receipt"
    qtbot.waitUntil(lambda: not window.fleet.live(), timeout=LONG)
    window.do("receipt.rearm")
    dialog = window.findChild(RearmDialog)
    assert isinstance(dialog, RearmDialog)
    dialog.reason.setText("the test goes on")
    dialog.typed.setText(receipt.kill_id)
    qtbot.waitUntil(dialog.main.isEnabled, timeout=LONG)
    dialog.main.click()
    qtbot.waitUntil(lambda: window.machine.state is PanicState.READY and not window.switch.is_killed, timeout=LONG)
    assert instance.python("while True: time.sleep(1)\n")


def test_letting_go_early_leaves_everything_running(instance: Instance, window: Window, qtbot: QtBot) -> None:
    alive = three_agents(instance, window, qtbot)
    lift_and_press(window)
    qtbot.wait(10)  # far from the 0.8 s of a hold: this process may be kept waiting
    QTest.mouseRelease(window.plate, LEFT, pos=BUTTON)
    qtbot.waitUntil(lambda: window.machine.state is PanicState.AGAIN, timeout=LONG)
    qtbot.wait(1500)
    assert {pid: ticks(pid) for pid in alive} == alive and not window.switch.is_killed


def test_a_hung_supervisor_does_not_stand_in_the_way(instance: Instance, window: Window, qtbot: QtBot) -> None:
    alive = three_agents(instance, window, qtbot)
    assert instance.process is not None
    instance.process.send_signal(signal.SIGSTOP)
    qtbot.waitUntil(lambda: window.switch.light(window.desk.clock())[0] == "unknown", timeout=LONG)
    lift_and_press(window)
    qtbot.waitUntil(lambda: window.machine.state is PanicState.KILLED, timeout=LONG)
    QTest.mouseRelease(window.plate, LEFT, pos=BUTTON)
    qtbot.waitUntil(lambda: not [pid for pid, start in alive.items() if ticks(pid) == start], timeout=LONG)
    instance.process.send_signal(signal.SIGCONT)


def test_with_supervisor_and_guard_dead_the_press_still_kills(instance: Instance, window: Window, qtbot: QtBot) -> None:
    alive = three_agents(instance, window, qtbot)
    guard = instance.living_guard()
    instance.stop(signal.SIGKILL)
    os.kill(guard, signal.SIGKILL)  # our own guard, named by its own answer
    qtbot.waitUntil(lambda: not window.switch.guard.alive, timeout=LONG)
    ended: list[int] = []
    window.port.finished.connect(lambda code, _words: ended.append(code))
    lift_and_press(window)
    qtbot.waitUntil(lambda: bool(ended), timeout=LONG)
    QTest.mouseRelease(window.plate, LEFT, pos=BUTTON)
    assert not [pid for pid, start in alive.items() if ticks(pid) == start]
    assert ended[0] in (0, 7, 8), ended
    end_supervisor(instance)


def test_a_hung_guard_is_pressed_past(instance: Instance, window: Window, qtbot: QtBot) -> None:
    alive = three_agents(instance, window, qtbot)
    guard = os.pidfd_open(instance.living_guard())
    ended: list[int] = []
    window.port.finished.connect(lambda code, _words: ended.append(code))
    lift_and_press(window)
    QTest.mouseRelease(window.plate, LEFT, pos=BUTTON)
    signal.pidfd_send_signal(guard, signal.SIGSTOP)
    try:
        assert window.machine.state is PanicState.AGAIN
        QTest.mousePress(window.plate, LEFT, pos=BUTTON)
        qtbot.waitUntil(lambda: not [pid for pid, start in alive.items() if ticks(pid) == start], timeout=LONG)
        qtbot.waitUntil(lambda: bool(ended), timeout=LONG)
    finally:
        signal.pidfd_send_signal(guard, signal.SIGCONT)
        os.close(guard)
    QTest.mouseRelease(window.plate, LEFT, pos=BUTTON)
    assert ended[0] in (0, 7, 8), ended
    qtbot.waitUntil(lambda: window.switch.is_killed, timeout=LONG)
