"""The A2A bridge: nobody who cannot be seen has ended, nothing is stopped that is not proven, and a peer starts no agents without end."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from console.api.messages import AgentView, LaunchBody
from console.domain.errors import Conflict, ConsoleError, NotFound, Unreachable
from console.domain.kill import Outcome, Receipt, Step, StepName, StepStatus, Target
from console.integrations.a2a_bridge import UNKNOWN, Bridge, Run, _proves, _question


def receipt(*outcomes: Outcome, zero: bool = True) -> Receipt:
    targets = tuple(Target(f"a-{n}", "managed", outcome, 1.0) for n, outcome in enumerate(outcomes))
    status = StepStatus.OK if zero else StepStatus.UNKNOWN
    steps = (Step(StepName.ZERO, status, 1.0), Step(StepName.SECOND_LOOK, StepStatus.OK, 1.0))
    return Receipt("k-1", "", "", "", "", 0.0, steps=steps, targets=targets)


def test_only_a_receipt_whose_every_target_is_proven_is_a_proof() -> None:
    good = Outcome.PROVEN_ZERO
    assert _proves(receipt(good, good))
    assert not _proves(receipt()) and not _proves(receipt(good, zero=False))
    assert not any(_proves(receipt(good, bad)) for bad in Outcome if bad is not good)


class Api:
    """A fleet whose agents die when they are killed, unless they are said to be stubborn."""

    def __init__(self, *agents: AgentView, stubborn: str = "", error: ConsoleError | None = None) -> None:
        self.agents, self.stubborn, self.error = list(agents), stubborn, error
        self.killed: list[str] = []

    def fleet(self) -> Any:
        if self.error:
            raise self.error
        return SimpleNamespace(agents=self.agents)

    def agent(self, agent_id: str) -> Any:
        found = next((a for a in self.fleet().agents if a.id == agent_id), None)
        if found is None:
            raise NotFound("There is no such agent.", "")
        return SimpleNamespace(agent=found)

    def approvals(self) -> Any:
        return SimpleNamespace(waiting=[])

    def kill(self, agent_id: str, *, tree: bool, reason: str) -> Receipt:
        self.killed.append(agent_id)
        if agent_id == self.stubborn:
            raise Conflict("kill is not possible: it has ended.", "")
        for agent in self.agents:
            if agent_id in (agent.id, agent.parent_id):
                agent.state = "killed"
        return receipt(Outcome.PROVEN_ZERO)


def agent(agent_id: str, parent: str | None = None, state: str = "running", **more: Any) -> AgentView:
    return AgentView(id=agent_id, parent_id=parent, state=state, control_level="managed", **more)


def bridge(api: Api) -> Bridge:
    return Bridge(api, LaunchBody(argv=["true"]))  # type: ignore[arg-type]


def test_what_outlives_the_agent_that_started_it_is_killed_too_and_nobody_else() -> None:
    api = Api(agent("a", state="ended"), agent("b", "a"), agent("c", "a"), agent("d", "b"), agent("z"), agent("y", "z"))
    proof, why = bridge(api)._kill("a", "t")
    assert (proof, why) == ("receipt k-1, receipt k-1", "") and api.killed == ["b", "c"]
    assert [a.state for a in api.agents if a.id in "zy"] == ["running", "running"]


def test_who_cannot_be_killed_and_is_there_each_time_is_not_proven() -> None:
    assert bridge(Api(agent("a"), stubborn="a"))._kill("a", "t") == ("", "something of it still lives")
    over = Api(agent("a", state="ended"))
    assert bridge(over)._kill("a", "t") == ("", "it has ended by itself; there is nothing to cancel") and not over.killed
    still = Api(agent("a", state="alive_after_kill"), stubborn="a")
    assert bridge(still)._kill("a", "t")[0] == ""


async def test_of_whom_nothing_is_known_any_more_it_is_not_said_that_he_has_ended() -> None:
    lost = bridge(Api(agent("z", name="a2a other")))
    assert lost._kill("a", "t") == ("", UNKNOWN)
    assert lost._look(Run("a"))[0::2] == (False, UNKNOWN)


async def test_with_nobody_to_ask_nothing_is_stopped_and_nothing_has_ended() -> None:
    away = bridge(Api(agent("a", name="a2a t"), error=Unreachable("No supervisor runs.", "Start one.")))
    assert await away.stop("t") == "no agent of this task is known"
    away._runs["t"] = run = Run("a")
    run.launched.set()
    assert "No supervisor runs" in await away.stop("t") and not run.stopped
    over, state, words, _ = away._look(run)
    assert not over and "not known" in words


@pytest.mark.parametrize("task_id", ["", "../a", "t\n", "t" * 121, "t t", "\u202e"])
async def test_a_task_is_found_by_its_exact_name_alone(task_id: str) -> None:
    api = Api(agent("a", name=f"a2a {task_id}"))
    assert await bridge(api)._found(task_id) is None


async def test_a_name_that_two_have_or_that_was_only_seen_means_nobody() -> None:
    twice = Api(agent("a", name="a2a t"), agent("b", name="a2a t"))
    assert await bridge(twice).stop("t") == "no agent of this task is known" and not twice.killed
    seen = AgentView(id="a", name="a2a t", state="running", control_level="observed")
    assert await bridge(Api(seen)).stop("t") == "no agent of this task is known"
    assert await bridge(Api(agent("a", name="a2a t"))).stop("t") == ""


def test_a_flood_of_questions_is_bounded() -> None:
    row: Any = SimpleNamespace(id="q-1", tool="t", argument="x" * 5000, rule="r", reason="w", digest="d")
    assert len(_question([row] * 500)) < 12_000 and "490 more" in _question([row] * 500)
