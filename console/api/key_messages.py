"""Messages about signing keys: one that leaked is taken out of what this host trusts."""

from __future__ import annotations

from pydantic import Field

from console.api.bodies import SCHEMA_VERSION, Reason, Request, View


class RetirementBody(Request):
    """What a key that remains has signed (console/audit/retirement.py); of a fleet's key, whose private part no supervisor sees."""

    role: str = Field(max_length=10)
    key_id: str = Field(max_length=16)
    public: str = Field(max_length=64)
    by: str = Field(max_length=64)
    signature: str = Field(max_length=128)


class RetireKeyBody(Request):
    """POST /api/keys/retire."""

    key_id: str = Field(pattern=r"^[0-9a-f]{16}$")
    reason: Reason
    retirement: RetirementBody | None = None
    """Without: the host's own key, which the supervisor replaces itself."""


class RetiredKeyView(View):
    """It is on record, and this host trusts it no more."""

    schema_version: int = SCHEMA_VERSION
    role: str
    key_id: str
    by: str
    """Id of the key that remains and signed it."""
    worth: str
    """What signatures of the retired key are worth, in words."""
