"""``python -m tests.fakes.blocked_window STATE_DIR HOLD_S``: the real panic window, whose thread sleeps when told to.

``block`` on stdin blocks it until the next line. What the control becomes is printed, one word a line, and what it says of a hold.
"""

from __future__ import annotations

import sys

from PySide6.QtCore import QSocketNotifier

from console.panic import machine
from console.panic.__main__ import make_application
from console.panic.window import PanicWindow
from console.settings.places import find_places


def main() -> int:
    running = make_application()
    places = find_places(sys.argv[1], create=True)
    setattr(machine, "HOLD_S", float(sys.argv[2]))  # noqa: B010 - the module does not offer it
    window = PanicWindow(places.state_dir, places.guard_sock)
    window.control.changed.connect(lambda: print(window.machine.state.value, window.machine.note, flush=True))
    window.guard.alive.connect(lambda alive: print("guard" if alive else "no guard", flush=True))
    window.move(300, 300)
    window.bring()

    def told() -> None:
        if not sys.stdin.readline():
            running.quit()
            return
        print("blocked", flush=True)
        sys.stdin.readline()
        print("free", flush=True)

    notifier = QSocketNotifier(sys.stdin.fileno(), QSocketNotifier.Type.Read)
    notifier.activated.connect(told)
    code = int(running.exec())
    window.guard.stop()
    return code


if __name__ == "__main__":
    sys.exit(main())
