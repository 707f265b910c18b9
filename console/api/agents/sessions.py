"""Bodies and views of sessions' workspaces."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from console.api.message import SCHEMA_VERSION, Request, View


class ContextView(View, kw_only=True):
    """One session's workspace. Times are seconds since the epoch."""

    context_id: str
    agent: str = ""
    path: str = ""
    agents_live: int = 0
    bytes: int = 0
    complete: bool = False
    """False: not measured yet, or a lower bound."""
    measured_at: float | None = None
    created_at: float
    last_used: float
    goes_at: float | None = None
    """When its time to live is over; None while it is used or held."""
    stateless: bool = False
    hold: str = ""
    over: str = ""
    """Beyond its bound, in words."""


class ContextsView(View, kw_only=True):
    """GET /api/contexts."""

    schema_version: int = SCHEMA_VERSION
    contexts: list[ContextView] = []
    used: int = 0
    capacity: int = 0
    maximum: int = 0
    complete: bool = True
    is_full: bool = False
    ttl_days: float = 7.0


class ContextActBody(Request, kw_only=True):
    """POST /api/contexts/{id}/hold | release | delete."""

    reason: Annotated[str, Meta(min_length=1, max_length=300)]
