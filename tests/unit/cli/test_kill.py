"""The ladder's verbs: exactly one scope, a preview that does nothing, words and exit codes."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from console.cli.stop import carry_out
from console.domain.errors import ConsoleError, TimedOut, Unreachable
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
        (["a-1", "a-2"], {"reach": "agent", "target": "a-1", "others": ["a-2"]}),
        (["a-1", "a-2", "--tree"], {"reach": "tree", "target": "a-1", "others": ["a-2"]}),
        (["--session", "s1"], {"reach": "session", "target": "s1"}),
        (["--session", "s1", "--session", "s2"], {"reach": "session", "target": "s1", "others": ["s2"]}),
        (["--host"], {"reach": "host"}),
        (["--all"], {"reach": "all"}),
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
    "argv", [[], ["a-1", "--all"], ["--session", "s", "--host"], ["--host", "--all"], ["--tree", "--all"], ["--session", "../x"],
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
    api.refuse("POST /api/ladder", 404, "No agent lives in session 's9'.", "watchfloor session list shows the sessions.", 3)
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


def test_a_preview_names_a_state_in_the_words_of_the_fleet(api: CannedApi, watchfloor: Watchfloor) -> None:
    waiting = {"id": "a-1", "name": "n", "control_level": "managed", "state": "needs_ok"}
    api.say("POST /api/ladder/preview", PREVIEW | {"acts": [waiting]})
    said = watchfloor("kill", "a-1", "--dry-run")
    assert "managed  needs ok" in said.out and "needs_ok" not in said.out


def test_a_dry_run_of_a_kill_of_everything_kills_nothing(api: CannedApi, watchfloor: Watchfloor) -> None:
    api.say("POST /api/ladder/preview", PREVIEW | {"action": "kill", "reach": "all"})
    assert watchfloor("kill", "--all", "--dry-run").code == 0
    assert [asked.path for asked in api.asked] == ["/api/ladder/preview"]


def test_a_kill_of_a_session_prints_its_receipt(api: CannedApi, watchfloor: Watchfloor) -> None:
    api.say("POST /api/ladder", RECEIPT)
    said = watchfloor("kill", "--session", "s1", "--reason", "r", "--json")
    assert (said.code, said.json["verified_zero"]) == (0, True)
    assert api.asked[-1].body == {"action": "kill", "scope": {"reach": "session", "target": "s1"}, "reason": "r"}


def test_a_kill_says_what_is_dead_at_zero_and_ends_with_the_code_of_the_whole_receipt(api: CannedApi, watchfloor: Watchfloor) -> None:
    later = [{"name": "evidence", "status": "pending", "ms": None, "detail": "not done yet"}]
    open_ = RECEIPT | {"complete": False, "steps": [s for s in RECEIPT["steps"] if s["name"] != "evidence"] + later}
    failed = [s if s["name"] != "evidence" else s | {"status": "failed", "detail": "the disk\x1b[2J is full"} for s in RECEIPT["steps"]]
    api.say("POST /api/ladder", open_)
    api.say(f"GET /api/receipts/{RECEIPT['kill_id']}", RECEIPT | {"steps": failed})
    said = watchfloor("kill", "--session", "s1", "--reason", "r")
    assert said.code == 7 and said.err == "killed, first result: 1 of 1 confirmed dead; the receipt follows\nevidence: failed\n"
    assert said.out.startswith("All processes of 1 agent are dead. Not done: evidence.") and said.out.count("are dead") == 1
    assert said.out.count("the disk") == 1 and "\x1b" not in said.out
    assert watchfloor("kill", "--session", "s1", "--json").json["complete"]


def test_a_kill_of_an_agent_that_has_ended_is_done(api: CannedApi, watchfloor: Watchfloor) -> None:
    api.refuse("POST /api/ladder", 410, "a-1 has already ended (exit code 0): nothing of it runs.", "Nothing is left to kill.", 0)
    said = watchfloor("kill", "a-1")
    assert said.code == 0 and "a-1 has already ended" in said.out
    assert watchfloor("kill", "a-1", "--json").json["already_ended"] is True
    api.refuse("POST /api/ladder", 410, "a-1 has already ended. Whether a process that it started still runs is not known.", "Look.", 8)
    assert watchfloor("kill", "a-1").code == 8 and watchfloor("kill", "a-1", "--json").json["exit_code"] == 8


def test_a_kill_of_an_agent_that_a_kill_ended_answers_with_that_kill_once_its_watch_is_over(
    api: CannedApi, watchfloor: Watchfloor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a budget's halt; kills of a life of the agent before this one, and of other agents, are passed over."""
    again = {"agent_id": "a-1", "session": "s", "pid": 7, "start_ticks": 8, "parent": 1, "parent_program": "sh", "command": "claude"}
    again |= {"seconds": 2.0, "by": "session id", "certain": True, "killed": True, "proven": False, "why": "it goes on with it"}
    halt = RECEIPT | {"kill_id": "20260101-000000-aaaaaa", "scope": "a-1,a-3", "pressed_at": 50.0, "returns": [again]}
    every = RECEIPT | {"kill_id": "20260101-000000-bbbbbb", "scope": "all", "pressed_at": 60.0}
    other = RECEIPT | {"kill_id": "20260101-000000-cccccc", "scope": "a-10", "pressed_at": 70.0}
    before = halt | {"kill_id": "20260101-000000-dddddd", "pressed_at": 10.0}
    counts = {"proven": 1, "targets": 1, "best_effort": 0, "exit_code": 0}
    for one in (halt, every, other, before):
        api.say(f"GET /api/receipts/{one['kill_id']}", one)
    api.say("GET /api/receipts", {"receipts": [one | counts for one in (other, every, halt, before)]})
    agent = {"id": "a-1", "name": "x", "control_level": "managed", "host": "h", "started_at": 40.0}
    api.say("GET /api/fleet", {"agents": [agent, agent | {"id": "a-2", "parent_id": "a-1"}]})
    waited: list[str] = []

    def after(_places: object, receipt: Receipt, *, quiet: bool) -> Receipt:
        waited.append(receipt.kill_id)
        return receipt

    monkeypatch.setattr(carry_out, "after_watch", after)
    api.refuse("POST /api/ladder", 410, "a-1 has already ended (its budget).", "Nothing is left to kill.", 0)
    said = watchfloor("kill", "a-1", "--wait-watch", "--json")
    assert (said.code, said.json["already_ended"], said.json["kill_id"], said.json["exit_code"]) == (9, True, halt["kill_id"], 9)
    assert waited == [halt["kill_id"]]
    said = watchfloor("kill", "a-1", "--wait-watch")
    assert said.code == 9 and "already ended" in said.out and halt["kill_id"] in said.out
    assert watchfloor("kill", "a-1").code == 0, "without the word nothing is waited for"
    api.say("GET /api/receipts", {"receipts": [other | counts]})
    assert watchfloor("kill", "a-1", "--wait-watch").code == 0, "it ended by itself"


