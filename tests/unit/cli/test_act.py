"""The ladder's verbs: exactly one scope, a preview that does nothing, words and exit codes."""

from __future__ import annotations

from typing import Any

import pytest

from console.domain.kill import Outcome, Receipt, Step, StepName, StepStatus, Target
from tests.fakes.canned_api import CannedApi
from tests.fakes.verbs import Watchfloor

STEPS = tuple(Step(name, StepStatus.OK, 1.0) for name in StepName)
RECEIPT = Receipt(
    "20260101-000000-abcdef", "00000000", "a", "why", "me", 1.0, verified_zero=True, complete=True, steps=STEPS,
    targets=(Target("a", "managed", Outcome.PROVEN_ZERO, 1.0),),
).as_json()  # fmt: skip
PREVIEW: dict[str, Any] = {
    "action": "freeze",
    "reach": "session",
    "target": "s1",
    "words": "freeze of session s1: 2 agents, 1 of them best effort.",
    "counts": {"managed": {"certain": 1, "best_effort": 1}, "observed": {"excluded": 1}},
    "processes": 7,
    "acts": [{"id": "a-1", "name": "<b>\x1b[31mx", "control_level": "managed", "state": "running"}],
    "best_effort": [{"id": "a-2", "control_level": "managed", "why": "it has no cgroup"}],
    "excluded": [{"id": "o-1", "control_level": "observed", "why": "it is only observed"}],
}


@pytest.mark.parametrize(
    ("argv", "scope"),
    [
        (["a-1"], {"reach": "agent", "target": "a-1"}),
        (["a-1", "--tree"], {"reach": "tree", "target": "a-1"}),
        (["--session", "s1"], {"reach": "session", "target": "s1"}),
        (["--host"], {"reach": "host", "target": ""}),
        (["--all"], {"reach": "all", "target": ""}),
    ],
)
@pytest.mark.parametrize("verb", ["freeze", "thaw", "isolate", "reconnect"])
def test_each_verb_asks_for_the_scope_that_was_named(
    api: CannedApi, watchfloor: Watchfloor, verb: str, argv: list[str], scope: dict[str, str]
) -> None:
    api.say("POST /api/ladder", {"agents": ["a-1"]})
    said = watchfloor(verb, *argv, "--reason", "look")
    assert said.code == 0
    assert "a-1" in said.out
    assert api.asked[-1].body == {"action": verb, "scope": scope, "reason": "look"}


@pytest.mark.parametrize(
    "argv", [[], ["a-1", "--all"], ["--session", "s", "--host"], ["--host", "--all"], ["--tree", "--all"], ["--session", "../x"], ["A b"],
             ["--session", "x" * 64], ["--session", "a\n"], ["--session", ""]],
)  # fmt: skip
@pytest.mark.parametrize("verb", ["freeze", "kill", "reconnect"])
def test_no_scope_two_scopes_or_a_hostile_id_is_a_usage_error_before_anything_is_asked(
    api: CannedApi, watchfloor: Watchfloor, verb: str, argv: list[str]
) -> None:
    assert watchfloor(verb, *argv, "--reason", "r").code == 2
    assert api.asked == []


def test_what_was_not_done_is_said_and_is_no_success(api: CannedApi, watchfloor: Watchfloor) -> None:
    api.say("POST /api/ladder", {"agents": ["a-1"], "failed": {"a-2": "it shares\x1b[2J the network"}, "excluded": {"o-1": "observed"}})
    said = watchfloor("isolate", "--all")
    assert said.code == 1
    assert "NOT isolated: a-2" in said.err and "\x1b" not in said.err and "left alone: o-1" in said.err
    api.say("POST /api/ladder", {"agents": ["a-1"], "excluded": {"o-1": "observed"}, "notes": ["a-1: network PROXIED"]})
    assert watchfloor("reconnect", "--all").code == 0


def test_an_empty_session_is_not_found(api: CannedApi, watchfloor: Watchfloor) -> None:
    api.refuse("POST /api/ladder", 404, "Nobody lives in session 's9'.", "watchfloor fleet shows each agent's session.", 3)
    said = watchfloor("kill", "--session", "s9")
    assert said.code == 3
    assert "s9" in said.err


def test_a_dry_run_asks_for_the_preview_alone(api: CannedApi, watchfloor: Watchfloor) -> None:
    api.say("POST /api/ladder/preview", PREVIEW)
    said = watchfloor("freeze", "--session", "s1", "--dry-run")
    assert said.code == 0
    assert "1 of them best effort" in said.out and "it has no cgroup" in said.out and "it is only observed" in said.out
    assert "\x1b" not in said.out
    assert [asked.path for asked in api.asked] == ["/api/ladder/preview"]
    assert watchfloor("freeze", "--session", "s1", "--dry-run", "--json").json["counts"] == PREVIEW["counts"]
    api.say("POST /api/ladder/preview", PREVIEW | {"why_not": "nobody"})
    assert watchfloor("freeze", "--session", "s1", "--dry-run").code == 1


def test_a_dry_run_of_a_kill_of_everything_kills_nothing(api: CannedApi, watchfloor: Watchfloor) -> None:
    api.say("POST /api/ladder/preview", PREVIEW | {"action": "kill", "reach": "all"})
    assert watchfloor("kill", "--all", "--dry-run").code == 0
    assert [asked.path for asked in api.asked] == ["/api/ladder/preview"]


def test_a_kill_of_a_session_prints_its_receipt(api: CannedApi, watchfloor: Watchfloor) -> None:
    api.say("POST /api/ladder", RECEIPT)
    said = watchfloor("kill", "--session", "s1", "--reason", "r", "--json")
    assert (said.code, said.json["verified_zero"]) == (0, True)
    assert api.asked[-1].body == {"action": "kill", "scope": {"reach": "session", "target": "s1"}, "reason": "r"}


def test_a_kill_of_everything_is_the_panic_and_needs_a_reason(watchfloor: Watchfloor, monkeypatch: pytest.MonkeyPatch) -> None:
    from console.cli import panic

    pressed: list[tuple[object, ...]] = []

    def press(*given: object) -> int:
        pressed.append(given)
        return 9

    monkeypatch.setattr(panic, "panic", press)
    assert watchfloor("kill", "--all", "--reason", "now").code == 9
    assert pressed == [("now", None, False)]
