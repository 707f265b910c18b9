"""The kill switch as the console knows it: the supervisor's view, the guard's own words, and the receipt of the last press."""

from __future__ import annotations

from typing import Literal

from console.api.messages import KillSwitchView, StatusView
from console.domain.errors import ExitCode
from console.domain.kill import Outcome, Receipt, Step, StepName, StepStatus, Target
from console.domain.verdict import verdict
from console.gui.widgets.words import long_span
from console.panic.guard_state import GuardState

Light = Literal["armed", "in_doubt", "killing", "killed", "unknown"]
SILENT_S = 5.0
"""Without an answer, or without the stream of changes, for longer than this, what is known is old."""


class Switch:
    """Everything the armed light, the banner and the kill switch page show."""

    def __init__(self) -> None:
        self.view: KillSwitchView | None = None
        self.viewed_at: float | None = None
        self.status: StatusView | None = None
        self.heard_at: float | None = None
        """Seconds since the epoch of the supervisor's last answer."""
        self.deaf_since: float | None = None
        """When the stream of changes broke off; None while it is heard, and before it ever was."""
        self.guard = GuardState()
        self.receipt: Receipt | None = None
        self.agents_live = 0

    @property
    def is_killed(self) -> bool:
        """Latched, by either's word."""
        return bool((self.guard.alive and self.guard.latched) or (self.view and self.view.killed))

    @property
    def is_killing(self) -> bool:
        """Signals are out and not everything has been judged yet."""
        return self.guard.is_killing or bool(self.view and self.view.state == "killing")

    def hear(self, *, up: bool, now: float) -> None:
        """The stream of changes is there, or broke off."""
        self.deaf_since = None if up else now

    def is_silent(self, now: float) -> bool:
        """Nobody has answered lately, or ever."""
        return self.heard_at is None or now - self.heard_at > SILENT_S

    def is_deaf(self, now: float) -> bool:
        """Somebody answers, and what changes is not heard."""
        return self.deaf_since is not None and now - self.deaf_since > SILENT_S

    def is_old(self, now: float) -> bool:
        """What is shown is from some time ago, or was never read: nothing of it is green, whatever the light shows."""
        return self.is_silent(now) or self.is_deaf(now) or self.view is None

    def light(self, now: float) -> tuple[Light, str]:
        """(state, words) of the armed light. Never green during a kill, while anything is silent, or on old news."""
        if self.is_killing:
            left = max(0, self.guard.total - self.guard.proven) if self.guard.total else 0
            return "killing", f"Killing · {left} not proven yet" if left else "Killing"
        if self.is_killed:
            return "killed", "Killed · nothing starts until rearm"
        if self.is_silent(now):
            return (
                "unknown",
                "No supervisor answers" if self.heard_at is None else f"Supervisor silent for {long_span(now - self.heard_at)}",
            )
        if self.is_deaf(now):
            return "unknown", f"No changes heard for {long_span(now - (self.deaf_since or now))}"
        if not self.guard.alive:
            return "in_doubt", "In doubt · the guard does not answer"
        if self.view is None:
            return "unknown", "Not known yet"
        if self.view.state != "armed":
            return "in_doubt", "In doubt · " + (self.view.soft_stop or self._doubtful())
        if self.verified_at() is None:
            return "in_doubt", "Armed · stop not verified yet"
        return "armed", "Armed"

    def verified_at(self) -> float | None:
        """When the oldest proven path was last proven; None when none was."""
        proven = [p.checked_at for p in self.view.paths if p.state == "proven" and p.checked_at] if self.view else []
        return min(proven, default=None)

    def _doubtful(self) -> str:
        names = [p.name for p in self.view.paths if p.state in ("in_doubt", "unavailable")] if self.view else []
        return f"{', '.join(names)} not proven" if names else "not proven"


STEP_TITLES = {
    StepName.LATCH: "Latch",
    StepName.REFUSE: "Refuse",
    StepName.SIGNAL: "Signal",
    StepName.ZERO: "Zero",
    StepName.SECOND_LOOK: "Second look",
    StepName.ROTATE: "Rotate",
    StepName.REMOTE: "Remote",
    StepName.EVIDENCE: "Evidence",
}
_OUTCOME_ORDER = {Outcome.NOT_PROVEN: 0, Outcome.DYING: 1, Outcome.BEST_EFFORT: 2, Outcome.PROVEN_ZERO: 3}


def step_of(receipt: Receipt | None, name: StepName) -> Step | None:
    """That step, or None while it has not been judged."""
    return next((s for s in receipt.steps if s.name is name and s.status is not StepStatus.PENDING), None) if receipt else None


def counts(receipt: Receipt) -> tuple[int, int, int]:
    """(proven, provable, best effort) targets."""
    best = sum(1 for t in receipt.targets if t.outcome is Outcome.BEST_EFFORT)
    proven = sum(1 for t in receipt.targets if t.outcome is Outcome.PROVEN_ZERO)
    return proven, len(receipt.targets) - best, best


def is_proven(receipt: Receipt) -> bool:
    """The only green result: zero is verified, and no target had connections to other programs. A later step has its own mark."""
    found = verdict(receipt)
    return found.verified_zero and found.exit_code in (ExitCode.DONE, ExitCode.LATER_STEP)


def in_order(targets: tuple[Target, ...]) -> list[Target]:
    """Doubtful first: not proven, dying, best effort, then proven."""
    return sorted(targets, key=lambda t: _OUTCOME_ORDER.get(t.outcome, 0))
