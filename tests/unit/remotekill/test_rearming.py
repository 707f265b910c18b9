"""A signed rearm: a quorum of distinct keys over exactly this state, and worth nothing anywhere else."""

from __future__ import annotations

from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from console.domain.errors import Denied
from console.remotekill.document import KeySet, Signer, release_document, signatures_over
from console.remotekill.rearming import check_statement, statement

SAID: dict[str, Any] = {
    "instance": "00c0ffee",
    "generation": 4,
    "kills": ["20250101-000000-aaaaaaaa", "20250102-000000-bbbbbbbb"],
    "nonce": "ab" * 16,
    "reason": "found it, fixed it",
}
A, B, STRANGER = (Signer(kid, Ed25519PrivateKey.generate()) for kid in ("a" * 16, "b" * 16, "c" * 16))


def keys(quorum: int = 1, *signers: Signer) -> KeySet:
    return KeySet("fleet", quorum, {s.kid: s.private.public_key().public_bytes_raw() for s in signers or (A, B)})


def test_a_good_signature_counts_whatever_the_order_of_the_kills() -> None:
    signed = signatures_over(statement(**SAID), [A])
    assert check_statement(statement(**SAID | {"kills": SAID["kills"][::-1]}), signed, keys()) == [A.kid]


@pytest.mark.parametrize(
    "change",
    [
        {"instance": "00c0ffef"},
        {"generation": 5},
        {"kills": SAID["kills"][:1]},
        {"kills": [*SAID["kills"], "20250103-000000-cccccccc"]},
        {"nonce": "cd" * 16},
        {"reason": "found it, fixed it."},
    ],
)
def test_a_signature_over_anything_else_is_none(change: dict[str, Any]) -> None:
    signed = signatures_over(statement(**SAID | change), [A, B])
    with pytest.raises(Denied):
        check_statement(statement(**SAID), signed, keys())


def test_a_quorum_is_of_distinct_keys() -> None:
    message = statement(**SAID)
    twice = signatures_over(message, [A]) * 2
    same_key = Signer("d" * 16, A.private)
    for signed, trusted in (
        (twice, keys(2)),
        (signatures_over(message, [A, same_key]), keys(2, A, same_key)),
        (signatures_over(message, [A, STRANGER]), keys(2)),
        ([], keys(1)),
        (signatures_over(message, [A]), keys(0)),
        (signatures_over(message, [A]), KeySet("fleet", 1, {})),
    ):
        with pytest.raises(Denied):
            check_statement(message, signed, trusted)
    assert check_statement(message, signatures_over(message, [B, A]), keys(2)) == [A.kid, B.kid]


@pytest.mark.parametrize(
    "entry", [{}, {"kid": A.kid}, {"kid": A.kid, "alg": "none", "sig": ""}, {"kid": A.kid, "alg": "Ed25519", "sig": "%%%"}]
)
def test_what_is_no_signature_is_none(entry: dict[str, str]) -> None:
    with pytest.raises(Denied):
        check_statement(statement(**SAID), [entry], keys())


def test_a_release_of_the_fleet_is_no_rearm_and_a_rearm_no_release() -> None:
    import json

    body = release_document(fleet="fleet", epoch=1, reason="r", actor="a", issued_at="now", releases=(), signers=[A], baseline=True)
    with pytest.raises(Denied):
        check_statement(statement(**SAID), json.loads(body)["sigs"], keys())
    assert statement(**SAID).startswith(b"watchfloor-rearm/1\0")
