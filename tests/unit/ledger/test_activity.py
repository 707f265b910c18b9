"""The store of activity: once each, bounded and said, pages both ways, searches that end."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from console.domain.activity import Entry, FilePlace, Kind
from console.domain.errors import ConsoleError
from console.ledger.activity import ActivityStore
from console.ledger.activity_file import Bounds
from tests.fakes.activity_entries import entries, texts


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ActivityStore]:
    made = ActivityStore(tmp_path / "a.db")
    yield made
    made.close()


def test_read_twice_is_kept_once(store: ActivityStore) -> None:
    assert store.add("a", entries(1, 4))[0] == 3
    assert store.add("a", entries(2, 6))[0] == 2
    assert store.add("b", entries(1, 2))[0] == 1, "another agent's entry of the same name is another entry"
    assert texts(store.window("a").rows) == [f"entry {n}" for n in range(1, 6)]
    assert store.holding("a").count == 5


def test_an_answer_counts_once_with_its_largest_numbers_and_nothing_else_ever_changes(store: ActivityStore) -> None:
    for tokens in (5, 90, 70):
        store.add("a", [Entry(Kind.SPEND, "m", 1.0, f"{tokens}", tokens=tokens, cost_nano=tokens)])
        store.add("a", [Entry(Kind.MESSAGE, "n", 1.0, f"{tokens}", tokens=tokens)])
    spend, message = (row.entry for row in store.window("a").rows)
    assert (spend.tokens, spend.cost_nano, spend.text) == (90, 90, "90")
    assert message.text == "5"


def test_bounds_drop_the_oldest_and_say_how_many(tmp_path: Path) -> None:
    store = ActivityStore(tmp_path / "a.db", Bounds(per_agent=100, total=250))
    store.add("a", entries(0, 130))
    held = store.holding("a")
    assert held.count <= 100 and held.count + held.dropped == 130
    assert texts(store.window("a", limit=500).rows)[-1] == "entry 129"
    for agent in "bcd":
        store.add(agent, entries(0, 90))
    kept = [store.holding(agent) for agent in "abcd"]
    assert sum(h.count for h in kept) <= 250 and sum(h.count + h.dropped for h in kept) == 130 + 270
    assert kept[3].count == 90, "the oldest of all go first"
    store.close()


def test_a_file_that_is_read_anew_brings_nothing_back_that_a_bound_dropped(tmp_path: Path) -> None:
    store = ActivityStore(tmp_path / "a.db", Bounds(per_agent=100))
    store.add("a", entries(1, 130))
    before = store.holding("a")
    assert store.add("a", entries(1, 130), again=True)[0] == 0
    assert store.holding("a") == before
    store.close()


def test_how_far_a_file_was_read_is_kept_with_what_was_read(store: ActivityStore) -> None:
    place = FilePlace("/x", 1, 2, 3, "m", "{}", True)
    store.add("a", [], place)
    store.set_place("a", "here")
    assert store.files("a") == {"/x": place} and store.place("a") == "here" and store.place("b") == ""


def test_a_disk_that_refuses_keeps_neither(store: ActivityStore, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise sqlite3.OperationalError("disk full")

    monkeypatch.setattr(store, "_keep_bounds", broken)
    with pytest.raises(ConsoleError, match="disk full"):
        store.add("a", entries(0, 3), FilePlace("/x", 1, 2, 3))
    assert store.holding("a").count == 0 and not store.files("a")
    monkeypatch.undo()
    assert store.add("a", entries(0, 3))[0] == 3


def test_what_no_column_can_hold_is_cut_not_fatal(store: ActivityStore) -> None:
    store.add("a", [Entry(Kind.SPEND, "x", 1.0, "\ud800", tokens=1 << 80, cost_nano=1 << 90, turn=1 << 70)])
    assert store.window("a").rows[0].entry.tokens == (1 << 63) - 1


def test_together_all_is_kept_or_nothing_and_one_that_breaks_costs_the_others_nothing(store: ActivityStore) -> None:
    with store.together():
        assert store.add("a", entries(1, 4))[0] == 3
        with pytest.raises(ZeroDivisionError):
            store.add("b", (entries(1, 2)[0] if n else 1 / 0 for n in (1, 0)))  # type: ignore[misc]
        assert store.add("c", entries(1, 3))[0] == 2
        assert texts(store.window("a").rows) == [], "not there before all of it is"
    assert [store.holding(i).count for i in "abc"] == [3, 0, 2] and store._total == 5
    with pytest.raises(KeyError), store.together():
        store.add("a", entries(4, 9))
        raise KeyError
    assert store.holding("a").count == 3 and store._total == 5
    assert store.add("a", entries(4, 6))[0] == 2


def test_a_half_that_nobody_thought_of_is_kept_by_nobody_and_then_costs_the_others_nothing(
    store: ActivityStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = store._keep_bounds

    def breaks(db: sqlite3.Connection, agent: str, count: int) -> bool:
        if agent == "b":
            raise RuntimeError("after its entries were written")
        return real(db, agent, count)

    monkeypatch.setattr(store, "_keep_bounds", breaks)

    def turn() -> None:
        with store.together():
            store.add("a", entries(1, 4), FilePlace("/a"))
            with pytest.raises(RuntimeError):
                store.add("b", entries(1, 4), FilePlace("/b"))
            store.add("c", entries(1, 4), FilePlace("/c"))

    with pytest.raises(ConsoleError, match="whole"):
        turn()
    assert [store.holding(i).count for i in "abc"] == [0, 0, 0] and store._total == 0
    turn()
    assert [store.holding(i).count for i in "abc"] == [3, 0, 3] and not store.files("b") and store.files("c")


def test_a_file_whose_name_no_column_can_hold_is_refused_before_anything_is_written(store: ActivityStore) -> None:
    with store.together():
        for place in (FilePlace("/x\udcff"), FilePlace("/x", dev=1 << 63)):
            with pytest.raises(ValueError):
                store.add("a", entries(1, 4), place)
        store.add("b", entries(1, 4))
    assert [store.holding(i).count for i in "ab"] == [0, 3]


def test_what_is_kept_together_stays_within_the_size_too(tmp_path: Path) -> None:
    store = ActivityStore(tmp_path / "a.db", Bounds(mib=2))
    for turn in range(3):
        with store.together():
            for n in range(30):
                store.add(f"a{n}", [Entry(Kind.NOTE, f"{turn}-{m}", 1.0, "y" * 16_000) for m in range(4)])
    assert store._mib(store._db) <= 2 and store.holding("a0").dropped and store.holding("a29").count
    assert store.add("a29", entries(0, 5)) == (5, store.holding("a29").newest)
    store.close()
