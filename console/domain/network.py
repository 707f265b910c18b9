"""Network modes, sensitivities and the allowlist: pure values and the pure judgement of a destination.

What an agent's type takes away from the allowlist is part of it: it never adds a destination (promise 4, promise 7).
"""

from __future__ import annotations

import ipaddress
import itertools
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Protocol

from console.domain.errors import UsageProblem


class ModeRules(Protocol):
    """What one network mode means to everybody who asks; one class for each mode."""

    severity: int
    """By which modes are ordered: the looser first."""
    is_restricted: bool
    """What it reaches is held, by a network namespace of its own."""
    has_portal: bool
    """Its requests go through a portal, and the allowlist decides."""
    is_closed: bool
    """It reaches nothing."""
    reach: str
    """What it reaches, told to the agent."""


class Full:
    """The whole network of the host or its container."""

    severity = 0
    is_restricted = has_portal = is_closed = False
    reach = "Every destination can be reached."


class Proxied:
    """Approved destinations alone."""

    severity = 1
    is_restricted = has_portal = True
    is_closed = False
    reach = "Only approved destinations can be reached."


class NoNetwork:
    """No destination."""

    severity = 2
    is_restricted = is_closed = True
    has_portal = False
    reach = "No destination can be reached."


_FULL, _PROXIED, _NO_NETWORK = Full(), Proxied(), NoNetwork()


class NetworkMode(StrEnum):
    """What an agent may reach, ordered by severity (FULL < PROXIED < NONE). Other modules ask what a mode means, never which it is."""

    FULL = "FULL"
    PROXIED = "PROXIED"
    NONE = "NONE"

    @property
    def rules(self) -> ModeRules:
        """The table of modes: mypy fails when one has no class, or a class lacks an answer."""
        match self:
            case NetworkMode.FULL:
                return _FULL
            case NetworkMode.PROXIED:
                return _PROXIED
            case NetworkMode.NONE:
                return _NO_NETWORK

    @property
    def severity(self) -> int:
        """By which modes are ordered: the looser first."""
        return self.rules.severity

    @property
    def is_restricted(self) -> bool:
        """What it reaches is held, by a network namespace of its own."""
        return self.rules.is_restricted

    @property
    def has_portal(self) -> bool:
        """Its requests go through a portal, and the allowlist decides."""
        return self.rules.has_portal

    @property
    def is_closed(self) -> bool:
        """It reaches nothing."""
        return self.rules.is_closed


LOOSEST, STRICTEST = NetworkMode.FULL, NetworkMode.NONE
"""The default, and what holds when the mode that was asked for cannot be read."""


class Sensitivity(StrEnum):
    """How sensitive the data of a session is; only ever rises (promise 4)."""

    PUBLIC = "PUBLIC"
    INTERNAL = "INTERNAL"
    CONFIDENTIAL = "CONFIDENTIAL"
    SECRET = "SECRET"

    @property
    def level(self) -> int:
        """0 (PUBLIC) to 3 (SECRET)."""
        return tuple(Sensitivity).index(self)


def read_sensitivity(text: object) -> Sensitivity:
    """Reads a stored or reported sensitivity; whatever is unknown or unreadable reads as SECRET (fail closed)."""
    try:
        return Sensitivity(str(text).upper())
    except ValueError:
        return Sensitivity.SECRET


def stricter_mode(a: NetworkMode, b: NetworkMode) -> NetworkMode:
    """The more restrictive of two modes."""
    return a if a.severity >= b.severity else b


def higher(a: Sensitivity, b: Sensitivity) -> Sensitivity:
    """The more sensitive of two levels."""
    return a if a.level >= b.level else b


def mode_for(sensitivity: Sensitivity) -> NetworkMode:
    """PUBLIC and INTERNAL: FULL; CONFIDENTIAL: PROXIED; SECRET: NONE."""
    match sensitivity:
        case Sensitivity.PUBLIC | Sensitivity.INTERNAL:
            return NetworkMode.FULL
        case Sensitivity.CONFIDENTIAL:
            return NetworkMode.PROXIED
        case Sensitivity.SECRET:
            return NetworkMode.NONE


