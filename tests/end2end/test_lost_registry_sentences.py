"""Sentences about a guard that does not know an agent any more: whether it ended is unknown, and no press of everything is proven."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.fakes.user_world import ROOT, as_user, user_python

STORY = str(ROOT / "tests" / "fakes" / "lost_registry_story.py")


def test_whom_the_guard_does_not_know_any_more_has_not_ended_and_a_panic_is_not_proven(state_dir: Path) -> None:
    told = as_user(state_dir / "u", "no-userns", user_python(), STORY, "lost")
    assert told["alive"], "one of it lives on, in a session of its own"
    assert told["state"] == "running" and any(told["id"] in words for words in told["notices"])
    receipt = told["receipt"]
    assert told["alive_after"] and not receipt["verified_zero"] and receipt["code"] == 9
    [target] = [t for t in receipt["targets"] if t["agent_id"] == told["id"]]
    assert target["outcome"] == "not_proven" and "does not know" in target["evidence"]["why"]
    assert told["state_after"] == "alive_after_kill"


def assert_three_may_still_run(told: dict[str, Any]) -> None:
    """The story may fall into a self-test: then its canary is one target more, and nothing else is."""
    targets = {t["agent_id"] for t in told["receipt"]["targets"]}  # one agent may be two: as its record says, and as the ledger does
    assert [one for one in targets if one not in told["ids"] and not one.startswith("canary-")] == []
    assert told["headline"].startswith(f"NOT PROVEN: 3 of {len(targets)} agents may still run")


@pytest.mark.parametrize("record", ["older", "forged", "held-by-nothing"])
def test_with_guard_and_supervisor_dead_a_replaced_record_hides_no_agent(state_dir: Path, record: str) -> None:
    """Ordinary user, no cgroup, no PID namespace: only ledger and audit log know what was launched."""
    told = as_user(state_dir / "u", "no-userns", user_python(), STORY, record)
    receipt = told["receipt"]
    unproven = {t["agent_id"] for t in receipt["targets"] if t["outcome"] == "not_proven"}
    assert (receipt["verified_zero"], told["code"]) == (False, 9) and set(told["ids"]) <= unproven
    assert_three_may_still_run(told)
    assert told["alive_after"] == 0, "what the ledger identifies by pid and start time is killed all the same"


def test_with_guard_and_supervisor_dead_a_whole_record_is_believed(state_dir: Path) -> None:
    told = as_user(state_dir / "u", "no-userns", user_python(), STORY, "whole")
    assert {t["outcome"] for t in told["receipt"]["targets"]} == {"best_effort"} and told["code"] == 8, told


def test_a_forged_namespace_of_agents_whose_first_process_had_died_proves_nothing(state_dir: Path) -> None:
    """Only what a process left behind is alive: no record identifies it any more."""
    told = as_user(state_dir / "u", "no-userns", user_python(), STORY, "held-by-nothing-first-dead")
    unproven = {t["agent_id"] for t in told["receipt"]["targets"] if t["outcome"] == "not_proven"}
    assert set(told["ids"]) <= unproven and (told["receipt"]["verified_zero"], told["code"]) == (False, 9), told
    assert_three_may_still_run(told)
