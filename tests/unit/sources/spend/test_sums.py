"""The file of sums: old days become sums, what was kept before is carried over, a later version is refused."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from console.domain.errors import ConsoleError
from console.domain.spend import Answer, Tokens
from console.sources.spend.schema import OF_SESSION, TRIGGERS
from console.sources.spend.store import SpendStore
from console.sources.spend.sums import Sum

NOW = time.mktime((2026, 11, 21, 12, 0, 0, 0, 0, -1))
ONE = Answer("claude_code", "m", NOW, "claude-x", "", "s1", "", "/p", Tokens(1))
DAY = 86400.0


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SpendStore]:
    made = SpendStore(tmp_path / "cost.db")
    yield made
    made.close()


def fill(store: SpendStore, days: int, each: int = 3) -> None:
    answers = [
        ONE._replace(answer_id=f"{d}-{n}", at=NOW - d * DAY, session=f"s{d % 2}", agent="sub" if n == 1 else "", model=f"m{n}")
        for d in range(days)
        for n in range(each)
    ]
    with store.writing():
        store.add([(one, 10**9 if one.model != "m2" else None) for one in answers], "t1")


def every(store: SpendStore) -> list[list[Sum]]:
    return [store.sums(by) for by in ("day", "model", "session", "project", "source")]


def test_old_days_become_sums_that_say_the_same(store: SpendStore) -> None:
    fill(store, 200)
    before = every(store), [store.by_agents([(-1, "claude_code", s)])[0] for s in ("s0", "s1")], store.prices()
    store.fold(NOW, keep_days=92)
    assert (every(store), [store.by_agents([(-1, "claude_code", s)])[0] for s in ("s0", "s1")], store.prices()) == before
    assert store._asked("select count(*) from answers")[0][0] < 93 * 3 + 3


def test_what_is_read_again_of_a_day_that_is_a_sum_is_not_counted_twice_and_said(store: SpendStore) -> None:
    fill(store, 200)
    before = store.sums("source")
    store.fold(NOW)
    fill(store, 200)
    assert store.sums("source") == before and store.late > 0
    store.close()
    again = SpendStore(store.file)
    assert again.closed == store.closed and again.sums("source") == before
    again.close()


def test_too_many_answers_become_sums_early_but_never_today_and_yesterday(store: SpendStore) -> None:
    fill(store, 20, each=10)
    before = store.sums("source")
    store.fold(NOW, rows_max=50)
    assert store._asked("select count(*) from answers")[0][0] <= 50 and store.sums("source") == before
    store.fold(NOW, rows_max=1)
    assert {row[0] for row in store._asked("select distinct day from answers")} == {"2026-11-20", "2026-11-21"}


def test_too_many_sums_keep_day_and_model_alone(store: SpendStore) -> None:
    fill(store, 40, each=10)
    total, models = store.sums("source"), store.sums("model")
    store.fold(NOW, keep_days=2, sums_max=100)
    assert store._asked("select count(*) from folded")[0][0] <= 400 and "" in [s.key for s in store.sums("session")]
    assert [(s.cost_usd, s.answers, s.unpriced) for s in store.sums("source")] == [(s.cost_usd, s.answers, s.unpriced) for s in total]
    assert [(s.key, s.cost_usd) for s in store.sums("model")] == [(s.key, s.cost_usd) for s in models]


def test_a_store_of_the_version_before_keeps_all_it_held(tmp_path: Path) -> None:
    store = SpendStore(tmp_path / "cost.db")
    fill(store, 2)
    before = every(store)
    dropped = "".join(f"drop trigger {name};" for name in TRIGGERS)
    store._db.executescript(
        f"{dropped} drop table sum_sessions; drop table sum_agents; drop table sum_days;"
        "drop view spent; drop table folded; drop table meta; alter table answers drop column ours; pragma user_version = 2;"
    )
    store.close()
    again = SpendStore(tmp_path / "cost.db")
    assert every(again) == before and again.sums("source", ours=True) == []
    again.close()


def test_a_later_version_is_refused(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "cost.db") as db:
        db.execute("pragma user_version = 99")
    db.close()
    with pytest.raises(ConsoleError, match="schema 99; this version knows"):
        SpendStore(tmp_path / "cost.db")


def test_agents_that_were_started_here_are_told_apart(store: SpendStore) -> None:
    with store.writing():
        store.add([(ONE, 1), (ONE._replace(answer_id="x", ours=True), 10)], "t")
    assert [round(s.cost_usd * 1e9) for ours in (None, True, False) for s in store.sums("source", ours=ours)] == [11, 10, 1]


def test_a_session_is_found_by_its_id_and_not_among_everything_its_user_spent(store: SpendStore) -> None:
    fill(store, 200)
    plan = " ".join(row[3] for row in store._asked(f"explain query plan {OF_SESSION}", (0, 0, 0, -1, "claude_code", "s0")))
    assert "by_session (session=?)" in plan and "PRIMARY KEY" not in plan
    assert (
        store.by_agents([(-1, "claude_code", "s0")])[0]
        and not store.by_agents([(0, "claude_code", "s0")])[0]
        and not store.by_agents([(-1, "codex", "s0")])[0]
    )
