"""Deleting a session's workspace: first out of reach by one rename, then for good, never following anything.

``<root>/.quarantine/<context id>-<nonce>`` belongs to the supervisor alone; what a crash left there goes at the next sweep.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
from dataclasses import dataclass
from pathlib import Path

from console.domain.agent import check_context_id
from console.domain.errors import Conflict, ConsoleError, NotFound
from console.sandbox.workspace.disk_use import Astray, empty, open_up

QUARANTINE = ".quarantine"
_NAME = re.compile(r"^(?P<context>[a-z0-9][a-z0-9-]{0,62})-(?P<nonce>[0-9a-f]{8})\Z")
_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
SWEEP_S = 20.0


@dataclass(frozen=True, slots=True)
class Swept:
    """One quarantined workspace after a sweep."""

    context_id: str
    gone: bool
    why: str = ""
    """Why it is still there."""


def quarantine(root: Path, context_id: str) -> str:
    """Moves a workspace out of every agent's reach; its name there. Its agents must have ended.

    Raises UsageProblem (bad id), NotFound, Conflict (a link or a file stands there), ConsoleError.
    """
    check_context_id(context_id)
    with contextlib.ExitStack() as stack:
        try:
            base = os.open(root, _FLAGS)
            stack.callback(os.close, base)
            inner = _quarantine_folder(base)
            stack.callback(os.close, inner)
            _open_up(base, context_id)
            name = f"{context_id}-{secrets.token_hex(4)}"
            # One rename takes it out of reach at once; deleting in place would race with whatever still writes there.
            os.rename(context_id, name, src_dir_fd=base, dst_dir_fd=inner)
            # Both folders: after a power cut the workspace must be in one of them, and a deleted session must not come back.
            os.fsync(inner)
            os.fsync(base)
        except FileNotFoundError as error:
            raise NotFound(f"Session {context_id} has no workspace.", "It may be gone already.") from error
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.ENOTDIR):
                raise Conflict(f"The workspace of {context_id} is not a folder.", "Look into it by hand; nothing was deleted.") from error
            raise ConsoleError(f"The workspace of {context_id} cannot be moved: {error.strerror}.", "Look at the disk.") from error
    return name


def _open_up(base: int, context_id: str) -> None:
    """To be moved, a folder must be writable: an agent that runs as we do may have closed its own. OSError ELOOP, ENOTDIR for no folder."""
    handle = os.open(context_id, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=base)
    try:
        open_up(handle)
    finally:
        os.close(handle)


def _quarantine_folder(base: int) -> int:
    with contextlib.suppress(FileExistsError):
        os.mkdir(QUARANTINE, 0o700, dir_fd=base)
    fd = os.open(QUARANTINE, _FLAGS, dir_fd=base)
    seen = os.fstat(fd)
    # A folder that another account made first could be exchanged under us while its content is deleted.
    if seen.st_uid != os.geteuid():
        os.close(fd)
        raise PermissionError(errno.EPERM, "the quarantine belongs to another account")
    os.fchmod(fd, 0o700)
    return fd


def sweep(root: Path, limit_s: float = SWEEP_S) -> list[Swept]:
    """Deletes what is in the quarantine, each within ``limit_s``; what is not done in time goes on at the next sweep. Never raises."""
    found: list[Swept] = []
    with contextlib.ExitStack() as stack:
        try:
            base = os.open(root, _FLAGS)
            stack.callback(os.close, base)
            inner = os.open(QUARANTINE, _FLAGS, dir_fd=base)
            stack.callback(os.close, inner)
            with os.scandir(inner) as entries:
                names = sorted(entry.name for entry in entries)
        except OSError:
            return found
        for name in names:
            match = _NAME.match(name)
            if match is not None:
                found.append(_delete(inner, name, match["context"], limit_s))
    return found


def _delete(quarantined: int, name: str, context_id: str, limit_s: float) -> Swept:
    try:
        fd = os.open(name, _FLAGS, dir_fd=quarantined)
        try:
            if not empty(fd, limit_s):
                return Swept(context_id, False, "not done yet")
        finally:
            os.close(fd)
        os.rmdir(name, dir_fd=quarantined)
    except Astray as error:
        return Swept(context_id, False, str(error.strerror))
    except OSError as error:
        mounted = error.errno in (errno.EBUSY, errno.ENOTEMPTY)
        return Swept(context_id, False, f"{error.strerror}: something may be mounted in it" if mounted else str(error.strerror))
    return Swept(context_id, True)
