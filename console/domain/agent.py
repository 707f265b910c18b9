"""Agents as values: identity, control level, state, what a source saw, what a launch asks for."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NewType

from console.domain.budget import UNCAPPED, Halt, Limits, Usage
from console.domain.errors import UsageProblem
from console.domain.ids import AGENT_ID, CONTEXT_ID, ControlLevel
from console.domain.network import LOOSEST, STRICTEST, NetworkMode, Sensitivity
from console.domain.process.environment import check_agent_type

AgentId = NewType("AgentId", str)
ContextId = NewType("ContextId", str)


def check_context_id(context_id: str) -> None:
    """Raises UsageProblem unless it is a session's id: nothing else ever becomes part of a path."""
    if not CONTEXT_ID.match(context_id):
        raise UsageProblem(f"Context id {context_id[:80]!r} is not valid.", "Use a-z, 0-9 and -, 1 to 63 characters.")


class AgentState(StrEnum):
    """The state a person sees. ALIVE_AFTER_KILL is killed without proof that it is dead: "not confirmed" on the screen."""

    STARTING = "starting"
    RUNNING = "running"
    WAITING = "waiting"
    NEEDS_OK = "needs_ok"
    FROZEN = "frozen"
    OVER_BUDGET = "over_budget"
    """Being halted by a budget; ends as HALTED once zero is proven."""
    HALTED = "halted"
    """Killed by a budget, verified."""
    KILLED = "killed"
    """Killed by a person or a remote order, verified."""
    ALIVE_AFTER_KILL = "alive_after_kill"
    """Killed but not proven: dying, not proven or best effort."""
    ENDED = "ended"
    FAILED = "failed"
    LOST = "lost"
    """Was running when the supervisor went away and is not there any more."""

    @property
    def is_live(self) -> bool:
        """Whether something may still run."""
        return self in (self.STARTING, self.RUNNING, self.WAITING, self.NEEDS_OK, self.FROZEN, self.OVER_BUDGET, self.ALIVE_AFTER_KILL)


class SandboxKind(StrEnum):
    """What ``--sandbox`` takes."""

    NONE = "none"
    BUBBLEWRAP = "bubblewrap"
    DOCKER = "docker"
    GVISOR = "gvisor"


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """A process that pid reuse cannot confuse."""

    pid: int
    start_ticks: int
    """Field 22 of /proc/PID/stat (proc(5)), in clock ticks since boot."""


@dataclass(frozen=True, slots=True)
class LaunchRequest:
    """What a person or a parent agent asks to start."""

    argv: tuple[str, ...]
    name: str = ""
    parent_id: AgentId | None = None
    context_id: ContextId | None = None
    sandbox: SandboxKind = SandboxKind.NONE
    sensitivity: Sensitivity = Sensitivity.PUBLIC
    network_mode: NetworkMode | None = None
    """Stricter than the sensitivity asks for, or None."""
    limits: Limits = field(default_factory=Limits)
    tree_limits: Limits = field(default_factory=Limits)
    """Caps of the whole tree; only for a root agent."""
    env: tuple[tuple[str, str], ...] = ()
    """Extra variables asked for; judged by the environment allowlist."""
    agent_type: str = ""
    """Which kind of agent it is, by an operator's word: what is configured per type follows from it. Children have their parent's."""
    project: str = ""
    """Whose budget it is charged to besides its session's; empty: its session's id. Children have their parent's."""
    scopes: tuple[str, ...] | None = None
    """Kinds of effects it is granted at birth; None: what its parent has, or for a root what the options say."""
    dangerous_ok: str = ""
    """Why an operator starts it although its words name dangerous operations; empty: not confirmed."""
    dry_run: bool = False
    """It starts in dry-run; a child of one that is in dry-run does in any case."""
    unmeasured: bool = False
    """A limit on cost is accepted though nothing measures what it spends."""

    def check(self) -> None:
        """Raises UsageProblem that names the field."""
        if not self.argv or not self.argv[0]:
            raise UsageProblem("There is no command to run.", "Put it behind --, for example: watchfloor run -- python3 agent.py")
        if len(self.argv) > 1000 or sum(len(a) for a in self.argv) > 100_000:
            raise UsageProblem("The command line is too long (100,000 characters, 1,000 words).", "Put the input into a file.")
        if any("\0" in a for a in self.argv):
            raise UsageProblem("The command line contains a NUL character.", "Remove it.")
        if len(self.name) > 200:
            raise UsageProblem("The name is longer than 200 characters.", "Shorten it.")
        check_agent_type(self.agent_type)
        if len(self.project) > 400 or not all(x.isprintable() for x in self.project):
            raise UsageProblem("A project is a folder or a name, at most 400 printable characters.", "Name another with --project.")
        if self.context_id is not None and not CONTEXT_ID.match(self.context_id):
            raise UsageProblem(f"Context id {self.context_id[:80]!r} is not valid.", "Use a-z, 0-9 and -, 1 to 63 characters.")
        if self.parent_id is not None and not AGENT_ID.match(self.parent_id):
            raise UsageProblem(f"Parent id {self.parent_id[:80]!r} is not an agent id.", "watchfloor fleet lists the ids.")


