"""The kill switch as the console knows it: the supervisor's view, the guard's own words, and the receipt of the last press."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from console.api.armed import PathView, fresh_for_s
from console.api.messages import KillSwitchView, StatusView
from console.domain.kill import Outcome, Receipt, Step, StepName, StepStatus, Target
from console.gui.widgets.words import long_span
from console.panic.guard_state import GuardState

Light = Literal["armed", "in_doubt", "killing", "killed", "unknown"]
SILENT_S = 5.0
"""Without an answer, or without the stream of changes, for longer than this, what is known is old."""
BEHIND_S = 10.0
"""What was said of the self-tests, read every two seconds, is old after this."""


@dataclass(frozen=True, slots=True)
class Look:
    """What the supervisor said of its self-tests, from whichever answer came last: header, cards and first-run page all show this one."""

    state: str
    """armed, in_doubt, killing or killed."""
    soft_stop: str
    worst_s: float | None
    paths: tuple[PathView, ...]
    at: float
    """When it was said, in seconds since the epoch."""

    def proof_at(self, path: PathView) -> float | None:
        """When this path was last proven."""
        if path.proof_age_s is not None:
            return self.at - path.proof_age_s
        return path.checked_at if path.state == "proven" else None

    def aged(self, now: float) -> list[PathView]:
        """The paths as they stand ``now``: a proof that nothing has renewed in time is in doubt, whatever was said of it."""
        return [self._aged(path, now) for path in self.paths]

    def _aged(self, path: PathView, now: float) -> PathView:
        proven_at = self.proof_at(path)
        if path.state != "proven" or proven_at is None or now - proven_at <= fresh_for_s(path.period_s):
            return path
        return path.replaced(state="in_doubt", detail=f"no self-test for {long_span(now - proven_at)}")


class Preparation:
    """The newest step of the program that makes this instance now (the demo)."""

    def __init__(self) -> None:
        self.step = ""
        """Empty: no program makes it."""

    def say(self, step: str) -> None:
        """It does this now."""
        self.step = step


class Switch:
    """Everything the armed light, the banner and the kill switch page show."""

    def __init__(self) -> None:
        self.view: KillSwitchView | None = None
        self.viewed_at: float | None = None
        self.status: StatusView | None = None
        self.rights: list[str] | None = None
        """What this account may do; None: everything, or no supervisor has said."""
        self.status_at: float | None = None
        self.heard_at: float | None = None
        """Seconds since the epoch of the supervisor's last answer."""
        self.deaf_since: float | None = None
        """When the stream of changes broke off; None while it is heard, and before it ever was."""
        self.guard = GuardState()
        self.receipt: Receipt | None = None
        self.agents_live = 0
        self.preparation = Preparation()

    def take_view(self, view: KillSwitchView, now: float) -> None:
        """The switch's own view came."""
        self.view, self.viewed_at, self.heard_at = view, now, now

    def take_status(self, status: StatusView, now: float) -> None:
        """The status came; one that was sent to every console does not say what this account may do."""
        if status.your_rights is None and self.status is not None:
            status = status.replaced(your_rights=self.status.your_rights, your_roles=self.status.your_roles)
        self.status, self.status_at, self.heard_at = status, now, now
        self.rights = status.your_rights

    @property
    def tests(self) -> Look | None:
        """What was said last of the self-tests, by either answer."""
        looks = []
        if self.view is not None:
            at = self.viewed_at or self.heard_at or 0.0
            looks.append(Look(self.view.state, self.view.soft_stop, self.view.worst_s, tuple(self.view.paths), at))
        if self.status is not None and self.status.armed is not None:
            armed = self.status.armed
            looks.append(Look(armed.state, self.status.soft_stop, armed.worst_s, tuple(armed.paths), self.status_at or 0.0))
        return max(looks, key=lambda look: look.at, default=None)

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
        """The supervisor has not answered lately, or never."""
        return self.heard_at is None or now - self.heard_at > SILENT_S

    def is_deaf(self, now: float) -> bool:
        """The supervisor answers, and what changes is not heard."""
        return self.deaf_since is not None and now - self.deaf_since > SILENT_S

    def is_behind(self, now: float) -> bool:
        """The supervisor answers, and nothing new was read of its self-tests, or of what a kill would meet."""
        look = self.tests
        return look is not None and now - min(look.at, self.viewed_at or look.at) > BEHIND_S

    def is_old(self, now: float) -> bool:
        """What is shown is from some time ago, or was never read: nothing of it is green, whatever the light shows."""
        return self.is_silent(now) or self.is_deaf(now) or self.is_behind(now) or self.view is None

    def paths(self, now: float) -> list[PathView]:
        """Every path of a stop as it stands now."""
        return self.tests.aged(now) if self.tests is not None else []

    def light(self, now: float) -> tuple[Light, str]:
        """(state, words) of the armed light. Never green during a kill, while anything is silent, or on old news."""
        if self.is_killing:
            left = max(0, self.guard.total - self.guard.proven) if self.guard.total else 0
            return "killing", f"Killing · {left} not confirmed yet" if left else "Killing"
        if self.is_killed:
            return "killed", "Everything stopped. Nothing can start until you rearm"
        if self.preparation.step and self.heard_at is None:
            return "unknown", "Not started yet"
        if self.is_silent(now):
            return (
                "unknown",
                "No supervisor answers" if self.heard_at is None else f"Supervisor silent for {long_span(now - self.heard_at)}",
            )
        if self.is_deaf(now):
            return "unknown", f"No changes heard for {long_span(now - (self.deaf_since or now))}"
        if not self.guard.alive:
            return "in_doubt", "Not ready · guard not answering: Panic still works"
        return self._tested(now)

    def _tested(self, now: float) -> tuple[Light, str]:
        """By the self-tests: what they said, and how long ago."""
        look = self.tests
        if look is None or self.view is None:
            return "unknown", "Not known yet"
        if self.is_behind(now):
            return "unknown", f"Self-tests not read for {long_span(now - min(look.at, self.viewed_at or look.at))}"
        fresh = look.aged(now)
        if look.state != "armed":
            return "in_doubt", "Not ready · " + (look.soft_stop or _doubtful(fresh))
        aged = [new for old, new in zip(look.paths, fresh, strict=True) if new.state != old.state]
        if aged:
            return "in_doubt", f"Not ready · {aged[0].name}: {aged[0].detail}"
        if self.verified_at() is None:
            return "in_doubt", "Not ready · not tested yet"
        return "armed", "Kill switch ready"

    def verified_at(self) -> float | None:
        """When the oldest proven path was last proven; None when none was."""
        look = self.tests
        proven = [look.proof_at(p) for p in look.paths if p.state == "proven"] if look else []
        return min((at for at in proven if at is not None), default=None)


def _doubtful(paths: list[PathView]) -> str:
    names = [p.name for p in paths if p.state in ("in_doubt", "unavailable")]
    return f"{', '.join(names)} not tested" if names else "not tested"


STEP_TITLES = {
    StepName.LATCH: "Block",
    StepName.REFUSE: "Refuse",
    StepName.SIGNAL: "Signal",
    StepName.ZERO: "Confirmed dead",
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


def in_order(targets: tuple[Target, ...]) -> list[Target]:
    """Doubtful first: not proven, dying, best effort, then proven."""
    return sorted(targets, key=lambda t: _OUTCOME_ORDER.get(t.outcome, 0))
