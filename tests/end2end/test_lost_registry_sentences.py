"""Sentences about a guard that does not know an agent any more: whether it ended is unknown, and no press of everything is proven."""

from __future__ import annotations

from pathlib import Path

from tests.fakes.user_world import ROOT, as_user, user_python

STORY = str(ROOT / "tests" / "fakes" / "lost_registry_story.py")


def test_whom_the_guard_does_not_know_any_more_has_not_ended_and_a_panic_is_not_proven(state_dir: Path) -> None:
    told = as_user(state_dir / "u", "no-userns", user_python(), STORY)
    assert told["alive"], "one of it lives on, in a session of its own"
    assert told["state"] == "running" and any(told["id"] in words for words in told["notices"])
    receipt = told["receipt"]
    assert told["alive_after"] and not receipt["verified_zero"] and receipt["code"] == 9
    [target] = [t for t in receipt["targets"] if t["agent_id"] == told["id"]]
    assert target["outcome"] == "not_proven" and "does not know" in target["evidence"]["why"]
    assert told["state_after"] == "alive_after_kill"
