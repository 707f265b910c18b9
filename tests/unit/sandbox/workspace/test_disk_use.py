"""Measuring and emptying hostile folders: depth, links, hard links, sparse files, FIFOs, and folders moved meanwhile."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import console
from console.sandbox.workspace.disk_use import Astray, Climber, empty, measure

ROOT = Path(console.__file__).resolve().parent.parent


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[int]:
    (tmp_path / "w").mkdir()
    fd = os.open(tmp_path / "w", os.O_RDONLY | os.O_DIRECTORY)
    yield fd
    os.close(fd)


def deep(fd: int, depth: int) -> None:
    """Folders within folders, deeper than any path can name, with a file at the bottom."""
    here = os.dup(fd)
    for _ in range(depth):
        os.mkdir("d", dir_fd=here)
        inner = os.open("d", os.O_RDONLY | os.O_DIRECTORY, dir_fd=here)
        os.close(here)
        here = inner
    os.close(os.open("bottom", os.O_CREAT | os.O_WRONLY, dir_fd=here))
    os.close(here)


def test_blocks_are_counted_and_a_file_with_two_names_once(tmp_path: Path, opened: int) -> None:
    before = measure(opened).bytes
    (tmp_path / "w" / "a").write_bytes(b"x" * 40960)
    os.link(tmp_path / "w" / "a", tmp_path / "w" / "b")
    with (tmp_path / "w" / "sparse").open("wb") as file:
        file.truncate(1 << 40)
    os.mkfifo(tmp_path / "w" / "fifo")
    (tmp_path / "outside").write_bytes(b"x" * 409600)
    (tmp_path / "w" / "link").symlink_to(tmp_path / "outside")
    (tmp_path / "w" / "loop").symlink_to(tmp_path)
    found = measure(opened)
    assert 40960 <= found.bytes - before < 40960 + 16384 and found.complete
    assert found.entries == 6


def test_no_depth_is_too_deep(tmp_path: Path, opened: int) -> None:
    deep(opened, 5000)
    assert measure(opened).entries == 5001
    assert empty(opened, 60)
    assert os.listdir(opened) == []


def test_limits_of_time_and_number_give_a_lower_bound(tmp_path: Path, opened: int) -> None:
    for n in range(50):
        (tmp_path / "w" / str(n)).write_text("x")
    assert not measure(opened, limit=10).complete
    assert not measure(opened, limit_s=-1).complete
    assert measure(opened).complete


def test_emptying_follows_nothing(tmp_path: Path, opened: int) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "file").write_text("x")
    work = tmp_path / "w"
    (work / "link").symlink_to(precious)
    (work / "inner").mkdir()
    (work / "inner" / "up").symlink_to("../..")
    os.link(precious / "file", work / "inner" / "hard")
    os.mkfifo(work / "inner" / "fifo")
    (work / "closed").mkdir(mode=0o000)
    assert empty(opened, 120)
    assert os.listdir(opened) == [] and (precious / "file").read_text() == "x"


def test_closed_folders_are_opened_up_by_an_ordinary_user(tmp_path: Path) -> None:
    work = tmp_path / "w"
    (work / "closed" / "inner").mkdir(parents=True)
    (work / "closed" / "inner" / "f").write_text("x")
    program = (
        "import os\nfrom console.sandbox.workspace.disk_use import empty, measure\nos.setgid(65534)\nos.setuid(65534)\n"
        f"fd = os.open({str(work)!r}, os.O_RDONLY)\nmeasure(fd)\nprint(empty(fd, 30), os.listdir(fd))"
    )
    if os.geteuid() == 0:
        for folder, _, files in os.walk(tmp_path, topdown=False):
            for name in (folder, *(os.path.join(folder, f) for f in files)):
                os.chown(name, 65534, 65534)
        for above in (tmp_path, *tmp_path.parents[:3]):
            above.chmod(0o711)
    else:
        program = program.replace("os.setgid(65534)\nos.setuid(65534)\n", "")
    (work / "closed" / "inner").chmod(0o000)
    (work / "closed").chmod(0o000)
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "True []\n", done.stderr


def test_a_folder_swapped_for_a_link_while_it_is_emptied_leads_nowhere(tmp_path: Path, opened: int) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    for n in range(20):
        (precious / f"p{n}").write_text("x")
    work = tmp_path / "w"
    stop = threading.Event()

    def swap() -> None:
        n = 0
        while not stop.is_set():
            n += 1
            try:
                (work / "d").mkdir()
                (work / "d" / "f").write_text("x")
                os.rename(work / "d", work / f"moved{n % 3}")
                (work / "d").symlink_to(precious)
                os.unlink(work / "d")
            except OSError:
                continue

    racer = threading.Thread(target=swap)
    racer.start()
    try:
        for _ in range(150):
            try:
                empty(opened, 5)
            except OSError:
                continue  # ENOTEMPTY, or moved: it says so and is called again
    finally:
        stop.set()
        racer.join()
    assert len(os.listdir(precious)) == 20
    assert empty(opened, 120)


def test_a_folder_moved_out_ends_the_walk(tmp_path: Path, opened: int) -> None:
    (tmp_path / "w" / "a" / "b").mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()

    def entry(_around: int, _name: str, _what: os.stat_result) -> None:
        (tmp_path / "w" / "a" / "b").rename(tmp_path / "elsewhere" / "b")

    (tmp_path / "w" / "a" / "b" / "f").write_text("x")
    with pytest.raises(Astray):
        Climber(opened, entry, lambda *_: None, 30, 1000).climb()
