"""``sources.json`` of one agent type: what exists for it. Read whole, checked wholly, refused with the place of the first mistake."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta

from console.domain.errors import ConsoleError, UsageProblem
from console.domain.message import Malformed, Message
from console.domain.network import Narrowing
from console.domain.process.environment import check_agent_type

MAX_BYTES = 256 * 1024
_HOST = re.compile(r"^(\*\.)?([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)*[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\Z")
_PACKAGE = re.compile(r"^(@[a-z0-9][a-z0-9._-]*/)?[A-Za-z0-9]([A-Za-z0-9._-]{0,120}[A-Za-z0-9])?\Z")
_REMOTE = re.compile(r"^(https?|ssh)://[a-z0-9*][a-z0-9.*-]*(:\d{1,5})?(/[A-Za-z0-9._~/*-]*)?\Z")
_LANGUAGE = re.compile(r"^[A-Za-z][A-Za-z0-9+#._-]{0,40}\Z")

Host = Annotated[str, Meta(max_length=253)]
Megabytes = Annotated[int, Meta(ge=1, le=1_000_000)]


class _Part(Message, kw_only=True, forbid_unknown_fields=True):
    comment: str = msgspec.field(default="", name="_comment")


class Registry(_Part):
    """One package registry."""

    name: Annotated[str, Meta(min_length=1, max_length=60)]
    url: Annotated[str, Meta(max_length=500)]
    trusted: bool = False

    def __post_init__(self) -> None:
        if problem := _problem_of_registry(self.url):
            raise Malformed(("url",), problem)


def _problem_of_registry(url: str) -> str:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        return str(error)
    if parts.scheme not in ("https", "http") or not parts.hostname or parts.username or parts.query or parts.fragment:
        return "must be http:// or https:// with a host, without user, query or fragment"
    if not _HOST.match(parts.hostname) or parts.hostname.startswith("*") or port not in (None, 80, 443):
        return "must name a host in lower case, on port 443 (https) or 80 (http)"
    is_plain = re.fullmatch(r"[A-Za-z0-9._~/-]*", parts.path)
    return "" if is_plain else "has a path with characters other than letters, digits and ._~/-"


class PackageManager(_Part):
    """pip, conda or npm."""

    enabled: bool = False
    registries: tuple[Registry, ...] = ()
    max_install_size_mb: Megabytes | None = None
    blocked_packages: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _each("blocked_packages", self.blocked_packages, _PACKAGE, "is not a package's name")
        if self.enabled and not self.registries:
            raise Malformed((), "is enabled and has no registries: name one, or set enabled to false")


class PackageManagers(_Part):
    """Every package manager there is."""

    pip: PackageManager = msgspec.field(default_factory=PackageManager)
    conda: PackageManager = msgspec.field(default_factory=PackageManager)
    npm: PackageManager = msgspec.field(default_factory=PackageManager)


class WebAccess(_Part):
    """Destinations, below the allowlist."""

    enabled: bool = False
    allowed_domains: tuple[Host, ...] = ()
    blocked_domains: tuple[Host, ...] = ()

    def __post_init__(self) -> None:
        for field in ("allowed_domains", "blocked_domains"):
            _each(field, getattr(self, field), _HOST, "is not a host in lower case, nor a pattern like *.example.com")


class Git(_Part):
    """Remotes."""

    enabled: bool = False
    allowed_remotes: tuple[str, ...] = ()
    max_clone_size_mb: Megabytes | None = None

    def __post_init__(self) -> None:
        _each("allowed_remotes", self.allowed_remotes, _REMOTE, "is not a remote like https://github.com/*")


class Runtime(_Part):
    """Languages and limits."""

    languages: tuple[str, ...] = ()
    interpreters: dict[str, str] = {}
    max_execution_time_seconds: Annotated[int, Meta(ge=1, le=31_536_000)] | None = None
    max_memory_mb: Annotated[int, Meta(ge=16, le=16_777_216)] | None = None

    def __post_init__(self) -> None:
        _each("languages", self.languages, _LANGUAGE, "is not a language's name")
        for name, path in self.interpreters.items():
            if not _LANGUAGE.match(name) or not path.startswith("/") or ".." in path.split("/") or "\0" in path:
                raise Malformed(("interpreters",), f"{name[:40]!r} must be an absolute path without ..")


class AgentSources(_Part):
    """What one type of agent has."""

    agent_type: Annotated[str, Meta(min_length=1)]
    package_managers: PackageManagers = msgspec.field(default_factory=PackageManagers)
    web_access: WebAccess = msgspec.field(default_factory=WebAccess)
    git: Git = msgspec.field(default_factory=Git)
    runtime: Runtime = msgspec.field(default_factory=Runtime)

    def narrowing(self) -> Narrowing:
        """What is left of the allowlist. Registries and remotes count as destinations of their own."""
        managers = (self.package_managers.pip, self.package_managers.conda, self.package_managers.npm)
        on = [manager for manager in managers if manager.enabled]
        hosts = list(self.web_access.allowed_domains if self.web_access.enabled else ())
        hosts += [_host_of(registry.url) for manager in on for registry in manager.registries]
        hosts += [_host_of(remote) for remote in self.git.allowed_remotes if self.git.enabled]
        sizes = [manager.max_install_size_mb for manager in on] + ([self.git.max_clone_size_mb] if self.git.enabled else [])
        most = 0 if None in sizes or not sizes else max(size for size in sizes if size) * 1024 * 1024
        return Narrowing(tuple(dict.fromkeys(hosts)), self.web_access.blocked_domains, tuple(self._blocked_paths()), most)

    def _blocked_paths(self) -> list[tuple[str, str]]:
        found = []
        for manager in (self.package_managers.pip, self.package_managers.npm, self.package_managers.conda):
            for registry in manager.registries if manager.enabled else ():
                parts = urlsplit(registry.url)
                for name in manager.blocked_packages:
                    # PEP 503: case, and runs of - _ . in a name, mean nothing.
                    word = "[-_.]+".join(re.escape(piece) for piece in re.split(r"[-_.]+", name))
                    found.append((str(parts.hostname), f"(?i){re.escape(parts.path.rstrip('/'))}/(.*/)?{word}([-/].*)?"))
        return found

    def variables(self) -> dict[str, str]:
        """What package managers and git read in the environment."""
        pip, npm = self.package_managers.pip, self.package_managers.npm
        said: dict[str, str] = {"GIT_ALLOW_PROTOCOL": self._protocols(), "GIT_TERMINAL_PROMPT": "0"}
        if pip.enabled:
            said["PIP_INDEX_URL"] = pip.registries[0].url
            if pip.registries[1:]:
                said["PIP_EXTRA_INDEX_URL"] = " ".join(registry.url for registry in pip.registries[1:])
            plain = [_host_of(r.url) for r in pip.registries if r.trusted and r.url.startswith("http://")]
            said |= {"PIP_TRUSTED_HOST": " ".join(plain)} if plain else {}
        else:
            said["PIP_NO_INDEX"] = "1"
        said |= {"npm_config_registry": npm.registries[0].url} if npm.enabled else {"npm_config_offline": "true"}
        return said

    def _protocols(self) -> str:
        used = sorted({remote.partition("://")[0] for remote in self.git.allowed_remotes}) if self.git.enabled else []
        return ":".join(used) or "none"

    def not_enforced(self) -> list[str]:
        """What is shown and cannot be enforced, with its reason."""
        said = []
        on = [m for m in (self.package_managers.pip, self.package_managers.conda, self.package_managers.npm) if m.enabled]
        if any(m.blocked_packages and any(r.url.startswith("https://") for r in m.registries) for m in on):
            said.append("blocked packages at an https registry: not available, because a tunnel shows no path")
        if self.git.enabled and any(urlsplit(remote).path not in ("", "/", "/*") for remote in self.git.allowed_remotes):
            said.append("paths of git remotes: not available, because a tunnel shows no path; their hosts are enforced")
        if self.runtime.languages or self.runtime.interpreters:
            said.append("languages and interpreters: shown only, because an agent may bring a program of its own")
        return said


def _each(field: str, values: tuple[str, ...], pattern: re.Pattern[str], words: str) -> None:
    """Raises Malformed, with its place, for the first value that does not match."""
    for number, value in enumerate(values):
        if not pattern.match(value):
            raise Malformed((field,), f"[{number}] {value[:80]!r} {words}")


def _host_of(url: str) -> str:
    return url.partition("://")[2].partition("/")[0].partition(":")[0]


def parse_sources(text: str, where: str, expected_type: str) -> AgentSources:
    """Reads one file's text. Raises UsageProblem with file, place in it, and what to do."""
    try:
        raw = json.loads(text, object_pairs_hook=_no_duplicates)
    except (ValueError, RecursionError) as error:
        raise UsageProblem(
            f"{where}: not JSON: {str(error)[:200]}.", "Fix the file; agents of this type are not started until then."
        ) from error
    try:
        found = AgentSources.read(raw)
        check_agent_type(found.agent_type)
    except Malformed as error:
        place = "$" + "".join(f"[{part}]" if part.isdecimal() else f".{part}" for part in error.parts)
        raise UsageProblem(
            f"{where}: {place}: {error.words}."[:600], "Fix that value; agents of this type are not started until then."
        ) from error
    if found.agent_type != expected_type:
        raise UsageProblem(
            f"{where}: $.agent_type: is {found.agent_type[:63]!r}, and the file is named for {expected_type!r}.", "Rename one of them."
        )
    return found


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = [name for name, _ in pairs]
    if len(set(names)) < len(names):
        raise ValueError(f"{next(n for n in names if names.count(n) > 1)[:60]!r} occurs twice")
    return dict(pairs)


def load_sources(folder: Path, agent_type: str) -> AgentSources | None:
    """The file of one type; None: it has none. Raises UsageProblem (a broken one never reads as none)."""
    path = folder / f"{check_agent_type(agent_type)}.json"
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConsoleError(f"{path}: cannot be read: {error.strerror}.", "Fix its permissions.") from error
    if len(data) > MAX_BYTES:
        raise UsageProblem(f"{path}: is longer than {MAX_BYTES} bytes.", "Shorten it.")
    try:
        return parse_sources(data.decode(), str(path), agent_type)
    except UnicodeDecodeError as error:
        raise UsageProblem(f"{path}: is not UTF-8.", "Save it as UTF-8.") from error
