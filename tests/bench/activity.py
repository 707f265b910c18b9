"""The activity feed beside Qt's own lists: 100,000 entries, appended to while they are shown. GUI thread's own time, one run.

    QT_QPA_PLATFORM=offscreen .venv/bin/python -m tests.bench.activity [--entries 100000] [--rounds 40]

``append`` is 20 new entries with the end in sight, with the frame that shows them; ``frame`` a jump to a random place and its painting.
Every contender shows the same two lines of text for each entry (QPlainTextEdit: two blocks). Compare within one run only.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from PySide6.QtGui import QTextCursor  # noqa: E402 - after the platform is chosen
from PySide6.QtWidgets import QAbstractScrollArea, QApplication, QListWidget, QPlainTextEdit  # noqa: E402

from console.domain.activity import Kept  # noqa: E402
from console.gui import app  # noqa: E402
from console.gui.pages.activity.book import TRIM_TO, Book, Item  # noqa: E402
from console.gui.pages.activity.feed import FeedModel  # noqa: E402
from console.gui.pages.activity.rows import COLUMNS, HEIGHT, lines_of, painter_of, words_of  # noqa: E402
from console.gui.widgets.rows import RowView  # noqa: E402
from console.ledger.activity import ActivityStore  # noqa: E402
from console.ledger.activity_file import Bounds  # noqa: E402
from console.services.activity.routes import row_of  # noqa: E402
from tests.fakes.activity_routes import feed  # noqa: E402

SIZE = (1200, 800)
STEP = 20


@dataclass(frozen=True, slots=True)
class Contender:
    """One way of showing a feed."""

    name: str
    view: QAbstractScrollArea
    fill: Callable[[list[Item]], object]
    append: Callable[[list[Item]], object]


def items_of(first: int, many: int) -> list[Item]:
    """Entries of the stand-in's feed, folded as the page folds them."""
    rows = [row_of(Kept(first + n, entry, len(entry.text))) for n, entry in enumerate(feed(many, time.time()))]
    return Book().newer(rows)


def ours() -> Contender:
    model = FeedModel(COLUMNS, words_of)
    view = RowView(model, painter_of(lambda _item: ""), lambda item: item.key, row_height=HEIGHT)
    model.setParent(view)
    return Contender("watchfloor feed", view, model.append, model.append)


def words(item: Item) -> str:
    said = lines_of(item)
    return f"{said.title}  {said.main}\n{said.second}"


def list_widget() -> Contender:
    view = QListWidget()
    view.setUniformItemSizes(True)
    add = lambda items: view.addItems([words(i) for i in items])  # noqa: E731
    return Contender("QListWidget", view, add, add)


def plain_text() -> Contender:
    view = QPlainTextEdit()
    view.setReadOnly(True)
    view.setUndoRedoEnabled(False)

    def add(items: list[Item]) -> None:
        cursor = QTextCursor(view.document())
        cursor.movePosition(QTextCursor.MoveOperation.End)
        cursor.insertText("\n".join(words(i) for i in items) + "\n")

    return Contender("QPlainTextEdit", view, add, add)


def cost(work: Callable[[], object]) -> float:
    """Milliseconds of this thread."""
    began = time.thread_time()
    work()
    return (time.thread_time() - began) * 1000


def frame(view: QAbstractScrollArea) -> None:
    """Everything that is due, laid out and painted once."""
    view.viewport().update()
    QApplication.processEvents()


def measure(it: Contender, items: list[Item], rounds: int) -> tuple[float, float, float, float]:
    """(fill, median append, worst append, median jump frame), in ms."""
    chance = random.Random(7)
    it.view.resize(*SIZE)
    it.view.show()

    def first() -> None:
        it.fill(items)
        frame(it.view)

    fill = cost(first)
    bar = it.view.verticalScrollBar()

    waiting = [items_of(10_000_000 + n * STEP, STEP) for n in range(rounds)]

    def append(n: int) -> None:
        it.append(waiting[n])
        bar.setValue(bar.maximum())
        frame(it.view)

    def jump() -> None:
        bar.setValue(chance.randrange(bar.maximum()))
        frame(it.view)

    append(0)
    appends = [cost(lambda n=n: append(n)) for n in range(1, rounds)]  # type: ignore[misc]
    frames = [cost(jump) for _ in range(rounds)]
    it.view.hide()
    return fill, statistics.median(appends), max(appends), statistics.median(frames)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entries", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=40)
    given = parser.parse_args()
    app.make_application("dark")
    items = items_of(1, given.entries)
    print(f"{given.entries:,} entries in {len(items):,} rows, load {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores")
    found = {it.name: measure(it, items, given.rounds) for it in (ours(), list_widget(), plain_text())}
    base = found["watchfloor feed"]
    found["watchfloor feed, following"] = measure(ours(), items[-TRIM_TO:], given.rounds)  # what the page keeps in hand meanwhile
    print("| view | fill ms | append ms | worst | frame ms | append x | frame x |\n|---|--:|--:|--:|--:|--:|--:|")
    for name, (fill, added, worst, shown) in found.items():
        ratios = f"{added / base[1]:.1f} | {shown / base[3]:.1f}"
        print(f"| {name} | {fill:.0f} | {added:.2f} | {worst:.2f} | {shown:.2f} | {ratios} |")
    print(kept(given.entries))


def kept(entries: int) -> str:
    """What the supervisor needs for a page, and for a search through all of it."""
    with tempfile.TemporaryDirectory() as folder:
        store = ActivityStore(Path(folder) / "activity.db", Bounds(per_agent=2 * entries))
        writing = cost(lambda: store.add("a", feed(entries, time.time())))
        page = statistics.median(cost(lambda: store.window("a")) for _ in range(20))
        far = cost(lambda: store.window("a", query="no such words", time_s=60))
        foreign = cost(lambda: store.window("a", query="kein Treffer für", time_s=60))
        store.close()
    return f"store: kept in {writing:.0f} ms, newest page {page:.2f} ms, search through all {far:.0f} ms ({foreign:.0f} ms in any script)"


if __name__ == "__main__":
    main()
