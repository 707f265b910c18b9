"""What is known of an instance when its guard's folder is lost: whatever is not said for certain may be so."""

from __future__ import annotations

from pathlib import Path

import pytest

from console.killswitch.store.atomic_file import TRACES, Witness


@pytest.fixture
def guard_dir(tmp_path: Path) -> Path:
    folder = tmp_path / "guard"
    folder.mkdir()
    return folder


def test_a_new_instance_was_never_in_use(guard_dir: Path) -> None:
    witness = Witness(guard_dir)
    assert not witness.was_in_use() and witness.read() == ("", True)


@pytest.mark.parametrize("trace", TRACES)
def test_any_trace_of_a_guard_says_that_one_ran(guard_dir: Path, trace: str) -> None:
    (guard_dir / trace).touch()
    assert Witness(guard_dir).was_in_use()


@pytest.mark.parametrize("containers", [True, False])
def test_it_outlives_the_guards_folder(guard_dir: Path, containers: bool) -> None:
    Witness(guard_dir).write("/run/engine.sock", containers_ever=containers)
    guard_dir.rmdir()
    later = Witness(guard_dir)
    assert later.was_in_use() and later.read() == ("/run/engine.sock", containers)


@pytest.mark.parametrize("damage", [b"", b"A missing file reads as killed.\n", b"{}", b'{"sha256":"x","body":{}}', b"\xff"])
def test_damaged_it_still_witnesses_and_rules_nothing_out(guard_dir: Path, damage: bytes) -> None:
    witness = Witness(guard_dir)
    witness.write("/run/engine.sock", containers_ever=False)
    witness.path.write_bytes(damage)
    assert witness.was_in_use() and witness.read() == ("", True)


def test_ensure_overwrites_nothing_that_is_known(guard_dir: Path) -> None:
    witness = Witness(guard_dir)
    witness.ensure()
    assert witness.read() == ("", True)
    witness.write("/run/engine.sock", containers_ever=False)
    before = witness.path.stat().st_ino
    witness.ensure()
    witness.write("/run/engine.sock", containers_ever=False)
    assert witness.path.stat().st_ino == before and witness.read() == ("/run/engine.sock", False)


def test_what_is_not_durable_raises(guard_dir: Path) -> None:
    (guard_dir.parent / ".guard-was-here").mkdir()
    with pytest.raises(OSError, match="directory"):
        Witness(guard_dir).write("/run/engine.sock", containers_ever=False)
