"""Groups below a group: nested beyond every path and every recursion they are listed and removed, and no descriptor stays open."""

from __future__ import annotations

import errno
import os
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from console.killswitch.kernel import cgroups
from console.killswitch.kernel.cgroups import members, remove

DEEP, NAME = 1050, "group"


def nest(folder: Path, depth: int) -> None:
    """Groups below each other: their path is longer than any call takes."""
    folder.mkdir()
    here = os.open(folder, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir(NAME, dir_fd=here)
        inside = os.open(NAME, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inside
    os.close(here)


@pytest.fixture
def memory() -> Iterator[Path]:
    """A folder on no disk: a thousand folders below each other take one seconds."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:  # noqa: S108 - of this test alone
        yield Path(folder)


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_who_is_in_the_deepest_group_is_listed_and_all_of_it_goes(memory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deep = memory / "deep"
    nest(deep, DEEP)
    before, looked = descriptors(), list[int]()

    def processes(group: int) -> list[int]:
        looked.append(group)
        return [7] if len(looked) == 1 else []

    monkeypatch.setattr(cgroups, "_processes", processes)
    assert members(deep, 100) == [7] and len(looked) == DEEP + 1
    assert members(deep, 0) == [] and descriptors() == before, "given up half-way"
    assert remove(deep) and not deep.exists() and descriptors() == before
    assert remove(deep) and members(deep, 1) == [], "gone already"


def test_what_cannot_be_removed_stays_and_is_no_fault(tmp_path: Path) -> None:
    for name in ("empty", "held"):
        (tmp_path / "a" / name).mkdir(parents=True)
    (tmp_path / "a" / "held" / "cgroup.procs").write_text("7\n0\n")
    (tmp_path / "a" / "link").symlink_to(tmp_path)
    before = descriptors()
    assert members(tmp_path / "a", 9) == [7] and not remove(tmp_path / "a")
    assert (tmp_path / "a" / "held").exists() and descriptors() == before


def test_a_threaded_group_lists_the_processes_of_its_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def numbers(group: int, name: str) -> list[int]:
        if name == "cgroup.procs":
            raise OSError(errno.EOPNOTSUPP, "Operation not supported")
        return [threading.get_native_id(), os.getpid()]

    monkeypatch.setattr(cgroups, "_numbers", numbers)
    assert members(tmp_path, 9) == [os.getpid()]
