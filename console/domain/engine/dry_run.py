"""Dry-run: calls are judged exactly as live and then not executed; what would have been becomes a plan that is approved as a whole.

A plan belongs to its *head*: the topmost agent that is in dry-run. It is bound to the SHA-256 of its canonical form; approved, each of
its calls may be made once, through the same checks as any live call.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field
from enum import StrEnum

from console.domain.agent import AgentId
from console.domain.calls.approval import AskedPart
from console.domain.calls.lineage import Mark
from console.domain.calls.permission import Decision, PermissionRequest, Verdict
from console.domain.engine.command import Command
from console.domain.engine.event import Event

CALLS_MAX = 500
"""Calls of one plan; what comes beyond is answered and counted, and is in no plan."""
BYTES_MAX = 4 * 1024 * 1024
"""Of arguments and inputs of one plan together."""
RULE = "dry run"
BELOW = "below "
"""How a child's words begin when it is in dry-run because of a parent."""


class PlanState(StrEnum):
    """``open`` collects; ``approved`` lets its calls through; all else is over."""

    OPEN = "open"
    APPROVED = "approved"
    DONE = "done"
    EXPIRED = "expired"
    VOID = "void"

    @property
    def is_open(self) -> bool:
        """Whether anything of it may still be let through."""
        return self in (PlanState.OPEN, PlanState.APPROVED)


class CallState(StrEnum):
    """``planned`` may be made once the plan is approved; ``refused`` would not have been allowed; ``used`` was let through."""

    PLANNED = "planned"
    REFUSED = "refused"
    USED = "used"


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """One call as it was judged. Every text of the request is hostile; known secrets were taken out, ``digest`` is of the exact request."""

    seq: int
    agent_id: str
    context_id: str
    request: PermissionRequest
    digest: str
    """SHA-256 (hex) of the canonical request: only exactly this is let through."""
    verdict: str
    """What the rules said: allow, ask or deny."""
    rule: str
    reason: str
    outcome: str
    """What came of it: ``allow`` (would be executed) or ``deny``."""
    outcome_words: str
    parts: tuple[AskedPart, ...]
    preview: tuple[tuple[str, str, str], ...]
    """(kind, words, level): files, hosts, programs, data, undo, cost; as it was when the call was judged."""
    at: float
    marks: tuple[Mark, ...] = ()
    """Steps of forbidden sequences that it would have taken."""
    state: CallState = CallState.PLANNED
    times: int = 1
    """How often it was asked for. It is let through once all the same."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Calls of one head and of all below it, in the order in which they were asked for."""

    plan_id: str
    head: str
    opened_at: float
    state: PlanState = PlanState.OPEN
    calls: tuple[PlannedCall, ...] = ()
    left_out: int = 0
    """Calls that had no room: they are in no plan."""
    sha256: str = ""
    """What was approved; empty: nothing yet."""
    decided_by: str = ""
    decided_at: float | None = None
    expires_boot: float = 0.0
    """CLOCK_BOOTTIME seconds."""
    words: str = ""


def canonical_plan(plan: Plan) -> bytes:
    """The plan as bytes, for the hash: every call with all that is shown of it, in order; not how often it was asked nor what was used."""
    calls = []
    for call in plan.calls:
        row = asdict(call)
        for name in ("state", "times"):
            del row[name]
        row["request"] = {k: v for k, v in row["request"].items() if k not in ("says", "call_id")}
        calls.append(row)
    body = {"plan": plan.plan_id, "head": plan.head, "left_out": plan.left_out, "calls": calls}
    return json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode("ascii")


def plan_digest(plan: Plan) -> str:
    """SHA-256 (hex) of the canonical plan."""
    return hashlib.sha256(canonical_plan(plan)).hexdigest()


def is_below(words: str, head: str) -> bool:
    """Whether an agent's words say that it is in dry-run because of ``head``."""
    return words.startswith(f"{BELOW}{head}: ")


def below(head: str, words: str) -> str:
    """The words of an agent that is in dry-run because of ``head``."""
    return f"{BELOW}{head}: {words}"[:600]


@dataclass(frozen=True, slots=True)
class Release:
    """One call of an approved plan that was not made yet."""

    plan_id: str
    head: str
    seq: int
    agent_id: str
    digest: str
    verdict: str
    rule: str
    by: str
    """Who approved the plan."""
    expires_boot: float


# --- events -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DryRunEntered(Event):
    """An operator puts an agent, and all below it, into dry-run."""

    agent_id: AgentId
    by: str
    reason: str


@dataclass(frozen=True, slots=True)
class DryRunLeft(Event):
    """An operator takes it out again, on record already."""

    agent_id: AgentId
    by: str
    reason: str


@dataclass(frozen=True, slots=True)
class CallPlanned(Event):
    """What a call of an agent in dry-run came to is written down: it may be answered."""

    agent_id: AgentId
    request_id: str
    decision: Decision


@dataclass(frozen=True, slots=True)
class PlanApproved(Event):
    """An operator approved a whole plan; ledger and audit have it."""

    plan_id: str
    head: AgentId
    releases: tuple[Release, ...]
    by: str


@dataclass(frozen=True, slots=True)
class PlanEnded(Event):
    """An operator threw a plan away, on record already."""

    plan_id: str
    head: AgentId


@dataclass(frozen=True, slots=True)
class ReleaseUsed(Event):
    """The ledger's word on one call of an approved plan: it was good and is used up (``ok``), or why not."""

    agent_id: AgentId
    request_id: str
    request: PermissionRequest
    decision: Decision
    ok: bool
    why: str = ""


@dataclass(frozen=True, slots=True)
class PlansRestored(Event):
    """After a restart: what is approved and not used, and what calls in dry-run would have taken of forbidden sequences, by head."""

    releases: tuple[Release, ...]
    marks: dict[str, tuple[Mark, ...]] = field(default_factory=dict)


# --- commands ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PlanCall(Command):
    """Everything allowed it, and it is not executed: write it into its head's plan, then CallPlanned. ``verdict``: of the rules."""

    agent_id: AgentId
    head: AgentId
    request_id: str
    request: PermissionRequest
    verdict: Verdict
    rule: str
    reason: str
    parts: tuple[AskedPart, ...]
    decision: Decision
    """What would have been answered."""
    marks: tuple[Mark, ...] = ()


@dataclass(frozen=True, slots=True)
class NoteRefused(Command):
    """A call of an agent in dry-run was denied, as it would have been live: the plan shows it; it was answered already."""

    agent_id: AgentId
    head: AgentId
    request_id: str
    request: PermissionRequest
    verdict: Verdict
    rule: str
    reason: str
    parts: tuple[AskedPart, ...]
    decision: Decision


@dataclass(frozen=True, slots=True)
class UseRelease(Command):
    """Audit and ledger first, then ReleaseUsed: only that lets the call of an approved plan go on."""

    release: Release
    request_id: str
    request: PermissionRequest
    decision: Decision


@dataclass(frozen=True, slots=True)
class EndPlans(Command):
    """Whatever is open of these heads' plans (None: of all) is over; with ``plan_id`` that one alone."""

    heads: tuple[str, ...] | None
    state: PlanState
    words: str
    plan_id: str = ""
