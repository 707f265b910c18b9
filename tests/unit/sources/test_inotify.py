"""Changes in a folder are told by name, without a wait, and what cannot be watched is an error."""

from __future__ import annotations

import asyncio
import os
import select
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from console.sources import inotify
from console.sources.inotify import FolderNews, Inotify


@pytest.fixture
def told() -> Iterator[Inotify]:
    made = Inotify()
    yield made
    made.close()
    made.close()


def test_each_change_is_told_with_its_folder_and_name(told: Inotify, tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    for folder in (one, other):
        folder.mkdir()
    first, second = told.watch(str(one)), told.watch(str(other))
    assert told.watch(str(one)) == first and list(told.news()) == []
    (one / "draft").write_text("1")
    (one / "draft").rename(other / "b\u00e9")
    poll = select.poll()
    poll.register(told.fd, select.POLLIN)
    assert poll.poll(60_000)
    seen = set(told.news())
    assert {(first, "draft"), (second, "b\u00e9")} <= seen and list(told.news()) == []
    other.joinpath("b\u00e9").unlink()
    other.rmdir()
    assert (second, "") in set(told.news()), "the folder itself is gone"


def test_nothing_is_opened(told: Inotify, tmp_path: Path) -> None:
    number = told.watch(str(tmp_path))
    os.mkfifo(tmp_path / "pipe")  # whoever opens it to read hangs
    assert (number, "pipe") in set(told.news())


def test_what_is_not_there_is_an_error(told: Inotify, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        told.watch(str(tmp_path / "nothing"))


async def waited(news: FolderNews, at_most_s: float = 60.0) -> float:
    began = time.monotonic()
    await news.wait(at_most_s)
    return time.monotonic() - began


def test_who_waits_on_a_loop_goes_on_when_something_changed_and_else_after_its_time(tmp_path: Path) -> None:
    async def story() -> None:
        with FolderNews(str(tmp_path)) as news:
            (tmp_path / "latch.json").write_text("1")
            assert await waited(news) < 30
            while (took := await waited(news, 0.2)) < 0.2:  # what was written then may be told in several parts
                pass
            assert took < 30
        news.close()

    asyncio.run(story())


def test_where_nobody_tells_the_wait_is_over_after_its_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: Inotify) -> None:
        raise OSError(24, "Too many open files")

    async def story() -> None:
        with FolderNews(str(tmp_path / "nothing")) as news:
            assert await waited(news, 0.05) >= 0.05
        monkeypatch.setattr(inotify.Inotify, "__init__", refuse)
        with FolderNews(str(tmp_path)) as news:
            assert await waited(news, 0.05) >= 0.05

    asyncio.run(story())
