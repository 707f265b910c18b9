"""``python -m tests.fakes.panic_driver STATE_DIR``: the real panic window, offscreen, with a hand that lifts the guard and holds on.

What the control becomes is printed, one word a line.
"""

from __future__ import annotations

import sys

from PySide6.QtCore import QPoint, Qt, QTimer
from PySide6.QtTest import QTest

from console.panic.__main__ import make_application
from console.panic.machine import PanicState
from console.panic.window import PanicWindow
from console.settings.places import find_places

LEFT, BUTTON = Qt.MouseButton.LeftButton, QPoint(46, 33)
SILENT_MS = 1500
"""A guard that has not answered by then is taken for dead, as the window does."""


def main() -> int:
    running = make_application()
    places = find_places(sys.argv[1], create=False)
    window = PanicWindow(places.state_dir if places else None, places.guard_sock if places else None)
    window.control.changed.connect(lambda: print(window.machine.state.value, flush=True))
    window.port.finished.connect(lambda code, _words: print(f"exit {code}", flush=True))
    window.bring()
    begun: list[bool] = []

    def press() -> None:
        if begun:
            return
        begun.append(True)
        QTest.mouseClick(window.control, LEFT, pos=BUTTON)
        QTest.mousePress(window.control, LEFT, pos=BUTTON)
        if window.machine.state is not PanicState.HOLDING:
            print(f"not holding but {window.machine.state}", flush=True)
            running.exit(1)

    window.guard.alive.connect(lambda alive: press() if alive else None)
    QTimer.singleShot(SILENT_MS, press)
    print("open", flush=True)
    return int(running.exec())


if __name__ == "__main__":
    sys.exit(main())
