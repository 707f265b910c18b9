"""What changed in a workspace: everything an agent may plant there leads nowhere, and no bound is passed."""

from __future__ import annotations

import hashlib
import os
import socket
import time
from pathlib import Path

import pytest

from console.services.evidence import changes as changes_module
from console.services.evidence.changes import ChangedFile, Changes, Looker

SECRET = b"not for the case folder"


@pytest.fixture
def workspaces(tmp_path: Path) -> Path:
    (tmp_path / "workspaces" / "c1").mkdir(parents=True)
    (tmp_path / "outside").write_bytes(SECRET)
    return tmp_path / "workspaces"


def look(workspaces: Path, since: float = 0.0, files_max: int = 1000, seconds: float = 60.0) -> Changes:
    return Looker(time.monotonic() + seconds, files_max).changed_since(workspaces, "c1", since)


def by_path(changes: Changes) -> dict[str, ChangedFile]:
    return {f.path: f for f in changes.files}


def test_changed_files_come_with_size_times_and_hash_and_old_ones_do_not(workspaces: Path) -> None:
    box = workspaces / "c1"
    (box / "old").write_text("old")
    time.sleep(0.15)
    since = time.time()
    (box / "a" / "b").mkdir(parents=True)
    (box / "a" / "b" / "new").write_text("new")
    found = by_path(look(workspaces, since))
    assert set(found) == {"a/b/new"}
    new = found["a/b/new"]
    assert (new.kind, new.size, new.sha256) == ("file", 3, hashlib.sha256(b"new").hexdigest())
    assert new.mtime == (box / "a" / "b" / "new").stat().st_mtime


def test_a_back_dated_file_is_seen_all_the_same(workspaces: Path) -> None:
    path = workspaces / "c1" / "x"
    since = time.time()
    path.write_text("x")
    os.utime(path, (1, 1))
    found = by_path(look(workspaces, since))["x"]
    assert found.mtime == 1.0 and found.ctime >= since - 0.1


def test_links_pipes_sockets_and_other_names_lead_nowhere(workspaces: Path, tmp_path: Path) -> None:
    box = workspaces / "c1"
    (box / "to-file").symlink_to(tmp_path / "outside")
    (box / "to-folder").symlink_to(tmp_path)
    (box / "loop").symlink_to(".")
    os.mkfifo(box / "fifo")
    os.link(tmp_path / "outside", box / "hard")
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(str(box / "sock"))
    found = by_path(look(workspaces))
    assert {path: f.kind for path, f in found.items()} == {
        "to-file": "link", "to-folder": "link", "loop": "link", "fifo": "fifo", "hard": "file", "sock": "socket",
    }  # fmt: skip
    assert found["to-file"].note == f"to {tmp_path / 'outside'}"
    assert "2 names" in found["hard"].note
    assert all(not f.sha256 for f in found.values())
    assert hashlib.sha256(SECRET).hexdigest() not in str(found)


def test_a_workspace_that_is_a_link_is_not_entered(workspaces: Path, tmp_path: Path) -> None:
    (workspaces / "c1").rmdir()
    (workspaces / "c1").symlink_to(tmp_path)
    changes = look(workspaces)
    assert not changes.files and changes.skipped_count == 1


def test_hostile_names_are_text_that_can_be_written(workspaces: Path) -> None:
    box = os.fsencode(workspaces / "c1")
    for name in (b"\xff\xfe", b"line\nend", b"\x1b[31m", "\u202egnp.exe".encode(), b"x" * 255):
        with open(box + b"/" + name, "wb"):
            pass
    found = by_path(look(workspaces))
    assert {"\\xff\\xfe", "line\nend", "\x1b[31m", "\u202egnp.exe", "x" * 255} == set(found)
    "".join(found).encode()
    assert all(f.sha256 for f in found.values())


def test_a_nest_deeper_than_the_bound_is_said(workspaces: Path) -> None:
    here = workspaces / "c1"
    for _ in range(changes_module.DEPTH + 3):
        here = here / "d"
        here.mkdir()
    (here / "x").write_text("x")
    changes = look(workspaces)
    assert not changes.files
    assert changes.skipped_count == 1 and "deeper" in changes.skipped[0]


def test_the_number_of_files_is_bounded(workspaces: Path) -> None:
    for number in range(50):
        (workspaces / "c1" / str(number)).write_text("")
    changes = look(workspaces, files_max=10)
    assert (len(changes.files), changes.cut) == (10, "10 files")


def test_time_ends_it_in_the_middle_of_a_folder(workspaces: Path) -> None:
    for number in range(50):
        (workspaces / "c1" / str(number)).write_text("")
    ticks = iter(range(1000))
    changes = Looker(20.0, 1000, lambda: float(next(ticks))).changed_since(workspaces, "c1", 0.0)
    assert changes.cut == "time"
    assert 0 < len(changes.files) < 20


def test_large_files_and_too_much_in_all_are_listed_without_a_hash(workspaces: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes_module, "HASHED_BYTES", 10)
    monkeypatch.setattr(changes_module, "HASHED_TOTAL", 15)
    (workspaces / "c1" / "large").write_bytes(b"x" * 11)
    for name in ("a", "b"):
        (workspaces / "c1" / name).write_bytes(b"x" * 10)
    found = by_path(look(workspaces))
    assert "larger than 10" in found["large"].note
    assert sorted(bool(found[n].sha256) for n in ("a", "b")) == [False, True]
    assert any("hashed already" in f.note for f in found.values())


def test_a_folder_that_cannot_be_entered_is_said(workspaces: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_root: int, parts: tuple[str, ...], _flags: int) -> int:
        raise OSError(13, "Permission denied")

    monkeypatch.setattr(changes_module, "open_beneath", refuse)
    changes = look(workspaces)
    assert changes.skipped == [": Permission denied"]


def test_no_workspace_is_a_reason_not_an_error(workspaces: Path) -> None:
    changes = Looker(time.monotonic() + 9, 9).changed_since(workspaces, "nobody", 0.0)
    assert not changes.files and "no workspace" in changes.skipped[0]
