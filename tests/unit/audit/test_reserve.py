from __future__ import annotations

from pathlib import Path

from console.audit.log import Reserve


def test_it_holds_real_blocks_and_gives_them_back(tmp_path: Path) -> None:
    path = tmp_path / "audit.reserve"
    reserve = Reserve(path, 256 * 1024)
    assert reserve.take()
    assert reserve.whole
    assert path.stat().st_blocks * 512 >= 256 * 1024
    reserve.free()
    assert not path.exists()
    assert reserve.take()


def test_no_room_or_no_folder_is_no_reserve_and_no_error(tmp_path: Path) -> None:
    reserve = Reserve(tmp_path / "missing" / "x", 4096)
    assert not reserve.take()
    reserve.free()
    huge = Reserve(tmp_path / "huge", 1 << 60)
    assert not huge.take()
    assert (tmp_path / "huge").stat().st_blocks == 0


def test_a_planted_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("x")
    (tmp_path / "r").symlink_to(tmp_path / "precious")
    assert not Reserve(tmp_path / "r", 4096).take()
    assert (tmp_path / "precious").read_text() == "x"
