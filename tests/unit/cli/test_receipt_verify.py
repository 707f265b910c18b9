"""``watchfloor receipt verify``: words, JSON and the exit code."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from console.audit.receipt_seal import key_id_of, seal
from console.cli.stop.receipt import verify
from console.domain.errors import NotFound

KEY = Ed25519PrivateKey.from_private_bytes(b"\x03" * 32)


@pytest.fixture
def sealed(tmp_path: Path) -> Path:
    (tmp_path / "keys").mkdir()
    (tmp_path / "receipts").mkdir()
    pem = KEY.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    (tmp_path / "keys" / "host-key.pub").write_bytes(pem)
    path = tmp_path / "receipts" / "k1.sealed.json"
    path.write_bytes(seal({"kill_id": "k1"}, KEY))
    return path


def test_a_good_one_is_zero_and_says_by_which_key(sealed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert verify(sealed) == 0
    said = capsys.readouterr().out
    assert "good" in said and "k1" in said and key_id_of(KEY.public_key()) in said and "compare" in said
    assert verify(sealed, sealed.parent.parent / "keys" / "host-key.pub") == 0
    assert "compare" not in capsys.readouterr().out


def test_a_changed_one_is_one_and_says_why(sealed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sealed.write_bytes(sealed.read_bytes().replace(b'"k1"', b'"k2"'))
    assert verify(sealed) == 1
    assert "NOT GOOD: the signature does not fit" in capsys.readouterr().out


def test_json_for_programs(sealed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert verify(sealed, None, True) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["schema_version"] == 1
    assert (said["good"], said["kill_id"], said["why"]) == (True, "k1", "")


def test_no_file_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        verify(tmp_path / "nothing")
