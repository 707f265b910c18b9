"""What a supervisor that starts may say of those before it: dead only where every receipt proves it; silence of the guard says nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from console.domain.agent import AgentId
from console.domain.errors import ConsoleError, NotFound, TimedOut
from console.domain.kill import Outcome, Receipt, Target
from console.killswitch.store.registry import Entry, Held, Registry
from console.services.stop.service import proven_dead
from console.supervisor import restore


def receipt(kill_id: str, *targets: tuple[str, Outcome]) -> Receipt:
    return Receipt(kill_id, "i", "all", "r", "b", 1.0, targets=tuple(Target(i, "managed", o, 1.0) for i, o in targets))


@pytest.mark.parametrize("doubt", [Outcome.NOT_PROVEN, Outcome.DYING, Outcome.BEST_EFFORT])
@pytest.mark.parametrize("same", [True, False])
def test_one_target_that_is_not_proven_outweighs_every_proof(doubt: Outcome, same: bool) -> None:
    proof, doubted = ("a", Outcome.PROVEN_ZERO), ("a", doubt)
    receipts = [receipt("k1", proof, doubted)] if same else [receipt("k1", doubted), receipt("k2", proof)]
    assert proven_dead([*receipts, receipt("k3", ("b", Outcome.PROVEN_ZERO))]) == {AgentId("b")}


class Starting:
    """A supervisor that starts beside a guard whose answers are ``says``; ``pressed`` is whom it stopped."""

    def __init__(self, folder: Path, says: dict[str, list[int | ConsoleError]]) -> None:
        registry = Registry(folder)
        registry.held = {i: Held(Entry(i, "process", "managed", 1)) for i in says}
        registry.save()
        self._says = says
        self.pressed: list[str] = []
        self.asked: list[str] = []
        self.notices: list[str] = []
        self.background: list[asyncio.Task[None]] = []
        self.places = SimpleNamespace(guard_dir=folder)
        self.core = SimpleNamespace(state=SimpleNamespace(killed=False))
        self.machinery = SimpleNamespace(guard=self, notice=lambda words, level: self.notices.append(words))
        self.stop = self.runner = self

    def call(self, op: str, *, agent_id: str, timeout_s: float) -> dict[str, int]:
        self.asked.append(agent_id)
        answers = self._says[agent_id]
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        if isinstance(answer, ConsoleError):
            raise answer
        return {"count": 0, "alive": bool(answer)}

    async def press(self, ids: list[AgentId], reason: str, by: str) -> None:
        self.pressed += ids

    def task(self, coroutine: Coroutine[Any, Any, None]) -> None:
        self.background.append(asyncio.get_running_loop().create_task(coroutine))

    async def start(self, *alive: str) -> None:
        await restore._stop_strangers(self, {AgentId(i) for i in alive})  # type: ignore[arg-type]
        self.at_once, self.asked_at_once = list(self.pressed), list(self.asked)
        await asyncio.gather(*self.background)


SILENT = TimedOut("The guard did not answer in time.", "")


def test_a_guard_that_does_not_answer_is_asked_until_it_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(restore, "ASK_AGAIN_S", 0.001)
    gone = NotFound("Agent is not registered.", "")
    it = Starting(
        tmp_path,
        {"first": [1], "runs": [SILENT, SILENT, 2], "over": [SILENT, 0], "gone": [SILENT, gone], "plain": [1], "mine": [3], "none": [0]},
    )
    asyncio.run(it.start("mine"))
    assert it.at_once == ["first"]  # silence is neither "runs" nor "gone"
    assert it.asked_at_once == ["first", "runs"], "a start waits for one silence, not for everybody's"
    assert it.pressed == ["first", "runs", "plain"]
    assert len(it.notices) == 1 and "5 agents" in it.notices[0]


def test_a_press_ends_the_asking(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(restore, "ASK_AGAIN_S", 0.001)
    it = Starting(tmp_path, {"runs": [SILENT]})
    it.core.state.killed = True
    asyncio.run(it.start())
    assert it.pressed == []
