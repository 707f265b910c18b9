"""Sealing: a finished receipt gets a seal, and a missing key takes nothing else away."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from types import SimpleNamespace
from typing import cast

from console.audit.log import AuditLog
from console.audit.receipt_seal import verify_file
from console.services.records.receipt_seal import Sealer, digest_of, keep_receipt
from console.settings.places import Places


def sealer(state: Path, notices: list[str]) -> Sealer:
    places = Places(state, state / "run", "0123abcd", False)
    places.receipts_dir.mkdir(exist_ok=True)
    audit = cast(AuditLog, SimpleNamespace(head=(7, "ab" * 32)))
    return Sealer(places, audit, lambda text, level="amber": notices.append(f"{level} {text}"))


def test_what_is_kept_verifies_with_the_key_made_at_the_first_start(tmp_path: Path) -> None:
    notices: list[str] = []
    sealing, receipts = sealer(tmp_path, notices), tmp_path / "receipts"
    plain = json.dumps({"kill_id": "k-1", "x": "\udcff"}).encode()
    sealed = sealing.seal(plain)
    keep_receipt(receipts, "k-1", plain, sealed)
    kept = receipts / "k-1.sealed.json"
    assert verify_file(kept).good and verify_file(kept).audit_head == (7, "ab" * 32)
    assert digest_of(sealed) == hashlib.sha256(kept.read_bytes()).hexdigest()
    assert (receipts / "k-1.json").read_bytes() == plain
    again = sealer(tmp_path, notices).seal(plain)
    keep_receipt(receipts, "k-1", plain, again)
    assert verify_file(kept).good and not notices


def test_without_a_key_the_receipt_is_kept_unsealed_and_that_is_shown(tmp_path: Path) -> None:
    (tmp_path / "keys").mkdir()
    (tmp_path / "keys" / "host-key.pem").write_text("damaged")
    (tmp_path / "keys" / "host-key.pem").chmod(0o600)
    notices: list[str] = []
    receipts = tmp_path / "receipts"
    sealed = sealer(tmp_path, notices).seal(b"{}")
    keep_receipt(receipts, "k-1", b"{}", sealed)
    assert [p.name for p in receipts.iterdir()] == ["k-1.json"]
    assert digest_of(sealed) == ""
    assert len(notices) == 1 and notices[0].startswith("red receipts of kills are not sealed")


def test_what_cannot_be_sealed_is_shown_and_kept_plain(tmp_path: Path) -> None:
    notices: list[str] = []
    assert sealer(tmp_path, notices).seal(b'{"ms_total": NaN}') == b""
    assert "could not be sealed" in notices[0]
