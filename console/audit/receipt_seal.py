"""The seal of a receipt: the host's signature over all of it, checked from the file and the host's public key alone.

A sealed receipt is one JSON document ``{"receipt": {...}, "seal": {"alg", "key_id", "signed_at", "sig"}}`` in canonical form with a
closing newline. The signature covers everything but itself, and the file is good only byte for byte as it was written. The receipt names
the newest record of the audit log as it was sealed (``audit_head``): wherever it is kept, it betrays a log that was rewritten since.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import math
import os
import stat
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from console.domain.errors import UsageProblem

SUFFIX = ".sealed.json"
ALGORITHM = "Ed25519"
_CONTEXT = b"watchfloor-receipt-seal-1\n"
"""Before what is signed, so that a signature of the host's key over anything else is none over a receipt."""
HEAD = "audit_head"
"""Key of a sealed receipt: ``{"seq", "hash"}`` of the newest record of the audit log when it was sealed."""
_LIMIT = 256 * 1024 * 1024
_KEY_LIMIT = 64 * 1024


@dataclass(frozen=True, slots=True)
class SealVerdict:
    """Whether a sealed receipt is what the host signed. ``kill_id`` and ``key_id`` are to be believed only when ``good``."""

    good: bool
    why: str
    """In words; empty when good."""
    kill_id: str = ""
    key_id: str = ""
    signed_at: float | None = None
    """Seconds since the epoch, by the host's clock."""
    audit_head: tuple[int, str] | None = None
    """Number and hash of the newest audit record when it was sealed; None: sealed by an earlier version."""
    retired: bool = False
    """Sealed with a key that was retired: good for nothing unless its seal was on record before that."""


class _Bad(Exception):
    """Why it is not good, in words."""


def key_id_of(public: Ed25519PublicKey) -> str:
    """16 hexadecimal characters of the SHA-256 of the raw public key."""
    return hashlib.sha256(public.public_bytes_raw()).hexdigest()[:16]


def seal(receipt_json: Mapping[str, Any], private: Ed25519PrivateKey, signed_at: float | None = None) -> bytes:
    """The whole sealed file for ``Receipt.as_json()``. Raises ValueError or TypeError on what is not finite JSON."""
    head = {"alg": ALGORITHM, "key_id": key_id_of(private.public_key()), "signed_at": time.time() if signed_at is None else signed_at}
    signature = base64.b64encode(private.sign(_signed(receipt_json, head))).decode()
    return _canonical({"receipt": receipt_json, "seal": {**head, "sig": signature}}) + b"\n"


@dataclass(frozen=True, slots=True)
class Given:
    """A sealed receipt that was handed over instead of a file's place."""

    name: str
    raw: bytes


def read_given(path: Path, limit: int) -> Given:
    """Read a sealed receipt to hand it over. Raises UsageProblem for a file that is no plain one of at most ``limit`` bytes."""
    try:
        return Given(path.name, _read(path, limit))
    except _Bad as bad:
        raise UsageProblem(str(bad), "Name a sealed receipt: KILL.sealed.json.") from bad


def verify_given(given: Given, public_key_path: Path | None, retired: Mapping[str, bytes] | None = None) -> SealVerdict:
    """As `verify_file`."""
    if public_key_path is None:
        return SealVerdict(False, "no public key was named.")
    try:
        return _judged(given.raw, _public(public_key_path), given.name, retired or {})
    except _Bad as bad:
        return SealVerdict(False, str(bad))


def verify_file(path: Path, public_key_path: Path | None = None, retired: Mapping[str, bytes] | None = None) -> SealVerdict:
    """Verifies a sealed receipt; never raises on what the files hold.

    Without ``public_key_path`` the key is the one of the instance whose ``receipts`` folder the file lies in. ``retired``: key id and
    raw public key of keys of before; one that such a key sealed is ``retired``, and then ``good`` says only that its signature fits.
    """
    try:
        given = Given(path.name, _read(path, _LIMIT))
    except _Bad as bad:
        return SealVerdict(False, str(bad))
    return verify_given(given, public_key_path or key_beside(path), retired)


def key_beside(path: Path) -> Path:
    """The public key of the instance whose ``receipts`` folder the file lies in."""
    return path.absolute().parent.parent / "keys" / "host-key.pub"


