"""An ordinary user's whole instance, on every rung of the launch ladder: what it claims before a press, and what it proves after one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.fakes.in_time import code_in_time
from tests.fakes.user_systemd import under_systemd
from tests.fakes.user_world import ROOT, as_user, user_python

STORY = str(ROOT / "tests" / "fakes" / "user_story.py")


def rungs(told: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {rung["rung"]: rung for rung in told["doctor"]["ladder"]}


def targets(told: dict[str, Any]) -> list[dict[str, Any]]:
    """The agents: a canary of the armed light may be alive at the press, and is a target like any other."""
    return [t for t in told["receipt"]["targets"] if not t["agent_id"].startswith("canary-")]


def assert_proven(told: dict[str, Any], rung: str, method: str) -> None:
    """Said before and after: it can be proven, and it was."""
    assert told["doctor"]["default"]["rung"] == rung and told["doctor"]["code"] == 0
    assert told["agent"]["best_effort"] == "" and "BEST EFFORT" not in told["fleet"]
    assert told["preview"]["counts"] == {"managed": {"certain": 1}} and not told["preview"]["best_effort"]
    assert [t["outcome"] for t in targets(told)] == ["proven_zero"] * 2
    assert all(method in t["evidence"]["method"] for t in targets(told))
    assert code_in_time(told["receipt"]) == 0 and told["receipt"]["verified_zero"], told["receipt"]
    assert "more open files" not in told["receipt"]["connections_detail"], "the parts of its sandbox that hide themselves are ours"
    assert_nothing_but_the_bystander_is_left(told)


def assert_best_effort(told: dict[str, Any], rung: str) -> None:
    """Said everywhere, before and after; never proven, though nothing is left."""
    assert told["doctor"]["default"]["rung"] == rung and told["doctor"]["code"] == 8 and told["doctor"]["default"]["best_effort"]
    assert told["agent"]["best_effort"] and told["fleet"].count("BEST EFFORT") == 2
    assert told["preview"]["counts"] == {"managed": {"best_effort": 1}} and told["preview"]["best_effort"][0]["why"]
    assert any("best effort" in notice for notice in told["notices"])
    assert [t["outcome"] for t in targets(told)] == ["best_effort"] * 2
    assert all("no proof" in t["evidence"]["method"] and t["evidence"]["note"] for t in targets(told))
    assert told["receipt"]["code"] == 8
    assert_nothing_but_the_bystander_is_left(told)


def assert_nothing_but_the_bystander_is_left(told: dict[str, Any]) -> None:
    assert told["left"] == [] and told["receipt"]["survivors"] == [] and told["bystander"] is None


def test_without_a_cgroup_a_hostile_tree_is_held_by_its_pid_namespace_and_proven_dead(state_dir: Path) -> None:
    told = as_user(state_dir / "u", "plain", user_python(), STORY)
    assert_proven(told, "pidns", "SIGKILL of the PID namespace's init")
    found = rungs(told)
    assert not found["cgroup"]["available"] and any("linger" in way for way in found["cgroup"]["raised_by"])
    walker = told["walker"]["outer"]
    assert walker["seen"] == 2 and walker["kills"] == ["ESRCH"], "it sees neither the guard nor anybody else"


def test_where_user_namespaces_are_refused_everything_says_best_effort_and_a_killed_guard_comes_back(state_dir: Path) -> None:
    told = as_user(state_dir / "u", "no-userns", user_python(), STORY, "guard")
    assert_best_effort(told, "subreaper")
    found = rungs(told)
    assert any("user.max_user_namespaces" in way for way in found["pidns"]["raised_by"])
    assert not found["pidns"]["available"] and found["subreaper"]["available"]
    assert told["walker"]["outer"]["kills"] == ["done"], "the same uid may kill the guard"
    assert any("guard does not answer" in notice for notice in told["notices"]), "and that is said"


def test_under_a_users_systemd_the_guard_lives_in_a_scope_and_kills_by_its_cgroup() -> None:
    told = under_systemd(pid_namespaces=True)
    assert_proven(told, "cgroup+pidns", "cgroup.kill on its leaf; proof: populated 0")
    assert "terminal.scope" in told["here"] and "terminal.scope" not in told["guard"]["cgroup"]
    assert ".scope/watchfloor-" in told["guard"]["caps"]["cgroup"] and told["guard"]["cgroup"].rstrip().endswith("/control")
    outer, inner = told["walker"]["outer"], told["walker"]["inner"]
    assert outer["groups"] == [] and outer["doors"] == ["ENOENT", "ENOENT"] and outer["kills"] == ["ESRCH"]
    # In namespaces of its own it may mount a cgroup tree, which begins at its own leaf: whatever it makes there dies with the leaf.
    assert inner["mount"] == 0 and inner["entered"] == "done"


@pytest.mark.long
def test_the_owner_of_a_scope_without_pid_namespaces_walks_out_and_is_called_best_effort() -> None:
    told = under_systemd("guard", pid_namespaces=False)
    assert_best_effort(told, "cgroup")
    assert told["walker"]["outer"]["kills"] == ["done"], "the same uid may kill the guard, which comes back"
    outer = told["walker"]["outer"]
    assert "done" in outer["groups"] and "/agents/" not in outer["where"], "it wrote itself into another cgroup"
    assert outer["doors"][0] == "done", "and could have asked systemd"
