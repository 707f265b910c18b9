"""Following transcripts: only what is new, whole lines alone, and by the file itself."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from console.sources.kinds import TRANSCRIPTS, VENDORS
from console.sources.spend import second_reader, transcript_files
from console.sources.spend.rates import RateBook
from console.sources.spend.reader import SpendReader
from console.sources.spend.store import SpendStore
from console.sources.spend.transcript_files import Answers, Found, Transcript

DATA = Path(__file__).parents[3] / "data"
RATES = RateBook(VENDORS)


@dataclass
class World:
    home: Path
    store: SpendStore

    def read(self) -> Found:
        return SpendReader(self.store, RATES, TRANSCRIPTS, self.home).read()

    def cost(self) -> float:
        return round(sum(s.cost_usd for s in self.store.sums("day")), 9)

    def count(self) -> int:
        return sum(s.answers for s in self.store.sums("day"))

    @property
    def file(self) -> Path:
        made = self.home / ".claude" / "projects" / "p" / "s1.jsonl"
        made.parent.mkdir(parents=True, exist_ok=True)
        return made


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    store = SpendStore(tmp_path / "cost.db")
    home = tmp_path / "home"
    home.mkdir()
    yield World(home, store)
    store.close()


def line(answer_id: str, output: int = 1) -> bytes:
    message = {"id": answer_id, "model": "claude-sonnet-4-5", "usage": {"output_tokens": output}}
    return json.dumps({"type": "assistant", "message": message, "timestamp": "2026-11-21T20:28:05Z"}).encode() + b"\n"


def test_the_real_programs_tree_costs_what_it_says_itself(world: World) -> None:
    shutil.copytree(DATA / "claude-code" / "projects-tree", world.home / ".claude" / "projects")
    rollouts = world.home / ".codex" / "sessions" / "2026" / "11" / "21"
    rollouts.mkdir(parents=True)
    shutil.copy(DATA / "codex" / "rollout.jsonl", rollouts / "rollout-2026-11-21T20-33-01-x.jsonl")
    found = world.read()
    said = next(
        json.loads(text)
        for text in next((DATA / "claude-code").rglob("ca*.jsonl")).read_text().splitlines()
        if '"cost-state"' in text
    )  # fmt: skip
    assert {s.key: round(s.cost_usd, 9) for s in world.store.sums("source")} == {"claude_code": said["totalCostUSD"], "codex": 0.005684}
    assert (found.files, found.read, found.reading.odd, found.troubles) == (3, 3, 0, [])
    again = world.read()
    assert (again.files, again.read, again.bytes) == (3, 0, 0)


def test_only_what_is_new_is_read_and_a_line_counts_when_it_is_whole(world: World) -> None:
    world.file.write_bytes(line("a") + line("b")[:20])
    world.read()
    assert world.count() == 1
    with world.file.open("ab") as file:
        file.write(line("b")[20:] + line("c"))
    found = world.read()
    assert world.count() == 3 and found.bytes == len(line("b") + line("c"))


def test_a_file_that_was_cut_replaced_or_rewritten_is_read_anew_and_nothing_counts_twice(world: World) -> None:
    world.file.write_bytes(line("a") + line("b"))
    world.read()
    world.file.write_bytes(line("c"))  # cut
    world.read()
    assert world.count() == 3
    world.file.write_bytes(line("xx") + line("yy") + line("zz"))  # rewritten in place, and longer
    world.read()
    assert world.count() == 6
    other = world.file.with_suffix(".new")
    other.write_bytes(line("a") + line("n"))
    other.replace(world.file)
    world.read()
    assert world.count() == 7
    world.file.unlink()
    assert world.read().files == 0 and world.count() == 7  # what the program swept is still known


def test_a_resumed_session_copies_answers_that_count_once(world: World) -> None:
    world.file.write_bytes(line("a") + line("b"))
    world.file.with_name("s2.jsonl").write_bytes(line("a") + line("b") + line("c"))
    world.read()
    assert world.count() == 3


def test_an_answer_written_while_it_grows_counts_with_its_last_numbers(world: World) -> None:
    world.file.write_bytes(line("a", 5) + line("a", 100) + line("a", 100))
    world.read()
    assert [s.tokens for s in world.store.sums("day")] == [100]


def test_names_of_files_that_hold_a_secret_links_and_pipes_are_never_opened(world: World, tmp_path: Path) -> None:
    outside = tmp_path / "outside.jsonl"
    outside.write_bytes(line("stolen"))
    folder = world.file.parent
    (folder / "link.jsonl").symlink_to(outside)
    (world.home / ".claude" / "projects" / "away").symlink_to(tmp_path)
    os.mkfifo(folder / "pipe.jsonl")
    (folder / "1.abc.key").write_bytes(line("key"))
    found = world.read()
    assert (found.files, world.count()) == (0, 0)


def test_hostile_names_are_kept_as_text(world: World) -> None:
    (world.file.parent / os.fsdecode(b"\xff\x1b[31m\n.jsonl")).write_bytes(line("a"))
    found = world.read()
    assert world.count() == 1 and found.troubles == []
    assert "\x1b" not in world.store.sums("session")[0].key
    assert world.read().read == 0


def test_a_folder_that_cannot_be_read_is_said_and_the_others_are_read(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.file.write_bytes(line("a"))
    closed = world.home / ".claude" / "projects" / "closed"
    closed.mkdir()
    real = os.scandir

    def scandir(path: str) -> object:
        if path == str(closed):
            raise PermissionError(13, "Permission denied", path)
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    found = world.read()
    assert world.count() == 1 and len(found.troubles) == 1 and "Permission denied" in found.troubles[0]


def test_a_model_that_a_newer_table_knows_is_priced_then(world: World) -> None:
    world.file.write_bytes(line("a"))
    reader = SpendReader(world.store, RATES, TRANSCRIPTS, world.home)
    with world.store.writing():
        world.store.keep_places({})
    monkey = RateBook(VENDORS)
    monkey.price = lambda answer: None  # type: ignore[method-assign]
    SpendReader(world.store, monkey, TRANSCRIPTS, world.home).read()
    assert world.store.unpriced()
    reader.reprice()  # the same version: no use trying
    assert world.store.unpriced()
    with world.store.writing():
        world.store._db.execute("update answers set prices = 'an older table'")
    reader.reprice()
    assert not world.store.unpriced() and world.cost() == 0.000015


def test_the_places_that_are_looked_in(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", "/elsewhere/claude")
    assert [str(f) for _, f in SpendReader(world.store, RATES, TRANSCRIPTS[:2], world.home).folders()] == [
        f"{world.home}/.claude/projects",
        f"{world.home}/.codex/sessions",
    ]
    assert str(SpendReader(world.store, RATES, TRANSCRIPTS).folders()[0][1]) == "/elsewhere/claude/projects"


def test_a_file_dated_into_a_far_year_stops_nobodys_metering(world: World) -> None:
    world.file.write_bytes(line("a"))
    far = world.file.with_name("far.jsonl")
    far.write_bytes(line("b"))
    os.utime(far, ns=(15 * 10**18, 15 * 10**18))
    for _ in range(2):
        world.read()
        assert world.count() == 2


def test_an_endless_file_is_read_a_piece_at_a_time_and_holds_nobody_up(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transcript_files, "BLOCK", 4096)
    monkeypatch.setattr(transcript_files, "LINE_MAX", 8192)
    monkeypatch.setattr(transcript_files, "PASS_MAX", 100_000)
    monkeypatch.setattr(second_reader, "WORTH", 1 << 40)
    huge = world.file.with_name("huge.jsonl")
    with huge.open("wb") as file:
        file.truncate(1 << 30)  # sparse
    world.file.write_bytes(line("a"))
    found = world.read()
    assert world.count() == 1 and found.bytes < 200_000
    assert world.read().bytes <= 100_000  # it goes on where it ended
    many = world.file.with_name("many.jsonl")
    many.write_bytes(b"".join(line(f"m{n}") for n in range(2000)))
    huge.unlink()
    for _ in range(20):
        world.read()
    assert world.count() == 2001


def test_answers_of_one_file_are_kept_before_they_fill_the_memory(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transcript_files, "ANSWERS_MAX", 10)
    monkeypatch.setattr(transcript_files, "BLOCK", 4096)
    early: list[int] = []
    real = SpendReader._keep_early

    def keep_early(reader: SpendReader, answers: Answers) -> None:
        early.append(len(answers))
        real(reader, answers)

    monkeypatch.setattr(SpendReader, "_keep_early", keep_early)
    world.file.write_bytes(b"".join(line(f"m{n}") for n in range(105)))
    world.read()
    assert world.count() == 105 and sum(early) >= 60 and max(early) < 60


def a_history(world: World, files: int = 40) -> None:
    """Sessions of several answers each, some told twice, and a rollout of Codex."""
    for number in range(files):
        world.file.with_name(f"s{number}.jsonl").write_bytes(b"".join(line(f"a{number + more}") for more in range(5)))
    rollouts = world.home / ".codex" / "sessions"
    rollouts.mkdir(parents=True)
    shutil.copy(DATA / "codex" / "rollout.jsonl", rollouts / "rollout-2026-11-21T20-33-01-x.jsonl")
    world.file.with_name(os.fsdecode(b"\xff\n.jsonl")).write_bytes(line("odd name"))


def what_is_kept(world: World) -> object:
    """Which of two sessions that both tell of an answer it counts for is up to who is read first."""
    return world.store.sums("day"), world.store.sums("source"), world.store.places()


@pytest.fixture
def two_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second process from the first byte on, though this machine may have one core."""
    monkeypatch.setattr(second_reader, "WORTH", 1)
    monkeypatch.setattr(second_reader, "CHUNK", 1)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {0, 1})


