"""What agent types have, on the wire."""

from __future__ import annotations

from pydantic import BaseModel

SCHEMA_VERSION = 1


class SourcesFileView(BaseModel):
    """One ``sources/TYPE.json``."""

    agent_type: str
    ok: bool
    error: str = ""
    """File, place in it and what is wrong; empty when it holds."""
    remedy: str = ""
    enforced: list[str] = []
    not_enforced: list[str] = []
    """Shown, each with the reason why it cannot be enforced."""


class SourcesView(BaseModel):
    """Answer of GET /api/sources."""

    schema_version: int = SCHEMA_VERSION
    folder: str
    types: list[SourcesFileView] = []
