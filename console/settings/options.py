"""Watchfloor's own options as data: type, default and one sentence each. settings/layers.py joins it with the files."""

from __future__ import annotations

import json
import os
import re
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import msgspec
from msgspec import Meta

from console.domain.budget import parse_limit
from console.domain.conversation import Program
from console.domain.errors import ConsoleError
from console.domain.guard import RETURN_WATCH_S
from console.domain.message import Malformed, Message, parsed
from console.domain.process.durable import replace_file
from console.domain.process.environment import check_agent_type, checked_name, looks_secret
from console.domain.roles.rights import AGENTS_UID

_ADDRESS = re.compile(r"https?://[A-Za-z0-9\[]\S*\Z")
_SERVER = re.compile(r"(?!.*__)[A-Za-z0-9][A-Za-z0-9_-]{0,39}\Z")
ENGINE = "/var/run/docker.sock"
MODE = 0o644
"""Of files of settings: the guard of the host's own instance reads them under another account. Nothing in them is a secret."""
ScopeName = Literal[
    "READ_FS", "WRITE_FS", "DELETE_FS", "READ_DB", "WRITE_DB", "SEND_EMAIL", "CALL_API", "RUN_CODE", "SPEND_MONEY", "DEPLOY"
]


def _told(check: Callable[[str], object], word: str, field: str) -> None:
    """Raises Malformed for the field with what the check refuses of the word."""
    try:
        check(word)
    except ConsoleError as error:
        raise Malformed((field,), error.what.rstrip(".")) from error


class _Section(Message, forbid_unknown_fields=True):
    pass


class SpawnOptions(_Section):
    """Limits on agent trees."""

    max_depth: Annotated[int, Meta(ge=1, le=20, description="Deepest level of a tree; a root agent has depth 1.")] = 3
    max_children: Annotated[int, Meta(ge=0, le=1000, description="Active children of one agent.")] = 6


class AgentOptions(_Section):
    """How agents are started."""

    uid: Annotated[int, Meta(ge=1, description="User id of agents when Watchfloor runs as root; never 0.")] = AGENTS_UID
    gid: Annotated[int, Meta(ge=1, description="Group id of agents when Watchfloor runs as root; never 0.")] = AGENTS_UID
    pids_max: Annotated[int, Meta(ge=4, description="Most processes of one agent.")] = 512
    memory_max_mib: Annotated[int, Meta(ge=16, description="Most memory of one agent, in MiB.")] = 2048
    scopes: Annotated[list[ScopeName], Meta(description="What a root agent is granted when its launch names no scopes.")] = msgspec.field(
        default_factory=lambda: [*get_args(ScopeName)]
    )
    cpus: Annotated[float, Meta(ge=0.05, le=1024, description="Most processors' worth of time of one agent.")] = 2.0
    own_sandbox: Annotated[
        list[str],
        Meta(
            max_length=100,
            description="Agent types, and programs that an operator starts, that build their own sandbox: they may create user namespaces.",
        ),
    ] = msgspec.field(default_factory=lambda: ["claude-code", "claude", "codex", "browser", "chromium", "google-chrome", "firefox"])


class ProgramOptions(_Section):
    """Programs that ``run --agent`` starts."""

    claude_code: Annotated[
        str, Meta(description="Path of Claude Code's program; empty: looked for on PATH and where package managers put it.")
    ] = ""
    codex: Annotated[str, Meta(description="Path of Codex's program; empty: looked for on PATH and where package managers put it.")] = ""
    opencode: Annotated[
        str, Meta(description="Path of OpenCode's program; empty: looked for on PATH and where package managers put it.")
    ] = ""
    gemini: Annotated[
        str, Meta(description="Path of Gemini CLI's program; empty: looked for on PATH and where package managers put it.")
    ] = ""
    memory_free_min_mib: Annotated[int, Meta(ge=0, description="None is started while less memory than this is free, in MiB.")] = 512
    output_max_mib: Annotated[
        int, Meta(ge=1, le=65536, description="What is kept of one's output, in MiB; one that writes more is frozen.")
    ] = 256
    models: Annotated[dict[str, str], Meta(description="Model to use where none is named: {'claude-code': 'claude-sonnet-4-5'}.")] = {}
    mcp: Annotated[
        dict[str, dict[str, list[str]]],
        Meta(
            max_length=10, description="MCP servers that one gets, and no others: {'claude-code': {'docs': ['https://docs.example/mcp']}}."
        ),
    ] = {}
    hooks: Annotated[bool, Meta(description="Each tool call of one is judged by the rules, and waits for approval where they ask.")] = True

    def __post_init__(self) -> None:
        if problem := next(_problems_of_servers(self.mcp), ""):
            raise Malformed(("mcp",), problem)

    def path_of(self, program: str) -> str:
        """The file that an operator named for a program, as ``run --agent`` takes it; empty: it is looked for."""
        return str(getattr(self, program.replace("-", "_"), ""))


