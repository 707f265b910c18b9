"""Walk a cgroup and all groups below it, however deep: an agent may nest groups beyond every path's length and Python's recursion.

So each step goes from an open folder to the next one, down by its name and up by "..", and no path is ever put together.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from console.killswitch.processes import process_of

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def members(folder: Path, limit: int) -> list[int]:
    """Processes in it and below it, as far as they can be read; ``limit`` at most."""
    found: list[int] = []
    with suppress(OSError):  # it is gone, or there are too few descriptors: what was found until then
        for group, _, _ in _deepest_first(folder):
            with suppress(OSError, ValueError):  # removed meanwhile
                found += _processes(group)
            if len(found) >= limit:
                break
    return [pid for pid in found[:limit] if pid > 0]


def remove(folder: Path) -> bool:
    """Takes it away with all groups below it; True when it is gone."""
    try:
        for _, above, name in _deepest_first(folder):
            if name:
                os.rmdir(name, dir_fd=above)
        folder.rmdir()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return not folder.exists()


def _deepest_first(folder: Path) -> Iterator[tuple[int, int, str]]:
    """(descriptor of a group, of the one above it, its name there); last the folder itself, without a name. OSError when one cannot be
    opened."""
    here = os.open(folder, _FOLDER)
    try:
        names, left = list[str](), [_groups_in(here)]
        while names or left[-1]:
            if not left[-1]:
                left.pop()
                above = os.open("..", _FOLDER, dir_fd=here)
                try:
                    yield here, above, names.pop()
                finally:
                    os.close(here)
                    here = above
                continue
            with suppress(FileNotFoundError):  # removed meanwhile
                inside = os.open(name := left[-1].pop(), _FOLDER, dir_fd=here)
                os.close(here)
                here = inside
                names.append(name)
                left.append(_groups_in(here))
        yield here, here, ""
    finally:
        os.close(here)


def _groups_in(folder: int) -> list[str]:
    with os.scandir(folder) as entries:
        return [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]


def _processes(group: int) -> list[int]:
    """Of a threaded group, which lists none (EOPNOTSUPP), those that have a thread in it."""
    try:
        return _numbers(group, "cgroup.procs")
    except OSError as error:
        if error.errno != errno.EOPNOTSUPP:
            raise
    return list(dict.fromkeys(process_of(thread) for thread in _numbers(group, "cgroup.threads")))


def _numbers(group: int, name: str) -> list[int]:
    """OSError when the file is gone."""
    with open(os.open(name, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW, dir_fd=group), encoding="ascii") as file:
        return [int(line) for line in file]
