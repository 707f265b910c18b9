"""The remote kill file in Google Cloud Storage: reading it, writing a kill, a baseline, a release, the kill log and receipts.

A write is ``ok`` only after the object was read back: the same generation, the same bytes. Every call ends at its deadline.
"""

from __future__ import annotations

import hashlib
import json
import random
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from google.api_core.exceptions import NotFound as ObjectMissing
from google.api_core.exceptions import PreconditionFailed
from google.auth.credentials import Credentials
from google.cloud import storage

from console.domain.errors import UsageProblem
from console.remotekill.document import SIZE_LIMIT, KeySet, KillOrder, Order, order_of, parse
from console.remotekill.objects import Fetched, ObjectTooLarge, fetch, upload
from console.remotekill.transport import FAULTS, Lane, words_of

RECEIPT_LIMIT = 1024 * 1024
_HOST = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
_ATTEMPTS = 8


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


@dataclass(frozen=True, slots=True)
class RemoteWrite:
    """A write and its proof. ``ok`` only after generation and bytes were read back (or a live kill was found)."""

    generation: int
    ok: bool
    detail: str
    sha256: str = ""
    ms: float = 0.0
    already: bool = False
    """True when another console's kill was live already."""

    @property
    def order(self) -> Order | None:
        return Order(f"{self.generation}:sha256:{self.sha256}") if self.generation and self.sha256 else None


@dataclass(frozen=True, slots=True)
class LoggedDocument:
    """One entry of the kill log, from its name alone."""

    kind: str
    """kill, release or baseline."""
    order: Order


@dataclass(frozen=True, slots=True)
class HostReceipt:
    """What a host wrote about obeying an order. Its content is the host's word, not proof."""

    host: str
    receipt: dict[str, Any] | None
    why: str = ""
    """Why there is no readable receipt."""


