"""What follows a kill and is told in its receipt: one class for each step, in the list that ``supervisor/compose.py`` gives to the stops.

The guard's SIGKILL waits for none of them. A step that hangs leaves the receipt open, and one that breaks has failed.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from console.api.messages import HostView
from console.domain.agent import AgentId
from console.domain.kill import Receipt, Step, StepName, StepStatus
from console.services.evidence.case import Evidence
from console.services.fleet.core import Core
from console.services.secrets.rotation_step import rotate_step
from console.services.secrets.rotator import Rotator
from console.services.stop.line import StopLine


@dataclass(frozen=True, slots=True)
class Followed:
    """A kill whose first SIGKILLs are out, as its later steps know it."""

    kill_id: str
    ids: list[AgentId] | None
    """None: everything."""
    reason: str
    by: str
    order: str
    """The remote order that it obeys, or empty."""
    pressed: float
    """Seconds since the epoch."""
    answered: asyncio.Event
    """Set once zero is judged and the caller had time to get its answer."""

    def ms(self) -> float:
        """Milliseconds since it was pressed."""
        return round((time.time() - self.pressed) * 1000, 1)


class LaterStep(Protocol):
    """One later step of a kill. Its result goes into the receipt only; the kill itself never waits for it."""

    @property
    def name(self) -> StepName:
        """As receipts list it."""
        ...

    @property
    def after_zero(self) -> bool:
        """Return whether the step starts after the kill is confirmed and its caller is answered; else it starts with the kill."""
        ...

    async def run(self, kill: Followed) -> Step:
        """Do the step and return its result."""
        ...


def came_to(step: LaterStep, kill: Followed, done: asyncio.Task[Step]) -> Step:
    """Return the result of a step that is over. A step that raised has failed."""
    error = done.exception()
    if error is None:
        return done.result()
    return Step(step.name, StepStatus.FAILED, kill.ms(), f"it broke: {type(error).__name__}: {error}"[:300])


class EvidenceStep:
    """The case folder, of those that are meant, and of all that lived where everything is."""

    __slots__ = ("_core", "_line", "_case")

    name, after_zero = StepName.EVIDENCE, False

    def __init__(self, core: Core, line: StopLine, case: Evidence) -> None:
        self._core, self._line, self._case = core, line, case

    async def run(self, kill: Followed) -> Step:
        """Of those that only the guard knows of too, when it was pressed without us."""
        state = self._core.state
        targets, local = state.live | state.killing if kill.ids is None else set(kill.ids), await self._line.read(kill.kill_id)
        targets |= {AgentId(t.agent_id) for t in local.targets} if local is not None else set()
        return await self._case.step(kill.kill_id, targets, kill.pressed, kill.answered)


class RotateStep:
    """Secrets that the dead held."""

    __slots__ = ("_rotator",)

    name, after_zero = StepName.ROTATE, True

    def __init__(self, rotator: Rotator) -> None:
        self._rotator = rotator

    async def run(self, kill: Followed) -> Step:
        """Rotated and proven refused; a kill of named agents revokes their own tokens only."""
        return await rotate_step(self._rotator, kill.ids is None, kill.pressed, kill.kill_id)


class Written(Protocol):
    """Whether a write to the bucket was read back, and what there is to say of it."""

    @property
    def ok(self) -> bool: ...
    @property
    def detail(self) -> str: ...


class RemoteChannel(Protocol):
    """The bucket, as a stop and a rearm use it. All but the attributes block."""

    own_documents: set[str]
    hosts: list[HostView]
    generation: int

    def write_kill(self, reason: str, actor: str) -> Written: ...
    def answer_order(self, order: str, receipt: Receipt) -> str: ...
    def latched(self) -> list[str]: ...
    def standing(self) -> str: ...
    def check_known(self) -> None: ...


class RemoteStep:
    """The order to other hosts, in the bucket."""

    __slots__ = ("writing", "_core", "channel", "_stand_ins")

    name, after_zero = StepName.REMOTE, False

    def __init__(self, core: Core, channel: RemoteChannel | None, stand_ins: Sequence[str]) -> None:
        """``stand_ins``: what stands in for a real bucket."""
        self._core, self.channel, self._stand_ins = core, channel, stand_ins
        self.writing = asyncio.Lock()
        """Held while the kill is written to the bucket; a rearm takes it, so that no write lands behind its back."""

    async def run(self, kill: Followed) -> Step:
        """Written and read back, unless it is an order from there, or concerns this host alone."""
        if kill.ids is not None:
            return Step(self.name, StepStatus.SKIPPED, None, "a kill of named agents concerns this host alone")
        if self.channel is None:
            return Step(self.name, StepStatus.SKIPPED, None, "not configured")
        if kill.order:
            return Step(self.name, StepStatus.OK, kill.ms(), f"obeyed {kill.order[:40]}")
        async with self.writing:
            if not self._core.state.killed:
                return Step(self.name, StepStatus.SKIPPED, kill.ms(), "rearmed before it was written")
            written = await asyncio.to_thread(self.channel.write_kill, kill.reason, kill.by)
        words = written.detail + (f" ({self._stand_ins[0]}: a stand-in)" if self._stand_ins else "")
        return Step(self.name, StepStatus.OK if written.ok else StepStatus.FAILED, kill.ms(), words)
