"""Bodies and views of reviewing the allowlist: marks, history, differences, backtests, files."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from console.api.message import SCHEMA_VERSION, Request, View
from console.api.messages import AllowlistEntryBody

Days = Annotated[int, Meta(ge=1, le=365)]
EntryId = Annotated[str, Meta(max_length=64)]


class FieldChangeView(View, kw_only=True):
    """One field of a changed entry."""

    field: str
    before: str
    after: str


class EntryChangeView(View, kw_only=True):
    """One entry that differs between two versions."""

    entry_id: str
    what: Literal["added", "removed", "changed"]
    host: str
    fields: list[FieldChangeView] = []


class AllowlistVersionView(View, kw_only=True):
    """One version with what it changed against the one before."""

    version: int
    by: str
    reason: str
    at: float
    entries: int
    readable: bool = True
    """False: what is stored is damaged; it reads as empty, which denies."""
    changes: list[EntryChangeView] = []


class AllowlistHistoryView(View, kw_only=True):
    """GET /api/allowlist/history, newest first."""

    schema_version: int = SCHEMA_VERSION
    live: int = 0
    versions: list[AllowlistVersionView] = []


class RevertBody(Request, kw_only=True):
    """POST /api/allowlist/revert: an old version's entries become the newest version's."""

    version: Annotated[int, Meta(ge=0, le=1 << 60)]
    reason: Annotated[str, Meta(max_length=500)]
    base_version: int | None = None


class BacktestBody(Request, kw_only=True):
    """POST /api/allowlist/backtest: one change, judged against recorded requests.

    ``entry`` alone is added; with ``replaces`` it takes that entry's place; ``remove`` takes an entry out; ``version`` goes back.
    """

    entry: AllowlistEntryBody | None = None
    replaces: EntryId | None = None
    remove: EntryId | None = None
    version: Annotated[int, Meta(ge=0, le=1 << 60)] | None = None
    days: Days = 30


class BacktestGroup(View, kw_only=True):
    """Past requests that would be decided differently."""

    method: str
    host: str
    path: str
    """The first one's; empty for tunnels."""
    count: int
    agents: list[str] = []
    last_at: float


class BacktestView(View, kw_only=True):
    """What the change would have done."""

    schema_version: int = SCHEMA_VERSION
    days: int
    judged: int
    changed: int
    left_out: int = 0
    """Blocked for what they were or where their name led, which a backtest cannot judge."""
    incomplete: bool = False
    """More requests are recorded than were judged; the newest were."""
    newly_allowed: list[BacktestGroup] = []
    newly_blocked: list[BacktestGroup] = []
    words: str = ""
    """One sentence for the person."""


class AllowlistFileView(View, kw_only=True):
    """GET /api/allowlist/file."""

    schema_version: int = SCHEMA_VERSION
    version: int
    text: str


class ImportBody(Request, kw_only=True):
    """POST /api/allowlist/import: entries of a file are added (those there already stay as they are), or replace the whole list."""

    text: Annotated[str, Meta(max_length=1 << 20)]
    replace: bool = False
    dry_run: bool = False
    reason: Annotated[str, Meta(max_length=500)] = ""
    base_version: int | None = None
    days: Days = 30


class ImportView(View, kw_only=True):
    """What an import changed, or would change."""

    schema_version: int = SCHEMA_VERSION
    version: int
    """Of the list that is live now."""
    applied: bool
    changes: list[EntryChangeView] = []
    backtest: BacktestView | None = None
    words: str = ""
