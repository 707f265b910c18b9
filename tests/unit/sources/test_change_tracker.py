"""What nobody watches is never fresh; what was told of is looked at once more; a watch that goes on forgets nothing."""

from __future__ import annotations

import pytest

from console.sources import change_tracker
from console.sources.change_tracker import Freshness


def test_what_nobody_watches_says_nothing_and_what_changes_says_so() -> None:
    fresh = Freshness()
    assert fresh.of("/a/x.json") == 0 == fresh.within("/a") and not fresh.watches("/a")
    fresh.begins("one", ["/a"])
    before, other = fresh.of("/a/x.json"), fresh.of("/a/y.json")
    assert before and fresh.watches("/a") and not fresh.of("/a/sub/x.json")
    fresh.changed(["/a/x.json"])
    assert fresh.of("/a/x.json") > before and fresh.of("/a/y.json") == other and fresh.within("/a") > before


def test_a_watch_that_begins_again_makes_new_what_it_did_not_watch_before() -> None:
    fresh = Freshness()
    fresh.begins("one", ["/a"])
    fresh.begins("other", ["/o"])
    a, o = fresh.of("/a/x"), fresh.of("/o/x")
    fresh.begins("one", ["/a", "/b"])
    assert (fresh.of("/a/x"), fresh.of("/o/x")) == (a, o) and fresh.of("/b/x") > a
    fresh.begins("one", [])
    fresh.begins("one", ["/a"])
    assert fresh.of("/a/x") > a, "nobody watched it in between"
    fresh.ends("one")
    assert not fresh.of("/a/x") and fresh.of("/o/x") == o


def test_a_flood_of_names_is_forgotten_and_everything_counts_as_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(change_tracker, "PATHS_MAX", 10)
    fresh = Freshness()
    fresh.begins("one", ["/a"])
    quiet = fresh.of("/a/quiet")
    for number in range(30):
        fresh.changed([f"/a/{number}"])
    assert fresh.of("/a/quiet") > quiet and len(fresh._paths) <= 12
    later = fresh.of("/a/quiet")
    fresh.begins("one", ["/a"])
    assert fresh.of("/a/quiet") == later


def test_what_changed_since_is_told_without_what_changed_before() -> None:
    fresh = Freshness()
    fresh.begins("one", ["/a", "/b"])
    start = fresh.since(0)
    assert start == (fresh.begun, {"/a", "/b"})
    fresh.changed(["/a/x", "/a/y"])
    fresh.changed(["/b/z"])
    middle, changed = fresh.since(start[0])
    assert changed == {"/a/x", "/a/y", "/a", "/b/z", "/b"}
    fresh.changed(["/a/x"])
    assert fresh.since(middle)[1] == {"/a/x", "/a"} and fresh.since(fresh.since(middle)[0])[1] == set()
    fresh.begins("one", ["/a", "/b", "/c"])
    assert fresh.since(middle)[1] == {"/a/x", "/a", "/c"} and fresh.begun > middle


def test_what_is_watched_no_more_is_counted_and_what_goes_on_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(change_tracker, "PATHS_MAX", 2)
    fresh = Freshness()
    fresh.begins("one", ["/a", "/b"])
    fresh.begins("one", ["/a", "/b", "/c"])
    fresh.ends("other")
    assert fresh.lapsed == 0
    fresh.begins("one", ["/a"])
    assert fresh.lapsed == 1
    fresh.ends("one")
    assert fresh.lapsed == 2
    fresh.changed(["/a/1", "/a/2", "/a/3"])
    fresh.changed(["/a/4"])
    assert fresh.lapsed == 3
