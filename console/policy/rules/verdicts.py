"""What a judgement is made of: parts, each with its verdict, its rule and the step that reached it, and the worst of them all."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from console.domain.calls.permission import Verdict, rank_of, worst_of
from console.policy.way import WHOLE, Way

_RANK = {Verdict.ALLOW: 0, Verdict.ASK: 1, Verdict.DENY: 2}
NO_RULE = "no rule"
"""The rule's name where no rule covers a call: a person is asked."""
SCRATCH = "own scratch"
"""The rule of a file below /tmp, which an agent in a sandbox has for itself. Elsewhere a person is asked."""
LOOPBACK = "own loopback"
"""The rule of a server at this machine's own address, which is the sandbox's own in one with a network of its own."""
DATABASE = "own database"
"""The rule of what reads a database, or changes its shape, where only a database of the sandbox's own can be reached."""
IN_SANDBOX = "only in a sandbox"
"""The rule of what can do no harm where secrets are hidden and the network is the sandbox's own. Elsewhere a person is asked."""
RUN_BY_OPTION = "programs in options"
"""The same where an argument names a program that would be run: it is denied."""
BY_RULE = {"deny": "blocked by rule", "ask": "a rule asks a person", "allow": "allowed by rule"}
"""List of the policy -> why a rule in it decided."""


@dataclass(frozen=True, slots=True)
class Part:
    """One thing that was judged: a simple command, a file it touches, a host it reaches, a redirect."""

    text: str
    """What was judged, as the agent wrote it or as it was resolved. Hostile."""
    verdict: Verdict
    rule: str
    """The rule as written in the settings, or the name of the built-in one."""
    step: str
    """``bounds``, ``parse``, ``program``, ``options``, ``file``, ``redirect``, ``network``, ``git``, ``danger``, ``scope``, ``matrix``,
    ``sensitivity``, ``sources``, ``settings`` or ``tool``."""
    reason: str
    action: str = ""
    """What it would do, for the scopes: ``read``, ``write``, ``delete`` or ``connect``; empty: nothing of these."""
    use: str = ""
    """The same more finely: ``list``, ``make``, ``move`` and others; ``run``: a program; empty: as ``action``."""
    names: tuple[str, ...] = ()
    """The path as it was written and as it is (with a slash behind it when all below is meant), the host, or the program's argv."""

    way: Way = WHOLE
    """How a folder that is read is gone through."""
    tracked: tuple[str, tuple[str, ...]] | None = None
    """Of a folder that git reads: the repository's folder and the files below it that it knows; None: what lies there counts alone."""
    danger: str = ""
    """The class of what is dangerous in it (``domain.danger``); empty: nothing is."""

    def as_json(self) -> dict[str, Any]:
        """As ``policy check`` shows it."""
        told = {"text": self.text, "verdict": self.verdict.value, "rule": self.rule, "step": self.step, "reason": self.reason}
        return {**told, "danger": self.danger} if self.danger else told


@dataclass(frozen=True, slots=True)
class Redirect:
    """What becomes of one descriptor of a step: a real path that was judged, or another descriptor."""

    descriptor: int
    path: str = ""
    mode: str = ""
    """``read``, ``write`` (cut first), ``append``, ``copy`` or ``close``."""
    source: int = -1
    """For ``copy``: the descriptor that is copied."""


@dataclass(frozen=True, slots=True)
class Step:
    """One program to execute, as it was checked. The string itself is never given to a shell."""

    argv: tuple[str, ...]
    program: str
    """Absolute path to execute; empty: there is none on this machine, so nothing is executed."""
    cwd: str
    joined: str = ""
    """How it follows the step before: ``""`` (first), ``;``, ``&&``, ``||``, ``|`` or ``|&``."""
    redirects: tuple[Redirect, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()
    """Variables without which the program would run others (git's pagers, hooks, editors)."""
    file: tuple[int, int, int] | None = None
    """Device, inode and time of change (ns) of the file that was judged: another one is not executed."""

    def as_json(self) -> dict[str, Any]:
        """As ``policy explain`` shows it."""
        redirects = [{"descriptor": r.descriptor, "mode": r.mode, "path": r.path, "source": r.source} for r in self.redirects]
        return {
            "argv": list(self.argv),
            "program": self.program,
            "cwd": self.cwd,
            "joined": self.joined,
            "redirects": redirects,
            "environment": dict(self.environment),
        }


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdict on a call, with the rule and the reason, and every part it was made of."""

    verdict: Verdict
    rule: str
    reason: str
    parts: tuple[Part, ...] = ()
    steps: tuple[Step, ...] = ()
    """What an allowed, or approved, shell call executes. Empty when it is denied."""

    @property
    def danger(self) -> str:
        """The worst class of danger in its parts; empty: none."""
        return worst_of(part.danger for part in self.parts)

    def as_json(self) -> dict[str, Any]:
        """``{"verdict", "rule", "reason", "parts"}``; ``danger`` and its ``rank`` where there is one; ``steps`` of what is executed."""
        told: dict[str, Any] = {"verdict": self.verdict.value, "rule": self.rule, "reason": self.reason}
        if self.danger:
            told |= {"danger": self.danger, "rank": rank_of(self.danger)}
        told["parts"] = [part.as_json() for part in self.parts]
        if self.steps:
            told["steps"] = [step.as_json() for step in self.steps]
        return told


def worst(parts: Iterable[Part], steps: tuple[Step, ...] = ()) -> Judgement:
    """deny before ask before allow; the first part with the worst verdict names the rule, a dangerous one before others. None denies."""
    every = tuple(parts)
    if not every:
        return Judgement(Verdict.DENY, "default", "nothing was checked")
    decisive = next((part for part in every if part.verdict is Verdict.DENY), None)
    asking = [part for part in every if part.verdict is Verdict.ASK]
    decisive = decisive or min(asking, key=lambda part: rank_of(part.danger), default=every[0])  # the worst danger, the first of equals
    if decisive.verdict is Verdict.ALLOW:  # a rule that somebody wrote says more than one that is built in
        decisive = next((part for part in every if part.rule.endswith(")")), decisive)
    kept = () if decisive.verdict is Verdict.DENY else steps
    return Judgement(decisive.verdict, decisive.rule, _reason(decisive, asking), every, kept)


def _reason(decisive: Part, asking: Sequence[Part]) -> str:
    """Why, with the worst danger of the call first: a denial says what it kept from happening as well."""
    danger = min((part for part in asking if part.step == "danger"), key=lambda part: rank_of(part.danger), default=None)
    if decisive.verdict is not Verdict.DENY or danger is None:
        return decisive.reason
    return f"{danger.reason}; {decisive.reason}"


def denied(step: str, rule: str, reason: str, text: str = "") -> Judgement:
    """A judgement of one part that denies."""
    return worst((Part(text, Verdict.DENY, rule, step, reason),))


def joined(*judgements: Judgement) -> Judgement:
    """Several judgements of one call as one; steps come from the first that has some."""
    every = [judgement for judgement in judgements if judgement.parts]
    steps = next((judgement.steps for judgement in every if judgement.steps), ())
    return worst((part for judgement in every for part in judgement.parts), steps)


def no_looser_than(part: Part, least: Verdict, rule: str, reason: str) -> Part:
    """``part``, with ``least`` where its own verdict is milder."""
    if _RANK[part.verdict] >= _RANK[least]:
        return part
    return replace(part, verdict=least, rule=rule, reason=reason)
