"""What the engine knows: agents, trees, contexts, the kill. Pure look-ups; the engine alone changes it."""

from __future__ import annotations

from dataclasses import dataclass, field
from operator import attrgetter

from console.domain.agent import Agent, AgentId, AgentState, ControlLevel, Sighting
from console.domain.budget import Usage
from console.domain.ladder import Scope
from console.domain.network import LOOSEST, ModeMapping, NetworkMode, Sensitivity, stricter_mode
from console.domain.profile import ProfileTable
from console.domain.unknown_exit import OPEN_END
from console.enforcement.approval_state import Approvals
from console.enforcement.budget_state import BudgetState
from console.enforcement.dry_state import DryRuns
from console.enforcement.lineages import Lineages
from console.policy.scopes import Scope as Effect

_PLACED = attrgetter("state", "control_level", "parent_id", "root_id", "context_id", "cwd", "causes", "state_reason")
"""All that any index is made of, but for dry-run."""
NOT_CONFIRMED = "freeze not confirmed"
"""Such an agent is shown as running: something may still run."""


@dataclass(frozen=True, slots=True)
class SpawnLimits:
    """Limits on trees: a root agent has depth 1; children counted are those not ended."""

    max_depth: int = 3
    max_children: int = 6
    max_agents: int = 20_000


@dataclass(frozen=True, slots=True)
class Seen:
    """What sources say of an agent now; not kept over a restart, they say it again."""

    sources: tuple[str, ...] = ()
    session: str = ""
    status: str = ""
    model: str = ""
    unpriced: int = 0
    unread: str = ""
    """Why no source reads what it spends, or empty."""
    unlinked: str = ""
    part: str = ""
    """The program's own id of a sub-agent; empty: it is the session itself."""
    inside: AgentId | None = None
    """The agent of ours in whose process it runs: what ends that one ends it."""
    parts: tuple[tuple[str, Usage], ...] = ()
    """Usage by session key: an agent of ours may run several sessions, one after the other."""
    lag: tuple[float, Usage] | None = None
    """Of a conversation that was started here: what its transcripts said, and when (boot seconds)."""