@dataclass(frozen=True, slots=True)
class ModeMapping:
    """Which mode each sensitivity asks for. It can be made stricter than ``mode_for``, never looser."""

    modes: tuple[NetworkMode, NetworkMode, NetworkMode, NetworkMode] = (
        NetworkMode.FULL,
        NetworkMode.FULL,
        NetworkMode.PROXIED,
        NetworkMode.NONE,
    )
    """By level: PUBLIC, INTERNAL, CONFIDENTIAL, SECRET."""

    def of(self, sensitivity: Sensitivity) -> NetworkMode:
        """The mode of a level; never looser than ``mode_for``, whatever was put in."""
        return stricter_mode(self.modes[sensitivity.level], mode_for(sensitivity))


def mapping_of(words: Mapping[str, str]) -> ModeMapping:
    """``{"INTERNAL": "PROXIED"}`` over the usual mapping.

    Raises UsageProblem on an unknown word, a looser mode, or a higher level with a looser mode than a lower one.
    """
    modes = list(ModeMapping().modes)
    for name, mode in words.items():
        try:
            level, wanted = Sensitivity(name), NetworkMode(mode)
        except ValueError as error:
            raise UsageProblem(
                f"network.modes: {name[:40]!r}: {mode[:40]!r} is not known.",
                f"Levels are {', '.join(Sensitivity)}; modes are {', '.join(NetworkMode)}.",
            ) from error
        if wanted.severity < mode_for(level).severity:
            raise UsageProblem(f"network.modes: {level} cannot be {wanted}: {mode_for(level)} is the least.", "Name a stricter mode.")
        modes[level.level] = wanted
    if any(a.severity > b.severity for a, b in itertools.pairwise(modes)):
        raise UsageProblem("network.modes: a more sensitive level has a looser mode.", "Make the higher level at least as strict.")
    return ModeMapping((modes[0], modes[1], modes[2], modes[3]))


# RFC 1123 labels, lower case, at least two of them; an optional leading "*." covers exactly the names below it.
_HOST = re.compile(r"^(\*\.)?(?=.{1,253}$)([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\Z")
_METHOD = re.compile(r"^[A-Z]{3,10}\Z")
_PATH = re.compile(r"^/[!\"$-.0->@-~/]{0,511}\Z")  # printable ASCII without space, ? and #
AMBIGUOUS_PATH = (
    r"(?i)[^?]*(?:"
    r"/\.{1,2}(?:;|%3b)"  # a dot segment with a parameter: servers that cut parameters off climb by it (RFC 3986 section 3.3)
    r"|%25(?:25)*(?:2e|2f|3b|5c)"  # read twice
    r"|%c[01]|%e0%[89]|%f0%8"  # UTF-8 in more bytes than needed (RFC 3629 section 3)
    r"|%(?:$|[^0-9a-f]|[0-9a-f](?:$|[^0-9a-f]))"  # no escape, or one of somebody's own (%u002e)
    r").*"
)
"""A whole path that servers read in different ways: never within an entry that names paths. Python's and RE2's syntax."""
_AMBIGUOUS = re.compile(AMBIGUOUS_PATH)
TLS_PORT = 443
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


