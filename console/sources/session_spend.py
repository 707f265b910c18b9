"""What the sessions that run now have spent, read in a thread of its own: a long history blocks no look and delays none who live."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from console.domain.errors import ConsoleError
from console.sources.rates import RateBook
from console.sources.spend_reader import SpendReader
from console.sources.spend_store import SpendStore

log = logging.getLogger(__name__)
PERIOD_S = 1.0
SHARE = 15
"""After a pass the thread rests this many times as long as it took: a bounded part of one core."""
KEPT_S = 60.0
"""How long a session that nobody asks about is still summed."""


@dataclass(frozen=True, slots=True)
class Spent:
    """What one agent of a session used."""

    tokens: int
    cost_usd: float
    answers: int
    unpriced: int
    """Answers whose cost is not known."""
    model: str
    last_at: float


class SessionSpend:
    """Sessions in by ``of``, sums out of it; every attribute is replaced whole, so no lock is needed."""

    def __init__(self, file: Path, root: Path | None = None, rates: RateBook | None = None) -> None:
        self._file, self._root, self._rates = file, root, rates or RateBook()
        self._wanted: dict[tuple[str, str], float] = {}
        self._sums: dict[tuple[str, str], dict[str, Spent]] = {}
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self.today_usd = 0.0
        """Of everything on this host, since local midnight, by the answers' own times."""
        self.problem = "not read yet"
        """Why sums are not there or old, or empty."""

    def of(self, source: str, session: str) -> dict[str, Spent]:
        """By agent, '' the session's own; empty until it was read. Never blocks; asking keeps it read."""
        self._wanted = self._wanted | {(source, session): time.monotonic()}
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="spend", daemon=True)
            self._thread.start()
        return self._sums.get((source, session), {})

    def end(self) -> None:
        """Ends the thread after its present pass."""
        self._ended.set()

    def _run(self) -> None:
        rest = 0.0
        while not self._ended.wait(max(PERIOD_S, rest)) or rest == 0.0:
            began = time.monotonic()
            try:
                self.look()
                self.problem = ""
            except (ConsoleError, OSError, ValueError, ArithmeticError) as error:
                log.error("transcripts could not be summed", exc_info=error)
                self.problem = str(error)
            rest = SHARE * (time.monotonic() - began)
            if self._ended.is_set():
                return

    def look(self) -> None:
        """One pass: what is new is read, who is asked about is summed. Raises ConsoleError when nothing can be kept."""
        now = time.monotonic()
        self._wanted = {key: at for key, at in self._wanted.items() if now - at < KEPT_S}
        store = SpendStore(self._file)
        try:
            reader = SpendReader(store, self._rates, self._root)
            # Those who live are shown first, the rest of the history after.
            reader.read(first=frozenset(session for _, session in self._wanted), then=lambda: self._sum(store))
            self._sum(store)
        finally:
            store.close()

    def _sum(self, store: SpendStore) -> None:
        self._sums = {key: dict(_spent(store, *key)) for key in self._wanted}
        midnight = time.mktime((*time.localtime()[:3], 0, 0, 0, 0, 0, -1))
        self.today_usd = sum(one.cost_usd for one in store.sums("source", midnight))


def _spent(store: SpendStore, source: str, session: str) -> Iterable[tuple[str, Spent]]:
    for agent, cost, tokens, answers, unpriced, model, last_at in store.by_agent(source, session):
        yield agent, Spent(tokens, cost, answers, unpriced, model, last_at)
