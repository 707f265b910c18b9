"""Numbers in sentences."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Iterable

NO_REASON = "no reason given"
"""What stands in the place of a reason that a person left out."""

_OPERATOR = re.compile(r"\boperator:([0-9]{1,10})(?:/login:([0-9]{1,10}))?\b")


def counted(number: int, one: str, many: str = "") -> str:
    """``1 agent``, ``2 agents``, ``1,000 agents``; ``many`` where an s does not make it (``process``, ``processes``)."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def notice(what: str, cause: str, rule: str) -> str:
    """A notice to an agent: what changed, why, and by which rule. Parts of it may be others' words: shown on one line, and cut."""
    return f"{what} Cause: {one_line(cause).rstrip('.')}. Rule: {one_line(rule).rstrip('.')}."


def one_line(text: str, most: int = 300) -> str:
    """Text of others as part of a sentence: nothing in it begins a line of its own, or is not to be seen."""
    flat = " ".join("".join(one if one.isprintable() else " " for one in text).split())
    return flat if len(flat) <= most else f"{flat[: most - 1]}…"


def usd(value: float | None) -> str:
    """``$412.80``; less than half a cent is ``<$0.01`` and never zero; None is ``unknown``."""
    if value is None:
        return "unknown"
    if not math.isfinite(value):
        return "$?"
    if 0 < value < 0.005:
        return "<$0.01"
    if abs(value) < 1e6:
        return f"${value:,.2f}"
    return f"${count(value, 'B')}" if abs(value) < 1e12 else ">$1 T"


def fine_usd(value: float | None) -> str:
    """``$0.0312``: the price of one answer, or a bill that is compared with another, to a hundredth of a cent."""
    return usd(value) if value is None or not abs(value) < 1e6 or value < 0 else f"${value:,.4f}"


def count(value: float, billions: str = "G") -> str:
    """``1,204``, ``31.4 M``. Money has ``B`` for billions, where everything else has ``G``."""
    if not math.isfinite(value):
        return "?"
    for size, unit in ((1e9, billions), (1e6, "M")):
        if abs(value) >= size:
            return f"{value / size:,.1f} {unit}"
    return f"{value:,.0f}"


def span(seconds: float) -> str:
    """How long something lasts: ``9 s``, ``31m``, ``2h 14m``, ``3 d``."""
    if not math.isfinite(seconds):
        return "?"
    seconds = float(round(max(0.0, seconds)))
    if seconds < 60:
        return f"{seconds:.0f} s"
    if seconds < 3600:
        return f"{seconds // 60:.0f}m"
    if seconds < 48 * 3600:
        return f"{seconds // 3600:.0f}h {seconds % 3600 // 60:02.0f}m"
    return f"{seconds // 86400:.0f} d"


def long_span(seconds: float) -> str:
    """``4 s``, ``2 min 04 s``, ``4 h 41 min``."""
    if not math.isfinite(seconds):
        return "?"
    seconds = float(round(max(0.0, seconds)))
    if seconds < 60:
        return f"{seconds:.0f} s"
    if seconds < 3600:
        return f"{seconds // 60:.0f} min {seconds % 60:02.0f} s"
    return f"{seconds // 3600:.0f} h {seconds % 3600 // 60:02.0f} min"


def took(ms: float | None) -> str:
    """``0.61 s``, ``38 ms``; ``?`` when unknown."""
    if ms is None or not math.isfinite(ms):
        return "?"
    if ms < 10:
        return f"{ms:.1f} ms"
    return f"{ms:.0f} ms" if ms < 100 else f"{ms / 1000:.2f} s"


def clock(at: float) -> str:
    """``14:02:11`` in local time."""
    return local("%H:%M:%S", at)


def local(pattern: str, at: float) -> str:
    """``at`` by strftime's ``pattern`` in local time; ``?`` for a moment that no calendar has."""
    try:
        return time.strftime(pattern, time.localtime(at))
    except (OverflowError, ValueError, OSError):
        return "?"


def mode_words(mode: str) -> str:
    """Return what the supervisor's account may do on this host: ``root (full control of this host)``, ``user mode``."""
    return "root (full control of this host)" if mode == "root" else f"{mode} mode"


def listed(parts: Iterable[str]) -> str:
    """Sentences, and parts of some, as one list parted by semicolons: a full stop before a semicolon ends nothing."""
    return "; ".join(part.rstrip(" .") for part in parts if part)


def with_names(text: str, name_of: Callable[[int], str]) -> str:
    """Return ``text`` with the account's name for each ``operator:1000``; ``operator:0/login:1000`` names who logged in as well.

    Give it what Watchfloor wrote, never what an agent did.
    """

    def named(found: re.Match[str]) -> str:
        return name_of(int(found[1])) + (f", logged in as {name_of(int(found[2]))}" if found[2] else "")

    return _OPERATOR.sub(named, text) if "operator:" in text else text


def account_words(uid: int, login: str, full_name: str = "") -> str:
    """``ann (Ann Adams, uid 1000)``; ``uid 1000`` alone when the host knows no such account."""
    if not login:
        return f"uid {uid}"
    return f"{login} ({full_name}, uid {uid})" if full_name else f"{login} (uid {uid})"
