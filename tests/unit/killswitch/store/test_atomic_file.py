"""Whole files, seals, the reserve."""

from __future__ import annotations

import errno
import json
import os
import subprocess
from pathlib import Path

import pytest

from console.killswitch.store import atomic_file
from console.killswitch.store.atomic_file import Damaged, Reserve, read_sealed, seal, sweep_drafts, write_whole


def test_what_is_sealed_is_read_back(tmp_path: Path) -> None:
    write_whole(tmp_path / "f", seal({"a": [1, "é"]}))
    assert read_sealed(tmp_path / "f") == {"a": [1, "é"]}
    assert read_sealed(tmp_path / "missing") is None


@pytest.mark.parametrize("raw", [b"", b"{", b"[]", b'{"body":{}}', b'{"body":[],"sha256":"x"}', b"\xff", b"[" * 100_000])
def test_what_we_did_not_write_is_damaged(tmp_path: Path, raw: bytes) -> None:
    (tmp_path / "f").write_bytes(raw)
    with pytest.raises(Damaged):
        read_sealed(tmp_path / "f")


def test_a_flipped_bit_is_seen(tmp_path: Path) -> None:
    whole = seal({"latched": True})
    (tmp_path / "f").write_bytes(whole.replace(b"true", b"false"))
    with pytest.raises(Damaged):
        read_sealed(tmp_path / "f")


def test_a_failed_write_leaves_the_old_file_and_no_draft(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_whole(tmp_path / "f", b"old")

    def full(fd: int) -> None:
        raise OSError(errno.EIO, "broken")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="broken"):
        write_whole(tmp_path / "f", b"new")
    assert (tmp_path / "f").read_bytes() == b"old" and os.listdir(tmp_path) == ["f"]


def test_a_full_disk_costs_the_reserve_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reserve = Reserve(tmp_path / "reserve")
    assert reserve.make() and reserve.path.stat().st_size == atomic_file.RESERVE_BYTES
    real = atomic_file.write_all

    def write(fd: int, data: bytes) -> None:
        if reserve.path.exists():
            raise OSError(errno.ENOSPC, "full")
        real(fd, data)

    monkeypatch.setattr(atomic_file, "write_all", write)
    write_whole(tmp_path / "f", b"kept", reserve)
    assert (tmp_path / "f").read_bytes() == b"kept" and not reserve.path.exists()
    with pytest.raises(OSError, match="full"):
        reserve.path.touch()
        write_whole(tmp_path / "g", b"x")


def test_a_planted_link_is_replaced_and_not_followed(tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("mine")
    (tmp_path / "f").symlink_to(tmp_path / "victim")
    write_whole(tmp_path / "f", b"new")
    assert (tmp_path / "victim").read_text() == "mine" and not (tmp_path / "f").is_symlink()


def test_a_seal_is_json_for_people(tmp_path: Path) -> None:
    assert json.loads(seal({"x": 1}))["body"] == {"x": 1}


def test_drafts_of_the_dead_go_and_those_of_the_living_and_all_else_stay(tmp_path: Path) -> None:
    with subprocess.Popen(["true"]) as dead:
        dead.wait()
    for name in (
        f".latch.json.{dead.pid}-0123abcd",
        f".latch.json.{os.getpid()}-0123abcd",
        "latch.json",
        ".hidden",
        ".latch.json.0123abcd",
    ):
        (tmp_path / name).touch()
    sweep_drafts(tmp_path)
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        ".hidden",
        ".latch.json.0123abcd",
        f".latch.json.{os.getpid()}-0123abcd",
        "latch.json",
    ]
    sweep_drafts(tmp_path / "nowhere")


def test_a_draft_is_one_that_would_be_swept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = list[str]()
    monkeypatch.setattr(os, "fsync", lambda fd: seen.append(Path(os.readlink(f"/proc/self/fd/{fd}")).name))
    write_whole(tmp_path / "latch.json", b"x")
    assert atomic_file._DRAFT.fullmatch(seen[0])
