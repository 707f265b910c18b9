"""Parts of sentences: numbers of things, notices, lists, names of accounts."""

from __future__ import annotations

import re
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
