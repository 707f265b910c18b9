"""Watchfloor's own options as data: type, default and one sentence each. settings/layers.py joins it with the files."""

from __future__ import annotations

import json
import os
import re
import socket
from pathlib import Path
from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from console.domain.budget import parse_limit
from console.domain.conversation import Program
from console.domain.environment import check_agent_type, checked_name, looks_secret
from console.domain.errors import ConsoleError
from console.domain.guard import RETURN_WATCH_S
from console.domain.process.durable import replace_file
from console.domain.roles.rights import AGENTS_UID

_ADDRESS = re.compile(r"https?://[A-Za-z0-9\[]\S*\Z")
_SERVER = re.compile(r"(?!.*__)[A-Za-z0-9][A-Za-z0-9_-]{0,39}\Z")
ENGINE = "/var/run/docker.sock"
MODE = 0o644
"""Of files of settings: the guard of the host's own instance reads them under another account. Nothing in them is a secret."""
ScopeName = Literal[
    "READ_FS", "WRITE_FS", "DELETE_FS", "READ_DB", "WRITE_DB", "SEND_EMAIL", "CALL_API", "RUN_CODE", "SPEND_MONEY", "DEPLOY"
]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


class SpawnOptions(_Section):
    """Limits on agent trees."""

    max_depth: int = Field(default=3, ge=1, le=20, description="Deepest level of a tree; a root agent has depth 1.")
    max_children: int = Field(default=6, ge=0, le=1000, description="Active children of one agent.")


class AgentOptions(_Section):
    """How agents are started."""

    uid: int = Field(default=AGENTS_UID, ge=1, description="User id of agents when Watchfloor runs as root; never 0.")
    gid: int = Field(default=AGENTS_UID, ge=1, description="Group id of agents when Watchfloor runs as root; never 0.")
    pids_max: int = Field(default=512, ge=4, description="Most processes of one agent.")
    memory_max_mib: int = Field(default=2048, ge=16, description="Most memory of one agent, in MiB.")
    scopes: list[ScopeName] = Field(
        default=[*get_args(ScopeName)],
        description="What a root agent is granted when its launch names no scopes.",
    )
    cpus: float = Field(default=2.0, ge=0.05, le=1024, description="Most processors' worth of time of one agent.")
    own_sandbox: list[str] = Field(
        default=["claude-code", "claude", "codex", "browser", "chromium", "google-chrome", "firefox"],
        max_length=100,
        description="Agent types, and programs that an operator starts, that build their own sandbox: they may create user namespaces.",
    )


class ProgramOptions(_Section):
    """Programs that ``run --agent`` starts."""

    claude_code: str = Field(
        default="", description="Path of Claude Code's program; empty: looked for on PATH and where package managers put it."
    )
    codex: str = Field(default="", description="Path of Codex's program; empty: looked for on PATH and where package managers put it.")
    opencode: str = Field(
        default="", description="Path of OpenCode's program; empty: looked for on PATH and where package managers put it."
    )
    memory_free_min_mib: int = Field(default=512, ge=0, description="None is started while less memory than this is free, in MiB.")
    output_max_mib: int = Field(
        default=256, ge=1, le=65536, description="What is kept of one's output, in MiB; one that writes more is frozen."
    )
    models: dict[str, str] = Field(default={}, description="Model to use where none is named: {'claude-code': 'claude-sonnet-4-5'}.")
    mcp: dict[str, dict[str, list[str]]] = Field(
        default={},
        max_length=10,
        description="MCP servers that one gets, and no others: {'claude-code': {'docs': ['https://docs.example/mcp']}}.",
    )
    hooks: bool = Field(default=True, description="Each tool call of one is judged by the rules, and waits for approval where they ask.")

    @field_validator("mcp")
    @classmethod
    def _are_servers(cls, found: dict[str, dict[str, list[str]]]) -> dict[str, dict[str, list[str]]]:
        if unknown := sorted(found.keys() - set(Program)):
            raise ValueError(f"{unknown[0][:60]!r} is no program that is started: {', '.join(Program)}")
        if any(len(servers) > 50 for servers in found.values()):
            raise ValueError("one program gets at most 50 servers")
        for name, words in [server for servers in found.values() for server in servers.items()]:
            if not _SERVER.match(name):
                raise ValueError(f"{name[:60]!r} is no name of a server: letters, digits, - and _, at most 40, no __")
            if not words or len(words) > 50 or any(len(word) > 1000 or not word.isprintable() for word in words):
                raise ValueError(f"{name} needs 1 to 50 words of at most 1,000 characters on one line")
            # A command without its folder would be looked for where an agent may write.
            is_path = words[0].startswith("/") and ".." not in words[0].split("/")
            if not (is_path or (len(words) == 1 and _ADDRESS.match(words[0]))):
                raise ValueError(f"{name} needs the whole path of a program with its arguments, or one http address")
        return found

    def path_of(self, program: str) -> str:
        """The file that an operator named for a program, as ``run --agent`` takes it; empty: it is looked for."""
        return str(getattr(self, program.replace("-", "_"), ""))


