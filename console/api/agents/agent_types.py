"""What agent types have, on the wire."""

from __future__ import annotations

from console.api.message import SCHEMA_VERSION, View


class SourcesFileView(View, kw_only=True):
    """One ``sources/TYPE.json``."""

    agent_type: str
    ok: bool
    error: str = ""
    """File, place in it and what is wrong; empty when it holds."""
    remedy: str = ""
    enforced: list[str] = []
    not_enforced: list[str] = []
    """Shown, each with the reason why it cannot be enforced."""


class SourcesView(View, kw_only=True):
    """Answer of GET /api/sources."""

    schema_version: int = SCHEMA_VERSION
    folder: str
    types: list[SourcesFileView] = []
