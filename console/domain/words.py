"""Parts of sentences: numbers of things, notices, lists."""

from __future__ import annotations

from collections.abc import Iterable

NO_REASON = "no reason given"
"""What stands in the place of a reason that a person left out."""


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


def mode_words(mode: str) -> str:
    """Return what the supervisor's account may do on this host: ``root (full control of this host)``, ``user mode``."""
    return "root (full control of this host)" if mode == "root" else f"{mode} mode"


def listed(parts: Iterable[str]) -> str:
    """Sentences, and parts of some, as one list parted by semicolons: a full stop before a semicolon ends nothing."""
    return "; ".join(part.rstrip(" .") for part in parts if part)