class EnvironmentOptions(_Section):
    """What agents of one type get from the supervisor's environment, in addition to what every agent gets."""

    names: list[str] = Field(default=[], max_length=50, description="Names that are passed; one that reads as a secret's is refused here.")
    secrets: list[str] = Field(
        default=[], max_length=50, description="Names of secrets that are passed all the same; shown as SECRET wherever the agent is."
    )

    @field_validator("names", "secrets")
    @classmethod
    def _may_be_passed(cls, names: list[str]) -> list[str]:
        for name in names:
            try:
                checked_name(name)
            except ConsoleError as error:
                raise ValueError(error.what) from error
        return names

    @field_validator("names")
    @classmethod
    def _is_no_secret(cls, names: list[str]) -> list[str]:
        for name in names:
            if looks_secret(name):
                raise ValueError(f"{name} reads as a secret's name: list it under secrets if agents of this type shall have it")
        return names


class RemoteOptions(_Section):
    """The remote kill file."""

    bucket: str = Field(default="", description="Bucket of the kill file; empty: remote kill is not configured.")
    key: str = Field(default="platform/kill-switch.json", description="Name of the kill file in the bucket.")
    endpoint: str = Field(default="", description="Another endpoint than Google's (a stand-in); empty: Google Cloud Storage.")
    fleet: str = Field(default="default", description="Fleet the kill file must name.")
    poll_s: float = Field(default=10.0, gt=0, le=10, description="Longest time between two reads, in seconds.")
    hosts: list[str] = Field(default=[], description="Hosts of the fleet: one that does not answer an order is shown as silent.")
    lease: Literal["stop", "alarm"] = Field(default="stop", description="What a host does that cannot read the file for 60 s.")


class EgressOptions(_Section):
    """Envoy."""

    netns: str = Field(default="", description="Network namespace Envoy runs in; empty: this host's.")
    hosts: dict[str, list[str]] = Field(default={}, description="Names that resolve to fixed addresses instead of by DNS.")


class EvidenceOptions(_Section):
    """The evidence of a kill."""

    bound_s: float = Field(default=2.0, gt=0, le=60, description="Longest time the evidence of a kill is collected for, in seconds.")
    refresh_s: float = Field(default=5.0, ge=0.2, le=300, description="Time between two reads of the agents' processes, in seconds.")
    processes_max: int = Field(default=500, ge=1, le=20_000, description="Most processes read in one look.")
    files_max: int = Field(default=5000, ge=0, le=1_000_000, description="Most changed files listed of one workspace.")


class PersistenceOptions(_Section):
    """The hunt for what could bring an agent back."""

    bound_s: float = Field(default=2.0, gt=0, le=60, description="Longest time that one persistence check takes, in seconds.")
    home: str = Field(default="", description="Home that is looked at; empty: the operator's own, default instance only.")
    system: str = Field(default="", description="Folder that stands for / in that look; empty: /, default instance only.")


class NetworkOptions(_Section):
    """Network modes."""

    modes: dict[str, str] = Field(default={}, description="Level to mode, only stricter than usual: {'INTERNAL': 'PROXIED'}.")
    notice: str = Field(
        default="",
        max_length=2000,
        description="Words added to the notice that tells agents about a network change; {mode} and {sensitivity} are filled in.",
    )


Caps = dict[str, float]


