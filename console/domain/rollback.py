"""Rollback records as values."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

FACTS = (
    "record_id", "agent_id", "context_id", "kind", "path", "before_sha256", "before_size", "before_mode", "before_uid", "before_gid",
    "undoes", "created_at",
)  # fmt: skip
"""Columns of a rollback record that never change once it is written, in the order in which they are hashed."""
RECORDS_FILE = "records.db"
"""Where the records are, in the instance's rollback folder; the table is ``records``."""


def facts_digest(facts: Iterable[object]) -> str:
    """SHA-256 in hexadecimal over a record's `FACTS`: it is on record before the action is allowed, so a row that differs was changed."""
    text = json.dumps(list(facts), separators=(",", ":"), ensure_ascii=True, default=str)
    return hashlib.sha256(b"watchfloor-rollback-facts-1\n" + text.encode()).hexdigest()


class RollbackKind(StrEnum):
    """What the record can put back."""

    FILE_WRITE = "file_write"
    FILE_DELETE = "file_delete"


class RollbackState(StrEnum):
    """As the console words them."""

    CAN_RESTORE = "can_restore"
    RESTORED = "restored"
    CONFLICT = "conflict"
    """The file changed since the recorded action."""
    NEWER_EXISTS = "newer_exists"
    UNKNOWN = "unknown"
    """The record says an action was about to happen; whether it did is not known."""


@dataclass(frozen=True, slots=True)
class RollbackRecord:
    """A snapshot written *before* a destructive action."""

    record_id: str
    agent_id: str
    context_id: str
    kind: RollbackKind
    path: str
    """Relative to the context's workspace."""
    before_sha256: str | None
    """Content hash of the snapshot; None: the file did not exist before."""
    before_size: int
    before_mode: int
    after_sha256: str | None
    """Content hash seen after the action, once known; None with after_known: the file was gone."""
    after_known: bool
    created_at: float
    state: RollbackState
    restored_at: float | None = None
    restored_by: str = ""
    facts_sha256: str = ""
    """`facts_digest` of the row as it is now."""
