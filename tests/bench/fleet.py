"""The fleet at scale: what one update a second, in which a tenth of the agents changed, costs the window's thread.

``python -m tests.bench.fleet [--agents 10000 100000] [--rounds 15] [--live 10]`` prints one JSON object: CPU milliseconds of the
window's thread (``thread_time``, median), offscreen, beside QTreeWidget, QStandardItemModel and QSortFilterProxyModel in the same run.
"console" is the whole window: what the stream's thread read and wrote, every widget told, the page painted; "decoder_thread_ms" is
what that other thread spends on the same update. ``live`` also runs it against
a stand-in supervisor in a process of its own, over the real socket and event stream. Compare within one run only.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

os.environ["QT_QPA_PLATFORM"] = "offscreen"
os.environ["QT_SCALE_FACTOR"] = "1"

from PySide6.QtCore import QModelIndex, QSortFilterProxyModel, Qt  # noqa: E402 - after the platform is chosen
from PySide6.QtGui import QStandardItem, QStandardItemModel  # noqa: E402
from PySide6.QtWidgets import QApplication, QTreeView, QTreeWidget, QTreeWidgetItem  # noqa: E402

from console.api.agents.fleet_changes import CHUNK, read_changes  # noqa: E402
from console.api.messages import AgentView  # noqa: E402
from console.domain.agent import Agent, AgentId, AgentState, ContextId, SandboxKind  # noqa: E402
from console.domain.budget import Limits  # noqa: E402
from console.domain.engine.event import ClockTicked, UsageReported  # noqa: E402
from console.domain.ids import ControlLevel  # noqa: E402
from console.enforcement.engine import Engine  # noqa: E402
from console.enforcement.state import EngineState  # noqa: E402
from console.gui import app as console_app  # noqa: E402
from console.gui.models.facts import News  # noqa: E402
from console.gui.notices import Notices  # noqa: E402
from console.gui.pages.fleet.page import FleetPage  # noqa: E402
from console.gui.window.main import Window  # noqa: E402
from console.services.fleet.core import Core, now  # noqa: E402
from console.services.fleet.deltas import AgentDeltas  # noqa: E402
from console.settings.places import find_places  # noqa: E402
from tests.fakes.core_ports import NoServices  # noqa: E402
from tests.fakes.gui_fixture import many_agents  # noqa: E402
from tests.fakes.operator_server import FakeHouse  # noqa: E402

COLUMNS = ("name", "state", "depth", "network_mode", "budget_share", "cost_usd", "last_action")
WORDS = ("agent-00", "agent-01", "")
Costs = dict[str, float | str]


def changed_tenth(views: list[AgentView], round_: int) -> list[tuple[str, dict[str, Any]]]:
    """What a supervisor says of a tenth of the agents: spend, use, burn, last action; one in a hundred of them
    also changes its state, one in a hundred comes near its cap or leaves it."""
    out, again = [], round_ // 10 % 2
    for at, view in enumerate(views[round_ % 10 :: 10]):
        cost = round((view.cost_usd or 0.0) + round_ / 10, 4)
        fields: dict[str, Any] = {
            "cost_usd": cost,
            "usage": {"cost_usd": cost, "tokens": 1000.0 * round_, "tool_calls": float(round_)},
            "budget_share": min(0.74, cost / 100) if at % 20 or (at % 100 == 40 and again) else 0.8,
            "burn": [round(cost / 50 + (at * 31 + n * 17) % 97 / 100, 4) for n in range(24)],  # a curve of its own, as in life
            "burn_usd_per_h": cost / 3,
            "last_action": f"step {round_} of {view.name}",
        }
        if at % 100 == 0:
            fields["state"] = "running" if again else "waiting"
        out.append((view.id, fields))
    return out


def messages(views: list[AgentView], round_: int) -> list[str]:
    """The same as the data of deltas."""
    patches = changed_tenth(views, round_)
    return [json.dumps({"patch": patches[at : at + CHUNK], "burn_usd_per_h": 3.0}) for at in range(0, len(patches), CHUNK)]


def spent_ms(work: Callable[[int], object], rounds: int, *, warm: int = 1) -> float:
    """Median CPU ms of this thread."""
    for number in range(warm):
        work(number)
    spent = []
    for number in range(warm, warm + rounds):
        began = time.thread_time()
        work(number)
        spent.append((time.thread_time() - began) * 1000)
    return round(statistics.median(spent), 2)


class Console:
    """The whole window, fed with what the decoder gives."""

    def __init__(self, app: QApplication, views: list[AgentView]) -> None:
        self.app, self.views = app, views
        self.window = Window(None, Notices())
        self.window.resize(1440, 900)
        self.window.goto("fleet", "")
        self.window.fleet.replace([view.replaced() for view in views])
        self.window.show()
        self._told()
        page = self.window.page
        assert isinstance(page, FleetPage)
        self.page = page
        self.reader = ThreadPoolExecutor(1)
        self.reading: list[float] = []
        """CPU ms of the reader's thread by update."""

    def _told(self) -> None:
        self.window.sync._dirty = True
        self.window.sync._tick()
        self.app.processEvents()

    def tick(self, round_: int) -> Callable[[int], object]:
        """One update: written by a thread of its own as in life, right before the window hears of it."""
        texts = messages(self.views, round_)

        def work(_number: int) -> None:
            for news in self.reader.submit(self._read, round_, texts).result():
                self.window.sync._changes_came(news)
            self._told()

        return work

    def _read(self, round_: int, texts: list[str]) -> list[News | None]:
        began = time.thread_time()
        news = [self.window.fleet.facts.write(read_changes(round_, text)) for text in texts]
        self.reading.append((time.thread_time() - began) * 1000)
        return news

    def filter(self, number: int) -> None:
        self.page.table.bar.search.setText(WORDS[number % len(WORDS)])
        self.app.processEvents()

    def scroll(self, number: int) -> None:
        bar = self.page.view.verticalScrollBar()
        bar.setValue((number * 7777) % max(1, bar.maximum()))
        self.app.processEvents()

    def close(self) -> None:
        self.reader.shutdown()
        self.window.close()


