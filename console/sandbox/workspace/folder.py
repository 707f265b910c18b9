"""The folder of one session: ``<root>/<context id>/{scripts,data,repos,output}``, made and opened beneath ``root`` only."""

from __future__ import annotations

import contextlib
import errno
import os
from pathlib import Path

from console.domain.agent import ContextId, check_context_id
from console.domain.errors import Conflict, ConsoleError

PARTS = ("scripts", "data", "repos", "output")
_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def open_workspace(root: Path, context_id: ContextId, uid: int, gid: int) -> Path:
    """Makes the session's workspace where it is missing and gives it to ``uid`` and ``gid``; its resolved path.

    Every step goes through descriptors without following a link, for what is inside belongs to an agent. Raises UsageProblem
    on a bad id, Conflict when something else stands where a folder belongs, ConsoleError when the disk refuses.
    """
    check_context_id(context_id)
    with contextlib.ExitStack() as stack:
        try:
            # 0711: an agent passes to its own workspace, and cannot list which other sessions there are.
            root.mkdir(mode=0o711, parents=True, exist_ok=True)
            base = os.open(root, _FLAGS)
            stack.callback(os.close, base)
            home = _own_folder(base, context_id, uid, gid)
            stack.callback(os.close, home)
            for part in PARTS:
                os.close(_own_folder(home, part, uid, gid))
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.ENOTDIR):
                raise Conflict(
                    f"The workspace of {context_id} has a link or a file where a folder belongs.", "Look into it before using it again."
                ) from error
            raise ConsoleError(f"The workspace of {context_id} cannot be made: {error.strerror}.", "Look at the disk.") from error
    return root.resolve() / context_id


def _own_folder(parent: int, name: str, uid: int, gid: int) -> int:
    """A descriptor of folder ``name`` in ``parent``, 0700 and owned by ``uid``. OSError ELOOP or ENOTDIR for anything else."""
    with contextlib.suppress(FileExistsError):
        os.mkdir(name, 0o700, dir_fd=parent)
    fd = os.open(name, _FLAGS, dir_fd=parent)
    seen = os.fstat(fd)
    # By descriptor: the name may lead to another folder by now, which must not be given away.
    if os.geteuid() == 0 and (seen.st_uid, seen.st_gid) != (uid, gid):
        os.fchown(fd, uid, gid)
    return fd
