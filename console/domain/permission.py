"""Verdicts on what an agent asks to do."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


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
