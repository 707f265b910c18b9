"""The first hour of an ordinary account that installed Watchfloor and named no folder."""

from __future__ import annotations

from pathlib import Path

from tests.fakes.user_world import ROOT, as_user, user_python

STORY = str(ROOT / "tests" / "fakes" / "first_hour_story.py")


def test_the_supervisor_that_a_verb_starts_sees_the_accounts_own_agents_and_a_panic_leaves_them(state_dir: Path) -> None:
    told = as_user(state_dir / "u", "plain", user_python(), STORY)
    assert told["run"][0] == 0, told["run"]
    assert told["seen"] == ["my session"]
    assert told["session"] is None, told["panic"]