class Items:
    """QTreeWidget, or QStandardItemModel with or without a proxy: cells of text, as the manuals do it."""

    def __init__(self, app: QApplication, views: list[AgentView], kind: str) -> None:
        self.app, self.views = app, views
        self.cells: dict[str, list[QStandardItem]] = {}
        self.items: dict[str, QTreeWidgetItem] = {}
        self.proxy: QSortFilterProxyModel | None = None
        self.view: QTreeView = self._tree_widget() if kind == "QTreeWidget" else self._model_view(proxied=kind != "QStandardItemModel")
        self.view.setUniformRowHeights(True)
        self.view.resize(1236, 700)
        self.view.show()
        self.view.expandAll()
        app.processEvents()

    def _tree_widget(self) -> QTreeWidget:
        tree = QTreeWidget()
        tree.setColumnCount(len(COLUMNS))
        roots = []
        for view in self.views:
            item = QTreeWidgetItem([str(getattr(view, name)) for name in COLUMNS])
            self.items[view.id] = item
            parent = self.items.get(view.parent_id or "")
            if parent is None:
                roots.append(item)
            else:
                parent.addChild(item)
        tree.addTopLevelItems(roots)
        return tree

    def _model_view(self, *, proxied: bool) -> QTreeView:
        model = QStandardItemModel(0, len(COLUMNS))
        for view in self.views:
            row = [QStandardItem(str(getattr(view, name))) for name in COLUMNS]
            self.cells[view.id] = row
            parent = self.cells.get(view.parent_id or "")
            (parent[0] if parent else model.invisibleRootItem()).appendRow(row)
        tree = QTreeView()
        self.model = model
        if proxied:
            self.proxy = QSortFilterProxyModel()
            self.proxy.setRecursiveFilteringEnabled(True)
            self.proxy.setFilterKeyColumn(0)
            self.proxy.setSourceModel(model)
            self.proxy.sort(COLUMNS.index("cost_usd"), Qt.SortOrder.DescendingOrder)
            tree.setModel(self.proxy)
        else:
            tree.setModel(model)
        return tree

    def tick(self, round_: int) -> Callable[[int], object]:
        """The same update."""
        patches = changed_tenth(self.views, round_)

        def work(_number: int) -> None:
            for agent_id, fields in patches:
                for column, name in enumerate(COLUMNS):
                    if name in fields:
                        if self.items:
                            self.items[agent_id].setText(column, str(fields[name]))
                        else:
                            self.cells[agent_id][column].setText(str(fields[name]))
            self.app.processEvents()

        return work

    def filter(self, number: int) -> None:
        word = WORDS[number % len(WORDS)]
        if self.proxy is not None:
            self.proxy.setFilterFixedString(word)
        else:
            self._hide(word)
        self.app.processEvents()

    def _hide(self, word: str) -> None:
        """What has no filter hides rows one by one, ancestors of a match stay."""
        kept: set[str] = set()
        known = {view.id: view for view in self.views}
        for view in self.views:
            at: AgentView | None = view if word in view.name else None
            while at is not None and at.id not in kept:
                kept.add(at.id)
                at = known.get(at.parent_id or "")
        for view in self.views:
            if self.items:
                self.items[view.id].setHidden(view.id not in kept)
            else:
                index = self.cells[view.id][0].index()
                self.view.setRowHidden(index.row(), index.parent() if view.parent_id else QModelIndex(), view.id not in kept)

    def scroll(self, number: int) -> None:
        bar = self.view.verticalScrollBar()
        bar.setValue((number * 7777) % max(1, bar.maximum()))
        self.app.processEvents()

    def close(self) -> None:
        self.view.close()
        self.view.deleteLater()
        self.app.processEvents()


