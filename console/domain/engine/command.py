"""Commands: what the engine wants done, in the imperative. Only the supervisor's runner carries them out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from console.domain.agent import Agent, AgentId, LaunchRequest
from console.domain.budget import Day, Limits, Reservation, Usage
from console.domain.calls.approval import Approval, ApprovalState
from console.domain.calls.lineage import Mark
from console.domain.calls.permission import Decision, PermissionRequest
from console.domain.errors import ConsoleError
from console.domain.network import NetworkMode


@dataclass(frozen=True, slots=True)
class Command:
    """Base of all commands."""


@dataclass(frozen=True, slots=True)
class StartAgent(Command):
    """Launch it: audit record first, then ticket, sandbox, confirm, portal, go."""

    agent: Agent
    request: LaunchRequest
    by: str


@dataclass(frozen=True, slots=True)
class RefuseLaunch(Command):
    """Refuse the launch. The caller gets the error."""

    agent_id: AgentId
    error: ConsoleError
    by: str


@dataclass(frozen=True, slots=True)
class ShowAgent(Command):
    """Persist the agent and send it to every view."""

    agent: Agent


@dataclass(frozen=True, slots=True)
class HaltAgents(Command):
    """Kill these through the guard, verified (budget)."""

    agent_ids: tuple[AgentId, ...]
    reason: str


@dataclass(frozen=True, slots=True)
class KeepBooks(Command):
    """What was charged and what is set aside, in one transaction: a crash parts no charge from the reservation that it settles."""

    boot_s: float
    boot_id: str
    agents: tuple[Agent, ...] = ()
    usage: dict[tuple[str, str], Usage] = field(default_factory=dict)
    """By (scope, key)."""
    held: dict[str, Reservation | None] = field(default_factory=dict)
    """By id; None: settled, or counted in full."""
    warned: dict[tuple[str, str, str], int] = field(default_factory=dict)
    """(scope, key, limit) -> the mark that was said; 0 takes it back."""
    day: Day | None = None
    limits: dict[tuple[str, str], Limits] = field(default_factory=dict)
    """Of sessions, projects, the day and agent types, by (scope, key)."""


@dataclass(frozen=True, slots=True)
class Charged(Command):
    """Usage was charged: the meters of every node that it counts toward."""

    boot_s: float
    nodes: tuple[tuple[str, str], ...]
    spent: Usage


@dataclass(frozen=True, slots=True)
class AnswerReservation(Command):
    """What was asked for is set aside (``error`` None), or there is no room for it."""

    reservation_id: str
    error: ConsoleError | None


@dataclass(frozen=True, slots=True)
class Announce(Command):
    """A notice on every console."""

    text: str
    level: str = "amber"
    """``info``, ``amber`` or ``red``."""


@dataclass(frozen=True, slots=True)
class WriteHaltNote(Command):
    """A file that the owner of halted agents can read: which, why, when, what to do."""

    agent_ids: tuple[AgentId, ...]
    at: float
    reason: str


@dataclass(frozen=True, slots=True)
class SwitchNetwork(Command):
    """Restrict an agent's network; never loosens."""

    agent_id: AgentId
    mode: NetworkMode
    why: str


@dataclass(frozen=True, slots=True)
class CutEgress(Command):
    """Take an agent's network away at once, and look whether it is gone (isolation)."""

    agent_id: AgentId


@dataclass(frozen=True, slots=True)
class GiveEgress(Command):
    """Give back what the agent's mode allows now, no more (reconnection)."""

    agent_id: AgentId


@dataclass(frozen=True, slots=True)
class KeepNetworkChange(Command):
    """One line of the session's history: an isolation, its end, or what a change of network came to."""

    agent_id: AgentId
    context_id: str
    at: float
    """Seconds since the epoch."""
    what: str
    """``isolated reconnected enforced``."""
    mode: NetworkMode
    by: str
    words: str
    enforced: bool | None = None
    ms: float | None = None


@dataclass(frozen=True, slots=True)
class TellAgent(Command):
    """A notice the agent can read on its own socket."""

    agent_id: AgentId
    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Record(Command):
    """An audit entry. ``must``: about something that only stops or tightens; it may use the reserve of a full disk."""

    actor: str
    kind: str
    what: str
    verdict: str = ""
    agent_id: str = ""
    data: dict[str, Any] = field(default_factory=dict)
    must: bool = False


@dataclass(frozen=True, slots=True)
class NoteEvent(Command):
    """One line of an agent's recent events."""

    agent_id: AgentId
    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class AnswerPermission(Command):
    """A verdict that needs nothing more."""

    agent_id: AgentId
    request_id: str
    decision: Decision


@dataclass(frozen=True, slots=True)
class JudgeCall(Command):
    """Judge a call by the rules in force; the verdict comes back as CallJudged."""

    agent_id: AgentId
    request_id: str
    request: PermissionRequest


@dataclass(frozen=True, slots=True)
class KeepMarks(Command):
    """Write down what a call takes of a forbidden sequence and tighten what the sequence says; then MarksKept, and only then the answer."""

    agent_id: AgentId
    request_id: str
    request: PermissionRequest
    decision: Decision
    marks: tuple[Mark, ...]
    contexts: tuple[str, ...] = ()
    """Sessions that lose their network because of it."""


@dataclass(frozen=True, slots=True)
class KeepApproval(Command):
    """Write it down: a new request (``was`` None), or what became of one without a human."""

    approval: Approval
    was: ApprovalState | None


@dataclass(frozen=True, slots=True)
class ShowApproval(Command):
    """Send what became of it to every view; the ledger has it already."""

    approval: Approval


@dataclass(frozen=True, slots=True)
class EndGrants(Command):
    """Take back what was approved for sessions: a kill ends it."""

    sessions: tuple[str, ...] = ()
    """Empty: all of them."""


@dataclass(frozen=True, slots=True)
class TakeBackApproval(Command):
    """Take back an approval whose request was over when a person approved it. The ledger says approved, but it allows nothing."""

    approval_id: str
    why: str


@dataclass(frozen=True, slots=True)
class UseApproval(Command):
    """Audit and ledger first, then ApprovalUsed: only that lets the call through."""

    approval: Approval
    request_id: str


@dataclass(frozen=True, slots=True)
class SnapshotThenAnswer(Command):
    """Write the rollback record first; only if that is on disk answer ``decision``, else deny."""

    agent_id: AgentId
    context_id: str
    request_id: str
    destructive: str
    """``file_write`` or ``file_delete``."""
    path: str
    decision: Decision


@dataclass(frozen=True, slots=True)
class JudgeUrl(Command):
    """Judge a URL by the live allowlist and the agent's network mode, then answer."""

    agent_id: AgentId
    request_id: str
    url: str
    mode: NetworkMode


@dataclass(frozen=True, slots=True)
class LeaveAgent(Command):
    """It ended: close its socket and portal, let the guard forget its leaf."""

    agent_id: AgentId
