"""The orders folder and the history of the kill file, through one client: what lies there is read, a new order is created and read back.

Orders are create-only objects with running numbers, so no writer can replace or hide another one's order.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from enum import Enum

from google.api_core.exceptions import Forbidden, PreconditionFailed
from google.api_core.exceptions import NotFound as ObjectMissing
from google.cloud import storage

from console.remotekill.document import SIZE_LIMIT, Order, order_of
from console.remotekill.objects import TIMEOUT, ObjectTooLarge, describe, download, fetch, generation_in, upload
from console.remotekill.transport import DENIED, FAULTS, words_of
from console.remotekill.writing import RemoteWrite, sha256_of

ORDERS_AT_ONCE = 16
"""Orders that one poll reads at most; one is enough to kill, the next poll reads on."""
AHEAD = 8
"""How many numbers behind a free one are read now and then: an order whose predecessor the owner deleted is found there."""
GENERATIONS_AT_ONCE = 24
"""Earlier generations of the kill file that one poll downloads at most."""
# A writer can add versions without end, and a list that is cut could hide a kill: more is an error.
GENERATIONS_LISTED = 5000
NUMBERS_LISTED = 20_000


@dataclass(frozen=True, slots=True)
class Found:
    """One order, or one generation of the kill file (``number`` 0)."""

    number: int
    generation: int
    body: bytes | None
    """None: it exists, and could not be read whole."""

    @property
    def order(self) -> Order:
        """Its identity."""
        return order_of(self.generation, self.body, self.number)


@dataclass(frozen=True, slots=True)
class OrdersRead:
    """The orders after the last one known. What was found counts even where a later request failed."""

    found: tuple[Found, ...] = ()
    fault: str = ""
    """Why it is not known whether there are more; empty: there are none, or the next poll reads on."""

    @property
    def denied(self) -> bool:
        """Only a permission is missing. Without the right to list, a number that is free answers 403 as well."""
        return self.fault == DENIED


NO_ORDERS = OrdersRead()


@dataclass(frozen=True, slots=True)
class HistoryRead:
    """Generations of the kill file that are live no more."""

    found: tuple[Found, ...] = ()
    listed: tuple[int, ...] = ()
    """Every generation that exists, the live one too."""
    live: int = 0
    """The live one by this list; 0: none. It may be newer than what was read just before."""
    unread: int = 0
    """Generations for the next look."""
    versioned: bool | None = None
    """Whether the bucket keeps versions; None: that cannot be told."""
    fault: str = ""

    @property
    def denied(self) -> bool:
        """Only a permission is missing."""
        return self.fault == DENIED

    @property
    def blind(self) -> str:
        """Why a kill that was written by hand and overwritten at once can be missed; empty: it cannot."""
        if self.denied:
            return f"the versions of the kill file cannot be listed ({self.fault}; it takes storage.objects.list)"
        if self.fault or self.versioned or (self.versioned is None and len(self.listed) > 1):
            return ""
        return "the bucket keeps no versions" if self.versioned is False else "whether the bucket keeps versions cannot be told"


def order_name(prefix: str, number: int) -> str:
    """The object of one order."""
    return f"{prefix}orders/{number}"


def gather_orders(bucket: storage.Bucket, prefix: str, first: int, most: int, ahead: int, found: list[Found]) -> None:
    """Fills ``found`` with the orders from ``first`` on, up to the first free number and ``ahead`` numbers behind it; FAULTS.

    An object that exists is an order before it is read: what can be kept from being downloaded must not be hidden thereby.
    """
    denied: Forbidden | None = None
    number = first
    while len(found) < most and ahead >= 0:
        try:
            blob = describe(bucket, order_name(prefix, number))
            assert blob is not None
            found.append(Found(number, generation_in(blob), None))
            found[-1] = _read(bucket, blob, found[-1])
        except ObjectMissing:
            ahead -= 1
        except Forbidden as error:
            denied, ahead = error, ahead - 1
        number += 1
    if denied is not None:
        raise denied


def _read(bucket: storage.Bucket, blob: storage.Blob, found: Found) -> Found:
    try:
        return replace(found, body=download(bucket, blob, SIZE_LIMIT))
    except FAULTS:  # too large, deleted since, or kept from us: it was there
        return found


def gather_numbers(client: storage.Client, bucket: str, prefix: str, left: Callable[[], float]) -> list[int]:
    """The numbers of all orders that exist, by a list: for a person who reviews, never for a poll. FAULTS."""
    names = [name.removeprefix(prefix) for name in listed_names(client, bucket, prefix, NUMBERS_LISTED, left)]
    return sorted(int(name) for name in names if name.isascii() and name.isdigit() and name[0] != "0" and len(name) <= 16)


def listed_names(client: storage.Client, bucket: str, prefix: str, most: int, left: Callable[[], float]) -> list[str]:
    """The names below a prefix; FAULTS."""
    timeout = (TIMEOUT[0], max(0.1, min(3.0, left())))
    return [str(blob.name) for blob in client.list_blobs(bucket, prefix=prefix, max_results=most, retry=None, timeout=timeout)]


def gather_history(
    client: storage.Client, bucket: str, key: str, known: Collection[int] | None, most: int, left: Callable[[], float]
) -> HistoryRead:
    """The generations of the kill file that are not ``known``, read; None: they are listed, and none is read. FAULTS."""
    timeout = (TIMEOUT[0], max(0.1, min(3.0, left())))
    holder = client.bucket(bucket)
    every = client.list_blobs(bucket, prefix=key, versions=True, page_size=500, max_results=GENERATIONS_LISTED, retry=None, timeout=timeout)
    blobs = [blob for blob in every if blob.name == key]
    if len(blobs) >= GENERATIONS_LISTED:
        raise OSError(f"the kill file has more than {GENERATIONS_LISTED} versions; delete the oldest")
    new = [] if known is None else [blob for blob in blobs if generation_in(blob) not in known]
    found = []
    for blob in new[:most]:
        try:
            found.append(Found(0, generation_in(blob), download(holder, blob, SIZE_LIMIT)))
        # Its size is no excuse: what cannot be read whole still exists, and a large object may hide a kill.
        except ObjectTooLarge:
            found.append(Found(0, generation_in(blob), None))
        except ObjectMissing:
            continue  # deleted for good since it was listed: there is nothing left to judge
    listed = tuple(generation_in(blob) for blob in blobs)
    live = next((generation_in(blob) for blob in blobs if blob.time_deleted is None), 0)
    return HistoryRead(tuple(found), listed, live, max(0, len(new) - most), _keeps_versions(holder))


def _keeps_versions(bucket: storage.Bucket) -> bool | None:
    """None without storage.buckets.get, or where the server does not say."""
    try:
        bucket.reload(timeout=TIMEOUT, retry=None)
    except (Forbidden, ObjectMissing):
        return None
    return bool(bucket.versioning_enabled)


class _Whose(Enum):
    OURS = 1
    ANOTHER = 2
    FREE = 3
    UNKNOWN = 4


def confirm_order(bucket: storage.Bucket, prefix: str, document: bytes, number: int) -> RemoteWrite:
    """Reads back an order that was written without being confirmed. Never raises FAULTS."""
    whose, generation, why = _look(bucket, order_name(prefix, number), document)
    if whose is _Whose.OURS:
        return RemoteWrite(generation, True, f"order {number} read back, generation {generation}", sha256_of(document), number=number)
    return RemoteWrite(0, False, f"failed: written as order {number}, but not confirmed ({why or 'it is not there'})", number=number)


def add_order(bucket: storage.Bucket, prefix: str, document: bytes, first: int, left: Callable[[], float]) -> RemoteWrite:
    """Creates the order at the first free number from ``first`` on, and reads it back. Never raises FAULTS.

    A lost answer is no failure: whose bytes lie at the number decides, so that a retry does not write the order twice.
    """
    number, sha = first, sha256_of(document)
    unconfirmed: RemoteWrite | None = None
    while True:
        # Generation 0 as a precondition means "only if it does not exist": the bucket itself decides between two writers.
        generation, refused = _create(bucket, order_name(prefix, number), document)
        whose, seen, why = _look(bucket, order_name(prefix, number), document)
        if whose is _Whose.OURS:
            return RemoteWrite(seen, True, f"order {number} read back, generation {seen}", sha, number=number)
        if generation:
            words = f"failed: written as order {number}, but not confirmed ({why or 'something else was read back'})"
            unconfirmed = RemoteWrite(generation, False, words, sha, number=number)
        # Written once is enough: a second number for the same order would have to be settled by a release too.
        if unconfirmed and (whose is _Whose.ANOTHER or why == DENIED):
            return unconfirmed
        trouble = refused or why
        # 412, or 403 where replacing would take a right that writers do not have: the number is taken, so the next one.
        if whose is _Whose.ANOTHER or (refused == _TAKEN and why == DENIED):
            number, trouble, wait = number + 1, f"the numbers {first} to {number} are taken", 0.0
        elif refused in ("HTTP 401", DENIED):
            break
        else:
            # Several consoles may write at the same moment; without chance they would meet again at each try.
            wait = random.uniform(0.1, 0.8)
        if left() <= wait:
            break
        time.sleep(wait)
    return unconfirmed or RemoteWrite(0, False, f"failed: {trouble}", number=number)


_TAKEN = "it is taken"


def _create(bucket: storage.Bucket, name: str, document: bytes) -> tuple[int, str]:
    """(generation, "") or (0, why not)."""
    try:
        return upload(bucket, name, document, 0), ""
    except PreconditionFailed:
        return 0, _TAKEN
    except FAULTS as error:
        return 0, words_of(error)


def _look(bucket: storage.Bucket, name: str, document: bytes) -> tuple[_Whose, int, str]:
    """(whose bytes lie there, their generation, why that is not known)."""
    try:
        seen = fetch(bucket, name, 0, SIZE_LIMIT)
    except ObjectMissing:
        return _Whose.FREE, 0, ""
    except ObjectTooLarge as error:
        return _Whose.ANOTHER, error.generation, ""
    except FAULTS as error:
        return _Whose.UNKNOWN, 0, words_of(error)
    assert seen is not None
    return (_Whose.OURS if seen.body == document else _Whose.ANOTHER), seen.generation, ""
