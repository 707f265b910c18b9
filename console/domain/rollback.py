"""Rollback records as values."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


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
