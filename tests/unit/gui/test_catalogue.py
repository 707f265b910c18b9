"""Actions as data: unique, keyed without collisions, searchable."""

from __future__ import annotations

from collections import Counter

from console.gui.actions import search
from console.gui.pages.registry import PAGES
from console.gui.window.keys import EVERYWHERE


def test_ids_are_unique_and_named_by_their_place() -> None:
    ids = [a.id for page in PAGES for a in page.verbs] + [a.id for a in EVERYWHERE]
    assert not [name for name, times in Counter(ids).items() if times > 1]
    assert all("." in name for name in ids)


def test_no_key_means_two_things_on_a_page() -> None:
    for page in PAGES:
        keys = [a.key for a in (*page.verbs, *EVERYWHERE) if a.key]
        assert not [key for key, times in Counter(keys).items() if times > 1], page.spec.name


def test_search_needs_every_word_and_prefers_the_beginning() -> None:
    verbs = [a for page in PAGES for a in page.verbs]
    assert [a.id for a in search(verbs, "stop tree")] == ["fleet.stop-tree", "budgets.stop-tree"]
    assert search(verbs, "freeze")[0].title.lower().startswith("freeze")
    assert search(verbs, "no such thing") == []
    assert len(search(verbs, "")) == len(verbs)
