"""A launch catches up with what its session became while the agent was let go."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from console.domain.agent import Agent, AgentId, ContextId, SandboxKind
from console.domain.engine import command as c
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
