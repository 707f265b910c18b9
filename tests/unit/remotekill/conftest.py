"""A fleet's keys and documents for the tests of this room."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from console.remotekill.document import KeySet, Order, Signer, baseline_document, release_document

AT = "2026-01-01T00:00:00+00:00"


@dataclass
class Fleet:
    """Two keys; the first is also known under a second kid, so that one key can sign twice."""

    one: Ed25519PrivateKey = field(default_factory=Ed25519PrivateKey.generate)
    two: Ed25519PrivateKey = field(default_factory=Ed25519PrivateKey.generate)
    stranger: Ed25519PrivateKey = field(default_factory=Ed25519PrivateKey.generate)

    def keys(self, quorum: int = 1) -> KeySet:
        raw = self.one.public_key().public_bytes_raw()
        return KeySet("prod-eu", quorum, {"k1": raw, "k1-again": raw, "k2": self.two.public_key().public_bytes_raw()})

    def signers(self, *kids: str) -> list[Signer]:
        private = {"k1": self.one, "k1-again": self.one, "k2": self.two, "stranger": self.stranger}
        return [Signer(kid, private[kid]) for kid in kids]

    def baseline(self, epoch: int, *kids: str, fleet: str = "prod-eu", settled: int = 0) -> bytes:
        signers = self.signers(*kids)
        return baseline_document(fleet=fleet, epoch=epoch, reason="calm", actor="ann", issued_at=AT, signers=signers, settled=settled)

    def release(self, epoch: int, orders: list[Order], *kids: str, settled: int = 0) -> bytes:
        signers = self.signers(*kids)
        return release_document(
            fleet="prod-eu", epoch=epoch, reason="ok", actor="ann", issued_at=AT, releases=orders, signers=signers, settled=settled
        )


@pytest.fixture(scope="session")
def fleet() -> Fleet:
    return Fleet()
