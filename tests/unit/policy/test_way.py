"""How a program goes through a folder decides what it comes upon there."""

from __future__ import annotations

from pathlib import Path

import pytest

from console.policy.files.disk import Disk
from console.policy.files.walk import files_below
from console.policy.way import WHOLE, Way


@pytest.mark.parametrize(
    ("way", "expected"),
    [
        (WHOLE, {"a.py", ".hidden", "deep/b.py", "deep/er/c.txt", "link", "folder"}),
        (Way(depth=1), {"a.py", ".hidden", "link", "folder"}),
        (Way(depth=0), set()),
        (Way(only="*.py"), {"a.py", "deep/b.py"}),
        (Way(without=frozenset({"deep"})), {"a.py", ".hidden", "link", "folder"}),
        (Way(skips=frozenset({"hidden"})), {"a.py", "deep/b.py", "deep/er/c.txt", "link", "folder"}),
    ],
)
def test_a_way_leads_to_these_files(tmp_path: Path, way: Way, expected: set[str]) -> None:
    work = tmp_path / "w"
    (work / "deep" / "er").mkdir(parents=True)
    for name in ("a.py", ".hidden", "deep/b.py", "deep/er/c.txt"):
        (work / name).touch()
    (work / "link").symlink_to("a.py")
    (work / "folder").symlink_to("deep")
    found = files_below(f"{work}/", Disk(), way)
    assert found is not None and {Path(one).relative_to(work).as_posix() for one in found} == expected


def test_where_links_are_followed_into_folders_nothing_is_certain(tmp_path: Path) -> None:
    (tmp_path / "folder").symlink_to("/usr")
    assert files_below(str(tmp_path), Disk(), Way(follows=True)) is None
