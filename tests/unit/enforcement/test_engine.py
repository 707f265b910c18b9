"""The promises that are the engine's, as dialogues."""

from __future__ import annotations

from typing import Any

import pytest

from console.domain.agent import Agent, AgentId, AgentState, ContextId, ProcessIdentity, SandboxKind
from console.domain.budget import Limits, Usage
from console.domain.engine import command as c
from console.domain.engine import event as e
from console.domain.errors import Killed
from console.domain.ids import ControlLevel
from console.domain.kill import Outcome, Receipt, Step, StepName, StepStatus, Target
from console.domain.network import NetworkMode, Sensitivity
from tests.fakes.playbook import Playbook


def judged(book: Playbook, outcome: Outcome, *ids: str, scope: str = "all") -> Playbook:
    targets = tuple(Target(i, "managed", outcome, 3.0) for i in ids)
    steps = (Step(StepName.ZERO, StepStatus.OK, 3.0),)
    receipt = Receipt("k-1", "01234567", scope, "test", "operator:0", book.at, verified_zero=outcome is Outcome.PROVEN_ZERO,
                      targets=targets, steps=steps)  # fmt: skip
    return book >> e.KillJudged(book.at, book.boot, receipt)


def pressed(book: Playbook, *ids: str) -> Playbook:
    scope = tuple(AgentId(i) for i in ids) if ids else None
    return book >> e.KillStarted(book.at, book.boot, "k-1", scope, "runaway", "operator:0")


