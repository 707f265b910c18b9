"""Changes of limits: checked word by word, recorded before they loosen anything, in force before they are recorded where they tighten."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from console.api import budgets as b
from console.domain.agent import ContextId
from console.domain.budget import Limits
from console.domain.engine import command as c
from console.domain.errors import NotFound, NotRecorded, UsageProblem
from console.services.budgets import service
from console.services.budgets.burn_rate import BurnBook
from console.services.budgets.service import BudgetDesk
from tests.fakes.playbook import Playbook


class World:
    """An engine, and books that may refuse."""

    def __init__(self) -> None:
        self.book, self.refuse = Playbook().run("a", context_id=ContextId("s")), False
        self.log: list[str] = []
        book = self.book

        def post(event: Any) -> None:
            book >> event
            self.log.append("halt" if book.all(c.HaltAgents) else "post")

        def agent_or_404(agent_id: str) -> str:
            if agent_id not in book.state.agents:
                raise NotFound("no such agent", "")
            return agent_id

        async def saved() -> None:
            self.log.append("saved")

        core = SimpleNamespace(state=book.state, post=post, agent_or_404=agent_or_404, saved=saved)
        ledger = SimpleNamespace(change_limits=lambda *_: self.log.append("kept"))
        scribe = SimpleNamespace(record_first=self.record_first, record=self.record, ledger=ledger)
        self.desk = BudgetDesk(core, scribe, BurnBook())  # type: ignore[arg-type]

    def record_first(self, record: Any) -> None:
        if self.refuse:
            raise NotRecorded("the disk is full", "")
        self.record(record)

    def record(self, record: Any) -> None:
        self.log.append(f"record must={record.must}")

    async def change(self, scope: b.BudgetScope, key: str, clear: list[str] | None = None, **limits: float) -> b.BudgetSetView:
        return await self.desk.change(b.BudgetBody(scope=scope, key=key, limits=limits, clear=clear or [], reason="why"), "operator:0")


async def test_what_tightens_acts_first_and_what_loosens_is_on_record_first() -> None:
    world = World()
    await world.change("session", "s", cost=5.0)
    assert world.log == ["post", "record must=True", "kept"]
    world.log.clear()
    assert "cost_usd 5 -> 9" in (await world.change("session", "s", cost=9.0)).words
    assert world.log == ["record must=False", "kept", "post"]
    world.log.clear()
    await world.change("session", "s", clear=["cost"])
    assert world.log[0] == "record must=False" and world.book.state.budget.of("session", "s") == Limits()


async def test_where_nothing_can_be_recorded_a_raise_is_refused_and_a_lower_limit_holds_all_the_same() -> None:
    world = World()
    await world.change("session", "s", cost=5.0)
    world.refuse = True
    with pytest.raises(NotRecorded):
        await world.change("session", "s", cost=9.0)
    assert world.book.state.budget.of("session", "s").cost_usd == 5.0
    world.log.clear()
    await world.change("session", "s", cost=1.0)
    assert world.book.state.budget.of("session", "s").cost_usd == 1.0
    assert world.log == ["post", "record must=True", "kept"], "owed to the record until that takes it"


async def test_a_lower_limit_says_whom_it_halts() -> None:
    world = World()
    world.book.spend("a", cost_usd=2.0)
    done = await world.change("agent", "a", cost=1.0)
    assert done.halted == ["a"] and "1 agent is halted now" in done.words and done.limits["cost_usd"] == 1.0


async def test_a_dry_look_says_whom_it_would_halt_and_does_nothing() -> None:
    world = World()
    world.book.spend("a", cost_usd=2.0)
    body = b.BudgetBody(scope="session", key="s", limits={"cost": 1.0}, reason="asked before", dry_run=True)
    would = await world.desk.change(body, "operator:0")
    assert would.dry_run and would.halted == ["a"] and [x.new for x in would.changes] == [1.0]
    assert world.log == [] and world.book.state.budget.of("session", "s") == Limits() and not world.book.state.halting


async def test_what_changes_nothing_is_no_change() -> None:
    world = World()
    await world.change("day", "", cost=5.0)
    world.log.clear()
    assert "Nothing changed" in (await world.change("day", "", cost=5.0)).words and world.log == []


@pytest.mark.parametrize(
    ("scope", "key", "limits", "error"),
    [
        ("agent", "nobody", {"cost": 1.0}, NotFound),
        ("day", "2026-11-22", {"cost": 1.0}, UsageProblem),
        ("session", "../x", {"cost": 1.0}, UsageProblem),
        ("project", "a\nb", {"cost": 1.0}, UsageProblem),
        ("project", "", {"cost": 1.0}, UsageProblem),
        ("type", "A b", {"cost": 1.0}, UsageProblem),
        ("session", "s", {"price": 1.0}, UsageProblem),
        ("session", "s", {"cost": -1.0}, UsageProblem),
        ("session", "s", {"cost": float("inf")}, UsageProblem),
        ("session", "s", {"cost": float("nan")}, UsageProblem),
        ("session", "s", {"tokens": 1e308}, UsageProblem),
        ("session", "s", {}, UsageProblem),
    ],
)
async def test_what_is_no_limit_is_refused_and_nothing_changes(
    scope: Any, key: str, limits: dict[str, float], error: type[Exception]
) -> None:
    world = World()
    with pytest.raises(error):
        await world.change(scope, key, None, **limits)
    assert world.log == []


async def test_however_many_scopes_are_named_there_is_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "MOST", 3)
    world = World()
    for n in range(3):
        await world.change("project", f"p{n}", cost=1.0)
    with pytest.raises(UsageProblem, match="already"):
        await world.change("project", "p3", cost=1.0)
    await world.change("project", "p1", cost=2.0)


async def test_a_raise_names_the_limits_that_hold_before_it() -> None:
    world = World()
    await world.change("agent", "a", cost=2.5, tokens=10.0)
    await world.change("tree", "a", cost=2.5)
    await world.change("session", "s", cost=3.0)
    assert "still holds" not in (await world.change("agent", "a", cost=2.0)).words, "it is the lowest"
    raised = await world.change("agent", "a", cost=4.0, tokens=20.0)
    assert raised.words.endswith("why. A lower limit still holds: tree a: cost_usd 2.5, session s: cost_usd 3"), raised.words
    assert (await world.change("tree", "a", cost=9.0)).words.endswith("still holds: agent a: cost_usd 4, session s: cost_usd 3")
    assert (await world.change("session", "s", clear=["cost"])).words.endswith("why")
    assert (await world.change("agent", "a", clear=["cost"])).words.endswith("still holds: tree a: cost_usd 9")
