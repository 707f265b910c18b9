"""Who was only seen is held from now on: what changes in the row, and what does not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from console.domain.agent import AgentId, AgentState, ProcessIdentity, Sighting, SourceReport
from console.domain.budget import Usage
from console.domain.engine import command as c
from console.domain.engine import event as e
from console.domain.ids import ControlLevel
from console.domain.kill import Outcome, Receipt, Target
from console.domain.ladder import Reach, Rung, Scope
from console.enforcement.engine import Engine
from console.enforcement.identity import observed_id
from console.enforcement.ladder import plan

SEEN = Sighting("claude_code", "s-1", "one", ProcessIdentity(4242, 777), "s-1", "/work", 1.0)
ME = observed_id(SEEN)


def engine(*sightings: Sighting) -> Engine:
    made = Engine()
    look(made, *(sightings or (SEEN,)))
    return made


def look(made: Engine, *sightings: Sighting) -> list[c.Command]:
    return made.step(e.Sighted(1.0, 1.0, (SourceReport("claude_code", True, "", sightings),)))


def adopt(made: Engine, agent_id: AgentId = ME, best_effort: str = "") -> list[c.Command]:
    return made.step(e.Adopted(2.0, 2.0, agent_id, ProcessIdentity(4242, 777), 3, best_effort, "me"))


def test_it_is_the_same_row_and_is_held() -> None:
    made = engine()
    assert plan(made.state, Rung.KILL, Scope(Reach.AGENT, ME)).ids == []
    out = adopt(made)
    agent = made.state.agents[ME]
    assert (agent.control_level, agent.state, agent.network_enforced) == (ControlLevel.ADOPTED, AgentState.RUNNING, False)
    assert made.state.born_boot[ME] == 7.77 and made.state.pids[ME] == 3
    [record] = [x for x in out if isinstance(x, c.Record)]
    assert record.must and record.actor == "me" and record.kind == "adopt.done"
    for rung in (Rung.KILL, Rung.FREEZE):
        assert plan(made.state, rung, Scope(Reach.AGENT, ME)).ids == [ME]
    assert "network it was started with" in plan(made.state, Rung.ISOLATE, Scope(Reach.AGENT, ME)).excluded[ME]


def test_what_it_and_its_sub_agents_used_before_counts_once() -> None:
    main = replace(SEEN, usage=Usage(tokens=40, cost_usd=0.4))
    part = Sighting(
        "claude_code", "s-1-p", "part", None, "s-1", "/work", 1.0, parent_key="s-1", part="p", usage=Usage(tokens=10, cost_usd=0.1)
    )
    made = engine(main, part)
    look(made, replace(main, usage=Usage(tokens=60, cost_usd=0.6)), replace(part, usage=Usage(tokens=20, cost_usd=0.2)))
    state = made.state
    day = [("day", key) for scope, key in state.budget.spent if scope == "day"][0]
    assert (state.agents[ME].usage.cost_usd, state.tree_usage[ME].cost_usd, state.budget.spent[day].cost_usd) == pytest.approx(
        (0.6, 0.8, 0.3)
    )
    adopt(made)
    ours = (
        replace(main, usage=Usage(tokens=60, cost_usd=0.6), agent_id=ME),
        replace(part, usage=Usage(tokens=20, cost_usd=0.2), agent_id=ME),
    )
    look(made, *ours)
    assert (state.agents[ME].usage.cost_usd, state.tree_usage[ME].cost_usd, state.budget.spent[day].cost_usd) == pytest.approx(
        (0.8, 0.8, 0.3)
    )
    look(made, ours[0], replace(ours[1], usage=Usage(tokens=30, cost_usd=0.3)))
    assert (state.agents[ME].usage.tokens, state.tree_usage[ME].cost_usd, state.budget.spent[day].cost_usd) == pytest.approx((90, 0.9, 0.4))


def test_what_no_kill_can_prove_is_kept_with_why() -> None:
    made = engine()
    adopt(made, best_effort="it may leave")
    assert made.state.best_effort[ME] == "it may leave"


@pytest.mark.parametrize(
    ("outcome", "state"), [(Outcome.PROVEN_ZERO, AgentState.KILLED), (Outcome.BEST_EFFORT, AgentState.ALIVE_AFTER_KILL)]
)
def test_what_a_kill_in_between_came_to_is_not_undone(outcome: Outcome, state: AgentState) -> None:
    made = engine()
    made.step(e.KillStarted(2.0, 2.0, "k-1", (ME,), "now", "me"))
    receipt = Receipt("k-1", "00c0ffee", ME, "now", "me", 2.0, targets=(Target(ME, "adopted", outcome, 1.0, {}),))
    made.step(e.KillJudged(2.0, 2.0, receipt))
    before = made.state.agents[ME]
    adopt(made)
    after = made.state.agents[ME]
    assert (after.control_level, after.state) == (ControlLevel.ADOPTED, state)
    assert (after.state_reason, after.ended_at) == (before.state_reason, before.ended_at)


def test_nobody_who_is_gone_or_held_is_adopted() -> None:
    made = engine()
    assert adopt(made, AgentId("o-nobody")) == []
    adopt(made)
    assert adopt(made) == []


def test_its_source_goes_on_to_tell_of_it_and_does_not_end_it() -> None:
    made = engine()
    adopt(made)
    look(made, SEEN)
    assert list(made.state.live) == [ME] and made.state.agents[ME].control_level is ControlLevel.ADOPTED
    look(made)
    assert made.state.agents[ME].state is AgentState.RUNNING, "only the guard says that nothing of it is left"


def test_a_look_from_just_before_its_end_makes_no_second_row_of_its_process() -> None:
    made = engine()
    adopt(made)
    target = Target(ME, "adopted", Outcome.PROVEN_ZERO, 3.0)
    made.step(e.KillJudged(3.0, 3.0, Receipt("20260101-000000-abcdef", "01234567", ME, "r", "me", 3.0, targets=(target,))))
    assert made.state.agents[ME].state is AgentState.KILLED
    late = Sighting("processes", "4242-777", "Claude Code", ProcessIdentity(4242, 777), "", "/work", 1.0)
    made.step(e.Sighted(4.0, 4.0, (SourceReport("processes", True, "", (late,)), SourceReport("claude_code", True, "", ()))))
    assert set(made.state.agents) == {ME}
    reused = replace(late, process=ProcessIdentity(4242, 778), key="4242-778")
    made.step(e.Sighted(5.0, 5.0, (SourceReport("processes", True, "", (reused,)), SourceReport("claude_code", True, "", ()))))
    assert len(made.state.agents) == 2, "another process has its number"


def test_the_same_session_in_another_process_is_another_row() -> None:
    """Somebody resumes the session elsewhere: that process is not held, and must not hide behind the one that is."""
    made = engine()
    adopt(made)
    look(made, Sighting("claude_code", "s-1", "two", ProcessIdentity(5555, 888), "s-1", "/work", 2.0))
    rows = {made.state.agents[i].control_level: made.state.agents[i].process for i in made.state.live}
    assert rows == {ControlLevel.ADOPTED: ProcessIdentity(4242, 777), ControlLevel.OBSERVED: ProcessIdentity(5555, 888)}
    look(made, Sighting("claude_code", "s-1", "two", ProcessIdentity(5555, 888), "s-1", "/work", 3.0))
    assert len(made.state.live) == 2


def nested(used: float, **changes: object) -> Sighting:
    """A session of its own, started by a tool call of the other's."""
    fields: dict[str, object] = {"usage": Usage(tokens=round(used * 100), cost_usd=used)}
    made = Sighting("claude_code", "s-2", "two", ProcessIdentity(4343, 800), "s-2", "/work", 1.0)
    return replace(made, **fields | changes)  # type: ignore[arg-type]


