"""Profiles of a running instance: what judges whom by default, what an operator chooses, and what a session was allowed once."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from console.api.policy import policy_data
from console.api.policy.rules import ProfileBody
from console.domain.agent import Agent, AgentId, SandboxKind
from console.domain.calls.approval import Approval, ApprovalState
from console.domain.calls.permission import PermissionRequest, Verdict
from console.domain.calls.profile import ProfileTable
from console.domain.errors import ConsoleError, NotFound, NotRecorded, UsageProblem
from console.domain.ids import ControlLevel
from console.domain.network import NetworkMode
from console.ledger.store import Ledger
from console.policy.rules.profiles import NOT_CONTAINED, WORK
from console.services.policy.profiles import Profiles
from console.services.policy.service import PolicyDesk
from console.settings.places import Places, find_places
from tests.fakes.playbook import Playbook


class Typed:
    """Types of agents, as the sources know them."""

    def __init__(self) -> None:
        self.known: dict[AgentId, str] = {}

    def type_of(self, agent: Agent) -> str:
        return self.known.get(agent.agent_id, "")


class World:
    """The rules of an instance, with a real ledger."""

    def __init__(self, places: Places) -> None:
        self.places, self.ledger, self.recorded = places, Ledger(places.ledger_db), list[Any]()
        self.types = Typed()
        self.again()

    def again(self) -> None:
        """As after a restart."""
        scribe: Any = SimpleNamespace(record_first=self.recorded.append)
        self.table = ProfileTable()
        self.profiles = Profiles(self.table, self.ledger, scribe, self.types)
        self.desk = PolicyDesk(self.places, print, policy_data.dangers, lambda _agent_id: None, profiles=self.profiles)

    def choose(self, kind: str, profile: str, reason: str = "because") -> None:
        asyncio.run(self.profiles.choose(ProfileBody(agent_type=kind, profile=profile, reason=reason), "operator:1"))

    def judged(self, agent: Agent, command: str) -> tuple[Verdict, str, str]:
        found = self.desk.judge(agent, PermissionRequest("shell", command)).decision
        return found.verdict, found.rule, found.reason


@pytest.fixture
def world(tmp_path: Path) -> World:
    places = find_places(str(tmp_path / "state"), create=True)
    (places.workspaces_dir / "c").mkdir(parents=True)
    return World(places)


@pytest.fixture
def agent() -> Callable[..., Agent]:
    made = Playbook().run("a", context_id="c").agent("a")
    held: dict[str, Any] = {
        "sandbox": SandboxKind.BUBBLEWRAP,
        "network_mode": NetworkMode.PROXIED,
        "network_enforced": True,
        "source": "claude_code",
    }
    return lambda **fields: replace(made, **(held | fields))


def test_a_program_that_writes_code_has_coding_and_others_strict(world: World, agent: Any) -> None:
    assert world.judged(agent(), "make test")[0] is Verdict.ALLOW and world.table.note(agent()) == ""
    assert world.judged(agent(source="watchfloor"), "make test")[:2] == (Verdict.ASK, "no rule")
    world.places.policy_file.write_text(json.dumps({"permissions": {"allow": ["shell(ls:*)"]}}))
    assert world.judged(agent(), "make test")[:2] == (Verdict.ASK, "no rule"), "an operator's own rules go before a default"
    assert (world.table.of(agent()), world.table.of(agent(source="docker"))) == ("own", "own")


@pytest.mark.parametrize(
    "fields",
    [
        {"sandbox": SandboxKind.NONE},
        {"network_mode": NetworkMode.FULL},
        {"network_enforced": False},
        {"control_level": ControlLevel.OBSERVED, "cwd": "/"},
    ],
)
def test_what_no_sandbox_holds_is_asked_once_in_its_session(world: World, agent: Any, fields: dict[str, Any]) -> None:
    who = agent(**fields)
    assert world.judged(who, "make test") == (Verdict.ASK, WORK, NOT_CONTAINED)
    assert world.table.note(who) == "rules only, not contained"
    request = PermissionRequest("shell", "make test")
    asked = Approval("q-1", who.agent_id, who.root_id, who.context_id, request, "d", WORK, NOT_CONTAINED, 1.0, 2.0)
    world.ledger.add_approval(asked, "boot")
    assert world.judged(who, "npm test")[1] == WORK, "nobody has decided"
    world.ledger.change_approval(replace(asked, state=ApprovalState.APPROVED), ApprovalState.WAITING)
    assert world.judged(who, "npm test")[0] is Verdict.ALLOW
    assert world.judged(who, "git push")[0] is Verdict.ASK and world.judged(who, "sudo id")[0] is Verdict.DENY
    assert world.judged(replace(who, context_id="d", root_id="b"), "npm test")[1] == WORK, "another session is asked itself"


def test_an_operator_chooses_by_type_with_a_reason_on_record_first_and_over_a_restart(world: World, agent: Any) -> None:
    world.choose("claude-code", "strict")
    assert world.judged(agent(), "make")[1] == "no rule"
    world.types.known[AgentId("a")] = "mine"
    world.choose("mine", "observe", "to learn")
    world.again()
    assert world.judged(agent(), "sudo id")[:2] == (Verdict.ALLOW, "observe: would be denied")
    assert (world.table.of(agent()), world.table.note(agent())) == ("observe", "no tool call is blocked")
    assert [entry.data["profile"] for entry in world.recorded] == ["strict", "observe"] and "to learn" in world.recorded[1].what
    world.choose("mine", "")
    assert [one.agent_type for one in world.profiles.view().choices] == ["claude-code"]
    assert world.judged(agent(), "sudo id")[0] is Verdict.DENY


def test_what_is_no_choice_is_refused_and_changes_nothing(world: World) -> None:
    for kind, profile, error in (("claude-code", "lax", UsageProblem), ("../x", "strict", ConsoleError), ("codex", "", NotFound)):
        with pytest.raises(error):
            world.choose(kind, profile)

    def full(_entry: object) -> None:
        raise NotRecorded("the disk is full", "make room")

    world.profiles._scribe.record_first = full  # type: ignore[method-assign, assignment]
    with pytest.raises(NotRecorded):
        world.choose("claude-code", "observe")
    assert world.profiles.view().choices == [] and world.table.chosen == {}


def test_a_damaged_choice_falls_back_to_the_defaults(world: World, agent: Any) -> None:
    for damaged in ("{", '[{"agent_type": "claude-code"}]', '[{"agent_type":"x","profile":"lax","reason":"r","by":"b","at":1}]'):
        world.ledger.kv_set("policy.profiles", damaged)
        world.again()
        assert world.table.chosen == {} and world.table.of(agent()) == "coding"
    newer = '[{"agent_type":"claude-code","profile":"strict","reason":"r","by":"b","at":1,"of_a_newer_program":1}]'
    world.ledger.kv_set("policy.profiles", newer)
    world.again()
    assert world.table.chosen == {"claude-code": "strict"}
