"""What a rotation must not forget comes back as it was written; what an older version wrote is read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from console.credentials.marker import (
    LAST,
    MARKER,
    Again,
    Last,
    Marker,
    Phase,
    RotationItem,
    load_last,
    load_marker,
    save_last,
    save_marker,
)


def test_both_come_back_whole(tmp_path: Path) -> None:
    marker = Marker("k", {"a": Phase.CHANGED}, "hash", {"operator": "t"}, {"a": "doubt"}, {"b": "why"})
    save_marker(tmp_path, marker)
    last = Last(1.0, "k", False, "d", [RotationItem("a", True, 2.0, "w")], "p", {"a": Again.DUE}, 3.0, "hash", {"b": "why"})
    save_last(tmp_path, last)
    assert load_marker(tmp_path) == marker and load_last(tmp_path) == last


def test_those_of_an_older_version_are_read(tmp_path: Path) -> None:
    save_marker(tmp_path, Marker("k", {"a": Phase.TODO}))
    save_last(tmp_path, Last(1.0, "k", True, "d", []))
    for name, new in ((MARKER, ("doubts", "let_go")), (LAST, ("keys_after", "let_go"))):
        data = json.loads((tmp_path / name).read_text())
        for field in new:
            del data[field]
        (tmp_path / name).write_text(json.dumps(data))
    marker, last = load_marker(tmp_path), load_last(tmp_path)
    assert marker == Marker("k", {"a": Phase.TODO}) and last is not None and last.ok and last.keys_after == "" and last.let_go == {}


@pytest.mark.parametrize("part", ["let_go", "again", "items", "at", "again_at"])
@pytest.mark.parametrize("junk", ["text", 7, [1], None])
def test_damage_is_damage(tmp_path: Path, part: str, junk: object) -> None:
    save_last(tmp_path, Last(1.0, "k", True, "d", [RotationItem("a", True, 1.0, "")], again_at=2.0))
    data = json.loads((tmp_path / LAST).read_text())
    data[part] = junk
    (tmp_path / LAST).write_text(json.dumps(data))
    found = load_last(tmp_path)
    assert found is None or (part, junk) in (("at", 7), ("again_at", 7), ("again_at", None))
