"""The journal: numbered, whole lines, also after torn ones and full disks."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from console.killswitch.store import atomic_file
from console.killswitch.store import journal as journal_module
from console.killswitch.store.atomic_file import Reserve
from console.killswitch.store.journal import LONGEST, Journal, read_journal


def test_numbers_go_on_after_a_restart(tmp_path: Path) -> None:
    assert [Journal(tmp_path).append("press", generation=4), Journal(tmp_path).append("thaw")] == [1, 2]
    assert [line["kind"] for line in read_journal(tmp_path / "journal.jsonl")] == ["press", "thaw"]
    assert [line["seq"] for line in read_journal(tmp_path / "journal.jsonl", after=1)] == [2]
    assert Journal(tmp_path).generation == 4


def test_a_torn_tail_does_not_swallow_the_next_line(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.append("press")
    with journal.path.open("ab") as file:
        file.write(b'{"seq": 2, "kind": "th')
    Journal(tmp_path).append("freeze")
    assert [line["kind"] for line in read_journal(journal.path)] == ["press", "freeze"]


def test_a_line_that_cannot_be_written_leaves_no_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Journal(tmp_path)
    journal.append("press")
    size = journal.path.stat().st_size

    def short(fd: int, data: bytes) -> None:
        os.write(fd, data[:5])
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(journal_module, "write_all", short)
    with pytest.raises(OSError, match="full"):
        journal.append("freeze")
    assert journal.path.stat().st_size == size


@pytest.mark.parametrize(("kind", "spends"), [("press", True), ("freeze", False), ("thaw", False), ("unlatch", False)])
def test_only_a_press_spends_the_reserve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, spends: bool) -> None:
    reserve = Reserve(tmp_path / "reserve")
    reserve.make()
    journal, real = Journal(tmp_path, reserve), atomic_file.write_all

    def write(fd: int, data: bytes) -> None:
        if reserve.path.exists():
            raise OSError(errno.ENOSPC, "full")
        real(fd, data)

    monkeypatch.setattr(journal_module, "write_all", write)
    if spends:
        assert journal.append(kind) == 1
    else:
        with pytest.raises(OSError, match="full"):
            journal.append(kind)
    assert reserve.path.exists() is not spends


def test_hostile_text_stays_one_line_and_bounded(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.append("press", reason='a\nb{"seq": 99}\x00')
    journal.append("press", reason="x" * (2 * LONGEST))
    lines = list(read_journal(journal.path))
    assert [line["seq"] for line in lines] == [1, 2] and lines[1]["cut"]


def test_two_writers_never_number_alike(tmp_path: Path) -> None:
    one, two = Journal(tmp_path), Journal(tmp_path)
    assert [one.append("press"), two.append("freeze"), two.append("press"), one.append("thaw")] == [1, 2, 3, 4]
    assert [line["seq"] for line in read_journal(one.path)] == [1, 2, 3, 4]


def test_only_the_end_of_a_long_journal_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    line = {"seq": 0, "kind": "press", "generation": 3, "reason": "x" * 400}
    (tmp_path / "journal.jsonl").write_text("".join(json.dumps({**line, "seq": n}) + "\n" for n in range(1, 5001)))
    parsed: list[int] = []
    real = journal_module._parse

    def counted(lines: list[bytes]) -> Iterator[dict[str, Any]]:
        parsed.append(len(lines))
        return real(lines)

    monkeypatch.setattr(journal_module, "_parse", counted)
    journal = Journal(tmp_path)
    assert journal.append("press") == 5001 and journal.generation == 3 and sum(parsed) < 600
