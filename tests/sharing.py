"""Processes that share the files of the tests out: whoever is free takes the next, so that all end together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Protocol, TypeVar


class Test(Protocol):
    """What is taken: a test knows its file."""

    @property
    def path(self) -> Path: ...


T = TypeVar("T", bound=Test)


def taken(tests: Iterable[T], share: Path, root: Path) -> Iterator[T]:
    """Tests of the files that are ours: whoever makes a file's folder in ``share`` first has it, whole, in its own order."""
    share.mkdir(exist_ok=True)
    files: dict[Path, list[T]] = {}
    for test in tests:
        files.setdefault(test.path, []).append(test)
    for path, group in files.items():
        try:
            (share / path.relative_to(root).as_posix().replace("/", "-")).mkdir()
        except FileExistsError:
            continue
        yield from group
