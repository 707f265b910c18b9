"""State, conflict and dry run of a record, as pure judgements over what it says and what is on disk now."""

from __future__ import annotations

import time

from console.domain.rollback import RollbackState
from console.rollback.images import ABSENT, Image
from console.rollback.journal import Entry


def state(entry: Entry, now: Image | None, newer: Entry | None) -> RollbackState:
    """As the console words it. ``now`` None: what is there is no plain file of the workspace."""
    if now is not None and entry.after_known and now.sha256 == entry.after_sha256:
        return RollbackState.CAN_RESTORE  # also again, when an earlier restore was itself undone
    if entry.restored_at is not None:
        return RollbackState.RESTORED
    if now is None:
        return RollbackState.CONFLICT
    if entry.after_known and now.sha256 == entry.before_sha256:
        return RollbackState.CAN_RESTORE
    if newer is not None:
        return RollbackState.NEWER_EXISTS
    return RollbackState.CONFLICT if entry.after_known else RollbackState.UNKNOWN


def conflict(entry: Entry, now: Image | None, newer: Entry | None) -> str:
    """Why putting it back now would destroy something, or ''."""
    if now is None:
        return "What is in its place now is not a plain file of the workspace."
    if now.sha256 == entry.before_sha256 or (entry.after_known and now.sha256 == entry.after_sha256):
        return ""
    if entry.restored_at is not None:
        return f"It was put back by {entry.restored_by[:80]} at {_clock(entry.restored_at)}, and the file changed again since{_when(now)}."
    if newer is not None:
        whose = f"put back from {newer.undoes}" if newer.undoes else f"changed again by {newer.agent_id[:80]}"
        return f"It was {whose} at {_clock(newer.created_at)} ({newer.record_id}); restore that record first."
    if entry.after_known:
        return f"What is on disk is not what the agent left: it changed since{_when(now)}."
    return ""


def dry_run(entry: Entry, now: Image | None, why: str) -> tuple[str, ...]:
    """What a restore would do, sentence by sentence."""
    if why:
        return (f"Refused: {why}", "Nothing would be written.")
    if now is None or now.sha256 == entry.before_sha256:
        return ("The file already is as it was before; nothing would be written.",)
    said = []
    if not entry.after_known:
        said.append("Whether the action this snapshot was made for took place is not known; compare both sides.")
    if now != ABSENT:
        said.append(f"Keeps what is on disk now ({now.size:,} bytes, sha256 {(now.sha256 or '')[:12]}) as a new record first.")
    else:
        said.append("Records that nothing is there now, first.")
    if entry.before_sha256 is None:
        said.append(f"Removes {entry.path}: it did not exist before.")
    else:
        verb = "Puts back" if now != ABSENT else "Recreates"
        owner = f"mode {entry.before_mode & 0o777:04o}, owner {entry.before_uid}:{entry.before_gid}"
        said.append(f"{verb} {entry.path}: {entry.before_size:,} bytes, {owner}, sha256 {entry.before_sha256[:12]}.")
    said.append("Can itself be undone.")
    return tuple(said)


def _clock(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at))


def _when(now: Image) -> str:
    """When it was last changed, where that can be seen."""
    return f", last at {_clock(now.stamp[3] / 1e9)}" if now.stamp else " (it is gone)"
