"""What was good last outlives its file: by its bytes, by a second name on a full disk; and what cannot be kept is said until it is."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import pytest

from console.supervisor import last_good
from console.supervisor.last_good import LastGood


@pytest.fixture
def full(monkeypatch: pytest.MonkeyPatch) -> Any:
    def no_room(*_anything: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(last_good, "replace_file", no_room)
    monkeypatch.setattr(last_good, "AGAIN_S", 0.0)
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


def test_on_a_full_disk_a_second_name_of_the_file_stays_when_the_first_one_goes(file: Path, full: pytest.MonkeyPatch) -> None:
    file.with_name(".good").write_bytes(b"old")
    kept = LastGood(file, file.with_name(".good"))
    kept.keep(b"new")
    file.unlink()
    assert kept.trouble == "" and kept.read() == b"new" and [one.name for one in file.parent.iterdir()] == [".good"]


def test_what_cannot_be_kept_at_all_is_said_until_it_is(file: Path, full: pytest.MonkeyPatch) -> None:
    kept = LastGood(file, file.with_name(".good"))
    file.write_bytes(b"another by now")  # so its second name would be of something else
    kept.keep(b"new")
    assert "No space left" in kept.trouble and not file.with_name(".good").exists()
    assert kept.settle() == "" and kept.trouble
    trouble = kept.trouble
    full.undo()
    assert kept.settle() == trouble and kept.trouble == "" and kept.read() == b"new"
    assert [one.name for one in sorted(file.parent.iterdir())] == [".good", "x.json"]
