"""Define the profiles: three sets of rules from which an operator chooses, as data (``resources/policy/profiles``). No agent chooses one.

A profile holds rules in the words of ``settings.json`` and three decisions:

* which programs run what an agent can write;
* which built-in denials become questions;
* which classes of danger are denied.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from console.domain.calls.permission import DangerClass, Verdict
from console.domain.errors import UsageProblem
from console.policy.rules.verdicts import DATABASE, IN_SANDBOX, LOOPBACK, SCRATCH, Judgement, Part, worst

WORK = "workspace programs"
"""The rule of a program that builds, tests or runs what the agent can write."""
PATTERN = "name patterns"
"""The rule of a pattern that the shell puts names for, all of them below a folder that may be read."""
OBSERVED = "observe"
"""The rule of a call that would have been asked or denied, where only a record is wanted."""
NOT_CONTAINED = "it runs code that the agent can write, and no sandbox hides secrets from it or bounds its network; asked once per session"
_CONTAINED = "it runs code that the agent can write, in a sandbox that hides secrets, and its network is not FULL"
_ACCEPTED = "it runs code that the agent can write; a human allowed that for this session, in which nothing contains it"
_OWN = (PATTERN, SCRATCH, LOOPBACK, DATABASE, IN_SANDBOX)
"""Rules of what asks outside of a sandbox alone."""
_FIELDS = {"_comment", "name", "title", "why", "permissions", "work", "softened", "denied", "observes"}


class Standing(StrEnum):
    """What holds an agent beside the rules."""

    CONTAINED = "contained"
    """Its sandbox hides secrets, and its network is not FULL."""
    ACCEPTED = "accepted"
    """Nothing contains it; a human allowed its session to run programs of the workspace."""
    OPEN = "open"
    """Nothing contains it, and no human was asked yet."""


@dataclass(frozen=True, slots=True)
class Profile:
    """One profile as it is kept."""

    name: str
    title: str
    """One sentence for people: what it allows."""
    why: str
    """One sentence: for which work it is meant."""
    permissions: Mapping[str, Any]
    """As in ``settings.json``."""
    work: frozenset[str] = frozenset()
    """Programs that build, test or run what the agent can write. Those that lie in the workspace need no name here."""
    softened: frozenset[str] = frozenset()
    """Built-in rules whose denial is a question: they mean "not certain", not "forbidden"."""
    denied: frozenset[str] = frozenset()
    """Classes of dangerous operations that are denied, not asked."""
    observes: bool = False
    """No tool call is blocked; what would have happened is on record."""


def read_profile(document: object) -> Profile:
    """Reads parsed JSON. Raises UsageProblem with what is wrong."""
    if not isinstance(document, dict) or not {"name", "title", "why", "permissions"} <= set(document) <= _FIELDS:
        raise UsageProblem("The profile is not understood.", f"Fields are {', '.join(sorted(_FIELDS))}.")
    denied = frozenset(document.get("denied", "").split())
    if unknown := denied - set(DangerClass):
        raise UsageProblem(f"The profile denies {min(unknown)!r}, which is no class.", f"Classes are {', '.join(DangerClass)}.")
    return Profile(
        document["name"],
        document["title"],
        document["why"],
        document["permissions"],
        frozenset(document.get("work", "").split()),
        frozenset(document.get("softened", ())),
        denied,
        document.get("observes", False) is True,
    )


def settled(found: Judgement, profile: Profile, standing: Standing) -> Judgement:
    """A judgement by the rules with what the profile decides of its parts. It makes no part milder that a rule denies or asks."""
    parts = tuple(_settled(part, profile, standing) for part in found.parts)
    return found if parts == found.parts else worst(parts, found.steps)


def observed(found: Judgement) -> Judgement:
    """Allowed, with what would have happened as its reason. Its parts say what each of them led to."""
    if found.verdict is Verdict.ALLOW:
        return found
    word = {Verdict.DENY: "denied", Verdict.ASK: "asked"}[found.verdict]
    return replace(found, verdict=Verdict.ALLOW, rule=f"{OBSERVED}: would be {word}", reason=f"{found.rule}: {found.reason}")


def _settled(part: Part, profile: Profile, standing: Standing) -> Part:
    if part.verdict is Verdict.DENY:
        return replace(part, verdict=Verdict.ASK) if part.rule in profile.softened else part
    if part.verdict is not Verdict.ASK:
        return part
    if profile.denied and (part.rule == "devices" or (part.step == "danger" and part.danger in profile.denied)):
        return replace(part, verdict=Verdict.DENY)
    if part.rule == WORK and standing is not Standing.OPEN:
        return replace(part, verdict=Verdict.ALLOW, reason=_CONTAINED if standing is Standing.CONTAINED else _ACCEPTED)
    if part.rule in _OWN and profile.work and standing is Standing.CONTAINED:
        return replace(part, verdict=Verdict.ALLOW)
    return part
