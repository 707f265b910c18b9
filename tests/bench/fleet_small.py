"""What the fleet page costs the GUI thread: CPU milliseconds (thread time, median) for 200 and 10,000 agents, offscreen.

``python -m tests.bench.fleet_small [--agents 200 10000] [--rounds 30]`` prints one JSON object. Run it on an otherwise idle machine.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import time
from collections.abc import Callable

os.environ["QT_QPA_PLATFORM"] = "offscreen"

from PySide6.QtWidgets import QApplication  # noqa: E402 - after the platform is chosen

from console.gui import app as console_app  # noqa: E402
from console.gui.models.fleet import Fleet  # noqa: E402
from console.gui.pages.fleet.rows import Mood  # noqa: E402
from console.gui.pages.fleet.table import FleetTable  # noqa: E402
from tests.fakes.gui_fixture import NOW, many_agents  # noqa: E402

FRAME_MS = 16.7


def median_ms(work: Callable[[], object], rounds: int) -> float:
    """Median CPU ms of this thread over ``rounds`` calls, after one that warms up."""
    work()
    spent = []
    for _ in range(rounds):
        began = time.thread_time()
        work()
        spent.append((time.thread_time() - began) * 1000)
    return round(statistics.median(spent), 2)


def measure(application: QApplication, number: int, rounds: int) -> dict[str, float]:
    """Costs for a fleet of ``number`` agents in a table of 1236 x 700."""
    views = many_agents(number, NOW)
    fleet = Fleet()
    fleet.replace(views)
    table = FleetTable(fleet, Mood)
    table.resize(1236, 700)
    table.show()
    table.refresh()
    application.processEvents()
    bar = table.view.verticalScrollBar()
    tenth = [view.replaced(cost_usd=(view.cost_usd or 0.0) + 1) for view in views[::10]]

    def tick() -> None:
        """One delta of a tenth of the agents, and the repaint it asks for."""
        for view in tenth:
            fleet.upsert(view)
        table.refresh()
        application.processEvents()

    def scroll() -> None:
        bar.setValue((bar.value() + 7777) % max(1, bar.maximum()))
        application.processEvents()

    def sort() -> None:
        fleet.sort = ("budget", not fleet.sort[1])
        table.arrange()
        application.processEvents()

    def search() -> None:
        fleet.text = "" if fleet.text else "agent-00"
        table.arrange()
        application.processEvents()

    costs = {
        "repaint_ms": median_ms(table.view.viewport().repaint, rounds),
        "tick_of_a_tenth_ms": median_ms(tick, rounds),
        "jump_scroll_ms": median_ms(scroll, rounds),
        "sort_ms": median_ms(sort, max(3, rounds // 5)),
        "filter_ms": median_ms(search, max(3, rounds // 5)),
    }
    table.close()
    table.deleteLater()
    application.processEvents()
    return costs


def main() -> None:
    """Prints the costs and this process's largest resident size in MB."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--agents", type=int, nargs="+", default=[200, 10_000])
    parser.add_argument("--rounds", type=int, default=30)
    given = parser.parse_args()
    application = console_app.make_application("dark")
    out: dict[str, object] = {str(number): measure(application, number, given.rounds) for number in given.agents}
    out["frame_ms"] = FRAME_MS
    out["rss_mb"] = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    print(json.dumps(out, indent=2))


if __name__ == "__main__":
    main()
