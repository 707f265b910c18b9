"""The process that reads beside this one: busy, never trusted to live, never left behind."""

from __future__ import annotations

import os
import time
from collections import deque
from pathlib import Path

import pytest

from console.sources.kinds import TRANSCRIPTS
from console.sources.reading import at_of
from console.sources.spend import second_reader
from console.sources.spend.second_reader import Due, SecondReader, is_worth_it
from console.sources.spend.transcript_files import Place, Transcript


def due_of(folder: Path, count: int) -> deque[Due]:
    found: deque[Due] = deque()
    for number in range(count):
        file = folder / f"{number}.jsonl"
        file.write_bytes(b"{}\n")
        found.append((Transcript("claude_code", str(file), size=3), None))
    return found


def test_a_short_history_or_one_core_is_not_worth_it(monkeypatch: pytest.MonkeyPatch) -> None:
    long: list[Due] = [(Transcript("codex", "/x", size=second_reader.WORTH), None)]
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {0, 1})
    assert is_worth_it(long) and not is_worth_it([(Transcript("codex", "/x", size=5), None)])
    assert not is_worth_it([(long[0][0], Place(1, 1, 1, 1, 9, "", ""))])  # but for what was read of it already
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {3})
    assert not is_worth_it(long)


def test_one_that_is_not_wanted_takes_nothing(tmp_path: Path) -> None:
    due = due_of(tmp_path, 3)
    with SecondReader(TRANSCRIPTS, wanted=False) as second:
        second.feed(due)
        assert len(due) == 3 and not second.owes and list(second.replies(wait=True)) == []


def test_it_takes_from_the_end_as_much_as_keeps_it_busy_and_answers_all_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(second_reader, "CHUNK", 6)  # two files
    due = due_of(tmp_path, 20)
    with SecondReader(TRANSCRIPTS, wanted=True) as second:
        second.feed(due)
        assert [one.path for one, _ in due] == [str(tmp_path / f"{number}.jsonl") for number in range(20 - 2 * second_reader.CHUNKS)]
        met = []
        while second.owes or due:
            met += [transcript.path for transcript, reply in second.replies(wait=True) if reply.place is not None and reply.is_last]
            second.feed(due)
        assert sorted(met) == sorted(str(tmp_path / f"{number}.jsonl") for number in range(20)) and second.given_back() == []
        process = second._process
    assert process is not None and process.returncode is not None


def test_names_of_any_length_never_fill_the_pipe(tmp_path: Path) -> None:
    due: deque[Due] = deque((Transcript("claude_code", "/nowhere/" + "x" * 4000, size=1), None) for _ in range(300))
    with SecondReader(TRANSCRIPTS, wanted=True) as second:
        second.feed(due)
        assert 0 < 300 - len(due) <= second_reader.CHUNKS * 4
        while second.owes:
            assert all("No such file" in reply.found.troubles[0] for _, reply in second.replies(wait=True))


def test_one_that_is_killed_gives_back_what_it_had_and_takes_nothing_more(tmp_path: Path) -> None:
    due = due_of(tmp_path, 8)
    with SecondReader(TRANSCRIPTS, wanted=True) as second:
        second.feed(due)
        assert not due
        second._process.send_signal(19)  # type: ignore[union-attr]  # SIGSTOP: it has answered little
        answered = [transcript for transcript, _ in second.replies(wait=False)]
        second._process.kill()  # type: ignore[union-attr]
        while second.owes and not second._is_lost:
            answered += [transcript for transcript, _ in second.replies(wait=True)]
        back = second.given_back()
        assert len(answered) + len(back) == 8 and not second.owes
        due.extend(back)
        second.feed(due)
        assert len(due) == len(back)


@pytest.mark.parametrize("frame", [b"\xff\xff\xff\xff", b"\x01\x00\x00\x00\xc1", b"\x06\x00\x00\x00\x95\x63\xc3\xc0\xc0\x90"])
def test_what_is_no_answer_is_not_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, frame: bytes) -> None:
    monkeypatch.setattr(second_reader, "PROGRAM", f"import os, time; os.write(1, {frame!r}); time.sleep(60)")
    due = due_of(tmp_path, 2)
    with SecondReader(TRANSCRIPTS, wanted=True) as second:
        second.feed(due)
        assert list(second.replies(wait=True)) == [] and len(second.given_back()) == 2
        process = second._process
    assert process is not None and process.returncode == -9


def test_it_ends_when_nobody_waits_for_it(tmp_path: Path) -> None:
    due = due_of(tmp_path, 2)
    with pytest.raises(RuntimeError), SecondReader(TRANSCRIPTS, wanted=True) as second:
        second.feed(due)
        process = second._process
        raise RuntimeError
    assert process is not None and process.returncode is not None


def test_a_time_without_a_zone_means_the_same_there_as_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record = '{"type":"assistant","timestamp":"2026-11-21T20:28:05","message":{"id":"a","model":"m","usage":{"output_tokens": 1}}}\n'
    (tmp_path / "s.jsonl").write_text(record)
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        with SecondReader(TRANSCRIPTS, wanted=True) as second:
            second.feed(deque([(Transcript("claude_code", str(tmp_path / "s.jsonl"), size=9), None)]))
            ((_, reply),) = second.replies(wait=True)
        assert reply.answers[0].at == at_of("2026-11-21T20:28:05+09:00") == at_of("2026-11-21T20:28:05")
    finally:
        monkeypatch.undo()
        time.tzset()
