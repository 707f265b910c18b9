"""An agent's question on the wire when it does not want to wait for the answer, and what became of it."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from console.api.message import SCHEMA_VERSION, View
from console.api.messages import PermissionBody, PermissionView

WAIT_MAX_S = 3600.0


class AskBody(PermissionBody, kw_only=True):
    """POST /v1/permission."""

    wait_s: Annotated[float, Meta(ge=0, le=WAIT_MAX_S)] | None = None
    """Longest wait for a human (s); then the answer is ``ask``, and the same request takes the decision up later. None: to the end."""


class AskView(PermissionView, kw_only=True):
    """The verdict. With ``ask`` it waits in the inbox under ``approval_id``; only ``allow`` means go ahead."""

    approval_id: str = ""
    digest: str = ""
    """SHA-256 of the exact request: what the decision is bound to."""
    left_s: float = 0.0
    """Seconds until it is denied automatically."""


class AskedView(View, kw_only=True):
    """GET /v1/approvals/{id}: one of the agent's own. A state is told here, never a permission: that is asked for again."""

    schema_version: int = SCHEMA_VERSION
    id: str
    state: str
    """``waiting``, ``approved``, ``used``, ``denied``, ``expired`` or ``void``."""
    digest: str
    tool: str
    rule: str
    words: str = ""