def _problems_of_servers(found: dict[str, dict[str, list[str]]]) -> Iterator[str]:
    if unknown := sorted(found.keys() - set(Program)):
        yield f"{unknown[0][:60]!r} is no program that is started: {', '.join(Program)}"
    if any(len(servers) > 50 for servers in found.values()):
        yield "one program gets at most 50 servers"
    for name, words in [server for servers in found.values() for server in servers.items()]:
        if not _SERVER.match(name):
            yield f"{name[:60]!r} is no name of a server: letters, digits, - and _, at most 40, no __"
        if not words or len(words) > 50 or any(len(word) > 1000 or not word.isprintable() for word in words):
            yield f"{name} needs 1 to 50 words of at most 1,000 characters on one line"
        # A command without its folder would be looked for where an agent may write.
        elif not (_is_path(words[0]) or (len(words) == 1 and _ADDRESS.match(words[0]))):
            yield f"{name} needs the whole path of a program with its arguments, or one http address"


def _is_path(word: str) -> bool:
    return word.startswith("/") and ".." not in word.split("/")


class EnvironmentOptions(_Section):
    """What agents of one type get from the supervisor's environment, in addition to what every agent gets."""

    names: Annotated[
        list[str], Meta(max_length=50, description="Names that are passed; one that reads as a secret's is refused here.")
    ] = []
    secrets: Annotated[
        list[str], Meta(max_length=50, description="Names of secrets that are passed all the same; shown as SECRET wherever the agent is.")
    ] = []

    def __post_init__(self) -> None:
        for field in ("names", "secrets"):
            for name in getattr(self, field):
                _told(checked_name, name, field)
        if secret := next(filter(looks_secret, self.names), ""):
            raise Malformed(("names",), f"{secret} reads as a secret's name: list it under secrets if agents of this type shall have it")


class RemoteOptions(_Section):
    """The remote kill file."""

    bucket: Annotated[str, Meta(description="Bucket of the kill file; empty: remote kill is not configured.")] = ""
    key: Annotated[str, Meta(description="Name of the kill file in the bucket.")] = "platform/kill-switch.json"
    endpoint: Annotated[str, Meta(description="Another endpoint than Google's (a stand-in); empty: Google Cloud Storage.")] = ""
    fleet: Annotated[str, Meta(description="Fleet the kill file must name.")] = "default"
    poll_s: Annotated[float, Meta(gt=0, le=10, description="Longest time between two reads, in seconds.")] = 10.0
    hosts: Annotated[list[str], Meta(description="Hosts of the fleet: one that does not answer an order is shown as silent.")] = []
    lease: Annotated[Literal["stop", "alarm"], Meta(description="What a host does that cannot read the file for 60 s.")] = "stop"


class EgressOptions(_Section):
    """Envoy."""

    netns: Annotated[str, Meta(description="Network namespace Envoy runs in; empty: this host's.")] = ""
    hosts: Annotated[dict[str, list[str]], Meta(description="Names that resolve to fixed addresses instead of by DNS.")] = {}


class EvidenceOptions(_Section):
    """The evidence of a kill."""

    bound_s: Annotated[float, Meta(gt=0, le=60, description="Longest time the evidence of a kill is collected for, in seconds.")] = 2.0
    refresh_s: Annotated[float, Meta(ge=0.2, le=300, description="Time between two reads of the agents' processes, in seconds.")] = 5.0
    processes_max: Annotated[int, Meta(ge=1, le=20_000, description="Most processes read in one look.")] = 500
    files_max: Annotated[int, Meta(ge=0, le=1_000_000, description="Most changed files listed of one workspace.")] = 5000


