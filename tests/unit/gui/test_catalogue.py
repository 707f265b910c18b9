"""Actions as data: unique, keyed without collisions, searchable."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from console.domain.ladder import Rung
from console.gui.actions import ActionSpec, search
from console.gui.actions.catalogue import NEEDS, SYNONYMS, why_not_by_role
from console.gui.pages.registry import PAGES
from console.gui.window.keys import EVERYWHERE


def test_ids_are_unique_and_named_by_their_place() -> None:
    ids = [a.id for page in PAGES for a in page.spec.verbs] + [a.id for a in EVERYWHERE]
    assert not [name for name, times in Counter(ids).items() if times > 1]
    assert all("." in name for name in ids)


def test_no_key_means_two_things_on_a_page() -> None:
    for page in PAGES:
        keys = [a.key for a in (*page.spec.verbs, *EVERYWHERE) if a.key]
        assert not [key for key, times in Counter(keys).items() if times > 1], page.spec.name


def test_search_needs_every_word_and_prefers_the_beginning() -> None:
    verbs = [a for page in PAGES for a in page.spec.verbs]
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
    assert wanted <= {a.id for a in search([*(a for page in PAGES for a in page.spec.verbs), *EVERYWHERE, *places], typed)}


def test_every_synonym_leads_to_an_action() -> None:
    verbs = [*(a for page in PAGES for a in page.spec.verbs), *EVERYWHERE]
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


_FIRST_WINDOW = """
import sys
from console.gui.app import make_application
from console.gui.notices import Notices
from console.gui.window.main import Window
app = make_application("dark")
window = Window(None, Notices())
window.start("fleet")
window.show()
app.processEvents()
print(*sorted(name for name in sys.modules if name.startswith("console.gui.pages.") and name.endswith(".page")))
import os
sys.stdout.flush()
os._exit(0)
"""


def test_a_first_window_loads_the_code_of_its_own_page_alone() -> None:
    env = os.environ | {"QT_QPA_PLATFORM": "offscreen"}
    loaded = subprocess.run([sys.executable, "-c", _FIRST_WINDOW], env=env, capture_output=True, text=True, check=True).stdout
    assert loaded.split() == ["console.gui.pages.fleet.page"]


def test_every_listed_page_is_what_is_loaded_for_it() -> None:
    assert [kind.load().spec for kind in PAGES] == [kind.spec for kind in PAGES]
