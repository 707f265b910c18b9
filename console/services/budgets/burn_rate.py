"""How fast each node of a budget uses things up: minutes of the last hour, on a clock that cannot be set."""

from __future__ import annotations

import time
from array import array
from collections.abc import Iterable
from operator import add, attrgetter

from console.domain.budget import MINUTES, RESERVABLE, Usage

Node = tuple[str, str]
_AMOUNTS = attrgetter(*RESERVABLE)
NODES = 60_000
"""Nodes kept at once; the one that was used longest ago goes first."""


_WIDTH = 1 + len(RESERVABLE)
"""Numbers of one minute: which it is, and what was used in it, as RESERVABLE names it."""


class BurnBook:
    """Use by node and minute of CLOCK_BOOTTIME; on the event loop's thread, read from others."""

    __slots__ = ("since", "_nodes")

    def __init__(self, since: float | None = None) -> None:
        self.since = time.clock_gettime(time.CLOCK_BOOTTIME) if since is None else since
        """From when on it was looked (CLOCK_BOOTTIME): before, nothing is known."""
        self._nodes: dict[Node, array[float]] = {}
        """The minutes of each node one after another: an eighth of what lists of numbers take."""

    def add(self, nodes: Iterable[Node], spent: Usage, boot_s: float) -> None:
        """Counts one increment at every node that is charged."""
        minute = boot_s // 60
        amounts = _AMOUNTS(spent)
        if not any(amounts):
            return
        for node in nodes:
            series = self._nodes.pop(node, None) or array("d")
            self._nodes[node] = series  # last in the order: the least recently used are first
            if series and series[-_WIDTH] == minute:
                for place, amount in enumerate(amounts, len(series) - len(amounts)):
                    series[place] += amount
            else:
                series.extend((minute, *amounts))
                del series[: -MINUTES * _WIDTH]
        while len(self._nodes) > NODES:
            del self._nodes[next(iter(self._nodes))]

    def minutes(self, node: Node, name: str, boot_s: float) -> list[float]:
        """Use in each of the last 60 minutes, oldest first; empty: none in them."""
        series = self._nodes.get(node)
        if series is None or name not in RESERVABLE:
            return []
        now, place, kept = int(boot_s // 60), 1 + RESERVABLE.index(name), series[:]  # a copy: the loop goes on adding
        found = {int(n): used for n, used in zip(kept[::_WIDTH], kept[place::_WIDTH], strict=True) if now - MINUTES < n <= now}
        return [found.get(n, 0.0) for n in range(now - MINUTES + 1, now + 1)] if any(found.values()) else []

    def minutes_of(self, agents: Iterable[str], name: str, boot_s: float) -> list[float]:
        """Use of these agents together in each of the last 60 minutes, oldest first; empty: none in them."""
        total: list[float] = []
        for agent in agents:
            own = self.minutes(("agent", agent), name, boot_s)
            if own:
                total = list(map(add, total, own)) if total else own
        return total

    def known_min(self, born_boot: float | None, boot_s: float) -> float:
        """For how many minutes this node has been looked at; the running minute counts as far as it has come."""
        since = max(self.since, born_boot or 0.0)
        whole = (boot_s - since) / 60
        # The buckets are minutes of the clock: what is known ends with the part of the running one that has passed.
        return max(0.0, min(whole, MINUTES - 1 + (boot_s / 60) % 1.0))
