"""The armed light on the wire: can this host be stopped right now, by which path, proven how and when."""

from __future__ import annotations

from typing import Literal

from console.api.message import View

PERIODS, SLACK_S = 2, 12.0


def fresh_for_s(period_s: float | None) -> float:
    """How long a proof counts: two periods, and the 12 s that a proof may take. Without a period: a canary's 60 s."""
    return PERIODS * (period_s if period_s is not None else 60.0) + SLACK_S


class PathView(View, kw_only=True):
    """One way this host can be stopped, with the proof."""

    name: str
    """local, engine, remote, secrets."""
    state: Literal["proven", "in_doubt", "not_configured", "unavailable"]
    detail: str = ""
    checked_at: float | None = None
    worst_s: float | None = None
    facts: list[tuple[str, str]] = []
    """Up to four label/value pairs for the card."""
    how: str = ""
    """What counts as proof on this path."""
    proof_age_s: float | None = None
    """Seconds since that proof; None: there is none."""
    period_s: float | None = None
    """Seconds between two proofs."""
    measured_ms: float | None = None
    """How long the last canary took to die (local)."""
    heartbeat_age_s: float | None = None
    """Seconds since the poller's last answer of any kind (remote)."""
    lease_left_s: float | None = None
    """Seconds until the guard freezes for want of a good read (remote); None: no lease."""
    clock_off_s: float | None = None
    """This host's clock minus the bucket's (remote); the answer's Date header counts whole seconds."""


class ArmedView(View, kw_only=True):
    """The armed light: can this host be stopped right now."""

    state: Literal["armed", "in_doubt", "killed"]
    why: list[str] = []
    """Every doubt, in words; empty only when armed."""
    worst_s: float | None = None
    """Seconds a press on this host takes at worst, over the proven local ways."""
    paths: list[PathView] = []
