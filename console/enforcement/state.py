"""What the engine knows: agents, trees, contexts, the kill, approvals, budgets and dry runs. Pure look-ups; the engine alone changes it."""

from __future__ import annotations

from collections import deque
from collections.abc import Container
from dataclasses import dataclass, field, replace
from operator import attrgetter

from console.domain.agent import Agent, AgentId, AgentState, ProcessIdentity, Sighting
from console.domain.budget import UNCAPPED, Day, Limits, Reservation, Usage
from console.domain.calls.approval import TTL_S, WAITING_MAX, Approval, ApprovalState, AskedPart
from console.domain.calls.lineage import Mark
from console.domain.calls.permission import PermissionRequest, Verdict
from console.domain.calls.profile import ProfileTable
from console.domain.engine.dry_run import Release
from console.domain.engine.event import OPEN_END
from console.domain.ids import ControlLevel
from console.domain.ladder import Scope
from console.domain.network import LOOSEST, ModeMapping, NetworkMode, Sensitivity, stricter_mode
from console.enforcement.lineages import Lineages
from console.policy.scopes import Scope as Effect

TAKEN_MAX = 1000
LEFT_MAX = 500
_OVER = (AgentState.KILLED, AgentState.HALTED, AgentState.ENDED, AgentState.FAILED)


@dataclass(slots=True)
class Approvals:
    """What is open, who waits for it, and what was approved for whole sessions."""

    ttl_s: float = TTL_S
    waiting_max: int = WAITING_MAX
    by_id: dict[str, Approval] = field(default_factory=dict)
    waiters: dict[str, list[str]] = field(default_factory=dict)
    """Requests that wait for an approval, oldest first; none when their callers are gone."""
    kept: set[str] = field(default_factory=set)
    """Approvals that are on disk. Others are neither shown nor decided, because a crash would forget them."""
    grants: dict[tuple[str, str], str] = field(default_factory=dict)
    """(session, digest) -> approval."""
    taken: deque[Approval] = field(default_factory=lambda: deque(maxlen=TAKEN_MAX))
    """The last approvals that ended with their agents, as they were. A kill's evidence lists them as open."""
    opened: dict[str, deque[float]] = field(default_factory=dict)
    """When each tree asked lately (CLOCK_BOOTTIME seconds)."""

    def of_agent(self, agent_id: AgentId) -> list[Approval]:
        """Open ones of one agent, oldest first."""
        return [a for a in self.by_id.values() if a.agent_id == agent_id]

    def open_or_taken(self, agent_ids: Container[AgentId]) -> list[Approval]:
        """What these had open, or had until their end."""
        return [a for a in (*self.taken, *self.by_id.values()) if a.agent_id in agent_ids]

    def waiting_of_tree(self, root_id: AgentId) -> int:
        """How many requests of one tree wait."""
        return sum(a.root_id == root_id and a.state is ApprovalState.WAITING for a in self.by_id.values())


Node = tuple[str, str]
"""(scope, key): ``("tree", agent id)``, ``("session", context id)``, ``("project", folder)``, ``("day", YYYY-MM-DD)``."""
EVERY_DAY: Node = ("day", "")
"""Limits of a day hold for each one; usage is kept by date."""


@dataclass(slots=True)
class BudgetState:
    """Mutable; part of the engine's state. Usage of trees is in ``EngineState.tree_usage``, at every node of a tree."""

    limits: dict[Node, Limits] = field(default_factory=dict)
    """Set by an operator: sessions, projects, ``EVERY_DAY``, agent types."""
    defaults: dict[str, Limits] = field(default_factory=dict)
    """By scope, from the settings; ``type:NAME`` for an agent type."""
    spent: dict[Node, Usage] = field(default_factory=dict)
    """Sessions, projects and days."""
    held: dict[Node, Usage] = field(default_factory=dict)
    """Set aside, at every node that will be charged, ``("agent", id)`` included."""
    reservations: dict[str, Reservation] = field(default_factory=dict)
    held_at: dict[str, tuple[Node, ...]] = field(default_factory=dict)
    """By reservation: where it is set aside, so that exactly that is given back."""
    warned: dict[Node, dict[str, int]] = field(default_factory=dict)
    """The highest mark (75, 90, 100) that was said of each limit."""
    denied: set[tuple[AgentId, str]] = field(default_factory=set)
    """Reservations refused for want of room are recorded once for each agent and limit."""
    worked: dict[AgentId, float] = field(default_factory=dict)
    """CLOCK_BOOTTIME of an agent's last sign of work."""
    metered: set[AgentId] = field(default_factory=set)
    """Metered from transcripts, after the fact."""
    day: Day = field(default_factory=Day)
    turned: tuple[float, float, str] = (0.0, 0.0, "")
    """The moment (both clocks, which boot) for which the day was looked at last."""
    boot_id: str = ""
    """Of which boot of the machine CLOCK_BOOTTIME is."""
    ticked: float = 0.0
    """CLOCK_BOOTTIME of the last tick."""
    kept_boot: float = 0.0
    """When wall time of sessions, projects and days was last kept."""
    observed_said: set[AgentId] = field(default_factory=set)
    """Observed agents beyond a limit: said once."""
    day_over: set[AgentId] = field(default_factory=set)
    """Those of the day that has ended, whose rows still say so."""

    def of(self, scope: str, key: str) -> Limits:
        """The limits of a session, a project or the day: as set, else as the settings say."""
        default = self.defaults.get(scope, UNCAPPED)
        return self.limits.get((scope, "" if scope == "day" else key), default)


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
    ended_parts: dict[AgentId, tuple[tuple[str, Usage], ...]] = field(default_factory=dict)
    """``Seen.parts`` of agents that have ended, the latest last."""
    press_observed: set[AgentId] = field(default_factory=set)
    """Observed agents that a press of everything signals as well, as a best effort."""
    kill_observed: set[AgentId] = field(default_factory=set)
    """Observed agents that a kill signals when it names them, as a best effort."""
    can_adopt: bool = True
    """Whether the guard has a cgroup for an agent that is only seen, as of its last answer."""
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
    restored_rows: dict[ProcessIdentity, AgentId] = field(default_factory=dict)
    """The process of each observed agent that ran when the supervisor before this one ended -> its row."""
    left: dict[ProcessIdentity, None] = field(default_factory=dict)
    """The first processes of adopted agents that have ended, the latest last. A look from just before may still tell of them."""
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
        if agent.control_level is ControlLevel.ADOPTED and agent.state in _OVER and agent.process is not None:
            self.left[agent.process] = None
            if len(self.left) > LEFT_MAX:
                del self.left[next(iter(self.left))]
        return agent
