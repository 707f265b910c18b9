"""Kills as values: steps, targets, outcomes and the receipt. What a receipt amounts to is decided in verdict.py."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable
from dataclasses import dataclass, field, fields, is_dataclass, replace
from enum import StrEnum
from typing import Any, TypeVar

SCHEMA_VERSION = 1
KILLED_BY = "killed by"
KILL_ID = re.compile(r"^[a-z0-9][a-z0-9-]{3,40}\Z")


def has_receipt(kill_id: str) -> bool:
    """Whether it is a kill's id, and no mark such as ``latch-unreadable``."""
    return bool(KILL_ID.match(kill_id)) and kill_id[0].isdigit()


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


PROOF = (StepName.ZERO, StepName.SECOND_LOOK)
"""Steps that say whether anything may still run. The guard decides them; all others are later steps, or come before the proof."""


class StepStatus(StrEnum):
    """``pending`` is not decided yet; ``unknown`` is amber, never green; ``skipped`` means not configured."""

    PENDING = "pending"

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

    @property
    def words(self) -> str:
        """What a person reads. The values are an interface and stay."""
        return {"proven_zero": "confirmed dead", "not_proven": "not confirmed"}.get(self.value, self.value.replace("_", " "))


@dataclass(frozen=True, slots=True)
class Step:
    """One step: its status, milliseconds since the press when it was decided, and a sentence."""

    name: StepName
    status: StepStatus
    ms: float | None
    detail: str = ""

    @property
    def is_ok(self) -> bool:
        """It is done, for certain."""
        return self.status is StepStatus.OK


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
class Return:
    """A process of a killed session that ran again, seen by the return watch."""

    agent_id: str
    session: str
    pid: int
    start_ticks: int
    parent: int
    parent_program: str
    command: str
    seconds: float
    """After the kill."""
    by: str
    """``session id``, ``marker``, ``daemon``, ``working folder`` or ``transcript``: what it was recognised by."""
    certain: bool
    """False: shown only, never killed."""
    killed: bool
    proven: bool
    """Dead again, by the kernel."""
    why: str


@dataclass(frozen=True, slots=True)
class Unwatched:
    """A time within the return watch in which nothing looked: the guard was gone, or stood still. Seconds since the epoch."""

    since: float
    until: float


@dataclass(frozen=True, slots=True)
class Connection:
    """A connection of a target to a program outside, as it was at the kill."""

    agent_id: str
    kind: str
    local: str
    remote: str
    peer_pid: int
    peer_start_ticks: int
    peer_program: str
    peer_uid: int
    note: str


@dataclass(frozen=True, slots=True)
class Suspect:
    """A process outside that may be an agent's work: named, not killed."""

    agent_id: str
    pid: int
    start_ticks: int
    exe: str
    uid: int
    command: str
    why: str
    by: str
    """What connects it with the agent: ``account``, ``program``, ``session``, ``working folder``, ``marker`` or ``connection``."""
    preselected: bool
    peer_pid: int


