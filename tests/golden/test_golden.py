"""What the product says is what the golden files hold. A wanted change: ``python -m tests.golden --write``, in a commit of its own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.fakes.guard_room import Room
from tests.golden import guard_lines, story, texts
from tests.golden.__main__ import difference


@pytest.fixture(scope="module", autouse=True)
def forked_instance(forked: None) -> None:
    """The instance is forked from a process that has imported what it needs."""


MADE: dict[str, Callable[[], dict[str, str]]] = {
    "help": lambda: {"help.txt": texts.helps()},
    "receipts": texts.receipts,
    "guard": guard_lines.collect,
    "instance": story.collect,
}


@pytest.mark.parametrize("part", MADE)
def test_what_is_said_is_what_was_said(part: str) -> None:
    said = MADE[part]()
    found = [text for name, now in said.items() if (text := difference(name, now))]
    assert not found, "\n".join(found)


def test_every_operation_of_the_guard_is_in_the_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    room = Room(tmp_path, monkeypatch)
    served = {f"operator {op}" for op in room.desk.ops} | {f"supervisor {op}" for op in room.desk.supervisor_ops}
    room.close()
    assert {f"{door} {op}" for door, op in guard_lines.operations()} == served
