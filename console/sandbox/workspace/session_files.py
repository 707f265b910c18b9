"""Keep what lies beside a session's workspace: its description (``.context.json``) and the lock that is held while it is used.

Two supervisors may share one workspace root. Locks lie in ``<root>/.locks``, which no agent can write. A lock's time of last change is when
any supervisor last used the session. A lock with words in it is a hold: no supervisor deletes that session.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from console.domain.agent import check_context_id
from console.domain.errors import Conflict, ConsoleError
from console.domain.ids import CONTEXT_ID

LOCKS = ".locks"
HOLD_MAX = 2000
NAME = ".context.json"
_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class ContextNote:
    """The text of ``.context.json``: for people and agents to read; nothing is ever decided by it."""

    context_id: str
    agent: str
    """Type of the agents that work in it, or empty."""
    namespace: str
    created_at: str
    """ISO 8601, UTC."""
    last_accessed_at: str
    ttl_days: float
    disk_usage_bytes: int


def write_note(root: Path, note: ContextNote) -> None:
    """Puts ``.context.json`` into the session's workspace by rename; whatever an agent put in its place is replaced, never followed.

    Raises UsageProblem on a bad id, ConsoleError when it cannot be written.
    """
    check_context_id(note.context_id)
    draft = f".context-{secrets.token_hex(8)}"
    with contextlib.ExitStack() as stack:
        try:
            base = os.open(root, _FLAGS)
            stack.callback(os.close, base)
            home = os.open(note.context_id, _FLAGS, dir_fd=base)
            stack.callback(os.close, home)
            fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o444, dir_fd=home)
            try:
                with os.fdopen(fd, "w") as out:
                    # The umask may have taken the agent's right to read it.
                    os.fchmod(out.fileno(), 0o444)
                    out.write(json.dumps(asdict(note), indent=2))
                os.replace(draft, NAME, src_dir_fd=home, dst_dir_fd=home)
            except OSError:
                os.unlink(draft, dir_fd=home)
                raise
        except OSError as error:
            raise ConsoleError(f"The note of {note.context_id} cannot be written: {error.strerror}.", "Look at the workspace.") from error


class ContextLock:
    """Held while a session is used. Shared by those who use it; alone by who deletes it."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def close(self) -> None:
        """Lets go. Twice is once."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def use(root: Path, context_id: str, *, counts: bool = True) -> ContextLock:
    """Take the session's lock together with its other users. ``counts``: this use prolongs the session's time.

    Raises Conflict while a supervisor deletes the session, UsageProblem, ConsoleError.
    """
    fd = _locked(root, context_id, fcntl.LOCK_SH)
    if fd is None:
        raise Conflict(f"The workspace of {context_id} is being deleted.", "Try again in a moment. You then get a new, empty session.")
    if counts:
        os.utime(fd)
    return ContextLock(fd)


@contextmanager
def alone(root: Path, context_id: str) -> Iterator[bool]:
    """Lock the session when no supervisor uses it. Yields whether it did; the lock holds until the block ends."""
    fd = _locked(root, context_id, fcntl.LOCK_EX)
    try:
        yield fd is not None
    finally:
        if fd is not None:
            os.close(fd)


def hold_on_disk(root: Path, context_id: str, words: str) -> None:
    """Writes down why the session is held, for every supervisor that shares the root; empty words end it. Raises ConsoleError."""
    fd = _opened(root, context_id)
    try:
        used = os.fstat(fd).st_mtime_ns
        raw = words.encode(errors="replace")[:HOLD_MAX]
        os.pwrite(fd, raw, 0)  # before it is cut: a power loss between leaves it held, in whichever words
        os.ftruncate(fd, len(raw))
        os.fsync(fd)
        os.utime(fd, ns=(used, used))  # a hold is no use of the session
    except OSError as error:
        raise ConsoleError(f"The hold of {context_id} cannot be written: {error.strerror}.", "Look at the disk.") from error
    finally:
        os.close(fd)


def held_on_disk(root: Path, context_id: str) -> str:
    """Why any supervisor holds the session, or nothing. What cannot be read counts as held."""
    check_context_id(context_id)
    try:
        fd = os.open(root / LOCKS / context_id, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return ""
    except OSError as error:
        return f"its lock cannot be read: {error.strerror}"
    try:
        return os.read(fd, HOLD_MAX).decode(errors="replace")
    except OSError as error:
        return f"its lock cannot be read: {error.strerror}"
    finally:
        os.close(fd)


def last_used(root: Path, context_id: str) -> float | None:
    """Return when any supervisor last used the session, in seconds since the epoch; None: never."""
    check_context_id(context_id)
    try:
        return (root / LOCKS / context_id).lstat().st_mtime
    except OSError:
        return None


def contexts_on_disk(root: Path) -> list[str]:
    """Sessions that have a workspace. Whatever else lies in the root is not one."""
    try:
        with os.scandir(root) as entries:
            return sorted(e.name for e in entries if CONTEXT_ID.match(e.name) and e.is_dir(follow_symlinks=False))
    except OSError:
        return []


def _locked(root: Path, context_id: str, how: int) -> int | None:
    fd = _opened(root, context_id)
    try:
        # flock ends with its process: a supervisor that is killed holds no session.
        fcntl.flock(fd, how | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        return None
    return fd


def _opened(root: Path, context_id: str) -> int:
    check_context_id(context_id)
    try:
        folder = root / LOCKS
        # 0711: an agent passes to its own workspace, and cannot list which other sessions there are.
        root.mkdir(mode=0o711, parents=True, exist_ok=True)
        # An agent that could lock its session would keep it from ever being deleted.
        folder.mkdir(mode=0o700, exist_ok=True)
        above = os.open(folder, _FLAGS)
        try:
            return os.open(context_id, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=above)
        finally:
            os.close(above)
    except OSError as error:
        raise ConsoleError(f"The lock of {context_id} cannot be opened: {error.strerror}.", "Look at the disk.") from error