@dataclass(frozen=True, slots=True)
class Daemon:
    """A program that hosts sessions or starts them again, and what was done about it."""

    kind: str
    name: str
    pid: int
    start_ticks: int
    exe: str
    uid: int
    sessions: tuple[str, ...]
    other_sessions: tuple[str, ...]
    action: str
    """``frozen``, ``killed`` or ``named``."""
    reason: str
    command: str
    """What an operator can run to drop the session or job."""


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
    """As ``verdict`` decided it when this was written; a reader asks ``verdict`` again."""
    survivors: tuple[Survivor, ...] = ()
    steps: tuple[Step, ...] = ()
    targets: tuple[Target, ...] = ()
    excluded: tuple[str, ...] = ()
    """What was left alone and why."""
    only_seen: int | None = None
    """Agents that a press of everything did not stop since they were only seen, named in ``excluded``; None: unknown, or not everything."""
    ms_total: float = 0.0
    persistence: str = ""
    """``unknown``: what may start an agent again (start files, timers, hooks) could not be told; empty: it was, or was not looked at."""
    complete: bool = False
    """False while steps are still being carried out."""
    amended: tuple[str, ...] = ()
    """What was found out after the receipt was given: what was dead later, what came back and was killed again."""
    returns: tuple[Return, ...] = ()
    watch_until: float = 0.0
    """Seconds since the epoch; 0: no return watch."""
    not_watched: tuple[Unwatched, ...] = ()
    """Parts of that time in which a process may have run and ended unseen; what still ran afterwards was looked at."""
    connections: tuple[Connection, ...] = ()
    connections_state: str = "none"
    """``recorded``, ``not recorded``, or ``none``: never looked."""
    connections_detail: str = ""
    """Why they were not recorded."""
    uncovered: tuple[str, ...] = ()
    """Agents that could reach other programs of the host and were not seen to."""
    suspects: tuple[Suspect, ...] = ()
    daemons: tuple[Daemon, ...] = ()
    schema_version: int = SCHEMA_VERSION

    def words(self) -> str:
        """Who killed, when and why: ``killed by root (uid 0) at 2026-01-02 03:04:05 UTC: it burns``."""
        at = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(self.pressed_at))
        return f"{KILLED_BY} {self.by} at {at}: {self.reason}"

    def step(self, name: StepName) -> Step:
        """One step; pending where the receipt does not have it yet."""
        return next((one for one in self.steps if one.name is name), Step(name, StepStatus.PENDING, None))

    def with_step(self, step: Step) -> Receipt:
        """The same with this step in the place of the one of its name."""
        return replace(self, steps=tuple(step if one.name is step.name else one for one in self.steps))

    @property
    def latch(self) -> Step:
        """Whether new starts are blocked, on disk."""
        return self.step(StepName.LATCH)

    @property
    def zero(self) -> Step:
        """Whether every process is dead, by the kernel."""
        return self.step(StepName.ZERO)

    @property
    def second_look(self) -> Step:
        """What was left, or came back, half a second later."""
        return self.step(StepName.SECOND_LOOK)

    @property
    def rotation(self) -> Step:
        """Whether the secrets of the dead were replaced."""
        return self.step(StepName.ROTATE)

    @property
    def remote(self) -> Step:
        """Whether other hosts were told."""
        return self.step(StepName.REMOTE)

    @property
    def evidence(self) -> Step:
        """Whether the case folder is written."""
        return self.step(StepName.EVIDENCE)

    @property
    def proven_ms(self) -> float | None:
        """Milliseconds from the press to the last proof: the decision about zero, or a target's that was proven dead after it."""
        zero = self.zero.ms
        late = (t.ms for t in self.targets if t.outcome is Outcome.PROVEN_ZERO and t.ms is not None)
        return None if zero is None else max([zero, *late])

    def as_json(self) -> dict[str, Any]:
        """Plain data; its keys are stable (docs/reference/json.md). Evidence is handed out as it is: nothing changes it."""
        # dataclasses.asdict copies every word of the evidence; of a kill of hundreds that takes as long as the kill.
        return {f.name: _plain(getattr(self, f.name)) for f in fields(self)}


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    if is_dataclass(value):
        return {f.name: _plain(getattr(value, f.name)) for f in fields(value)}
    return value


def receipt_from_json(data: dict[str, Any]) -> Receipt:
    """The inverse of ``as_json``; KeyError, TypeError or ValueError on anything else."""
    known = {k: data[k] for k in Receipt.__dataclass_fields__ if k in data}
    known["steps"] = tuple(Step(StepName(s["name"]), StepStatus(s["status"]), s["ms"], s.get("detail", "")) for s in data.get("steps", ()))
    known["targets"] = tuple(
        Target(t["agent_id"], t["control_level"], Outcome(t["outcome"]), t["ms"], t.get("evidence", {})) for t in data.get("targets", ())
    )
    known["survivors"] = _rows(Survivor, data.get("survivors", ()))
    known["returns"] = _rows(Return, data.get("returns", ()))
    known["not_watched"] = _rows(Unwatched, data.get("not_watched", ()))
    known["connections"] = _rows(Connection, data.get("connections", ()))
    known["suspects"] = _rows(Suspect, data.get("suspects", ()))
    daemons = _rows(Daemon, data.get("daemons", ()))
    known["daemons"] = tuple(replace(one, sessions=tuple(one.sessions), other_sessions=tuple(one.other_sessions)) for one in daemons)
    for name in ("excluded", "amended", "uncovered"):
        known[name] = tuple(data.get(name, ()))
    return Receipt(**known)


_Row = TypeVar("_Row")


def _rows(kind: type[_Row], rows: Any) -> tuple[_Row, ...]:
    return tuple(kind(**row) for row in rows)


def decided(receipt: Receipt, why: str) -> Receipt:
    """The receipt for a reader that waits no longer: each step that is missing or pending is ``unknown``, with the reason."""
    have = {s.name: s for s in receipt.steps if s.status is not StepStatus.PENDING}
    return replace(receipt, steps=tuple(have.get(name, Step(name, StepStatus.UNKNOWN, None, why)) for name in StepName), complete=False)


_FROM_WORST = (Outcome.NOT_PROVEN, Outcome.DYING, Outcome.BEST_EFFORT, Outcome.PROVEN_ZERO)


def worst_outcomes(targets: tuple[Target, ...]) -> dict[str, Outcome]:
    """One outcome for each agent: the worst of all its targets (what came back after the kill is a target of its own)."""
    return worst_of((target.agent_id, target.outcome) for target in targets)


def worst_of(outcomes: Iterable[tuple[str, Outcome]]) -> dict[str, Outcome]:
    """The same of pairs of an agent's id and an outcome."""
    found: dict[str, Outcome] = {}
    for agent_id, outcome in outcomes:
        found[agent_id] = min(found.get(agent_id, Outcome.PROVEN_ZERO), outcome, key=_FROM_WORST.index)
    return found
