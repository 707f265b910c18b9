"""A sealed receipt betrays a log that was put back to before it, wherever it is kept."""

from __future__ import annotations

import hashlib
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from console.audit import on_record
from console.audit.log import AuditLog
from console.audit.on_record import FIELD, Compared, compare
from console.audit.receipt_seal import seal
from console.audit.segments import set_aside
from console.audit.verify import verify_file

KEY = Ed25519PrivateKey.from_private_bytes(b"\x05" * 32)


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(on_record, "_AGAIN_S", (0.0,))


@pytest.fixture
def log(tmp_path: Path) -> Iterator[AuditLog]:
    (tmp_path / "keys").mkdir()
    (tmp_path / "receipts").mkdir()
    pem = KEY.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    (tmp_path / "keys" / "host-key.pub").write_bytes(pem)
    made = AuditLog(tmp_path / "audit.db")
    made.append("ann", "launch", "a1")
    yield made
    made.close()


def killed(log: AuditLog, kill_id: str, signed_at: float | None = None) -> Path:
    """A kill as it is kept: the sealed receipt, then its digest on record."""
    path = log.path.parent / "receipts" / f"{kill_id}.sealed.json"
    path.write_bytes(seal({"kill_id": kill_id}, KEY, signed_at))
    log.append("guard", "kill.judged", kill_id, data={"kill_id": kill_id, FIELD: hashlib.sha256(path.read_bytes()).hexdigest()})
    return path


def test_every_receipt_that_was_sealed_is_on_record(log: AuditLog) -> None:
    receipts = [killed(log, "k1"), killed(log, "k2")]
    assert compare(log.path, receipts) == Compared(2)
    assert compare(log.path, []) == Compared(0)


def test_a_log_put_back_to_an_older_copy_is_whole_in_itself_and_betrayed_by_a_receipt(log: AuditLog, tmp_path: Path) -> None:
    killed(log, "k1")
    log.close()
    old = tmp_path / "old"
    old.mkdir()
    for name in ("audit.db", "audit.checkpoints"):
        shutil.copy(tmp_path / name, old)
    again = AuditLog(log.path)
    kept = Path(shutil.copy(killed(again, "k2"), tmp_path / "k2.sealed.json"))
    again.close()
    for name in ("audit.db", "audit.checkpoints"):
        shutil.copy(old / name, tmp_path)
    assert verify_file(log.path).whole
    found = compare(log.path, [tmp_path / "receipts" / "k1.sealed.json", kept], tmp_path / "keys" / "host-key.pub")
    assert "no record of the receipt of kill k2" in found.why


def test_a_receipt_that_this_host_did_not_sign_is_said(log: AuditLog) -> None:
    path = killed(log, "k1")
    path.write_bytes(seal({"kill_id": "k1"}, Ed25519PrivateKey.generate()))
    assert "k1.sealed.json is not what this host signed" in compare(log.path, [path]).why


def test_receipts_of_before_a_damaged_log_was_set_aside_are_on_record_in_that_one(log: AuditLog, tmp_path: Path) -> None:
    old = killed(log, "k1", time.time() - 60)
    log.close()
    set_aside(log.path)
    new = AuditLog(log.path)
    new.append("ann", "launch", "a1")
    fresh = killed(new, "k2")
    assert compare(new.path, [old, fresh]) == Compared(2)
    new.close()
    shutil.rmtree(next(tmp_path.glob("audit-set-aside-*")))
    assert "kill k1" in compare(new.path, [old, fresh]).why


def test_a_log_that_cannot_be_read_is_said_in_words(log: AuditLog) -> None:
    path = killed(log, "k1")
    log.close()
    log.path.write_bytes(b"rubbish!" * 1000)
    log.path.with_name("audit.db-wal").unlink(missing_ok=True)
    assert "cannot be read" in compare(log.path, [path]).why
