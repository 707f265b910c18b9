"""Dialogue with the engine: ``Playbook() >> event`` steps it, ``<< command`` expects one of the commands that came out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from console.domain.agent import Agent, AgentId, LaunchRequest, ProcessIdentity
from console.domain.engine import command as c
from console.domain.engine import event as e
from console.domain.ids import ControlLevel
from console.enforcement.engine import Engine
from console.enforcement.state import EngineState, SpawnLimits


class Playbook:
    """An engine, its commands so far, and a clock that only moves when told."""

    def __init__(self, **limits: Any) -> None:
        self.engine = Engine(EngineState(spawn=SpawnLimits(**limits)))
        self.out: list[c.Command] = []
        self.at = 1000.0
        self.boot = 50.0

    @property
    def state(self) -> EngineState:
        return self.engine.state

    def __rshift__(self, event: e.Event) -> Playbook:
        self.out = self.engine.step(event)
        return self

    def __lshift__(self, kind: type[c.Command]) -> Any:
        """The one command of this kind; fails when there is none or more."""
        found = [command for command in self.out if type(command) is kind]
        assert len(found) == 1, f"expected one {kind.__name__}, got {[type(x).__name__ for x in self.out]}"
        return found[0]

    def all(self, kind: type[c.Command]) -> list[Any]:
        return [command for command in self.out if type(command) is kind]

    def none(self, kind: type[c.Command]) -> None:
        assert not self.all(kind), self.all(kind)

    def later(self, seconds: float) -> Playbook:
        self.at += seconds
        self.boot += seconds
        return self

    def launch(self, agent_id: str, request: LaunchRequest | None = None, by: str = "operator:0", **fields: Any) -> Playbook:
        request = request or LaunchRequest(argv=("/bin/agent",))
        if fields:
            request = replace(request, **fields)
        return self >> e.LaunchAsked(self.at, self.boot, AgentId(agent_id), request, by)

    def run(self, agent_id: str, enforced: bool = True, **fields: Any) -> Playbook:
        """Launch and confirm."""
        self.launch(agent_id, **fields)
        self << c.StartAgent
        process = ProcessIdentity(abs(hash(agent_id)) % 30000 + 2, 77)
        return self >> e.LaunchConfirmed(self.at, self.boot, AgentId(agent_id), process, "", ControlLevel.MANAGED, enforced, "")

    def agent(self, agent_id: str) -> Agent:
        return self.state.agents[AgentId(agent_id)]

    def spend(self, agent_id: str, **numbers: Any) -> Playbook:
        return self >> e.UsageReported(self.at, self.boot, AgentId(agent_id), **numbers)

    def tick(self, seconds: float = 1.0) -> Playbook:
        self.later(seconds)
        return self >> e.ClockTicked(self.at, self.boot)