class PersistenceOptions(_Section):
    """The hunt for what could bring an agent back."""

    bound_s: Annotated[float, Meta(gt=0, le=60, description="Longest time that one persistence check takes, in seconds.")] = 2.0
    home: Annotated[str, Meta(description="Home that is looked at; empty: the operator's own, default instance only.")] = ""
    system: Annotated[str, Meta(description="Folder that stands for / in that look; empty: /, default instance only.")] = ""


class NetworkOptions(_Section):
    """Network modes."""

    modes: Annotated[dict[str, str], Meta(description="Level to mode, only stricter than usual: {'INTERNAL': 'PROXIED'}.")] = {}
    notice: Annotated[
        str,
        Meta(
            max_length=2000,
            description="Words added to the notice that tells agents about a network change; {mode} and {sensitivity} are filled in.",
        ),
    ] = ""


Caps = dict[str, float]


class BudgetOptions(_Section):
    """Limits that hold unless others are set; by name: iterations, tokens, wall, step, tool_calls, cost, cpu, errors."""

    agent: Annotated[
        Caps, Meta(max_length=20, description="Of each agent, where its launch names none: {'wall': 3600, 'errors': 10}.")
    ] = {}
    tree: Annotated[Caps, Meta(max_length=20, description="Of each agent with all it spawns, where its launch names none.")] = {}
    session: Annotated[Caps, Meta(max_length=20, description="Of each session.")] = {}
    project: Annotated[Caps, Meta(max_length=20, description="Of each project (the folder agents work in, or run --project).")] = {}
    day: Annotated[Caps, Meta(max_length=20, description="Of everything here in one calendar day, local time: {'cost': 600}.")] = {}
    types: Annotated[
        dict[str, Caps], Meta(max_length=200, description="Agent type to limits of an agent: {'claude-code': {'cost': 5}}.")
    ] = {}

    def __post_init__(self) -> None:
        for field in ("agent", "tree", "session", "project", "day"):
            for name, value in getattr(self, field).items():
                _told(parse_limit, f"{name}={value!r}", field)
        for kind, caps in self.types.items():
            _told(check_agent_type, kind, "types")
            for name, value in caps.items():
                _told(parse_limit, f"{name}={value!r}", "types")


class KillOptions(_Section):
    """Every kill."""

    return_watch_s: Annotated[
        float,
        Meta(
            ge=0, le=3600, description="For so many seconds after a kill, what starts a killed session again is ended; 0: no return watch."
        ),
    ] = RETURN_WATCH_S


class PanicOptions(_Section):
    """A press of everything."""

    include_observed: Annotated[
        bool, Meta(description="Whether a panic also kills observed agents, as a best effort; in the default instance only.")
    ] = False


class WorkspaceOptions(_Section):
    """Sessions' workspaces."""

    root: Annotated[
        str, Meta(description="Folder of all workspaces, which several supervisors may share; empty: in the state directory.")
    ] = ""
    ttl_days: Annotated[float, Meta(gt=0, le=3650, description="A session that was not used for so many days is deleted.")] = 7.0
    capacity_gib: Annotated[float, Meta(gt=0, description="Capacity for all workspaces at first; doubled when four fifths are used.")] = 5.0
    capacity_max_gib: Annotated[float, Meta(gt=0, description="Most that all workspaces may hold; beyond it nothing is started.")] = 20.0
    session_max_gib: Annotated[
        float, Meta(ge=0, description="Most that one session may hold: beyond it its agents freeze; 0: no bound.")
    ] = 0.0
    measure_s: Annotated[float, Meta(ge=0.2, le=3600, description="Time between two measurements, in seconds.")] = 30.0
    sweep_s: Annotated[float, Meta(ge=0.2, le=86400, description="Time between two looks for sessions whose time is over, in seconds.")] = (
        3600.0
    )
    namespace: Annotated[str, Meta(max_length=63, description="Namespace named in metrics and notes.")] = "default"


class OtlpOptions(_Section):
    """Telemetry that programs send of themselves (OpenTelemetry)."""

    port: Annotated[int, Meta(ge=0, le=65535, description="Loopback port on which OTLP over HTTP is heard (4318 is usual); 0: none.")] = 0
    token_sha256: Annotated[
        str,
        Meta(pattern=r"^([0-9a-fA-F]{64})?\Z", description="SHA-256 (hex) of the bearer token senders must show; empty: none is asked."),
    ] = ""


