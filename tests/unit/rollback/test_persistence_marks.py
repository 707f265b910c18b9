"""A mark: what is not read is known by its stamp, and what a look reads and keeps is bounded over all its roots."""

from __future__ import annotations

from pathlib import Path

import pytest

from console.rollback.persistence import marks
from console.rollback.persistence.findings import Entry, Place, Root, Where
from console.rollback.persistence.marks import Marks, Portion
from console.rollback.persistence.tree import Tree

PLACE = Place("shell", Where.HOME, ".profile", "every shell")


def mark(folder: Path, path: str, portion: Portion, where: Where = Where.HOME) -> Entry | None:
    tree = Tree(str(folder), where)
    try:
        return Marks(Root("r", where, str(folder)), tree, portion).entry(tuple(path.split("/")), PLACE, False)
    finally:
        tree.close()


def test_what_is_beyond_the_bytes_of_a_look_is_known_by_its_stamp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(marks, "HASHED_TOTAL", 10)
    portion = Portion()
    for name in ("one", "two"):
        (tmp_path / name).write_bytes(b"12345678")
    one, two = mark(tmp_path, "one", portion), mark(tmp_path, "two", portion)
    assert one is not None and len(one.digest) == 64 and not one.note
    assert two is not None and two.digest.startswith("stamp:") and "too large" in two.note


def test_an_excerpt_is_kept_until_together_they_are_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(marks, "TEXT_BYTES", 4)
    monkeypatch.setattr(marks, "TEXT_TOTAL", 6)
    portion = Portion()
    assert [portion.kept(b"123456") for _ in range(3)] == [b"1234", b"1234", b""]


def test_a_link_in_a_folders_place_is_what_is_listed(tmp_path: Path) -> None:
    (tmp_path / "folder").symlink_to("/elsewhere")
    tree = Tree(str(tmp_path), Where.WORKSPACE)
    found = Marks(Root("r", Where.WORKSPACE, str(tmp_path)), tree, Portion())
    link = found.link_in_the_way(("folder", "x", "y"), PLACE)
    assert link is not None and (link.path, link.what, link.target) == ("folder", "link", "/elsewhere")
    assert found.link_in_the_way(("other", "x"), PLACE) is None
    tree.close()
