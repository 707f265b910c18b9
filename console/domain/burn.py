"""How fast something is used, and when it is used up. Pure: no data is never zero, and nothing divides by what may be none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

MINUTES = 60
HALF_LIFE_MIN = 15.0
"""A minute counts half as much as one that is so many minutes younger."""
LEAST_MIN = 0.25
"""Of less than this nothing is concluded."""
FAR_S = 10 * 365 * 86400.0
"""What would last longer than this has no end that could be named."""
BLOCK = 5
"""Minutes of one block, of which the band of a forecast is made."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """What a sum will be at a later moment, with a band."""

    low: float
    middle: float
    high: float


def rate_per_h(minutes: Sequence[float], known_min: float) -> float | None:
    """Use per hour: a weighted mean of the last minutes, the younger the heavier. None: not known.

    ``minutes``: use in each of the last minutes, oldest first, the last one still running. ``known_min``: for how many minutes,
    fractions included, anybody has looked; what lies before is not taken as zero.
    """
    if known_min < LEAST_MIN or not minutes:
        return None
    known = min(known_min, float(len(minutes)))
    weights, total, left = 0.0, 0.0, known
    part = known_min % 1.0 or 1.0  # how much of the running minute has passed
    for age, amount in enumerate(reversed(minutes)):
        length = min(left, part if age == 0 else 1.0)
        if length <= 0:
            break
        weight = 0.5 ** (age / HALF_LIFE_MIN)
        weights += weight * length
        total += weight * amount
        left -= length
    return total / weights * 60 if weights > 0 else None


def idle_words(known_min: float, verb: str) -> str:
    """Why there is no rate: nothing was ``verb`` (spent, used) in the time that anybody has looked, which may be less than the hour."""
    if known_min >= MINUTES - 1:
        return f"nothing was {verb} in the last hour"
    if known_min < 1:
        return "it was not measured for long enough"
    return f"nothing was {verb} in {int(known_min)} min"


def ends_in_s(cap: float, used: float, per_h: float | None) -> float | None:
    """Seconds until the cap is reached at this rate; 0: it is; None: not known, or it is not reached at this rate."""
    if round(used, 9) >= cap:
        return 0.0
    if per_h is None or per_h <= 0:
        return None
    seconds = (cap - used) / per_h * 3600
    return seconds if seconds < FAR_S else None


def forecast(used: float, minutes: Sequence[float], known_min: float, left_s: float) -> Forecast | None:
    """``used`` after ``left_s`` more seconds; the band: the lower and upper quarter of the last hour's blocks of five minutes."""
    rate = rate_per_h(minutes, known_min)
    if rate is None:
        return None
    whole = int(min(known_min, len(minutes))) // BLOCK
    recent = list(minutes)[len(minutes) - whole * BLOCK :] if whole else []
    blocks = sorted(sum(recent[n : n + BLOCK]) * 60 / BLOCK for n in range(0, len(recent), BLOCK))
    low = blocks[len(blocks) // 4] if blocks else 0.0
    high = blocks[(3 * len(blocks)) // 4] if blocks else 2 * rate
    hours = max(0.0, left_s) / 3600
    return Forecast(used + min(low, rate) * hours, used + rate * hours, used + max(high, rate) * hours)
