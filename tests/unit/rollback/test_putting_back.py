from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from console.domain.errors import Conflict, ConsoleError
from console.rollback import putting_back
from console.rollback.images import ABSENT, Image, look, write_all
from console.rollback.putting_back import folder_of, put, remove

DRAFT = ".watchfloor-r-1"


@pytest.fixture
def folder(ws: Path) -> Iterator[int]:
    root = os.open(ws, os.O_PATH | os.O_DIRECTORY)
    with folder_of(root, ("x",)) as fd:
        yield fd
    os.close(root)


@pytest.fixture(params=["renameat2", "plain"])
def _flags(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "plain":
        monkeypatch.setattr(putting_back, "_renameat2", lambda *_: False)


def image(mode: int = 0o640) -> Image:
    return Image("ignored", 5, mode, os.geteuid(), os.getegid())


def fill(fd: int) -> None:
    write_all(fd, b"hello")


@pytest.mark.usefixtures("_flags")
def test_in_place_of_another_and_where_nothing_was(folder: int, ws: Path) -> None:
    put(folder, "x", DRAFT, image(), ABSENT, fill)
    assert (ws / "x").read_bytes() == b"hello" and (ws / "x").stat().st_mode & 0o7777 == 0o640
    (ws / "x").write_bytes(b"other")
    put(folder, "x", DRAFT, image(0o4755), look(folder, ("x",)), fill)
    assert (ws / "x").read_bytes() == b"hello" and (ws / "x").stat().st_mode & 0o7777 == 0o755
    remove(folder, "x", DRAFT, look(folder, ("x",)))
    assert sorted(os.listdir(ws)) == ["d"]


@pytest.mark.usefixtures("_flags")
def test_a_file_that_is_another_by_now_stays(folder: int, ws: Path) -> None:
    (ws / "x").write_bytes(b"seen")
    seen = look(folder, ("x",))
    (ws / "x").write_bytes(b"newer")
    with pytest.raises(Conflict):
        put(folder, "x", DRAFT, image(), seen, fill)
    with pytest.raises(Conflict):
        remove(folder, "x", DRAFT, seen)
    with pytest.raises(Conflict):
        put(folder, "x", DRAFT, image(), ABSENT, fill)
    assert (ws / "x").read_bytes() == b"newer"
    assert sorted(os.listdir(ws)) == ["d", "x"]


def test_a_change_in_the_last_moment_is_swapped_back(folder: int, ws: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (ws / "x").write_bytes(b"seen")
    seen = look(folder, ("x",))
    real = putting_back.rename
    calls: list[int] = []

    def late(fd: int, old: str, new: str, flags: int) -> None:
        if not calls:
            (ws / "x").write_bytes(b"newer")
        calls.append(flags)
        real(fd, old, new, flags)

    monkeypatch.setattr(putting_back, "rename", late)
    with pytest.raises(Conflict):
        put(folder, "x", DRAFT, image(), seen, fill)
    assert (ws / "x").read_bytes() == b"newer" and len(calls) == 2
    calls.clear()
    with pytest.raises(Conflict):
        remove(folder, "x", DRAFT, seen)
    assert (ws / "x").read_bytes() == b"newer"
    assert sorted(os.listdir(ws)) == ["d", "x"]


def test_a_planted_draft_is_never_opened(folder: int, ws: Path, tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("keep")
    (ws / DRAFT).symlink_to(tmp_path / "precious")
    put(folder, "x", DRAFT, image(), ABSENT, fill)
    assert (tmp_path / "precious").read_text() == "keep" and (ws / "x").read_bytes() == b"hello"
    (ws / DRAFT).mkdir()
    with pytest.raises(ConsoleError):
        put(folder, "x", DRAFT, image(), look(folder, ("x",)), fill)
    assert (ws / "x").read_bytes() == b"hello"


def test_a_full_disk_leaves_what_was_there(folder: int, ws: Path) -> None:
    (ws / "x").write_bytes(b"seen")

    def full(fd: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(ConsoleError, match="No space left"):
        put(folder, "x", DRAFT, image(), look(folder, ("x",)), full)
    assert (ws / "x").read_bytes() == b"seen" and sorted(os.listdir(ws)) == ["d", "x"]


def test_a_folder_that_is_gone_or_a_link_is_a_conflict(ws: Path, tmp_path: Path) -> None:
    root = os.open(ws, os.O_PATH | os.O_DIRECTORY)
    (ws / "link").symlink_to(tmp_path)
    (ws / "file").write_text("x")
    for where, words in (("gone", "missing"), ("link", "no plain folder"), ("file", "no plain folder")):
        with pytest.raises(Conflict, match=words), folder_of(root, (where, "x")):
            pass
    os.close(root)
