"""A rearm signed by operator keys: over exactly this instance, generation, kills, the guard's nonce and the reason, and nothing else."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence

from console.domain.errors import Denied
from console.remotekill.document import KeySet, canonical, is_good

PREFIX = b"watchfloor-rearm/1\0"
"""Put before the canonical bytes: a signature over a release is worth nothing here, and the other way round."""


def statement(*, instance: str, generation: int, kills: Iterable[str], nonce: str, reason: str) -> bytes:
    """The bytes that are signed."""
    content = {
        "instance": instance,
        "generation": generation,
        "kills": sorted(set(kills)),
        "nonce": nonce,
        "reason_sha256": hashlib.sha256(reason.encode("utf-8", "surrogatepass")).hexdigest(),
    }
    return PREFIX + canonical(content)


def check_statement(message: bytes, signatures: Sequence[Mapping[str, str]], keys: KeySet) -> list[str]:
    """The kids of a quorum of distinct keys that signed it. Denied without one."""
    good: dict[bytes, str] = {}
    for entry in signatures:
        public = keys.keys.get(entry.get("kid", "")) if entry.get("alg") == "Ed25519" else None
        if public is not None and is_good(public, entry.get("sig", ""), message):
            good.setdefault(public, entry["kid"])
    needed = max(1, keys.quorum)
    if keys.quorum < 1 or len(good) < needed:
        raise Denied(
            f"{len(good)} of {needed} required operator keys signed exactly this.", "Look again, and sign what is killed now (--sign)."
        )
    return sorted(good.values())
