"""``python -m console.panic [--hidden] [--state-dir D --run-dir R]``: the panic window, in a process of its own."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from PySide6.QtCore import QCoreApplication, Qt
from PySide6.QtWidgets import QApplication

from console.domain.errors import ConsoleError
from console.panic import fonts
from console.panic.display import check_display, print_error, until_interrupted
from console.panic.resident import Resident, take_place
from console.panic.window import PanicWindow


def make_application() -> QApplication:
    """Qt with the fonts of this window; ConsoleError when there is no display or a font is missing."""
    check_display(dict(os.environ))
    app = QApplication(["watchfloor"])
    QCoreApplication.setApplicationName("Watchfloor")
    app.setDesktopFileName("watchfloor-panic")
    app.setQuitOnLastWindowClosed(False)  # what is hidden serves on
    app.setLayoutDirection(Qt.LayoutDirection.LeftToRight)
    app.setStyle("Fusion")
    fonts.load(fonts.FILES)
    return app


def run(state_dir: Path | None, run_dir: Path | None, *, hidden: bool) -> int:
    """Serves until nothing needs the window.

    A hidden process that is the second, or has no folder yet, ends at once; a second window of a person's is shown all the same.
    """
    place = None
    if run_dir is not None and run_dir.is_dir() and os.access(run_dir, os.W_OK):  # members of the host's instance may not write there
        place = take_place(run_dir)
    if place is None and hidden:
        return 0
    app = make_application()
    window = PanicWindow(state_dir, run_dir / "guard.sock" if run_dir else None)
    resident = Resident(window, run_dir) if run_dir is not None and place is not None else None
    if resident is not None:
        resident.start()
    else:
        window.closed.connect(app.quit)
    if hidden:
        window.warm_up()
    else:
        window.bring()
    try:
        return app.exec()
    finally:
        window.guard.stop()
        if resident is not None:
            resident.stop()


def main(arguments: list[str] | None = None) -> int:
    """Opens the window; 1 when there is no display."""
    parser = argparse.ArgumentParser(prog="watchfloor panic-button", description="The panic control in a window of its own.")
    parser.add_argument("--state-dir", type=Path, default=None)
    parser.add_argument("--run-dir", type=Path, default=None, help="the folder of the instance's sockets")
    parser.add_argument("--hidden", action="store_true", help="wait, hidden, until the window is raised")
    given = parser.parse_args(arguments)
    try:
        return run(given.state_dir, given.run_dir, hidden=given.hidden)
    except ConsoleError as error:
        return print_error(("watchfloor", "panic-button"), error)


if __name__ == "__main__":
    sys.exit(until_interrupted(main))
