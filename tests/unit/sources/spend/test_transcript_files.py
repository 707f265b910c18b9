"""One transcript: whole lines alone, bounded, from where the last look ended."""

from __future__ import annotations

import json
import os
import tracemalloc
from pathlib import Path

import pytest

from console.sources.claude_code.transcripts import TRANSCRIPTS
from console.sources.spend import transcript_files
from console.sources.spend.transcript_files import Answers, Found, Place, Transcript, follow


def line(answer_id: str, output: int = 1) -> bytes:
    message = {"id": answer_id, "model": "claude-sonnet-4-5", "usage": {"output_tokens": output}}
    return json.dumps({"type": "assistant", "message": message, "timestamp": "2026-11-21T20:28:05Z"}).encode() + b"\n"


def looked(file: Path, before: Place | None = None) -> tuple[Place | None, set[str], Found]:
    answers: Answers = {}
    found = Found()
    place = follow(Transcript("claude_code", str(file)), TRANSCRIPTS, before, answers, found, lambda _answers: None)
    return place, {one.answer_id.partition(" ")[0] for one in answers.values()}, found


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "s1.jsonl"


def test_a_line_without_end_is_passed_over_and_said(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transcript_files, "BLOCK", 4096)
    monkeypatch.setattr(transcript_files, "LINE_MAX", 20_000)
    file.write_bytes(line("a") + b'{"usage":"' + b"x" * 100_000 + b'"}\n' + line("b"))
    _, answers, found = looked(file)
    assert answers == {"a", "b"} and found.reading.odd >= 1


def test_a_line_without_end_is_held_once_and_looked_through_once(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transcript_files, "BLOCK", 1 << 16)
    monkeypatch.setattr(transcript_files, "LINE_MAX", 1 << 20)
    file.write_bytes(b"x" * (8 << 20) + b"\n" + line("b"))
    tracemalloc.start()
    try:
        _, answers, _ = looked(file)
        assert tracemalloc.get_traced_memory()[1] < 1.6 * (1 << 20)  # copied while it grows: twice as much, and everybody waits
    finally:
        tracemalloc.stop()
    assert answers == {"b"}


def test_a_place_knows_its_file_again_and_whether_it_changed(file: Path) -> None:
    file.write_bytes(line("a"))
    place, _, _ = looked(file)
    assert place is not None and place.holds(os.stat(file))
    with file.open("ab") as more:
        more.write(line("b"))
    assert place.is_of(os.stat(file)) and not place.holds(os.stat(file))
    assert looked(file, place)[1] == {"b"}
    other = file.with_name("other")
    other.write_bytes(line("c"))
    other.replace(file)
    assert not place.is_of(os.stat(file)) and looked(file, place)[1] == {"c"}


def test_what_is_no_file_is_not_read_and_why_is_said(file: Path) -> None:
    os.mkfifo(file)
    assert looked(file)[0] is None
    file.unlink()
    place, _, found = looked(file)
    assert place is None and "No such file" in found.troubles[0]


def test_two_readers_of_one_look_say_together_what_they_met() -> None:
    found, other = Found(files=3, read=1, bytes=10, left=1), Found(read=2, bytes=5, troubles=["t"], sessions={(0, "codex", "s")}, left=2)
    other.reading.odd, other.reading.answers = 4, 7
    found.add(other)
    assert (found.files, found.read, found.bytes, found.left, found.troubles) == (3, 3, 15, 3, ["t"])
    assert (found.reading.odd, found.reading.answers, found.sessions) == (4, 7, {(0, "codex", "s")})
