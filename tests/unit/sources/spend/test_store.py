"""What is kept of answers: each once, with its price and the version of the table, and sums of it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from console.domain.errors import ConsoleError
from console.domain.spend import Answer, Tokens
from console.sources.spend.store import SpendStore
from console.sources.spend.transcript_files import Place

ONE = Answer("claude_code", "m1", 1795292882.0, "claude-x", "", "s1", "", "/p", Tokens(10, 20, 30, 40, 50, 1))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SpendStore]:
    made = SpendStore(tmp_path / "cost.db")
    yield made
    made.close()


def put(store: SpendStore, *priced: tuple[Answer, int | None], prices: str = "table 1") -> None:
    with store.writing():
        store.add(priced, prices)


def test_an_answer_counts_once_with_its_largest_numbers(store: SpendStore) -> None:
    put(store, (ONE, 5), (ONE._replace(session="resumed"), 5))
    put(store, (ONE._replace(tokens=Tokens(10, 20, 30, 40, 60)), 7), (ONE._replace(tokens=Tokens(1)), 1))
    (only,) = store.sums("session")
    assert (only.key, only.answers, only.tokens, only.cost_usd) == ("s1", 1, 160, 7e-9)


def test_an_answer_that_an_earlier_version_kept_by_a_part_of_its_id_counts_once(tmp_path: Path) -> None:
    first = SpendStore(tmp_path / "cost.db")
    put(first, (ONE, 5))
    with first.writing():
        first._db.execute("pragma user_version = 4")
    first.close()
    later = SpendStore(tmp_path / "cost.db")
    put(
        later,
        (ONE._replace(answer_id="m1 r1", tokens=ONE.tokens._replace(output=60)), 7),
        (ONE._replace(answer_id="m1 r2", tokens=Tokens(9)), 1),
    )
    (only,) = later.sums("session")
    assert (only.answers, only.tokens, only.cost_usd) == (2, 169, 8e-9)
    later.close()


def test_what_is_not_priced_is_counted_apart_and_never_as_nothing(store: SpendStore) -> None:
    put(store, (ONE, 10**9), (ONE._replace(answer_id="m2", model="new-one"), None))
    assert [(s.key, s.cost_usd, s.unpriced) for s in store.sums("model")] == [("claude-x", 1.0, 0), ("new-one", 0.0, 1)]
    assert [s.key for s in store.unpriced()] == ["new-one"] and store.prices() == ["table 1"]
    assert store.unpriced_models("table 2") == [("claude_code", "new-one")] and store.unpriced_models("table 1") == []
    (kept,) = store.kept("claude_code", "new-one")
    assert kept == ONE._replace(answer_id="m2", model="new-one")
    with store.writing():
        store.set_price(kept, 3, "table 2")
    assert store.unpriced() == []


def test_what_the_program_said_it_cost_goes_before_the_table(store: SpendStore) -> None:
    put(store, (ONE._replace(reported_nano=2 * 10**9), 10**9), (ONE._replace(answer_id="m2", model="y", reported_nano=0), None))
    assert [(s.key, s.cost_usd, s.unpriced) for s in store.sums("model")] == [("claude-x", 2.0, 0), ("y", 0.0, 0)]


def test_sums_by_day_are_in_order_and_bounded_by_time(store: SpendStore) -> None:
    put(store, *((ONE._replace(answer_id=str(n), at=ONE.at + n * 86400.0), n * 10**9) for n in range(3)))
    assert [s.cost_usd for s in store.sums("day")] == [0.0, 1.0, 2.0]
    assert [s.cost_usd for s in store.sums("day", ONE.at + 1, ONE.at + 2 * 86400)] == [1.0]
    assert store.sums("project")[0].sessions == 1


def test_nothing_that_transcripts_claim_overflows(store: SpendStore) -> None:
    put(store, *((ONE._replace(answer_id=str(n)), (1 << 62)) for n in range(8)))
    assert store.sums("day")[0].cost_usd > 3e10


def test_answers_and_places_are_kept_together_or_not_at_all(store: SpendStore) -> None:
    with pytest.raises(ZeroDivisionError), store.writing():
        store.add([(ONE, 1)], "t")
        store.keep_places({"/x": Place(1, 2, 3, 4, 5, "m", "")})
        raise ZeroDivisionError
    assert store.sums("day") == [] and store.places() == {}
    with store.writing():
        store.keep_places({"/x": Place(1, 2, 3, 4, 5, "m", "{}")})
    assert store.places() == {"/x": Place(1, 2, 3, 4, 5, "m", "{}")}


def test_a_damaged_store_lies_aside_and_a_new_one_says_so(tmp_path: Path) -> None:
    file = tmp_path / "cost.db"
    file.write_bytes(b"no database " * 500)
    store = SpendStore(file)
    assert "damaged" in store.lost and len(list(tmp_path.glob("cost.db.broken-*"))) == 1
    put(store, (ONE, 1))
    store.close()
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_store_of_a_later_version_is_not_touched(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "cost.db") as db:
        db.execute("pragma user_version = 99")
    db.close()
    with pytest.raises(ConsoleError, match="schema 99"):
        SpendStore(tmp_path / "cost.db")


def test_a_folder_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises((ConsoleError, OSError)):
        SpendStore(tmp_path / "none" / "cost.db")


def test_nobodys_word_counts_for_anothers_answer(store: SpendStore) -> None:
    mine, theirs = ONE._replace(uid=1), ONE._replace(uid=2, tokens=Tokens(10**9))
    put(store, (mine, 5), (theirs, 10**9))
    assert [(row[1], row[2]) for row in store.by_agents([(1, "claude_code", "s1")])[0]] == [(5e-9, 150)]
