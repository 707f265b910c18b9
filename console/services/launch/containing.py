"""How a program is held whose start does not say it: where this host can, in a sandbox that hides secrets and whose network is not FULL.

Its way to the model is its own, because an operator who starts a program wants it to ask its model. The allowlist, which holds for all
agents, stays as it is.
"""

from __future__ import annotations

import ipaddress
import os
import socket
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from console.domain.agent import LaunchRequest, SandboxKind
from console.domain.calls.profile import NOT_CONTAINED
from console.domain.conversation import started_as
from console.domain.errors import UsageProblem
from console.domain.network import Allowlist, Narrowing, NetworkMode
from console.egress.answers import Availability
from console.policy.review.allowlist_review import kill_file_hosts, meets
from console.sandbox.bubblewrap import SYSTEM_FOLDERS
from console.sandbox.environment import passed_on
from console.sandbox.interface import Sandbox
from console.services.launch.environments import wanted_of
from console.settings.options import Options
from console.sources.kind import Servers, address
from console.sources.kinds import STARTS

RESOLVE_S = 3.0
"""A start waits so long for the addresses of a host that an operator named."""
AUTO = "auto"
"""As the sandbox of a start: this module chooses."""
_VENDORS = frozenset(host for start in STARTS.values() for host in (*start.models.values(), start.keyless))


@dataclass(frozen=True, slots=True)
class Held:
    """How a program will be held."""

    sandbox: SandboxKind
    mode: NetworkMode | None
    """None: as loose as its session allows."""
    doubt: str = ""
    """Why it is not contained, for people; empty: it is, or a person chose otherwise."""


def held(
    asked: LaunchRequest, options: Options, sandbox: Sandbox, proxy: Callable[[], Availability], allowlist: Callable[[], Allowlist]
) -> Held:
    """For a program that an operator starts without naming a sandbox. ``sandbox``: the one it gets if it works here. Blocks."""
    works = sandbox.available()
    if not works.ok:
        return Held(SandboxKind.NONE, asked.network_mode, f"no sandbox, because {works.reason}: {NOT_CONTAINED}. {works.remedy}".rstrip())
    if hidden := _hidden_server(asked, options):
        why = f"{SandboxKind.BUBBLEWRAP} does not show its MCP server {hidden[:200]}: {NOT_CONTAINED}"
        return Held(SandboxKind.NONE, asked.network_mode, f"no sandbox, because {why}")
    if asked.network_mode is not None:
        return Held(SandboxKind.BUBBLEWRAP, asked.network_mode)
    envoy = proxy()
    why = _why_open(asked, options, envoy, allowlist)
    if why:
        said = f"{SandboxKind.BUBBLEWRAP}, with the network FULL, because {why}: {NOT_CONTAINED}. {'' if envoy.ok else envoy.remedy}"
        return Held(SandboxKind.BUBBLEWRAP, None, said.rstrip(" ."))
    return Held(SandboxKind.BUBBLEWRAP, NetworkMode.PROXIED)


def own_hosts(request: LaunchRequest, options: Options) -> tuple[str, ...]:
    """Hosts at which the model of a program answers that an operator starts, where they answer over TLS under a name."""
    return tuple(dict.fromkeys(host for one in _models(request, options) if (host := _own(one, options))))


def _why_open(request: LaunchRequest, options: Options, proxy: Availability, allowlist: Callable[[], Allowlist]) -> str:
    """Why a network that is not FULL would keep it from its model; empty: it would not."""
    if not proxy.ok:
        return f"Envoy is not available ({proxy.reason})"
    wanted = [("its model", one) for one in _models(request, options) if not _own(one, options) or _is_inside(one, options)]
    servers = _servers(request, options).items()
    wanted += [(f"its MCP server {name[:60]}", _split(address(words))) for name, words in servers if address(words)]
    for what, one in wanted:
        if not allowlist().judge("POST", one.hostname or "", _port(one), one.path or "/").allowed:
            at = one._replace(netloc=one.netloc.rpartition("@")[2], query="", fragment="").geturl()[:200]
            return f"{what} answers at {at}, which is in no entry of the allowlist"
    return ""


def _is_inside(url: SplitResult, options: Options) -> bool:
    """Whether an address that an operator named leads into a private network, which only an entry of the allowlist opens. Blocks."""
    host = url.hostname or ""
    if host in _VENDORS:
        return False
    thread = ThreadPoolExecutor(1, "model-address")  # nothing cuts a resolver short: it is left to itself
    try:
        found = options.egress.hosts.get(host) or thread.submit(_addresses, host).result(RESOLVE_S)
        return not all(ipaddress.ip_address(one.partition("%")[0]).is_global for one in found)
    except (OSError, ValueError):  # a time-out too
        return False  # it is not known here; the name server of the proxy has the word
    finally:
        thread.shutdown(wait=False)


def _addresses(host: str) -> list[str]:
    return [str(one[4][0]) for one in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)]


def _servers(request: LaunchRequest, options: Options) -> Servers:
    started = started_as(request.argv)
    return options.programs.mcp.get(started.program.value, {}) if started is not None else {}


def _hidden_server(request: LaunchRequest, options: Options) -> str:
    """The file of an MCP server that an operator named and that the sandbox would not show, or empty."""
    for words in _servers(request, options).values():
        file = Path(words[0]).resolve() if not address(words) else None
        if file is not None and not any(file.is_relative_to(folder) for folder in map(Path, SYSTEM_FOLDERS)):
            return words[0]
    return ""


def _models(request: LaunchRequest, options: Options) -> Iterable[SplitResult]:
    """Addresses of a started program's models: those that its environment names, else those that take the keys it gets, else all."""
    started = started_as(request.argv) if request.parent_id is None else None
    if started is None:
        return []
    start = STARTS[started.program.value]
    env = _environment(options, request.agent_type, start.name) | dict(request.env)
    if named := [env[name] for name in start.addresses if env.get(name)]:
        return [_split(one) for one in named]
    hosts = [host for key, host in start.models.items() if env.get(key)] or start.models.values()
    return [urlsplit(f"https://{host}") for host in dict.fromkeys((*hosts, start.keyless)) if host]


def _environment(options: Options, agent_type: str, program: str) -> dict[str, str]:
    wanted = wanted_of(options, agent_type, program)
    return passed_on(os.environ, wanted.names, wanted.secrets)[0] if wanted is not None else {}


def _split(text: str) -> SplitResult:
    try:
        url = urlsplit(text)
        _ = url.port  # raises where it is no number
        return url
    except ValueError:
        return SplitResult("", "", text, "", "")


def _port(url: SplitResult) -> int:
    return url.port or (443 if url.scheme == "https" else 80)


def _own(url: SplitResult, options: Options) -> str:
    """Its host, where an entry of its own for it is acceptable: TLS, the usual port, a name, and not where the kill file lies."""
    host, kill_file = url.hostname or "", kill_file_hosts(options.remote.bucket, options.remote.endpoint)
    if url.scheme != "https" or _port(url) != 443 or host.startswith("*") or meets(host, kill_file):
        return ""
    try:
        for entry in Narrowing(own=(host,)).models():
            entry.check()
    except UsageProblem:
        return ""
    return host
