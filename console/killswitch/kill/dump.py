"""The kernel's lists of sockets: read for the regular look, and within 10 ms in parallel to the first SIGKILL of a kill."""

from __future__ import annotations

import contextlib
import errno
import threading
import time
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path

from console.killswitch.sock_diag import Raw, Reader

DUMP_S = 0.010
"""What the kernel did not list in this time is not recorded."""
LOOK_DUMP_S = 0.5
MOST_NAMESPACES = 32


@dataclass(slots=True)
class Taken:
    """The dump of one kill, while it is made and when it is made."""

    deadline: float
    raws: list[Raw] = field(default_factory=list)
    trouble: str = ""
    done: threading.Event = field(default_factory=threading.Event)


class Dump:
    """Open sockets in our own network namespace and in those of agents, and the thread that serves kills."""

    def __init__(self) -> None:
        self._readers: dict[int, Reader] = {}
        """By namespace, for the regular look; 0 is our own."""
        self._kill_readers: dict[int, Reader] = {}
        """A second socket in each, so that a kill waits for no look."""
        self._refused: set[int] = set()
        """Namespaces that cannot be entered."""
        self._asked: deque[Taken] = deque(maxlen=64)
        self._wanted = threading.Semaphore(0)
        self._has_ended = False

    def start(self) -> None:
        """The thread. Without it every kill says "not recorded"."""
        with contextlib.suppress(OSError):
            self._kill_readers[0] = Reader()
        with contextlib.suppress(RuntimeError):  # no thread to be had
            threading.Thread(target=self._serve, name="socket-dump", daemon=True).start()

    def end(self) -> None:
        """Ends the thread, and lets every namespace go."""
        self._has_ended = True
        self._wanted.release()
        self.open({})
        for readers in (self._readers, self._kill_readers):
            for reader in readers.values():
                reader.close()

    def ask(self) -> Taken:
        """Asks for the dump of a kill. Returns at once; the thread does the rest."""
        taken = Taken(time.monotonic() + DUMP_S)
        self._asked.append(taken)
        self._wanted.release()
        return taken

    def _serve(self) -> None:
        while self._wanted.acquire() and not self._has_ended:
            if self._asked:
                self.take(self._asked.popleft())

    def take(self, taken: Taken) -> None:
        """Reads every namespace, ours first: there the programs are that agents could ask for work."""
        try:
            if not self._kill_readers:
                taken.trouble = "the kernel gives this account no list of sockets"
            for namespace, reader in list(self._kill_readers.items()):
                try:
                    taken.raws.append(reader.read(taken.deadline))
                except OSError as error:
                    if error.errno != errno.EBADF or not namespace:  # closed by the look: the last agent in it has ended
                        raise
        except OSError as error:
            taken.trouble = words_of(error)
        finally:
            taken.done.set()

    def open(self, namespaces: dict[int, int]) -> None:
        """Sockets in our own namespace and in these, each with the pid of a process in it; those of no agent are closed."""
        own = Path("/proc/thread-self/ns/net").stat().st_ino
        others = [(n, pid) for n, pid in namespaces.items() if n != own and n not in self._refused]
        wanted: dict[int, int | None] = {0: None, **dict(others[:MOST_NAMESPACES])}
        for namespace, pid in wanted.items():
            try:
                for readers in (self._readers, self._kill_readers):
                    if namespace not in readers:
                        readers[namespace] = Reader(pid)
            except OSError:
                self._refused.add(namespace)
        self._refused &= namespaces.keys()
        for readers in (self._readers, self._kill_readers):
            for namespace in readers.keys() - wanted.keys():
                readers.pop(namespace).close()

    def look(self) -> tuple[list[Raw], dict[int, str]]:
        """(what each namespace has now, why one could not be read; 0 is our own)."""
        found, trouble = list[Raw](), dict[int, str]()
        for namespace, reader in list(self._readers.items()):
            try:
                found.append(reader.read(time.monotonic() + LOOK_DUMP_S))
            except OSError as error:
                trouble[namespace] = words_of(error)
        if 0 not in self._readers:
            trouble[0] = "the kernel gives this account no list of sockets"
        return found, trouble


def words_of(error: OSError) -> str:
    """For the middle of a sentence."""
    return (error.strerror or str(error)).rstrip(".")