class BudgetOptions(_Section):
    """Limits that hold unless others are set; by name: iterations, tokens, wall, step, tool_calls, cost, cpu, errors."""

    agent: Caps = Field(default={}, max_length=20, description="Of each agent, where its launch names none: {'wall': 3600, 'errors': 10}.")
    tree: Caps = Field(default={}, max_length=20, description="Of each agent with all it spawns, where its launch names none.")
    session: Caps = Field(default={}, max_length=20, description="Of each session.")
    project: Caps = Field(default={}, max_length=20, description="Of each project (the folder agents work in, or run --project).")
    day: Caps = Field(default={}, max_length=20, description="Of everything here in one calendar day, local time: {'cost': 600}.")
    types: dict[str, Caps] = Field(
        default={}, max_length=200, description="Agent type to limits of an agent: {'claude-code': {'cost': 5}}."
    )

    @field_validator("agent", "tree", "session", "project", "day")
    @classmethod
    def _are_limits(cls, caps: Caps) -> Caps:
        for name, value in caps.items():
            try:
                parse_limit(f"{name}={value!r}")
            except ConsoleError as error:
                raise ValueError(error.what) from error
        return caps

    @field_validator("types")
    @classmethod
    def _types(cls, types: dict[str, Caps]) -> dict[str, Caps]:
        for name, caps in types.items():
            try:
                check_agent_type(name)
            except ConsoleError as error:
                raise ValueError(error.what) from error
            cls._are_limits(caps)
        return types


class KillOptions(_Section):
    """Every kill."""

    return_watch_s: float = Field(
        default=RETURN_WATCH_S,
        ge=0,
        le=3600,
        description="For so many seconds after a kill, what starts a killed session again is ended; 0: no return watch.",
    )


class PanicOptions(_Section):
    """A press of everything."""

    include_observed: bool = Field(
        default=False,
        description="Whether a panic also kills observed agents, as a best effort; in the default instance only.",
    )


class WorkspaceOptions(_Section):
    """Sessions' workspaces."""

    root: str = Field(
        default="", description="Folder of all workspaces, which several supervisors may share; empty: in the state directory."
    )
    ttl_days: float = Field(default=7.0, gt=0, le=3650, description="A session that was not used for so many days is deleted.")
    capacity_gib: float = Field(default=5.0, gt=0, description="Capacity for all workspaces at first; doubled when four fifths are used.")
    capacity_max_gib: float = Field(default=20.0, gt=0, description="Most that all workspaces may hold; beyond it nothing is started.")
    session_max_gib: float = Field(
        default=0.0, ge=0, description="Most that one session may hold: beyond it its agents freeze; 0: no bound."
    )
    measure_s: float = Field(default=30.0, ge=0.2, le=3600, description="Time between two measurements, in seconds.")
    sweep_s: float = Field(
        default=3600.0, ge=0.2, le=86400, description="Time between two looks for sessions whose time is over, in seconds."
    )
    namespace: str = Field(default="default", max_length=63, description="Namespace named in metrics and notes.")

    @model_validator(mode="before")
    @classmethod
    def _without_port(cls, given: Any) -> Any:
        """Ignore an option of before: the port it opened could be read by agents in the host's network."""
        return {name: value for name, value in given.items() if name != "metrics_port"} if isinstance(given, dict) else given


class OtlpOptions(_Section):
    """Telemetry that programs send of themselves (OpenTelemetry)."""

    port: int = Field(default=0, ge=0, le=65535, description="Loopback port on which OTLP over HTTP is heard (4318 is usual); 0: none.")
    token_sha256: str = Field(
        default="",
        pattern=r"^([0-9a-fA-F]{64})?$",
        description="SHA-256 (hex) of the bearer token senders must show; empty: none is asked.",
    )


class ApprovalOptions(_Section):
    """What waits for a human."""

    ttl_s: float = Field(
        default=600.0, ge=5, le=86400, description="How long a request waits before it is denied automatically, in seconds."
    )
    waiting_max: int = Field(default=100, ge=1, le=10000, description="Requests of one agent tree that wait at once; more are denied.")
    denial_needs_reason: bool = Field(default=False, description="Whether a denial without a reason is refused.")


class ExecuteOptions(_Section):
    """What one executed tool call may use."""

    timeout_s: float = Field(
        default=60.0, gt=0, le=3600, description="Time one executed call has unless it asks for less or more, in seconds."
    )
    timeout_max_s: float = Field(default=600.0, gt=0, le=86400, description="Most time one executed call may ask for, in seconds.")
    memory_max_mib: int = Field(default=512, ge=16, le=1_000_000, description="Most memory of one executed call, in MiB.")
    pids_max: int = Field(default=64, ge=8, le=100_000, description="Most processes of one executed call at once.")
    output_max_kib: int = Field(default=1024, ge=1, le=65536, description="Most of each output stream of a call that is handed on, in KiB.")
    at_once: int = Field(default=8, ge=1, le=16, description="Executed calls of one agent at once, those included that wait for a human.")