def sums(made: Engine) -> tuple[float, float, float, float]:
    state = made.state
    day = next((node for node in state.budget.spent if node[0] == "day"), ("day", ""))
    return (
        state.agents[ME].usage.cost_usd,
        state.tree_usage[ME].cost_usd,
        state.budget.spent[("project", "/work")].cost_usd,
        state.budget.spent.get(day, Usage()).cost_usd,
    )


def test_what_a_separate_session_in_its_processes_used_before_counts_once() -> None:
    main, sub = replace(SEEN, usage=Usage(tokens=40, cost_usd=0.4)), nested(0.1, key="s-2-p", process=None, part="p", parent_key="s-2")
    made = engine(main, nested(0.2), sub)
    look(made, main, nested(0.5), replace(sub, usage=Usage(tokens=20, cost_usd=0.2)))
    before = sums(made)
    assert before == pytest.approx((0.4, 0.4, 1.1, 0.4)), "what they had used when they were first seen is none of today's"
    adopt(made)
    ours = [replace(one, agent_id=ME) for one in (main, nested(0.5), replace(sub, usage=Usage(tokens=20, cost_usd=0.2)))]
    out = look(made, *ours)
    assert sums(made) == pytest.approx((1.1, 1.1, 1.1, 0.4)), "it is its own use from now on, and nobody is charged again"
    assert any(isinstance(x, c.KeepBooks) for x in out), "a restart knows it"
    look(made, *ours)
    look(made, ours[0], replace(ours[1], usage=Usage(tokens=60, cost_usd=0.6)), ours[2])
    assert sums(made) == pytest.approx((1.2, 1.2, 1.2, 0.5)), "what it uses then is charged, once"
    other = made.state.agents[observed_id(nested(0.0))]
    assert (other.state, other.state_reason) == (AgentState.RUNNING, f"it runs inside {ME} and stops with it")
    assert other.usage.cost_usd == pytest.approx(0.6), "its row goes on"
    assert "stops with it, never alone" in plan(made.state, Rung.KILL, Scope(Reach.AGENT, other.agent_id)).excluded[other.agent_id]
    look(made, ours[0])
    assert made.state.agents[other.agent_id].state_reason == "no longer seen" and sums(made)[0] == pytest.approx(1.2)


