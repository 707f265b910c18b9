"""How a document gets to where every host sees it, and how that is proven: compare-and-swap, read-back, the kill log."""

from __future__ import annotations

import hashlib
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from google.api_core.exceptions import NotFound as ObjectMissing
from google.api_core.exceptions import PreconditionFailed
from google.cloud import storage

from console.remotekill.document import SIZE_LIMIT, KeySet, KillOrder, Order, parse
from console.remotekill.objects import Fetched, ObjectTooLarge, fetch, upload
from console.remotekill.transport import FAULTS, words_of

_ATTEMPTS = 8


@dataclass(frozen=True, slots=True)
class RemoteWrite:
    """A write and its proof. ``ok`` only after generation and bytes were read back (or a live kill was found)."""

    generation: int
    ok: bool
    detail: str
    sha256: str = ""
    ms: float = 0.0
    already: bool = False
    """True when it was there before: another console's kill, or the same receipt."""

    @property
    def order(self) -> Order | None:
        """The order that hosts will see, or None when nothing was written."""
        return Order(f"{self.generation}:sha256:{self.sha256}") if self.generation and self.sha256 else None


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


@dataclass(frozen=True, slots=True)
class KillObject:
    """The kill file through one client. Methods raise FAULTS unless they say otherwise."""

    bucket: storage.Bucket
    key: str
    prefix: str

    def look(self) -> Fetched | None:
        """The object as it is, or None when it is missing. One too large to be a document has no bytes here."""
        try:
            return fetch(self.bucket, self.key, 0, SIZE_LIMIT)
        except ObjectMissing:
            return None
        except ObjectTooLarge as error:
            return Fetched(error.generation, b"")

    def kill(self, document: bytes, keys: KeySet, left: Callable[[], float]) -> RemoteWrite:
        """Ends with a live kill or says why not. ``left``: seconds until the caller gives up."""
        trouble = "nothing was tried"
        for attempt in range(_ATTEMPTS):
            try:
                done = self._try_kill(document, keys, unconditional=attempt >= _ATTEMPTS // 2)
                if done is not None:
                    return done
                trouble = "the object was replaced right after it was written"
            except PreconditionFailed:
                trouble = "another writer was faster each time"
                continue
            except FAULTS as error:
                trouble = words_of(error)
                if attempt and trouble in ("HTTP 401", "HTTP 403"):
                    break
            wait = random.uniform(0.1, 0.8)
            if left() <= wait:
                break
            time.sleep(wait)
        return self._blind(document, trouble)

    def _try_kill(self, document: bytes, keys: KeySet, *, unconditional: bool) -> RemoteWrite | None:
        # 1. Read: a live kill is done, whoever wrote it.
        seen = self.look()
        if seen is not None and isinstance(parse(seen.body, keys), KillOrder):
            if seen.body == document:
                return self._logged(seen.generation, document, "kill")
            words = f"a kill was live already, generation {seen.generation}"
            return RemoteWrite(seen.generation, True, words, sha256_of(seen.body), already=True)
        # 2. Write over exactly what was read; after several failures, over anything.
        expected = None if unconditional else (seen.generation if seen else 0)
        generation = upload(self.bucket, self.key, document, expected)
        # 3. Read back. Not ours: somebody wrote in between, so look again.
        return self._logged(generation, document, "kill") if self._proven(generation, document) else None

    def _blind(self, document: bytes, trouble: str) -> RemoteWrite:
        """The last resort of a writer that may write but not read: never ok, because nothing was read back."""
        try:
            generation = upload(self.bucket, self.key, document, None)
        except FAULTS as error:
            return RemoteWrite(0, False, f"failed: {trouble}; unconditional write: {words_of(error)}")
        detail = f"failed: written unconditionally as generation {generation}, but not confirmed ({trouble})"
        return RemoteWrite(generation, False, detail, sha256_of(document))

    def put_exact(self, document: bytes, expected_generation: int, kind: str) -> RemoteWrite:
        """Replaces exactly the expected generation (0: only creates). PreconditionFailed when it is not that any more."""
        generation = upload(self.bucket, self.key, document, expected_generation)
        if not self._proven(generation, document):
            return RemoteWrite(generation, False, "failed: written, but something else was read back", sha256_of(document))
        return self._logged(generation, document, kind)

    def _proven(self, generation: int, document: bytes) -> bool:
        seen = self.look()
        return seen is not None and seen.generation == generation and seen.body == document

    def _logged(self, generation: int, document: bytes, kind: str) -> RemoteWrite:
        """The document is live and proven; the append-only copy is for attribution and its failure is said, not hidden."""
        sha = sha256_of(document)
        detail = f"read back, generation {generation}"
        try:
            upload(self.bucket, f"{self.prefix}kill-log/{generation}-{kind}-{sha}.json", document, 0)
        except PreconditionFailed:
            pass  # the same document was logged already
        except FAULTS as error:
            detail += f"; kill log not written: {words_of(error)}"
        return RemoteWrite(generation, True, detail, sha)
