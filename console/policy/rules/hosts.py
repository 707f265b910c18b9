"""Network rules: which host an argument names, and whether it may be reached. What cannot be read as one host is not certain."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from console.domain.calls.permission import Verdict
from console.policy.rules.loading import Settings
from console.policy.rules.rule import Family
from console.policy.rules.verdicts import BY_RULE, LOOPBACK, NO_RULE, Part

_NAME = re.compile(r"(?=.{1,253}\Z)([a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?\.)*[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?\Z")
_NUMERIC = re.compile(r"(0x[0-9a-f]*|\d+)(\.(0x[0-9a-f]*|\d+)){0,3}\Z")
_PORTS = {"http": 80, "https": 443, "ftp": 21, "ssh": 22, "git": 9418, "ws": 80, "wss": 443}
_LOOPBACK = re.compile(r"localhost|127(?:\.\d{1,3}){3}|::1|0\.0\.0\.0")
"""Names and addresses of the machine itself, or of a network namespace (ip(7), ipv6(7))."""
_UNSAFE = re.compile(r"[\s\\{}\[\]<>^`|\"']")


@dataclass(frozen=True, slots=True)
class Destination:
    """One host, and its port if known."""

    host: str
    port: int | None


def read_url(text: str) -> Destination | None:
    """The one host of a URL; None where programs would disagree about it. ``file:`` and unknown schemes are not read."""
    if not text.isascii() or not text.isprintable():
        return None
    if "://" not in text:
        return None
    bracketed = re.sub(r"\[[0-9a-fA-F:.]+\]", "v6", text)
    if _UNSAFE.search(bracketed) or "@" in text.split("://", 1)[1].split("/", 1)[0]:
        return None
    try:
        parts = urlsplit(text)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return None
    scheme = parts.scheme.lower()
    if scheme not in _PORTS:
        return None
    return _checked(host, port if port is not None else _PORTS[scheme])


def read_host(text: str) -> Destination | None:
    """A host, or host and port, as written in an argument."""
    found = re.match(r"(\[[0-9a-fA-F:.]+\]|[^:/@\s]+)(?::(\d{1,5}))?\Z", text)
    if found is None or not text.isascii():
        return None
    return _checked(found.group(1).strip("[]"), int(found.group(2)) if found.group(2) else None)


def _checked(host: str, port: int | None) -> Destination | None:
    bare = host.lower().rstrip(".")
    if port is not None and not 0 < port < 65536:
        return None
    if ":" in bare:
        try:
            address = ipaddress.IPv6Address(bare)
            return Destination(str(address.ipv4_mapped or address), port)
        except ValueError:
            return None
    if _NUMERIC.match(bare):  # 0x7f.1, 017700000001, 127.1: programs read them as addresses, each in its own way
        try:
            return Destination(str(ipaddress.IPv4Address(bare)), port)
        except ValueError:
            return None
    return Destination(bare, port) if _NAME.match(bare) else None


class HostRules:
    """The network rules of one policy."""

    def __init__(self, settings: Settings, *, has_loopback: bool = False) -> None:
        self._has_loopback = has_loopback
        self._lists = [(kind, settings.of(kind, Family.NETWORK)) for kind in ("deny", "ask", "allow")]

    def judge(self, text: str, is_url: bool) -> Part:
        """A verdict on reaching what ``text`` names."""
        shown = f"reach {text}"
        there = read_url(text) if is_url else read_host(text)
        if there is None:
            return self._unread(shown)
        for (kind, rules), verdict in zip(self._lists, (Verdict.DENY, Verdict.ASK, Verdict.ALLOW), strict=True):
            for rule in rules:
                if rule.covers_host(there.host, there.port) and (kind != "allow" or rule.port in (None, there.port)):
                    return Part(shown, verdict, rule.text, "network", BY_RULE[kind], names=(there.host,))
        name = LOOPBACK if self._has_loopback and _LOOPBACK.fullmatch(there.host) else NO_RULE
        return Part(shown, Verdict.ASK, name, "network", f"no rule says whether {there.host} may be reached", names=(there.host,))

    def _unread(self, shown: str) -> Part:
        """What is no single host for certain: any denial may be meant."""
        if denying := self._lists[0][1]:
            return Part(shown, Verdict.DENY, denying[0].text, "network", "which host it names is not certain, and hosts are denied")
        return Part(shown, Verdict.ASK, NO_RULE, "network", "which host it names is not certain")