@dataclass(slots=True)
class EngineState:
    """Mutable; owned by one engine on one thread."""

    spawn: SpawnLimits = field(default_factory=SpawnLimits)
    modes: ModeMapping = field(default_factory=ModeMapping)
    scopes: tuple[str, ...] = tuple(scope.value for scope in Effect)
    """What a root agent is granted when nothing is asked for."""
    notice: str = ""
    """Added to what agents are told when their network changes; ``{mode}`` and ``{sensitivity}`` are filled in."""
    agents: dict[AgentId, Agent] = field(default_factory=dict)
    children: dict[AgentId, set[AgentId]] = field(default_factory=dict)
    live: set[AgentId] = field(default_factory=set)
    held: set[AgentId] = field(default_factory=set)
    """Those among them that are held, and not only seen."""
    stilled: set[AgentId] = field(default_factory=set)
    """Those that are frozen, or are to be."""
    open_ends: set[AgentId] = field(default_factory=set)
    """Agents that were gone at a start and whose end is not confirmed yet."""
    born_boot: dict[AgentId, float] = field(default_factory=dict)
    tree_usage: dict[AgentId, Usage] = field(default_factory=dict)
    """By agent id, of it and all it spawned; ended members stay counted."""
    budget: BudgetState = field(default_factory=BudgetState)
    approvals: Approvals = field(default_factory=Approvals)
    lineages: Lineages = field(default_factory=Lineages)
    profiles: ProfileTable = field(default_factory=ProfileTable)
    """Which rules judge an agent; kept by the service of the rules."""
    dry_run: DryRuns = field(default_factory=DryRuns)
    contexts: dict[str, tuple[Sensitivity, NetworkMode]] = field(default_factory=dict)
    known_contexts: set[str] = field(default_factory=set)
    """Sessions that any agent, dead or alive, has worked in."""
    taken_in: dict[AgentId, tuple[AgentId, Usage]] = field(default_factory=dict)
    """Rows that run inside an adopted agent: that agent, and how much of their use counts as its own and is not charged again."""
    press_observed: set[AgentId] = field(default_factory=set)
    """Observed agents that a press of everything signals as well, as a best effort."""
    kill_observed: set[AgentId] = field(default_factory=set)
    """Observed agents that a kill signals when it names them, as a best effort."""
    killed: bool = False
    kill_reason: str = ""
    latched: set[str] = field(default_factory=set)
    """Kills of everything that this engine heard of and no rearm has released."""
    pressed: dict[str, int] = field(default_factory=dict)
    """Kills that this engine heard begin, counted from 1: which of two came later. Wall clocks decide nothing."""
    proven: dict[AgentId, int] = field(default_factory=dict)
    """The latest kill (as counted in ``pressed``) that proved an agent dead."""
    soft_stop: str = ""
    halting: set[AgentId] = field(default_factory=set)
    """Being halted by a budget; a breach is acted on once."""
    pids: dict[AgentId, int] = field(default_factory=dict)
    """Processes in each agent's leaf, as last counted by the follower."""
    best_effort: dict[AgentId, str] = field(default_factory=dict)
    """Why no kernel proof holds an agent, as the guard says; those that are not in it can be proven."""
    killing: set[AgentId] = field(default_factory=set)
    """Targets of a press whose receipt is still out; only that receipt says what became of them."""
    stopping: list[Scope] = field(default_factory=list)
    """Sessions and hosts that are being stopped: nothing starts in them."""
    isolated: dict[str, str] = field(default_factory=dict)
    """Sessions that an operator isolated as a whole, with the operator and the reason. An agent that joins such a session has no
    network."""
    sighted: dict[str, set[AgentId]] = field(default_factory=dict)
    """Per source: observed agents it still sees."""
    seen: dict[AgentId, Seen] = field(default_factory=dict)
    """What sources say of agents, ours among them."""
    same: dict[AgentId, tuple[tuple[Sighting, ...], Agent]] = field(default_factory=dict)
    """Observed agents: what was seen of each last, and what came of it. While neither is other, nothing follows from seeing it again."""
    rows: dict[str, AgentId] = field(default_factory=dict)
    """Source and key of a sighting -> the row it is shown in."""
    linked_sessions: dict[str, None] = field(default_factory=dict)
    """Sessions from telemetry that other sources saw too. When those see them no more, telemetry alone does not keep them."""

    def subtree(self, agent_id: AgentId) -> list[AgentId]:
        """The agent and all it spawned, parents before children."""
        found, queue = [], [agent_id]
        while queue:
            current = queue.pop()
            found.append(current)
            queue.extend(sorted(self.children.get(current, ())))
        return found

    @property
    def spending(self) -> set[AgentId]:
        """Those that may spend now: they live, and nothing holds them frozen."""
        return self.live - self.stilled

    def live_children(self, agent_id: AgentId) -> int:
        """Children not ended."""
        below = self.children.get(agent_id)
        return len(below & self.live) if below else 0

    def started_children(self, agent_id: AgentId) -> int:
        """Return how many of them were started here. Parts of a program that are only observed do not count toward the limit."""
        return sum(self.agents[i].control_level is not ControlLevel.OBSERVED for i in self.children.get(agent_id, set()) & self.live)

    def context(self, context_id: str) -> tuple[Sensitivity, NetworkMode]:
        """Return sensitivity and strictest mode of a session; a session without registered data is PUBLIC."""
        return self.contexts.get(context_id, (Sensitivity.PUBLIC, LOOSEST))

    def raise_context(self, context_id: str, level: Sensitivity, mode: NetworkMode) -> None:
        """Joins; never lowers (promise 4)."""
        had_level, had_mode = self.context(context_id)
        joined = level if level.level > had_level.level else had_level
        self.contexts[context_id] = (joined, stricter_mode(stricter_mode(had_mode, mode), self.modes.of(joined)))

    def words_for(self, agent: Agent) -> str:
        """The operator's own words on a network change, or nothing."""
        text = self.notice.replace("{mode}", agent.effective_mode).replace("{sensitivity}", agent.sensitivity)
        return f" {text}" if text else ""

    def put(self, agent: Agent) -> Agent:
        """Stores the agent and keeps the indexes true."""
        had = self.agents.get(agent.agent_id)
        if had is not None and had.dry_run == agent.dry_run and _PLACED(had) == _PLACED(agent):
            self.agents[agent.agent_id] = agent  # it used something, or did: no index holds that
            return agent
        agent = self.dry_run.kept(had, agent)
        if had is not None and had.parent_id is not None and had.parent_id != agent.parent_id:
            self.children[had.parent_id].discard(agent.agent_id)
        self.agents[agent.agent_id] = agent
        self.known_contexts.add(agent.context_id)
        self.lineages.of(agent)
        if agent.parent_id is not None:
            self.children.setdefault(agent.parent_id, set()).add(agent.agent_id)
        is_still = bool(agent.causes) or agent.state is AgentState.FROZEN or agent.state_reason.startswith(NOT_CONFIRMED)
        for index, is_in in (
            (self.live, agent.state.is_live),
            (self.held, agent.state.is_live and agent.control_level is not ControlLevel.OBSERVED),
            (self.stilled, is_still),
            (self.open_ends, agent.state is AgentState.LOST and agent.state_reason.startswith(OPEN_END)),
        ):
            if is_in:
                index.add(agent.agent_id)
            else:
                index.discard(agent.agent_id)
        return agent