class TestStopMeansStopped:
    def test_killed_only_once_zero_is_proven(self) -> None:
        book = Playbook().run("a1")
        pressed(book)
        assert book.agent("a1").state is AgentState.RUNNING
        judged(book, Outcome.PROVEN_ZERO, "a1")
        assert book.agent("a1").state is AgentState.KILLED
        assert (book << c.LeaveAgent).agent_id == "a1"

    @pytest.mark.parametrize("outcome", [Outcome.DYING, Outcome.NOT_PROVEN, Outcome.BEST_EFFORT])
    def test_anything_else_stays_alive_after_kill_and_amber(self, outcome: Outcome) -> None:
        book = Playbook().run("a1")
        pressed(book)
        judged(book, outcome, "a1")
        assert book.agent("a1").state is AgentState.ALIVE_AFTER_KILL
        assert book.agent("a1").state.is_live
        book.none(c.LeaveAgent)
        judged(book, Outcome.PROVEN_ZERO, "a1")
        assert book.agent("a1").state is AgentState.KILLED

    def test_a_receipt_of_one_that_had_ended_before_leaves_nothing_open(self) -> None:
        """It was killed while no supervisor ran: its session would else count as busy for ever."""
        book = Playbook().run("a1")
        book >> e.AgentExited(book.at, book.boot, AgentId("a1"), 0)
        pressed(book, "a1")
        judged(book, Outcome.PROVEN_ZERO, "a1", scope="a1")
        assert book.state.killing == set() and book.agent("a1").state is AgentState.ENDED

    @pytest.mark.parametrize("outcome", [Outcome.DYING, Outcome.NOT_PROVEN, Outcome.BEST_EFFORT])
    def test_killed_is_taken_back_when_a_later_look_says_that_it_lives(self, outcome: Outcome) -> None:
        book = Playbook().run("a1")
        pressed(book)
        judged(book, Outcome.PROVEN_ZERO, "a1")
        judged(book, outcome, "a1")
        assert (book.agent("a1").state, book.agent("a1").ended_at) == (AgentState.ALIVE_AFTER_KILL, None)
        assert AgentId("a1") in book.state.live
        book.none(c.LeaveAgent)
        judged(book, Outcome.PROVEN_ZERO, "a1")
        assert book.agent("a1").state is AgentState.KILLED
        assert book.agent("a1").state_reason == "test"

    @pytest.mark.parametrize("order", [(0, 1), (1, 0)])
    def test_of_two_targets_of_one_agent_the_worse_counts(self, order: tuple[int, int]) -> None:
        book = Playbook().run("a1")
        pressed(book)
        outcomes = (Outcome.PROVEN_ZERO, Outcome.NOT_PROVEN)  # itself, and its container that came back
        targets = tuple(Target("a1", "contained", outcomes[n], 3.0) for n in order)
        book >> e.KillJudged(book.at, book.boot, Receipt("k-1", "01234567", "all", "test", "operator:0", book.at, targets=targets))
        assert book.agent("a1").state is AgentState.ALIVE_AFTER_KILL
        book.none(c.LeaveAgent)

    def test_a_budget_halt_that_is_taken_back_ends_as_a_halt(self) -> None:
        book = Playbook().run("a1", limits=Limits(cost_usd=1.0))
        book.spend("a1", cost_usd=2.0)
        why = book.agent("a1").state_reason
        pressed(book, "a1")
        judged(book, Outcome.PROVEN_ZERO, "a1", scope="a1")
        assert (book.agent("a1").state, book.agent("a1").state_reason) == (AgentState.HALTED, why)
        judged(book, Outcome.NOT_PROVEN, "a1", scope="a1")
        assert book.agent("a1").state is AgentState.ALIVE_AFTER_KILL
        judged(book, Outcome.PROVEN_ZERO, "a1", scope="a1")
        assert book.agent("a1").state is AgentState.HALTED
        assert "not proven" not in book.agent("a1").state_reason

    def test_a_late_word_on_an_older_kill_does_not_undo_a_newer_proof(self) -> None:
        book = Playbook().run("a1")
        pressed(book)
        judged(book, Outcome.NOT_PROVEN, "a1")
        book >> e.KillStarted(book.at, book.boot, "k-2", None, "again", "operator:0")
        second = Receipt(
            "k-2", "01234567", "all", "again", "operator:0", book.at, targets=(Target("a1", "managed", Outcome.PROVEN_ZERO, 1.0),)
        )
        book >> e.KillJudged(book.at, book.boot, second)
        judged(book, Outcome.NOT_PROVEN, "a1")  # the first one's final receipt comes last
        assert book.agent("a1").state is AgentState.KILLED

    @pytest.mark.parametrize(("evidence", "state"), [({}, AgentState.KILLED), ({"strays": ["pid 7"]}, AgentState.ALIVE_AFTER_KILL)])
    def test_a_press_on_one_whom_the_guard_has_forgotten_says_nothing_of_it(self, evidence: dict[str, Any], state: AgentState) -> None:
        book = Playbook().run("a1")
        pressed(book, "a1")
        judged(book, Outcome.PROVEN_ZERO, "a1", scope="a1")
        book >> e.KillStarted(book.at, book.boot, "k-2", (AgentId("a1"),), "again", "operator:0")
        blank = Target("a1", "unknown", Outcome.NOT_PROVEN, 1.0, {"writes": {}, **evidence})
        book >> e.KillJudged(book.at, book.boot, Receipt("k-2", "01234567", "a1", "again", "operator:0", book.at, targets=(blank,)))
        assert book.agent("a1").state is state

    def test_one_that_ended_by_itself_comes_back_only_when_it_was_seen_alive(self) -> None:
        book = Playbook().run("a1")
        book >> e.AgentExited(book.at, book.boot, AgentId("a1"), 0)
        pressed(book)
        judged(book, Outcome.BEST_EFFORT, "a1")
        assert book.agent("a1").state is AgentState.ENDED
        judged(book, Outcome.NOT_PROVEN, "a1")
        assert book.agent("a1").state is AgentState.ALIVE_AFTER_KILL

    def test_the_exit_seen_during_a_kill_is_not_taken_for_the_proof(self) -> None:
        book = Playbook().run("a1")
        pressed(book, "a1")
        book >> e.AgentExited(book.at, book.boot, AgentId("a1"), -9)
        assert book.out == []
        judged(book, Outcome.PROVEN_ZERO, "a1", scope="a1")
        assert book.agent("a1").state is AgentState.KILLED

    @pytest.mark.parametrize(("code", "later_s", "state"), [
        (None, 0.5, AgentState.KILLED),
        (-9, 0.5, AgentState.KILLED),
        (None, -0.5, AgentState.ENDED),
        (0, 0.5, AgentState.ENDED),
        (3, 0.5, AgentState.FAILED),
    ])  # fmt: skip
    def test_an_exit_that_was_seen_before_the_press_was_heard_of_is_the_kills(
        self, code: int | None, later_s: float, state: AgentState
    ) -> None:
        """A panic presses the guard itself: the watch for exits may see the dead agent before this console hears of the press."""
        book, agent_id = Playbook().run("a1"), AgentId("a1")
        book >> e.AgentExited(book.at + later_s, book.boot, agent_id, code)
        assert not book.agent("a1").state.is_live
        pressed(book)
        judged(book, Outcome.PROVEN_ZERO, "a1")
        assert book.agent("a1").state is state and agent_id not in book.state.killing

    def test_a_kill_of_one_does_not_latch(self) -> None:
        book = Playbook().run("a1").run("a2")
        pressed(book, "a1")
        assert not book.state.killed
        book.launch("a3") << c.StartAgent