def test_another_session_of_an_adopted_process_goes_on_in_its_own_row_over_a_restart_until_that_process_has_ended() -> None:
    """Codex's app-server runs several threads in one process."""
    two = replace(SEEN, key="s-2", session="s-2", name="two")
    made = engine(two, SEEN)
    adopt(made)
    for again in (False, True):
        if again:  # the next supervisor has the rows of its ledger, and has seen nobody
            made.state.rows.clear()
            made.state.seen.clear()
            made.state.sighted.clear()
        look(made, *(replace(one, agent_id=ME) for one in (two, SEEN)))
        other = made.state.agents[observed_id(two)]
        assert (other.state, other.state_reason) == (AgentState.RUNNING, f"it runs inside {ME} and stops with it")
        assert (made.state.seen[ME].session, made.state.seen[other.agent_id].inside) == ("s-1", ME)
    three = replace(SEEN, key="s-3", session="s-3", agent_id=ME)
    look(made, *(replace(one, agent_id=ME) for one in (two, SEEN)), three)
    assert len(made.state.agents) == 2, "one that began inside it was never a row"
    made.step(e.KillStarted(2.0, 2.0, "k-1", (ME,), "now", "me"))
    receipt = Receipt("k-1", "00c0ffee", ME, "now", "me", 2.0, targets=(Target(ME, "adopted", Outcome.PROVEN_ZERO, 1.0, {}),))
    made.step(e.KillJudged(2.0, 2.0, receipt))
    look(made)
    assert made.state.agents[other.agent_id].state_reason == f"it ran inside {ME}, which has ended"


def test_what_was_used_between_adoption_and_the_first_look_inside_counts_once() -> None:
    part = nested(0.1, key="s-1-p", process=None, session="s-1", part="p", parent_key="s-1")
    main = replace(SEEN, usage=Usage(tokens=40, cost_usd=0.4))
    made = engine(main, part, nested(0.2))
    adopt(made)
    late = replace(part, usage=Usage(tokens=30, cost_usd=0.3))
    look(made, replace(main, agent_id=ME), late, nested(0.4))  # a look that began before the move
    between = sums(made)
    look(made, *(replace(one, agent_id=ME) for one in (main, late, nested(0.4))))
    assert sums(made)[2:] == pytest.approx(between[2:]) and sums(made)[0] == pytest.approx(1.1)


def test_while_one_source_still_shows_it_by_itself_it_is_the_same_row_and_counts_once() -> None:
    def both(*sessions: Sighting, held: bool) -> list[c.Command]:
        process = Sighting("processes", "4343", "claude", ProcessIdentity(4343, 800), "", "/work", 1.0, agent_id=ME if held else "")
        return made.step(
            e.Sighted(1.0, 1.0, (SourceReport("claude_code", True, "", sessions), SourceReport("processes", True, "", (process,))))
        )

    main, ours = replace(SEEN, usage=Usage(tokens=40, cost_usd=0.4)), nested(0.2, agent_id=ME)
    made = engine(main, nested(0.2))
    both(main, nested(0.2), held=False)
    adopt(made)
    for held in (False, False, True, True):
        both(replace(main, agent_id=ME), ours, held=held)
        assert sums(made) == pytest.approx((0.6, 0.6, 0.6, 0.0)) and len(made.state.agents) == 2
    other = made.state.agents[observed_id(nested(0.0))]
    assert (other.state, other.state_reason) == (AgentState.RUNNING, f"it runs inside {ME} and stops with it")


def test_what_only_telemetry_said_of_a_session_was_charged_to_nobody_and_is_charged_then() -> None:
    made = engine(SEEN)
    told = SourceReport("otlp", True, "", (replace(nested(0.2), source="otlp", process=None),))
    made.step(e.Sighted(1.0, 1.0, (SourceReport("claude_code", True, "", (SEEN,)), told)))
    adopt(made)
    look(made, replace(SEEN, agent_id=ME), nested(0.2, agent_id=ME))
    assert sums(made) == pytest.approx((0.2, 0.2, 0.2, 0.2))
