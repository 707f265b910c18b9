"""Rules on the wire: what is in force, how often each decided, a draft made of a request, a change tried on recorded calls."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from console.api.message import SCHEMA_VERSION, Reason, Request, View

DAYS = 14
COMPARED_DAYS = 7
"""How far back the profiles are compared."""
NAMED = 50
"""Calls an answer names; the counts are whole."""


class RuleRow(View, kw_only=True):
    """One rule in force."""

    rule: str
    list: Literal["deny", "ask", "allow"]
    hits: int = 0
    """Calls it decided in the last ``DAYS`` days."""
    last_at: float | None = None
    finding: str = ""
    """What the lint says of it."""
    in_force: bool = True
    line: int = 0
    """Of the file where it stands, from 1; 0: not found."""


SHOWN = 4096
"""Characters of a call that a rule of exactly these arguments shows."""


class ExactRule(View, kw_only=True):
    """A rule that a person made of an approval: exactly these arguments, in this folder. Its texts are hostile."""

    id: str
    key: str
    """SHA-256 of tool, argument, folder and whole input: what it is bound to."""
    tool: str
    argument: str
    cwd: str = ""
    folder: str
    """The workspace that it holds in."""
    approval_id: str
    by: str
    reason: str = ""
    at: float
    until: float
    """From then on such a call is asked again."""
    hits: int = 0
    """Calls it decided in the last ``DAYS`` days."""
    last_at: float | None = None


class ExactOffer(View, kw_only=True):
    """GET /api/approvals/{id}/rule: the rule that an approval could become."""

    schema_version: int = SCHEMA_VERSION
    why_not: str = ""
    """Why each such call is asked; empty: ``rule`` can be made."""
    rule: ExactRule | None = None
    days: int = DAYS
    recorded: int = 0
    """Recorded calls of so many days."""
    answered: int = 0
    """Of these, asked ones that it would have answered."""


class ExactBody(Request, kw_only=True):
    """POST /api/approvals/{id}/rule: allow exactly this call in this folder for 30 days."""

    digest: Annotated[str, Meta(pattern=r"^[0-9a-f]{64}\Z")]
    reason: Annotated[str, Meta(max_length=500)] = ""


class ExactRemoveBody(Request, kw_only=True):
    """POST /api/policy/exact/remove."""

    id: Annotated[str, Meta(min_length=1, max_length=40)]
    reason: Annotated[str, Meta(max_length=500)] = ""


class PolicyView(View, kw_only=True):
    """GET /api/policy."""

    schema_version: int = SCHEMA_VERSION
    text: str = ""
    """The file, as it is in force."""
    is_default: bool = True
    problem: str = ""
    """Why the newest file is not in force; empty: it is. Amber, never green."""
    rules: list[RuleRow] = []
    exact: list[ExactRule] = []
    """Rules of one call each, that people made of approvals, newest first."""
    sha256: str = ""
    recorded: int = 0
    """Calls there are to try a change on."""
    file: str = ""
    """Where the rules are from."""


class ChangedCall(View, kw_only=True):
    """A recorded call that would be decided otherwise. Hostile."""

    at: float
    agent_id: str
    tool: str
    argument: str
    cwd: str = ""
    before: str
    after: str
    rule: str
    looser: bool
    """It would be allowed, or only asked about, where it was not: to be looked at."""


class PolicyTryBody(Request, kw_only=True):
    """POST /api/policy/backtest: rules to add to what is in force, or a whole file instead."""

    add: Annotated[list[Annotated[str, Meta(max_length=1024)]], Meta(max_length=50)] = []
    to: Literal["deny", "ask", "allow"] = "allow"
    text: Annotated[str, Meta(max_length=200_000)] = ""
    days: Annotated[int, Meta(ge=1, le=90)] = DAYS


class PolicyTryView(View, kw_only=True):
    """``14 of 2,310 decided otherwise: these``."""

    schema_version: int = SCHEMA_VERSION
    recorded: int
    changed: int
    looser: int
    calls: list[ChangedCall] = []
    findings: list[str] = []
    sha256: str = ""
    """Of the file that was tried: what is saved is exactly this."""
    text: str = ""
    left_out: int = 0
    """Recorded calls that could not be tried: their agent is not known any more, or a matrix bounds more of them than is recorded."""


class PolicySaveBody(Request, kw_only=True):
    """POST /api/policy: puts a file in force that was tried before."""

    text: Annotated[str, Meta(min_length=1, max_length=200_000)]
    base_sha256: Annotated[str, Meta(pattern=r"^[0-9a-f]{64}\Z")]
    """Of the rules from which this text was made. If the rules in force have another one, they were changed meanwhile."""
    reason: Reason


class DraftView(View, kw_only=True):
    """GET /api/approvals/{id}/draft: narrow rules under which this request would have been allowed."""

    schema_version: int = SCHEMA_VERSION
    rules: list[str] = []
    why_not: str = ""


class ProfileRow(View, kw_only=True):
    """One profile."""

    name: str
    title: str
    why: str


class ProfileChoice(View, kw_only=True):
    """A profile that an operator chose for a type of agents."""

    agent_type: str
    profile: str
    reason: str
    by: str
    at: float


class ProfilesView(View, kw_only=True):
    """GET /api/policy/profiles."""

    schema_version: int = SCHEMA_VERSION
    profiles: list[ProfileRow] = []
    choices: list[ProfileChoice] = []
    own_rules: bool = False
    """There is a policy.json: it holds where no profile was chosen."""


class ProfileCount(View, kw_only=True):
    """What one profile would have decided of the recorded calls."""

    name: str
    allowed: int = 0
    asked: int = 0
    denied: int = 0


class ProfileCall(View, kw_only=True):
    """A recorded call of which the profiles decide differently."""

    at: float
    agent_id: str
    tool: str
    argument: str
    verdicts: dict[str, str] = {}
    """Profile -> allow, ask or deny."""


class ProfilesTriedView(View, kw_only=True):
    """GET /api/policy/profiles/compare: each profile on the calls of the last seven days, by the disk as it is now."""

    schema_version: int = SCHEMA_VERSION
    recorded: int = 0
    """Calls that were looked at; at most the newest 5,000."""
    left_out: int = 0
    """Of them: their agent is gone, or the time was up."""
    counts: list[ProfileCount] = []
    calls: list[ProfileCall] = []
    """The newest that differ, at most NAMED."""


class ProfileBody(Request, kw_only=True):
    """POST /api/policy/profiles. An empty profile takes the choice back."""

    agent_type: Annotated[str, Meta(min_length=1, max_length=64)]
    profile: Annotated[str, Meta(max_length=40)] = ""
    reason: Reason
