"""Sandboxes as values: what one was found to be made of, and the four ways to hold a process we start, from the firmest down."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class GivenState(StrEnum):
    """How one measure was found."""

    GIVEN = "given"
    NOT_AVAILABLE = "not_available"
    """This isolation mode, engine or host cannot give it; the words say because of what."""
    MISSING = "missing"
    """It must be there and is not: such a sandbox is never started."""
    UNKNOWN = "unknown"
    """It could not be checked. Never shown as green."""


@dataclass(frozen=True, slots=True)
class Given:
    """One measure of one sandbox."""

    name: str
    state: GivenState
    words: str
    """What was found, or why it is not to be had; may hold names from the host, never an agent's words."""

    def line(self) -> str:
        """For a person."""
        if self.state is GivenState.NOT_AVAILABLE:
            return f"{self.name}: not available, because {self.words}"
        if self.state is GivenState.GIVEN:
            return f"{self.name}: {self.words}"
        return f"{self.name}: {self.state.value.upper()}, {self.words}"


class RungName(StrEnum):
    """Firmest first; an agent is started on the highest one that this host has."""

    CGROUP_AND_PIDS = "cgroup+pidns"
    CGROUP = "cgroup"
    PIDS = "pidns"
    SUBREAPER = "subreaper"


@dataclass(frozen=True, slots=True)
class Finding:
    """What came of trying one thing, by doing it."""

    ok: bool
    tried: str
    """What was done and what the machine said; a sentence without its full stop."""
    raised_by: tuple[str, ...] = ()
    """What would make it work: a package, a sysctl, a session, a right."""


@dataclass(frozen=True, slots=True)
class LaunchRung:
    """One rung on this host."""

    name: RungName
    available: bool
    proof: str
    """How an end is proven there; empty where none can be."""
    tried: tuple[str, ...]
    raised_by: tuple[str, ...] = ()
    """Empty where it is available."""
    note: str = ""

    @property
    def best_effort(self) -> bool:
        """No kernel proof of the end of an agent held so."""
        return not self.proof


_CGROUP_PROOF = "cgroup.kill; the kernel says populated 0"
_PIDS_PROOF = "SIGKILL of the namespace's init; its pidfd is readable, the namespace empty"


def build_ladder(cgroup: Finding, pids: Finding, *, other_uid: bool) -> tuple[LaunchRung, ...]:
    """The four rungs, from what was found. ``other_uid``: agents run under a uid that may not write the cgroup tree."""
    both = (cgroup.tried, pids.tried)
    leaves = "" if other_uid else "same uid as the cgroup's owner: it could move itself out, so a kill is best effort"
    return (
        LaunchRung(
            RungName.CGROUP_AND_PIDS,
            cgroup.ok and pids.ok,
            _CGROUP_PROOF,
            both,
            _missing(cgroup, pids),
            "" if other_uid else "the PID namespace and a hidden cgroup tree keep it from leaving",
        ),
        LaunchRung(RungName.CGROUP, cgroup.ok, _CGROUP_PROOF if other_uid else "", (cgroup.tried,), _missing(cgroup), leaves),
        LaunchRung(RungName.PIDS, pids.ok, _PIDS_PROOF, (pids.tried,), _missing(pids)),
        LaunchRung(RungName.SUBREAPER, True, "", ("needs nothing",), (), "BEST EFFORT: what it started can only be looked for"),
    )


def default_rung(ladder: tuple[LaunchRung, ...]) -> LaunchRung:
    """What an agent is started on when nothing is asked for: the first that is there. The last one always is."""
    return next(rung for rung in ladder if rung.available)


def _missing(*findings: Finding) -> tuple[str, ...]:
    return tuple(dict.fromkeys(way for finding in findings if not finding.ok for way in finding.raised_by))
