"""Pages of activity lead both ways; a search finds what lies far back, and ends in time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from console.domain.activity import Entry, Kind
from console.ledger.activity import ActivityStore
from tests.fakes.activity_entries import entries, texts


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ActivityStore]:
    made = ActivityStore(tmp_path / "a.db")
    yield made
    made.close()


def test_pages_lead_through_all_of_it_both_ways(store: ActivityStore) -> None:
    store.add("a", entries(0, 1205))
    seen: list[str] = []
    page = store.window("a", limit=200)
    assert (page.at_end, page.at_start) == (True, False)
    while page.rows:
        seen = texts(page.rows) + seen
        page = store.window("a", before=page.rows[0].seq, limit=200)
        assert not page.at_end
    assert seen == [f"entry {n}" for n in range(1205)]
    up: list[str] = []
    at = 0
    while not (found := store.window("a", after=at, limit=500)).at_end:
        up, at = up + texts(found.rows), found.rows[-1].seq
    assert up + texts(found.rows) == seen


def test_a_search_finds_what_lies_far_back_in_either_case_and_ends_in_time(store: ActivityStore) -> None:
    store.add("a", [Entry(Kind.NOTE, "x", 1.0, "Needle\0hidden 100%_ ÄRGER", tool="Grep"), *entries(0, 9000)])
    for query in ("needle", "hidden", "100%_", "ärger", "grep"):
        found = store.window("a", query=query)
        assert [row.entry.source_id for row in found.rows] == ["x"] and found.at_start and not found.searched_to
    assert store.window("a", query="entry 8999").rows and not store.window("a", query="e_try").rows
    first = store.window("a", query="needle", time_s=-1.0)
    assert not first.rows and first.searched_to and not first.at_start
    rows, steps = list(first.rows), 0
    while first.searched_to:
        first = store.window("a", query="needle", before=first.searched_to, time_s=-1.0)
        rows, steps = [*rows, *first.rows], steps + 1
    assert len(rows) == 1 and steps > 2


def test_kinds_filter(store: ActivityStore) -> None:
    store.add("a", entries(0, 3) + [Entry(Kind.FILE, "f", 1.0, ref="/x")])
    assert [row.entry.ref for row in store.window("a", kinds=["file", "nonsense"]).rows] == ["/x"]


def test_one_entry_has_all_that_is_kept(store: ActivityStore) -> None:
    store.add("a", [Entry(Kind.NOTE, "x", 1.0, "y" * 5000)])
    [row] = store.window("a").rows
    assert (len(row.entry.text), row.size) == (600, 5000)
    one = store.one("a", row.seq)
    assert one is not None and len(one.entry.text) == 5000 and store.one("b", row.seq) is None
