"""An agent's environment: its type is an operator's word, its children have it too, and what is kept of it are names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from console.domain.agent import Agent, AgentId, ContextId, LaunchRequest, SandboxKind
from console.domain.conversation import Program, command_line
from console.domain.engine.command import Record
from console.domain.errors import Denied, NotRecorded
from console.domain.ids import ControlLevel
from console.services.launch.environments import Environments, is_damaged, stored
from console.services.records.record_writer import Scribe
from console.settings.options import Options

LAUNCHER = {"BASE_URL": "https://example.org", "API_KEY": "canary", "GH_TOKEN": "canary", "OTHER": "canary", "LANG": "C.UTF-8"}
TYPES = {"bot": {"names": ["BASE_URL", "ABSENT"], "secrets": ["API_KEY"]}}
OWN = {"WATCHFLOOR_WORKSPACE": "/w", "AGENT_AUTH_TOKEN": "canary"}


def agent(name: str, parent: str | None = None) -> Agent:
    fields: dict[str, Any] = {"name": name, "parent_id": parent, "root_id": AgentId(name), "depth": 1, "context_id": ContextId("c1")}
    return Agent(AgentId(name), control_level=ControlLevel.MANAGED, sandbox=SandboxKind.NONE, started_at=1.0, **fields)


class World:
    def __init__(self) -> None:
        self.kept: dict[str, str] = {}
        self.launcher = dict(LAUNCHER)
        ledger = SimpleNamespace(kv_get=self.kept.get, kv_set=self.kept.__setitem__)

        def job(work: Callable[[], None]) -> None:
            work()

        self.records: list[Record] = []
        self.scribe = cast(Scribe, SimpleNamespace(ledger=ledger, job=job, record_first=self.record))
        self.made = self.again()

    def record(self, record: Record) -> None:
        if self.refuses:
            raise NotRecorded("no space left", "")
        self.records.append(record)

    refuses = False

    def again(self) -> Environments:
        """As after a restart."""
        return Environments(Options.read({"environment": TYPES}), self.scribe, self.launcher)


@pytest.fixture
def world() -> World:
    return World()


def asked(kind: str = "", **env: str) -> LaunchRequest:
    return LaunchRequest(("x",), agent_type=kind, env=tuple(env.items()))


async def test_an_agent_without_a_type_has_what_every_agent_has(world: World) -> None:
    env = await world.made.make(agent("a"), asked(), OWN)
    assert not set(LAUNCHER) & set(env) - {"LANG"} and world.made.words(AgentId("a")) == ""


async def test_a_type_adds_what_is_written_down_for_it_and_says_so(world: World) -> None:
    env = await world.made.make(agent("a"), asked("bot", EXTRA_KEY="mine"), OWN)
    assert (env["BASE_URL"], env["API_KEY"]) == ("https://example.org", "canary") and not {"GH_TOKEN", "OTHER"} & set(env)
    words = world.made.words(AgentId("a"))
    assert "type bot: API_KEY (SECRET), BASE_URL" in words and "EXTRA_KEY (SECRET)" in words and "ABSENT is not in" in words
    assert "canary" not in words + str(world.kept) + str(await world.made.view(AgentId("a")))


async def test_a_secret_is_on_record_before_it_is_given_and_without_a_record_it_is_not(world: World) -> None:
    await world.made.make(agent("a"), asked("bot"), OWN)
    [record] = world.records
    assert record.kind == "launch.secrets" and record.data["secrets"] == ["API_KEY"] and "canary" not in repr(record)
    await world.made.make(agent("b"), asked(), OWN)
    assert len(world.records) == 1
    world.refuses = True
    with pytest.raises(NotRecorded):
        await world.made.make(agent("c"), asked("bot"), OWN)


async def test_a_child_has_its_parents_type_whatever_it_asks_for_and_after_a_restart(world: World) -> None:
    await world.made.make(agent("plain"), asked(), OWN)
    assert "API_KEY" not in await world.made.make(agent("c1", "plain"), asked("bot"), OWN)
    await world.made.make(agent("a"), asked("bot"), OWN)
    assert "API_KEY" in await world.again().make(agent("c2", "a"), asked(), OWN)
    assert "API_KEY" not in await world.again().make(agent("c3", "nobody"), asked("bot"), OWN)


async def test_names_come_back_after_a_restart_and_what_is_not_known_is_none(world: World) -> None:
    await world.made.make(agent("a"), asked("bot"), OWN)
    before, after = await world.made.view(AgentId("a")), await world.again().view(AgentId("a"))
    assert before == after and before is not None
    assert {v.name: (v.origin, v.secret) for v in before.variables}["API_KEY"] == ("type", True)
    assert await world.made.view(AgentId("b")) is None
    world.kept["environment.b"] = "{"
    assert stored(world.scribe.ledger, "b") is None


async def test_a_program_that_we_start_gets_its_models_key_and_what_it_starts_does_not(world: World) -> None:
    world.launcher |= {"ANTHROPIC_API_KEY": "canary", "OPENAI_API_KEY": "canary"}
    argv = command_line(Program.CLAUDE_CODE, "do it", "/usr/bin/claude", (), talks=False)
    env = await world.made.make(agent("a"), LaunchRequest(argv, agent_type="claude-code"), OWN)
    assert env["ANTHROPIC_API_KEY"] == "canary" and not {"OPENAI_API_KEY", "API_KEY"} & set(env)
    [record] = world.records
    assert record.data["secrets"] == ["ANTHROPIC_API_KEY"]
    words = world.made.words(AgentId("a"))
    assert "ANTHROPIC_API_KEY (SECRET)" in words and "is not in" not in words, "one key of those that it takes is enough"
    assert "ANTHROPIC_API_KEY" not in await world.made.make(agent("b", "a"), LaunchRequest(argv, agent_type="claude-code"), OWN)
    assert "ANTHROPIC_API_KEY" not in await world.made.make(agent("c"), asked("claude-code"), OWN), (
        "a command of that type is no such program"
    )
    bounded = Environments(Options.read({"environment": {"claude-code": {}}}), world.scribe, world.launcher)
    assert "ANTHROPIC_API_KEY" not in await bounded.make(agent("d"), LaunchRequest(argv, agent_type="claude-code"), OWN)


async def test_a_type_that_is_not_set_is_said(world: World) -> None:
    await world.made.make(agent("a"), asked("typo"), OWN)
    assert "no environment is set for agents of type typo" in world.made.words(AgentId("a"))


async def test_a_refused_name_is_refused_before_anything_is_kept(world: World) -> None:
    with pytest.raises(Denied):
        await world.made.make(agent("a"), replace(asked(), env=(("LD_PRELOAD", "x"),)), OWN)
    assert world.kept == {}


async def test_what_narrows_an_agent_is_on_disk_before_it_runs_and_an_unreadable_type_is_not_none(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(world.scribe, "job", lambda work: None)  # the disk refuses what is written later
    await world.made.make(agent("a"), asked("bot"), OWN)
    assert (given := stored(world.scribe.ledger, "a")) is not None and given.agent_type == "bot"
    assert not is_damaged(world.scribe.ledger, "a") and not is_damaged(world.scribe.ledger, "never-started")
    world.kept[next(iter(world.kept))] = "{"
    assert is_damaged(world.scribe.ledger, "a")
