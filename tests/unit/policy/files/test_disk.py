"""What the real disk says of paths."""

import os
import socket
from pathlib import Path

import pytest

from console.policy.files import disk
from console.policy.files.disk import Disk
from console.policy.files.paths import Facts


@pytest.fixture(params=["openat2", "open"])
def look(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Disk:
    if request.param == "open":
        monkeypatch.setattr(disk, "_openat2_works", lambda: False)
    return Disk()


def test_kinds_and_real_paths(look: Disk, tmp_path: Path) -> None:
    (tmp_path / "f").write_text("x")
    (tmp_path / "d").mkdir()
    (tmp_path / "l").symlink_to("d")
    os.mkfifo(tmp_path / "p")
    os.link(tmp_path / "f", tmp_path / "h")
    assert (look.look(f"{tmp_path}/d").kind, look.look(f"{tmp_path}/p").kind) == ("folder", "fifo")
    assert (look.look(f"{tmp_path}/h").kind, look.look(f"{tmp_path}/h").names) == ("file", 2)
    assert look.look(f"{tmp_path}/l/x").real == f"{tmp_path}/d/x" and look.look(f"{tmp_path}/l/x").kind == "missing"
    assert look.look(f"{tmp_path}/l/../f").real == f"{tmp_path}/f"
    assert look.look("/dev/null").kind == "device"


def test_a_socket(look: Disk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as made:
        made.bind("s")
        assert look.look(f"{tmp_path}/s").kind == "socket"


def test_what_cannot_be_placed_is_not_certain(look: Disk, tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "gone").symlink_to("/nowhere/at/all")
    (tmp_path / "f").write_text("x")
    assert look.look(f"{tmp_path}/loop").kind == "loop"
    for name in ("gone", "gone/x", "f/x", "no/../x"):
        assert look.look(f"{tmp_path}/{name}") == Facts("", "unknown"), name
    assert look.look(f"{tmp_path}/" + "a/" * 70 + "b").kind == "unknown"
    assert look.look(f"{tmp_path}/no/such/file").real == f"{tmp_path}/no/such/file"


def test_a_removed_folder_is_not_certain(look: Disk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "d").mkdir()
    held = os.open(tmp_path / "d", os.O_RDONLY)
    try:
        (tmp_path / "d").rmdir()
        monkeypatch.setattr(disk, "_open", lambda path: os.dup(held))
        assert look.look("/x").kind == "unknown"
    finally:
        os.close(held)


def test_no_magic_link_is_followed() -> None:
    assert Disk().look(f"/proc/{os.getpid()}/root/etc").kind in ("loop", "unknown")