@dataclass(frozen=True, slots=True)
class AllowlistEntry:
    """One destination reachable in PROXIED mode, as reviewed configuration."""

    entry_id: str
    """Stable id, given by the supervisor (``e1``, ``e2`` ...)."""
    host: str
    """Lower-case host name, exact or ``*.example.com`` (which does not cover the apex)."""
    port: int = 443
    """1 to 65535. On 443 only TLS whose SNI equals the host passes; other ports are plain HTTP."""
    methods: tuple[str, ...] = ()
    """HTTP methods for plain HTTP; empty: any. A CONNECT tunnel cannot be judged by method."""
    paths: tuple[str, ...] = ()
    """Path prefixes for plain HTTP (``/v1/``); empty: any."""
    reason: str = ""
    """Why it may be reached; required."""
    owner: str = ""
    """Who answers for it; required."""
    review_by: str = ""
    """ISO date of the next review, or empty."""
    may_receive: Sensitivity = Sensitivity.INTERNAL
    """Highest data class that may be sent there."""
    private_networks: tuple[str, ...] = ()
    """CIDR ranges (RFC 1918, RFC 4193) the name may resolve to; empty: public addresses only."""

    def check(self) -> None:
        """Raises UsageProblem with the precise field when the entry is not acceptable."""
        if self.host.startswith("*.") and self.host.count(".") == 1:
            raise UsageProblem(f"Host {self.host[:80]!r} allows every name below {self.host[2:80]!r}.", "Name a domain: *.example.com.")
        if not _HOST.match(self.host):
            raise UsageProblem(
                f"Host {self.host[:80]!r} is not a lower-case DNS name.",
                "Write a name such as api.example.com or *.example.com; addresses, ports and paths have their own fields.",
            )
        if self.host.rsplit(".", 1)[-1].isdigit():
            raise UsageProblem(f"Host {self.host!r} is an address, not a name.", "Name the service by its DNS name.")
        if not 1 <= self.port <= 65535:
            raise UsageProblem(f"Port {self.port} is outside 1 to 65535.", "Give a TCP port.")
        for method in self.methods:
            if not _METHOD.match(method):
                raise UsageProblem(f"Method {method[:20]!r} is not an HTTP method.", f"Use any of {', '.join(METHODS)}.")
        for path in self.paths:
            if not _PATH.match(path):
                raise UsageProblem(
                    f"Path {path[:80]!r} is not a plain path prefix.", "Start with / and use printable ASCII without ? or #."
                )
        self._check_people()
        for network in self.private_networks:
            _check_private(network)

    def check_enforceable(self) -> None:
        """Raises UsageProblem for a bound that nothing would hold. Entries that were kept before go on to be read."""
        for name, given in (("method", self.methods), ("path", self.paths)):
            if given and self.port == TLS_PORT:
                raise UsageProblem(
                    f"A {name} cannot be enforced on port {TLS_PORT}: HTTPS is not decrypted, so only host and port are checked.",
                    f"Leave the {name} out, or name the port of a plain HTTP service.",
                )
        if "CONNECT" in self.methods:
            raise UsageProblem(f"CONNECT cannot be allowed on port {self.port}: a tunnel goes to {TLS_PORT} only.", "Leave it out.")

    def is_same_as(self, other: AllowlistEntry) -> bool:
        """Return whether both allow exactly the same, whatever their owners and reasons."""
        return _allows(self) == _allows(other)

    def _check_people(self) -> None:
        if not self.reason.strip() or not self.owner.strip():
            raise UsageProblem("An allowlist entry needs a reason and an owner.", "Say why it may be reached and who answers for it.")
        if len(self.reason) > 500 or len(self.owner) > 100:
            raise UsageProblem("Reason (500) or owner (100) is too long.", "Shorten it.")

    def covers_host(self, host: str) -> bool:
        """Whether the entry names this exact lower-case host."""
        if self.host.startswith("*."):
            return host.endswith(self.host[1:]) and len(host) > len(self.host) - 1
        return host == self.host


def _allows(entry: AllowlistEntry) -> tuple[object, ...]:
    lists = (frozenset(entry.methods), frozenset(entry.paths), frozenset(entry.private_networks))
    return entry.host, entry.port, entry.may_receive, *lists


