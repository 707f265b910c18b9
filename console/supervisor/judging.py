"""Judges calls for the engine, off its thread: the rules in force, with the disk as it is now."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from console.domain.agent import Agent
from console.domain.approval import AskedPart
from console.domain.permission import Decision, PermissionRequest, Verdict


@dataclass(frozen=True, slots=True)
class Judged:
    """A verdict and what it was made of."""

    decision: Decision
    parts: tuple[AskedPart, ...] = ()


class Judge(Protocol):
    """Whoever knows the rules in force."""

    def judge(self, agent: Agent, request: PermissionRequest) -> Judged:
        """Blocks for as long as the disk takes; never raises: what cannot be judged is denied."""
        ...


class BuiltInRules:
    """Rules without a file: files inside the workspace, URLs by the allowlist, nothing else."""

    _ALLOWED = {
        "write_file": Decision(Verdict.ALLOW, "write_file in the workspace", "a rollback record was written first"),
        "delete_file": Decision(Verdict.ALLOW, "delete_file in the workspace", "a rollback record was written first"),
        "http_request": Decision(Verdict.ALLOW, "allowlist", "by the session's network mode"),
    }

    def judge(self, agent: Agent, request: PermissionRequest) -> Judged:
        """A verdict on the tool's name alone; paths and hosts are held by what carries the call out."""
        default = Decision(Verdict.DENY, "default", f"no rule allows {request.tool[:100]}")
        return Judged(self._ALLOWED.get(request.tool, default))