class RemoteStore:
    """One bucket and one kill object. Thread-safe: polling, writing and listing have a client each, none waits for another."""

    def __init__(
        self,
        bucket: str,
        key: str = "platform/kill-switch.json",
        endpoint: str | None = None,
        project: str = "",
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
        self._read_deadline_s = read_deadline_s
        self._write_deadline_s = write_deadline_s

        def lane(name: str, *, writes: bool) -> Lane:
            return Lane(name, endpoint=endpoint, project=project, credentials=credentials, writes=writes)

        self._polling = lane("poll", writes=False)
        self._writing = lane("write", writes=True)
        self._listing = lane("list", writes=True)

    def close(self) -> None:
        """Shuts all connections; calls under way end with a fault."""
        for lane in (self._polling, self._writing, self._listing):
            lane.close()

    # --- reading ------------------------------------------------------------------------------------------------------

    def read(self, known_generation: int = 0) -> RemoteRead:
        """Looks at the object, never raises. With ``known_generation`` an unchanged object costs one request."""

        def look(client: storage.Client, _left: Callable[[], float]) -> RemoteRead:
            try:
                seen = fetch(client.bucket(self.bucket), self.key, known_generation, SIZE_LIMIT)
            except ObjectMissing:
                return RemoteRead(missing=True)
            except ObjectTooLarge as error:
                return RemoteRead(junk=str(error))
            if seen is None:
                return RemoteRead(generation=known_generation, unchanged=True)
            return RemoteRead(seen.generation, seen.body)

        try:
            return self._polling.run(look, self._read_deadline_s)
        except FAULTS as error:
            return RemoteRead(fault=words_of(error))

    # --- the kill object ----------------------------------------------------------------------------------------------

    def write_kill(self, document: bytes, keys: KeySet) -> RemoteWrite:
        """Puts a kill where every host sees it. Never raises: ``failed: …`` in ``detail`` and ok False instead.

        A live kill is success. Else: write if the generation is the one read; on 412 read again; at last unconditionally.
        """
        if not isinstance(parse(document, keys), KillOrder):
            return RemoteWrite(0, False, "failed: the document is not a kill")
        return self._timed(lambda client, left: self._kill(client, left, document, keys))

    def write_baseline(self, document: bytes, expected_generation: int = 0) -> RemoteWrite:
        """Creates the first signed baseline (generation 0: only where nothing lies), or replaces exactly the one reviewed."""
        return self._timed(lambda client, _left: self._exact(client, document, expected_generation, "baseline"))

    def write_release(self, document: bytes, expected_generation: int) -> RemoteWrite:
        """Replaces exactly the generation the operator reviewed; a kill that landed in between makes it fail."""
        return self._timed(lambda client, _left: self._exact(client, document, expected_generation, "release"))

    def _timed(self, work: Callable[[storage.Client, Callable[[], float]], RemoteWrite]) -> RemoteWrite:
        start = time.monotonic()
        try:
            done = self._writing.run(work, self._write_deadline_s)
        except PreconditionFailed:
            done = RemoteWrite(0, False, "failed: the object changed since it was reviewed; review it again")
        except FAULTS as error:
            done = RemoteWrite(0, False, f"failed: {words_of(error)}")
        ms = round((time.monotonic() - start) * 1000, 1)
        return RemoteWrite(done.generation, done.ok, done.detail, done.sha256, ms, done.already)

    def _kill(self, client: storage.Client, left: Callable[[], float], document: bytes, keys: KeySet) -> RemoteWrite:
        bucket = client.bucket(self.bucket)
        trouble = "nothing was tried"
        for attempt in range(_ATTEMPTS):
            last_resort = attempt >= _ATTEMPTS // 2
            try:
                # 1. Read: a live kill is done, whoever wrote it.
                seen = self._look(bucket)
                if seen is not None and isinstance(parse(seen.body, keys), KillOrder):
                    return self._live(bucket, seen, document)
                # 2. Write over exactly what was read; after several failures, over anything.
                generation = upload(bucket, self.key, document, None if last_resort else (seen.generation if seen else 0))
                # 3. Read back. Not ours: somebody wrote in between, so look again.
                if self._proven(bucket, generation, document):
                    return self._logged(bucket, generation, document, "kill")
                trouble = "the object was replaced right after it was written"
            except PreconditionFailed:
                trouble = "another writer was faster each time"
                continue
            except FAULTS as error:
                trouble = words_of(error)
                if trouble in ("HTTP 401", "HTTP 403") and attempt:
                    break
            wait = min(random.uniform(0.1, 0.8), left())
            if left() <= wait:
                break
            time.sleep(wait)
        return self._blind(bucket, document, trouble)

    def _look(self, bucket: storage.Bucket) -> Fetched | None:
        """The object as it is, or None when it is missing or too large to be a document."""
        try:
            return fetch(bucket, self.key, 0, SIZE_LIMIT)
        except ObjectMissing:
            return None
        except ObjectTooLarge as error:
            return Fetched(error.generation, b"")

    def _live(self, bucket: storage.Bucket, seen: Fetched, document: bytes) -> RemoteWrite:
        if seen.body == document:
            return self._logged(bucket, seen.generation, document, "kill")
        sha = hashlib.sha256(seen.body).hexdigest()
        return RemoteWrite(seen.generation, True, f"a kill was live already, generation {seen.generation}", sha, already=True)

    def _blind(self, bucket: storage.Bucket, document: bytes, trouble: str) -> RemoteWrite:
        """The last resort of a writer that may write but not read: never ok, because nothing was read back."""
        try:
            generation = upload(bucket, self.key, document, None)
        except FAULTS as error:
            return RemoteWrite(0, False, f"failed: {trouble}; unconditional write: {words_of(error)}")
        detail = f"failed: written unconditionally as generation {generation}, but not confirmed ({trouble})"
        return RemoteWrite(generation, False, detail, hashlib.sha256(document).hexdigest())

    def _exact(self, client: storage.Client, document: bytes, expected: int, kind: str) -> RemoteWrite:
        bucket = client.bucket(self.bucket)
        generation = upload(bucket, self.key, document, expected)
        if not self._proven(bucket, generation, document):
            return RemoteWrite(generation, False, "failed: written, but something else was read back", hashlib.sha256(document).hexdigest())
        return self._logged(bucket, generation, document, kind)

    def _proven(self, bucket: storage.Bucket, generation: int, document: bytes) -> bool:
        seen = self._look(bucket)
        return seen is not None and seen.generation == generation and seen.body == document

    def _logged(self, bucket: storage.Bucket, generation: int, document: bytes, kind: str) -> RemoteWrite:
        """The document is live and proven; the append-only copy is for attribution and its failure is said, not hidden."""
        sha = hashlib.sha256(document).hexdigest()
        detail = f"read back, generation {generation}"
        try:
            upload(bucket, f"{self._prefix}kill-log/{generation}-{kind}-{sha}.json", document, 0)
        except PreconditionFailed:
            pass  # the same document was logged already
        except FAULTS as error:
            detail += f"; kill log not written: {words_of(error)}"
        return RemoteWrite(generation, True, detail, sha)

    # --- kill log and receipts ----------------------------------------------------------------------------------------

    def kill_log(self) -> tuple[list[LoggedDocument], str]:
        """(entries, trouble): what consoles wrote, oldest generation first; trouble says why the list may be short."""

        def listing(client: storage.Client, left: Callable[[], float]) -> list[str]:
            blobs = client.list_blobs(self.bucket, prefix=f"{self._prefix}kill-log/", max_results=2000, retry=None, timeout=_left(left))
            return [str(blob.name) for blob in blobs]

        try:
            names = self._listing.run(listing, self._write_deadline_s)
        except FAULTS as error:
            return [], words_of(error)
        found = []
        for name in names:
            match = re.fullmatch(r"([0-9]{1,20})-(kill|release|baseline)-([0-9a-f]{64})\.json", name.rpartition("/")[2])
            if match:
                found.append(LoggedDocument(match[2], Order(f"{match[1]}:sha256:{match[3]}")))
        return sorted(found, key=lambda entry: int(entry.order.partition(":")[0])), ""

    def write_receipt(self, kill_generation: int, host: str, receipt_json: bytes | str) -> RemoteWrite:
        """This host's answer to an order, create-only: a receipt once given is never changed. Never raises but on a bad name."""
        name = self._receipt_name(kill_generation, host)
        body = receipt_json.encode() if isinstance(receipt_json, str) else receipt_json
        if len(body) > RECEIPT_LIMIT:
            raise UsageProblem(f"The receipt is larger than {RECEIPT_LIMIT} bytes.", "Leave out the evidence.")
        sha = hashlib.sha256(body).hexdigest()

        def write(client: storage.Client, _left: Callable[[], float]) -> RemoteWrite:
            bucket = client.bucket(self.bucket)
            try:
                generation = upload(bucket, name, body, 0)
            except PreconditionFailed:
                there = fetch(bucket, name, 0, RECEIPT_LIMIT)
                same = there is not None and there.body == body
                detail = "this receipt was there already" if same else "failed: another receipt of this host was there already"
                return RemoteWrite(there.generation if there else 0, same, detail, sha, already=True)
            seen = fetch(bucket, name, 0, RECEIPT_LIMIT)
            ok = seen is not None and seen.generation == generation and seen.body == body
            return RemoteWrite(generation, ok, f"read back, generation {generation}" if ok else "failed: not read back as written", sha)

        try:
            return self._listing.run(write, self._write_deadline_s)
        except FAULTS as error:
            return RemoteWrite(0, False, f"failed: {words_of(error)}", sha)

    def receipts(self, kill_generation: int) -> tuple[list[HostReceipt], str]:
        """(receipts, trouble): which hosts answered this order, by host; trouble says why the list may be short."""
        prefix = f"{self._prefix}receipts/{int(kill_generation)}/"

        def gather(client: storage.Client, left: Callable[[], float]) -> list[HostReceipt]:
            bucket = client.bucket(self.bucket)
            found = []
            for blob in client.list_blobs(self.bucket, prefix=prefix, max_results=1000, retry=None, timeout=_left(left)):
                host = str(blob.name).removeprefix(prefix).removesuffix(".json")
                if _HOST.fullmatch(host):
                    found.append(_host_receipt(bucket, str(blob.name), host))
            return found

        try:
            return sorted(self._listing.run(gather, self._write_deadline_s), key=lambda r: r.host), ""
        except FAULTS as error:
            return [], words_of(error)

    def _receipt_name(self, kill_generation: int, host: str) -> str:
        if type(kill_generation) is not int or kill_generation < 1:
            raise UsageProblem("That is not a generation.", "Use the generation of the order that was obeyed.")
        if not _HOST.fullmatch(host):
            raise UsageProblem("That is not a host's name.", "Use letters, digits, dot, dash and underscore, 63 at most.")
        return f"{self._prefix}receipts/{kill_generation}/{host}.json"


def _left(left: Callable[[], float]) -> tuple[float, float]:
    return 1.5, max(0.1, min(3.0, left()))


def _host_receipt(bucket: storage.Bucket, name: str, host: str) -> HostReceipt:
    try:
        seen = fetch(bucket, name, 0, RECEIPT_LIMIT)
        data = json.loads(seen.body) if seen is not None else None
    except ObjectTooLarge as error:
        return HostReceipt(host, None, str(error))
    except (ValueError, RecursionError, ObjectMissing):
        return HostReceipt(host, None, "the receipt is not readable")
    return HostReceipt(host, data) if isinstance(data, dict) else HostReceipt(host, None, "the receipt is not an object")


def now_text() -> str:
    """UTC, for ``issued_at``: it is read by people and decides nothing."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def order_at(seen: RemoteRead) -> Order | None:
    """The order a read object would be, or None when there are no bytes."""
    return order_of(seen.generation, seen.body) if seen.body is not None else None
