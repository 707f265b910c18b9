"""Calls to one object, with google-cloud-storage: fetch it (bytes and generation that belong together) and upload it.

Metadata first (304 when unchanged), then the media pinned to that generation, so that a write in between cannot mix them.
"""

from __future__ import annotations

import base64
import hashlib
import io
from dataclasses import dataclass

import google_crc32c
from google.api_core.exceptions import NotModified
from google.cloud import storage

TIMEOUT = (1.5, 2.0)
"""Seconds to connect, and for each read of a socket. No retries here: the callers decide."""


class ObjectTooLarge(OSError):
    """The object is larger than what is asked for can be."""

    def __init__(self, generation: int, limit: int) -> None:
        super().__init__(f"it is larger than {limit} bytes")
        self.generation = generation


class NotWhole(OSError):
    """The bytes are not those that the metadata describes."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """Bytes and the generation they were pinned to."""

    generation: int
    body: bytes


class _Capped(io.BytesIO):
    def __init__(self, generation: int, limit: int) -> None:
        super().__init__()
        self._generation = generation
        self._limit = limit

    def write(self, data: bytes) -> int:  # type: ignore[override]
        if self.tell() + len(data) > self._limit:
            raise ObjectTooLarge(self._generation, self._limit)
        return super().write(data)


def fetch(bucket: storage.Bucket, name: str, known_generation: int, limit: int) -> Fetched | None:
    """The object, or None when its generation is ``known_generation``. Raises google's NotFound, ObjectTooLarge, and FAULTS."""
    blob = describe(bucket, name, known_generation)
    return None if blob is None else Fetched(generation_in(blob), download(bucket, blob, limit))


def describe(bucket: storage.Bucket, name: str, known_generation: int = 0) -> storage.Blob | None:
    """The object's metadata, in one request; None when its generation is ``known_generation``. Raises as ``fetch``."""
    blob = bucket.blob(name)
    try:
        blob.reload(if_generation_not_match=known_generation or None, timeout=TIMEOUT, retry=None)
    except NotModified:
        if not known_generation:
            raise
        return None
    # The second case is a server that ignores the precondition (some stand-ins do).
    return None if generation_in(blob) == known_generation else blob


def download(bucket: storage.Bucket, blob: storage.Blob, limit: int) -> bytes:
    """The bytes of exactly the generation that ``blob`` describes. Raises as ``fetch``."""
    generation = generation_in(blob)
    # By the metadata, before a byte is downloaded; the stream is capped too, since the metadata is the server's word.
    if int(blob.size or 0) > limit:
        raise ObjectTooLarge(generation, limit)
    stream = _Capped(generation, limit)
    pinned = bucket.blob(blob.name, generation=generation)
    pinned.download_to_file(stream, timeout=TIMEOUT, retry=None, checksum=None)
    body = stream.getvalue()
    _check_whole(blob, body)
    return body


def generation_in(blob: storage.Blob) -> int:
    """What the server named; NotWhole when it named none."""
    generation = blob.generation
    if type(generation) is not int or generation < 1:
        raise NotWhole("the server named no generation")
    return generation


def _check_whole(blob: storage.Blob, body: bytes) -> None:
    """The client checks only the media answer's own header; the pinned metadata is the better witness."""
    if blob.content_encoding:
        return  # stored compressed: size and checksums describe other bytes
    if blob.size is not None and int(blob.size) != len(body):
        raise NotWhole("the object came incomplete")
    if blob.crc32c:
        if int.from_bytes(base64.b64decode(blob.crc32c), "big") != google_crc32c.value(body):
            raise NotWhole("the object's checksum is wrong")
    elif blob.md5_hash and base64.b64decode(blob.md5_hash) != hashlib.md5(body, usedforsecurity=False).digest():
        raise NotWhole("the object's checksum is wrong")


def upload(bucket: storage.Bucket, name: str, body: bytes, expected_generation: int | None) -> int:
    """Writes the object and returns its generation. ``expected_generation``: 0 only creates, None overwrites whatever is there.

    Raises google's PreconditionFailed, and FAULTS. Private and uncached: a cached kill file could hide a kill.
    """
    blob = bucket.blob(name)
    blob.cache_control = "no-store"
    blob.upload_from_string(
        body,
        content_type="application/json",
        if_generation_match=expected_generation,
        timeout=TIMEOUT,
        retry=None,
        checksum="crc32c",
    )
    return generation_in(blob)
