"""A key that leaked: on record first, then gone; refused, nothing has changed; a crash in between is finished."""

from __future__ import annotations

from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from console.api.secrets import RetireKeyBody, RetirementBody
from console.audit.log import AuditLog
from console.audit.retirement import FLEET, HOST, KIND, key_id, retire
from console.audit.verify_presence import retired_keys
from console.credentials.host_key import NEXT_FILE, ensure_host_key, next_key, prepare_next
from console.domain.engine.command import Record
from console.domain.errors import Conflict, ConsoleError, Denied, NotFound, NotRecorded, UsageProblem
from console.remotekill.keys import init_keys, load_keys, load_signers, rotate_keys
from console.services.records import key_retirement
from console.services.records.key_retirement import apply, finish, host_key_id, retire_here
from console.settings.places import Places


@pytest.fixture
def places(tmp_path: Path) -> Places:
    made = Places(tmp_path, tmp_path / "run", "0123abcd", False)
    AuditLog(made.audit_db).close()
    ensure_host_key(made.keys_dir)
    return made


def refuse(_record: Record) -> None:
    raise NotRecorded("The disk is full.", "")


def kinds(places: Places) -> list[str]:
    log = AuditLog(places.audit_db)
    found = [record.kind for record in log.page()]
    log.close()
    return found


def test_the_hosts_key_is_replaced_and_the_log_says_by_which(places: Places) -> None:
    old = host_key_id(places)
    said = retire_here(places, old, "on a stick that is gone", [])
    assert (said.role, said.key_id, said.by) == (HOST, old, host_key_id(places)) and said.by != old and "worth nothing" in said.worth
    assert retired_keys(places.audit_db)[old].problem() == "" and next_key(places.keys_dir) is None
    with pytest.raises(NotFound):
        retire_here(places, old, "once more", [])
    assert kinds(places) == [KIND]


def test_a_fleets_key_leaves_the_set_signed_by_one_that_remains(places: Places) -> None:
    (old,) = init_keys(places.keys_dir, "a").kids
    with pytest.raises(Denied, match="No private key that remains"):
        retire_here(places, old, "leaked", [])
    rotate_keys(places.keys_dir)
    said = retire_here(places, old, "leaked", [])
    assert said.role == FLEET and list(load_keys(places.keys_dir).keys) == [said.by] and not (places.keys_dir / f"{old}.key").exists()


def test_a_key_kept_elsewhere_signs_too_and_a_quorum_is_not_broken(places: Places, tmp_path: Path) -> None:
    one, two = init_keys(places.keys_dir, "a", 2).kids
    with pytest.raises(Conflict, match="Rotate first"):
        retire_here(places, one, "leaked", [])
    (third,) = set(rotate_keys(places.keys_dir).kids) - {one, two}
    stick = tmp_path / "stick.key"
    for kid in (two, third):
        (places.keys_dir / f"{kid}.key").rename(stick)
    with pytest.raises(Denied):
        retire_here(places, one, "leaked", [])
    assert retire_here(places, one, "leaked", [str(stick)]).by == third and kinds(places) == [KIND]


@pytest.mark.parametrize(
    ("kid", "reason"), [("", "r"), ("x" * 16, "r"), ("../../etc", "r"), ("<b>\0", "r"), ("host", " "), ("host", "x" * 501)]
)
def test_what_makes_no_sense_changes_nothing(places: Places, kid: str, reason: str) -> None:
    init_keys(places.keys_dir, "a")
    with pytest.raises((NotFound, UsageProblem)):
        retire_here(places, host_key_id(places) if kid == "host" else kid, reason, [])
    assert kinds(places) == []


def test_what_cannot_be_recorded_is_not_done(places: Places) -> None:
    old = host_key_id(places)
    with pytest.raises(NotRecorded):
        apply(places, RetireKeyBody(key_id=old, reason="r"), "ann", refuse)
    assert host_key_id(places) == old and not (places.keys_dir / NEXT_FILE).exists()
    places.audit_db.unlink()
    with pytest.raises(NotFound, match="no audit log"):
        retire_here(places, old, "r", [])


def test_a_signature_that_is_none_or_another_keys_is_refused(places: Places) -> None:
    (old,) = init_keys(places.keys_dir, "a").kids
    rotate_keys(places.keys_dir)
    keys, [good, own] = load_keys(places.keys_dir).keys, load_signers(places.keys_dir)
    stranger = Ed25519PrivateKey.generate()
    raw = stranger.public_key().public_bytes_raw()
    none = (
        retire(FLEET, keys[old], raw, stranger.sign),
        retire(FLEET, keys[old], keys[old], own.private.sign),
        retire(HOST, keys[old], keys[good.kid], good.private.sign),
        retire(FLEET, raw, keys[good.kid], good.private.sign),
    )
    for found in none:
        with pytest.raises((Denied, NotFound)):
            apply(places, RetireKeyBody(key_id=old, reason="r", retirement=RetirementBody(**found.as_data())), "ann", refuse)
    assert old in load_keys(places.keys_dir).keys


def test_a_crash_after_the_record_is_finished_and_one_before_it_is_forgotten(places: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    old = host_key_id(places)
    prepare_next(places.keys_dir)
    finish(places)
    assert host_key_id(places) == old and next_key(places.keys_dir) is None, "nothing was recorded"

    def crash(_keys_dir: Path) -> None:
        raise ConsoleError("power cut", "")

    with monkeypatch.context() as patched, pytest.raises(ConsoleError, match="power cut"):
        patched.setattr(key_retirement, "take_over", crash)
        retire_here(places, old, "leaked", [])
    assert host_key_id(places) == old
    finish(places)
    assert host_key_id(places) == key_id(retired_keys(places.audit_db)[old].raw_by())
    successor = prepare_next(places.keys_dir)
    (places.keys_dir / "host-key.pem").unlink()  # in the middle of taking over
    (places.keys_dir / "host-key.pub").unlink()
    finish(places)
    assert host_key_id(places) == key_id(successor.public_key().public_bytes_raw())
