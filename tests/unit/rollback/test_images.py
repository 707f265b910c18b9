"""R2, and what the content store promises: whole, durable before named, once."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from console.domain.errors import ConsoleError, Denied, NotRecorded
from console.rollback.images import ABSENT, Changing, Objects, look


@pytest.fixture
def root(ws: Path) -> Iterator[int]:
    fd = os.open(ws, os.O_PATH | os.O_DIRECTORY)
    yield fd
    os.close(fd)


@pytest.fixture
def objects(tmp_path: Path) -> Iterator[Objects]:
    made = Objects(tmp_path / "objects", 1 << 20)
    yield made
    made.close()


def test_an_image_says_what_is_there(root: int, ws: Path) -> None:
    (ws / "x").write_bytes(b"hello")
    (ws / "x").chmod(0o4751)
    image = look(root, ("x",))
    assert (image.sha256, image.size, image.mode, image.uid) == (hashlib.sha256(b"hello").hexdigest(), 5, 0o751, os.geteuid())
    assert look(root, ("none",)) == ABSENT


def test_contents_are_kept_once_under_their_hash(objects: Objects, root: int, ws: Path, tmp_path: Path) -> None:
    (ws / "x").write_bytes(b"same")
    (ws / "d" / "x").write_bytes(b"same")
    first, second = objects.snapshot(root, ("x",)), objects.snapshot(root, ("d", "x"))
    assert first.sha256 == second.sha256
    assert os.listdir(tmp_path / "objects") == [first.sha256]
    assert (tmp_path / "objects").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "objects" / str(first.sha256)).stat().st_mode & 0o777 == 0o400
    assert objects.read(str(first.sha256), 2) == b"sa"
    assert objects.snapshot(root, ("none",)) == ABSENT


def test_without_tmpfile_the_same_holds(objects: Objects, root: int, ws: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "O_TMPFILE", os.O_DIRECTORY | os.O_RDWR)  # answers EISDIR, as a kernel without it
    (ws / "x").write_bytes(b"hello")
    image = objects.snapshot(root, ("x",))
    assert os.listdir(tmp_path / "objects") == [image.sha256]
    assert objects.read(str(image.sha256), 99) == b"hello"


def test_drafts_of_a_crash_are_cleaned_and_links_in_it_not_followed(tmp_path: Path) -> None:
    folder = tmp_path / "objects"
    folder.mkdir()
    (folder / ".draft-old").write_text("half")
    Objects(folder, 100).close()
    assert os.listdir(folder) == []
    folder.rmdir()
    (tmp_path / "elsewhere").mkdir()
    folder.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(NotRecorded):
        Objects(folder, 100)


def test_a_planted_object_of_another_size_is_replaced(objects: Objects, root: int, ws: Path, tmp_path: Path) -> None:
    (ws / "x").write_bytes(b"hello")
    name = hashlib.sha256(b"hello").hexdigest()
    (tmp_path / "precious").write_text("keep")
    (tmp_path / "objects" / name).symlink_to(tmp_path / "precious")
    objects.snapshot(root, ("x",))
    assert (tmp_path / "objects" / name).read_bytes() == b"hello"
    assert (tmp_path / "precious").read_text() == "keep"


def test_the_store_has_a_limit(objects: Objects, root: int, ws: Path, tmp_path: Path) -> None:
    (ws / "x").write_bytes(b"a" * (1 << 19))
    objects.snapshot(root, ("x",))
    (ws / "x").write_bytes(b"b" * ((1 << 19) + 1))
    with pytest.raises(NotRecorded, match="no room"):
        objects.snapshot(root, ("x",))
    assert len(os.listdir(tmp_path / "objects")) == 1
    again = Objects(tmp_path / "objects", 1 << 20)
    with pytest.raises(NotRecorded, match="no room"):
        again.snapshot(root, ("x",))
    again.close()


def test_a_damaged_or_missing_object_is_not_written_anywhere(objects: Objects, root: int, ws: Path, tmp_path: Path) -> None:
    (ws / "x").write_bytes(b"hello")
    name = str(objects.snapshot(root, ("x",)).sha256)
    kept = tmp_path / "objects" / name
    kept.chmod(0o600)
    kept.write_bytes(b"jello")
    target = os.open(tmp_path / "t", os.O_CREAT | os.O_WRONLY)
    with pytest.raises(ConsoleError, match="damaged"):
        objects.copy_to(name, target)
    with pytest.raises(ConsoleError, match="damaged"):
        objects.read(name, 2)
    kept.unlink()
    with pytest.raises(ConsoleError, match="missing"):
        objects.copy_to(name, target)
    os.close(target)


def test_a_damaged_object_of_the_right_size_is_no_snapshot_of_the_same_content(
    objects: Objects, root: int, ws: Path, tmp_path: Path
) -> None:
    (ws / "x").write_bytes(b"hello")
    kept = tmp_path / "objects" / str(objects.snapshot(root, ("x",)).sha256)
    kept.chmod(0o600)
    kept.write_bytes(b"jello")
    assert objects.read(str(objects.snapshot(root, ("x",)).sha256), 9) == b"hello"


def test_a_file_that_changes_while_it_is_read_is_read_again_and_then_refused(objects: Objects, root: int, ws: Path) -> None:
    (ws / "x").write_bytes(b"hello")
    reads = 0
    real = os.read

    def meddle(fd: int, size: int) -> bytes:
        nonlocal reads
        reads += 1
        (ws / "x").write_bytes(b"h" * reads)
        return real(fd, size)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "read", meddle)
        with pytest.raises(Changing):
            objects.snapshot(root, ("x",))
    assert reads >= 3
    assert objects.snapshot(root, ("x",)).size == reads


def test_a_file_that_grows_while_it_is_read_is_refused_at_once(root: int, ws: Path) -> None:
    (ws / "x").write_bytes(b"12345")

    def grow(piece: bytes) -> None:
        with (ws / "x").open("ab") as stream:
            stream.write(b"6" * 10)

    with pytest.raises(Denied):
        look(root, ("x",), 5, grow)


def test_a_failing_disk_is_not_recorded(objects: Objects, root: int, ws: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (ws / "x").write_bytes(b"hello")

    def broken(fd: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fsync", broken)
    with pytest.raises(NotRecorded, match="Input/output error"):
        objects.snapshot(root, ("x",))
