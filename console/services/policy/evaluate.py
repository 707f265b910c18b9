"""Judges calls for the engine, off its thread: the rules in force, with the disk as it is now."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from console.domain.agent import Agent
from console.domain.calls.approval import AskedPart
from console.domain.calls.lineage import Match
from console.domain.calls.permission import Decision, PermissionRequest
from console.policy.rules.verdicts import Step


@dataclass(frozen=True, slots=True)
class Judged:
    """A verdict and what it was made of."""

    decision: Decision
    parts: tuple[AskedPart, ...] = ()
    matches: tuple[Match, ...] = ()
    """Forbidden sequences of which it may be a step."""
    steps: tuple[Step, ...] = ()
    """What is executed, where it is executed here."""


class Judge(Protocol):
    """The part that knows the rules in force."""

    def judge(self, agent: Agent, request: PermissionRequest) -> Judged:
        """Check the call. Blocks for as long as the disk takes. Never raises: what cannot be checked is denied."""
        ...
