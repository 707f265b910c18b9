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
ID_LEAST = 32
"""Letters of a session's id by which its transcripts are found first; a shorter one would be in every path."""
Whose = tuple[int, str, str]
"""(uid, source, session)"""
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
        self._wanted: dict[Whose, float] = {}
        self._sums: dict[Whose, dict[str, Spent]] = {}
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self.today_usd = 0.0
        """Of everything on this host, since local midnight, by the answers' own times."""
        self.problem = "not read yet"
        """Why sums are not there or old, or empty."""

    def of(self, uid: int, source: str, session: str) -> dict[str, Spent]:
        """By agent, '' the session's own, as this user's own files say; empty until it was read. Never blocks; asking keeps it read."""
        self._wanted = self._wanted | {(uid, source, session): time.monotonic()}
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="spend", daemon=True)
            self._thread.start()
        return self._sums.get((uid, source, session), {})

    def end(self) -> None:
        """Ends the thread after its present pass."""
        self._ended.set()

    def _run(self) -> None:
        rest = 0.0
        while not self._ended.wait(max(PERIOD_S, rest)) or rest == 0.0:
            began = time.monotonic()
            try:
                self.problem = self.look()
            except (ConsoleError, OSError, ValueError, ArithmeticError, LookupError, TypeError, MemoryError) as error:
                if str(error) != self.problem:
                    log.error("transcripts could not be summed", exc_info=error)
                self.problem = str(error) or repr(error)
            rest = SHARE * (time.monotonic() - began)
            if self._ended.is_set():
                return

    def look(self) -> str:
        """One pass: what is new is read, who is asked about is summed; in words what of it is not in the sums. Raises ConsoleError."""
        now = time.monotonic()
        self._wanted = {key: at for key, at in self._wanted.items() if now - at < KEPT_S}
        store = SpendStore(self._file)
        try:
            reader = SpendReader(store, self._rates, self._root)
            # Those who live are shown first, the rest of the history after.
            first = frozenset(session for _, _, session in self._wanted if len(session) >= ID_LEAST)
            found = reader.read(first=first, then=lambda: self._sum(store))
            unpriced = self._sum(store)
            words = [store.lost, *found.troubles[:1]]
            words += [f"{found.reading.odd:,} records that could not be read"] if found.reading.odd else []
            words += [f"{unpriced:,} answers of today without a price"] if unpriced else []
            return "; ".join(word for word in words if word)
        finally:
            store.close()

    def _sum(self, store: SpendStore) -> int:
        """How many answers of today have no price."""
        self._sums = {key: dict(_spent(store, *key)) for key in self._wanted}
        midnight = time.mktime((*time.localtime()[:3], 0, 0, 0, 0, 0, -1))
        today = store.sums("source", midnight)
        self.today_usd = sum(one.cost_usd for one in today)
        return sum(one.unpriced for one in today)


def _spent(store: SpendStore, uid: int, source: str, session: str) -> Iterable[tuple[str, Spent]]:
    for agent, cost, tokens, answers, unpriced, model, last_at in store.by_agent(uid, source, session):
        yield agent, Spent(tokens, cost, answers, unpriced, model, last_at)