def measure(app: QApplication, views: list[AgentView], kind: str, rounds: int) -> Costs:
    """One way to show them."""
    if kind == "QSortFilterProxyModel" and len(views) > 20_000:
        return {"tick_ms": "not run: one update of a sorted proxy takes minutes"}
    began = time.thread_time()
    made: Console | Items = Console(app, views) if kind == "console" else Items(app, views, kind)
    costs: Costs = {"populate_ms": round((time.thread_time() - began) * 1000, 1)}
    proxied = kind == "QSortFilterProxyModel"
    slow = kind != "console" and (len(views) > 20_000 or proxied)
    rounds = 2 if slow else rounds
    warm = 1 if slow else 10  # everybody was told of once: what follows is the steady state
    ticks = [made.tick(number) for number in range(rounds + warm)]
    costs["tick_ms"] = spent_ms(lambda number: ticks[number](number), rounds, warm=warm)
    costs["scroll_ms"] = spent_ms(made.scroll, rounds)
    if (proxied and len(views) > 2000) or (kind != "console" and len(views) > 20_000):
        costs["filter_ms"] = "not run: it walks again for every row it rejects, which takes minutes"
    else:
        costs["filter_ms"] = spent_ms(made.filter, 3 if kind != "console" else rounds)
    if isinstance(made, Console):
        costs["decoder_thread_ms"] = round(statistics.median(made.reading), 2)
    made.close()
    return costs


@contextmanager
def stand_in(state_dir: Path, number: int) -> Iterator[None]:
    """A supervisor with ``number`` agents, of which a tenth changes every second, in a process of its own."""
    child = subprocess.Popen(
        [sys.executable, "-m", "tests.bench.fleet", "--serve", str(state_dir), "--agents", str(number)], stdout=subprocess.PIPE
    )
    try:
        assert child.stdout is not None
        child.stdout.readline()
        yield
    finally:
        child.terminate()
        child.wait()


def serve(state_dir: str, number: int) -> None:
    """The other side of ``stand_in``; ends by SIGTERM."""
    places = find_places(state_dir, create=True)
    house = FakeHouse(places, str(number))
    house.start()
    views = many_agents(number)
    rounds = [[json.loads(text) for text in messages(views, at)] for at in (1, 2, 3, 11, 12, 13)]
    print("ready", flush=True)
    at = 0
    while True:
        time.sleep(1.0)
        for data in rounds[at % len(rounds)]:
            house.on_loop(lambda data=data: house.supervisor.tell("agents", data))  # type: ignore[misc]
        at += 1