def test_what_a_second_process_reads_is_kept_as_if_it_were_read_here(
    world: World, tmp_path: Path, two_processes: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_history(world)
    accepted: list[str] = []
    accept, take = SpendReader._accept, SpendReader._take

    def accepted_too(reader: SpendReader, transcript: Transcript, *rest: Any) -> None:
        accepted.append(transcript.key)
        accept(reader, transcript, *rest)

    def taken_slowly(reader: SpendReader, *due: Any) -> None:
        time.sleep(0.02)
        take(reader, *due)

    monkeypatch.setattr(SpendReader, "_accept", accepted_too)
    monkeypatch.setattr(SpendReader, "_take", taken_slowly)
    both = world.read()
    assert accepted
    monkeypatch.setattr(second_reader, "WORTH", 1 << 40)
    alone = World(world.home, SpendStore(tmp_path / "alone.db"))
    one = alone.read()
    assert what_is_kept(world) == what_is_kept(alone) and both == one
    alone.store.close()
    assert world.read().read == 0
    with world.file.with_name("s3.jsonl").open("ab") as file:
        file.write(line("more"))
    monkeypatch.setattr(second_reader, "WORTH", 1)
    found = world.read()
    assert (found.read, found.bytes) == (1, len(line("more")))  # it too goes on where the last look ended


def test_a_second_process_that_ends_or_says_nonsense_loses_nothing(
    world: World, two_processes: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_history(world)
    monkeypatch.setattr(second_reader, "WORTH", 1 << 40)
    world.read()
    alone = what_is_kept(world)
    monkeypatch.setattr(second_reader, "WORTH", 1)
    nonsense = "print('nonsense' * 100, flush=True); import time; time.sleep(60)"
    for python, program in ((sys.executable, "pass"), (sys.executable, nonsense), ("/nowhere/python", "pass")):
        monkeypatch.setattr(sys, "executable", python)
        monkeypatch.setattr(second_reader, "PROGRAM", program)
        world.store.close()
        world.store.file.unlink()
        world.store = SpendStore(world.store.file)
        assert world.read().read == 42 and what_is_kept(world) == alone
