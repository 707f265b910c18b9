"""Reading files that somebody else wrote."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from console.sources.home_dirs import homes, read_foreign


def test_a_given_root_is_the_only_home(tmp_path: Path) -> None:
    assert homes(tmp_path) == [tmp_path]


def test_without_a_root_our_own_home_comes_first_and_the_file_system_root_never(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    found = homes(None)
    assert found[0] == tmp_path
    assert Path("/") not in found
    assert len(found) == len(set(found))


def test_reads_up_to_the_cap_and_says_whether_that_is_all(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_bytes(b"12345")
    assert read_foreign(file, 5).data == b"12345"
    assert read_foreign(file, 5).whole
    cut = read_foreign(file, 4)
    assert (cut.data, cut.whole, cut.uid) == (b"1234", False, os.geteuid())


def test_links_fifos_and_folders_are_refused_without_blocking(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "link").symlink_to(tmp_path / "secret")
    os.mkfifo(tmp_path / "fifo")
    for name in ("link", "fifo", ".", "missing"):
        with pytest.raises(OSError):
            read_foreign(tmp_path / name, 10)
    assert read_foreign(tmp_path / "link", 10, follow=True).data == b"secret"