class ApprovalOptions(_Section):
    """What waits for a human."""

    ttl_s: Annotated[float, Meta(ge=5, le=86400, description="How long a request waits before it is denied automatically, in seconds.")] = (
        600.0
    )
    waiting_max: Annotated[int, Meta(ge=1, le=10000, description="Requests of one agent tree that wait at once; more are denied.")] = 100
    denial_needs_reason: Annotated[bool, Meta(description="Whether a denial without a reason is refused.")] = False


class ExecuteOptions(_Section):
    """What one executed tool call may use."""

    timeout_s: Annotated[
        float, Meta(gt=0, le=3600, description="Time one executed call has unless it asks for less or more, in seconds.")
    ] = 60.0
    timeout_max_s: Annotated[float, Meta(gt=0, le=86400, description="Most time one executed call may ask for, in seconds.")] = 600.0
    memory_max_mib: Annotated[int, Meta(ge=16, le=1_000_000, description="Most memory of one executed call, in MiB.")] = 512
    pids_max: Annotated[int, Meta(ge=8, le=100_000, description="Most processes of one executed call at once.")] = 64
    output_max_kib: Annotated[int, Meta(ge=1, le=65536, description="Most of each output stream of a call that is handed on, in KiB.")] = (
        1024
    )
    at_once: Annotated[int, Meta(ge=1, le=16, description="Executed calls of one agent at once, those included that wait for a human.")] = 8


class ActivityOptions(_Section):
    """What agents did, kept for people to read."""

    per_agent: Annotated[int, Meta(ge=100, le=1_000_000, description="Entries kept of one agent; the oldest go first.")] = 100_000
    total: Annotated[int, Meta(ge=1000, le=20_000_000, description="Entries kept of all agents; the oldest go first.")] = 1_000_000
    max_mib: Annotated[int, Meta(ge=16, le=1_000_000, description="Most the entries of all agents may take on disk, in MiB.")] = 2048


AlertName = Literal["panic", "kill_not_confirmed", "readiness_lost", "limit_reached", "approval_waiting", "agent_came_back"]


class AlertOptions(_Section):
    """What an operator hears of without looking."""

    desktop_off: Annotated[list[AlertName], Meta(max_length=6, description="Alerts that show no notification on the desktop.")] = []


class Options(_Section):
    """All options of an instance."""

    spawn: SpawnOptions = msgspec.field(default_factory=SpawnOptions)
    agents: AgentOptions = msgspec.field(default_factory=AgentOptions)
    programs: ProgramOptions = msgspec.field(default_factory=ProgramOptions)
    remote: RemoteOptions = msgspec.field(default_factory=RemoteOptions)
    egress: EgressOptions = msgspec.field(default_factory=EgressOptions)
    evidence: EvidenceOptions = msgspec.field(default_factory=EvidenceOptions)
    workspaces: WorkspaceOptions = msgspec.field(default_factory=WorkspaceOptions)
    budgets: BudgetOptions = msgspec.field(default_factory=BudgetOptions)
    network: NetworkOptions = msgspec.field(default_factory=NetworkOptions)
    kill: KillOptions = msgspec.field(default_factory=KillOptions)
    panic: PanicOptions = msgspec.field(default_factory=PanicOptions)
    persistence: PersistenceOptions = msgspec.field(default_factory=PersistenceOptions)
    approvals: ApprovalOptions = msgspec.field(default_factory=ApprovalOptions)
    execute: ExecuteOptions = msgspec.field(default_factory=ExecuteOptions)
    activity: ActivityOptions = msgspec.field(default_factory=ActivityOptions)
    otlp: OtlpOptions = msgspec.field(default_factory=OtlpOptions)
    alerts: AlertOptions = msgspec.field(default_factory=AlertOptions)
    environment: Annotated[
        dict[str, EnvironmentOptions],
        Meta(description="Agent type to names of variables: {'claude-code': {'names': ['ANTHROPIC_BASE_URL']}}."),
    ] = {}
    heartbeat_s: Annotated[
        float, Meta(gt=0, description="Silence of the supervisor after which the guard freezes its agents, in seconds.")
    ] = 30.0
    canary_s: Annotated[
        float, Meta(ge=0.5, le=3600, description="Time between two canaries of the armed light: a process killed to prove the kill.")
    ] = 60.0
    engine_socket: Annotated[str, Meta(description="Docker Engine's unix socket; empty: DOCKER_HOST, else /var/run/docker.sock.")] = ""
    discover_root: Annotated[
        str, Meta(description="Home folder in which agents are looked for; empty: the operator's own, default instance only.")
    ] = ""
    secrets: Annotated[
        Literal["", "auto", "file"],
        Meta(description="Where secrets are kept: auto (keyring, credential, file), file; empty: auto for the default instance."),
    ] = ""
    host_name: Annotated[str, Meta(description="Name of this host in receipts; empty: the machine's.")] = ""
    stand_ins: Annotated[list[str], Meta(description="Parts that are stand-ins, named wherever they show.")] = []
    linger_s: Annotated[
        float, Meta(gt=0, description="An embedded supervisor ends this long after its last client when nothing lives.")
    ] = 60.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if "" in self.environment:
            raise Malformed(("environment",), "an agent type has a name")
        for name in self.environment:
            _told(check_agent_type, name, "environment")

    def secrets_in(self, is_default: bool) -> Literal["auto", "file"]:
        """``auto`` tries keyring and credential first; an instance in a folder of its own keeps its secrets in it unless told otherwise."""
        return self.secrets or ("auto" if is_default else "file")

    def host(self) -> str:
        """The host's name."""
        return self.host_name or socket.gethostname()

    def engine(self) -> str:
        """Path of the engine's socket."""
        return self.engine_socket or docker_host() or ENGINE