def _judged(raw: bytes, public: Ed25519PublicKey, name: str, retired: Mapping[str, bytes]) -> SealVerdict:
    # 1. The shape, byte for byte as it is written: nothing that a parser reads over was changed or added.
    document = _parse(raw)
    receipt, head = document["receipt"], dict(document["seal"])
    signature = _signature(head.pop("sig"))
    is_retired = head["key_id"] in retired
    if is_retired:
        # Whether the seal counts is decided later by its place in the chain: anyone with a leaked key can write any date.
        public = Ed25519PublicKey.from_public_bytes(retired[head["key_id"]])
    # 2. The algorithm is ours to choose, never the file's.
    if head["alg"] != ALGORITHM:
        raise _Bad(f"its seal is not {ALGORITHM}.")
    # 3. The key is the one that was asked for.
    if head["key_id"] != key_id_of(public):
        raise _Bad(f"it was sealed with another key than the one given ({key_id_of(public)}).")
    # 4. The signature covers what is there now.
    try:
        public.verify(signature, _signed(receipt, head))
    except InvalidSignature as error:
        raise _Bad("the signature does not fit: the receipt or its seal was changed.") from error
    # 5. It is not another kill's receipt under this one's name.
    kill_id = str(receipt.get("kill_id", ""))
    if name.endswith(SUFFIX) and name != kill_id + SUFFIX:
        raise _Bad("it is the receipt of another kill than its file name says.")
    return SealVerdict(True, "", kill_id, str(head["key_id"]), float(head["signed_at"]), _audit_head(receipt), is_retired)


def _audit_head(receipt: Mapping[str, Any]) -> tuple[int, str] | None:
    found = receipt.get(HEAD)
    if isinstance(found, dict) and type(found.get("seq")) is int and isinstance(found.get("hash"), str):
        return found["seq"], found["hash"]
    return None


def _read(path: Path, limit: int) -> bytes:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # a pipe waits for nobody
        with open(descriptor, "rb") as file:  # noqa: PTH123 - a descriptor
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise _Bad(f"{path} is not a plain file.")
            raw = file.read(limit + 1)
    except OSError as error:
        raise _Bad(f"{path} cannot be read: {error.strerror or error}.") from error
    if len(raw) > limit:
        raise _Bad(f"{path} is too large.")
    return raw


def _public(path: Path) -> Ed25519PublicKey:
    try:
        public = serialization.load_pem_public_key(_read(path, _KEY_LIMIT))
    except (ValueError, UnsupportedAlgorithm) as error:
        raise _Bad(f"{path} holds no public key.") from error
    if not isinstance(public, Ed25519PublicKey):
        raise _Bad(f"{path} holds no {ALGORITHM} key.")
    return public


def _parse(raw: bytes) -> dict[str, Any]:
    try:
        document = json.loads(raw)
        is_canonical = raw == _canonical(document) + b"\n"
    except (ValueError, RecursionError) as error:
        raise _Bad("it is not a JSON document that Watchfloor writes.") from error
    if not is_canonical:
        raise _Bad("its bytes are not as Watchfloor writes them: it was changed, or it is no sealed receipt.")
    if not isinstance(document, dict) or set(document) != {"receipt", "seal"}:
        raise _Bad("it carries no seal.")
    receipt, head = document["receipt"], document["seal"]
    if not isinstance(receipt, dict) or not isinstance(head, dict) or set(head) != {"alg", "key_id", "signed_at", "sig"}:
        raise _Bad("its seal has not the shape of one.")
    if not isinstance(head["key_id"], str) or not isinstance(head["signed_at"], (int, float)) or not _is_finite(head["signed_at"]):
        raise _Bad("its seal has not the shape of one.")
    return document


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def _signature(text: Any) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (TypeError, ValueError, binascii.Error) as error:
        raise _Bad("its signature is not base64.") from error


def _signed(receipt: Mapping[str, Any], head: Mapping[str, Any]) -> bytes:
    return _CONTEXT + _canonical({"receipt": receipt, "seal": head})


def _canonical(value: object) -> bytes:
    """Sorted keys, no spaces, ASCII only, finite numbers."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode()
