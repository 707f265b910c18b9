"""What was good last outlives its file: by its bytes, by a second name on a full disk; and what cannot be kept is said until it is."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from console.services.policy import config_fallback
from console.services.policy.config_fallback import LastGood
from tests.fakes.private_disk import run_on_a_small_disk


def no_room(*_anything: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.fixture
def full(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(config_fallback, "replace_file", no_room)
    monkeypatch.setattr(config_fallback, "AGAIN_S", 0.0)
    return monkeypatch


@pytest.fixture
def file(tmp_path: Path) -> Path:
    made = tmp_path / "x.json"
    made.write_bytes(b"new")
    return made


def test_it_is_kept_beside_the_file_also_in_the_place_of_an_empty_folder(file: Path) -> None:
    kept = LastGood(file, file.with_name(".good"))
    file.with_name(".good").mkdir()
    kept.keep(b"new")
    assert kept.read() == b"new" and kept.trouble == "" and kept.settle() == "" and kept.name == ".good"


def test_the_room_that_was_laid_aside_takes_the_next_bytes_on_a_full_disk(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = list[str]()
    kept = LastGood(file, file.with_name(".good"), said.append)
    kept.keep(b"old")
    reserve = file.with_name(".good-reserve")
    assert reserve.stat().st_blocks * 512 >= config_fallback.RESERVE_BYTES
    monkeypatch.setattr(config_fallback, "replace_file", no_room)
    monkeypatch.setattr(os, "posix_fallocate", no_room)
    kept.keep(b"new")
    assert (kept.trouble, said, kept.read()) == ("", [], b"new") and not kept._path.samefile(file) and not reserve.exists()
    file.write_bytes(b"broken")
    assert LastGood(file, file.with_name(".good")).read() == b"new", "a restart knows it, whatever was written into the file"


def test_a_second_name_serves_while_nobody_writes_into_the_file_and_is_never_silent(file: Path, full: pytest.MonkeyPatch) -> None:
    said = list[str]()
    file.with_name(".good").write_bytes(b"old")
    kept = LastGood(file, file.with_name(".good"), said.append)
    kept.keep(b"new")
    kept.settle()
    assert kept.trouble == "" and kept.read() == b"new" and len(said) == 1 and "second name" in said[0]
    full.setattr(config_fallback, "AGAIN_S", 3600.0)
    kept.keep(b"new")
    file.write_bytes(b"broken")  # in place: what was good is on no disk any more
    assert kept.settle() == "" and "Nothing is allowed" in kept.trouble
    file.write_bytes(b"new")
    full.setattr(kept, "_again_at", 0.0)
    assert "Nothing is allowed" in kept.settle() and kept.trouble == "", "it is there again"
    file.unlink()
    assert [one.name for one in file.parent.iterdir()] == [".good"] and kept.settle() == "" and kept.trouble == ""
    assert kept.read() == b"new", "the first name went, and nothing with it"


def test_a_copy_takes_the_place_of_the_second_name_once_there_is_room_over_a_restart_too(file: Path, full: pytest.MonkeyPatch) -> None:
    LastGood(file, file.with_name(".good")).keep(b"new")
    again = LastGood(file, file.with_name(".good"))
    assert again.read() == b"new" and file.samefile(file.with_name(".good"))
    again.settle()
    assert file.samefile(file.with_name(".good"))
    full.undo()
    full.setattr(again, "_again_at", 0.0)
    assert again.settle() == "" and not file.samefile(file.with_name(".good")) and again.read() == b"new"


def test_what_cannot_be_kept_at_all_is_said_until_it_is(file: Path, full: pytest.MonkeyPatch) -> None:
    kept = LastGood(file, file.with_name(".good"))
    file.write_bytes(b"another by now")  # so its second name would be of something else
    kept.keep(b"new")
    assert "No space left" in kept.trouble and not file.with_name(".good").exists()
    assert kept.settle() == "" and kept.trouble
    trouble = kept.trouble
    full.undo()
    assert kept.settle() == trouble and kept.trouble == "" and kept.read() == b"new"
    assert [one.name for one in sorted(file.parent.iterdir())] == [".good", ".good-reserve", "x.json"]


@pytest.mark.parametrize("trap", ["link", "second name", "empty"])
def test_a_reserve_that_is_not_ours_is_never_written_into(file: Path, full: pytest.MonkeyPatch, trap: str) -> None:
    precious, reserve = file.with_name("precious"), file.with_name(".good-reserve")
    precious.write_bytes(b"p" * 40_000)
    if trap == "link":
        reserve.symlink_to(precious)
    elif trap == "second name":
        reserve.hardlink_to(precious)
    else:
        reserve.touch()
    kept = LastGood(file, file.with_name(".good"))
    kept.keep(b"new")
    assert precious.read_bytes() == b"p" * 40_000 and kept.read() == b"new"


def test_on_a_disk_that_is_really_full(tmp_path: Path) -> None:
    told = run_on_a_small_disk(
        tmp_path / "disk",
        """
        from console.services.policy.config_fallback import LastGood
        said, file = [], disk / "policy.json"
        file.write_bytes(b"one" * 100)
        kept = LastGood(file, disk / ".good", said.append)
        kept.keep(file.read_bytes())
        file.write_bytes(b"two" * 100)
        fill()
        kept.keep(b"two" * 100)
        first = [kept.trouble, said[:], not kept._path.samefile(file), kept.read() == b"two" * 100]
        file.write_bytes(b"six" * 100)  # in place: it takes no room
        (disk / ".good-reserve").unlink()  # it was laid again in the room that the bytes before had
        fill()
        kept.keep(b"six" * 100)
        second = [kept.trouble, len(said), kept._path.samefile(file), kept.read() == b"six" * 100]
        empty()
        kept._again_at = 0.0
        kept.settle()
        print(json.dumps([first, second, [kept.trouble, kept._path.samefile(file), kept.read() == b"six" * 100]]))
        """,
    )
    assert told == [["", [], True, True], ["", 1, True, True], ["", False, True]]
