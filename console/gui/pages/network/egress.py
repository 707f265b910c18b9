"""The egress log: newest on top, follows until it is scrolled, bounded however fast requests come."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable
from time import monotonic

from PySide6.QtCore import QPointF, Signal
from PySide6.QtWidgets import QWidget

from console.api.messages import EgressView
from console.gui.kit.layout import STRETCH, bar, column
from console.gui.kit.table import Cell, Shape, is_in, listing
from console.gui.pages.network.draft import Offer, offer
from console.gui.theme import fonts
from console.gui.timers import every
from console.gui.widgets.buttons import Button, Pills
from console.gui.widgets.reading import empty_note, say_empty
from console.gui.widgets.rows import ManyRowView
from console.gui.widgets.side_pane import Ground
from console.gui.widgets.text import Text
from console.gui.widgets.words import clock, count

KEPT = 2000
"""Lines kept; older ones are in the ledger."""
FLUSH_MS = 200
_RATE_S = 10.0
SLICES = 24
EMPTY = (
    "No requests yet. Every request of an agent with a proxied network appears here, with the entry that allowed it or why it was blocked."
)


class Line:
    """One request; ``offer`` is what can be done about it."""

    __slots__ = ("offer", "serial", "view")
    _serials = itertools.count(1)

    def __init__(self, view: EgressView) -> None:
        self.view = view
        self.serial = str(next(Line._serials))
        self.offer: Offer = offer(view)

    @property
    def is_error(self) -> bool:
        """Let through, but it did not arrive."""
        return self.view.allowed and (self.view.status >= 500 or self.view.status == 0)

    @property
    def bytes(self) -> int:
        """Up and down."""
        return self.view.bytes_up + self.view.bytes_down

    @property
    def identity(self) -> tuple[object, ...]:
        view = self.view
        return view.at, view.agent_id, view.method, view.host, view.path, view.status


KEEPS: dict[str, Callable[[Line], bool]] = {
    "all": lambda line: True,
    "blocked": lambda line: not line.view.allowed,
    "errors": lambda line: line.is_error,
}


class EgressBook:
    """The newest lines, newest first. Pure."""

    def __init__(self) -> None:
        self.lines: deque[Line] = deque(maxlen=KEPT)
        self._moments: deque[float] = deque(maxlen=100_000)

    def replace(self, views: list[EgressView]) -> None:
        """A whole page, newest first; what came live and is not in it stays on top."""
        read = [Line(view) for view in views[:KEPT]]
        known = {line.identity for line in read}
        newest = read[0].view.at if read else 0.0
        fresh = [line for line in self.lines if line.view.at >= newest and line.identity not in known]
        self.lines = deque([*fresh, *read][:KEPT], maxlen=KEPT)

    def add(self, view: EgressView, now: float) -> None:
        """One that just came; ``now`` is monotonic."""
        self.lines.appendleft(Line(view))
        self._moments.append(now)

    def rate(self, now: float) -> float:
        """Requests a second over the last 10 s."""
        while self._moments and self._moments[0] < now - _RATE_S:
            self._moments.popleft()
        return len(self._moments) / _RATE_S

    def number(self, keep: str) -> int:
        return sum(1 for line in self.lines if KEEPS[keep](line))

    def blocked_slices(self) -> list[float]:
        """Blocked lines in equal slices between the oldest and the newest line, oldest first."""
        times = [line.view.at for line in self.lines]
        if len(times) < 2 or max(times) <= min(times):
            return []
        first, last = min(times), max(times)
        out = [0.0] * SLICES
        for line in self.lines:
            if not line.view.allowed:
                out[min(SLICES - 1, int((line.view.at - first) / (last - first) * SLICES))] += 1
        return out


def moment(at: float) -> str:
    """``14:02:11.2``."""
    return f"{clock(at)}.{int(at * 10) % 10}"


def verdict(line: Line) -> Shape:
    """(word, shape, colour)."""
    if not line.view.allowed:
        return "Blocked", "ban", "danger"
    return ("Failed", "triangle", "warn") if line.is_error else ("Allowed", "check", "text2")


def short_rule(rule: str) -> str:
    """The rule without the request it repeats; the whole stands in the tooltip."""
    if rule.startswith("no entry for "):
        return "no entry"
    _, outside, entry = rule.partition(" is outside entry ")
    return f"outside entry {entry}" if outside else rule


def _bytes(number: int) -> str:
    if number < 1000:
        return str(number)
    return f"{number / 1000:.1f} k" if number < 1_000_000 else count(number)


def _agent_words(line: Line) -> str:
    view = line.view
    return f"{view.agent_name} ({view.agent_id})" if view.agent_name else view.agent_id


_ACTS = {"allow": "Allow this…", "never": "Never"}
COLUMNS: tuple[Cell[Line], ...] = (
    Cell("time", "Time", 96, words=lambda line: moment(line.view.at), role="text3", mono=True, sort=lambda line: line.view.at),
    Cell(
        "agent",
        "Agent",
        136,
        hide_below=460,
        words=_agent_words,
        text=lambda line: line.view.agent_name or line.view.agent_id or "unknown",
        weight=fonts.MEDIUM,
        sort="words",
    ),
    Cell(
        "method",
        "Method",
        74,
        hide_below=620,
        words=lambda line: line.view.method,
        text=lambda line: line.view.method or "—",
        role="text2",
        mono=True,
        sort="words",
    ),
    Cell(
        "to",
        "Destination",
        share=6,
        words=lambda line: f"{line.view.method} {line.view.host}{line.view.path}",
        text=lambda line: f"{line.view.host}{'' if line.view.method == 'CONNECT' else line.view.path}",
        mono=True,
        sort=lambda line: f"{line.view.host}{line.view.path}",
    ),
    Cell(
        "bytes",
        "Bytes",
        66,
        right=True,
        hide_below=560,
        words=lambda line: f"{line.view.bytes_up:,} up, {line.view.bytes_down:,} down",
        text=lambda line: _bytes(line.bytes),
        role=lambda line: "text2" if line.bytes else "text3",
        sort=lambda line: line.bytes,
    ),
    Cell(
        "verdict",
        "Verdict",
        92,
        words=lambda line: f"{verdict(line)[0]}, HTTP {line.view.status}",
        shape=verdict,
        sort=lambda line: verdict(line)[0],
    ),
    Cell(
        "rule",
        "Rule",
        share=4,
        hide_below=680,
        words=lambda line: line.view.rule,
        text=lambda line: short_rule(line.view.rule),
        role="text2",
        sort="words",
    ),
    Cell(
        "act",
        "",
        92,
        right=True,
        words=lambda line: {"allow": "Allow this…", "never": f"Never. {line.offer.why}"}.get(line.offer.kind, line.offer.why),
        text=lambda line: _ACTS.get(line.offer.kind, ""),
        role=lambda line: "accent" if line.offer.kind == "allow" else "text3",
        weight=lambda line: fonts.MEDIUM if line.offer.kind == "allow" else fonts.REGULAR,
    ),
)


class EgressLog(Ground):
    """Bar and table. ``allow_asked`` carries the blocked request an entry is wanted for."""

    edges = ("top",)

    allow_asked = Signal(object)
    changed = Signal()
    """Counts changed (at most five times a second)."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.book = EgressBook()
        self._waiting = 0
        self._dirty = self._old = False
        self._problem = ""
        self.is_read = False
        """The log was read, or heard of: none is no claim before."""
        self.state = Text("", 12, fonts.REGULAR, "text2")
        self.newer = Button("0 new", "arrow", small=True, parent=self)
        self.newer.clicked.connect(self.follow)
        self.newer.hide()
        self.pills = Pills({"all": "All", "blocked": "Blocked", "errors": "Errors"}, self, kept="decided")
        self.pills.changed.connect(lambda _key: self._show())
        self.view = listing("Egress log", COLUMNS, lambda line: str(line.serial), self, ManyRowView)
        self.model = self.view.row_model
        self.empty = empty_note(self.view, EMPTY)
        self.view.pressed_at.connect(self._pressed)
        self.view.verticalScrollBar().valueChanged.connect(lambda _value: self._scrolled())
        title = Text("Egress, live", 13, fonts.SEMIBOLD)
        column(bar(self, title, self.state, self.newer, STRETCH, self.pills, spacing=12), (self.view, 1), on=self)
        self._flush = every(self, FLUSH_MS, self.flush)

    @property
    def is_following(self) -> bool:
        """The newest line is in sight, and the pointer is over no line."""
        return self.view.verticalScrollBar().value() == 0 and not self.view.viewport().underMouse()

    def set_live(self, live: bool) -> None:
        """Repaints itself while its page is in front."""
        if live:
            self._show()
            self._flush.start()
        else:
            self._flush.stop()

    def replace(self, views: list[EgressView]) -> None:
        """What was read from the ledger, newest first."""
        self.book.replace(views)
        self.is_read = True
        self._show()

    def fail(self, problem: str) -> None:
        """It could not be read."""
        self._problem = problem
        if not self.is_read:
            self._show()

    def add(self, view: EgressView) -> None:
        """One request that just passed or was blocked."""
        self.book.add(view, monotonic())
        self.is_read = True
        self._waiting += 1
        self._dirty = True

    def flush(self) -> None:
        """Shows what came since, if it follows."""
        if self._dirty and self.is_following:
            self._show()
        self._say()

    def set_old(self, old: bool) -> None:
        """The stream of requests has stopped."""
        if old != self._old:
            self._old = old
            self._say()

    def follow(self) -> None:
        """Back to the newest line."""
        self.view.verticalScrollBar().setValue(0)
        self._show()

    def _scrolled(self) -> None:
        if self._waiting and self.is_following:
            self._show()

    def _show(self) -> None:
        self._dirty, self._waiting = False, 0
        keep = KEEPS[self.pills.chosen()]
        rows = [line for line in self.book.lines if keep(line)]
        self.view.show_rows(rows)
        nothing = "Nothing of this kind among the requests that were read."
        say_empty(self.empty, self.view, nothing if self.book.lines else EMPTY, self.is_read, self._problem)
        if self.is_read:
            self.pills.pills["blocked"].setText(f"Blocked {self.book.number('blocked'):,}")
            self.pills.pills["errors"].setText(f"Errors {self.book.number('errors'):,}")
        self._say()
        self.changed.emit()

    def _say(self) -> None:
        rate = self.book.rate(monotonic())
        following = self.is_following
        why = "following" if following else "stopped while you read" if self.view.verticalScrollBar().value() else "waits for the pointer"
        if self._old:
            self.state.say("not live: what passes now is not known", "warn", "triangle")
        else:
            self.state.say(f"{rate:.1f} requests/s · {why}", "text2", "dot" if following else "pause")
        self.newer.setText(f"{self._waiting:,} new")
        self.newer.setVisible(self._waiting > 0 and not following)

    def _pressed(self, line: Line, at: QPointF) -> None:
        if line.offer.kind == "allow" and is_in(self.view, "act", at):
            self.allow_asked.emit(line.view)
