"""Messages about what is on record: rollback records, the audit's chain, and the names of accounts that records hold by number."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta

from console.api.message import SCHEMA_VERSION, Reason, Request, View


class RollbackRow(View, kw_only=True):
    """One record of the list."""

    record_id: str
    agent_id: str
    agent_name: str = ""
    context_id: str
    kind: str
    path: str
    before_size: int = 0
    state: str
    created_at: float
    restored_at: float | None = None
    restored_by: str = ""
    doubt: str = ""
    """Why the audit log does not stand behind this row, in words; empty: it does."""


class RollbackPage(View, kw_only=True):
    """GET /api/rollback, newest first."""

    schema_version: int = SCHEMA_VERSION
    records: list[RollbackRow] = []


class DiffLine(View, kw_only=True):
    """One line of a side-by-side diff: sign is '', '-', '+' or '~'."""

    sign: str
    left_no: int | None = None
    left: str = ""
    right_no: int | None = None
    right: str = ""


class RollbackDetailView(View, kw_only=True):
    """GET /api/rollback/{id}."""

    schema_version: int = SCHEMA_VERSION
    row: RollbackRow
    conflict: str = ""
    """Why a restore would be refused, or empty."""
    before_sha256: str | None = None
    now_sha256: str | None = None
    binary: bool = False
    truncated: bool = False
    diff: list[DiffLine] = []
    """Left: the file on disk now; right: what a restore puts back."""
    dry_run: list[str] = []


class RestoreBody(Request, kw_only=True):
    """POST /api/rollback/{id}/restore."""

    reason: Reason
    expect_now_sha256: str | None = None
    """The content the operator saw on disk (null: the file was absent); anything else answers 409."""


class AuditRow(View, kw_only=True):
    """One record of the hash chain."""

    seq: int
    at: float
    actor: str
    kind: str
    what: str
    verdict: str = ""
    agent_id: str = ""
    hash: str
    previous: str = ""
    data: dict[str, Any] = {}


class AuditPage(View, kw_only=True):
    """GET /api/audit?before=SEQ&limit=200&q=TEXT, newest first."""

    schema_version: int = SCHEMA_VERSION
    rows: list[AuditRow] = []
    total: int = 0
    newest: int = 0


class AuditPiece(View, kw_only=True):
    """GET /api/audit/export?format=jsonl&after=SEQ, oldest first: a part of the exported file."""

    schema_version: int = SCHEMA_VERSION
    text: str = ""
    records: int = 0
    last: int = 0
    """Number of its last record: what the next piece follows. The piece without a record is the last."""


class AcknowledgeLossBody(Request, kw_only=True):
    """POST /api/audit/acknowledge: an operator takes note of records that were lost."""

    reason: Reason


RECEIPT_MAX = 200_000
"""Letters of a sealed receipt that is sent. A body has room for it with its quotation marks escaped."""


class VerifyBody(Request, kw_only=True):
    """POST /api/audit/verify: what the asker kept elsewhere and the log must still lead to. Empty: nothing more than the host has."""

    receipt: Annotated[str, Meta(max_length=RECEIPT_MAX)] | None = None
    """A sealed receipt, letter for letter; an empty one is a broken one."""
    name: Annotated[str, Meta(max_length=255)] = ""
    """Its file's name."""
    anchors: Annotated[list[Annotated[str, Meta(max_length=90)]], Meta(max_length=100)] = []
    """``N:HASH``."""


class AuditVerdict(View, kw_only=True):
    """POST /api/audit/verify."""

    schema_version: int = SCHEMA_VERSION
    whole: bool
    records: int
    first_bad: int | None = None
    why: str = ""
    head: str = ""
    checked_at: float = 0.0
    unknown: list[str] = []
    """What cannot be told though the log is whole, in words: never green."""
    compared_with: list[str] = []
    retired: list[str] = []
    """Keys that count no more, in words."""


class AccountView(View):
    """An account of the host. ``login`` is empty when the host knows none of this number; ``full_name`` also when it has none."""

    uid: int
    login: str = ""
    full_name: str = ""


class AccountsView(View, kw_only=True):
    """GET /api/accounts?uids=0,1000."""

    schema_version: int = SCHEMA_VERSION
    accounts: list[AccountView] = []
