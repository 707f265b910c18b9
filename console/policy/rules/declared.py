"""The limits of ``sources.json`` joined into a verdict: registries and packages, web domains, git remotes. They only ever deny."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from console.domain.calls.permission import Verdict
from console.policy.rules.hosts import read_url
from console.policy.rules.verdicts import Part

MANAGERS = {
    "pip": "pip pipx uv uvx poetry pdm pipenv rye ensurepip easy_install pip-compile pip-sync",
    "npm": "npm npx pnpm pnpx yarn yarnpkg corepack bun bunx npm-cli.js npx-cli.js yarn.js pnpm.cjs",
    "conda": "conda mamba micromamba",
    "": "apt apt-get aptitude dpkg dnf yum microdnf rpm zypper pacman apk brew port snap flatpak nix nix-env nix-shell guix gem cpan cpanm "
    "luarocks",
}
"""Programs by the manager that a ``sources.json`` knows them as; the last ones it has no word for: it declares none of them."""
_MANAGER_OF = {name: manager for manager, names in MANAGERS.items() for name in names.split()}
_INTERPRETERS = frozenset({"python", "python2", "python3", "pypy", "pypy3", "ipython", "node", "nodejs"})
_MODULE = re.compile(r"-[A-Za-z]*m(.*)\Z", re.DOTALL)


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

    def manager(self, names: frozenset[str], argv: Sequence[str]) -> Part | None:
        """A denial of a program that is a package manager which is not declared, or of an interpreter that runs such a one, or None."""
        for name in (*sorted(names), *(_modules(argv) if not names.isdisjoint(_INTERPRETERS) else ())):
            known = _MANAGER_OF.get(name)
            if known is not None and not self.managers.get(known, False):
                return _deny(" ".join(argv), f"{known or name} is not enabled")
        return None

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


def _modules(argv: Sequence[str]) -> Iterator[str]:
    """``python3 -m pip``, ``-mpip``, ``-Im pip``; ``node .../npm-cli.js``."""
    for at, word in enumerate(argv[1:], 1):
        if found := _MODULE.match(word):
            yield (found[1] or (argv[at + 1] if at + 1 < len(argv) else "")).partition(".")[0]
        if word.endswith(("-cli.js", "/yarn.js", "/pnpm.cjs")):
            yield word.rpartition("/")[2]


def _covers(domain: str, host: str) -> bool:
    return host.endswith(domain[1:]) and len(host) >= len(domain) if domain.startswith("*.") else host == domain


def _deny(text: str, why: str) -> Part:
    return Part(text, Verdict.DENY, "sources.json", "sources", why)
