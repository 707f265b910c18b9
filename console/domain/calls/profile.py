"""Which profile of rules judges an agent's calls: chosen by an operator for a type of agents, else by what kind of agent it is."""

from __future__ import annotations

from dataclasses import dataclass, field

from console.domain.agent import Agent, AgentId, SandboxKind
from console.domain.conversation import started_as
from console.domain.ids import ControlLevel

OWN = "own"
"""The rules that an operator wrote (``policy.json``)."""
STRICT, CODING, OBSERVE = "strict", "coding", "observe"
NOT_CONTAINED = "rules only, not contained"
OBSERVED = "no tool call is blocked"
_GENERAL = frozenset(("watchfloor", "docker", "processes", "otlp"))
"""Sources that see agents of any kind; each other one is of a program that writes code."""


@dataclass(slots=True)
class ProfileTable:
    """Read by every view; changed by the service that keeps the choices. Nothing in it comes from an agent."""

    chosen: dict[str, str] = field(default_factory=dict)
    """A profile by type of agent."""
    own_rules: bool = False
    """An operator wrote rules of his own, which hold where no profile was chosen."""
    types: dict[AgentId, str] = field(default_factory=dict)
    """The type that an agent was started with, where it has one."""

    def type_of(self, agent: Agent) -> str:
        """Its type: as it was started, else the program that it is, else the source that saw it."""
        if named := self.types.get(agent.agent_id, ""):
            return named
        program = started_as(agent.argv)
        return program.program.value if program is not None else agent.source.replace("_", "-")

    def of(self, agent: Agent) -> str:
        """``strict``, ``coding``, ``observe`` or ``own``. *observe* is never a default."""
        kind = self.type_of(agent)
        if kind in self.chosen:
            return self.chosen[kind]
        if self.own_rules:
            return OWN
        return CODING if started_as(agent.argv) is not None or agent.source not in _GENERAL else STRICT

    def note(self, agent: Agent) -> str:
        """What a person must know of it, in amber; empty: nothing."""
        name = self.of(agent)
        if name == OBSERVE:
            return OBSERVED
        return NOT_CONTAINED if name == CODING and not is_contained(agent) else ""


def is_contained(agent: Agent) -> bool:
    """Whether its sandbox hides secrets from it, and its network is not FULL by the kernel's word."""
    held = agent.control_level is not ControlLevel.OBSERVED and agent.sandbox is not SandboxKind.NONE
    return held and agent.network_enforced and agent.effective_mode.is_restricted