class ActivityOptions(_Section):
    """What agents did, kept for people to read."""

    per_agent: int = Field(default=100_000, ge=100, le=1_000_000, description="Entries kept of one agent; the oldest go first.")
    total: int = Field(default=1_000_000, ge=1000, le=20_000_000, description="Entries kept of all agents; the oldest go first.")
    max_mib: int = Field(default=2048, ge=16, le=1_000_000, description="Most the entries of all agents may take on disk, in MiB.")


AlertName = Literal["panic", "kill_not_confirmed", "readiness_lost", "limit_reached", "approval_waiting", "agent_came_back"]


class AlertOptions(_Section):
    """What an operator hears of without looking."""

    desktop_off: list[AlertName] = Field(default=[], max_length=6, description="Alerts that show no notification on the desktop.")


class Options(_Section):
    """All options of an instance."""

    spawn: SpawnOptions = SpawnOptions()
    agents: AgentOptions = AgentOptions()
    programs: ProgramOptions = ProgramOptions()
    remote: RemoteOptions = RemoteOptions()
    egress: EgressOptions = EgressOptions()
    evidence: EvidenceOptions = EvidenceOptions()
    workspaces: WorkspaceOptions = WorkspaceOptions()
    budgets: BudgetOptions = BudgetOptions()
    network: NetworkOptions = NetworkOptions()
    kill: KillOptions = KillOptions()
    panic: PanicOptions = PanicOptions()
    persistence: PersistenceOptions = PersistenceOptions()
    approvals: ApprovalOptions = ApprovalOptions()
    execute: ExecuteOptions = ExecuteOptions()
    activity: ActivityOptions = ActivityOptions()
    otlp: OtlpOptions = OtlpOptions()
    alerts: AlertOptions = AlertOptions()
    environment: dict[str, EnvironmentOptions] = Field(
        default={}, description="Agent type to names of variables: {'claude-code': {'names': ['ANTHROPIC_BASE_URL']}}."
    )
    heartbeat_s: float = Field(
        default=30.0, gt=0, description="Silence of the supervisor after which the guard freezes its agents, in seconds."
    )
    canary_s: float = Field(
        default=60.0, ge=0.5, le=3600, description="Time between two canaries of the armed light: a process killed to prove the kill."
    )
    engine_socket: str = Field(default="", description="Docker Engine's unix socket; empty: DOCKER_HOST, else /var/run/docker.sock.")
    discover_root: str = Field(
        default="", description="Home folder in which agents are looked for; empty: the operator's own, default instance only."
    )
    secrets: Literal["", "auto", "file"] = Field(
        default="",
        description="Where secrets are kept: auto (keyring, credential, file), file; empty: auto for the default instance.",
    )
    host_name: str = Field(default="", description="Name of this host in receipts; empty: the machine's.")
    stand_ins: list[str] = Field(default=[], description="Parts that are stand-ins, named wherever they show.")
    linger_s: float = Field(
        default=60.0, gt=0, description="An embedded supervisor ends this long after its last client when nothing lives."
    )

    @field_validator("environment")
    @classmethod
    def _types(cls, types: dict[str, EnvironmentOptions]) -> dict[str, EnvironmentOptions]:
        for name in types:
            if not name:
                raise ValueError("an agent type has a name")
            try:
                check_agent_type(name)
            except ConsoleError as error:
                raise ValueError(error.what) from error
        return types

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
    try:
        text = path.read_text()
    except FileNotFoundError:
        return Options()
    except (OSError, UnicodeDecodeError) as error:
        raise ConsoleError(f"{path} cannot be read: {error}.", "Fix or remove it.") from error
    if name := _twice(text):
        raise ConsoleError(f"{path}: {name} is there twice.", "Keep one of them; nothing was started.")
    try:
        return Options.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the file"
        words = str(first["msg"]).removeprefix("Value error, ").rstrip(".")
        raise ConsoleError(f"{path}: {where}: {words}.", "Fix that setting. Nothing was started.") from error


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
    """Options with dotted changes (``{"remote.bucket": "b"}``) applied and checked again."""
    data = options.model_dump(exclude_unset=True)
    for dotted, value in changes.items():
        section, _, name = dotted.rpartition(".")
        (data.setdefault(section, {}) if section else data)[name] = value
    return Options.model_validate(data)


def save_options(path: Path, options: Options) -> None:
    """Writes settings.json: what was set, and no default, which would hide what the administrator's files say."""
    replace_file(path, json.dumps(options.model_dump(mode="json", exclude_unset=True), indent=2).encode(), MODE)
