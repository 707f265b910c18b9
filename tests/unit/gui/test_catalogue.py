"""Actions as data: unique, keyed without collisions, searchable."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from console.domain.ladder import Rung
from console.gui.actions import ActionSpec, search
from console.gui.actions.catalogue import NEEDS, SYNONYMS, why_not_by_role
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
    assert [a.id for a in search(verbs, "stop tree")][:2] == ["fleet.stop-tree", "budgets.stop-tree"]
    assert search(verbs, "freeze")[0].title.lower().startswith("freeze")
    assert search(verbs, "no such thing") == []
    assert len(search(verbs, "")) == len(verbs)


@pytest.mark.parametrize(
    ("typed", "wanted"),
    [
        ("export", {"audit.copy", "receipt.copy"}), ("daily", {"budgets.limits"}), ("log", {"go.audit", "audit.newest"}),
        ("terminate", {"fleet.stop-tree"}), ("undo", {"rollback.restore"}), ("launch", {"fleet.run"}), ("password", {"switch.passphrase"}),
        ("reject", {"approvals.deny"}), ("website", {"network.test", "network.new"}), ("manual", {"console.help"}),
        ("unfr", {"switch.thaw"}), ("burn", {"go.budgets", "budgets.forecast"}),
        ("set-up", {"fleet.setup"}), ("first run", {"fleet.setup"}),
    ],
)  # fmt: skip
def test_other_words_for_it_lead_there_too(typed: str, wanted: set[str]) -> None:
    places = [ActionSpec(f"go.{page.spec.name}", f"Go to {page.spec.title}") for page in PAGES]
    assert wanted <= {a.id for a in search([*(a for page in PAGES for a in page.verbs), *EVERYWHERE, *places], typed)}


def test_every_synonym_leads_to_an_action() -> None:
    verbs = [*(a for page in PAGES for a in page.verbs), *EVERYWHERE]
    assert not [word for word in SYNONYMS if not search(verbs, word)]


def test_a_role_that_lacks_a_right_is_the_reason_why_an_action_is_off() -> None:
    responder = ["kill", "read"]
    assert not why_not_by_role("fleet.stop-tree", responder) and not why_not_by_role("fleet.kill-session", responder)
    assert "the role operator" in why_not_by_role("approvals.once", responder) and why_not_by_role("fleet.thaw-tree", responder)
    assert "Only root" in why_not_by_role("switch.rearm", ["kill", "operate", "read"])
    assert "the role responder" in why_not_by_role("console.panic", ["read"])
    assert not why_not_by_role("fleet.filter", []) and not why_not_by_role("switch.rearm", None)


def test_every_action_with_a_right_is_one_that_a_page_or_the_window_lists() -> None:
    text = "".join(path.read_text() for path in (Path(__file__).parents[3] / "console" / "gui").rglob("*.py"))
    listed = set(re.findall(r'ActionSpec\(\s*"([a-z-]+\.[a-z-]+)"', text)) | {f"fleet.{rung}" for rung in Rung}
    assert not set(NEEDS) - listed
