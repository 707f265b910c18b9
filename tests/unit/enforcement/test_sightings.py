"""Observed agents: shown, never confused with our own, gone only when a working source says so."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

import pytest

from console.domain.agent import AgentId, AgentState, ProcessIdentity, Sighting, SourceReport
from console.domain.budget import Usage
from console.domain.conversation import Program, command_line
from console.domain.engine import command as c
from console.domain.engine import event as e
from console.domain.ids import ControlLevel
from console.domain.kill import Outcome, Receipt, Target
from console.enforcement import sightings
from console.enforcement.identity import observed_id
from tests.fakes.playbook import Playbook


def sighting(key: str, pid: int = 7, parent: str | None = None, status: str = "busy") -> Sighting:
    return Sighting("claude_code", key, f"name {key}", ProcessIdentity(pid, 1), key, "/work", 1.0, parent_key=parent, status=status)


def see(book: Playbook, *sightings: Sighting, available: bool = True) -> Playbook:
    return book >> e.Sighted(book.at, book.boot, (SourceReport("claude_code", available, "", sightings),))


def test_a_session_appears_as_observed_and_ends_when_it_is_no_longer_seen() -> None:
    book = see(Playbook(), sighting("s1"))
    agent_id = observed_id(sighting("s1"))
    assert book.agent(agent_id).control_level is ControlLevel.OBSERVED
    assert not book.agent(agent_id).network_enforced
    see(book, sighting("s1")).none(c.ShowAgent)
    see(book)
    assert book.agent(agent_id).state is AgentState.ENDED


@pytest.mark.parametrize("first", ["the kill is judged", "its source misses it"])
def test_the_row_of_an_observed_agent_says_who_killed_it_when_and_why(first: str) -> None:
    root, sub = sighting("s1"), sighting("s2", parent="s1")
    book = see(Playbook(), root, sub)
    ids = observed_id(root), observed_id(sub)
    target = Target(ids[0], "observed", Outcome.BEST_EFFORT, 3.0)
    receipt = Receipt("20260101-000000-abcdef", "01234567", ids[0], "it burns; fast", "ann (uid 1000)", book.at, targets=(target,))
    judged = e.KillJudged(book.at, book.boot, receipt)
    if first == "the kill is judged":
        see(book >> judged)
        assert book.agent(ids[1]).state_reason == book.agent(ids[0]).state_reason, "its sub-agent ended with it"
    else:
        see(book) >> judged
    at = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(book.at))
    assert book.agent(ids[0]).state_reason == f"killed by ann (uid 1000) at {at}: it burns; fast; no longer seen"
    assert book.agent(ids[0]).state is AgentState.ENDED, "nothing confirmed it"
    before = book.agent(ids[0])
    see(book >> judged)
    assert book.agent(ids[0]) == before


def test_a_kill_before_its_end_says_nothing_of_an_agent_that_ended_by_itself() -> None:
    book = see(see(Playbook(), sighting("s1")))
    agent_id = observed_id(sighting("s1"))
    target = Target(agent_id, "observed", Outcome.BEST_EFFORT, 3.0)
    late = Receipt("20260101-000000-abcdef", "01234567", agent_id, "it burns", "ann", book.at + 60.0, targets=(target,))
    book >> e.KillJudged(book.at, book.boot, late)
    assert book.agent(agent_id).state_reason == "no longer seen"


def spent(one: Sighting, cost: float, status: str = "") -> Sighting:
    return replace(one, usage=Usage(cost_usd=cost), status=status or one.status)


def test_what_is_priced_after_the_end_is_charged_to_row_and_tree_and_revives_nobody() -> None:
    root, sub = sighting("s1"), sighting("s2", parent="s1")
    book = see(see(Playbook(), root, sub), spent(root, 1.0), spent(sub, 1.0))
    first, second = observed_id(root), observed_id(sub)
    see(book, replace(spent(root, 1.5, "gone"), process=None), replace(spent(sub, 1.25, "gone"), process=None))
    assert [book.agent(i).state for i in (first, second)] == [AgentState.ENDED] * 2
    assert [book.agent(i).usage.cost_usd for i in (first, second)] == [1.5, 1.25]
    see(book, replace(spent(root, 2.0, "gone"), process=None), replace(spent(sub, 3.0, "gone"), process=None))
    assert [book.agent(i).usage.cost_usd for i in (first, second)] == [2.0, 3.0] and not book.state.live
    assert book.agent(first).state_reason == "no longer seen" and book.state.tree_usage[first].cost_usd == 5.0
    see(book).none(c.ShowAgent)


def test_who_is_gone_before_it_was_seen_is_no_agent_and_takes_no_row_of_one_that_runs() -> None:
    gone = replace(spent(sighting("s0"), 9.0, "gone"), process=None)
    book = see(Playbook(), gone, sighting("s1"))
    assert set(book.state.agents) == {observed_id(sighting("s1"))}
    process = Sighting("processes", "p7", "claude", ProcessIdentity(7, 1), "", "/work", 1.0)
    for one in (sighting("s1"), replace(spent(sighting("s1"), 1.0, "gone"), process=None)):
        reports = SourceReport("claude_code", True, "", (one,)), SourceReport("processes", True, "", (process,))
        book >> e.Sighted(book.at, book.boot, reports)
    (agent,) = book.state.agents.values()
    assert agent.state is AgentState.RUNNING, "its record is gone, its process is not"
    assert agent.usage.cost_usd == 1.0


def test_a_container_whose_session_is_gone_goes_on() -> None:
    box = "b" * 64
    session = replace(sighting("s1"), container_id=box)
    container = Sighting("docker", box, "box", None, "", "/", 1.0, container_id=box, status="running")
    book = Playbook()
    for one in (session, replace(spent(session, 1.0, "gone"), process=None)):
        reports = SourceReport("claude_code", True, "", (one,)), SourceReport("docker", True, "", (container,))
        book >> e.Sighted(book.at, book.boot, reports)
    (agent,) = book.state.agents.values()
    assert (agent.state, agent.usage.cost_usd) == (AgentState.RUNNING, 1.0)


def test_a_source_that_cannot_look_ends_nobody() -> None:
    book = see(Playbook(), sighting("s1"))
    see(book, available=False)
    assert book.agent(observed_id(sighting("s1"))).state is AgentState.RUNNING


def test_whom_a_source_saw_that_cannot_look_is_said_to_be_seen_by_nobody_until_it_can() -> None:
    book, one = see(Playbook(), sighting("s1")), observed_id(sighting("s1"))
    shown = see(book, available=False).all(c.ShowAgent)
    assert [a.agent.agent_id for a in shown] == [one] and book.state.seen[one].sources == ()
    assert book.agent(one).state_reason == "not seen now: claude_code cannot look"
    see(book, available=False).none(c.ShowAgent)
    see(book, sighting("s1"))
    assert (book.agent(one).state_reason, book.state.seen[one].sources) == ("", ("claude_code",))
    see(book)
    assert book.agent(one).state is AgentState.ENDED


def test_a_paused_container_does_not_read_as_running() -> None:
    book, one = see(Playbook(), sighting("s1", status="paused")), observed_id(sighting("s1"))
    assert (book.agent(one).state, book.agent(one).state_reason) == (AgentState.WAITING, "its container is paused")
    see(book, sighting("s1", status="running"))
    assert (book.agent(one).state, book.agent(one).state_reason) == (AgentState.RUNNING, "")
    see(book, sighting("s1", status="paused"))
    assert book.agent(one).state is AgentState.WAITING


def test_our_own_process_is_not_shown_twice() -> None:
    book = Playbook().run("a")
    process = book.agent("a").process
    assert process is not None
    see(book, Sighting("codex", "k", "n", process, "s", "/", 1.0))
    assert set(book.state.agents) == {AgentId("a")}


def test_what_is_priced_after_the_end_of_an_agent_of_ours_is_charged_to_it_with_what_its_sessions_used_before() -> None:
    book = Playbook().run("a")
    first, second = (replace(sighting(name), process=None, agent_id="a") for name in ("s1", "s2"))
    see(see(book, spent(first, 5.0)), spent(second, 3.0), spent(first, 5.0, "gone"))
    assert book.agent("a").usage.cost_usd == 8.0
    see(book, spent(second, 3.0), spent(first, 6.0, "gone"))
    assert book.agent("a").usage.cost_usd == 9.0, "its own program ended, the agent goes on"
    book >> e.AgentExited(book.at, book.boot, AgentId("a"), 0)
    see(book, spent(second, 4.0, "gone"))
    see(book, spent(second, 4.5, "gone"), replace(spent(second, 9.0), key="s3"))
    assert book.agent("a").usage.cost_usd == 10.5 and book.agent("a").state is AgentState.ENDED
    assert book.state.tree_usage[AgentId("a")].cost_usd == 10.5 and set(book.state.agents) == {AgentId("a")}
    talks = Playbook().run("a", argv=command_line(Program.CODEX, "p", "/usr/bin/codex", (), talks=True))
    see(talks, first) >> e.AgentExited(talks.at, talks.boot, AgentId("a"), 0)
    see(talks, spent(first, 4.0, "gone"))
    assert not talks.agent("a").usage.cost_usd, "its stream told what it used: a race would count it twice"


def test_sub_agents_hang_under_their_session_and_waiting_shows() -> None:
    book = see(Playbook(), sighting("s1"), sighting("s2", 8, parent="s1", status="waiting"))
    child = book.agent(observed_id(sighting("s2")))
    assert child.parent_id == observed_id(sighting("s1"))
    assert child.depth == 2
    assert child.state is AgentState.WAITING


def test_hostile_keys_make_plain_ids() -> None:
    assert observed_id(sighting("../../x\n\ud800")).isascii()


def test_observed_agents_are_never_halted() -> None:
    book = see(Playbook(), sighting("s1"))
    book.tick(10_000).none(c.HaltAgents)


def test_what_a_session_used_is_shown_charged_to_its_tree_and_only_grows() -> None:
    def used(cost: float, tokens: int = 0) -> Usage:
        return Usage(iterations=1, tokens=tokens, cost_usd=cost)

    root, child = sighting("s1"), replace(sighting("s1-a", parent="s1"), process=None, usage=used(0.5, 10))
    book = see(Playbook(), replace(root, usage=used(1.0, 100), action="claude-x"), child)
    root_id = observed_id(root)
    assert book.agent(root_id).usage.cost_usd == 1.0 and book.state.tree_usage[root_id].cost_usd == 1.5
    assert book.agent(observed_id(child)).parent_id == root_id
    see(book, replace(root, usage=used(1.25, 120), action="claude-y"), child)
    assert book.agent(root_id).usage.tokens == 120 and book.agent(root_id).last_action == "claude-y"
    assert book.state.tree_usage[root_id].cost_usd == 1.75
    see(book, replace(root, usage=used(0.1, 1)), child)  # a transcript that was cut takes nothing back
    assert book.agent(root_id).usage.cost_usd == 1.25
    see(book, root, child).none(c.ShowAgent)  # and one that cannot be read changes nothing


def test_a_session_that_comes_back_is_not_charged_twice() -> None:
    one = replace(sighting("s1"), usage=Usage(cost_usd=2.0))
    book = see(see(see(Playbook(), one)), one)
    assert book.agent(observed_id(one)).usage.cost_usd == 2.0 and book.state.tree_usage[observed_id(one)].cost_usd == 2.0


def test_files_that_name_each_other_as_parents_make_no_circle() -> None:
    one, other = sighting("one", 8, parent="other"), sighting("other", 9, parent="one")
    book = see(Playbook(), other, one)
    assert book.agent(observed_id(one)).parent_id == observed_id(other)
    see(book, one)  # the parent ends, and comes back below its own child
    see(book, one, other)
    assert {i: len(book.state.subtree(i)) for i in book.state.agents} == {observed_id(other): 2, observed_id(one): 1}
    see(see(book), replace(one, parent_key="one"))  # or below itself
    assert book.state.subtree(observed_id(one)) == [observed_id(one)]


def test_one_that_comes_back_elsewhere_hangs_below_nobody_else_any_more() -> None:
    tops = sighting("s1"), sighting("s2", 8)
    book = see(Playbook(), *tops, sighting("part", 9, parent="s1"))
    see(see(book, *tops), *tops, sighting("part", 9, parent="s2"))
    assert [len(book.state.subtree(observed_id(top))) for top in tops] == [1, 2]


def told(session: str = "s1", cost: float = 5.0) -> Sighting:
    """What somebody says by telemetry."""
    return Sighting(
        "otlp", session, "claude-code s1", None, session, "", 1.0, status="unverified", usage=Usage(cost_usd=cost), unlinked="why"
    )


def hear(book: Playbook, *heard: Sighting, seen: tuple[Sighting, ...] | None = (), usage: float = 0.0) -> Playbook:
    """One look of both; ``seen`` None: the other source cannot look."""
    files = tuple(replace(one, usage=Usage(cost_usd=usage)) for one in seen or ())
    reports = (SourceReport("claude_code", seen is not None, "", files), SourceReport("otlp", True, "", heard))
    return book >> e.Sighted(book.at, book.boot, reports)


def test_what_telemetry_tells_of_a_session_that_is_seen_adds_its_name_and_nothing_else() -> None:
    book = hear(Playbook(), told(cost=900.0), seen=(sighting("s1"),), usage=2.0)
    (agent,) = book.state.agents.values()
    assert (agent.usage.cost_usd, agent.source, agent.name) == (2.0, "claude_code", "name s1")
    assert book.state.seen[agent.agent_id].sources == ("claude_code", "otlp")
    assert book.state.budget.spent["session", str(agent.context_id)].cost_usd == 2.0


def test_telemetry_alone_does_not_keep_a_session_whose_process_is_gone() -> None:
    book = hear(Playbook(), told(), seen=(sighting("s1"),))
    hear(book, told())
    (agent,) = book.state.agents.values()
    assert (agent.state, agent.state_reason) == (AgentState.ENDED, "no longer seen")
    hear(book, told(cost=7.0))
    assert len(book.state.agents) == 1 and not book.state.live


def test_a_source_that_cannot_look_ends_nobody_whom_telemetry_tells_of_too_and_makes_no_second_row() -> None:
    book = hear(Playbook(), told(), seen=(sighting("s1"),))
    hear(book, told(), seen=None)
    assert [a.state for a in book.state.agents.values()] == [AgentState.RUNNING]


def test_what_telemetry_alone_tells_is_a_row_that_is_charged_to_nobody() -> None:
    book = hear(hear(Playbook(), told()), told(cost=9.0))
    (agent,) = book.state.agents.values()
    assert (agent.usage.cost_usd, agent.process, agent.source) == (9.0, None, "otlp")
    assert book.state.seen[agent.agent_id].unlinked == "why"
    assert not book.state.budget.spent and agent.agent_id not in book.state.budget.metered
    book.none(c.KeepBooks)
    book.none(c.Charged)
    hear(book, told(cost=1.0))
    assert book.state.agents[agent.agent_id].usage.cost_usd == 9.0


def test_a_session_that_was_only_told_of_and_is_then_seen_is_the_row_that_is_seen_and_what_was_told_is_not_its_spend() -> None:
    book = hear(Playbook(), told(cost=900.0))
    hear(book, told(cost=900.0), seen=(sighting("s1"),), usage=1.5)
    (live,) = (book.state.agents[i] for i in book.state.live)
    assert (live.usage.cost_usd, live.process, live.cwd) == (1.5, ProcessIdentity(7, 1), "/work")
    assert len(book.state.agents) == 2 and len(book.state.live) == 1


def test_a_session_inside_an_agent_of_ours_is_told_of_in_its_row_and_its_spend_counts_once() -> None:
    book = Playbook().run("a")
    own = replace(sighting("s1"), process=None, agent_id="a", usage=Usage(cost_usd=2.0))
    reports = (SourceReport("claude_code", True, "", (own,)), SourceReport("otlp", True, "", (told(cost=900.0),)))
    book >> e.Sighted(book.at, book.boot, reports)
    assert set(book.state.agents) == {AgentId("a")} and book.agent("a").usage.cost_usd == 2.0
    assert book.state.seen[AgentId("a")].sources == ("claude_code", "otlp")


def test_sessions_of_telemetry_kept_in_mind_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sightings, "_LINKED", 3)
    book = Playbook()
    for n in range(9):
        hear(book, told(f"s{n}"), seen=(sighting(f"s{n}"),))
    assert list(book.state.linked_sessions) == ["s6", "s7", "s8"]


def test_telemetry_that_breaks_keeps_nobody_whom_others_see_no_more() -> None:
    book = hear(Playbook(), told(), seen=(sighting("s1"),))
    book >> e.Sighted(book.at, book.boot, (SourceReport("claude_code", True, ""), SourceReport("otlp", False, "")))
    assert not book.state.live


def test_a_session_that_is_told_of_before_anybody_could_see_it_makes_no_row_of_its_own() -> None:
    young = replace(told(), status="young")
    book = hear(Playbook(), young)
    assert not book.state.agents
    hear(book, young, seen=(sighting("s1"),))
    assert [book.state.seen[i].sources for i in book.state.agents] == [("claude_code", "otlp")]


def test_passing_over_what_is_the_same_changes_nothing_that_follows() -> None:
    def steps(book: Playbook) -> Iterator[tuple[object, ...]]:
        used = [Usage(iterations=n, tokens=10 * n, cost_usd=n / 4) for n in range(6)]
        one, two, part = sighting("s1"), sighting("s2", 8), replace(sighting("s1-p", parent="s1"), process=None)
        whole = replace(one, usage=used[1])
        for seen in (
            (whole, two), (whole, two), (replace(whole, usage=used[2]), two), (whole, two),
            (whole, replace(two, status="waiting")), (whole, two, part), (whole, two, replace(part, usage=used[3])),
            (whole, replace(two, process=ProcessIdentity(8, 2))), (whole, replace(two, status="finished")),
            (whole, two), (two,), (whole, two),
        ):  # fmt: skip
            for _ in range(2):
                yield see(book, *seen), tuple(book.out), dict(book.state.agents), dict(book.state.seen), dict(book.state.tree_usage)

    passing, looking = Playbook(), Playbook()
    for (_, *one), (_, *other) in zip(steps(passing), steps(looking), strict=True):
        assert one == other
        looking.state.same.clear()
    book = see(Playbook(), sighting("s1"))
    assert list(book.state.same) == [observed_id(sighting("s1"))]
    see(book)
    assert not book.state.same  # nothing is kept of those who are gone


@pytest.mark.parametrize(("folder", "same"), [("/work", True), ("/elsewhere", False)])
def test_after_a_restart_a_process_is_one_row_whichever_source_sees_it_first(folder: str, same: bool) -> None:
    """Its own source may need longer than the list of processes: which of both named the row must not matter later."""
    process = ProcessIdentity(7, 5)
    early = Sighting("processes", "7-5", "aider", process, "", "/work", 1.0)
    late = Sighting("aider", "1001-7-5", "aider", process, "", folder, 1.0, usage=Usage(cost_usd=2.0))
    book = Playbook() >> e.Sighted(1.0, 1.0, (SourceReport("processes", True, "", (early,)),))
    before = book.agent(observed_id(early))
    again = Playbook() >> e.Restored(2.0, 2.0, (before,), frozenset(), {}, False, "")
    again >> e.Sighted(3.0, 3.0, (SourceReport("aider", True, "", (late,)), SourceReport("processes", True, "", (early,))))
    live = [agent for agent in again.state.agents.values() if agent.state.is_live]
    assert len(live) == 1 and (live[0].agent_id == before.agent_id) == same and live[0].usage.cost_usd == 2.0
    again >> e.Sighted(4.0, 4.0, (SourceReport("aider", True, "", (late,)),))
    assert [agent.agent_id for agent in again.state.agents.values() if agent.state.is_live] == [live[0].agent_id]
