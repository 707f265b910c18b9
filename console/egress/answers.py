"""What the egress room answers: values with words for a person."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Availability:
    """Whether PROXIED can be enforced here."""

    ok: bool
    reason: str
    """Which Envoy is used, or why there is none."""
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Validation:
    """What the real Envoy says about a list before it is used."""

    ok: bool
    words: str
    """Envoy's own words when it refuses."""
    ms: float


@dataclass(frozen=True, slots=True)
class Applied:
    """The outcome of a change of the list."""

    version: int
    """The version that is live now: the old one when ``ok`` is false."""
    ms: float
    sandboxes: int
    """How many sandboxes' routes Envoy confirmed."""
    ok: bool
    words: str
