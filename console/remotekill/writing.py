"""What a write to the bucket came to, and how the kill file is replaced: compare-and-swap, then read-back."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from google.api_core.exceptions import NotFound as ObjectMissing
from google.api_core.exceptions import PreconditionFailed
from google.cloud import storage

from console.remotekill.document import SIZE_LIMIT, Order
from console.remotekill.objects import ObjectTooLarge, fetch, upload
from console.remotekill.transport import FAULTS, words_of


@dataclass(frozen=True, slots=True)
class RemoteWrite:
    """A write and its proof. ``ok`` only after generation and bytes were read back."""

    generation: int
    ok: bool
    detail: str
    sha256: str = ""
    ms: float = 0.0
    already: bool = False
    """True when it was there before: the same receipt."""
    number: int = 0
    """Of the order that was created; 0: none."""

    @property
    def order(self) -> Order | None:
        """The order that hosts will see, or None when nothing was written."""
        if not self.generation or not self.sha256:
            return None
        return Order(f"{self.number}/{self.generation}:sha256:{self.sha256}" if self.number else f"{self.generation}:sha256:{self.sha256}")


def sha256_of(body: bytes) -> str:
    """Hexadecimal."""
    return hashlib.sha256(body).hexdigest()


def timed(work: Callable[[], RemoteWrite]) -> RemoteWrite:
    """What ``work`` did, with its milliseconds; a fault is a failed write with words, never an exception."""
    start = time.monotonic()
    try:
        done = work()
    except PreconditionFailed:
        done = RemoteWrite(0, False, "failed: the object changed since it was reviewed; review it again")
    except FAULTS as error:
        done = RemoteWrite(0, False, f"failed: {words_of(error)}")
    return replace(done, ms=round((time.monotonic() - start) * 1000, 1))


def put_exact(bucket: storage.Bucket, key: str, document: bytes, expected_generation: int) -> RemoteWrite:
    """Replaces exactly the expected generation (0: only creates). PreconditionFailed when it is not that any more; FAULTS."""
    generation = upload(bucket, key, document, expected_generation)
    try:
        seen = fetch(bucket, key, 0, SIZE_LIMIT)
    except (ObjectMissing, ObjectTooLarge):
        seen = None
    if seen is None or seen.generation != generation or seen.body != document:
        return RemoteWrite(generation, False, "failed: written, but something else was read back", sha256_of(document))
    return RemoteWrite(generation, True, f"read back, generation {generation}", sha256_of(document))
