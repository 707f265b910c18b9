"""``python -m tests.fakes.panic_driver STATE_DIR``: the real panic window, offscreen, with a hand that lifts the guard and holds on.

What the control becomes is printed, one word a line.
"""

from __future__ import annotations

import sys

from PySide6.QtCore import QPoint, Qt, QTimer
from PySide6.QtTest import QTest

from console.gui import app
from console.gui.panic_button import PanicWindow
from console.gui.widgets.panic import PanicState
from console.settings.places import find_places

LEFT, BUTTON = Qt.MouseButton.LeftButton, QPoint(46, 57)
SILENT_MS = 1500
"""A guard that has not answered by then is taken for dead, as the window does."""


def main() -> int:
    running = app.make_application("dark")
    window = PanicWindow(find_places(sys.argv[1], create=False))
    window.machine.changed.connect(lambda: print(window.machine.state.value, flush=True))
    window.port.finished.connect(lambda code, _words: print(f"exit {code}", flush=True))
    window.show()
    begun: list[bool] = []

    def press() -> None:
        if begun:
            return
        begun.append(True)
        QTest.mouseClick(window, LEFT, pos=BUTTON)
        QTest.mousePress(window, LEFT, pos=BUTTON)
        if window.machine.state is not PanicState.HOLDING:
            print(f"not holding but {window.machine.state}", flush=True)
            running.exit(1)

    window.guard.alive.connect(lambda alive: press() if alive else None)
    QTimer.singleShot(SILENT_MS, press)
    print("open", flush=True)
    return int(running.exec())


if __name__ == "__main__":
    sys.exit(main())
