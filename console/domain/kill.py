"""Kills as values: steps, targets, outcomes and the receipt, with the one place that decides the exit code."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

from console.domain.errors import ExitCode

SCHEMA_VERSION = 1


class StepName(StrEnum):
    """The eight steps of a kill, in the order a receipt lists them."""

    LATCH = "latch"
    REFUSE = "refuse"
    SIGNAL = "signal"
    ZERO = "zero"
    SECOND_LOOK = "second_look"
    ROTATE = "rotate"
    REMOTE = "remote"
    EVIDENCE = "evidence"


class StepStatus(StrEnum):
    """``unknown`` is amber, never green; ``skipped`` means not configured."""

    OK = "ok"
    FAILED = "failed"
    SKIPPED = "skipped"
    UNKNOWN = "unknown"


class Outcome(StrEnum):
    """What was verified of one target."""

    PROVEN_ZERO = "proven_zero"
    DYING = "dying"
    NOT_PROVEN = "not_proven"
    BEST_EFFORT = "best_effort"


@dataclass(frozen=True, slots=True)
class Step:
    """One step: its status, milliseconds since the press when it was decided, and a sentence."""

    name: StepName
    status: StepStatus
    ms: float | None
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Target:
    """One agent of a kill and the proof."""

    agent_id: str
    control_level: str
    outcome: Outcome
    ms: float | None
    """Since the press, when the outcome was decided."""
    evidence: dict[str, Any] = field(default_factory=dict)
    """cgroup, inode, populated, pids_before [{pid,start,exe,cmdline}], write results, container state ..."""


@dataclass(frozen=True, slots=True)
class Survivor:
    """Something that was still alive when the kill was judged."""

    agent_id: str
    pid: int
    state: str
    wchan: str
    cmdline: str
    why: str


@dataclass(frozen=True, slots=True)
class Receipt:
    """The itemised, verified result of a kill."""

    kill_id: str
    instance_id: str
    scope: str
    """``all`` or a comma-separated list of agent ids."""
    reason: str
    by: str
    pressed_at: float
    """Seconds since the epoch."""
    order: str = ""
    """The remote order obeyed (generation:sha256), or empty for a local press."""
    verified_zero: bool = False
    """True only when every contained, managed and adopted target is proven zero."""
    survivors: tuple[Survivor, ...] = ()
    steps: tuple[Step, ...] = ()
    targets: tuple[Target, ...] = ()
    excluded: tuple[str, ...] = ()
    """What was left alone and why."""
    only_seen: int | None = None
    """Agents that a press of everything did not stop since they were only seen, named in ``excluded``; None: unknown, or not everything."""
    ms_total: float = 0.0
    complete: bool = False
    """False while steps are still being carried out."""
    amended: tuple[str, ...] = ()
    """What was found out after the receipt was given: who was dead later, what came back and was killed again."""
    schema_version: int = SCHEMA_VERSION

    @property
    def proven_ms(self) -> float | None:
        """Milliseconds from the press to the last proof: the decision about zero, or a target's that was proven dead after it."""
        zero = next((step.ms for step in self.steps if step.name is StepName.ZERO), None)
        late = (t.ms for t in self.targets if t.outcome is Outcome.PROVEN_ZERO and t.ms is not None)
        return None if zero is None else max([zero, *late])

    def as_json(self) -> dict[str, Any]:
        """Plain data; its keys are stable (docs/json.md)."""
        return asdict(self)


def receipt_from_json(data: dict[str, Any]) -> Receipt:
    """The inverse of ``as_json``; KeyError, TypeError or ValueError on anything else."""
    known = {k: data[k] for k in Receipt.__dataclass_fields__ if k in data}
    known["survivors"] = tuple(Survivor(**s) for s in data.get("survivors", ()))
    known["steps"] = tuple(Step(StepName(s["name"]), StepStatus(s["status"]), s["ms"], s.get("detail", "")) for s in data.get("steps", ()))
    known["targets"] = tuple(
        Target(t["agent_id"], t["control_level"], Outcome(t["outcome"]), t["ms"], t.get("evidence", {})) for t in data.get("targets", ())
    )
    known["excluded"] = tuple(data.get("excluded", ()))
    known["amended"] = tuple(data.get("amended", ()))
    return Receipt(**known)


def is_zero(targets: tuple[Target, ...]) -> bool:
    """Whether every target that can be proven is proven. Best effort ones are neither for nor against (exit code 8)."""
    return all(t.outcome is Outcome.PROVEN_ZERO for t in targets if t.outcome is not Outcome.BEST_EFFORT)


_FROM_WORST = (Outcome.NOT_PROVEN, Outcome.DYING, Outcome.BEST_EFFORT, Outcome.PROVEN_ZERO)


def worst_outcomes(targets: tuple[Target, ...]) -> dict[str, Outcome]:
    """One outcome for each agent: the worst of all its targets (what came back after the kill is a target of its own)."""
    found: dict[str, Outcome] = {}
    for target in targets:
        found[target.agent_id] = min(found.get(target.agent_id, Outcome.PROVEN_ZERO), target.outcome, key=_FROM_WORST.index)
    return found


def exit_code(receipt: Receipt) -> ExitCode:
    """9 before 7 before 8 before 0."""
    if not receipt.verified_zero or not is_zero(receipt.targets):
        return ExitCode.NOT_PROVEN
    if not receipt.complete or any(s.status in (StepStatus.FAILED, StepStatus.UNKNOWN) for s in receipt.steps):
        return ExitCode.LATER_STEP
    if any(t.outcome is Outcome.BEST_EFFORT for t in receipt.targets):
        return ExitCode.BEST_EFFORT
    return ExitCode.DONE
