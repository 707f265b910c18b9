"""The bucket: reading the kill file, its history and the orders; writing an order, a baseline, a release, a receipt.

A write is ``ok`` only after the object was read back: the same generation, the same bytes. Every call ends at its deadline.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeVar

from google.api_core.exceptions import NotFound as ObjectMissing
from google.auth.credentials import Credentials
from google.cloud import storage

from console.domain.errors import UsageProblem
from console.remotekill.document import SIZE_LIMIT, KeySet, KillOrder, SignedUnkill, parse
from console.remotekill.objects import ObjectTooLarge, fetch
from console.remotekill.orders import (
    GENERATIONS_AT_ONCE,
    ORDERS_AT_ONCE,
    Found,
    HistoryRead,
    OrdersRead,
    add_order,
    confirm_order,
    gather_history,
    gather_numbers,
    gather_orders,
)
from console.remotekill.records import (
    RECEIPT_LIMIT,
    HostReceipt,
    add_receipt,
    gather_hosts,
    gather_receipts,
    receipt_name,
)
from console.remotekill.transport import FAULTS, Lane, words_of
from console.remotekill.writing import RemoteWrite, put_exact, sha256_of, timed

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RemoteRead:
    """One look at the object. Exactly one of body, missing, unchanged, junk or fault says what was seen."""

    generation: int = 0
    body: bytes | None = None
    missing: bool = False
    unchanged: bool = False
    junk: str = ""
    """Why the object cannot be a document although it was reached (too large)."""
    fault: str = ""
    """Why nothing is known."""


class RemoteStore:
    """One bucket and one kill object. Thread-safe: polling, writing and listing have a client each, none waits for another."""

    def __init__(
        self,
        bucket: str,
        key: str = "platform/kill-switch.json",
        endpoint: str | None = None,
        *,
        credentials: Credentials | None = None,
        read_deadline_s: float = 5.0,
        write_deadline_s: float = 10.0,
    ) -> None:
        """``endpoint`` names a stand-in and implies anonymous credentials unless some are given; None is Google."""
        if not re.fullmatch(r"[a-z0-9][a-z0-9._-]{1,220}[a-z0-9]", bucket):
            raise UsageProblem("That is not a bucket's name.", "Give the name alone, without gs:// and without a path.")
        if not key or key.startswith("/") or len(key) > 500 or not key.isprintable():
            raise UsageProblem("That is not an object's name.", "For example platform/kill-switch.json.")
        self.bucket = bucket
        self.key = key
        self.endpoint = endpoint
        self._prefix = key.rpartition("/")[0] + "/" if "/" in key else ""
        self._taken = 0
        """The last number that was seen to be taken: a retry goes on from there."""
        self._unconfirmed: dict[str, int] = {}
        """SHA-256 of an order -> the number at which it was written without being read back: a retry writes it once."""
        self._read_deadline_s = read_deadline_s
        self._write_deadline_s = write_deadline_s

        def lane(name: str, *, writes: bool) -> Lane:
            return Lane(name, endpoint=endpoint, credentials=credentials, writes=writes)

        # A client of its own, with the right to read only: no write and no long list delays the next look.
        self._polling = lane("poll", writes=False)
        self._writing = lane("write", writes=True)
        self._listing = lane("list", writes=True)

    def close(self) -> None:
        """Shuts all connections; calls under way end with a fault."""
        for lane in (self._polling, self._writing, self._listing):
            lane.close()

    def read(self, known_generation: int = 0) -> RemoteRead:
        """Looks at the object, never raises. With ``known_generation`` an unchanged object costs one request."""

        def look(client: storage.Client, _left: Callable[[], float]) -> RemoteRead:
            try:
                seen = fetch(client.bucket(self.bucket), self.key, known_generation, SIZE_LIMIT)
            except ObjectMissing:
                return RemoteRead(missing=True)
            except ObjectTooLarge as error:
                return RemoteRead(error.generation, junk=str(error))
            if seen is None:
                return RemoteRead(known_generation, unchanged=True)
            return RemoteRead(seen.generation, seen.body)

        try:
            return self._polling.run(look, self._read_deadline_s)
        except FAULTS as error:
            return RemoteRead(fault=words_of(error))

    def clock_off(self) -> tuple[float, float] | None:
        """(this host's clock minus the store's, seconds since that was seen), by the polling answers; None: never seen."""
        return self._polling.clock.off()

    def read_orders(self, first: int, most: int = ORDERS_AT_ONCE, ahead: int = 0) -> OrdersRead:
        """The orders from this number on, never raises. In steady state it costs one request: the number is free.

        ``ahead``: how many numbers behind a free one are read as well.
        """
        found: list[Found] = []

        def look(client: storage.Client, _left: Callable[[], float]) -> None:
            gather_orders(client.bucket(self.bucket), self._prefix, first, most, ahead, found)

        try:
            self._polling.run(look, self._read_deadline_s)
        except FAULTS as error:
            return OrdersRead(tuple(found), words_of(error))
        return OrdersRead(tuple(found))

    def read_history(self, known: Collection[int] | None, most: int = GENERATIONS_AT_ONCE) -> HistoryRead:
        """The generations of the kill file that are not ``known``, never raises. It lists, so only a change is a reason to ask."""

        def look(client: storage.Client, left: Callable[[], float]) -> HistoryRead:
            return gather_history(client, self.bucket, self.key, known, most, left)

        try:
            return self._polling.run(look, self._read_deadline_s)
        except FAULTS as error:
            return HistoryRead(fault=words_of(error))

    def order_numbers(self) -> tuple[list[int], str]:
        """(numbers, trouble): the orders that exist, by a list; trouble says why it may be short."""
        return self._listed(gather_numbers, "orders/")

    def write_kill(self, document: bytes, keys: KeySet, settled: int = 0) -> RemoteWrite:
        """Creates an order where every host sees it. Never raises: ``failed: …`` in ``detail`` and ok False instead.

        It takes the first free number after the settled ones: that is the one for which every host that runs is waiting.
        ``settled``: what this host knows of that; a signed document that lies there may know more.
        """
        if not isinstance(parse(document, keys), KillOrder):
            return RemoteWrite(0, False, "failed: the document is not a kill")

        def create(client: storage.Client, left: Callable[[], float]) -> RemoteWrite:
            bucket, sha = client.bucket(self.bucket), sha256_of(document)
            if sha in self._unconfirmed:
                return confirm_order(bucket, self._prefix, document, self._unconfirmed[sha])
            after = max(settled, _settled_in(bucket, self.key, keys), self._taken)
            written = add_order(bucket, self._prefix, document, after + 1, left)
            if not written.ok and written.generation:
                self._unconfirmed[sha] = written.number
            elif not written.ok:
                self._taken = max(self._taken, written.number - 1)
            return written

        return timed(lambda: self._writing.run(create, self._write_deadline_s))

    def write_baseline(self, document: bytes, expected_generation: int = 0) -> RemoteWrite:
        """Creates the first signed baseline (generation 0: only where nothing lies), or replaces exactly the one reviewed."""
        return self._replace(document, expected_generation)

    def write_release(self, document: bytes, expected_generation: int) -> RemoteWrite:
        """Replaces exactly the generation the operator reviewed; a kill that landed in between makes it fail."""
        return self._replace(document, expected_generation)

    def _replace(self, document: bytes, expected_generation: int) -> RemoteWrite:
        def put(client: storage.Client, _left: Callable[[], float]) -> RemoteWrite:
            return put_exact(client.bucket(self.bucket), self.key, document, expected_generation)

        return timed(lambda: self._writing.run(put, self._write_deadline_s))

    def write_receipt(self, kill_generation: int, host: str, receipt_json: bytes | str) -> RemoteWrite:
        """This host's answer to an order, create-only: once given it is never changed. UsageProblem on a bad name or size."""
        name = receipt_name(self._prefix, kill_generation, host)
        body = receipt_json.encode() if isinstance(receipt_json, str) else receipt_json
        if len(body) > RECEIPT_LIMIT:
            raise UsageProblem(f"The receipt is larger than {RECEIPT_LIMIT} bytes.", "Leave out the evidence.")
        done = timed(lambda: self._listing.run(lambda c, _left: add_receipt(c.bucket(self.bucket), name, body), self._write_deadline_s))
        return done if done.sha256 else RemoteWrite(0, False, done.detail, sha256_of(body), done.ms)

    def receipts(self, kill_generation: int) -> tuple[list[HostReceipt], str]:
        """(receipts, trouble): which hosts answered this order, by host; trouble says why the list may be short."""
        return self._listed(gather_receipts, f"receipts/{int(kill_generation)}/")

    def hosts_ever(self) -> tuple[list[str], str]:
        """(hosts, trouble): every host that ever answered an order, by name; trouble says why the list may be short."""
        return self._listed(gather_hosts, "receipts/")

    def _listed(self, gather: Callable[[storage.Client, str, str, Callable[[], float]], list[T]], below: str) -> tuple[list[T], str]:
        """(what is gathered below the store's prefix, trouble)."""
        try:
            return self._listing.run(lambda c, left: gather(c, self.bucket, f"{self._prefix}{below}", left), self._write_deadline_s), ""
        except FAULTS as error:
            return [], words_of(error)


def _settled_in(bucket: storage.Bucket, key: str, keys: KeySet) -> int:
    """What the signed document that lies there says is settled; 0 where there is none, or it cannot be read."""
    try:
        seen = fetch(bucket, key, 0, SIZE_LIMIT)
    except FAULTS:
        return 0
    content = parse(seen.body, keys) if seen is not None else None
    return content.settled if isinstance(content, SignedUnkill) else 0


def now_text() -> str:
    """UTC, for ``issued_at``: it is read by people and decides nothing."""
    return datetime.now(UTC).isoformat(timespec="seconds")
