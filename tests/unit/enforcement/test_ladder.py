"""The ladder's promises as dialogues: who is meant, what may be said before, and an isolation that never loosens the ratchet."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from console.domain.agent import Agent, AgentId, AgentState, ContextId, ProcessIdentity, SandboxKind, Sighting, SourceReport
from console.domain.engine import command as c
from console.domain.engine import event as e
from console.domain.errors import Conflict, Killed, NotFound, UsageProblem
from console.domain.ids import ControlLevel
from console.domain.kill import Outcome, Receipt, Target
from console.domain.ladder import Reach, Rung, Scope
from console.domain.network import NetworkMode, Sensitivity
from console.enforcement.ladder import SHARED, Treatment, lifted_sessions, members, plan, why_not
from tests.fakes.playbook import Playbook


def agent_ids(*ids: str) -> tuple[AgentId, ...]:
    return tuple(AgentId(i) for i in ids)


def isolate(book: Playbook, *ids: str, session: str = "") -> Playbook:
    return book >> e.Isolated(book.at, book.boot, agent_ids(*ids), (session,) if session else (), "operator:0", "leaks")


def reconnect(book: Playbook, *ids: str, sessions: tuple[str, ...] = ()) -> Playbook:
    return book >> e.Reconnected(book.at, book.boot, agent_ids(*ids), sessions, "operator:0", "looked")


def family() -> Playbook:
    """a1 in s1; a2 below it in a session of its own; b1 in s1; z1 elsewhere."""
    book = Playbook().run("a1", context_id=ContextId("s1"), network_mode=NetworkMode.PROXIED)
    book.run("a2", parent_id=AgentId("a1"), context_id=ContextId("s2"))
    book.run("b1", context_id=ContextId("s1"))
    return book.run("z1", context_id=ContextId("other"))


def observe(book: Playbook) -> AgentId:
    seen = Sighting("processes", "77:1", "<b>ghost</b>", ProcessIdentity(77, 1), "s1", "/", 1.0)
    book >> e.Sighted(book.at, book.boot, (SourceReport("processes", True, "", (seen,)),))
    return next(i for i, a in book.state.agents.items() if a.control_level is ControlLevel.OBSERVED)


class TestWhoIsMeant:
    def test_every_reach_names_its_own(self) -> None:
        book = family()
        assert members(book.state, Scope(Reach.AGENT, "a1")) == ["a1"]
        assert members(book.state, Scope(Reach.TREE, "a1")) == ["a1", "a2"]
        assert set(members(book.state, Scope(Reach.SESSION, "s1"))) == {"a1", "a2", "b1"}
        assert set(members(book.state, Scope(Reach.HOST))) == set(members(book.state, Scope(Reach.ALL))) == {"a1", "a2", "b1", "z1"}

    def test_several_named_are_meant_once_each_with_parents_first(self) -> None:
        book = family()
        assert members(book.state, Scope(Reach.AGENT, "b1", ("a2", "b1"))) == ["b1", "a2"]
        assert members(book.state, Scope(Reach.TREE, "a2", ("a1", "z1"))) == ["a1", "a2", "z1"]
        assert set(members(book.state, Scope(Reach.SESSION, "s2", ("other",)))) == {"a2", "z1"}
        assert Scope(Reach.TREE, "a", tuple("bcdefg")).words() == "agents a, b, c, d, e and 2 more, with all below them"
        with pytest.raises(UsageProblem, match="'B!' is not the id of an agent"):
            plan(book.state, Rung.KILL, Scope(Reach.AGENT, "b1", ("B!",)))
        with pytest.raises(UsageProblem, match="takes no id"):
            plan(book.state, Rung.KILL, Scope(Reach.HOST, "", ("b1",)))

    def test_one_of_several_that_is_gone_keeps_the_others_from_nothing(self) -> None:
        book = family()
        found = plan(book.state, Rung.KILL, Scope(Reach.AGENT, "gone", ("b1",)))
        assert found.ids == ["b1"] and found.excluded == {"gone": "there is no such agent, or no agent in that session"}
        assert found.counts()["unknown"] == {"excluded": 1}
        assert plan(book.state, Rung.FREEZE, Scope(Reach.SESSION, "s2", ("gone",))).excluded.keys() == {"gone"}
        with pytest.raises(NotFound):
            plan(book.state, Rung.KILL, Scope(Reach.AGENT, "gone", ("lost",)))

    def test_sessions_isolated_by_one_order_are_given_back_by_one(self) -> None:
        book = family()
        two = Scope(Reach.SESSION, "s1", ("s2",))
        book >> e.Isolated(book.at, book.boot, agent_ids("a1", "a2", "b1"), two.targets, "operator:0", "leaks")
        assert set(book.state.isolated) == {"s1", "s2"} and lifted_sessions(book.state, two) == ("s1", "s2")

    def test_a_child_in_a_session_of_its_own_does_not_escape_even_when_its_parent_has_ended(self) -> None:
        book = family()
        book >> e.AgentExited(book.at, book.boot, AgentId("a1"), 0)
        assert set(members(book.state, Scope(Reach.SESSION, "s1"))) == {"a2", "b1"}

    @pytest.mark.parametrize("scope", [Scope(Reach.AGENT, "nobody"), Scope(Reach.TREE, "nobody"), Scope(Reach.SESSION, "nowhere")])
    def test_what_is_not_there_is_not_found(self, scope: Scope) -> None:
        for rung in Rung:
            with pytest.raises(NotFound):
                plan(family().state, rung, scope)

    def test_nothing_held_is_not_found_but_a_kill_of_everything_still_latches(self) -> None:
        empty = Playbook().state
        for rung in Rung:
            with pytest.raises(NotFound):
                plan(empty, rung, Scope(Reach.HOST))
        found = plan(empty, Rung.KILL, Scope(Reach.ALL))
        found.refuse_if_idle()
        assert found.latches and found.ids == []

    @pytest.mark.parametrize("target", ["../s1", "s1\n", "S1", "", "s" * 64, "s1'--"])
    def test_a_hostile_session_id_is_refused_before_anything_is_looked_up(self, target: str) -> None:
        with pytest.raises(UsageProblem):
            plan(family().state, Rung.KILL, Scope(Reach.SESSION, target))


class TestWhatIsSaidBefore:
    def test_levels_are_counted_and_the_observed_are_left_alone_with_why(self) -> None:
        book = family()
        ghost = observe(book)
        found = plan(book.state, Rung.KILL, Scope(Reach.ALL), {"b1": "it may leave its cgroup"})
        assert found.counts() == {"managed": {"certain": 3, "best_effort": 1}, "observed": {"excluded": 1}}
        assert ghost in found.excluded and "only observed" in found.excluded[ghost]
        with pytest.raises(Conflict, match="only observed") as refused:
            plan(book.state, Rung.FREEZE, Scope(Reach.AGENT, ghost)).refuse_if_idle()
        assert refused.value.remedy == f"watchfloor adopt {ghost} takes it over first."
        book.state.can_adopt = False
        book.state.kill_observed = {AgentId(ghost)}
        with pytest.raises(Conflict) as refused:
            plan(book.state, Rung.FREEZE, Scope(Reach.AGENT, ghost)).refuse_if_idle()
        assert refused.value.remedy.startswith(f"Kill it (watchfloor kill {ghost}); it cannot be adopted: there is no writable cgroup here")
        (line,) = plan(book.state, Rung.KILL, Scope(Reach.AGENT, ghost)).lines
        assert line.why.startswith("Watchfloor did not start it") and "Adopt" not in line.why
        book.state.can_adopt, book.state.kill_observed = True, set()
        assert {line.agent.agent_id: line.why for line in found.lines if line.treatment is Treatment.BEST_EFFORT} == {
            "b1": "it may leave its cgroup"
        }

    def test_a_doubt_changes_what_is_said_and_never_who_is_touched(self) -> None:
        book = family()
        everybody = {str(i): "doubt" for i in book.state.agents}
        for rung in (Rung.KILL, Rung.FREEZE, Rung.ISOLATE):
            for scope in (Scope(Reach.ALL), Scope(Reach.SESSION, "s1"), Scope(Reach.TREE, "a1")):
                assert plan(book.state, rung, scope).ids == plan(book.state, rung, scope, everybody).ids

    def test_an_agent_on_the_hosts_network_is_best_effort_to_isolate(self) -> None:
        book = Playbook().run("a1", enforced=False)
        (line,) = plan(book.state, Rung.ISOLATE, Scope(Reach.AGENT, "a1")).lines
        assert (line.treatment, line.why) == (Treatment.BEST_EFFORT, SHARED)

    def test_nobody_to_touch_is_a_conflict_that_says_why(self) -> None:
        book = Playbook().run("a1")
        with pytest.raises(Conflict, match="no operator froze it"):
            plan(book.state, Rung.THAW, Scope(Reach.AGENT, "a1")).refuse_if_idle()
        book.run("a2")
        with pytest.raises(Conflict, match="2 agents: no operator isolated it"):
            plan(book.state, Rung.RECONNECT, Scope(Reach.ALL)).refuse_if_idle()

    def test_a_thaw_says_which_other_causes_stay(self) -> None:
        book = Playbook().run("a1")
        book >> e.FrozenSetChanged(book.at, book.boot, {AgentId("a1"): ("budget", "operator")})
        (line,) = plan(book.state, Rung.THAW, Scope(Reach.AGENT, "a1")).lines
        assert line.why == "it stays frozen: budget"
        assert why_not(book.state, Rung.FREEZE, book.agent("a1")) == "it is frozen already"

    def test_what_has_ended_is_not_touched(self) -> None:
        book = Playbook().run("a1")
        book >> e.AgentExited(book.at, book.boot, AgentId("a1"), 0)
        assert {why_not(book.state, rung, book.agent("a1")) for rung in Rung} == {"it has ended"}


class TestIsolationCanBeTakenBack:
    def test_it_cuts_before_it_records_and_the_effective_mode_is_none(self) -> None:
        book = isolate(family(), "a1")
        kinds = [type(command) for command in book.out]
        assert kinds.index(c.CutEgress) < kinds.index(c.Record)
        assert book.agent("a1").effective_mode is NetworkMode.NONE
        assert (book << c.Record).must

    def test_the_ratchet_is_not_touched_by_either_way(self) -> None:
        book = family()
        before = dict(book.state.contexts), {i: a.network_mode for i, a in book.state.agents.items()}
        isolate(book, "a1", "a2", session="s1")
        reconnect(book, "a1", "a2", sessions=("s1",))
        assert before == (book.state.contexts, {i: a.network_mode for i, a in book.state.agents.items()})
        assert book.agent("a1").effective_mode is NetworkMode.PROXIED

    def test_a_reconnection_never_gives_more_than_the_ratchet_leaves(self) -> None:
        book = isolate(family(), "a1")
        book >> e.PrivateDataRegistered(book.at, book.boot, AgentId("b1"), "d", "s", Sensitivity.SECRET, NetworkMode.NONE)
        reconnect(book, "a1")
        assert book.agent("a1").isolated == ""
        assert book.agent("a1").effective_mode is NetworkMode.NONE
        assert plan(isolate(book, "b1").state, Rung.RECONNECT, Scope(Reach.AGENT, "b1")).lines[0].why.startswith("it stays without network")

    def test_a_child_inherits_it_and_is_born_without_network(self) -> None:
        book = isolate(family(), "a1")
        book.run("a3", parent_id=AgentId("a1"), context_id=ContextId("fresh"))
        child = book.agent("a3")
        assert child.isolated and child.effective_mode is NetworkMode.NONE
        assert child.network_mode is NetworkMode.PROXIED
        assert book.state.context("fresh")[1] is NetworkMode.PROXIED  # the ratchet knows nothing of an isolation
        reconnect(book, "a3")
        assert book.agent("a3").effective_mode is NetworkMode.PROXIED

    def test_one_born_isolated_without_a_portal_has_no_network_to_be_given_back_nor_have_its_children(self) -> None:
        book = Playbook().run("a1")
        isolate(book, "a1")
        book.run("a2", parent_id=AgentId("a1"))
        reconnect(book, "a1", "a2")
        book.run("a3", parent_id=AgentId("a2"))
        assert [book.agent(i).effective_mode for i in ("a1", "a2", "a3")] == [NetworkMode.FULL, NetworkMode.NONE, NetworkMode.NONE]
        assert book.state.context(book.agent("a2").context_id)[1] is NetworkMode.FULL

    def test_whoever_joins_an_isolated_session_is_isolated_until_the_session_is_reconnected(self) -> None:
        book = isolate(family(), "a1", "a2", "b1", session="s1")
        book.run("n1", context_id=ContextId("s1"))
        assert book.agent("n1").isolated == "operator:0: leaks"
        assert "reconnect the session" in why_not(book.state, Rung.RECONNECT, book.agent("n1"), Scope(Reach.AGENT, "n1"))
        reconnect(book, "n1")
        assert book.agent("n1").isolated  # the session still is
        assert lifted_sessions(book.state, Scope(Reach.SESSION, "s1")) == lifted_sessions(book.state, Scope(Reach.ALL)) == ("s1",)
        assert lifted_sessions(book.state, Scope(Reach.TREE, "a1")) == lifted_sessions(book.state, Scope(Reach.SESSION, "s2")) == ()
        reconnect(book, *plan(book.state, Rung.RECONNECT, Scope(Reach.SESSION, "s1")).ids, sessions=("s1",))
        assert [a.agent_id for a in book.state.agents.values() if a.isolated] == []
        assert {x.agent_id for x in book.all(c.GiveEgress)} == {"a1", "a2", "b1", "n1"}

    def test_it_is_believed_after_a_restart_and_cut_again(self) -> None:
        old = Agent(AgentId("a1"), "x", None, AgentId("a1"), 1, ContextId("s1"), ControlLevel.MANAGED, SandboxKind.NONE, 1.0,
                    state=AgentState.RUNNING, process=ProcessIdentity(5, 6), network_mode=NetworkMode.PROXIED, network_enforced=True,
                    isolated="operator:0: leaks")  # fmt: skip
        late = replace(old, agent_id=AgentId("a2"), root_id=AgentId("a2"), context_id=ContextId("s2"), isolated="")
        alive = frozenset(agent_ids("a1", "a2"))
        book = Playbook() >> e.Restored(9.0, 9.0, (old, late), alive, {}, False, "", frozenset(), {"s2": "operator:0: all of it"})
        assert {x.agent_id for x in book.all(c.CutEgress)} == {"a1", "a2"}
        assert book.agent("a2").isolated == "operator:0: all of it"
        book.run("n1", context_id=ContextId("s2"))
        assert book.agent("n1").effective_mode is NetworkMode.NONE

    def test_what_could_not_be_enforced_is_said(self) -> None:
        book = isolate(Playbook().run("a1", enforced=False), "a1")
        book >> e.EgressChanged(book.at, book.boot, AgentId("a1"), False, "it shares the host's network")
        assert not book.agent("a1").network_enforced
        assert "not enforced" in (book << c.Record).what

    def test_an_isolated_agent_is_refused_every_destination(self) -> None:
        from console.domain.calls.permission import Decision, PermissionRequest, Verdict

        book = isolate(Playbook().run("a1"), "a1")
        request = PermissionRequest("http_request", "https://x.example.com/")
        book >> e.CallJudged(book.at, book.boot, AgentId("a1"), "r", request, Decision(Verdict.ALLOW, "network(outbound:*)", ""))
        assert (book << c.JudgeUrl).mode is NetworkMode.NONE

    def test_one_that_starts_is_left_to_its_launch_and_the_observed_are_left_alone(self) -> None:
        book = Playbook().launch("a1")
        ghost = observe(book)
        isolate(book, "a1", ghost)
        book.none(c.CutEgress)
        assert book.agent("a1").isolated and not book.state.agents[ghost].isolated


class TestAStopOfASessionWins:
    def stop(self, book: Playbook, scope: Scope | None, *ids: str) -> Playbook:
        return book >> e.StopAsked(book.at, book.boot, agent_ids(*ids), scope)

    def refused(self, book: Playbook, **fields: Any) -> str:
        refusal = book.launch("late", **fields) << c.RefuseLaunch
        assert isinstance(refusal.error, Killed)
        return str(refusal.error)

    def test_nothing_starts_in_it_until_it_is_judged(self) -> None:
        book, scope = family(), Scope(Reach.SESSION, "s1")
        self.stop(book, scope, "a1", "a2", "b1")
        assert "session s1" in self.refused(book, context_id=ContextId("s1"))
        assert "An agent above" in self.refused(book, parent_id=AgentId("a2"))
        book.launch("free") << c.StartAgent
        book >> e.StopOver(book.at, book.boot, scope)
        book.launch("next", context_id=ContextId("s1")) << c.StartAgent

    def test_a_child_without_a_session_of_its_own_is_refused_by_its_parents(self) -> None:
        book, scope = family(), Scope(Reach.SESSION, "other")
        self.stop(book, scope)
        assert "session other" in self.refused(book, parent_id=AgentId("z1"))

    def test_a_stop_of_the_host_refuses_every_launch_and_does_not_latch(self) -> None:
        book, scope = family(), Scope(Reach.HOST)
        self.stop(book, scope, "a1")
        assert "this host" in self.refused(book)
        book >> e.StopOver(book.at, book.boot, scope)
        assert not book.state.killed
        book.launch("next") << c.StartAgent

    def test_two_stops_of_one_session_each_end_for_themselves(self) -> None:
        book, scope = family(), Scope(Reach.SESSION, "s1")
        self.stop(self.stop(book, scope), scope)
        book >> e.StopOver(book.at, book.boot, scope)
        self.refused(book, context_id=ContextId("s1"))

    def test_a_stop_that_was_never_pressed_is_taken_back(self) -> None:
        book = family()
        self.stop(book, None, "a1")
        book >> e.StopOver(book.at, book.boot, None, agent_ids("a1"))
        book.launch("next", parent_id=AgentId("a1")) << c.StartAgent

    def test_killed_is_said_only_of_those_the_receipt_proves(self) -> None:
        book = family()
        self.stop(book, Scope(Reach.SESSION, "s1"), "a1", "b1")
        book >> e.KillStarted(book.at, book.boot, "k", agent_ids("a1", "b1"), "r", "operator:0")
        targets = (Target("a1", "managed", Outcome.PROVEN_ZERO, 1.0), Target("b1", "managed", Outcome.NOT_PROVEN, 1.0))
        book >> e.KillJudged(book.at, book.boot, Receipt("k", "i", "a1,b1", "r", "operator:0", 1.0, targets=targets))
        assert (book.agent("a1").state, book.agent("b1").state) == (AgentState.KILLED, AgentState.ALIVE_AFTER_KILL)
