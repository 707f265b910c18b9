"""A sealed receipt betrays a log that was put back to before it, wherever it is kept."""

from __future__ import annotations

import hashlib
import json
import shutil
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from console.audit import verify_presence
from console.audit.anchors import Anchor
from console.audit.database import COLUMNS
from console.audit.log import AuditLog
from console.audit.receipt_seal import HEAD, seal
from console.audit.retirement import HOST, KIND, key_id, retire
from console.audit.segments import set_aside
from console.audit.set_aside import ACKNOWLEDGED, PUT_BACK
from console.audit.verify import verify_file
from console.audit.verify_presence import FIELD, Compared, compare, retired_keys

KEY = Ed25519PrivateKey.from_private_bytes(b"\x05" * 32)


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verify_presence, "_AGAIN_S", (0.0,))


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
    seq, own = log.head
    path.write_bytes(seal({"kill_id": kill_id, HEAD: {"seq": seq, "hash": own}}, KEY, signed_at))
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


def test_receipts_of_before_a_damaged_log_was_set_aside_are_looked_for_there_and_unknown(log: AuditLog, tmp_path: Path) -> None:
    old = killed(log, "k1", time.time() - 60)
    log.close()
    set_aside(log.path)
    new = AuditLog(log.path)
    assert compare(new.path, [old]).unknown[1].endswith("is on record only in a log that was set aside"), "a log without a record, too"
    new.append("ann", "launch", "a1")
    fresh = killed(new, "k2")
    found = compare(new.path, [old, fresh])
    assert (found.receipts, found.why) == (2, "")
    aside, receipt = found.unknown
    assert "set aside as not intact (audit-set-aside-" in aside and "kill k1" in receipt and "on record only" in receipt
    # Nobody hides what was on record behind a folder of that name.
    [folder] = tmp_path.glob("audit-set-aside-*")
    (folder / "audit.db").write_bytes(b"rubbish!" * 1000)
    assert "kill k1" in (words := compare(new.path, [old, fresh]).unknown[1]) and "on record in no log that was set aside" in words
    new.close()
    shutil.rmtree(folder)
    assert "kill k1" in compare(new.path, [old, fresh]).why


def test_a_log_set_aside_is_said_without_any_receipt(log: AuditLog) -> None:
    assert compare(log.path, []).unknown == ()
    log.close()
    set_aside(log.path)
    new = AuditLog(log.path)
    assert len(compare(new.path, []).unknown) == 1
    new.close()


def test_a_log_rewritten_from_its_beginning_is_betrayed_by_a_receipt_and_by_an_anchor_kept_elsewhere(log: AuditLog, tmp_path: Path) -> None:
    anchor = Anchor(*log.head, "the anchor that was given")
    kept = killed(log, "k1")
    log.close()
    assert compare(log.path, [kept], None, [anchor]) == Compared(1)
    with closing(sqlite3.connect(log.path)) as connection:
        rows = list(connection.execute(f"SELECT {COLUMNS} FROM records ORDER BY seq"))
    for name in ("audit.db", "audit.checkpoints"):
        (tmp_path / name).unlink()
    other = AuditLog(log.path)
    for _seq, _at, actor, kind, what, verdict, agent, data, *_ in rows:  # the seal's digest is on record all the same
        other.append(actor, kind, what.replace("a1", "a2"), verdict=verdict, agent_id=agent, data=json.loads(data))
    other.close()
    assert verify_file(log.path).whole
    assert "record 1 is not the one that the receipt of kill k1 names" in compare(log.path, [kept]).why
    assert "record 1 is not the one that the anchor that was given names" in compare(log.path, [], None, [anchor]).why
    assert "record 9, which" in compare(log.path, [], None, [Anchor(9, "0" * 64, "the anchor that was given")]).why


def test_what_a_retired_key_sealed_counts_only_where_it_was_on_record_before(log: AuditLog, tmp_path: Path) -> None:
    before, successor = killed(log, "k1"), Ed25519PrivateKey.from_private_bytes(b"\x06" * 32)
    stolen = tmp_path / "k3.sealed.json"
    stolen.write_bytes(seal({"kill_id": "k3"}, KEY, time.time() - 3600))
    raw, remaining = (key.public_key().public_bytes_raw() for key in (KEY, successor))
    log.append("ann", KIND, "leaked", data=retire(HOST, raw, remaining, successor.sign).as_data())
    pem = successor.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    (tmp_path / "keys" / "host-key.pub").write_bytes(pem)
    public = tmp_path / "keys" / "host-key.pub"
    found = compare(log.path, [before], public)
    assert found.why == "" and f"host key {key_id(raw)} was retired at record 3" in found.retired[0]
    assert "not on record: it is worth nothing" in compare(log.path, [stolen], public).why
    late = killed(log, "k4")
    assert "came on record after its key" in compare(log.path, [late], public).why
    assert list(retired_keys(log.path)) == [key_id(raw)] and retired_keys(tmp_path / "none") == {}


def test_a_retirement_that_nobody_signed_is_said(log: AuditLog) -> None:
    raw = KEY.public_key().public_bytes_raw()
    log.append("ann", KIND, "forged", data=retire(HOST, raw, b"\x01" * 32, lambda _said: b"x" * 64).as_data())
    assert "record 2 retires a key, but the signature" in compare(log.path, []).why
    log.append("ann", KIND, "forged", data={"role": 1})
    assert log.verify().whole


def test_a_log_that_cannot_be_read_is_said_in_words(log: AuditLog) -> None:
    path = killed(log, "k1")
    log.close()
    log.path.write_bytes(b"rubbish!" * 1000)
    log.path.with_name("audit.db-wal").unlink(missing_ok=True)
    assert "cannot be read" in compare(log.path, [path]).why


def test_receipts_that_an_older_copy_lost_are_a_loss_that_can_be_acknowledged_and_a_later_one_is_another(log: AuditLog) -> None:
    first = killed(log, "k1", time.time() - 60)
    log.close()
    for name in ("audit.db", "audit.checkpoints"):
        (log.path.parent / name).unlink()
    again = AuditLog(log.path)
    again.append("ann", "launch", "a1")
    found = compare(again.path, [first])
    assert found.is_older and "no record of the receipt of kill k1" in found.why
    again.append("supervisor", PUT_BACK, found.why)
    found = compare(again.path, [first])
    assert not found.is_older and not found.why and "older copy of the log was put back" in found.losses.why
    assert "kill k1" in found.unknown[0]
    again.append("ann", ACKNOWLEDGED, "a backup, ticket 7")
    assert compare(again.path, [first]).losses.open == () and compare(again.path, [first]).unknown == ()
    second = killed(again, "k2")
    second.write_bytes(seal({"kill_id": "k2"}, KEY, time.time() + 1))
    assert compare(again.path, [first, second]).is_older
    again.close()
