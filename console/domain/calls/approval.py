"""Approvals: an ``ask`` that waits for a human, bound to the SHA-256 of the exact request, used once, and over after a time.

Everything an agent wrote is carried unchanged: it is bound, stored and shown, never read as anything else.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from console.domain.agent import AgentId, ContextId
from console.domain.calls.permission import PermissionRequest, worst_of

WAITING_MAX = 100
"""The most requests of one agent tree that wait at once. Further ones are denied, so that an agent cannot bury the important ones."""
TTL_S = 600.0
"""Seconds that a person has to decide, unless the options set another time."""
REASON_MAX = 1000
DAY_S = 86_400.0
_OPERATORS = frozenset(";|&<>()$`\r\n")


class ApprovalState(StrEnum):
    """``waiting`` may become any other once; ``approved`` becomes ``used`` once. All else stays."""

    WAITING = "waiting"
    APPROVED = "approved"
    USED = "used"
    DENIED = "denied"
    EXPIRED = "expired"
    VOID = "void"


_APPROVED = (ApprovalState.APPROVED, ApprovalState.USED)


@dataclass(frozen=True, slots=True)
class Grant:
    """What was approved for a whole session: the same request, by any of its agents. A kill ends all such approvals."""

    context_id: ContextId
    digest: str
    """``session_digest`` of the request."""
    approval_id: str
    by: str
    at: float


class ApprovalScope(StrEnum):
    """``once``: this request, one time. ``session``: the same request, by any agent of the session, until it is revoked."""

    ONCE = "once"
    SESSION = "session"


@dataclass(frozen=True, slots=True)
class AskedPart:
    """One part of what was judged, as the policy said it."""

    text: str
    verdict: str
    rule: str
    step: str = ""
    reason: str = ""
    danger: str = ""
    """The class of what is dangerous in it (``domain.danger``)."""


@dataclass(frozen=True, slots=True)
class Approval:
    """One request that a human decides, or decided."""

    approval_id: str
    agent_id: AgentId
    root_id: AgentId
    context_id: ContextId
    request: PermissionRequest
    digest: str
    """SHA-256 (hex) of ``canonical(request, agent, session)``: what the decision is bound to."""
    rule: str
    reason: str
    """Why it asked."""
    asked_at: float
    """Seconds since the epoch, for people."""
    expires_boot: float
    """CLOCK_BOOTTIME seconds: neither suspend nor a changed clock gives anybody more time."""
    parts: tuple[AskedPart, ...] = ()
    state: ApprovalState = ApprovalState.WAITING
    scope: ApprovalScope = ApprovalScope.ONCE
    decided_by: str = ""
    decided_at: float | None = None
    words: str = ""
    """Why it was denied, or what made it void."""

    @property
    def took_s(self) -> float | None:
        """Seconds that the decision took; None while the request is open."""
        return None if self.decided_at is None else max(0.0, self.decided_at - self.asked_at)

    @property
    def danger(self) -> str:
        """The worst class of danger in its parts; empty: none."""
        return worst_of(part.danger for part in self.parts)

    @property
    def why(self) -> str:
        """Why it asked, the danger first."""
        return f"{self.reason} ({self.rule})" if self.danger else f"{self.rule}: {self.reason}"

    @property
    def equal(self) -> str:
        """The same for requests of one tree that ask for the same thing to the byte, whichever of its agents asks."""
        return hashlib.sha256(canonical(self.request, self.root_id, "")).hexdigest()[:16]

    @property
    def may_be_rule(self) -> bool:
        """Whether a rule for exactly these arguments may answer it: never what is dangerous, nor shell text with operators."""
        return not self.danger and not has_operators(self.request)

    @property
    def exact(self) -> str:
        """A digest that is the same for requests which one rule for exactly these arguments, in this folder, would answer."""
        return exact_key(self.request)[:16]

    @property
    def group(self) -> str:
        """Requests with the same group are shown as one item: same tree, same tool, same shape."""
        return hashlib.sha256(f"{self.root_id}\0{shape(self.request)}".encode("utf-8", "surrogatepass")).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Questions:
    """How much people are asked."""

    asked: int
    per_hour: float
    repeated: int
    """Of these, as many as a rule for exactly their arguments in their folder could have answered: the same was approved before."""

    @property
    def share(self) -> float | None:
        """Of those asked; None: nothing was."""
        return self.repeated / self.asked if self.asked else None


def questions(approvals: Iterable[Approval], at: float) -> Questions:
    """Count what was asked in the last day, of which the first question may be younger. ``at``: now, seconds since the epoch."""
    asked = sorted((one for one in approvals if one.asked_at > at - DAY_S), key=lambda one: one.asked_at)
    approved: dict[str, float] = {}
    for one in asked:
        if one.decided_at is not None and one.state in _APPROVED and one.may_be_rule:
            approved[one.exact] = min(one.decided_at, approved.get(one.exact, one.decided_at))
    repeated = sum(1 for one in asked if one.may_be_rule and approved.get(one.exact, at) < one.asked_at)
    hours = max(1.0, (at - asked[0].asked_at) / 3600) if asked else 1.0
    return Questions(len(asked), len(asked) / hours, repeated)


def canonical(request: PermissionRequest, agent_id: str, context_id: str) -> bytes:
    """The exact request as bytes, for the hash: keys sorted, nothing left out, who asks and in which session included."""
    body = {
        "agent": agent_id,
        "session": context_id,
        "tool": request.tool,
        "argument": request.argument,
        "cwd": request.cwd,
        "detail": request.detail,
    }
    return json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode("ascii")


def digest_of(request: PermissionRequest, agent_id: str, context_id: str) -> str:
    """SHA-256 (hex) of the canonical request."""
    return hashlib.sha256(canonical(request, agent_id, context_id)).hexdigest()


def session_digest(request: PermissionRequest, context_id: str) -> str:
    """Return what an approval for a session is bound to: the same request, by any agent of the session."""
    return digest_of(request, "", context_id)


def exact_key(request: PermissionRequest) -> str:
    """Return the same for requests with exactly the same arguments in the same folder. A command's description is no argument."""
    detail = request.detail
    if request.tool == "shell" and detail:
        try:
            given = json.loads(detail)
        except (ValueError, RecursionError):
            given = None
        if isinstance(given, dict):
            given.pop("description", None)
            detail = json.dumps(given, sort_keys=True)
    whole = json.dumps([request.tool, request.argument, request.cwd, detail])
    return hashlib.sha256(whole.encode("ascii")).hexdigest()


def has_operators(request: PermissionRequest) -> bool:
    """Whether its text may join, redirect or substitute, were it shell text."""
    return bool(_OPERATORS.intersection(request.argument))


def shape(request: PermissionRequest) -> str:
    """The kind of a request, coarse enough to find similar ones: the tool, and the first two plain words or the folder."""
    argument = request.argument.strip()
    if argument.startswith(("/", "./", "../")) and " " not in argument:
        return f"{request.tool} {argument.rpartition('/')[0][:200]}/"
    if "://" in argument[:12]:
        return f"{request.tool} {argument.split('/', 3)[2][:200]}"
    words = [word for word in argument[:400].split() if not word.startswith("-")]
    return f"{request.tool} {' '.join(words[:2])}"[:300]
