"""Messages on operator.sock and the agent sockets. Unknown keys from a newer peer are ignored on reading views."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from msgspec import Meta, field

from console.api.alerts import AlertsView
from console.api.armed import ArmedView, PathView
from console.api.environment import EnvironmentView
from console.api.installing import InstallingView
from console.api.message import SCHEMA_VERSION, Id, Name, Reason, Request, View
from console.api.rearm import RearmProof
from console.api.start import StartBody
from console.domain.message import Malformed, parsed

# --- fleet -----------------------------------------------------------------------------------------------------------


class AgentView(View, kw_only=True):
    """One agent. Text fields are hostile: every view escapes them."""

    id: str
    parent_id: str | None = None
    depth: int = 1
    name: str = ""
    session: str = ""
    control_level: str = "observed"
    best_effort: str = ""
    """Why a stop of it cannot be proven; empty: it can."""
    sandbox: str = "none"
    profile: str = "strict"
    """The rules that judge its calls: strict, coding, observe, or own (an operator's policy.json)."""
    profile_note: str = ""
    """"rules only, not contained", or that no tool call is blocked; amber. Empty: nothing to say."""
    network_mode: str = "FULL"
    network_enforced: bool = False
    network_note: str = ""
    isolated: str = ""
    """Which operator cut its network and why, or empty. ``reconnect`` takes it back."""
    sensitivity: str = "PUBLIC"
    state: str = "running"
    state_reason: str = ""
    causes: list[str] = []
    cost_usd: float | None = 0.0
    """None: not known, see ``cost_unknown``; never shown as zero."""
    cost_unknown: str = ""
    """Why the cost is not known (no source reads it, or its answers have no price), or empty."""
    usage: dict[str, float] = {}
    """By name. A cost that is not known is not in it, here and in ``tree_usage``."""
    limits: dict[str, float | None] = {}
    tree_usage: dict[str, float] = {}
    tree_limits: dict[str, float | None] = {}
    budget_share: float = 0.0
    """Largest share of any cap used, own or tree; 1.0 is at the cap."""
    burn_usd_per_h: float = 0.0
    burn: list[float] = []
    """Spend in USD in each of the last up to 24 slices of 12.5 s (5 min), oldest first."""
    pids: int = 0
    pid: int | None = None
    container_id: str = ""
    cwd: str = ""
    source: str = "watchfloor"
    started_at: float = 0.0
    ended_at: float | None = None
    exit_code: int | None = None
    last_action: str = ""
    last_action_at: float = 0.0
    children_live: int = 0
    network_asked: str = ""
    network_why: str = ""
    network_since: float = 0.0
    """Its mode as it was asked for, enforced or not; why (hostile); since when, 0: not known."""
    program: str = ""
    """The program that it was started as, by ``run --agent``; empty: another command, or not started here."""
    seen_by: list[str] = []
    """Sources that see it now, the one that knows most first; one agent is one row, however many see it."""
    seen_session: str = ""
    """The session's id in the program's own files, or empty (hostile)."""
    seen_status: str = ""
    """What the program says of itself, for example ``busy`` or ``waiting: permission prompt`` (hostile)."""
    model: str = ""
    """The model of its last answer, by its transcript (hostile)."""
    unpriced: int = 0
    """Answers of its own whose cost is not known: with 0 USD its cost reads "unpriced", never $0.00."""
    tree_unpriced: int = 0
    unlinked: str = ""
    """Why it is not shown below the parent that it says it has, or empty."""
    project: str = ""
    """What it is charged to besides its session: a folder or an operator's word (hostile)."""
    scopes: list[str] | None = None
    """Kinds of effects it was granted at birth; None: nothing is kept about it."""
    taints: list[str] = []
    """Steps of forbidden sequences that its lineage has taken, in words (hostile): never taken back."""
    metered: str = ""
    """How its usage is known. ``after the fact``: from transcripts, so it may pass a limit by the answers in flight. ``by telemetry``: from
    telemetry alone, and no limit counts it. Empty: the agent reports it."""
    overshoot: float | None = None
    """How far it had passed the limit of ``overshoot_limit`` when its end was confirmed; None: not halted by a budget, or not confirmed
    yet."""
    overshoot_limit: str = ""
    dry_run: str = ""
    """Which operator put it into dry-run and why, or which parent is in dry-run (hostile). Empty: its allowed calls are executed."""


class FleetView(View, kw_only=True):
    """Answer of GET /api/fleet."""

    schema_version: int = SCHEMA_VERSION
    killed: bool = False
    kill_reason: str = ""
    agents: list[AgentView] = []
    spend_today_usd: float = 0.0
    spend_unknown: int = 0
    """Agents that ran today and whose spend is not known: it is not in ``spend_today_usd``."""
    burn_usd_per_h: float = 0.0
    seq: int = 0
    """Sequence number of the delta stream this snapshot is whole up to."""


class AgentEventView(View, kw_only=True):
    """One line of an agent's recent events."""

    at: float
    kind: str
    text: str


class EgressView(View, kw_only=True):
    """One request through Envoy."""

    at: float
    agent_id: str
    agent_name: str = ""
    method: str
    host: str
    path: str
    status: int
    bytes_up: int = 0
    bytes_down: int = 0
    allowed: bool
    rule: str = ""
    sensitivity: str = ""
    """The class of the data in its agent's session now; empty: not known."""


class HardeningView(View, kw_only=True):
    """One measure of a sandbox as it was read back from inside or from the engine."""

    name: str
    state: Literal["given", "not_available", "missing", "unknown"] = "unknown"
    words: str = ""
    line: str = ""
    """For a person: ``read-only root: not available, because ...``."""


class AgentDetailView(View, kw_only=True):
    """Answer of GET /api/agents/{id}."""

    schema_version: int = SCHEMA_VERSION
    agent: AgentView
    argv: list[str] = []
    events: list[AgentEventView] = []
    egress: list[EgressView] = []
    cost_per_minute: list[float] = []
    """USD in each of the last 60 minutes, oldest first."""
    can: dict[str, str] = {}
    """Action (freeze, thaw, isolate, reconnect, kill, say, interrupt, end) -> "" when possible, else why not."""
    environment: EnvironmentView | None = None
    hardening: list[HardeningView] = []
    """What its sandbox is made of, measure by measure; empty: not known."""
    hook: str = ""
    """Whether its tool calls are checked before they happen, as far as was seen (``enforced: ...``). Empty: its kind promises no check."""


class LaunchBody(StartBody, kw_only=True):
    """POST /api/agents; the agent routes' POST /v1/spawn takes the same without parent_id."""

    argv: Annotated[list[str], Meta(min_length=1, max_length=1000)]
    parent_id: Id | None = None
    wait_output: bool = False
    dangerous_ok: Annotated[str, Meta(max_length=500)] = ""
    """An operator's reason to start it though its words name dangerous operations (428 without); agents have no use for it."""


class LaunchedView(View, kw_only=True):
    """Answer of a launch, once it runs."""

    schema_version: int = SCHEMA_VERSION
    id: str
    control_level: str
    network_mode: str
    network_enforced: bool
    notes: list[str] = []
    not_begun: str = ""
    """Why its program could not be executed: it has failed, and nothing of it runs. Hostile text. Not looked at with ``wait_output``."""


class ActBody(Request, kw_only=True):
    """POST /api/agents/{id}/freeze | thaw | isolate | reconnect | kill."""

    tree: bool = False
    reason: Annotated[str, Meta(max_length=500)] = ""


class ActView(View, kw_only=True):
    """Answer of freeze, thaw, isolate and reconnect."""

    schema_version: int = SCHEMA_VERSION
    agents: list[str] = []
    """Done, and verified."""
    failed: dict[str, str] = {}
    """Tried, and not verified: why."""
    excluded: dict[str, str] = {}
    """Left alone: why."""
    notes: list[str] = []
    """What else a person should know."""


class OutputView(View, kw_only=True):
    """GET /api/agents/{id}/output?offset=N: what the agent wrote from that byte on (undecodable bytes escaped). Hostile text."""

    schema_version: int = SCHEMA_VERSION
    text: str = ""
    offset: int = 0
    """Where to go on reading, in bytes."""
    total: int = 0
    """Bytes there are."""
    live: bool = True
    state: str = ""
    exit_code: int | None = None


class DoneView(View, kw_only=True):
    """Answer of what has nothing more to show (POST /api/shutdown)."""

    schema_version: int = SCHEMA_VERSION
    ending: bool = False


class RawView(View, kw_only=True):
    """A JSON object as it came: receipts (``console.domain.kill.Receipt.as_json``)."""

    root: dict[str, Any]

    @classmethod
    def read_json(cls, raw: bytes | str) -> Self:
        """Any JSON object. Raises Malformed."""
        if not isinstance(data := parsed(raw), dict):
            raise Malformed((), "Input should be an object")
        return cls(root=data)


# --- kill switch ------------------------------------------------------------------------------------------------------


class KillSwitchBody(Request, kw_only=True):
    """POST /api/kill-switch. activate: kill everything; rearm: release a local kill."""

    action: Literal["activate", "rearm"]
    reason: Reason
    scope: Literal["all"] = "all"
    kill_id: Annotated[str, Meta(max_length=64)] = ""
    """Rearm from the console names the kill it releases (typed by the operator)."""
    proof: RearmProof | None = None


class HostView(View, kw_only=True):
    """Another host's answer to a remote kill."""

    host: str
    acknowledged: bool
    verified_zero: bool | None = None
    exit_code: int | None = None
    short: str = ""
    """What its receipt amounts to, decided here again; empty when it cannot be read."""
    survivors: int | None = None
    at: float | None = None
    detail: str = ""


class ReceiptRow(View, kw_only=True):
    """One line of the list of receipts. ``proven_ms``: until its last agent was confirmed dead; ``ms_total``: until its last step."""

    kill_id: str
    pressed_at: float
    scope: str
    reason: str
    by: str
    verified_zero: bool
    complete: bool
    proven: int
    targets: int
    best_effort: int
    ms_total: float
    proven_ms: float | None = None
    exit_code: int
    headline: str = ""
    short: str = ""
    """The headline in about forty letters."""
    bad_steps: list[str] = []


class KillSwitchView(View, kw_only=True):
    """GET /api/kill-switch: the state, the paths, what a press will do now."""

    schema_version: int = SCHEMA_VERSION
    state: Literal["armed", "in_doubt", "killing", "killed"]
    killed: bool
    kill_id: str = ""
    reason: str = ""
    by: str = ""
    since: float | None = None
    soft_stop: str = ""
    """Why agents are soft-stopped, or empty."""
    remote_latched: list[str] = []
    """Remote orders (generation:sha256) latched; rearm is refused while any is."""
    worst_s: float | None = None
    paths: list[PathView] = []
    press: dict[str, dict[str, int]] = {}
    """control level -> {agents, processes}, and ``left_alone`` for agents that a panic does not stop."""
    receipts: list[ReceiptRow] = []
    hosts: list[HostView] = []
    mode_note: str = ""
    """User mode's *best effort* and why, or empty."""
    passphrase: str = "unknown"
    """Whether one is set for rearm: set, not_set, broken, unknown."""
    rearm_note: str = ""
    """Answer of a rearm: the amber note on how it was allowed, or empty."""


class ReceiptsView(View, kw_only=True):
    """GET /api/receipts, newest first. GET /api/receipts/{id} answers ``Receipt.as_json()``."""

    schema_version: int = SCHEMA_VERSION
    receipts: list[ReceiptRow] = []


# --- network ----------------------------------------------------------------------------------------------------------


class MarkView(View, kw_only=True):
    """Something about an entry that its reviewer should see (console/policy/review/allowlist_review.py)."""

    kind: str
    words: str
    danger: bool = False


class AllowlistEntryView(View, kw_only=True):
    """One entry with how it was used, and what a reviewer should see."""

    entry_id: str
    host: str
    port: int = 443
    methods: list[str] = []
    paths: list[str] = []
    reason: str = ""
    owner: str = ""
    review_by: str = ""
    may_receive: str = "INTERNAL"
    private_networks: list[str] = []
    last_used: float | None = None
    hits_7d: int = 0
    marks: list[MarkView] = []


class AllowlistView(View, kw_only=True):
    """GET /api/allowlist."""

    schema_version: int = SCHEMA_VERSION
    version: int = 0
    entries: list[AllowlistEntryView] = []
    envoy: Literal["healthy", "starting", "failed", "unavailable"] = "unavailable"
    envoy_detail: str = ""
    sandboxes: int = 0


class AllowlistEntryBody(Request, kw_only=True):
    """POST /api/allowlist (new), PUT /api/allowlist/{entry_id} (change)."""

    host: Annotated[str, Meta(max_length=260)]
    port: Annotated[int, Meta(ge=1, le=65535)] = 443
    methods: Annotated[list[str], Meta(max_length=10)] = []
    paths: Annotated[list[str], Meta(max_length=50)] = []
    reason: Annotated[str, Meta(max_length=500)]
    owner: Annotated[str, Meta(max_length=100)]
    review_by: Annotated[str, Meta(max_length=10)] = ""
    may_receive: Literal["PUBLIC", "INTERNAL", "CONFIDENTIAL", "SECRET"] = "INTERNAL"
    private_networks: Annotated[list[str], Meta(max_length=20)] = []
    base_version: int | None = None
    """The version the editor looked at; a newer one answers 409."""


class AllowlistChangedView(View, kw_only=True):
    """Answer of a change: validated by Envoy, applied, in how many ms."""

    schema_version: int = SCHEMA_VERSION
    version: int
    entry_id: str
    validated_ms: float
    applied_ms: float
    sandboxes: int
    words: str
    """One sentence for the person."""


class UrlTestBody(Request, kw_only=True):
    """POST /api/allowlist/test; ``entry`` tests a draft beside the live list, or in the place of entry ``replaces``."""

    url: Annotated[str, Meta(max_length=2000)]
    method: Annotated[str, Meta(max_length=10)] = "GET"
    entry: AllowlistEntryBody | None = None
    replaces: Annotated[str, Meta(max_length=64)] | None = None
    validate_with_envoy: bool = False


class UrlTestView(View, kw_only=True):
    """Whether an agent in PROXIED mode would reach it."""

    schema_version: int = SCHEMA_VERSION
    allowed: bool
    entry_id: str | None = None
    reason: str
    envoy_valid: bool | None = None
    envoy_words: str = ""
    marks: list[MarkView] = []
    """What a reviewer should see of ``entry`` before it is saved."""


class EgressPage(View, kw_only=True):
    """GET /api/egress?limit=N&agent=ID, newest first; without an agent those of all."""

    schema_version: int = SCHEMA_VERSION
    egress: list[EgressView] = []


# --- status, errors, deltas ---------------------------------------------------------------------------------------------


class SourceView(View, kw_only=True):
    """One source of sightings."""

    source: str
    available: bool
    reason: str
    sees: int = 0
    can_see: str = ""
    can_stop: str = ""
    """What it can see of an agent, and what can be stopped of what it sees, in its own words; each says what it cannot."""
    state: str = ""
    """``watching`` (notified of changes at once), ``polling`` (looks about once a second), ``listening`` (gets reports), ``broken``,
    ``silent`` or ``absent``."""
    watching: str = ""
    """How it learns of changes, and why not at once."""
    looks_in: list[str] = []
    looked_at: float = 0.0
    """When its last look ended, seconds since the epoch; 0: never."""


class StatusView(View, kw_only=True):
    """GET /api/status."""

    schema_version: int = SCHEMA_VERSION
    instance: str
    host: str
    version: str
    state_dir: str
    mode: Literal["system", "user", "root"]
    mode_note: str = ""
    killed: bool
    soft_stop: str = ""
    profiles: dict[str, str] = {}
    """Profiles that an operator chose, by type of agent."""
    pid: int
    guard_pid: int | None = None
    guard_ok: bool = False
    guard_detail: str = ""
    stand_ins: list[str] = []
    """Every part that is a stand-in (the demo's bucket), wherever it shows."""
    sources: list[SourceView] = []
    engines: dict[str, str] = {}
    """Engine or tool -> "" when it works, else "not available, because ...". """
    audit_records: int = 0
    audit_whole: bool | None = None
    audit_why: str = ""
    audit_lost: bool = False
    """Records of before are lost, and no operator acknowledged it yet: POST /api/audit/acknowledge."""
    audit_checked_at: float | None = None
    audit_verified: int | None = None
    """Up to which record the log was verified then; None: it was not."""
    operator: str = ""
    configuration: str = ""
    """What is wrong with the files of the settings, or what of them takes effect at the next start; empty: nothing."""
    your_roles: list[str] = []
    """Of the caller on the host's instance; empty for the instance's own account and for root, who may everything."""
    your_rights: list[str] | None = None
    """What the caller may do (domain/roles). None: a supervisor of before, where every caller may everything."""
    notices: list[str] = []
    armed: ArmedView | None = None
    """The armed light, path by path."""
    alerts: AlertsView = field(default_factory=AlertsView)
    installing: InstallingView | None = None


class ErrorView(View, kw_only=True):
    """Every refusal: what is wrong, what to do, the documented exit code."""

    schema_version: int = SCHEMA_VERSION
    error: str
    remedy: str = ""
    exit_code: int = 1


class Delta(View, kw_only=True):
    """One SSE message on GET /api/events (``id`` is seq, ``event`` is kind).

    Kinds:

    * ``agents`` {upsert: [AgentView], patch: [[id, changed fields]], remove: [id], spend_today_usd, burn_usd_per_h}. An agent is sent
      whole once, then only what changed: api/agents/fleet_changes.py.
    * ``kill`` {state, receipt}
    * ``egress`` EgressView
    * ``audit`` {newest, total}
    * ``allowlist`` {version}
    * ``rollback`` {record_id, state}
    * ``status`` StatusView
    * ``notice`` {level: info|amber|red, text}; ``alert`` AlertView

    A client whose ``Last-Event-ID`` is too old gets ``resync`` and reads the fleet again.
    """

    seq: int
    kind: str
    data: dict[str, Any]


# --- agent routes -------------------------------------------------------------------------------------------------------


class UsageBody(Request, kw_only=True):
    """POST /v1/usage: increments since the last report; judged field by field (NaN, negatives refused)."""

    iterations: Any = 0
    tokens: Any = 0
    tool_calls: Any = 0
    cost_usd: Any = 0.0
    errors: Any = 0
    """Steps that failed; a report without any ends a row of errors."""
    totals: bool = False
    """The numbers are totals since the agent began; one that is lower than before is refused and recorded."""
    action: Annotated[str, Meta(max_length=500)] = ""


class PermissionBody(Request, kw_only=True):
    """POST /v1/permission."""

    tool: Annotated[str, Meta(max_length=100)]
    argument: Annotated[str, Meta(max_length=65536)] = ""
    cwd: Annotated[str, Meta(max_length=4096)] = ""
    detail: Annotated[str, Meta(max_length=262144)] = ""
    """The whole input as canonical JSON; an approval is bound to it too."""
    says: Annotated[str, Meta(max_length=2000)] = ""
    call_id: Annotated[str, Meta(max_length=200)] = ""


class PermissionView(View, kw_only=True):
    """The verdict. Only ``allow`` means go ahead."""

    schema_version: int = SCHEMA_VERSION
    verdict: Literal["allow", "deny", "ask"]
    rule: str
    reason: str
    rollback_id: str | None = None
    notices: str = ""
    """What the agent should read now; empty with ``ask``, which is not the last answer to this call."""


class PrivateDataBody(Request, kw_only=True):
    """POST /v1/private-data: data of this sensitivity is about to enter the session."""

    dataset: Name
    sensitivity: Any
    """An unknown value reads as SECRET."""
    source: Name = ""


class NoticesView(View, kw_only=True):
    """GET /v1/notices?after=N: what the agent is told (mode changes, freezes, budget warnings)."""

    schema_version: int = SCHEMA_VERSION
    notices: list[AgentEventView] = []
    next: int = 0
