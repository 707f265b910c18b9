"""Gated calls on an agent's own socket: set aside before the call, settle after it."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from console.api.bodies import SCHEMA_VERSION, Request, View


class ReserveBody(Request):
    """POST /v1/reserve: what the call may use at most; judged field by field (NaN, negatives refused)."""

    iterations: Any = 0
    tokens: Any = 0
    tool_calls: Any = 0
    cost_usd: Any = 0.0
    tool: Annotated[str, Field(max_length=200)] = ""
    key: Annotated[str, Field(pattern=r"^[a-z0-9-]{0,40}$")] = ""
    """The agent's own name of the call: asked again with it, since no answer came, the same reservation holds."""
    ttl_s: Annotated[float, Field(gt=0, le=86_400)] = 600.0
    """How long the call may take: what is not settled by then is counted in full."""


class ReservedView(View):
    """It is set aside, and on disk. Refused (403): there is no room; which limit, is in the words."""

    schema_version: int = SCHEMA_VERSION
    id: str
    expires_in_s: float


class SettleBody(Request):
    """POST /v1/settle: what the call really used."""

    id: Annotated[str, Field(min_length=1, max_length=120)]
    iterations: Any = 0
    tokens: Any = 0
    tool_calls: Any = 0
    cost_usd: Any = 0.0
    errors: Any = 0
