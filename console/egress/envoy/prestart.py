"""One child process kept started ahead of its need: a Python takes longer to start than everything else of a switch together."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from console.domain.errors import ConsoleError

REFILL_S = 0.3
"""Seconds after the spare was taken until the next one is started: the taker is busy with something that must be quick."""


class Spare(Protocol):
    """A process that waits for its one order."""

    def waits(self) -> bool:
        """Whether it still lives."""

    def discard(self) -> None:
        """Ends it, unused."""


S = TypeVar("S", bound=Spare)


class Warm(Generic[S]):
    """Hand out the spare once, and start the next one behind it. Any thread. Without a spare the caller starts a process itself."""

    def __init__(self, name: str, start: Callable[[], S]) -> None:
        self._name, self._start = name, start
        self._lock = threading.Lock()
        self._spare: S | None = None
        self._closed = threading.Event()
        self._closed.set()
        self._filler: threading.Thread | None = None

    def open(self) -> None:
        """From now on one is kept."""
        self._closed.clear()
        self._fill(0.0)

    def close(self) -> None:
        """Ends the one that waits; none is kept any more."""
        self._closed.set()
        with self._lock:
            filler, self._filler = self._filler, None
        if filler is not None:
            filler.join()
        with self._lock:
            spare, self._spare = self._spare, None
        if spare is not None:
            spare.discard()

    def take(self) -> S:
        """One that waits for its order. Raises ConsoleError, OSError when none can be started."""
        with self._lock:
            spare, self._spare = self._spare, None
        self._fill(REFILL_S)
        if spare is None:
            return self._start()
        # It may have been killed while it waited, for want of memory for example; nothing tells us before it is needed.
        if not spare.waits():
            spare.discard()
            return self._start()
        return spare

    def _fill(self, after_s: float) -> None:
        with self._lock:
            if self._closed.is_set() or (self._filler is not None and self._filler.is_alive()):
                return
            self._filler = threading.Thread(target=self._run, args=(after_s,), name=f"egress-warm-{self._name}", daemon=True)
            self._filler.start()

    def _run(self, after_s: float) -> None:
        if self._closed.wait(after_s):
            return
        try:
            spare = self._start()
        except (ConsoleError, OSError):
            return  # whoever needs one is told why
        with self._lock:
            if self._spare is None:
                self._spare = spare
                return
        spare.discard()
