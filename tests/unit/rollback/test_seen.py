from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from console.domain.errors import Denied
from console.domain.rollback import RollbackKind
from console.rollback import store as seen
from console.rollback.images import ABSENT, Image, look
from console.rollback.journal import Entry, Journal
from console.rollback.store import Seen


@pytest.fixture
def root(ws: Path) -> Iterator[int]:
    fd = os.open(ws, os.O_PATH | os.O_DIRECTORY)
    yield fd
    os.close(fd)


@pytest.fixture
def entry(tmp_path: Path) -> Entry:
    journal = Journal(tmp_path / "records.db")
    made = journal.add("a1", "c1", RollbackKind.FILE_WRITE, "x", ABSENT, 1.0)
    journal.close()
    return made


def test_an_unchanged_file_is_read_once_and_a_forged_mtime_hides_nothing(
    root: int, ws: Path, entry: Entry, monkeypatch: pytest.MonkeyPatch
) -> None:
    (ws / "x").write_bytes(b"hello")
    os.utime(ws / "x", ns=(10**18, 10**18))
    time.sleep(0.2)
    remembered = Seen(1000)
    reads: list[str] = []

    def counted(fd: int, parts: tuple[str, ...], max_bytes: int) -> Image:
        reads.append("/".join(parts))
        return look(fd, parts, max_bytes)

    monkeypatch.setattr(seen, "look", counted)
    first = remembered.look(root, entry, None)
    assert remembered.look(root, entry, None) == first and len(reads) == 1
    (ws / "x").write_bytes(b"jello")
    os.utime(ws / "x", ns=(10**18, 10**18))
    changed = remembered.look(root, entry, None)
    assert changed is not None and first is not None and changed.sha256 != first.sha256 and len(reads) == 2


def test_a_file_just_changed_is_not_remembered(root: int, ws: Path, entry: Entry) -> None:
    remembered = Seen(1000)
    for content in (b"1", b"2", b"3"):
        (ws / "x").write_bytes(content)
        image = remembered.look(root, entry, None)
        assert image is not None and image.size == 1
        assert remembered.look(root, entry, None) == image


def test_a_budget_stops_reading(root: int, ws: Path, entry: Entry) -> None:
    (ws / "x").write_bytes(b"hello")
    remembered = Seen(1000)
    assert remembered.look(root, entry, [4]) is None
    budget = [6]
    assert remembered.look(root, entry, budget) is not None
    assert budget == [1]


def test_absent_and_hostile(root: int, ws: Path, entry: Entry) -> None:
    assert Seen(1000).look(root, entry, None) == ABSENT
    (ws / "x").symlink_to("/etc/passwd")
    with pytest.raises(Denied):
        Seen(1000).look(root, entry, None)
