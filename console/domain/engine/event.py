"""Events: everything that happened, in the past tense. Clock and ids come in with them; the engine has neither.

An agent that was gone when a supervisor started, and whose end is not confirmed yet, has values of its own here.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from console.domain.agent import Agent, AgentId, LaunchRequest, ProcessIdentity, SourceReport
from console.domain.budget import KeptBudget, Limits, Reservation, Usage
from console.domain.calls.approval import Approval, ApprovalScope, AskedPart, Grant
from console.domain.calls.lineage import Mark, Match
from console.domain.calls.permission import Decision, PermissionRequest
from console.domain.ids import ControlLevel
from console.domain.kill import Receipt
from console.domain.ladder import Scope
from console.domain.network import NetworkMode, Sensitivity


@dataclass(frozen=True, slots=True)
class Event:
    """``at``: seconds since the epoch, for people. ``boot_s``: CLOCK_BOOTTIME in seconds, for metering."""

    at: float
    boot_s: float


@dataclass(frozen=True, slots=True)
class LaunchAsked(Event):
    """A new agent was asked for. ``agent_id`` is fresh; ``by`` is ``operator:UID``, ``operator:UID/login:UID`` or ``agent:ID``."""

    agent_id: AgentId
    request: LaunchRequest
    by: str


@dataclass(frozen=True, slots=True)
class LaunchConfirmed(Event):
    """The guard confirmed the ticket and the agent's own code runs."""

    agent_id: AgentId
    process: ProcessIdentity | None
    container_id: str
    control_level: ControlLevel
    network_enforced: bool
    network_note: str


@dataclass(frozen=True, slots=True)
class LaunchBroke(Event):
    """The launch did not happen; nothing of it runs."""

    agent_id: AgentId
    why: str


@dataclass(frozen=True, slots=True)
class AgentExited(Event):
    """The agent's first process is gone. ``exit_code`` None: not known (a supervisor restart lay between)."""

    agent_id: AgentId
    exit_code: int | None
    why: str = ""
    """Which limit of ours ended it (``memory limit 256 MiB``); empty: none."""


@dataclass(frozen=True, slots=True)
class ProcessorUsed(Event):
    """Processor time of everything an agent ran so far, in seconds, as its cgroup counts it."""

    agent_id: AgentId
    cpu_s: float


@dataclass(frozen=True, slots=True)
class UsageReported(Event):
    """Increments reported on the agent's own socket, already checked one by one."""

    agent_id: AgentId
    iterations: int = 0
    tokens: int = 0
    tool_calls: int = 0
    cost_usd: float = 0.0
    action: str = ""
    errors: int | None = 0
    """Steps of it that failed; a report without any ends a row of errors. None: it says nothing of steps, the row stands."""


@dataclass(frozen=True, slots=True)
class ReservationAsked(Event):
    """An agent is about to make a gated call: what it may use is set aside, or it is told that there is no room."""

    reservation: Reservation


@dataclass(frozen=True, slots=True)
class ReservationSettled(Event):
    """The call is over; what it really used takes the place of what was set aside."""

    reservation_id: str
    used: Usage
    errors: int = 0


@dataclass(frozen=True, slots=True)
class LimitsChanged(Event):
    """An operator set the limits of a node. The caller records it: after a tightening took effect, before a loosening does."""

    scope: str
    """``agent tree session project day type``."""
    key: str
    limits: Limits
    by: str
    reason: str


@dataclass(frozen=True, slots=True)
class TranscriptsSummed(Event):
    """What everything on this host spent since local midnight, by transcripts: no less is charged to the day."""

    cost_usd: float


@dataclass(frozen=True, slots=True)
class UsageRefused(Event):
    """A report with NaN, negative, infinite or absurd numbers; recorded, never counted."""

    agent_id: AgentId
    why: str


@dataclass(frozen=True, slots=True)
class ClockTicked(Event):
    """Once a second: wall time is metered, caps are looked at."""


