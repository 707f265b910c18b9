"""Choose the homes in which a source looks, and read the files of other accounts there safely."""

from __future__ import annotations

import os
import pwd
import stat
from dataclasses import dataclass
from pathlib import Path

_MAX_HOMES = 200


@dataclass(frozen=True, slots=True)
class ForeignFile:
    """The bytes of a file we do not own and what the kernel says of it."""

    data: bytes
    uid: int
    whole: bool
    """False: there is more than was read."""


@dataclass(frozen=True, slots=True)
class OwnHome:
    """The home of agents of ours: the workspace they share."""

    path: Path
    agents: tuple[str, ...]
    """Those of them that live."""
    hidden: bool = False
    """Their processes cannot be told apart from here (another kernel): only the home says whose a session is."""


def homes(root: Path | None) -> list[Path]:
    """The given folder alone, else our own home, and as root those of all accounts."""
    if root is not None:
        return [root]
    own = Path.home()
    found = [own]
    if os.geteuid() == 0:
        found += [Path(entry.pw_dir) for entry in pwd.getpwall() if entry.pw_dir.startswith("/")]
    kept = dict.fromkeys(home for home in found if home != Path("/"))
    return list(kept)[:_MAX_HOMES]


def read_foreign(path: Path, cap: int, *, follow: bool = False) -> ForeignFile:
    """The first ``cap`` bytes of a regular file. A link (unless ``follow``), FIFO, device or folder raises OSError, and nothing blocks."""
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOCTTY | os.O_NONBLOCK | (0 if follow else os.O_NOFOLLOW)
    fd = os.open(path, flags)
    try:
        seen = os.fstat(fd)
        if not stat.S_ISREG(seen.st_mode):
            raise OSError(f"{path.name} is not a regular file")
        data = b""
        while len(data) <= cap and (part := os.read(fd, cap + 1 - len(data))):
            data += part
        return ForeignFile(data[:cap], seen.st_uid, len(data) <= cap)
    finally:
        os.close(fd)


def is_below(home: Path, folder: Path) -> bool:
    """Whether ``folder`` is a folder of ``home`` with no link on the way: what agents own must lead nowhere else."""
    try:
        for step in (folder, *folder.parents):
            if step == home:
                return True
            if not stat.S_ISDIR(step.lstat().st_mode):
                return False
    except OSError:
        return False
    return False
