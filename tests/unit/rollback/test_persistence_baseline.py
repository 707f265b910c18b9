"""A baseline that was changed in any byte, exchanged or cut short is noticed and never used."""

from __future__ import annotations

import hashlib
import hmac
import os
from pathlib import Path

import pytest

from console.domain.errors import UsageProblem
from console.rollback.persistence.baseline import Broken, load, place_of, save
from console.rollback.persistence.findings import Entry, RootSeen, Snapshot

TAKEN = Snapshot(
    5.0,
    (RootSeen("home:/h", "/h", True),),
    (Entry("home:/h", "a\udcff\n", "k", "r", "file", "d", 1, False, 0, 0, 0o644, 1.0, (0, 0, 0), "", ("x",), "n"),),
)


def sign(data: bytes) -> bytes:
    return hmac.digest(b"key", data, "sha256")


def check(data: bytes, signature: bytes) -> bool:
    return hmac.compare_digest(sign(data), signature)


def test_what_was_saved_comes_back_with_its_hash(tmp_path: Path) -> None:
    digest = save(tmp_path / "b", "c1", TAKEN, sign)
    assert load(tmp_path / "b", "c1", check) == (TAKEN, digest)
    assert hashlib.sha256((tmp_path / "b" / "c1.json").read_bytes()).hexdigest() == digest
    assert (tmp_path / "b" / "c1.json").stat().st_mode & 0o777 == 0o600


def test_none_is_none(tmp_path: Path) -> None:
    assert load(tmp_path, "c1", check) is None


def test_any_changed_byte_breaks_it(tmp_path: Path) -> None:
    save(tmp_path, "c1", TAKEN, sign)
    path = tmp_path / "c1.json"
    whole = path.read_bytes()
    for place in range(0, len(whole), 7):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        with pytest.raises(Broken):
            load(tmp_path, "c1", check)
    for other in (whole[:-5], b"", b"[]", b"{}", b"[" * 100_000, whole + b"\n"):
        path.write_bytes(other)
        with pytest.raises(Broken):
            load(tmp_path, "c1", check)


def test_another_sessions_and_another_keys_are_refused(tmp_path: Path) -> None:
    save(tmp_path, "c1", TAKEN, sign)
    (tmp_path / "c1.json").rename(tmp_path / "c2.json")
    with pytest.raises(Broken):
        load(tmp_path, "c2", check)
    save(tmp_path, "c1", TAKEN, lambda data: hmac.digest(b"other", data, "sha256"))
    with pytest.raises(Broken):
        load(tmp_path, "c1", check)


def test_what_lies_in_its_place_is_not_followed_and_not_waited_for(tmp_path: Path) -> None:
    save(tmp_path, "c1", TAKEN, sign)
    (tmp_path / "c2.json").symlink_to("c1.json")
    os.mkfifo(tmp_path / "c3.json")
    for name in ("c2", "c3"):
        with pytest.raises(Broken):
            load(tmp_path, name, check)


def test_a_hostile_session_id_is_refused() -> None:
    for name in ("../x", "", "A", "x" * 64, "a/b"):
        with pytest.raises(UsageProblem):
            place_of(Path("/nowhere"), name)
