"""Replacing a file: the old one or the new one, never a torn one."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from console.domain.process.durable import make_folder, replace_file, sweep_drafts


def test_a_file_is_replaced_whole_and_private(tmp_path: Path) -> None:
    target = tmp_path / "f"
    replace_file(target, b"one")
    replace_file(target, b"two")
    assert target.read_bytes() == b"two"
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert [p.name for p in tmp_path.iterdir()] == ["f"]


@pytest.mark.parametrize("umask", [0o000, 0o002, 0o022, 0o077])
def test_its_mode_is_the_one_asked_for_under_any_umask(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        for mode in (0o600, 0o644):
            replace_file(tmp_path / "f", b"", mode)
            assert (tmp_path / "f").stat().st_mode & 0o7777 == mode
    finally:
        os.umask(before)


def test_when_writing_fails_the_old_one_stays_and_no_draft_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "f"
    replace_file(target, b"one")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        replace_file(target, b"two")
    assert target.read_bytes() == b"one"
    assert [p.name for p in tmp_path.iterdir()] == ["f"]


def test_a_link_in_its_place_is_replaced_and_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(b"mine")
    (tmp_path / "f").symlink_to(tmp_path / "secret")
    replace_file(tmp_path / "f", b"new")
    assert (tmp_path / "secret").read_bytes() == b"mine"
    assert (tmp_path / "f").read_bytes() == b"new" and not (tmp_path / "f").is_symlink()


def test_a_new_folder_is_synced_with_each_folder_it_was_made_in_and_one_that_is_there_costs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced, real = list[str](), os.fsync

    def sync(fd: int) -> None:
        synced.append(os.readlink(f"/proc/self/fd/{fd}"))
        real(fd)

    monkeypatch.setattr(os, "fsync", sync)
    make_folder(tmp_path / "a" / "b", 0o700)
    assert synced == [str(tmp_path), str(tmp_path / "a")]
    assert stat.S_IMODE((tmp_path / "a" / "b").stat().st_mode) == 0o700
    make_folder(tmp_path / "a" / "b")
    assert len(synced) == 2


def test_drafts_of_one_file_are_swept_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def power_fails(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", power_fails)
        with pytest.raises(KeyboardInterrupt):
            replace_file(tmp_path / "secrets.json", b"old values")
    assert len(list(tmp_path.iterdir())) == 1
    for name in ("secrets.json", ".secrets.json-lock", ".secrets-json-0123456789ab", ".other.json-0123456789ab"):
        (tmp_path / name).touch()
    sweep_drafts(tmp_path / "secrets.json")
    assert len(list(tmp_path.iterdir())) == 4 and not list(tmp_path.glob(".secrets.json-?*[0-9a-f]"))