@dataclass(frozen=True, slots=True)
class PrivateDataRegistered(Event):
    """The ledger has committed the ratchet; ``level`` and ``mode`` are what now holds for the context."""

    agent_id: AgentId
    dataset: str
    source: str
    level: Sensitivity
    mode: NetworkMode


@dataclass(frozen=True, slots=True)
class Tightened(Event):
    """An operator made sessions stricter; the ledger has it. Nothing here can loosen anything."""

    agent_id: AgentId | None
    """Whose sessions are meant, with those of all it spawned by now; None: ``contexts`` alone."""
    contexts: tuple[str, ...]
    level: Sensitivity
    """PUBLIC: no data was registered."""
    mode: NetworkMode
    why: str
    """For people: who asked and why."""


@dataclass(frozen=True, slots=True)
class NetworkSwitched(Event):
    """What was really enforced after a switch, verified."""

    agent_id: AgentId
    mode: NetworkMode
    enforced: bool
    note: str
    ms: float | None = None
    """How long it took, until it was verified; None: not measured."""


@dataclass(frozen=True, slots=True)
class PermissionAsked(Event):
    """An agent asks before a tool call."""

    agent_id: AgentId
    request_id: str
    request: PermissionRequest


@dataclass(frozen=True, slots=True)
class CallJudged(Event):
    """The policy's verdict on a call that an agent asked about."""

    agent_id: AgentId
    request_id: str
    request: PermissionRequest
    decision: Decision
    parts: tuple[AskedPart, ...] = ()
    matches: tuple[Match, ...] = ()
    """Forbidden sequences of which it may be a step."""


@dataclass(frozen=True, slots=True)
class LineagesRestored(Event):
    """What lineages had done before this start, and what joins them."""

    marks: tuple[Mark, ...]
    links: tuple[tuple[str, ...], ...]
    """Nodes that belong together, agents that ended among them."""


@dataclass(frozen=True, slots=True)
class MarksKept(Event):
    """What a call takes of a forbidden sequence is on disk, its network tightened where that was asked for; or not."""

    agent_id: AgentId
    request_id: str
    request: PermissionRequest
    decision: Decision
    marks: tuple[Mark, ...]
    why_not: str = ""
    """Why the call must not go on; empty: it may."""


@dataclass(frozen=True, slots=True)
class ApprovalKept(Event):
    """A request that waits is on disk: from now on people see it."""

    approval_id: str


@dataclass(frozen=True, slots=True)
class ApprovalDecided(Event):
    """A human decided; the ledger has it."""

    approval_id: str
    digest: str
    approved: bool
    scope: ApprovalScope
    by: str
    words: str = ""


@dataclass(frozen=True, slots=True)
class ApprovalUsed(Event):
    """The ledger's word on a use of an approval: good and over now, or not good."""

    agent_id: AgentId
    approval_id: str
    request_id: str
    ok: bool
    why: str = ""


@dataclass(frozen=True, slots=True)
class ApprovalBroke(Event):
    """A request that should wait could not be written down."""

    approval_id: str
    why: str


@dataclass(frozen=True, slots=True)
class ApprovalsRestored(Event):
    """At start-up, after the agents: what was open in the ledger."""

    open: tuple[Approval, ...]
    grants: tuple[Grant, ...] = ()


@dataclass(frozen=True, slots=True)
class AskerLeft(Event):
    """The caller hung up before there was an answer."""

    request_id: str


@dataclass(frozen=True, slots=True)
class FrozenSetChanged(Event):
    """The guard's durable causes, as it reports them."""

    causes: dict[AgentId, tuple[str, ...]]
    unconfirmed: dict[AgentId, str] = field(default_factory=dict)
    """Who of them is not seen to be frozen yet, and why."""


@dataclass(frozen=True, slots=True)
class StopAsked(Event):
    """A stop of these is about to be pressed: nothing below them, and nothing in its scope, may start from now on."""

    agent_ids: tuple[AgentId, ...]
    scope: Scope | None = None
    """The session or host that is stopped; None: only the agents named."""


