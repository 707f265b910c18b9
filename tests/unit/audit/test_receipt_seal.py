"""A sealed receipt verifies from the file and the public key alone; any change of it does not."""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from console.audit.receipt_seal import SealVerdict, key_id_of, seal, verify_file
from console.domain.kill import Outcome, Receipt, Step, StepName, StepStatus, Target

KEY = Ed25519PrivateKey.from_private_bytes(b"\x01" * 32)
KILL = "20250131-142233-a1b2c3"


def receipt(kill_id: str = KILL) -> dict[str, Any]:
    steps = (Step(StepName.ZERO, StepStatus.OK, 1.5, "zero \ud800 <b>\u202e"),)
    made = Receipt(kill_id, "i", "all", "why", "who", 1.0, steps=steps, targets=(Target("a", "managed", Outcome.PROVEN_ZERO, 2.0),))
    return dict(json.loads(json.dumps(made.as_json())))


def public_file(folder: Path, key: Any = KEY) -> Path:
    path = folder / "keys" / "host-key.pub"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo))
    return path


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """A state directory with a key and one sealed receipt."""
    public_file(tmp_path)
    (tmp_path / "receipts").mkdir()
    sealed(tmp_path).write_bytes(seal(receipt(), KEY, 1_800_000_000.5))
    return tmp_path


def sealed(state: Path) -> Path:
    return state / "receipts" / f"{KILL}.sealed.json"


def test_what_was_sealed_verifies_with_the_key_beside_it_and_with_one_kept_elsewhere(state: Path) -> None:
    good = SealVerdict(True, "", KILL, key_id_of(KEY.public_key()), 1_800_000_000.5)
    assert verify_file(sealed(state)) == good
    elsewhere = state / "elsewhere.pub"
    (state / "keys" / "host-key.pub").rename(elsewhere)
    assert verify_file(sealed(state), elsewhere) == good
    assert "cannot be read" in verify_file(sealed(state)).why


def test_the_file_holds_the_receipt_as_it_was_and_the_seal(state: Path) -> None:
    document = json.loads(sealed(state).read_bytes())
    assert document["receipt"] == receipt()
    assert set(document["seal"]) == {"alg", "key_id", "signed_at", "sig"}
    assert document["seal"]["alg"] == "Ed25519"


def test_any_one_changed_byte_is_noticed(state: Path) -> None:
    whole = sealed(state).read_bytes()
    for place in range(len(whole)):
        changed = bytearray(whole)
        changed[place] ^= 32 if place % 2 else 1
        sealed(state).write_bytes(changed)
        verdict = verify_file(sealed(state))
        assert not verdict.good and verdict.why and not verdict.kill_id, (place, bytes(changed))


@pytest.mark.parametrize("change", [lambda b: b[:-1], lambda b: b + b"\n", lambda b: b" " + b, lambda b: b[: len(b) // 2], lambda _b: b""])
def test_bytes_added_or_cut_are_noticed(state: Path, change: Any) -> None:
    sealed(state).write_bytes(change(sealed(state).read_bytes()))
    assert not verify_file(sealed(state)).good


def rewrite(state: Path, **head: Any) -> SealVerdict:
    """The seal's fields exchanged, in canonical form."""
    document = json.loads(sealed(state).read_bytes())
    document["seal"] |= head
    sealed(state).write_bytes(json.dumps(document, sort_keys=True, separators=(",", ":")).encode() + b"\n")
    return verify_file(sealed(state))


@pytest.mark.parametrize(
    ("head", "why"),
    [
        ({"alg": "none"}, "not Ed25519"),
        ({"signed_at": 5}, "signature does not fit"),
        ({"signed_at": "soon"}, "shape"),
        ({"signed_at": 10**400}, "shape"),
        ({"sig": "%%"}, "base64"),
        ({"sig": 5}, "base64"),
        ({"sig": base64.b64encode(b"\0" * 64).decode()}, "signature does not fit"),
        ({"key_id": "0" * 16}, "another key"),
        ({"more": 1}, "shape"),
    ],
)
def test_a_seal_that_was_tampered_with_says_what_is_wrong(state: Path, head: dict[str, Any], why: str) -> None:
    assert why in rewrite(state, **head).why


@pytest.mark.parametrize("body", [b"[]\n", b"{}\n", b"nonsense", b'{"receipt":1,"seal":2}\n', b'{"a":1e999}\n', b"[" * 100_000])
def test_other_files_carry_no_seal(state: Path, body: bytes) -> None:
    sealed(state).write_bytes(body)
    assert not verify_file(sealed(state)).good


def test_another_hosts_seal_is_not_this_hosts(state: Path) -> None:
    other = Ed25519PrivateKey.from_private_bytes(b"\x02" * 32)
    sealed(state).write_bytes(seal(receipt(), other))
    assert "another key" in verify_file(sealed(state)).why


def test_a_signature_of_the_key_over_something_else_is_no_seal(state: Path) -> None:
    document = json.loads(sealed(state).read_bytes())
    head = {k: v for k, v in document["seal"].items() if k != "sig"}
    bare = json.dumps({"receipt": document["receipt"], "seal": head}, sort_keys=True, separators=(",", ":")).encode()
    assert "signature does not fit" in rewrite(state, sig=base64.b64encode(KEY.sign(bare)).decode()).why


def test_a_receipt_put_in_another_ones_place_is_noticed_and_a_renamed_copy_is_fine(state: Path) -> None:
    sealed(state).write_bytes(seal(receipt("20250101-000000-ffffff"), KEY))
    assert "another kill" in verify_file(sealed(state)).why
    copy = state / "receipts" / "handed-over.json"
    copy.write_bytes(sealed(state).read_bytes())
    assert verify_file(copy).kill_id == "20250101-000000-ffffff"


def test_a_key_file_that_holds_no_such_key_is_said(state: Path) -> None:
    key = state / "keys" / "host-key.pub"
    key.write_bytes(b"-----BEGIN PUBLIC KEY-----\nxx\n-----END PUBLIC KEY-----\n")
    assert "no public key" in verify_file(sealed(state)).why
    public_file(state, X25519PrivateKey.generate())
    assert "no Ed25519 key" in verify_file(sealed(state)).why
    key.write_bytes(b"x" * 70_000)
    assert "too large" in verify_file(sealed(state)).why


def test_what_is_not_finite_json_is_not_sealed() -> None:
    for bad in (float("nan"), object()):
        with pytest.raises((ValueError, TypeError)):
            seal({"ms_total": bad}, KEY)


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "k1.sealed.json"
    os.mkfifo(path)
    assert "is not a plain file" in verify_file(path).why
