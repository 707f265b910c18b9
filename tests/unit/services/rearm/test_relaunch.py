"""Who ran before a kill: the words are an agent's, and each of them has an end."""

from __future__ import annotations

import time
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

from console.domain.agent import Agent, AgentId, AgentState, ContextId, SandboxKind
from console.domain.ids import ControlLevel
from console.domain.kill import Outcome, Receipt, Step, StepName, StepStatus, Target
from console.enforcement.state import EngineState
from console.services.fleet.views import receipt_row
from console.services.rearm import relaunch
from console.services.rearm.relaunch import Relaunch
from console.services.rearm.service import killed_view
from console.services.stop.service import StopDesk

LONG = "\u202ex" * 50_000


def agent(name: str, **more: Any) -> Agent:
    fields: dict[str, Any] = {"name": name, "parent_id": None, "root_id": AgentId(name), "depth": 1, "context_id": ContextId("c1")}
    fields |= {"control_level": ControlLevel.MANAGED, "sandbox": SandboxKind.NONE, "started_at": 1.0, "state": AgentState.KILLED}
    return Agent(AgentId(name), **(fields | {"argv": ("x",)} | more))


def world(*agents: Agent) -> Relaunch:
    state = EngineState()
    state.agents.update({a.agent_id: a for a in agents})
    ledger = SimpleNamespace(kv_get=lambda _key: None)
    core: Any = SimpleNamespace(state=state)
    scribe: Any = SimpleNamespace(ledger=ledger)
    targets = tuple(Target(a.agent_id, "managed", Outcome.PROVEN_ZERO, 1.0) for a in agents)
    stop = SimpleNamespace(receipt=lambda kill: Receipt(kill, "i", "all", "r", "b", 1.0, targets=targets))
    return Relaunch(core, scribe, cast(StopDesk, stop))


async def test_every_word_of_an_agent_is_bounded_and_what_was_cut_is_marked() -> None:
    loud = replace(agent("a-1"), name=LONG, argv=(LONG, *["y" * 100] * 999))
    views, left = await world(loud).was_running(["k"])
    assert left == 0
    [view] = views
    assert len(view.to_json()) < 40_000
    assert len(view.name) <= 201 and view.name.endswith("…")
    assert all(len(word) <= 201 for word in view.argv) and view.argv[0].endswith("…")
    assert len(view.argv) <= 51 and view.argv[-1] == "… and 950 more"


async def test_plain_words_stay_as_they_are() -> None:
    views, _ = await world(agent("a-1", argv=("python3", "-m", "x"))).was_running(["k"])
    assert (views[0].name, views[0].argv, views[0].why_not) == ("a-1", ["python3", "-m", "x"], "")


async def test_more_agents_than_fit_are_counted() -> None:
    views, left = await world(*(agent(f"a-{n}") for n in range(relaunch.MOST_SHOWN + 5))).was_running(["k"])
    assert (len(views), left) == (relaunch.MOST_SHOWN, 5)


def test_the_words_of_a_kill_are_bounded() -> None:
    steps = tuple(Step(StepName.REMOTE, StepStatus.FAILED, 1.0, LONG) for _ in range(500))
    receipt = Receipt("k", "i", "all", LONG, LONG, 1.0, order=LONG, steps=steps)
    assert len(killed_view("k", receipt).to_json()) < 100_000


def test_a_list_of_kills_promises_no_return_watch_that_is_over() -> None:
    zero = Step(StepName.ZERO, StepStatus.OK, 1.0), Step(StepName.SECOND_LOOK, StepStatus.OK, 2.0)
    over, on = (Receipt("k", "i", "all", "r", "b", 1.0, steps=zero, watch_until=until) for until in (1.0, time.time() + 60))
    for one, words in ((over, "ended at"), (on, "watching until")):
        assert f"Return watch: {words}" in killed_view("k", one).headline and f"Return watch: {words}" in receipt_row(one).headline
