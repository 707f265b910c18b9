"""The parts of a supervisor that started programs touch, with a real engine and everything else in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from console.domain.agent import Agent, AgentId, AgentState, ContextId, SandboxKind
from console.domain.budget import Limits
from console.domain.conversation import Program, command_line
from console.domain.engine.command import Record
from console.domain.ids import ControlLevel
from console.domain.network import Allowlist
from console.enforcement.engine import Engine
from console.enforcement.state import EngineState
from console.sandbox.interface import Availability
from console.services.conversation.messaging import Conversations
from console.services.conversation.output_dispatch import Freeze, Listener
from console.services.fleet.core import Core
from console.services.launch.program_reach import Outlooks
from console.services.launch.type_sources import TypeSources
from console.settings.options import Options, merged
from tests.fakes.core_ports import NoServices

ID = AgentId("a-1")


class Scribe:
    """Keeps what it is given."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.events: list[tuple[str, str]] = []
        self.kept: dict[str, str] = {}
        self.spent: list[tuple[str, float, int]] = []
        self.ledger = SimpleNamespace(kv_get=self.kept.get, kv_set=self.kept.__setitem__, allowlist=Allowlist)
        self.refuse: Exception | None = None

    def record_first(self, record: Record) -> None:
        if self.refuse is not None:
            raise self.refuse
        self.records.append(record)

    def record(self, record: Record) -> None:
        self.records.append(record)

    def event(self, _agent_id: str, _at: float, kind: str, text: str) -> None:
        self.events.append((kind, text))

    def spend(self, agent_id: str, _root_id: str, _at: float, cost_usd: float, tokens: int) -> None:
        self.spent.append((agent_id, cost_usd, tokens))

    def job(self, job: Callable[[], object]) -> None:
        job()


async def unasked(_agent_id: AgentId, _why: str) -> None:
    """Nobody is to be frozen."""
    raise AssertionError("a program was frozen")


class Stage:
    """``stage.parts`` is what goes in."""

    def __init__(self, folder: Path, **options: Any) -> None:
        self.program = folder / "bin" / "program"
        self.program.parent.mkdir(exist_ok=True)
        self.program.write_text("#!/bin/sh\necho 1.2.3\n")
        self.program.chmod(0o755)
        given = {f"programs.{name.replace('-', '_')}": str(self.program) for name in Program} | {"programs.memory_free_min_mib": 0}
        self.ports = NoServices()
        self.core = Core(Engine(EngineState()), self.ports)
        self.scribe, self.notices = Scribe(), list[str]()
        (folder / "output").mkdir(exist_ok=True)
        places = SimpleNamespace(
            state_dir=folder / "state",
            workspaces_dir=folder / "state" / "workspaces",
            output_dir=folder / "output",
            policy_file=folder / "state" / "policy.json",
        )
        ready: Any = SimpleNamespace(available=lambda: Availability(True, ""))
        self.parts: Any = SimpleNamespace(
            core=self.core,
            scribe=self.scribe,
            places=places,
            options=merged(Options(), given | options),
            notice=lambda text, level="amber": self.notices.append(text),
            sandboxes=dict.fromkeys(SandboxKind, ready),
        )

    def agent(self, *, talks: bool = True, cost: float | None = None, **more: Any) -> Agent:
        """A program that runs, as the engine knows it."""
        argv = command_line(Program.CLAUDE_CODE, "the prompt", str(self.program), ("-p",), talks=talks)
        held: Any = {"control_level": ControlLevel.MANAGED, "sandbox": SandboxKind.NONE, "started_at": 0.0, "state": AgentState.RUNNING}
        made = Agent(ID, "claude", None, ID, 1, ContextId("c"), argv=argv, limits=Limits(cost_usd=cost), **{**held, **more})
        return self.core.state.put(made)

    def talk(self, *listeners: Listener, freeze: Freeze = unasked) -> Conversations:
        """What talks to its programs."""
        it = self.parts
        return Conversations(self.core, it.scribe, it.places, it.options, it.notice, freeze=freeze, listeners=listeners)

    def outlooks(self) -> Outlooks:
        """What a launch could do here."""
        ledger, places, options = self.scribe.ledger, self.parts.places, self.parts.options
        return Outlooks(self.core, ledger, places, options, TypeSources(ledger, places, options))  # type: ignore[arg-type]

    def listen(self) -> None:
        """On the running loop from now on."""
        self.core.loop = asyncio.get_running_loop()
