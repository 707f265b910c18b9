from __future__ import annotations

import os
from pathlib import Path

import pytest

from console.audit import checkpoints
from console.audit.checkpoints import Checkpoint, CheckpointFile, beside, read_checkpoints

POINTS = [Checkpoint(0, "0" * 64, 1.0), Checkpoint(10, "a" * 64, 2.5), Checkpoint(20, "b" * 64, 3.0)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "audit.checkpoints"
    file = CheckpointFile(made, read_checkpoints(made))
    for point in POINTS:
        file.add(point)
    file.close()
    return made


def test_what_was_added_is_read(path: Path) -> None:
    assert list(read_checkpoints(path).points) == POINTS
    assert read_checkpoints(path).problem == ""
    assert beside(Path("/x/audit.db")) == Path("/x/audit.checkpoints")


@pytest.mark.parametrize("torn", [b'{"at":9.0,"ha', bytes(90), bytes(40) + b'9","seq":30}\n', b'{"at":9.0,"ha' + bytes(512)])
def test_it_goes_on_after_a_restart_and_drops_a_torn_line(path: Path, torn: bytes) -> None:
    """Sectors that never reached the disk read as zero."""
    with path.open("ab") as stream:
        stream.write(torn)
    known = read_checkpoints(path)
    assert known.problem == "" and list(known.points) == POINTS
    file = CheckpointFile(path, known)
    file.add(Checkpoint(30, "c" * 64, 4.0))
    file.close()
    assert [p.seq for p in read_checkpoints(path).points] == [0, 10, 20, 30]


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        (b'"seq":10', b'"seq":11', 2),
        (b"a" * 64, b"d" * 64, 2),
        (b'"at":1.0', b'"at":1.5', 1),
        (b'{"at":3.0', b'["at":3.0', 3),
        (b'"seq":20', b'"seq":-1', 3),
        (b'"seq":10', b'"seq":\x000', 2),
    ],
)
def test_a_changed_line_is_named(path: Path, old: bytes, new: bytes, line: int) -> None:
    path.write_bytes(path.read_bytes().replace(old, new))
    assert read_checkpoints(path).problem == f"line {line} of the checkpoint file was changed"


def test_a_removed_or_reordered_line_is_noticed(path: Path) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + lines[2])
    assert "line 2" in read_checkpoints(path).problem
    path.write_bytes(lines[1] + lines[0] + lines[2])
    assert "line 1" in read_checkpoints(path).problem


def test_missing_and_empty_are_said(path: Path) -> None:
    path.write_bytes(b"")
    assert "empty" in read_checkpoints(path).problem
    path.unlink()
    assert "missing" in read_checkpoints(path).problem


def test_a_file_that_was_cut_under_the_writer_is_noticed(path: Path) -> None:
    file = CheckpointFile(path, read_checkpoints(path))
    path.write_bytes(path.read_bytes()[:50])
    with pytest.raises(OSError):
        file.add(Checkpoint(30, "c" * 64, 4.0))
    file.close()


def test_a_planted_link_is_not_followed(tmp_path: Path) -> None:
    target = tmp_path / "precious"
    target.write_text("x")
    (tmp_path / "audit.checkpoints").symlink_to(target)
    with pytest.raises(OSError):
        CheckpointFile(tmp_path / "audit.checkpoints", read_checkpoints(tmp_path / "none"))
    assert target.read_text() == "x"


@pytest.mark.parametrize("kind", ["pipe", "link", "folder"])
def test_what_is_no_plain_file_is_not_waited_for(tmp_path: Path, kind: str) -> None:
    path, other = tmp_path / "audit.checkpoints", tmp_path / "other"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "link":
        other.touch()
        path.symlink_to(other)
    else:
        path.mkdir()
    with pytest.raises(OSError, match="not a plain file"):
        read_checkpoints(path)


def test_a_file_without_end_is_not_read_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "audit.checkpoints"
    path.touch()
    os.truncate(path, 1 << 40)
    monkeypatch.setattr(checkpoints, "LIMIT_BYTES", 1000)
    assert "larger than any" in read_checkpoints(path).problem
