"""Sum what the running sessions have spent, in a thread of its own: a long history blocks no look and delays no other session.

Files that a watch reports as changed are read at once, and only they. Everything is looked at now and then, the live sessions first.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from console.domain.budget import Usage
from console.domain.errors import ConsoleError
from console.sources.change_tracker import Freshness
from console.sources.spend.rates import RateBook
from console.sources.spend.reader import SpendReader
from console.sources.spend.store import SpendStore
from console.sources.spend.transcript_files import Found, Transcripts

log = logging.getLogger(__name__)
PERIOD_S = 1.0
QUICK_S = 0.15
"""Shortest time between two readings of files that changed."""
SHARE = 15
"""After a look at everything the next one waits this many times as long as it took: a bounded part of one core."""
QUICK_SHARE = 8
"""The same after a reading of files that changed."""
TOLD_S = 10.0
TOLD_SHARE = 100
"""The same as PERIOD_S and SHARE where a watch covers the folder of every live transcript."""
FOLD_S = 3600.0
ID_LEAST = 32
"""Letters of a session's id by which its transcripts are found first; a shorter one would be in every path."""
CHANGED_MAX = 5000
"""More changed files than this are left to the next look at everything."""
PROGRESS_BYTES = 20_000_000
"""Bytes of one look after which its progress is reported."""
Whose = tuple[int, str, str]
"""(uid, source, session)"""
KEPT_S = 60.0
"""Seconds for which a session is still summed after the last question about it."""
NOT_READ = "not read yet"
_TROUBLE = (ConsoleError, OSError, ValueError, ArithmeticError, LookupError, TypeError, MemoryError)


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


def usage(spent: Spent | None) -> Usage | None:
    """As the engine counts: an answer is an iteration."""
    return None if spent is None else Usage(iterations=spent.answers, tokens=spent.tokens, cost_usd=spent.cost_usd)


def acted(spent: Spent | None) -> str:
    """Its model, and what of it has no price."""
    if spent is None:
        return ""
    return f"{spent.model}, {spent.unpriced:,} answers unpriced" if spent.unpriced else spent.model


_NOTHING: dict[str, Spent] = {}


