"""``python -m console.gui.screenshot PAGE FILE``: renders a page offscreen. It reads from the supervisor and changes nothing."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from time import monotonic

from PySide6.QtCore import QCoreApplication, QEventLoop, QTimer
from PySide6.QtWidgets import QApplication

from console.domain.errors import ConsoleError, UsageProblem
from console.gui import app
from console.gui.notices import Notices
from console.gui.pages.registry import PAGES
from console.gui.theme.style import Choice
from console.gui.window.main import Window
from console.panic.display import print_error, until_interrupted

WAIT_S = 6.0
SETTLE_S = 0.5
"""Answers that follow the first ones (a receipt, a detail)."""


def render(page: str, file: Path, theme: Choice, size: tuple[int, int], state_dir: str | None, argument: str = "") -> None:
    """Writes the picture; waits until the page has read what it shows, 6 s at most. Raises ConsoleError when it cannot be written."""
    app.make_application(theme)
    window = app.open_window(state_dir, page, Notices())
    window.resize(*size)
    window.show()
    if argument:
        window.goto(page, argument)
    _wait(window)
    picture = window.grab()
    window.close()
    if not picture.save(str(file), "PNG"):
        raise ConsoleError(f"{file} could not be written.", "Name a file in a folder that exists and can be written.")


def _wait(window: Window) -> None:
    until = monotonic() + WAIT_S
    calm_since: float | None = None
    while monotonic() < until:
        _spin(20)
        told = window.switch.view is not None and window.switch.status is not None  # who this is, and whether its light is on
        ready = not window.wires.link.exists or (window.page is not None and window.page.is_ready() and told)
        if not ready:
            calm_since = None
        elif calm_since is None:
            calm_since = monotonic()
        elif monotonic() - calm_since > SETTLE_S:
            return


def _spin(ms: int) -> None:
    loop = QEventLoop()
    QTimer.singleShot(ms, loop.quit)
    loop.exec()


def parse_size(text: str) -> tuple[int, int]:
    """``1440x900``; UsageProblem on anything else."""
    width, _, height = text.partition("x")
    if not (width.isdigit() and height.isdigit() and 400 <= int(width) <= 8000 and 300 <= int(height) <= 8000):
        raise UsageProblem(f"Size {text[:40]!r} is not WIDTHxHEIGHT.", "For example 1440x900.")
    return int(width), int(height)


def main(arguments: list[str] | None = None) -> int:
    """Renders one page; exit codes as documented."""
    parser = argparse.ArgumentParser(prog="watchfloor screenshot", description="Render a page to a PNG file.")
    parser.add_argument("page", choices=[kind.spec.name for kind in PAGES])
    parser.add_argument("file", type=Path)
    parser.add_argument("--theme", default="dark", choices=("dark", "light"))
    parser.add_argument("--size", default="1440x900")
    parser.add_argument("--state-dir", default=None)
    parser.add_argument("--argument", default="", help="what to select: an agent id, a kill id")
    given = parser.parse_args(arguments)
    os.environ["QT_QPA_PLATFORM"] = "offscreen"
    os.environ.setdefault("QT_SCALE_FACTOR", "1")
    try:
        render(given.page, given.file, given.theme, parse_size(given.size), given.state_dir, given.argument)
    except ConsoleError as error:
        return print_error(("watchfloor", "screenshot"), error)
    finally:
        running = QCoreApplication.instance()
        if isinstance(running, QApplication):
            running.processEvents()
    return 0


if __name__ == "__main__":
    sys.exit(until_interrupted(main))
