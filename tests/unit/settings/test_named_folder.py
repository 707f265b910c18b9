"""A folder by any of its names is one folder; a link that a stranger laid is followed by nobody."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from console.domain.errors import UsageProblem
from console.settings.named_folder import real_folder


def test_every_link_on_the_way_is_followed_whether_the_folder_is_there_or_not(state_dir: Path) -> None:
    (state_dir / "real" / "deep").mkdir(parents=True)
    (state_dir / "one").symlink_to("real")  # relative
    (state_dir / "two").symlink_to(state_dir / "one" / "deep")
    (state_dir / "up").symlink_to("one/deep/../..")
    for name, place in {
        "real": "real",
        "one": "real",
        "one/new/state": "real/new/state",
        "two": "real/deep",
        "two/x": "real/deep/x",
        "up/real": "real",
        "two/../deep": "real/deep",
    }.items():
        assert real_folder(state_dir / name) == state_dir / place
    (state_dir / "dangling").symlink_to("not-yet")
    assert real_folder(state_dir / "dangling") == state_dir / "not-yet"


def test_links_that_lead_nowhere_are_refused_in_words(state_dir: Path) -> None:
    (state_dir / "a").symlink_to("b")
    (state_dir / "b").symlink_to("a")
    with pytest.raises(UsageProblem, match="too many links"):
        real_folder(state_dir / "a" / "x")
    with pytest.raises(UsageProblem, match="cannot be followed"):
        real_folder(state_dir / ("x" * 300))


@pytest.mark.parametrize(("mode", "refused"), [(0o1777, True), (0o777, True), (0o755, False)])
def test_a_strangers_link_counts_only_where_not_everybody_may_lay_one(state_dir: Path, mode: int, refused: bool) -> None:
    open_to_all, mine = state_dir / "tmp", state_dir / "mine"
    open_to_all.mkdir()
    mine.mkdir()
    (open_to_all / "link").symlink_to(mine)
    os.lchown(open_to_all / "link", 64001, 64001)
    (open_to_all / "own").symlink_to("link")
    open_to_all.chmod(mode)
    for name in ("link", "link/state", "own"):  # and one that leads there
        if refused:
            with pytest.raises(UsageProblem, match="another account made"):
                real_folder(open_to_all / name)
        else:
            assert real_folder(open_to_all / name) == mine / name.removeprefix("link").removeprefix("own").lstrip("/")
