"""What could bring an agent back, on the wire: one report per session, each finding with who may run it and when."""

from __future__ import annotations

from typing import Literal

from console.api.message import SCHEMA_VERSION, View


class FindingView(View, kw_only=True):
    """One place that differs from the session's baseline. Paths and texts are escaped already."""

    root: str
    path: str
    kind: str
    change: Literal["added", "changed", "removed", "unverified"]
    runs: str
    """Who may run it, and when."""
    what: str
    before_sha256: str
    after_sha256: str
    """Empty for what is not read (links, FIFOs, too large)."""
    uid: int | None
    mtime: float | None
    size: int | None
    excerpt: str
    could_write: str
    """``yes: ...`` or ``no: ...``: whether the session's agents could have written it."""
    note: str


class PersistenceReport(View, kw_only=True):
    """One session. With ``doubts`` the answer is unknown, never fine."""

    context_id: str
    looked_at: float
    baseline_at: float | None
    doubts: list[str]
    findings: list[FindingView]
    left_out: int
    """Findings beyond those listed."""
    not_looked: list[str]
    quarantine: str


class PersistenceView(View, kw_only=True):
    """GET /api/persistence: the latest report of each session that was looked at; with ``?session=ID`` that one, looked at now."""

    schema_version: int = SCHEMA_VERSION
    reports: list[PersistenceReport]
    left_out: int = 0
    """Findings that were known and are not in this answer, which is bounded; each report's own ``left_out`` counts its share."""
    words: str = ""
    """What was left out and how to see it; empty: nothing was."""