_PRIVATE = tuple(ipaddress.ip_network(n) for n in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7"))


def _check_private(network: str) -> None:
    try:
        parsed = ipaddress.ip_network(network)
    except ValueError as error:
        raise UsageProblem(f"Private network {network[:60]!r} is not a CIDR range.", "Write for example 10.20.0.0/16.") from error
    if not any(parsed.version == p.version and parsed.subnet_of(p) for p in _PRIVATE):  # type: ignore[arg-type]
        raise UsageProblem(
            f"{network} is not inside a private range.",
            "Only RFC 1918, RFC 6598 and RFC 4193 ranges can be named; loopback, link-local and metadata addresses never.",
        )


@dataclass(frozen=True, slots=True)
class Judgement:
    """Whether a destination is reachable in PROXIED mode, by which entry, or what entry would be needed."""

    allowed: bool
    entry_id: str | None
    """The entry that allows it, or whose host matches but whose port, method or path does not."""
    reason: str


@dataclass(frozen=True, slots=True)
class Allowlist:
    """The platform-wide list; empty means nothing is reachable."""

    version: int = 0
    entries: tuple[AllowlistEntry, ...] = field(default=())

    def judge(self, method: str, host: str, port: int, path: str) -> Judgement:
        """Judges one request as Envoy does. ``method`` CONNECT is judged by host and port alone (tunnel)."""
        needed = f"{method} {host}:{port}" + ("" if method == "CONNECT" else path)
        near: AllowlistEntry | None = None
        for entry in self.entries:
            if not entry.covers_host(host):
                continue
            near = near or entry
            if entry.port != port:
                continue
            near = entry
            if method == "CONNECT":
                return Judgement(True, entry.entry_id, f"entry {entry.entry_id}")
            if entry.methods and method not in entry.methods:
                continue
            if entry.paths and (_AMBIGUOUS.fullmatch(path) or not any(is_under(path, prefix) for prefix in entry.paths)):
                continue
            return Judgement(True, entry.entry_id, f"entry {entry.entry_id}")
        if near is not None:
            return Judgement(False, near.entry_id, f"{needed} is outside entry {near.entry_id}")
        return Judgement(False, None, f"no entry for {needed}")


def is_under(path: str, prefix: str) -> bool:
    """Whether a path, its query aside, is a prefix or lies below it: ``/v1`` covers ``/v1`` and ``/v1/x``, never ``/v1x``."""
    bare = path.split("?", 1)[0]
    return bare == prefix or bare.startswith(prefix if prefix.endswith("/") else prefix + "/")


@dataclass(frozen=True, slots=True)
class EgressRecord:
    """One request an agent made through Envoy, from Envoy's own access log."""

    at: float
    """Seconds since the epoch."""
    agent_id: str
    method: str
    host: str
    path: str
    status: int
    bytes_up: int
    bytes_down: int
    allowed: bool
    rule: str
    """``entry e3``, or why it was blocked."""


EVERYTHING = "*"
"""As ``Narrowing.only``: all of the allowlist is left."""
MODEL = "model"
"""Id of the entries that ``Narrowing.own`` adds."""


@dataclass(frozen=True, slots=True)
class Narrowing:
    """The destinations of one agent: what is left of the allowlist, and the address of its model."""

    only: tuple[str, ...] = ()
    """Hosts, or ``*.`` patterns; nothing else is left. Empty: nothing at all."""
    never: tuple[str, ...] = ()
    """Hosts, or ``*.`` patterns, that are taken away again."""
    blocked_paths: tuple[tuple[str, str], ...] = ()
    """(host, regular expression of a path) refused on port 80, where a path can be seen."""
    most_bytes: int = 0
    """Most bytes that one connection may carry in one direction; 0: not bounded."""
    own: tuple[str, ...] = ()
    """Hosts at which the model of a program answers, over TLS: an operator started it, so that it may ask its model. No others get them."""

    @property
    def takes_away(self) -> bool:
        """Whether anything of the allowlist is not left."""
        return replace(self, own=()) != Narrowing(only=(EVERYTHING,))

    def models(self) -> list[AllowlistEntry]:
        """Entries for ``own``."""
        return [AllowlistEntry(MODEL, host, TLS_PORT, reason="the model of the program", owner="who started it") for host in self.own]


def covers(pattern: str, host: str) -> bool:
    """Whether a host, or everything that a ``*.`` pattern means, lies within ``pattern``."""
    if pattern == EVERYTHING:
        return True
    if pattern.startswith("*."):
        return host.removeprefix("*").endswith(pattern[1:]) and host != pattern[2:]
    return host == pattern


def narrow(allowlist: Allowlist, by: Narrowing | None, level: Sensitivity = Sensitivity.PUBLIC) -> Allowlist:
    """The list as it is for one agent, in whose session there is data of ``level``; None: its type takes nothing away."""
    all_of_it = (*allowlist.entries, *(by.models() if by is not None else ()))
    may = [entry for entry in all_of_it if entry.may_receive.level >= level.level]
    if by is None:
        return allowlist if len(may) == len(allowlist.entries) else Allowlist(allowlist.version, tuple(may))
    left = [kept for entry in may for kept in _narrowed(entry, by)]
    return Allowlist(allowlist.version, tuple(left))


def _narrowed(entry: AllowlistEntry, by: Narrowing) -> list[AllowlistEntry]:
    hosts = [entry.host] if any(covers(pattern, entry.host) for pattern in by.only) else []
    if not hosts and entry.host.startswith("*."):
        hosts = [pattern for pattern in by.only if covers(entry.host, pattern)]  # what was asked for is less than the entry
    # A pattern that holds something forbidden goes whole: an entry cannot say "but not".
    left = [host for host in dict.fromkeys(hosts) if not any(covers(n, host) or covers(host, n) for n in by.never)]
    return [entry if host == entry.host else replace(entry, host=host) for host in left]