class TestNothingStartsWhileKilled:
    def test_launches_are_refused_until_rearm(self) -> None:
        book = Playbook()
        pressed(book)
        refused = book.launch("a1") << c.RefuseLaunch
        assert isinstance(refused.error, Killed)
        book.none(c.StartAgent)
        book >> e.Rearmed(book.at, book.boot, "operator:0", "all clear")
        book.launch("a2") << c.StartAgent

    def test_soft_stop_refuses_and_lifts(self) -> None:
        book = Playbook()
        book >> e.SoftStopChanged(book.at, book.boot, "the kill file cannot be read")
        assert "cannot be read" in str((book.launch("a1") << c.RefuseLaunch).error)
        book >> e.SoftStopChanged(book.at, book.boot, "")
        book.launch("a2") << c.StartAgent

    def test_after_a_restart_a_tombstone_restores_nothing(self) -> None:
        old = Agent(AgentId("a1"), "x", None, AgentId("a1"), 1, ContextId("c"), ControlLevel.MANAGED, SandboxKind.NONE, 1.0,
                    state=AgentState.RUNNING, process=ProcessIdentity(5, 6))  # fmt: skip
        book = Playbook() >> e.Restored(9.0, 9.0, (old,), frozenset(), {}, True, "panic", frozenset({AgentId("a1")}))
        assert book.agent("a1").state is AgentState.KILLED
        unproven = Playbook() >> e.Restored(9.0, 9.0, (old,), frozenset(), {}, True, "panic")
        assert unproven.agent("a1").state is AgentState.ALIVE_AFTER_KILL
        assert book.state.killed
        book.launch("a2") << c.RefuseLaunch

    def test_after_a_restart_the_living_are_followed_and_the_gone_are_lost(self) -> None:
        def agent(i: str) -> Agent:
            return Agent(AgentId(i), "x", None, AgentId(i), 1, ContextId("c"), ControlLevel.MANAGED, SandboxKind.NONE, 1.0,
                         state=AgentState.RUNNING, process=ProcessIdentity(5, 600), usage=Usage(cost_usd=1.5))  # fmt: skip

        book = Playbook() >> e.Restored(9.0, 9.0, (agent("a1"), agent("a2")), frozenset({AgentId("a1")}), {}, False, "")
        assert book.agent("a1").state is AgentState.RUNNING
        assert book.agent("a2").state is AgentState.LOST
        assert book.state.born_boot[AgentId("a1")] == 6.0
        assert book.state.tree_usage[AgentId("a1")].cost_usd == 1.5

    def test_after_a_restart_an_agent_is_as_strict_as_its_session(self) -> None:
        def agent(i: str, **more: Any) -> Agent:
            return Agent(AgentId(i), "x", None, AgentId(i), 1, ContextId("c"), ControlLevel.MANAGED, SandboxKind.NONE, 1.0,
                         state=AgentState.RUNNING, process=ProcessIdentity(5, 600), network_enforced=True, **more)  # fmt: skip

        already = agent("a2", sensitivity=Sensitivity.SECRET, network_mode=NetworkMode.NONE)
        contexts = {"c": (Sensitivity.SECRET, NetworkMode.NONE)}
        alive = frozenset({AgentId("a1"), AgentId("a2")})
        # The supervisor before died after the session was tightened and before the agents' rows were.
        book = Playbook() >> e.Restored(9.0, 9.0, (agent("a1"), already, agent("gone")), alive, contexts, False, "")
        assert (book.agent("a1").sensitivity, book.agent("a1").network_mode) == (Sensitivity.SECRET, NetworkMode.NONE)
        assert [(s.agent_id, s.mode) for s in book.all(c.SwitchNetwork)] == [("a1", NetworkMode.NONE)]


