"""What live sessions spent: read beside everything else, the live ones first."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from console.domain.spend import Answer
from console.sources.kinds import TRANSCRIPTS, VENDORS
from console.sources.spend import of_session as session_spend
from console.sources.spend.of_session import NOT_READ, SessionSpend
from console.sources.spend.rates import RateBook
from console.sources.spend.store import SpendStore
from console.sources.spend.transcript_files import Found

RATES = RateBook(VENDORS)
ME = os.geteuid()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    made = tmp_path / "home" / ".claude" / "projects" / "p"
    made.mkdir(parents=True)
    return tmp_path / "home"


@pytest.fixture
def spend(tmp_path: Path, home: Path) -> Iterator[SessionSpend]:
    made = SessionSpend(tmp_path / "cost.db", TRANSCRIPTS, RATES, home)
    yield made
    made.end()


def say(home: Path, session: str, answer_id: str, at: float = 0.0, agent: str = "") -> None:
    stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at or time.time()))
    message = {"id": answer_id, "model": "claude-sonnet-4-5", "usage": {"output_tokens": 100_000}}
    line = json.dumps({"type": "assistant", "message": message, "timestamp": stamp, "agentId": agent})
    with (home / ".claude" / "projects" / "p" / f"{session}.jsonl").open("a") as file:
        file.write(line + "\n")


LIVE = "11111111-1111-4111-8111-111111111111"


def until(condition: object, seconds: float = 30.0) -> None:
    assert callable(condition)
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_it_answers_at_once_and_knows_a_moment_later(spend: SessionSpend, home: Path) -> None:
    say(home, "s1", "a")
    say(home, "s1", "b", agent="sub")
    assert spend.of(ME, "claude_code", "s1") == {} and spend.problem == "not read yet"
    until(lambda: spend.of(ME, "claude_code", "s1"))
    seen = spend.of(ME, "claude_code", "s1")
    assert {name: one.cost_usd for name, one in seen.items()} == {"": 1.5, "sub": 1.5} and seen[""].model == "claude-sonnet-4-5"
    say(home, "s1", "c")
    until(lambda: spend.of(ME, "claude_code", "s1")[""].cost_usd == 3.0)
    assert spend.problem == "" and spend.of(ME, "codex", "s1") == {}


def test_today_is_by_the_answers_own_times(spend: SessionSpend, home: Path) -> None:
    say(home, "s1", "a")
    say(home, "s1", "b", at=time.time() - 3 * 86400)
    spend.of(ME, "claude_code", "s1")
    until(lambda: not spend.problem)
    assert spend.today_usd == 1.5


def test_what_was_spent_today_is_read_though_nobody_of_them_runs(tmp_path: Path, home: Path, spend: SessionSpend) -> None:
    say(home, "over", "m1", time.time())
    spend.begin()
    until(lambda: spend.today_usd > 0)
    nobody = SessionSpend(tmp_path / "none.db", TRANSCRIPTS, RATES, home, outside=False)
    nobody.begin()
    assert not (tmp_path / "none.db").exists() and nobody.problem == NOT_READ
    nobody.end()


def test_a_long_history_delays_no_live_session(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(20):
        say(home, f"old{number}", f"x{number}")
    say(home, LIVE, "a")
    held = threading.Event()

    class Slow(RateBook):
        def price(self, answer: Answer) -> int | None:
            if answer.session.startswith("old"):
                held.wait(30)
            return RATES.price(answer)

        @property
        def version(self) -> str:
            return RATES.version

    monkeypatch.setattr(session_spend, "PERIOD_S", 0.05)
    spend = SessionSpend(tmp_path / "cost.db", TRANSCRIPTS, Slow(VENDORS), home)
    spend.of(ME, "claude_code", LIVE)
    until(lambda: spend.of(ME, "claude_code", LIVE))
    assert not spend.of(ME, "claude_code", "old3")
    held.set()
    until(lambda: spend.of(ME, "claude_code", "old3"))
    spend.end()


def test_what_breaks_is_said_and_tried_again(spend: SessionSpend, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_spend, "PERIOD_S", 0.05)

    def broken(*_: object) -> None:
        raise OSError("the disk is gone")

    with monkeypatch.context() as patched:
        patched.setattr(session_spend, "SpendStore", broken)
        spend.of(ME, "claude_code", "s1")
        until(lambda: spend.problem == "the disk is gone")
    say(home, "s1", "a")
    until(lambda: spend.of(ME, "claude_code", "s1") and not spend.problem)


def test_who_is_not_asked_about_is_forgotten(spend: SessionSpend, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_spend, "KEPT_S", 0.0)
    say(home, "s1", "a")
    spend._wanted = {(ME, "claude_code", "s1"): time.monotonic() - 1}
    spend.look()
    assert spend._sums == {}


def test_what_is_in_no_sum_is_said(spend: SessionSpend, home: Path) -> None:
    message = {"id": "x", "model": "brand-new", "usage": {"output_tokens": 1}}
    line = json.dumps({"type": "assistant", "message": message, "timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())})
    (home / ".claude" / "projects" / "p" / "s1.jsonl").write_text(line + '\n{"output_tokens": broken\n')
    assert spend.look() == "1 records that could not be read; 1 answers of today without a price"


def test_anothers_files_say_nothing_of_ones_own_sessions(spend: SessionSpend, home: Path) -> None:
    say(home, "s1", "a")
    spend._wanted = {(ME, "claude_code", "s1"): time.monotonic(), (ME + 1, "claude_code", "s1"): time.monotonic()}
    spend.look()
    assert spend.of(ME, "claude_code", "s1")[""].cost_usd == 1.5 and spend.of(ME + 1, "claude_code", "s1") == {}


def test_a_file_that_changed_is_read_at_once_and_only_it(spend: SessionSpend, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_spend, "PERIOD_S", 3600.0)  # no look at everything comes to help
    told, whose = threading.Event(), list[frozenset[str]]()

    def heard(sources: frozenset[str]) -> None:
        whose.append(sources)
        told.set()

    spend.news = heard
    say(home, "s1", "a")
    spend.of(ME, "claude_code", "s1")
    until(lambda: spend.of(ME, "claude_code", "s1"))
    told.clear()
    say(home, "s1", "b")
    say(home, "s2", "c")
    spend.changed([str(home / ".claude" / "projects" / "p" / "s1.jsonl"), "/etc/passwd", str(home / "x.jsonl")])
    until(lambda: spend.of(ME, "claude_code", "s1")[""].cost_usd == 3.0)
    assert told.wait(30)
    assert set(whose) == {frozenset({"claude_code"})}, "another source is not woken by it"
    store = SpendStore(spend._file)
    assert [one.key for one in store.sums("session")] == ["s1"]
    store.close()


def test_while_a_long_history_is_read_what_changes_is_read_first_and_it_says_how_far_it_is(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_spend, "PROGRESS_BYTES", 1)
    for number in range(5):
        say(home, f"old{number}", f"x{number}")
    say(home, LIVE, "a")
    spend = SessionSpend(tmp_path / "cost.db", TRANSCRIPTS, RATES, home)
    spend._wanted = {(ME, "claude_code", LIVE): time.monotonic()}
    live = home / ".claude" / "projects" / "p" / f"{LIVE}.jsonl"
    seen: list[tuple[str, float]] = []
    real = spend._progress

    def progress(found: Found) -> None:
        if found.read == 3:  # the history is under way
            say(home, LIVE, "b")
            spend.changed([str(live)])
        real(found)
        seen.append((spend.reading, sum(one.cost_usd for one in spend._sums.get((ME, "claude_code", LIVE), {}).values())))

    monkeypatch.setattr(spend, "_progress", progress)
    spend.look()
    assert [cost for _, cost in seen][:4] == [0.0, 1.5, 3.0, 3.0] and "3 files" in seen[2][0]
    assert spend.reading == "" and spend._sums[ME, "claude_code", LIVE][""].cost_usd == 3.0


def test_agents_started_here_are_read_from_their_own_homes_and_are_not_of_the_rest_of_the_host(tmp_path: Path, home: Path) -> None:
    (tmp_path / "ws" / ".claude" / "projects" / "p").mkdir(parents=True)
    say(tmp_path / "ws", "mine", "a")
    (tmp_path / "ws" / ".watchfloor").mkdir()
    (tmp_path / "ws" / ".claude").rename(tmp_path / "ws" / ".watchfloor" / "claude")  # as a conversation started here is told to
    say(home, "theirs", "b")
    spend = SessionSpend(tmp_path / "cost.db", TRANSCRIPTS, RATES, home, own=lambda: [tmp_path / "ws"], outside=False)
    spend._wanted = {(ME, "claude_code", "mine"): time.monotonic()}
    spend.look()
    assert spend._sums[ME, "claude_code", "mine"][""].cost_usd == 1.5 and spend.today_usd == 0.0
    both = SessionSpend(tmp_path / "both.db", TRANSCRIPTS, RATES, home, own=lambda: [tmp_path / "ws"])
    both.look()
    assert both.today_usd == 1.5


def test_where_every_change_is_told_everything_is_looked_at_seldom_and_at_once_when_asked(
    spend: SessionSpend, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_spend, "PERIOD_S", 0.02)
    monkeypatch.setattr(session_spend, "QUICK_S", 0.01)
    monkeypatch.setattr(session_spend, "TOLD_S", 3600.0)
    looks: list[float] = []
    real = spend.look

    def counted() -> str:
        looks.append(time.monotonic())
        return real()

    monkeypatch.setattr(spend, "look", counted)
    spend.fresh.begins("w", [str(home / ".claude" / "projects" / "p")])
    say(home, LIVE, "a")
    until(lambda: spend.of(ME, "claude_code", LIVE) and spend._is_told())
    before = len(looks)
    spend.look_soon()
    until(lambda: len(looks) > before and not spend._is_soon)  # it is counted only after that was taken back
    seen = len(looks)
    say(home, LIVE, "b")
    time.sleep(0.3)
    assert len(looks) == seen, "nobody told of it, and the next look is far away"
    spend.changed([str(home / ".claude" / "projects" / "p" / f"{LIVE}.jsonl")])
    until(lambda: spend.of(ME, "claude_code", LIVE)[""].answers == 2)
    assert len(looks) == seen
    say(home, LIVE, "c")
    spend.look_soon()
    until(lambda: spend.of(ME, "claude_code", LIVE)[""].answers == 3)
    spend.fresh.ends("w")
    assert not spend._is_told()