@dataclass(frozen=True, slots=True)
class StopOver(Event):
    """The stop is judged: launches are taken again in what was stopped."""

    scope: Scope | None
    agent_ids: tuple[AgentId, ...] = ()
    """Marked by ``StopAsked`` and never pressed: the stop did not come so far."""


@dataclass(frozen=True, slots=True)
class Isolated(Event):
    """An operator cuts the network of these agents, and of every agent that joins one of the sessions."""

    agent_ids: tuple[AgentId, ...]
    contexts: tuple[str, ...]
    """Sessions that are isolated as such."""
    by: str
    reason: str


@dataclass(frozen=True, slots=True)
class Reconnected(Event):
    """An operator takes an isolation back, on record already. The ratchet still holds."""

    agent_ids: tuple[AgentId, ...]
    contexts: tuple[str, ...]
    """Sessions that are no longer isolated as such."""
    by: str
    reason: str


@dataclass(frozen=True, slots=True)
class EgressChanged(Event):
    """What was really done to an agent's network after an isolation or a reconnection, verified."""

    agent_id: AgentId
    enforced: bool
    note: str


@dataclass(frozen=True, slots=True)
class KillStarted(Event):
    """A press reached the guard. ``agent_ids`` None: everything (latched)."""

    kill_id: str
    agent_ids: tuple[AgentId, ...] | None
    reason: str
    by: str


@dataclass(frozen=True, slots=True)
class KillJudged(Event):
    """The guard's receipt: who is proven zero and who is not."""

    receipt: Receipt
    seal_sha256: str = ""
    """SHA-256 of the sealed receipt; empty while it is not final, or when it could not be sealed."""


@dataclass(frozen=True, slots=True)
class Rearmed(Event):
    """The guard unlatched."""

    by: str
    reason: str
    kills: tuple[str, ...] = ()
    """The kills it released; one that is known and not among them was pressed since, and wins."""


@dataclass(frozen=True, slots=True)
class SoftStopChanged(Event):
    """The remote channel cannot be trusted (``why``), or can again ("")."""

    why: str


@dataclass(frozen=True, slots=True)
class Adopted(Event):
    """The guard moved an observed agent's process, and what descends from it, into a leaf of its own."""

    agent_id: AgentId
    process: ProcessIdentity
    moved: int
    best_effort: str
    """Why a kill of it cannot be proven; empty: it can."""
    by: str


@dataclass(frozen=True, slots=True)
class Sighted(Event):
    """One round of all sources."""

    reports: tuple[SourceReport, ...]


@dataclass(frozen=True, slots=True)
class Restored(Event):
    """Start-up: what the ledger held, and which of it still lives."""

    agents: tuple[Agent, ...]
    alive: frozenset[AgentId]
    contexts: dict[str, tuple[Sensitivity, NetworkMode]]
    killed: bool
    tombstone: str
    proven: frozenset[AgentId] = frozenset()
    """Whose end a receipt proves."""
    isolated: dict[str, str] = field(default_factory=dict)
    """Sessions that an operator isolated, and the words."""
    budget: KeptBudget = field(default_factory=KeptBudget)


OPEN_END = "whether it ended is not known"
"""How the reason of such an agent begins, also on disk: the next supervisor asks on. What follows says why."""
NOT_ANSWERED = f"{OPEN_END}: the guard has not answered yet; it is asked again"
STILL_RUNS = f"{OPEN_END}: the guard reports that a process of it still runs"
NOT_IN_RECORD = f"{OPEN_END}: the guard's record has none of it; a rearm takes a look at everything"
WENT = "gone while no supervisor ran"
STOPPED = "stopped, because no supervisor followed it after a restart"
LOOKED_OVER = f"{WENT}; before a rearm every process was checked, and none of it was found"


@dataclass(frozen=True, slots=True)
class EndsLearnt(Event):
    """What the guard said of agents whose end was open: reasons, each of them one of those above."""

    why: tuple[tuple[AgentId, str], ...]
