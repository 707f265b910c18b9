"""Finished receipts sealed with the host's key, and kept beside the plain ones."""

from __future__ import annotations

import hashlib
import json
import logging
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from console.audit.log import AuditLog
from console.audit.receipt_seal import HEAD, SUFFIX, seal
from console.credentials.host_key import PRIVATE_FILE, ensure_host_key
from console.domain.errors import ConsoleError
from console.domain.process.durable import replace_file
from console.services.notices.shown import Notice
from console.services.records.key_retirement import finish
from console.settings.places import Places

log = logging.getLogger(__name__)


class Sealer:
    """Holds the key. Without one a kill goes its way all the same: its receipt is not sealed, and that is shown."""

    __slots__ = ("_key", "_stamp", "_places", "_audit", "_notice")

    def __init__(self, places: Places, audit: AuditLog, notice: Notice) -> None:
        self._places, self._audit, self._notice = places, audit, notice
        self._key: Ed25519PrivateKey | None = None
        self._stamp: tuple[int, int] | None = None
        try:
            finish(places)
        except ConsoleError as error:
            notice(f"the retirement of the host key is not finished: {error}", "red")
        self._take_key()

    def _take_key(self) -> None:
        """Read the host's key again when its file has changed: a retired key must seal nothing any more."""
        try:
            seen = (self._places.keys_dir / PRIVATE_FILE).stat()
            stamp = (seen.st_ino, seen.st_mtime_ns)
        except OSError:
            stamp = None
        if self._key is not None and stamp in (None, self._stamp):
            return
        self._key, self._stamp = None, stamp
        try:
            self._key = ensure_host_key(self._places.keys_dir)
        except ConsoleError as error:
            self._notice(f"receipts of kills are not sealed: {error}", "red")

    def seal(self, receipt: bytes) -> bytes:
        """The sealed file for a receipt's JSON, with the audit log's newest record; nothing when it cannot be sealed."""
        if self._key is not None:
            self._take_key()
        if self._key is None:
            return b""
        seq, own = self._audit.head
        try:
            return seal({**json.loads(receipt), HEAD: {"seq": seq, "hash": own}}, self._key)
        except (ValueError, TypeError, RecursionError) as error:
            log.error("a receipt could not be sealed", exc_info=error)
            self._notice(f"a receipt could not be sealed: {error}", "red")
            return b""


def digest_of(sealed: bytes) -> str:
    """What the audit keeps of a seal: the SHA-256 of the sealed file, or ''."""
    return hashlib.sha256(sealed).hexdigest() if sealed else ""


def keep_receipt(folder: Path, kill_id: str, plain: bytes, sealed: bytes) -> None:
    """Writes both, the seal first: a receipt that is complete on disk has its seal there. Raises OSError."""
    if sealed:
        replace_file(folder / f"{kill_id}{SUFFIX}", sealed)
    replace_file(folder / f"{kill_id}.json", plain)
