"""Retire a signing key that leaked: a record says since when, signed by a key that remains.

A thief of a key can sign anything, with any date. So what a retired key signed counts only where its digest was on record before the
retirement. The place in the chain decides, never a clock.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

KIND = "key.retired"
HOST, FLEET = "host", "fleet"
"""What a key was for: the seals of this host's receipts and baselines; releases and rearms of a fleet."""
_CONTEXT = b"watchfloor-key-retired-1\n"


@dataclass(frozen=True, slots=True)
class Retirement:
    """What the record holds in its data."""

    role: str
    key_id: str
    public: str
    """Raw public key, base64. With it, what the key signed before can still be told apart from forgeries."""
    by: str
    """Raw public key, base64, of the remaining key that signs the retirement."""
    signature: str = ""

    def raw(self) -> bytes:
        """The retired public key; empty when it cannot be read."""
        return _raw(self.public)

    def raw_by(self) -> bytes:
        """The public key that remains; empty when it cannot be read."""
        return _raw(self.by)

    def statement(self) -> bytes:
        """What is signed."""
        fields = {"role": self.role, "key_id": self.key_id, "public": self.public, "by": self.by}
        return _CONTEXT + json.dumps(fields, sort_keys=True, separators=(",", ":")).encode()

    def as_data(self) -> dict[str, Any]:
        """For the record."""
        return {"role": self.role, "key_id": self.key_id, "public": self.public, "by": self.by, "signature": self.signature}

    def problem(self) -> str:
        """Why it is no retirement, in words, or ''."""
        try:
            raw, by = base64.b64decode(self.public, validate=True), base64.b64decode(self.by, validate=True)
            if key_id(raw) != self.key_id or raw == by:
                return "it names another key than the one it holds"
            Ed25519PublicKey.from_public_bytes(raw)
            Ed25519PublicKey.from_public_bytes(by).verify(base64.b64decode(self.signature, validate=True), self.statement())
        except (ValueError, binascii.Error, InvalidSignature):
            return "the signature of the key that remains does not fit"
        return ""


def retire(role: str, public: bytes, remaining: bytes, sign: Callable[[bytes], bytes]) -> Retirement:
    """Retires ``public`` (raw) by the remaining key (raw), which signs."""
    plain = Retirement(role, key_id(public), _text(public), _text(remaining))
    return Retirement(plain.role, plain.key_id, plain.public, plain.by, _text(sign(plain.statement())))


def retirement_of(data: Mapping[str, Any]) -> Retirement | None:
    """From a record's data; None when it has not the shape of one."""
    found = [data.get(name) for name in ("role", "key_id", "public", "by", "signature")]
    texts = [text for text in found if isinstance(text, str)]
    return Retirement(*texts) if len(texts) == len(found) else None


def key_id(public: bytes) -> str:
    """16 hexadecimal characters of the SHA-256 of the raw public key."""
    return hashlib.sha256(public).hexdigest()[:16]


def worth(role: str) -> str:
    """What signatures of a retired key are worth, for people."""
    if role == HOST:
        return "a seal by it counts only where it was on record before that; any other is worth nothing, whatever its date"
    return "what it signs is worth nothing here; a host that has an older fleet-keys.json trusts it until it gets the new one"


def _raw(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (ValueError, binascii.Error):
        return b""


def _text(raw: bytes) -> str:
    return base64.b64encode(raw).decode()
