"""Messages about secrets: the rotation plan, what rotations came to, single tokens, and signing keys that leaked."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from console.api.message import SCHEMA_VERSION, Reason, Request, View


class RotationItemView(View, kw_only=True):
    """One secret: Watchfloor's own, or one of the plan."""

    name: str
    kind: str
    """own, command, http, keyring, file."""
    how: str = ""
    """How it is replaced, without any value."""
    verifier: str = ""
    """Who must refuse the old value."""
    ok: bool | None = None
    """What the last rotation came to; None when it was never rotated."""
    detail: str = ""
    again: str = ""
    """The second presentation after a restart: due, refused (as it must be), accepted, unknown; empty when there is none."""


class RotationView(View, kw_only=True):
    """GET /api/rotation."""

    schema_version: int = SCHEMA_VERSION
    kept_in: str = ""
    why_not_better: list[str] = []
    plan_file: str = ""
    plan_error: str = ""
    items: list[RotationItemView] = []
    unfinished: bool = False
    """A rotation was begun and is not proven: POST /api/rotation takes it up."""
    last_at: float | None = None
    last_ok: bool | None = None
    last_detail: str = ""
    last_kill_id: str = ""
    again_at: float | None = None


class RotationBody(Request, kw_only=True):
    """POST /api/rotation: rotate now. Stays up while killed."""

    items: Annotated[list[Annotated[str, Meta(max_length=40)]], Meta(max_length=64)] = []
    """Names; without any, everything."""
    reason: Reason


class RotationValueBody(Request, kw_only=True):
    """POST /api/rotation/value: tells the value in force of an item that cannot be read back (command, http)."""

    name: Annotated[str, Meta(max_length=40)]
    value: Annotated[str, Meta(min_length=8, max_length=8192)]


class ApiKeyView(View, kw_only=True):
    """POST /api/api-key: a new API key, shown this once; the one before is refused from now on."""

    schema_version: int = SCHEMA_VERSION
    api_key: str


class TokenBody(Request, kw_only=True):
    """POST /api/tokens: an operator token for an API key."""

    api_key: Annotated[str, Meta(max_length=200)]
    ttl_s: Annotated[int, Meta(ge=1, le=8 * 3600)] = 3600


class TokenView(View, kw_only=True):
    """A token and its lifetime."""

    schema_version: int = SCHEMA_VERSION
    token: str
    ttl_s: int


class TokenCheckView(View, kw_only=True):
    """GET /api/token-check: a token or key that is accepted."""

    schema_version: int = SCHEMA_VERSION
    audience: str
    """operator, agent-service, api-key."""


class RevokedView(View, kw_only=True):
    """POST /api/agents/{id}/revoke-token."""

    schema_version: int = SCHEMA_VERSION
    agent: str
    connections_cut: int = 0


class RetirementBody(Request, kw_only=True):
    """What a key that remains has signed (console/audit/retirement.py); of a fleet's key, whose private part no supervisor sees."""

    role: Annotated[str, Meta(max_length=10)]
    key_id: Annotated[str, Meta(max_length=16)]
    public: Annotated[str, Meta(max_length=64)]
    by: Annotated[str, Meta(max_length=64)]
    signature: Annotated[str, Meta(max_length=128)]


class RetireKeyBody(Request, kw_only=True):
    """POST /api/keys/retire."""

    key_id: Annotated[str, Meta(pattern=r"^[0-9a-f]{16}\Z")]
    reason: Reason
    retirement: RetirementBody | None = None
    """Without: the host's own key, which the supervisor replaces itself."""


class RetiredKeyView(View, kw_only=True):
    """It is on record, and this host trusts it no more."""

    schema_version: int = SCHEMA_VERSION
    role: str
    key_id: str
    by: str
    """Id of the key that remains and signed it."""
    worth: str
    """What signatures of the retired key are worth, in words."""
