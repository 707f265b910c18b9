"""The limits of ``sources.json`` joined into a verdict: registries and packages, web domains, git remotes. They only ever deny."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from console.domain.permission import Verdict
from console.policy.hosts import read_url
from console.policy.verdicts import Part


@dataclass(frozen=True, slots=True)
class Declared:
    """What exists for an agent, from its type's ``sources.json``. None of a field: the file says nothing about it."""

    managers: dict[str, bool] = field(default_factory=dict)
    """``pip``, ``conda``, ``npm``: whether there is one."""
    registries: tuple[str, ...] = ()
    blocked_packages: tuple[str, ...] = ()
    web_enabled: bool | None = None
    allowed_domains: tuple[str, ...] = ()
    blocked_domains: tuple[str, ...] = ()
    git_enabled: bool | None = None
    allowed_remotes: tuple[str, ...] = ()

    def package(self, manager: str, name: str) -> Part | None:
        """A denial of a package, or None."""
        plain = re.sub(r"[-_.]+", "-", name).lower()  # PEP 503
        if not self.managers.get(manager, False):
            return _deny(name, f"{manager} is not enabled")
        if plain in {re.sub(r"[-_.]+", "-", one).lower() for one in self.blocked_packages}:
            return _deny(name, f"{name} is a blocked package")
        return None

    def registry(self, url: str) -> Part | None:
        """A denial of a registry's address, or None."""
        return None if url.rstrip("/") in {one.rstrip("/") for one in self.registries} else _deny(url, "it is not one of the registries")

    def web(self, url: str) -> Part | None:
        """A denial of a web address, or None."""
        if self.web_enabled is None:
            return None
        there = read_url(url)
        if not self.web_enabled or there is None:
            return _deny(url, "web access is not enabled" if not self.web_enabled else "which host it names is not certain")
        if any(_covers(one, there.host) for one in self.blocked_domains):
            return _deny(url, f"{there.host} is a blocked domain")
        return None if any(_covers(one, there.host) for one in self.allowed_domains) else _deny(url, f"{there.host} is no allowed domain")

    def remote(self, url: str) -> Part | None:
        """A denial of a git remote, or None."""
        if self.git_enabled is None:
            return None
        if not self.git_enabled:
            return _deny(url, "git is not enabled")
        if ".." in url.split("/") or "%" in url:
            return _deny(url, "where it leads is not certain")
        patterns = (
            re.escape(one).replace(r"\*", ".*") if one.endswith("*") else re.escape(one).replace(r"\*", "[^/]*")
            for one in self.allowed_remotes
        )
        return None if any(re.fullmatch(pattern, url) for pattern in patterns) else _deny(url, "it is no allowed remote")


def _covers(domain: str, host: str) -> bool:
    return host.endswith(domain[1:]) and len(host) >= len(domain) if domain.startswith("*.") else host == domain


def _deny(text: str, why: str) -> Part:
    return Part(text, Verdict.DENY, "sources.json", "sources", why)