class SessionSpend:
    """Sessions in by ``of``, sums out of it; every attribute is replaced whole, so no lock is needed but for what changed."""

    def __init__(
        self,
        file: Path,
        kinds: Sequence[Transcripts],
        rates: RateBook,
        root: Path | None = None,
        own: Callable[[], list[Path]] = list,
        *,
        outside: bool = True,
        fresh: Freshness | None = None,
    ) -> None:
        self.fresh = fresh or Freshness()
        """What is watched. The watches write it, and every reader of files asks it."""
        self._file, self._kinds, self._root, self._rates, self._own, self._outside = file, tuple(kinds), root, rates, own, outside
        self._wanted: dict[Whose, float] = {}
        self._sums: dict[Whose, dict[str, Spent]] = {}
        self._ended = threading.Event()
        self._woken = threading.Event()
        self._lock = threading.Lock()
        self._changed: set[str] = set()
        self._thread: threading.Thread | None = None
        self._folded_at = -1e9
        self._is_soon = False
        self._folders: frozenset[str] = frozenset()
        """Where transcripts of those who are asked about are."""
        self.news: Callable[[frozenset[str]], object] = lambda _sources: None
        """Called, in the thread, when sums have changed: with the sources whose sessions they are of."""
        self.today_usd = 0.0
        """Of everything on this host but agents that were started here, since local midnight, by the answers' own times."""
        self.problem = NOT_READ
        """Why sums are not there or old, or empty."""
        self.reading = ""
        """How far the reading of a long history is, or empty."""

    def of(self, uid: int, source: str, session: str) -> dict[str, Spent]:
        """By agent, '' the session's own, as this user's own files say; empty until it was read. Never blocks; asking keeps it read."""
        return self.of_all([(uid, source, session)])[0]

    def of_all(self, keys: list[Whose]) -> list[dict[str, Spent]]:
        """The same of many at once, in their order: whose sums did not change, of them it is the same object."""
        now, wanted = time.monotonic(), self._wanted
        if any(now - wanted.get(key, -1e9) > KEPT_S / 12 for key in keys):
            self._wanted = wanted | dict.fromkeys(keys, now)
        if self._thread is None:
            self._start()
        elif not wanted.keys() >= set(keys):
            self.look_soon()
        sums = self._sums
        return [sums.get(key, _NOTHING) for key in keys]

    def begin(self) -> None:
        """Reads what others than our own agents spent today, though none of them runs now."""
        if self._outside and self._thread is None:
            self._start()

    def _start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="spend", daemon=True)
        self._thread.start()

    def changed(self, paths: Iterable[str]) -> None:
        """These transcripts changed: they are read at once. From any thread; never blocks for long."""
        with self._lock:
            self._changed.update(paths)
        self._woken.set()

    def look_soon(self) -> None:
        """Look at everything as soon as SHARE allows: there may be a change that no watch reported. From any thread."""
        self._is_soon = True
        self._woken.set()

    def end(self) -> None:
        """Ends the thread after its present pass."""
        self._ended.set()
        self._woken.set()

    def _run(self) -> None:
        soonest = next_look = 0.0
        while not self._ended.is_set():
            began = time.monotonic()
            is_due = began >= (soonest if self._is_soon else next_look)
            try:
                if is_due:
                    self._is_soon = False
                    self.problem = self.look()
                else:
                    self.look_at_changed()
            except _TROUBLE as error:
                if str(error) != self.problem:
                    log.error("transcripts could not be summed", exc_info=error)
                self.problem, self._folders = str(error) or repr(error), frozenset()
            ended = time.monotonic()
            took = ended - began
            if is_due:
                soonest = ended + max(PERIOD_S, SHARE * took)
                is_calm = self._is_told() or not self._wanted  # a first question wakes this thread
                next_look = max(soonest, ended + max(TOLD_S, TOLD_SHARE * took)) if is_calm else soonest
            self._ended.wait(max(QUICK_S, 0.0 if is_due else QUICK_SHARE * took))
            self._woken.wait(max(0.0, (soonest if self._is_soon else next_look) - time.monotonic()))
            self._woken.clear()

    def _is_told(self) -> bool:
        """Return whether a watch covers every transcript of the live sessions."""
        return bool(self._folders) and all(self.fresh.watches(folder) for folder in self._folders)

    def look_at_changed(self) -> None:
        """Read the files that a watch reported as changed. Sum their sessions, and the sessions with a first question. Raises
        ConsoleError."""
        with self._lock:
            paths, self._changed = self._changed, set()
        unsummed = {key for key in self._wanted if key not in self._sums}
        if (not paths and not unsummed) or len(paths) > CHANGED_MAX:
            return
        store = SpendStore(self._file)
        try:
            reader = self._reader(store)
            found = reader.read_these(paths)
            while found.left and not self._ended.is_set():  # one pass reads a bounded part of one file
                more = reader.read_these(paths)
                found.sessions |= more.sessions
                found.left = more.left
            if found.sessions or unsummed:
                self._sum(store, (found.sessions & self._wanted.keys()) | unsummed)
        finally:
            store.close()

    def look(self) -> str:
        """One pass: what is new is read, who is asked about is summed; in words what of it is not in the sums. Raises ConsoleError."""
        now = time.monotonic()
        self._wanted = {key: at for key, at in self._wanted.items() if now - at < KEPT_S}
        store = SpendStore(self._file)
        try:
            reader = self._reader(store)
            reader.progress = self._progress
            # Those who live are shown first, the rest of the history after.
            first = frozenset(session for _, _, session in self._wanted if len(session) >= ID_LEAST)
            found = reader.read(first=first, then=lambda: self._sum(store))
            if now - self._folded_at > FOLD_S:
                store.fold(time.time())
                self._folded_at = now
            self._folders, self._is_soon = frozenset(found.folders), self._is_soon or found.left > 0
            unpriced = self._sum(store)
            words = [store.lost, *found.troubles[:1]]
            words += [f"{found.reading.odd:,} records that could not be read"] if found.reading.odd else []
            words += [f"{unpriced:,} answers of today without a price"] if unpriced else []
            return "; ".join(word for word in words if word)
        finally:
            self.reading = ""
            store.close()

    def _reader(self, store: SpendStore) -> SpendReader:
        return SpendReader(store, self._rates, self._kinds, self._root, self._own, self._outside)

    def _progress(self, found: Found) -> None:
        """A long history says how far it is, and lets go first what changed meanwhile: those who live do not wait for it."""
        if found.bytes > PROGRESS_BYTES:
            self.reading = f"{found.read:,} files, {found.bytes / 1e6:,.0f} MB so far; sessions that run come first"
        if self._changed and not self._ended.is_set():
            self.look_at_changed()

    def _sum(self, store: SpendStore, keys: Iterable[Whose] | None = None) -> int:
        """How many answers of today have no price."""
        before, asked = self._sums, list(self._wanted if keys is None else keys)
        after = {key: sums for key, sums in before.items() if key in self._wanted}
        for key, rows in zip(asked, store.by_agents(asked), strict=True):
            now = {row[0]: Spent(row[2], row[1], *row[3:]) for row in rows}
            after[key] = now if now != before.get(key) else before[key]  # what is the same stays the same object
        self._sums = after
        today = time.localtime()
        midnight = time.mktime((*today[:3], 0, 0, 0, 0, 0, -1))
        self.today_usd, unpriced = store.since_day(time.strftime("%Y-%m-%d", today), midnight, ours=False)
        if changed := keys_that_differ(before, after):
            self.news(frozenset(source for _, source, _ in changed))
        return unpriced


def keys_that_differ(before: dict[Whose, dict[str, Spent]], after: dict[Whose, dict[str, Spent]]) -> set[Whose]:
    """Whose sums are other than they were."""
    return {key for key in before.keys() | after.keys() if before.get(key) is not after.get(key) and before.get(key) != after.get(key)}
