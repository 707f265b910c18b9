"""A folder that a person named, as the file system knows it: agents, mounts and sockets see folders, never the links that lead to them."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from console.domain.errors import UsageProblem

MOST_LINKS = 40
"""As many as the kernel follows (path_resolution(7))."""


def real_folder(named: Path) -> Path:
    """Return the real folder, with every link on the way followed once, here. It need not exist yet. All further checks use the result.

    Raises UsageProblem for a link that any account could have made: one in a world-writable folder, owned by neither this account nor the
    folder's owner.
    """
    # The kernel's own rule: fs.protected_symlinks in proc(5).
    path = Path(named).expanduser().absolute()
    try:
        for _ in range(MOST_LINKS):
            link = next((p for p in reversed((path, *path.parents)) if p.is_symlink()), None)
            if link is None:
                return Path(os.path.realpath(path))
            _check(link)
            path = link.parent / link.readlink() / path.relative_to(link)
    except OSError as error:
        raise UsageProblem(f"{named} cannot be followed: {error.strerror or error}.", "Name the folder itself.") from error
    raise UsageProblem(f"{named} leads through too many links.", "Name the folder itself.")


def _check(link: Path) -> None:
    owner, around = link.lstat().st_uid, link.parent.stat()
    if around.st_mode & stat.S_IWOTH and owner not in (os.geteuid(), around.st_uid):
        raise UsageProblem(f"{link} is a link that another account made (uid {owner}).", "Name the folder itself, or remove the link.")
