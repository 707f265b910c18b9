"""Keys: private ones in 0600 files, a checked public set, rotation with an overlap, epochs taken once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from console.domain.errors import Conflict, ConsoleError, NotFound, UsageProblem
from console.remotekill.document import SignedUnkill, baseline_document, parse
from console.remotekill.keys import PUBLIC_FILE, init_keys, load_keys, load_signers, retire_key, rotate_keys, show_keys, take_epoch


def test_init_makes_a_private_key_nobody_else_can_read_and_a_set_that_verifies_it(tmp_path: Path) -> None:
    shown = init_keys(tmp_path / "keys", "prod-eu")
    (kid,) = shown.signing
    assert (tmp_path / "keys" / f"{kid}.key").stat().st_mode & 0o777 == 0o600
    assert "PRIVATE" not in (tmp_path / "keys" / PUBLIC_FILE).read_text()
    assert (tmp_path / "keys").stat().st_mode & 0o777 == 0o700
    body = baseline_document(fleet="prod-eu", epoch=1, reason="", actor="", issued_at="", signers=load_signers(tmp_path / "keys"))
    assert isinstance(parse(body, load_keys(tmp_path / "keys")), SignedUnkill)
    assert "private" not in repr(load_signers(tmp_path / "keys"))


def test_init_never_overwrites(tmp_path: Path) -> None:
    init_keys(tmp_path, "a")
    with pytest.raises(Conflict):
        init_keys(tmp_path, "b")


@pytest.mark.parametrize(("fleet", "quorum"), [("", 1), ("a/b", 1), ("<b>", 1), ("x" * 64, 1), ("a", 0), ("a", 9)])
def test_init_refuses_bad_names_and_quorums(tmp_path: Path, fleet: str, quorum: int) -> None:
    with pytest.raises(UsageProblem):
        init_keys(tmp_path, fleet, quorum)


def test_a_quorum_of_two_makes_two_keys(tmp_path: Path) -> None:
    assert len(init_keys(tmp_path, "a", 2).signing) == 2


def test_rotation_keeps_the_old_key_until_it_is_retired(tmp_path: Path) -> None:
    (old,) = init_keys(tmp_path, "a").kids
    shown = rotate_keys(tmp_path)
    assert len(shown.kids) == 2 and shown.signing[0] != old
    with pytest.raises(NotFound):
        retire_key(tmp_path, "../../etc")
    assert old not in retire_key(tmp_path, old).kids
    assert not (tmp_path / f"{old}.key").exists()
    with pytest.raises(Conflict):
        retire_key(tmp_path, show_keys(tmp_path).kids[0])


def test_a_key_that_others_can_read_is_refused(tmp_path: Path) -> None:
    (kid,) = init_keys(tmp_path, "a").kids
    (tmp_path / f"{kid}.key").chmod(0o640)
    with pytest.raises(ConsoleError, match="read by others"):
        load_signers(tmp_path)


def test_a_swapped_or_linked_key_is_refused(tmp_path: Path) -> None:
    (kid,) = init_keys(tmp_path / "a", "a").kids
    (other,) = init_keys(tmp_path / "b", "b").kids
    path = tmp_path / "a" / f"{kid}.key"
    path.write_bytes((tmp_path / "b" / f"{other}.key").read_bytes())
    with pytest.raises(ConsoleError, match="not the one"):
        load_signers(tmp_path / "a")
    path.unlink()
    path.symlink_to(tmp_path / "b" / f"{other}.key")
    with pytest.raises(ConsoleError, match="cannot be read"):
        load_signers(tmp_path / "a")


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"schema":"x"}', "\x00"])
def test_a_damaged_set_trusts_nobody(tmp_path: Path, text: str) -> None:
    (tmp_path / PUBLIC_FILE).write_text(text)
    with pytest.raises(ConsoleError, match="damaged"):
        load_keys(tmp_path)


def test_a_set_whose_kid_is_not_its_keys_is_damaged(tmp_path: Path) -> None:
    init_keys(tmp_path, "a")
    data = json.loads((tmp_path / PUBLIC_FILE).read_text())
    data["keys"][0]["kid"] = "0" * 16
    (tmp_path / PUBLIC_FILE).write_text(json.dumps(data))
    with pytest.raises(ConsoleError):
        load_keys(tmp_path)


def test_no_keys_yet(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="no keys"):
        show_keys(tmp_path)


def test_epochs_are_taken_once_and_above_everything_known(tmp_path: Path) -> None:
    assert [take_epoch(tmp_path), take_epoch(tmp_path), take_epoch(tmp_path, [40]), take_epoch(tmp_path, [3])] == [1, 2, 41, 42]
    (tmp_path / "signed-epoch").write_text("soon")
    with pytest.raises(ConsoleError):
        take_epoch(tmp_path)
