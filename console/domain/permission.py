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


@dataclass(frozen=True, slots=True)
class Decision:
    """A verdict with the rule and the reason, always shown."""

    verdict: Verdict
    rule: str
    reason: str
    rollback_id: str | None = None
    """The snapshot that was written before an allow of a destructive call was answered."""
