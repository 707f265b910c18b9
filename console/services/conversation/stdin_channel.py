"""Open the way in to a started program: a FIFO in the folder of the agent's own socket. Only the agent's sandbox shows that folder.

A shell beside the program holds the FIFO open for both directions, and so does the supervisor. So no message is lost when the supervisor
restarts, or before the program's first read. The program reads end-of-file after both have closed it. A line in a second FIFO tells the
shell to close its end.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import struct
import termios
from contextlib import suppress
from pathlib import Path

from console.domain.conversation import CHANNEL, ENDING
from console.domain.errors import Conflict, Unavailable
from console.services.hooks.program_hooks import remove

SOCKET = "agent.sock"
ROOM = 1 << 20
"""Bytes that wait for the program at most; what does not fit is refused, whole."""


class Channel:
    """One agent's. Not thread-safe: on the loop's thread."""

    __slots__ = ("_fd", "_ending_fd", "ended_by", "_path", "_ending")

    def __init__(self, folder: Path) -> None:
        self._path, self._ending = folder / CHANNEL, folder / ENDING
        self._fd = self._ending_fd = -1
        self.ended_by = ""
        """Who asked it to end: nothing more is said to it."""

    def make(self, uid: int, gid: int) -> None:
        """New FIFOs of the agent's. Raises OSError."""
        for path in (self._path, self._ending):
            with suppress(FileNotFoundError):
                path.unlink()
            os.mkfifo(path, 0o600)
            if os.geteuid() == 0:
                os.chown(path, uid, gid, follow_symlinks=False)
        self.open()

    def open(self) -> None:
        """The one that is there already (after a restart). Raises OSError; what is no FIFO is refused, never followed."""
        fd = _fifo(self._path)
        with suppress(OSError):
            fcntl.fcntl(fd, fcntl.F_SETPIPE_SZ, ROOM)
        self._fd = fd

    @property
    def is_open(self) -> bool:
        """Whether anything can be written."""
        return self._fd >= 0

    def write(self, data: bytes) -> None:
        """All of it or nothing. Raises Conflict when the program does not read, Unavailable when the channel is gone."""
        if self._fd < 0:
            raise Unavailable("Its input is not available, because the channel to it is gone.", "End it and start it again.")
        waiting = struct.unpack("i", fcntl.ioctl(self._fd, termios.FIONREAD, b"\0" * 4))[0]
        room = fcntl.fcntl(self._fd, fcntl.F_GETPIPE_SZ)
        # A pipe holds pages, not bytes (pipe(7)): what lies in a page that is not full takes its rest along.
        if waiting + len(data) > room - 8192:
            raise Conflict("It does not read its messages: earlier ones still wait.", "Interrupt or end it.")
        try:
            written = os.write(self._fd, data)
        except BlockingIOError as error:
            raise Conflict("It does not read its messages: earlier ones still wait.", "Interrupt or end it.") from error
        if written < len(data):
            os.close(self._fd)
            self._fd = -1
            raise Unavailable("Its input is not available, because a message went in only in part.", "End it and start it again.")

    def finish(self) -> None:
        """No more comes: it reads what waits, then end-of-file. Again is the same. Raises OSError."""
        if self._ending_fd < 0:
            self._ending_fd = _fifo(self._ending)  # kept: the line waits for a shell that has not looked yet
        with suppress(BlockingIOError):  # full: told often enough
            os.write(self._ending_fd, b"\n")
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def close(self, *, remove: bool = False) -> None:
        """Lets go; ``remove``: the agent has ended."""
        for fd in (self._fd, self._ending_fd):
            if fd >= 0:
                os.close(fd)
        self._fd = self._ending_fd = -1
        for path in (self._path, self._ending) if remove else ():
            with suppress(OSError):
                path.unlink()


def _fifo(path: Path) -> int:
    """Open for both directions. Raises OSError; what is no FIFO is refused, never followed."""
    fd = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    if not stat.S_ISFIFO(os.fstat(fd).st_mode):
        os.close(fd)
        raise OSError(errno.EINVAL, "it is no FIFO")
    return fd


def sweep_channels(agents_dir: Path, alive: set[str]) -> None:
    """At start-up: what agents that died while no supervisor ran left in their folders. Nothing is followed; what is not ours stays."""
    with suppress(OSError), os.scandir(agents_dir) as folders:
        for entry in folders:
            if entry.name in alive or not entry.is_dir(follow_symlinks=False):
                continue
            folder = Path(entry.path)
            remove(folder)
            for name in (CHANNEL, ENDING, SOCKET):
                with suppress(OSError):
                    (folder / name).unlink()
            with suppress(OSError):
                folder.rmdir()
