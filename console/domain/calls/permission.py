"""Verdicts on what an agent asks to do, and classes of dangerous operations: what a person should know first of a request."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

UNRANKED = 9
"""The rank of what belongs to no class."""


class DangerClass(StrEnum):
    """Worst first: what cannot be undone, then what gives an agent more, then what reaches others, then what stays."""

    DESTROYS = "destroys"
    ESCALATES = "escalates"
    SPENDS = "spends"
    PUBLISHES = "publishes"
    PERSISTS = "persists"


def rank_of(danger: str) -> int:
    """1 for the worst class; ``UNRANKED`` for what is none."""
    return _RANKS.get(danger, UNRANKED)


def worst_of(dangers: Iterable[str]) -> str:
    """The worst of some classes; empty: there is none."""
    return min((one for one in dangers if one), key=rank_of, default="")


_RANKS: dict[str, int] = {one.value: at for at, one in enumerate(DangerClass, 1)}


class Verdict(StrEnum):
    """``ask`` waits for a human."""

    ALLOW = "allow"
    DENY = "deny"
    ASK = "ask"


@dataclass(frozen=True, slots=True)
class PermissionRequest:
    """A tool call an agent asks about before it makes it. Everything in it is hostile."""

    tool: str
    """``read_file``, ``write_file``, ``delete_file``, ``http_request`` or any other name."""
    argument: str
    """Path relative to the workspace, URL, or command."""
    cwd: str = ""
    """Where a command would run and a relative path starts; empty: the workspace."""
    detail: str = ""
    """The whole input of the tool as canonical JSON, where the asker has more to say than one argument."""
    says: str = ""
    """The agent's own words on why: shown in quotes, never part of the decision nor of what it is bound to."""
    call_id: str = ""
    """The asker's name for this very call: a second request under it with another content makes the first one void."""


@dataclass(frozen=True, slots=True)
class Decision:
    """A verdict with the rule and the reason, always shown."""

    verdict: Verdict
    rule: str
    reason: str
    rollback_id: str | None = None
    """The snapshot that was written before an allow of a destructive call was answered."""
