"""Burn and spend per agent over the last minutes: what the gauges show."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Set
from dataclasses import dataclass, field

SLICE_S = 12.5
SLICES = 24
MINUTES = 60


@dataclass(slots=True)
class Meter:
    """Spend of one agent: slices of 12.5 s over 5 minutes, and minutes over the last hour (USD)."""

    slices: deque[tuple[int, float]] = field(default_factory=lambda: deque(maxlen=SLICES))
    minutes: deque[tuple[int, float]] = field(default_factory=lambda: deque(maxlen=MINUTES))

    def add(self, at: float, cost_usd: float) -> None:
        """Adds one report."""
        for series, width in ((self.slices, SLICE_S), (self.minutes, 60.0)):
            number = int(at // width)
            if series and series[-1][0] == number:
                series[-1] = (number, series[-1][1] + cost_usd)
            else:
                series.append((number, cost_usd))

    def merge(self, other: Meter, sign: int) -> None:
        """Adds what another one counted (``sign`` 1), or takes it out again (-1)."""
        for series, more in ((self.slices, other.slices), (self.minutes, other.minutes)):
            sums = dict(series)
            for number, cost in more:
                sums[number] = sums.get(number, 0.0) + sign * cost
            series.clear()
            series.extend((number, max(0.0, cost)) for number, cost in sorted(sums.items()))

    def burn(self, at: float) -> list[float]:
        """USD in each of the last 24 slices, oldest first; empty when nothing was spent in them."""
        return _spread(self.slices, int(at // SLICE_S), SLICES)

    def per_minute(self, at: float) -> list[float]:
        """USD in each of the last 60 minutes, oldest first."""
        return _spread(self.minutes, int(at // 60), MINUTES)

    def rate(self, at: float) -> float:
        """USD per hour over the last 5 minutes."""
        return rate_of(self.burn(at))


def rate_of(burn: list[float]) -> float:
    """USD per hour of what ``Meter.burn`` gives."""
    return sum(burn) * 3600 / (SLICE_S * SLICES)


def _spread(series: deque[tuple[int, float]], now: int, count: int) -> list[float]:
    found, first = [0.0] * count, now - count + 1
    is_any = False
    for number, cost in series:
        if first <= number <= now:
            found[number - first], is_any = round(cost, 6), True
    return found if is_any else []


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

    def add_seen(self, agent_id: str, at: float, cost_usd: float) -> None:
        """What an agent that we only see spent since the last look; ``beside`` holds it already."""
        self._add(agent_id, at, cost_usd)

    def add(self, agent_id: str, at: float, cost_usd: float) -> None:
        """Counts one report."""
        self._turn(at)
        self.today_usd += cost_usd
        self._add(agent_id, at, cost_usd)

    def _add(self, agent_id: str, at: float, cost_usd: float) -> None:
        own = self.by_agent.setdefault(agent_id, Meter())
        if agent_id not in self.counted:
            self.counted.add(agent_id)
            self.everything.merge(own, 1)
        own.add(at, cost_usd)
        self.everything.add(at, cost_usd)

    def restore(self, at: float, today_usd: float) -> None:
        """What the ledger kept of this day."""
        self._turn(at)
        self.today_usd = today_usd

    def spent_today(self, at: float) -> float:
        """USD since local midnight."""
        self._turn(at)
        return self.today_usd + self.beside()

    def rate(self, at: float, spending: Set[str]) -> float:
        """USD per hour over the last 5 minutes, of the agents that may spend now: what has ended or is frozen burns nothing."""
        for agent_id in self.counted - spending:
            self.everything.merge(self.by_agent[agent_id], -1)
            self.counted.discard(agent_id)
        for agent_id in (spending & self.by_agent.keys()) - self.counted:
            self.everything.merge(self.by_agent[agent_id], 1)
            self.counted.add(agent_id)
        return self.everything.rate(at) if self.counted else 0.0

    def _turn(self, at: float) -> None:
        day = time.strftime("%Y-%m-%d", time.localtime(at))
        if day != self.day:
            self.day, self.today_usd = day, 0.0
