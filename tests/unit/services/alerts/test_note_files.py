"""A new file or none: links, pipes and files that are there already are neither followed nor opened."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from console.domain.errors import ConsoleError
from console.services.alerts.note_files import DIRECTORY, write_new


def test_what_is_there_gets_a_neighbour(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("kept")
    (tmp_path / "n.txt").symlink_to(precious)
    os.mkfifo(tmp_path / "n-1.txt")
    write_new(os.open(tmp_path, DIRECTORY), "n.txt", b"new", 0o640, (-1, os.getegid()))
    made = tmp_path / "n-2.txt"
    assert precious.read_text() == "kept" and made.read_bytes() == b"new" and made.stat().st_mode & 0o777 == 0o640


def test_names_without_end_are_given_up_and_nothing_stays_open(tmp_path: Path) -> None:
    for name in ("n.txt", *(f"n-{n}.txt" for n in range(1, 20))):
        (tmp_path / name).mkdir()
    folder = os.open(tmp_path, DIRECTORY)
    with pytest.raises(ConsoleError, match="many times"):
        write_new(folder, "n.txt", b"", 0o600)
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(folder)
