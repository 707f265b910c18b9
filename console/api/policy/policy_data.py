"""What a policy is made from besides its own file: what is known of programs, tools and dangers, and what an agent's type declares."""

from __future__ import annotations

import functools
import json
from typing import Any

from console.domain.errors import UsageProblem
from console.domain.process.assets import resource
from console.policy.dangers import Danger, read_dangers
from console.policy.rules.declared import Declared
from console.policy.rules.loading import read_json
from console.policy.rules.profiles import Profile, read_profile
from console.policy.sequences.find import Pattern
from console.policy.sequences.sequence_file import read_sequences
from console.policy.shell.programs import Catalogue, read_catalogue
from console.policy.tools.catalogue import Tools, read_tools
from console.settings.sources_file import AgentSources


@functools.cache
def catalogue() -> Catalogue:
    """What is known of programs."""
    return read_catalogue(_resource("programs.json"))


@functools.cache
def tools() -> Tools:
    """What is known of tools."""
    return read_tools(_resource("tools.json"))


@functools.cache
def dangers() -> tuple[Danger, ...]:
    """Operations that ask whatever the rules say."""
    return tuple(read_dangers(_resource("dangers.json"), "dangers.json"))


@functools.cache
def sequences() -> tuple[Pattern, ...]:
    """Forbidden sequences that are built in."""
    return read_sequences(resource("policy", "sequences.yaml").read_bytes(), built_in=True).patterns


@functools.cache
def default_rules() -> bytes:
    """The rules of an instance that has none of its own."""
    return resource("policy", "default.json").read_bytes()


PROFILES = ("strict", "coding", "observe")
"""All profiles, as an operator names them."""


@functools.cache
def profile(name: str) -> Profile:
    """A profile by its name. Raises UsageProblem for one that there is not."""
    if name not in PROFILES:
        raise UsageProblem(f"There is no profile {name[:40]!r}.", f"Profiles are {', '.join(PROFILES)}.")
    found = _resource(f"profiles/{name}.json")
    like = found.pop("like", "")
    base = _resource(f"profiles/{like}.json") if like in PROFILES else _resource(f"{like}.json") if like else {}
    return read_profile({**base, **found})


@functools.cache
def profile_rules(name: str) -> bytes:
    """The rules of a profile as a ``settings.json``."""
    return json.dumps({"permissions": dict(profile(name).permissions)}).encode()


def read_all() -> None:
    """Read everything once. A process that judges goes on by it, whatever an upgrade of the package puts in its place."""
    for one in (catalogue, tools, dangers, sequences, default_rules):
        one()
    for name in PROFILES:
        profile_rules(name)


def declared(read: AgentSources) -> Declared:
    """The limits of a ``sources.json`` as a policy joins them."""
    managers = read.package_managers
    return Declared(
        managers={"pip": managers.pip.enabled, "conda": managers.conda.enabled, "npm": managers.npm.enabled},
        registries=tuple(one.url for one in managers.pip.registries),
        blocked_packages=managers.pip.blocked_packages,
        web_enabled=read.web_access.enabled,
        allowed_domains=read.web_access.allowed_domains,
        blocked_domains=read.web_access.blocked_domains,
        git_enabled=read.git.enabled,
        allowed_remotes=read.git.allowed_remotes,
    )


def _resource(name: str) -> Any:
    return read_json(resource("policy", name).read_bytes(), name)
