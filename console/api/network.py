"""Bodies and views of what sandboxes may reach: an operator's stricter mode or private data, and how a session came to its mode."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from console.api.message import SCHEMA_VERSION, Reason, Request, View

NAMED = 100
"""Agents and sessions an answer names; the counts are always whole."""


class MeantBody(Request, kw_only=True):
    """Whose sessions: an agent's and those of all it spawned, or a session and those below it."""

    reach: Literal["agent", "session"]
    target: Annotated[str, Meta(min_length=1, max_length=63)]


class StricterBody(Request, kw_only=True):
    """POST /api/network/stricter: a stricter mode, for good. A looser one is refused."""

    scope: MeantBody
    mode: Literal["FULL", "PROXIED", "NONE"]
    reason: Reason
    dry_run: bool = False
    """Say what it would do; do nothing."""


class RegisterDataBody(Request, kw_only=True):
    """POST /api/network/private-data: data of this sensitivity is about to enter; answered once that holds."""

    scope: MeantBody
    dataset: Annotated[str, Meta(min_length=1, max_length=200)]
    sensitivity: Literal["PUBLIC", "INTERNAL", "CONFIDENTIAL", "SECRET"]
    source: Annotated[str, Meta(max_length=200)] = ""
    reason: Reason
    dry_run: bool = False


class SwitchedAgent(View, kw_only=True):
    """One living agent of an answer. Text is hostile."""

    id: str
    name: str = ""
    session: str = ""
    before: str
    """Its mode until then."""
    mode: str
    """What holds for it now (of a dry run: what would)."""
    verified: bool = False
    """Seen from outside: it has what its mode allows and no other way out."""
    switched: bool = False
    """Its mode changed, or was tried again because nothing held it."""
    note: str = ""
    """Why it is not enforceable here, or what else to know."""


class StricterView(View, kw_only=True):
    """Answer of both."""

    schema_version: int = SCHEMA_VERSION
    dry_run: bool = False
    mode: str
    """Of the named session, from now on."""
    sensitivity: str
    session: str
    sessions: list[str] = []
    """All that are meant; at most 100."""
    sessions_total: int = 0
    agents: list[SwitchedAgent] = []
    """Those not verified first; at most 100."""
    agents_total: int = 0
    switched: int = 0
    verified: int = 0
    """Of all agents that are meant."""
    not_enforceable: int = 0
    ms: float = 0.0
    """From the request to the last verification."""
    words: str = ""
    """One sentence for the person."""
    why_not: str = ""
    """Of a dry run: why it would be refused now, or empty."""


class ModeChangeView(View, kw_only=True):
    """One moment in a session's history. Text is hostile."""

    at: float
    cause: str = ""
    """launch, data, operator, switch, restart, isolated, reconnected, enforced; empty: kept by a version that did not say."""
    by: str = ""
    words: str = ""
    agent_id: str = ""
    """The agent that the change is about; empty: the whole session."""
    mode: str = ""
    """From then on; empty: the mode did not change."""
    sensitivity: str = ""
    """From then on; empty: it did not change."""
    enforced: bool | None = None
    ms: float | None = None


class ModeHistoryView(View, kw_only=True):
    """GET /api/contexts/{id}/modes?agent=ID: newest first."""

    schema_version: int = SCHEMA_VERSION
    session: str
    mode: str
    """The session's ratchet now."""
    sensitivity: str
    began_at: float | None = None
    """When its first agent (or the one asked for) started."""
    changes: list[ModeChangeView] = []
    left_out: int = 0
    """Older isolations and proofs; changes of sensitivity and mode are always whole."""
    registrations: int = 0
    """Of private data, with those that changed nothing."""


class EnvoyConfigView(View, kw_only=True):
    """GET /api/envoy/config: the generated configuration as text."""

    schema_version: int = SCHEMA_VERSION
    version: int
    text: str