def live(app: QApplication, number: int, seconds: float) -> Costs:
    """The window's thread over ``seconds`` of the real stream, everything in it: socket, timers, status, painting."""
    with tempfile.TemporaryDirectory() as folder, stand_in(Path(folder), number):
        window = Window(find_places(folder, create=False), Notices())
        window.start("fleet")
        window.show()
        seen = [0]
        window.sync.changed.connect(lambda: None)
        window.wires.events.changes.connect(lambda _changes: seen.__setitem__(0, seen[0] + 1))
        _spin(app, lambda: window.fleet.loaded and seen[0] > 0, 120)
        _spin(app, lambda: False, 2.0)
        seen[0], began, cpu, worst = 0, time.monotonic(), time.thread_time(), 0.0
        while time.monotonic() - began < seconds:
            before = time.thread_time()
            app.processEvents()
            worst = max(worst, time.thread_time() - before)
            time.sleep(0.002)
        wall, cpu = time.monotonic() - began, time.thread_time() - cpu
        updates = seen[0] / max(1, -(-number // 10 // CHUNK))
        window.close()
        return {
            "updates": round(updates, 1),
            "window_thread_ms_per_s": round(cpu / wall * 1000, 1),
            "longest_slice_ms": round(worst * 1000, 1),
        }


def _spin(app: QApplication, until: Callable[[], bool], seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end and not until():
        app.processEvents()
        time.sleep(0.005)


async def supervise(number: int, seconds: float) -> Costs:
    """The share of a core of engine, clock, deltas and stream for ``number`` stand-ins, a tenth of which report spend each second.

    No sockets of agents, no ledger and no guard are in it: it is the part that grows with the fleet on the supervisor's own loop.
    """
    core = Core(Engine(EngineState()), NoServices())
    state = core.state
    for at in range(number):
        agent_id = AgentId(f"a-{at}")
        state.agents[agent_id] = Agent(
            agent_id, f"agent-{at}", None, agent_id, 1, ContextId(f"c-{at}"), ControlLevel.MANAGED, SandboxKind.NONE, time.time(),
            limits=Limits(cost_usd=1e6, wall_s=1e6), state=AgentState.RUNNING,
        )  # fmt: skip
        state.live.add(agent_id)
        state.held.add(agent_id)
    deltas = AgentDeltas(cast(Any, core))
    sent = [0]

    async def listen() -> None:
        async for delta in core.hub.listen(None):
            sent[0] += len(delta.line()) if delta is not None else 0

    listener = asyncio.create_task(listen())
    await asyncio.sleep(0.1)
    deltas.tell(time.time())
    sent[0], began, cpu, beat = 0, time.monotonic(), time.process_time(), 0
    while time.monotonic() - began < seconds:
        beat += 1
        for at in range(number // 10):
            agent_id = AgentId(f"a-{at * 10 + beat % 10}")
            core.post(UsageReported(*now(), agent_id, tokens=100, tool_calls=1, cost_usd=0.001, action=f"step {beat}"))
            core.meters.add(agent_id, time.time(), 0.001)
            core.dirty.add(agent_id)
        core.post(ClockTicked(*now()))
        core.dirty.update(sorted(state.live)[beat % 5 :: 5])
        for _ in range(10):
            if core.dirty:
                deltas.tell(time.time())
            await asyncio.sleep(0.1)
    share = (time.process_time() - cpu) / (time.monotonic() - began)
    listener.cancel()
    return {"share_of_a_core": round(share, 4), "stream_kb_per_s": round(sent[0] / seconds / 1000, 1)}


def main() -> None:
    """Prints the figures, and ratios to the console's."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--agents", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--live", type=float, default=10.0, help="seconds against a stand-in supervisor; 0: not")
    parser.add_argument("--only", default="", help="one kind alone")
    parser.add_argument("--serve", default="", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        serve(given.serve, given.agents[0])
        return
    app = console_app.make_application("dark")
    out: dict[str, Any] = {"load_before": os.getloadavg()[0]}
    for number in given.agents:
        views = many_agents(number)
        found = {k: measure(app, views, k, given.rounds) for k in KINDS if given.only in ("", k)}
        out[str(number)] = dict(found)
        if "console" in found:
            out[str(number)]["times_the_console"] = {
                kind: _ratios(costs, found["console"]) for kind, costs in found.items() if kind != "console"
            }
        if given.live:
            out[str(number)]["live"] = live(app, number, given.live)
    out["supervisor_1000"] = asyncio.run(supervise(1000, given.live or 5.0))
    out["load_after"] = os.getloadavg()[0]
    out["rss_mb"] = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    print(json.dumps(out, indent=2))


KINDS = ("console", "QTreeWidget", "QStandardItemModel", "QSortFilterProxyModel")


def _ratios(costs: Costs, ours: Costs) -> dict[str, float]:
    return {
        name: round(value / mine, 1)
        for name, value in costs.items()
        if isinstance(value, float) and isinstance(mine := ours[name], float) and mine
    }


if __name__ == "__main__":
    main()
