"""New files in folders that others may have filled: nothing is followed, nothing that is there is opened."""

from __future__ import annotations

import os

from console.domain.errors import ConsoleError

DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_TRIES = 20


def write_new(folder: int, name: str, body: bytes, mode: int, owner: tuple[int, int] | None = None) -> None:
    """A new file, or none: a name that is taken gets a number, a few times. Closes ``folder``.

    ``owner``: uid and gid of the file (-1: as it is), where this process may say that. Raises OSError and ConsoleError.
    """
    try:
        for number in range(_TRIES):
            tried = name if not number else name.replace(".txt", f"-{number}.txt")
            try:
                file = os.open(tried, _FLAGS, mode, dir_fd=folder)
            except FileExistsError:
                continue
            try:
                os.write(file, body)
                if owner is not None:
                    give(file, owner)
                    os.fchmod(file, mode)
            finally:
                os.close(file)
            return
        raise ConsoleError(f"{name} is there already, many times.", "")
    finally:
        os.close(folder)


def give(descriptor: int, owner: tuple[int, int]) -> None:
    """Give the file to the folder's owner, so that every account that may read the folder may read it."""
    if os.geteuid() == 0:
        os.fchown(descriptor, *owner)