def docker_host() -> str:
    """The socket that DOCKER_HOST names; empty: it names none."""
    named = os.environ.get("DOCKER_HOST", "")
    return named.removeprefix("unix://") if named.startswith("unix://") else ""


def load_options(path: Path) -> Options:
    """Reads settings.json; a missing file means defaults, a broken one is an error that names the field (never half-read)."""
    return read_options(path)[0]


def read_options(path: Path) -> tuple[Options, dict[str, Any]]:
    """The same, with what the file itself sets, by section. Raises ConsoleError."""
    try:
        text = path.read_text()
    except FileNotFoundError:
        return Options(), {}
    except (OSError, UnicodeDecodeError) as error:
        raise ConsoleError(f"{path} cannot be read: {error}.", "Fix or remove it.") from error
    if name := _twice(text):
        raise ConsoleError(f"{path}: {name} is there twice.", "Keep one of them; nothing was started.")
    try:
        given = _without_port(parsed(text))
        return Options.read(given), given
    except Malformed as error:
        raise ConsoleError(
            f"{path}: {error.where or 'the file'}: {error.words.rstrip('.')}.", "Fix that setting. Nothing was started."
        ) from error


def _without_port(given: Any) -> Any:
    """Ignore an option of before: the port it opened could be read by agents in the host's network."""
    if isinstance(given, dict) and isinstance(section := given.get("workspaces"), dict):
        section.pop("metrics_port", None)
    return given


def _twice(text: str) -> str:
    """A name that one object has twice, so that its meaning is unclear; empty: none, or it is no JSON at all."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, value in pairs:
            if name in found:
                raise KeyError(name[:80])
            found[name] = value
        return found

    try:
        json.loads(text, object_pairs_hook=once)
    except KeyError as error:
        return repr(error.args[0])
    except (ValueError, RecursionError):
        pass
    return ""


def merged(options: Options, changes: dict[str, Any]) -> Options:
    """Options with dotted changes (``{"remote.bucket": "b"}``) applied and checked again. Raises Malformed."""
    return Options.read(_applied(options.as_data(), changes))


def _applied(data: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    for dotted, value in changes.items():
        section, _, name = dotted.rpartition(".")
        (data.setdefault(section, {}) if section else data)[name] = value
    return data


def save_options(path: Path, values: dict[str, Any]) -> None:
    """Writes settings.json: what is set by dotted name, and no default, which would hide what the administrator's files say.

    Raises Malformed, and then nothing is written.
    """
    data = _applied({}, values)
    Options.read(data)
    replace_file(path, json.dumps(data, indent=2).encode(), MODE)
