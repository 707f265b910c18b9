"""What the policy page reads: lint, one call explained, what tools may do, forbidden sequences and their marks, calls that were judged."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from console.api.message import SCHEMA_VERSION, Request, View

MARKS = 1000
"""Marks an answer names; the count is whole."""
PARTS = 200
CALLS = 200


class LintFinding(View, kw_only=True):
    """One thing to know about one rule in force."""

    severity: str
    """``refused``: the rule is not in force; ``warning``, ``note``."""
    kind: str
    """The list it is in: ``deny``, ``ask`` or ``allow``."""
    rule: str
    what: str
    swallows: list[str] = []
    """Deny rules that a call it allows could break; the first ``PARTS``."""
    swallows_count: int = 0


class LintView(View, kw_only=True):
    """GET /api/policy/lint."""

    schema_version: int = SCHEMA_VERSION
    findings: list[LintFinding] = []
    count: int = 0
    refused: int = 0
    problem: str = ""
    """Why the newest file is not in force: these findings are about the last good one."""


class ExplainBody(Request, kw_only=True):
    """POST /api/policy/explain: a call to check, made by no agent. Nothing is recorded and nothing is done."""

    tool: Annotated[str, Meta(min_length=1, max_length=200)]
    argument: Annotated[str, Meta(max_length=65_536)]
    agent_id: Annotated[str, Meta(max_length=200)] = ""
    """Empty: check by the rules alone, without an agent's scopes and data."""
    cwd: Annotated[str, Meta(max_length=4096)] = ""


class ExplainedPart(View, kw_only=True):
    """One thing that was judged. Hostile."""

    text: str
    verdict: str
    rule: str
    step: str
    reason: str


class ExplainedStep(View, kw_only=True):
    """One program that would be executed. Hostile."""

    argv: list[str]
    program: str
    joined: str = ""


class ExplainView(View, kw_only=True):
    """What would be answered now, and why."""

    schema_version: int = SCHEMA_VERSION
    verdict: str
    rule: str
    reason: str
    parts: list[ExplainedPart] = []
    parts_count: int = 0
    steps: list[ExplainedStep] = []
    sequences: list[str] = []
    """Steps of forbidden sequences that it would take, or what it would complete."""
    words: str = ""
    """What this answer does not know, or by what it was judged."""


class ToolRow(View, kw_only=True):
    """What is known of tools that do the same."""

    names: list[str]
    family: str
    action: str = ""
    scopes: list[str] = []
    connects: bool = False
    judged: str = ""
    """By what a call of it is judged, in words."""
    constraints: str = ""
    """Bounds of the permission matrix; empty with ``matrix`` of the view saying why."""


class ToolsView(View, kw_only=True):
    """GET /api/policy/tools."""

    schema_version: int = SCHEMA_VERSION
    tools: list[ToolRow] = []
    scopes: list[str] = []
    """All that there are."""
    granted: list[str] = []
    """What an agent gets at birth, where its launcher names nothing."""
    matrix: str = ""
    """Why no bounds of a permission matrix are shown, or why the newest file's are not; empty: they are."""
    matrix_state: str = ""
    """``none``, ``in_force``, ``last_good`` (the newest file is not), ``unknown`` (every call is denied)."""


class SequenceStep(View, kw_only=True):
    """One step of a pattern, and what takes it."""

    name: str
    takes: str


class SequenceRow(View, kw_only=True):
    """One forbidden sequence."""

    name: str
    why: str
    steps: list[SequenceStep] = []
    same: str = ""
    tighten: str = ""
    built_in: bool = True
    marks: int = 0
    """Steps of it that were taken and stand."""


class MarkRow(View, kw_only=True):
    """A step that an agent of a lineage has taken. A step is never taken back. Hostile."""

    pattern: str
    step: str
    value: str
    agent_id: str
    session: str
    root_id: str
    lineage: str
    """The same for everybody who is joined by spawns and shared sessions."""
    at: float
    text: str
    kept: bool = True
    """On disk."""


class SequencesView(View, kw_only=True):
    """GET /api/policy/sequences."""

    schema_version: int = SCHEMA_VERSION
    patterns: list[SequenceRow] = []
    problem: str = ""
    """Why the newest file is not in force; with no patterns every call is denied."""
    marks: list[MarkRow] = []
    """The newest ``MARKS``."""
    marks_count: int = 0
    lineages: int = 0
    """Lineages that carry a mark."""


class JudgedRow(View, kw_only=True):
    """One recorded call, with the verdict of the rules. Hostile; known secrets are taken out."""

    at: float
    agent_id: str
    tool: str
    argument: str
    cwd: str = ""
    verdict: str
    rule: str


class JudgedView(View, kw_only=True):
    """GET /api/policy/calls?rule=&verdict=: the newest that this rule decided."""

    schema_version: int = SCHEMA_VERSION
    rows: list[JudgedRow] = []


Verdict = Literal["allow", "ask", "deny"]
