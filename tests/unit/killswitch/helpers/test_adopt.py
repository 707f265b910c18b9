"""The helper for an adoption: what it answers about a process, and that it touches none that it is not asked to move."""

from __future__ import annotations

import os
from typing import Any

import pytest

from console.domain.errors import UsageProblem
from console.domain.guard import CONSOLE
from console.killswitch.helpers import adopt
from console.killswitch.helpers.adopt import Adoption
from console.killswitch.kernel import processes


def answer(request: dict[str, Any]) -> dict[str, Any]:
    return Adoption().answer(request)


@pytest.fixture
def asked(sleeper: tuple[int, int]) -> dict[str, Any]:
    pid, ticks = sleeper
    return {
        "pid": pid,
        "start_ticks": ticks,
        "exe": str(processes.describe(pid)["exe"]),
        "uid": os.geteuid(),
        "also": [],
        "around": "",
        "spared": [os.getpid()],
        "connected": [],
        "held": [],
        "instance": "00c0ffee",
        "tree": "",
        "tree_why": "No cgroup v2 is mounted here.",
    }


def test_a_candidate_is_described_with_why_it_may_not_be_adopted(asked: dict[str, Any], sleeper: tuple[int, int]) -> None:
    found = answer(asked | {"op": "examine"})["found"]
    assert (found["pid"], found["start_ticks"], found["uid"]) == (*sleeper, os.geteuid()) and "sleep" in found["cmdline"]
    assert found["why_not"].startswith("not available, because") and "No cgroup v2" in found["why_not"]


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"pid": 1}, "process 1"),
        ({"start_ticks": 1}, "not there any more"),
        ({"pid": os.getpid(), "start_ticks": processes.start_ticks(os.getpid())}, "an ancestor"),
        ({"pid": os.getppid(), "start_ticks": processes.start_ticks(os.getppid())}, "an ancestor"),
    ],
)
def test_what_is_never_adopted(asked: dict[str, Any], changed: dict[str, object], why: str) -> None:
    assert why in answer(asked | {"op": "examine"} | changed)["found"]["why_not"]


def test_a_console_and_what_is_held_are_refused(asked: dict[str, Any]) -> None:
    for key, why in (("connected", CONSOLE), ("held", "held already")):
        assert why in answer(asked | {"op": "check", key: [asked["pid"]]})["refused"][1]


@pytest.mark.parametrize("changed", [{"exe": "/bin/other"}, {"uid": 99}, {"start_ticks": 1}])
def test_what_is_not_as_it_was_shown_is_told(asked: dict[str, Any], changed: dict[str, object]) -> None:
    found = answer(asked | {"op": "check"} | changed)
    assert found["changed"] and found["origin"] == [] and found["refused"] == []


def test_orphans_that_are_named_are_checked_like_the_first(asked: dict[str, Any]) -> None:
    found = answer(asked | {"op": "check", "tree": "/nowhere", "also": [1, 1]} | {"held": [], "connected": [asked["pid"]]})
    assert found["refused"] == [asked["pid"], CONSOLE]


def test_a_tree_that_cannot_be_looked_at_is_no_answer(asked: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    def blind(*_: object) -> Any:
        raise OSError(13, "hidden")

    monkeypatch.setattr(adopt, "why_not", lambda *_: "")
    assert answer(asked | {"op": "check"})["refused"] == []
    monkeypatch.setattr(adopt, "look_at_all", blind)
    with pytest.raises(OSError, match="hidden"):
        answer(asked | {"op": "check"})


@pytest.mark.parametrize("op", ["", "kill", None])
def test_it_does_nothing_else(asked: dict[str, Any], op: object) -> None:
    with pytest.raises((ValueError, UsageProblem)):
        answer(asked | {"op": op})
