"""A step after a kill is one class and its place in one list; one that hangs or breaks delays no SIGKILL and makes nothing green."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from console.credentials.redaction import Redactor
from console.domain.agent import AgentId
from console.domain.errors import ExitCode
from console.domain.kill import PROOF, Outcome, Receipt, Step, StepName, StepStatus, Target
from console.domain.verdict import verdict
from console.services.stop.later_steps import Followed, LaterStep, RemoteStep
from console.services.stop.service import StopDesk
from tests.fakes.daemons import no_daemons

TOY = str.__new__(StepName, "toy")
TOY._name_, TOY._value_ = "TOY", "toy"
BY_GUARD = Receipt(
    "k-1",
    "i",
    "a-1",
    "the test",
    "me",
    1.0,
    targets=(Target("a-1", "managed", Outcome.PROVEN_ZERO, 2.0),),
    steps=tuple(Step(name, StepStatus.OK, 1.0) for name in StepName if name in (StepName.REFUSE, StepName.SIGNAL, *PROOF)),
    complete=True,
    connections_state="recorded",
)


class Toy:
    """A step that does what it is given."""

    name, after_zero = TOY, False

    def __init__(self, told: list[str], work: Callable[[], Awaitable[Step]]) -> None:
        self._told, self._work = told, work

    async def run(self, kill: Followed) -> Step:
        self._told.append("toy")
        return await self._work()


class Good(Toy):
    """The case folder of this test."""

    name = StepName.EVIDENCE

    def __init__(self, told: list[str]) -> None:
        async def done() -> Step:
            return Step(self.name, StepStatus.OK, 3.0)

        super().__init__(told, done)


class Line:
    """The way to a guard that kills and proves at once."""

    def __init__(self, told: list[str]) -> None:
        self._told = told

    async def order(self, _scope: object, _reason: str, _by: str, _order: str, _kill_id: str) -> str:
        self._told.append("SIGKILL")
        return "k-1"

    async def wait(self, _kill_id: str, step: Callable[[Receipt], Step], _timeout_s: float) -> Receipt:
        assert step(BY_GUARD).is_ok
        return BY_GUARD

    async def read(self, _kill_id: str) -> Receipt:
        return BY_GUARD

    async def first_until(self, _at_zero: asyncio.Event) -> None:
        """Goes first in nothing."""

    def file_of(self, kill_id: str) -> Path:
        return Path(f"/nonexistent/{kill_id}.json")


def desk(folder: Path, told: list[str], *later: LaterStep) -> StopDesk:
    (folder / "keys").mkdir(mode=0o700)
    places: Any = SimpleNamespace(
        instance_id="i", receipts_dir=folder / "receipts", guard_dir=folder / "guard", keys_dir=folder / "keys", state_dir=folder
    )
    state: Any = SimpleNamespace(agents={}, live=set(), killing=set(), killed=False, open_ends=set(), best_effort={})
    core: Any = SimpleNamespace(state=state, post=lambda _event: None, hub=SimpleNamespace(publish=lambda *_: None), dirty=set())
    scribe: Any = SimpleNamespace(job=lambda job: job(), record=lambda record: None, audit=SimpleNamespace(head=(0, "")))

    async def after_kill(*_: object) -> None:
        """Nothing could start an agent again."""

    hunt: Any = SimpleNamespace(into=lambda receipt: receipt, after_kill=after_kill)
    guard, line, redact = Any, Line(told), Redactor().redact_data
    remote = RemoteStep(core, None, ())
    unused: Any = guard
    way: Any = line
    return StopDesk(
        core, scribe, unused, places, lambda *_: None, way, Good(told), daemons=no_daemons(), hunt=hunt, remote=remote, later=later,
        redact=redact,
    )  # fmt: skip


async def killed(it: StopDesk) -> Receipt:
    """The answer at zero, as whoever asked for the kill has it."""
    return await it.zero(await it.press([AgentId("a-1")], "the test", "me"), 60.0)


def status_of(receipt: Receipt) -> StepStatus:
    return receipt.step(TOY).status


def test_a_toy_step_that_breaks_is_a_later_step_that_failed(tmp_path: Path) -> None:
    told: list[str] = []

    async def breaks() -> Step:
        raise RuntimeError("no toy today")

    async def whole() -> Receipt:
        it = desk(tmp_path, told, Toy(told, breaks))
        first = await killed(it)
        assert first.verified_zero and told[0] == "SIGKILL", "nothing is done before the guard has killed"
        return await it.wait("k-1", 60.0)

    receipt = asyncio.run(whole())
    assert receipt.complete and status_of(receipt) is StepStatus.FAILED and "no toy today" in receipt.step(TOY).detail
    assert verdict(receipt).exit_code is not ExitCode.DONE and receipt.evidence.is_ok
    assert [step["name"] for step in json.loads((tmp_path / "receipts" / "k-1.json").read_text())["steps"]][-1] == "toy"


def test_what_follows_a_kill_begins_once_its_caller_has_the_answer(tmp_path: Path) -> None:
    told: list[str] = []

    class Follows(Toy):
        after_zero = True

    async def computes() -> Step:
        time.sleep(0.2)  # on the loop, as Python's lock is held by whatever computes
        return Step(TOY, StepStatus.OK, 3.0)

    async def caller() -> None:
        it = desk(tmp_path, told, Follows(told, computes))
        (first,) = await asyncio.gather(it.zero(await it.press([AgentId("a-1")], "the test", "me"), 60.0))
        for _ in range(10):  # turns of the loop until the answer is on the wire
            await asyncio.sleep(0)
        told.append("answered")
        assert first.verified_zero
        assert status_of(await it.wait("k-1", 60.0)) is StepStatus.OK

    asyncio.run(caller())
    assert told[-2:] == ["answered", "toy"]


def test_a_toy_step_that_hangs_holds_up_neither_the_kill_nor_its_answer_and_the_receipt_stays_open(tmp_path: Path) -> None:
    told: list[str] = []

    async def hangs() -> Step:
        return await asyncio.get_running_loop().create_future()  # type: ignore[no-any-return]

    async def whole() -> None:
        it = desk(tmp_path, told, Toy(told, hangs))
        first = await killed(it)
        assert first.verified_zero and told[0] == "SIGKILL" and "toy" in told
        receipt = await it.wait("k-1", 0.0)
        assert not receipt.complete and status_of(receipt) is StepStatus.PENDING
        given_up = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in given_up:
            task.cancel()
        await asyncio.gather(*given_up, return_exceptions=True)

    asyncio.run(whole())
