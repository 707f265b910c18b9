"""Changes are told at once, a burst as one, and what cannot be watched is said."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from console.sources import folder_watch
from console.sources.folder_watch import FolderWatch


def until(condition: Callable[[], object], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.fixture
def told() -> list[frozenset[str]]:
    return []


@pytest.fixture
def watch(tmp_path: Path, told: list[frozenset[str]]) -> Iterator[FolderWatch]:
    made = FolderWatch("t", lambda: [tmp_path, tmp_path / "later"], told.append)
    made.start()
    until(lambda: not made.problem)
    yield made
    made.end()
    until(lambda: not any(thread.name == "watch-t" for thread in threading.enumerate()))


def test_a_change_is_told_and_a_burst_is_not_told_one_by_one(watch: FolderWatch, told: list[frozenset[str]], tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("1")
    until(lambda: any(f"{tmp_path}/a.json" in paths for paths in told))
    told.clear()
    for number in range(500):
        (tmp_path / "burst.json").write_text(str(number))
    until(lambda: told)
    assert len(told) < 100


def test_a_folder_that_comes_later_is_watched_and_one_made_anew_too(watch: FolderWatch, told: list[frozenset[str]], tmp_path: Path) -> None:
    later = tmp_path / "later"
    later.mkdir()
    until(lambda: frozenset() in told[1:])  # it began anew
    told.clear()
    later.rmdir()
    later.mkdir()
    until(lambda: told)
    until(lambda: _tells(later, told))


def _tells(folder: Path, told: list[frozenset[str]]) -> bool:
    (folder / "b.json").write_text("1")
    time.sleep(0.1)
    return any(f"{folder}/b.json" in paths for paths in told)


def test_nothing_is_opened(watch: FolderWatch, told: list[frozenset[str]], tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "1.aa.key")  # whoever opens it to read hangs
    (tmp_path / "c.json").write_text("1")
    until(lambda: any(f"{tmp_path}/c.json" in paths for paths in told))


def test_what_is_not_there_or_refused_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    watch = FolderWatch("u", lambda: [tmp_path / "nothing"], lambda _: None)
    watch.start()
    until(lambda: "none of its folders is there yet" in watch.problem)
    watch.end()

    def refuse(*_: object) -> None:
        raise OSError(28, "OS file watch limit reached")

    monkeypatch.setattr(folder_watch, "RustNotify", refuse)
    watch = FolderWatch("v", lambda: [tmp_path], lambda _: None)
    watch.start()
    until(lambda: "limit of inotify watches is reached" in watch.problem)
    watch.end()
    until(lambda: not any(thread.name in ("watch-u", "watch-v") for thread in threading.enumerate()))
