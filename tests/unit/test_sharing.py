"""Of runs that share their files every test is run by exactly one, and a file is never divided."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from pathlib import Path

from tests.sharing import taken

ROOT = Path("/project")


@dataclass(frozen=True)
class One:
    path: Path
    number: int


def test_each_test_is_run_once_whoever_is_faster_and_a_file_stays_whole(tmp_path: Path) -> None:
    # As pytest may order them: those of a file are not always next to each other.
    tests = [One(ROOT / "tests" / folder / f"test_{file}.py", number) for number in range(3) for folder in "ab" for file in range(20)]
    start = threading.Barrier(4)
    mine: list[list[One]] = [[] for _ in range(4)]

    def run(own: list[One]) -> None:
        start.wait()
        own.extend(taken(tests, tmp_path / "share", ROOT))

    threads = [threading.Thread(target=run, args=(own,)) for own in mine]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted((one.path, one.number) for own in mine for one in own) == sorted((one.path, one.number) for one in tests)
    for own in mine:
        assert [one.number for one in own] == [0, 1, 2] * (len(own) // 3), "whole, and in its order"
    assert list(taken(tests, tmp_path / "share", ROOT)) == []
