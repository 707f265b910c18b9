"""Dry-run on the wire: who is in it, the plan with a preview per call, and the decision that is bound to exactly that plan."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from console.api.message import SCHEMA_VERSION, Id, Reason, Request, View
from console.api.policy.approvals import ApprovalPart


class DryRunBody(Request, kw_only=True):
    """POST /api/dry-run: into it (at once, with all below), or out of it."""

    agent: Id
    on: bool
    reason: Reason


class DryRunView(View, kw_only=True):
    """The answer: it is on record and on disk."""

    schema_version: int = SCHEMA_VERSION
    agent: str
    on: bool
    words: str = ""
    agents: list[str] = []
    """Living agents that are in dry-run because of it now; out of it: that were taken out."""
    notes: list[str] = []
    """What dry-run does not hold."""


class PreviewLine(View, kw_only=True):
    """What a call would touch. ``kind``: files hosts programs data undo cost; ``level``: plain, warn, danger."""

    kind: str
    words: str
    level: str = "plain"


class PlanCallView(View, kw_only=True):
    """One call. Every text of it is hostile; known secrets were taken out."""

    seq: int
    agent_id: str
    agent_name: str = ""
    session: str = ""
    tool: str
    argument: str
    cwd: str = ""
    detail: str = ""
    says: str = ""
    digest: str
    """SHA-256 of the exact request."""
    verdict: str
    """What the rules said: allow, ask, deny."""
    rule: str
    reason: str
    outcome: str
    """allow: it would be executed; deny."""
    outcome_words: str
    parts: list[ApprovalPart] = []
    preview: list[PreviewLine] = []
    at: float
    state: str
    """planned, refused (would have been denied), used."""
    times: int = 1


class PlanView(View, kw_only=True):
    """One plan."""

    id: str
    head: str
    head_name: str = ""
    state: str
    """open, approved, done, expired, void."""
    sha256: str
    """Of the plan as it is now: an approval names it."""
    opened_at: float
    calls: list[PlanCallView] = []
    left_out: int = 0
    """Calls that had no room; they are in no plan."""
    decided_by: str = ""
    decided_at: float | None = None
    left_s: float = 0.0
    """Until the approval is over."""
    words: str = ""
    why_not: str = ""
    """Why it cannot be approved now; empty: it can."""


class PlansView(View, kw_only=True):
    """GET /api/plans/{agent}: the plans that its calls are in, newest first."""

    schema_version: int = SCHEMA_VERSION
    agent: str
    head: str = ""
    """The agent whose dry-run it shares: itself or a parent. Empty: it is live."""
    words: str = ""
    plans: list[PlanView] = []


class PlanBody(Request, kw_only=True):
    """POST /api/plans: a decision on a whole plan, as it was shown."""

    plan: Annotated[str, Meta(pattern=r"^p-[0-9a-f]{12}\Z")]
    sha256: Annotated[str, Meta(pattern=r"^[0-9a-f]{64}\Z")]
    verdict: Literal["approve", "discard"]
    reason: Reason


class PlanDecidedView(View, kw_only=True):
    """The answer."""

    schema_version: int = SCHEMA_VERSION
    plan: str
    state: str
    calls: int = 0
    """That may be made now, each once."""
    words: str = ""
