"""Burn and spend per agent over the last minutes: what the gauges show."""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable, Set
from dataclasses import dataclass, field

SLICE_S = 12.5
SLICES = 24
LEAST_S = 30.0
"""A rate is of no less time: one large answer at the start is no burn of an hour."""
MINUTES = 60


class Series:
    """Sums of the last ``count`` stretches of ``width_s`` seconds. All its room is taken at once: it does not grow with time."""

    __slots__ = ("_last", "_shown", "_sums", "_width_s")

    def __init__(self, width_s: float, count: int) -> None:
        self._width_s, self._last = width_s, -1
        """``_last``: the newest stretch, by its number since the epoch."""
        self._sums = array("d", bytes(8 * count))
        self._shown = [0.0] * count
        """The sums rounded, once: many lists that are kept for a while hold the same numbers."""

    def add(self, at: float, amount: float) -> None:
        """Counts an amount at a moment; after the clock was set back by more than the series holds it begins again."""
        number = int(at // self._width_s)
        if number <= self._last - len(self._sums):
            self._last = -1
        self._put(number, amount)

    def merge(self, other: Series, sign: int) -> None:
        """Adds what another one counted (``sign`` 1), or takes it out again (-1)."""
        for number in other._numbers():
            if (amount := other._sums[number % len(other._sums)]) and number > self._last - len(self._sums):
                self._put(number, sign * amount)

    def read(self, at: float) -> list[float]:
        """The sums up to this moment, oldest first; empty when all are zero."""
        now, known = int(at // self._width_s), self._numbers()
        count = len(self._shown)
        found = [self._shown[n % count] if n in known else 0.0 for n in range(now - count + 1, now + 1)]
        return found if any(found) else []

    def _numbers(self) -> range:
        return range(max(0, self._last - len(self._sums) + 1), self._last + 1)

    def _put(self, number: int, amount: float) -> None:
        count = len(self._sums)
        for passed in range(max(self._last + 1, number - count + 1), number + 1):
            self._sums[passed % count] = self._shown[passed % count] = 0.0
        self._last, place = max(self._last, number), number % count
        self._sums[place] = total = max(0.0, self._sums[place] + amount)
        self._shown[place] = round(total, 6)


@dataclass(slots=True)
class Meter:
    """Spend of one agent: slices of 12.5 s over 5 minutes, and minutes over the last hour (USD)."""

    slices: Series = field(default_factory=lambda: Series(SLICE_S, SLICES))
    minutes: Series = field(default_factory=lambda: Series(60.0, MINUTES))

    def add(self, at: float, cost_usd: float) -> None:
        """Adds one report."""
        self.slices.add(at, cost_usd)
        self.minutes.add(at, cost_usd)

    def merge(self, other: Meter, sign: int) -> None:
        """Adds what another one counted (``sign`` 1), or takes it out again (-1)."""
        self.slices.merge(other.slices, sign)
        self.minutes.merge(other.minutes, sign)

    def burn(self, at: float) -> list[float]:
        """USD in each of the last 24 slices, oldest first; empty when nothing was spent in them."""
        return self.slices.read(at)

    def per_minute(self, at: float) -> list[float]:
        """USD in each of the last 60 minutes, oldest first."""
        return self.minutes.read(at)

    def rate(self, at: float) -> float:
        """USD per hour over the last 5 minutes."""
        return rate_of(self.burn(at))


def rate_of(burn: list[float]) -> float:
    """USD per hour of what ``Meter.burn`` gives."""
    return sum(burn) * 3600 / (SLICE_S * SLICES)


@dataclass(slots=True)
class Meters:
    """All meters, and the spend of the day."""

    by_agent: dict[str, Meter] = field(default_factory=dict)
    day: str = ""
    today_usd: float = 0.0
    beside: Callable[[], float] = lambda: 0.0
    """USD that agents we only see spent since local midnight, by their own transcripts."""
    everything: Meter = field(default_factory=Meter)
    """Those of ``counted`` as one: asked for several times a second, however many agents there are."""
    counted: set[str] = field(default_factory=set)
    began: float = 0.0
    """When the first spend was counted; 0: none was."""
    hour: int = 0
    """When meters that hold nothing any more were forgotten last."""

    def add_seen(self, agent_id: str, at: float, cost_usd: float) -> None:
        """What an agent that we only see spent since the last look; ``beside`` holds it already."""
        self._add(agent_id, at, cost_usd)

    def add(self, agent_id: str, at: float, cost_usd: float) -> None:
        """Counts one report."""
        self._turn(at)
        self.today_usd += cost_usd
        self._add(agent_id, at, cost_usd)

    def _add(self, agent_id: str, at: float, cost_usd: float) -> None:
        self._forget(at)
        self.began = min(self.began, at) if self.began else at
        own = self.by_agent.get(agent_id) or self.by_agent.setdefault(agent_id, Meter())
        if agent_id not in self.counted:
            self.counted.add(agent_id)
            self.everything.merge(own, 1)
        own.add(at, cost_usd)
        self.everything.add(at, cost_usd)

    def _forget(self, at: float) -> None:
        """Once an hour: of an agent that has spent nothing for an hour nothing is kept."""
        if (hour := int(at // 3600)) != self.hour:
            self.hour = hour
            for agent_id in [i for i, meter in self.by_agent.items() if not meter.per_minute(at)]:
                del self.by_agent[agent_id]
                self.counted.discard(agent_id)

    def restore(self, at: float, today_usd: float) -> None:
        """What the ledger kept of this day."""
        self._turn(at)
        self.today_usd = today_usd

    def spent_today(self, at: float) -> float:
        """USD since local midnight."""
        self._turn(at)
        return self.today_usd + self.beside()

    def rate(self, at: float, spending: Set[str]) -> float:
        """USD per hour over the last 5 minutes, or since the first spend, of the agents that may spend now: the others burn nothing."""
        for agent_id in self.counted - spending:
            self.everything.merge(self.by_agent[agent_id], -1)
            self.counted.discard(agent_id)
        for agent_id in (spending & self.by_agent.keys()) - self.counted:
            self.everything.merge(self.by_agent[agent_id], 1)
            self.counted.add(agent_id)
        counted_s = min(max(at - self.began, LEAST_S), SLICE_S * SLICES)
        return self.everything.rate(at) * SLICE_S * SLICES / counted_s if self.counted else 0.0

    def _turn(self, at: float) -> None:
        day = time.strftime("%Y-%m-%d", time.localtime(at))
        if day != self.day:
            self.day, self.today_usd = day, 0.0
