"""Approvals on the wire: what waits, everything a person needs to decide, and the decision bound to the exact request."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from console.api.message import SCHEMA_VERSION, Request, View

AT_ONCE = 100
"""Requests decided in one call."""


class ApprovalRow(View, kw_only=True):
    """One request. Every text of it is hostile."""

    id: str
    agent_id: str
    agent_name: str = ""
    root_id: str = ""
    root_name: str = ""
    session: str = ""
    depth: int = 0
    sensitivity: str = ""
    cost_usd: float = 0.0
    tool: str
    argument: str
    """In lists its first 4,096 characters; whole in the detail."""
    argument_more: int = 0
    """Characters of it that are left out here."""
    cwd: str = ""
    says: str = ""
    """The agent's own words; never part of what is decided."""
    rule: str
    reason: str
    danger: str = ""
    """The worst class of danger in it: destroys, escalates, spends, publishes or persists; empty: none."""
    danger_rank: int = 9
    """1 for the worst class, 9 for none."""
    digest: str
    """SHA-256 of the canonical request: a decision names it."""
    group: str
    """The same for requests that may be shown as one item."""
    equal: str = ""
    """The same for requests of one tree that ask for the same thing to the byte."""
    asked_at: float
    left_s: float = 0.0
    """Seconds until it is denied automatically; 0 afterwards."""
    ttl_s: float = 0.0
    state: str
    scope: str
    decided_by: str = ""
    decided_at: float | None = None
    took_s: float | None = None
    words: str = ""


class ApprovalsView(View, kw_only=True):
    """GET /api/approvals: waiting ones, the worst danger first, then the least time left; decided ones, newest first."""

    schema_version: int = SCHEMA_VERSION
    waiting: list[ApprovalRow] = []
    decided: list[ApprovalRow] = []
    items: int = 0
    """Waiting requests, with each group counted once."""
    oldest_wait_s: float | None = None
    median_decide_s: float | None = None
    """Median seconds of the last 50 decisions by people; None: there is none yet."""
    questions_per_hour: float = 0.0
    """Over the last day, of the newest 500."""
    rule_share: float | None = None
    """The share of these that repeated an approved request exactly, so that a rule could have answered; None: there was no request."""
    denial_needs_reason: bool = False
    """Whether a denial without a reason is refused."""


class ApprovalPart(View, kw_only=True):
    """One part of what was judged."""

    text: str
    verdict: str
    rule: str
    step: str = ""
    reason: str = ""
    danger: str = ""


class TreeCost(View, kw_only=True):
    """One agent of the tree."""

    id: str
    name: str
    level: int
    """0: the root."""
    cost_usd: float | None
    """None: what it spent is not known."""
    share: float | None = None
    """Largest share of any of its limits; None when nothing is capped."""
    asks: bool = False


class BlastLine(View, kw_only=True):
    """What it could touch. ``level``: ``plain``, ``warn`` or ``danger``."""

    kind: Literal["files", "hosts", "programs", "data", "undo"]
    words: str
    level: Literal["plain", "warn", "danger"] = "plain"


class JustBefore(View, kw_only=True):
    """What the same agent did just before."""

    at: float
    kind: str
    text: str


class ApprovalDetailView(View, kw_only=True):
    """GET /api/approvals/{id}."""

    schema_version: int = SCHEMA_VERSION
    row: ApprovalRow
    detail: str = ""
    """The tool's whole input as canonical JSON."""
    parts: list[ApprovalPart] = []
    tree: list[TreeCost] = []
    tree_left_out: int = 0
    blast: list[BlastLine] = []
    similar: list[ApprovalRow] = []
    before: list[JustBefore] = []


class Decided(Request, kw_only=True):
    """One request by its id and the digest the person saw."""

    id: Annotated[str, Meta(min_length=1, max_length=40)]
    digest: Annotated[str, Meta(pattern=r"^[0-9a-f]{64}\Z")]


class DecideBody(Request, kw_only=True):
    """POST /api/approvals: one decision on one or several requests."""

    requests: Annotated[list[Decided], Meta(min_length=1, max_length=AT_ONCE)]
    verdict: Literal["approve", "deny"]
    scope: Literal["once", "session"] = "once"
    reason: Annotated[str, Meta(max_length=1000)] = ""
    """What the agent is told after a denial. Needed only where a setting asks for it."""


class DecidedRow(View, kw_only=True):
    """What became of one."""

    id: str
    done: bool
    words: str = ""
    """Why not."""


class DecideView(View, kw_only=True):
    """The answer."""

    schema_version: int = SCHEMA_VERSION
    results: list[DecidedRow]


class GrantRow(View, kw_only=True):
    """What one session was given."""

    session: str
    digest: str
    approval_id: str
    by: str
    at: float
    tool: str = ""
    argument: str = ""


class GrantsView(View, kw_only=True):
    """GET /api/approvals/grants."""

    schema_version: int = SCHEMA_VERSION
    grants: list[GrantRow] = []


class EndGrantBody(Request, kw_only=True):
    """POST /api/approvals/grants/end: take back what a session was given."""

    session: Annotated[str, Meta(min_length=1, max_length=63)]
    reason: Annotated[str, Meta(min_length=1, max_length=500)]