def test_a_kill_of_everything_is_the_panic_and_needs_a_reason(watchfloor: Watchfloor, monkeypatch: pytest.MonkeyPatch) -> None:
    from console.cli.stop import panic

    pressed: list[tuple[object, ...]] = []

    def press(*given: object) -> int:
        pressed.append(given)
        return 9

    monkeypatch.setattr(panic, "panic", press)
    assert watchfloor("kill", "--all", "--reason", "now").code == 9
    assert pressed == [("now", None, False, False)]


class FakeGuard:
    """The guard's socket: what it says to a freeze, and then, look after look, who is not seen to be frozen."""

    def __init__(self, said: dict[str, Any], looks: list[dict[str, Any] | ConsoleError]) -> None:
        self.said, self.looks, self.asked = said, looks, list[str]()

    def freeze(self, scope: str, cause: str, by: str) -> dict[str, Any]:
        self.asked.append(f"freeze {scope} {cause}")
        return self.said

    def call(self, op: str, **fields: Any) -> dict[str, Any]:
        self.asked.append(op)
        look = self.looks.pop(0) if len(self.looks) > 1 else self.looks[0]
        if isinstance(look, ConsoleError):
            raise look
        return look

    def close(self) -> None:
        self.asked.append("close")


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> Callable[..., FakeGuard]:
    """No supervisor answers; the guard does."""

    def connect(*_: object) -> Any:
        raise Unreachable("No supervisor runs for DIR.", "Start one.")

    def make(said: dict[str, Any], *looks: dict[str, Any] | ConsoleError) -> FakeGuard:
        guard = FakeGuard(said, list(looks))
        monkeypatch.setattr(carry_out, "GuardClient", lambda *_, **__: guard)
        return guard

    monkeypatch.setattr(carry_out, "connect", connect)
    monkeypatch.setattr(carry_out, "existing_places", lambda _: SimpleNamespace(guard_sock="guard.sock"))
    monkeypatch.setattr(carry_out, "SEEN_S", 0.2)
    return make


def test_without_a_supervisor_a_freeze_of_all_is_said_once_it_is_seen(alone: Callable[..., FakeGuard], watchfloor: Watchfloor) -> None:
    guard = alone({"frozen": 2, "failed": {}, "unconfirmed": {"box": "asked"}}, {"n": 1, "unconfirmed": {"box": "asked"}}, {"n": 0})
    said = watchfloor("freeze", "--all")
    assert said.code == 0 and "the guard has frozen 3 agents" in said.out
    assert guard.asked == ["freeze all operator", "freezing", "freezing", "close"], "it looked until it was so"
    alone({"frozen": 1}, {"n": 0})
    assert watchfloor("freeze", "--all", "--json").json == {"schema_version": 1, "agents": [], "frozen": 1, "failed": {}, "by": "guard"}


def test_without_a_supervisor_who_is_not_seen_frozen_is_named_and_it_is_no_success(
    alone: Callable[..., FakeGuard], watchfloor: Watchfloor
) -> None:
    doubt = {"n": 2, "unconfirmed": {"a-1": "its cgroup does not say\x1b[2J that it is frozen"}}
    alone({"frozen": 3, "failed": {"a-9": "failed: EIO"}}, doubt)
    said = watchfloor("freeze", "--all")
    assert said.code == 1 and "frozen 1 agent" in said.out, "two of the three that were asked for are not seen"
    assert "NOT frozen: a-1: not confirmed" in said.err and "NOT frozen: a-9" in said.err and "\x1b" not in said.err


def test_without_a_supervisor_a_guard_that_does_not_say_who_is_frozen_is_no_success(
    alone: Callable[..., FakeGuard], watchfloor: Watchfloor
) -> None:
    alone({"frozen": 1}, TimedOut("The guard did not answer in time.", ""))
    said = watchfloor("freeze", "--all", "--json")
    assert said.code == 1 and "does not say" in said.json["failed"]["all"]


@pytest.mark.parametrize("argv", [("freeze", "a-1"), ("freeze", "--session", "s1"), ("thaw", "--all"), ("isolate", "--all")])
def test_without_a_supervisor_the_guard_is_asked_for_nothing_else(
    alone: Callable[..., FakeGuard], watchfloor: Watchfloor, argv: tuple[str, ...]
) -> None:
    guard = alone({"frozen": 1}, {"n": 0})
    assert watchfloor(*argv, "--reason", "r").code == 6 and guard.asked == []
