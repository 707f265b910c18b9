"""A guard in this process, on folders, and a process that it may kill."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from console.killswitch.kernel import processes
from tests.fakes.guard_room import Room
from tests.fakes.guard_world import until


@pytest.fixture
def make_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Room]]:
    made: list[Room] = []

    def make(**config: Any) -> Room:
        made.append(Room(tmp_path, monkeypatch, **config))
        return made[-1]

    yield make
    for room in made:
        room.close()


@pytest.fixture
def room(make_room: Callable[..., Room]) -> Room:
    return make_room()


@pytest.fixture
def sleeper() -> Iterator[tuple[int, int]]:
    """(pid, start ticks) of a process of the test's own."""
    process = subprocess.Popen(["/bin/sleep", "60"])
    ticks = processes.start_ticks(process.pid)
    assert ticks is not None
    until(lambda: processes.command_line(process.pid), "its program is loaded")
    yield process.pid, ticks
    process.kill()
    process.wait()
