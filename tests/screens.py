"""All pictures of the documents, in both themes: ``python -m tests.screens [FOLDER]``. They show a sample fleet, not a real one.

Without FOLDER they are written into docs/screens. It takes about a minute and needs no display.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, time

from PySide6.QtCore import QEventLoop, QTimer

from console.gui.theme.style import Choice

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "screens"
AGENT = "dependency-audit"
WAIT_S, SETTLE_MS = 60.0, 1000
THEMES: tuple[Choice, ...] = ("dark", "light")


@dataclass(frozen=True, slots=True)
class Picture:
    """``name``-THEME.png; ``tab`` is a pill of the page that is chosen first."""

    name: str
    page: str
    size: tuple[int, int] = (1440, 900)
    argument: str = ""
    tab: str = ""
    killed: bool = False


PICTURES = (
    Picture("fleet", "fleet", argument=AGENT),
    Picture("fleet-1024", "fleet", (1024, 700)),
    Picture("activity", "activity", argument=AGENT),
    Picture("approvals", "approvals"),
    Picture("policy", "policy"),
    Picture("policy-profiles", "policy", tab="profiles"),
    Picture("policy-sequences", "policy", tab="sequences"),
    Picture("network", "network"),
    Picture("network-sandboxes", "network", tab="sandboxes"),
    Picture("budgets", "budgets"),
    Picture("rollback", "rollback"),
    Picture("audit", "audit"),
    Picture("settings", "settings"),
    Picture("kill-switch", "kill-switch"),
    Picture("receipt", "receipt", killed=True),
    Picture("fleet-killed", "fleet", killed=True),
)
"""Those of a killed fleet come last: the stand-in stays killed."""


def main(folder: Path) -> int:
    """Writes every picture and returns 0; AssertionError when a page does not get ready."""
    os.environ.update(QT_QPA_PLATFORM="offscreen", QT_SCALE_FACTOR="1")
    from console.gui import app
    from console.gui.notices import Notices
    from console.gui.window.main import Window
    from console.settings.places import find_places
    from tests.fakes import activity_routes, approval_routes
    from tests.fakes.operator_server import FakeHouse

    with tempfile.TemporaryDirectory(prefix="watchfloor-screens-") as state:
        places = find_places(state, create=True)
        assert places is not None
        with FakeHouse(places, "mockup") as house:
            house.supervisor.names = {0: ("root", ""), 1000: ("ann", "Ann Adams")}
            asked = house.supervisor.approvals
            asked.waiting, asked.load = approval_routes.mockup(), (2.4, 0.38)
            asked.policy = asked.policy.replaced(exact=[approval_routes.exact_rule()])
            house.supervisor.activity.store.add(AGENT, activity_routes.feed(60, time()))
            app.make_application("dark")
            window = Window(places, Notices())
            window.start("fleet")
            window.show()
            until(lambda: window.fleet.loaded and window.switch.view is not None, "the fleet")
            for picture in PICTURES:
                if picture.killed and not house.guard.latched:
                    house.on_loop(house.guard.press_now)
                    until(lambda: window.switch.receipt is not None and window.switch.receipt.complete, "the receipt")
                    spin(SETTLE_MS)
                _show(window, picture)
                for theme in THEMES:
                    app.make_application(theme)
                    spin(200)
                    file = folder / f"{picture.name}-{theme}.png"
                    assert window.grab().save(str(file), "PNG"), f"{file} could not be written"
            window.close()
    return 0


def _show(window: object, picture: Picture) -> None:
    from console.gui.window.main import Window

    assert isinstance(window, Window)
    window.resize(*picture.size)
    window.goto(picture.page, window.switch.guard.kill_id if picture.page == "receipt" else picture.argument)
    page = window.page
    assert page is not None
    if picture.tab:
        page.tabs.bar.tabs.pills[picture.tab].click()  # type: ignore[attr-defined]
    until(page.is_ready, picture.name)
    if window.strip.notice is not None:
        window.strip.dismiss()
    spin(SETTLE_MS)


def until(is_so: Callable[[], object], what: str) -> None:
    """Lets the window work until it is so."""
    end = monotonic() + WAIT_S
    while not is_so():
        assert monotonic() < end, f"{what} did not get ready"
        spin(50)


def spin(ms: int) -> None:
    """Lets the window work for so long."""
    loop = QEventLoop()
    QTimer.singleShot(ms, loop.quit)
    loop.exec()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.screens", description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=FOLDER, help="an existing folder; without it docs/screens")
    sys.exit(main(parser.parse_args().folder))
