"""A launch catches up with what its session became while the agent was let go, and a launch that a stop broke says so."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from console.domain.agent import Agent, AgentId, ContextId, SandboxKind
from console.domain.engine import command as c
from console.domain.errors import ConsoleError
from console.domain.ids import ControlLevel
from console.domain.network import NetworkMode, Sensitivity
from console.services.launch.service import Launcher

FULL, PROXIED, NONE = NetworkMode.FULL, NetworkMode.PROXIED, NetworkMode.NONE


@pytest.mark.parametrize(
    ("began", "mode", "level", "switched"),
    [
        (PROXIED, PROXIED, Sensitivity.PUBLIC, []),
        (PROXIED, PROXIED, Sensitivity.CONFIDENTIAL, [PROXIED]),  # its portal was opened for data of a lower class
        (PROXIED, NONE, Sensitivity.SECRET, [NONE]),
        (FULL, FULL, Sensitivity.INTERNAL, []),  # nothing of its network depends on that
    ],
)
def test_what_rose_while_it_was_let_go_is_switched(
    began: NetworkMode, mode: NetworkMode, level: Sensitivity, switched: list[NetworkMode]
) -> None:
    agent = Agent(AgentId("a-1"), "a", None, AgentId("a-1"), 1, ContextId("c-1"), ControlLevel.MANAGED, SandboxKind.NONE, started_at=1.0)
    agent = replace(agent, network_mode=began)
    done: list[NetworkMode] = []

    async def switch(command: c.SwitchNetwork) -> None:
        done.append(command.mode)

    launcher: Any = object.__new__(Launcher)
    now = replace(agent, network_mode=mode, sensitivity=level)
    launcher._core = SimpleNamespace(state=SimpleNamespace(agents={agent.agent_id: now}))
    launcher.cutter = SimpleNamespace(switch=switch)
    asyncio.run(launcher._catch_up(agent))
    assert done == switched


@pytest.mark.parametrize(
    ("killed", "said"), [(True, "It was stopped while it started."), (False, "The sandbox ended before it was ready.")]
)
def test_a_launch_whose_sandbox_a_stop_took_away_says_that_it_was_stopped(killed: bool, said: str, tmp_path: Path) -> None:
    agent = Agent(AgentId("a-1"), "a", None, AgentId("a-1"), 1, ContextId("c-1"), ControlLevel.MANAGED, SandboxKind.NONE, started_at=1.0)
    told: list[str] = []
    launcher: Any = object.__new__(Launcher)
    launcher._gate, launcher.said, launcher._places = asyncio.Semaphore(1), {}, SimpleNamespace(state_dir=tmp_path)
    state = SimpleNamespace(agents={agent.agent_id: agent}, killed=killed, killing={}, halting={})
    launcher._core = SimpleNamespace(state=state, post=lambda _event: None, settle_launch=lambda _agent, error: told.append(error.what))

    def breaks(_record: object) -> None:
        raise ConsoleError("The sandbox ended before it was ready.", "")

    launcher._sandboxes, launcher._scribe = {agent.sandbox: None}, SimpleNamespace(record_first=breaks)
    asyncio.run(launcher.start(SimpleNamespace(agent=replace(agent, argv=("x",)), by="op", request=SimpleNamespace(unmeasured=False))))
    assert told == [said]
