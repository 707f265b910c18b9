"""What the engine holds of dry-run: who is in it, what approved plans still let through, and what calls would have taken of sequences."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from console.domain.agent import Agent, AgentId
from console.domain.approval import AskedPart
from console.domain.dry_run import Release
from console.domain.lineage import Mark
from console.domain.permission import PermissionRequest, Verdict

Key = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class JudgedAs:
    """What the rules said of a call that is not answered yet."""

    request: PermissionRequest
    verdict: Verdict
    rule: str
    reason: str
    parts: tuple[AskedPart, ...]


@dataclass(slots=True)
class DryRuns:
    """Nothing here lets anything through that is not in ``releases``."""

    marked: set[AgentId] = field(default_factory=set)
    """Agents that are in dry-run by their own row; those below them are as well."""
    judged: dict[str, JudgedAs] = field(default_factory=dict)
    """By request, until it is answered; of agents in dry-run alone."""
    releases: dict[tuple[str, str], Release] = field(default_factory=dict)
    """(agent, digest) -> a call of an approved plan that may be made once."""
    passed: set[str] = field(default_factory=set)
    """Requests that take up such a call: it is used up on disk already."""
    marks: dict[str, dict[Key, Mark]] = field(default_factory=dict)
    """By head: steps that its calls would have taken."""
    leaving: set[AgentId] = field(default_factory=set)
    """Agents that an operator takes out right now."""

    def kept(self, had: Agent | None, agent: Agent) -> Agent:
        """Return the agent as it may be stored. Only an operator's order takes an agent out of dry-run, whatever code writes its row."""
        if had is not None and had.dry_run and not agent.dry_run and agent.agent_id not in self.leaving:
            agent = replace(agent, dry_run=had.dry_run)
        if agent.dry_run:
            self.marked.add(agent.agent_id)
        else:
            self.marked.discard(agent.agent_id)
        return agent
