"""What an agent's type takes away from the allowlist: pure. It never adds a destination (promise 4, promise 7)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from console.domain.network import Allowlist, AllowlistEntry, Sensitivity


@dataclass(frozen=True, slots=True)
class Narrowing:
    """The destinations that are left of the allowlist for one agent."""

    only: tuple[str, ...] = ()
    """Hosts, or ``*.`` patterns; nothing else is left. Empty: nothing at all."""
    never: tuple[str, ...] = ()
    """Hosts, or ``*.`` patterns, that are taken away again."""
    blocked_paths: tuple[tuple[str, str], ...] = ()
    """(host, regular expression of a path) refused on port 80, where a path can be seen."""
    most_bytes: int = 0
    """Most bytes that one connection may carry in one direction; 0: not bounded."""


def covers(pattern: str, host: str) -> bool:
    """Whether a host, or everything that a ``*.`` pattern means, lies within ``pattern``."""
    if pattern.startswith("*."):
        return host.removeprefix("*").endswith(pattern[1:]) and host != pattern[2:]
    return host == pattern


def narrow(allowlist: Allowlist, by: Narrowing | None, level: Sensitivity = Sensitivity.PUBLIC) -> Allowlist:
    """The list as it is for one agent, in whose session there is data of ``level``; None: its type takes nothing away."""
    may = [entry for entry in allowlist.entries if entry.may_receive.level >= level.level]
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