class TestTheRatchetNeverLoosens:
    def register(self, book: Playbook, agent_id: str, level: Sensitivity, mode: NetworkMode) -> Playbook:
        return book >> e.PrivateDataRegistered(book.at, book.boot, AgentId(agent_id), "salaries", "db", level, mode)

    def test_data_restricts_the_agent_its_children_and_its_session(self) -> None:
        book = Playbook().run("a1", context_id=ContextId("c1")).run("a2", parent_id=AgentId("a1"))
        book.run("b1", context_id=ContextId("c1")).run("z1", context_id=ContextId("other"))
        self.register(book, "a1", Sensitivity.CONFIDENTIAL, NetworkMode.PROXIED)
        switched = {x.agent_id: x.mode for x in book.all(c.SwitchNetwork)}
        assert switched == {"a1": NetworkMode.PROXIED, "a2": NetworkMode.PROXIED, "b1": NetworkMode.PROXIED}
        assert book.agent("z1").network_mode is NetworkMode.FULL

    def test_public_data_later_lowers_nothing(self) -> None:
        book = Playbook().run("a1")
        self.register(book, "a1", Sensitivity.SECRET, NetworkMode.NONE)
        self.register(book, "a1", Sensitivity.PUBLIC, NetworkMode.FULL)
        assert book.agent("a1").sensitivity is Sensitivity.SECRET
        assert book.agent("a1").network_mode is NetworkMode.NONE
        book.none(c.SwitchNetwork)

    def test_a_new_agent_in_a_known_session_starts_restricted(self) -> None:
        book = Playbook().run("a1", context_id=ContextId("c1"))
        self.register(book, "a1", Sensitivity.SECRET, NetworkMode.NONE)
        book.run("a9", context_id=ContextId("c1"), network_mode=NetworkMode.FULL)
        assert book.agent("a9").network_mode is NetworkMode.NONE

    def test_a_child_in_another_session_keeps_its_parents_restrictions(self) -> None:
        book = Playbook().run("a1", sensitivity=Sensitivity.SECRET)
        book.run("a2", parent_id=AgentId("a1"), context_id=ContextId("fresh"), sensitivity=Sensitivity.PUBLIC)
        assert book.agent("a2").network_mode is NetworkMode.NONE
        assert book.agent("a2").sensitivity is Sensitivity.SECRET

    def test_a_switch_that_could_not_be_enforced_is_said(self) -> None:
        book = Playbook().run("a1", enforced=False)
        book >> e.NetworkSwitched(book.at, book.boot, AgentId("a1"), NetworkMode.NONE, False, "it shares the host's network")
        assert not book.agent("a1").network_enforced
        assert "not enforced" in (book << c.Record).what


class TestEnds:
    @pytest.mark.parametrize(("code", "state"), [(0, AgentState.ENDED), (3, AgentState.FAILED), (None, AgentState.ENDED)])
    def test_exit_codes(self, code: int | None, state: AgentState) -> None:
        book = Playbook().run("a1")
        book >> e.AgentExited(book.at, book.boot, AgentId("a1"), code)
        assert book.agent("a1").state is state
        book << c.LeaveAgent
        book >> e.AgentExited(book.at, book.boot, AgentId("a1"), code)
        assert book.out == []

    def test_causes_of_freeze_are_shown_and_go_one_by_one(self) -> None:
        book = Playbook().run("a1")
        book >> e.FrozenSetChanged(book.at, book.boot, {AgentId("a1"): ("heartbeat", "operator")})
        assert book.agent("a1").state is AgentState.FROZEN
        book >> e.FrozenSetChanged(book.at, book.boot, {AgentId("a1"): ("operator",)})
        assert book.agent("a1").state is AgentState.FROZEN
        book >> e.FrozenSetChanged(book.at, book.boot, {})
        assert book.agent("a1").state is AgentState.RUNNING

    def test_a_refused_report_is_recorded_and_not_counted(self) -> None:
        book = Playbook().run("a1", limits=Limits(cost_usd=1.0))
        book >> e.UsageRefused(book.at, book.boot, AgentId("a1"), "cost_usd must be finite")
        assert book.agent("a1").usage.cost_usd == 0
        assert (book << c.Record).verdict == "deny"


class TestAFreezeThatIsNotConfirmed:
    def test_is_shown_as_running_until_it_is(self) -> None:
        book = Playbook().run("a1")
        causes: dict[AgentId, tuple[str, ...]] = {AgentId("a1"): ("operator",)}
        book >> e.FrozenSetChanged(1.0, 1.0, causes, {AgentId("a1"): "the engine says 500"})
        agent = book.agent("a1")
        assert (agent.state, agent.causes) == (AgentState.RUNNING, ("operator",))
        assert agent.state_reason == "freeze not confirmed: the engine says 500"
        book >> e.FrozenSetChanged(2.0, 2.0, causes)
        assert (book.agent("a1").state, book.agent("a1").state_reason) == (AgentState.FROZEN, "")
        book >> e.FrozenSetChanged(3.0, 3.0, causes, {AgentId("a1"): "unpaused by hand"})
        assert book.agent("a1").state is AgentState.RUNNING
        book >> e.FrozenSetChanged(4.0, 4.0, {})
        assert (book.agent("a1").state, book.agent("a1").state_reason, book.agent("a1").causes) == (AgentState.RUNNING, "", ())