@dataclass(frozen=True)
class Agent:
    """One agent as the engine knows it. Immutable facts first, then what changes (through ``dataclasses.replace`` or ``changed``)."""

    # Without slots, so that ``changed`` is one copy: a busy agent is copied a hundred times a second.

    agent_id: AgentId
    name: str
    """As given; hostile. Every view passes it through its own escaping."""
    parent_id: AgentId | None
    root_id: AgentId
    depth: int
    """1 for a root agent; fixed at birth."""
    context_id: ContextId
    control_level: ControlLevel
    sandbox: SandboxKind
    started_at: float
    """Seconds since the epoch, for people; wall time is metered on CLOCK_BOOTTIME."""
    argv: tuple[str, ...] = ()
    limits: Limits = UNCAPPED
    tree_limits: Limits = UNCAPPED
    state: AgentState = AgentState.STARTING
    state_reason: str = ""
    usage: Usage = field(default_factory=Usage)
    sensitivity: Sensitivity = Sensitivity.PUBLIC
    network_mode: NetworkMode = LOOSEST
    network_enforced: bool = False
    """False: shown as FULL, *not enforced*, whatever was asked."""
    network_note: str = ""
    isolated: str = ""
    """Which operator cut its network and why; empty: not isolated. Unlike the ratchet, this can be undone."""
    cut_off: bool = False
    """It was started while isolated, in a sandbox that has no network to give back."""
    process: ProcessIdentity | None = None
    container_id: str = ""
    cwd: str = ""
    source: str = "watchfloor"
    """Which source saw it: watchfloor, docker, processes, or an agent kind's own."""
    causes: tuple[str, ...] = ()
    """Why it is frozen; empty: it runs."""
    last_action: str = ""
    last_action_at: float = 0.0
    ended_at: float | None = None
    exit_code: int | None = None
    network_why: str = ""
    """Why its network mode is what it is; hostile where a reason was typed. Empty: not known (kept by an older version)."""
    network_since: float = 0.0
    """Since when, in seconds since the epoch; 0: not known."""
    project: str = ""
    """What it is charged to besides its session: a word of the operator's, or the folder it works in; hostile. Empty: its session."""
    halt: Halt | None = None
    """The budget that halted it, and how far it had come by then; None: none did."""
    scopes: tuple[str, ...] | None = None
    """Kinds of effects it was granted at birth, sorted; None: started before that was kept, nothing is taken from it."""
    dry_run: str = ""
    """Which operator put it into dry-run and why, or which parent is in dry-run (hostile: a reason was typed). Empty: not by its own
    row."""

    def changed(self, **fields: Any) -> Agent:
        """As ``dataclasses.replace``, ten times as fast. Raises TypeError for a name that is no field."""
        if not self.__dict__.keys() >= fields.keys():
            raise TypeError(f"an agent has no {', '.join(sorted(fields.keys() - self.__dict__.keys()))}")
        new = object.__new__(Agent)
        new.__dict__.update(self.__dict__, **fields)
        return new

    @property
    def charged_project(self) -> str:
        """The project it is charged to: its session, unless another is named."""
        return self.project or str(self.context_id)

    @property
    def effective_mode(self) -> NetworkMode:
        """What it may reach now: nothing while isolated, else what the ratchet leaves."""
        return STRICTEST if self.isolated or self.cut_off else self.network_mode


@dataclass(frozen=True, slots=True)
class Sighting:
    """What a source saw of an agent at a moment. Nothing in it decides who is signalled."""

    source: str
    key: str
    """Stable within the source: session id, container id, pid:start."""
    name: str
    process: ProcessIdentity | None
    session: str
    cwd: str
    seen_at: float = field(compare=False)
    parent_key: str | None = None
    container_id: str = ""
    status: str = ""
    detail: str = ""
    """What the source can and cannot see or stop, in its own words."""
    usage: Usage | None = None
    """What it used so far by its own transcript, metered after the fact; None: not known."""
    action: str = ""
    """What it said last of itself, or empty."""
    agent_id: str = ""
    """Which agent of ours its process belongs to, by the kernel's word (cgroup, container), never by a file's; empty: none."""
    model: str = ""
    """The model of its last answer, as its transcript says."""
    unpriced: int = 0
    """Answers whose cost is not known."""
    unread: str = ""
    """Why nothing reads what it spends, or empty: the source reads it, or says that it is unpriced."""
    unlinked: str = ""
    """Why it is shown without a parent though it says that it has one, or empty."""
    project: str = ""
    """The root of the working tree (git) that its folder is in; empty: the folder itself."""
    part: str = ""
    """The program's own id of a part of its session (a sub-agent); empty: the session itself."""


@dataclass(frozen=True, slots=True)
class SourceReport:
    """One look of one source: what it saw, or why it could not look (a skip is a value with a reason)."""

    source: str
    available: bool
    reason: str
    """Why not available, or where it looks."""
    sightings: tuple[Sighting, ...] = ()
    broken: bool = False
    """Not available although the settings ask for it: a person must repair it."""
