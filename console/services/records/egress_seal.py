"""Requests of agents in the audit: the ledger holds each one, the chain holds what proves that none was changed or left out.

One entry for the requests of some seconds: how many, a digest over all of them in order, and the blocked ones by name. An agent that asks
thousands of times a second makes a longer ledger, never a longer chain. Each entry names the ledger's row it ends with, so that a
supervisor that starts completes what one that was killed had not sealed yet.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import astuple

from console.audit.log import AuditLog
from console.domain.engine.command import Record
from console.domain.network import EgressRecord
from console.ledger.store import Ledger

EVERY_S = 5.0
KIND = "egress.requests"
PAGE = 2000
MOST_COMPLETED = 200_000
"""Rows that are read again at a start; of more, the newest."""
NAMED = 20
"""Blocked destinations named in one entry; more are counted."""
_WORDS = 200


class EgressSeal:
    """Collects what the ledger took; one thread at a time."""

    __slots__ = ("_clock", "_digest", "_count", "_first", "_last", "_row", "_blocked", "_since")

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._begin(clock())

    def _begin(self, now: float) -> None:
        self._digest = hashlib.sha256()
        self._count = 0
        self._first = self._last = 0.0
        self._row = 0
        self._blocked: Counter[tuple[str, str, str]] = Counter()
        self._since = now

    def add(self, records: Iterable[EgressRecord], row: int) -> None:
        """Requests that are in the ledger now, in its order; ``row``: the id of the last."""
        self._row = row
        for record in records:
            self._digest.update(line_of(record))
            self._first = self._first or record.at
            self._last = record.at
            self._count += 1
            if not record.allowed:
                key = (record.agent_id, f"{record.method} {record.host}"[:_WORDS], record.rule[:_WORDS])
                if key in self._blocked or len(self._blocked) < NAMED:
                    self._blocked[key] += 1
                else:
                    self._blocked["", "others", ""] += 1

    @property
    def waits(self) -> bool:
        """Return whether collected requests are not in an entry yet."""
        return self._count > 0

    def due(self, *, last: bool = False, why: str = "") -> Record | None:
        """The entry for what was collected, every five seconds at most, or now with ``last``; None: nothing to say yet."""
        now = self._clock()
        if not self._count or not (last or now - self._since >= EVERY_S):
            return None
        blocked = sum(self._blocked.values())
        what = f"{self._count:,} requests through the portals, {blocked:,} blocked{why}"
        named = self._blocked.most_common()
        data = {
            "requests": self._count,
            "blocked": blocked,
            "first_at": self._first,
            "last_at": self._last,
            "last_row": self._row,
            "sha256": self._digest.hexdigest(),
            "blocked_most": [{"agent_id": agent, "asked": asked, "why": why, "times": times} for (agent, asked, why), times in named],
        }
        self._begin(now)
        return Record("supervisor", KIND, what, verdict="deny" if blocked else "allow", data=data)


def left_over(ledger: Ledger, audit: AuditLog) -> Record | None:
    """The entry for requests that the ledger holds and no entry of the audit does yet: their supervisor was killed before it said so.

    None: there are none. Raises ConsoleError, SQLAlchemyError.
    """
    sealed = next((r.data for r in audit.page(None, PAGE, KIND) if r.kind == KIND), None)
    newest = ledger.add_egress(())
    row = sealed.get("last_row") if sealed is not None else 0
    if not isinstance(row, int):
        return None  # sealed by a version that did not say how far: from the next request on it is known again
    skipped = max(0, newest - row - MOST_COMPLETED)
    seal, row = EgressSeal(), row + skipped
    while found := ledger.egress_after(row, PAGE):
        row = found[-1].egress_id
        seal.add((one.record for one in found), row)
    left = f"; {skipped:,} older rows are in the ledger alone" if skipped else ""
    return seal.due(last=True, why=f", completed from the ledger: the supervisor before was ended before it recorded them{left}")


def line_of(record: EgressRecord) -> bytes:
    """What the digest takes of one request: all fields in order as JSON, and a line end."""
    return json.dumps(astuple(record), ensure_ascii=True, separators=(",", ":")).encode() + b"\n"
