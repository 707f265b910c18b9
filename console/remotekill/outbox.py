"""Effects on their way to the supervisor: told in order, told again until taken, what stops ahead of what loosens."""

from __future__ import annotations

import threading
from collections.abc import Callable

from console.domain.errors import ConsoleError
from console.remotekill.machine import Effect, Latch, LeaseRenewed, LiftSoftStop, SoftStop


class Outbox:
    """Filled and emptied by the poller's thread; ``waiting`` may be asked from any."""

    def __init__(self, tell: Callable[[Effect], None]) -> None:
        self._tell = tell
        self._lock = threading.Lock()
        self._waiting: list[Effect] = []

    @property
    def waiting(self) -> int:
        """Effects not yet taken; more than none means that the guard may not know what the poller knows."""
        with self._lock:
            return len(self._waiting)

    def put(self, effect: Effect) -> None:
        """A newer word on the soft stop or the lease replaces the older one; a latch goes first."""
        with self._lock:
            match effect:
                case Latch():
                    self._drop(LiftSoftStop | LeaseRenewed)
                    behind = sum(isinstance(e, Latch) for e in self._waiting)
                    self._waiting.insert(behind, effect)
                    return
                case SoftStop():
                    self._drop(SoftStop | LiftSoftStop | LeaseRenewed)
                case LiftSoftStop():
                    self._drop(SoftStop | LiftSoftStop)
                case LeaseRenewed():
                    self._drop(LeaseRenewed)
            self._waiting.append(effect)

    def _drop(self, kinds: object) -> None:
        self._waiting = [e for e in self._waiting if not isinstance(e, kinds)]  # type: ignore[arg-type]

    def deliver(self) -> str:
        """Tells everything that waits; stops at the first that is not taken and says why. Empty words: all was taken."""
        while True:
            with self._lock:
                if not self._waiting:
                    return ""
                effect = self._waiting[0]
            try:
                self._tell(effect)
            except (ConsoleError, OSError) as error:
                return f"{type(effect).__name__} was not taken: {error}"
            with self._lock:
                if self._waiting and self._waiting[0] is effect:
                    self._waiting.pop(0)
