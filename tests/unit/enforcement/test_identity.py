"""One agent seen by several sources is one row; two agents never are."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import pytest

from console.domain.agent import AgentId, AgentState, ProcessIdentity, Sighting, SourceReport
from console.domain.budget import Usage
from console.domain.conversation import Program, command_line
from console.domain.engine import command as c
from console.domain.engine import event as e
from console.domain.ids import ControlLevel
from console.enforcement.identity import joined
from console.enforcement.state import EngineState
from tests.fakes.playbook import Playbook

BOX = "ab" * 32


def say(source: str, key: str = "k", pid: int = 7, start: int = 1, **more: object) -> Sighting:
    made = Sighting(source, key, f"{source} {key}", ProcessIdentity(pid, start) if pid else None, "", "/work", 1.0, status="running")
    return replace(made, **more)  # type: ignore[arg-type]


def see(book: Playbook, *sightings: Sighting, blind: tuple[str, ...] = ()) -> Playbook:
    names = dict.fromkeys([*(s.source for s in sightings), "claude_code", "codex", "docker", "processes"])
    reports = (SourceReport(n, n not in blind, "", tuple(s for s in sightings if s.source == n)) for n in names)
    return book.later(1) >> e.Sighted(book.at, book.boot, tuple(reports))


def live(book: Playbook) -> list[str]:
    return sorted(i for i in book.state.live)


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_a_process_a_session_and_a_container_of_the_same_agent_are_one_row_in_whatever_order_they_come(order: tuple[int, ...]) -> None:
    three = (say("claude_code", session="s"), say("processes", container_id=BOX), say("docker", pid=0, container_id=BOX))
    book, shown = Playbook(), []
    for number in order:
        shown.append(three[number])
        see(book, *shown)
    assert len(live(book)) == 1
    agent = book.agent(live(book)[0])
    assert (agent.name, agent.process) == ("claude_code k", ProcessIdentity(7, 1))
    assert book.state.seen[agent.agent_id].sources == ("claude_code", "docker", "processes")
    ended = [a for a in book.state.agents.values() if a.state is AgentState.ENDED]
    assert len(ended) <= 1  # a row that turned out to be another's


def test_a_row_keeps_its_id_when_more_becomes_known_of_it_and_when_one_source_loses_it() -> None:
    book = see(Playbook(), say("processes"))
    (first,) = live(book)
    see(book, say("processes"), say("claude_code", session="s"))
    assert live(book) == [first] and book.agent(first).name == "claude_code k"
    see(book, say("claude_code", session="s"))
    assert live(book) == [first]
    see(book)
    assert book.agent(first).state is AgentState.ENDED


def test_a_reused_number_is_another_agent() -> None:
    book = see(Playbook(), say("claude_code", "a"), say("processes", "b", start=2))
    assert len(live(book)) == 2


def test_two_processes_with_the_same_session_id_are_two_agents_and_one_that_could_not_tell_is_neither() -> None:
    assert len(live(see(Playbook(), say("claude_code", "a", session="s"), say("codex", "b", pid=8, session="s")))) == 2
    assert len(live(see(Playbook(), say("claude_code", "a", session="s"), say("codex", "b", pid=0, session="s")))) == 1
    assert len(live(see(Playbook(), say("claude_code", "a"), say("codex", "b", pid=0)))) == 2  # no session is no proof


def test_threads_of_one_process_are_agents_of_their_own_and_its_process_is_the_first() -> None:
    book = see(Playbook(), say("codex", "t1"), say("codex", "t2", parent_key="t1"), say("processes"))
    root, child = sorted((book.agent(i) for i in live(book)), key=lambda a: a.depth)
    assert child.parent_id == root.agent_id and book.state.seen[root.agent_id].sources == ("codex", "processes")
    assert book.state.seen[child.agent_id].sources == ("codex",)


def test_several_programs_of_one_container_hang_below_it() -> None:
    box = say("docker", pid=0, container_id=BOX)
    book = see(Playbook(), box, say("processes", "a", 8, container_id=BOX), say("processes", "b", 9, container_id=BOX))
    agents = sorted((book.agent(i) for i in live(book)), key=lambda a: a.depth)
    assert [a.depth for a in agents] == [1, 2, 2] and {a.parent_id for a in agents[1:]} == {agents[0].agent_id}


def test_a_session_in_an_agent_of_ours_is_that_agents_row_and_its_sub_agents_hang_below() -> None:
    book = Playbook().run("a")
    session = say("claude_code", pid=99, session="s", agent_id="a", usage=Usage(tokens=10, cost_usd=1.0), model="m", unpriced=2)
    sub = replace(session, key="k-1", process=None, parent_key="k", unpriced=0, usage=Usage(tokens=5, cost_usd=0.5))
    deep = replace(sub, key="k-2", parent_key="k-1", usage=None)
    see(book, session, sub, deep, say("processes", pid=99, agent_id="a"))
    agent = book.agent("a")
    assert (agent.name, agent.control_level) == ("agent", ControlLevel.MANAGED)  # nothing it says of itself renames or moves it
    # What runs in it is its own, so its limits hold for it; each part's share is shown below, and nothing counts twice.
    assert (agent.usage.tokens, agent.usage.cost_usd) == (15, 1.5) and book.state.tree_usage[AgentId("a")].cost_usd == 1.5
    first, second = sorted((x for x in book.state.agents.values() if x.agent_id != "a"), key=lambda x: x.depth)
    assert (first.parent_id, second.parent_id, second.depth) == ("a", first.agent_id, 3)
    assert {first.control_level, second.control_level} == {ControlLevel.OBSERVED}
    seen = book.state.seen[AgentId("a")]
    assert (seen.sources, seen.session, seen.model, seen.unpriced) == (("claude_code", "processes"), "s", "m", 2)


def test_usage_of_an_agents_sessions_adds_up_and_only_grows_and_what_it_reports_itself_is_not_added() -> None:
    book = Playbook().run("a")
    book.spend("a", cost_usd=0.4)
    one = say("claude_code", "s1", pid=98, agent_id="a", usage=Usage(cost_usd=1.0))
    see(book, one)
    assert book.agent("a").usage.cost_usd == 1.0
    see(book, say("claude_code", "s2", pid=97, agent_id="a", usage=Usage(cost_usd=0.5)))
    assert book.agent("a").usage.cost_usd == 1.5
    see(book, replace(one, usage=Usage(cost_usd=0.1)))
    assert book.agent("a").usage.cost_usd == 1.5


def test_what_an_ended_agent_of_ours_left_behind_makes_no_row() -> None:
    book = Playbook().run("a")
    book >> e.AgentExited(book.at, book.boot, AgentId("a"), 0)
    see(book, say("claude_code", pid=99, agent_id="a"))
    assert set(book.state.agents) == {"a"}


def test_sub_agents_end_with_the_agent_in_whose_process_they_run_even_if_no_source_looks() -> None:
    book = Playbook().run("a")
    session = say("claude_code", pid=99, agent_id="a")
    see(book, session, replace(session, key="k-1", process=None, parent_key="k"))
    (sub,) = [i for i in book.state.live if i != "a"]
    book >> e.AgentExited(book.at, book.boot, AgentId("a"), 0)
    see(book, blind=("claude_code", "codex", "docker", "processes"))
    assert "inside a" in book.agent(sub).state_reason


def test_one_that_finishes_ends_as_finished_with_its_last_sum_and_never_begins_so() -> None:
    root = say("claude_code", "r")
    sub = say("claude_code", "r-1", pid=0, parent_key="r", usage=Usage(cost_usd=1.0))
    book = see(Playbook(), root, sub)
    (child,) = [a for a in book.state.agents.values() if a.parent_id]
    see(book, root, replace(sub, status="finished", usage=Usage(cost_usd=1.25)))
    ended = book.agent(child.agent_id)
    assert (ended.state, ended.state_reason, ended.usage.cost_usd) == (AgentState.ENDED, "finished", 1.25)
    see(book, root, replace(sub, status="finished", usage=Usage(cost_usd=1.25))).none(c.ShowAgent)
    see(book, root, replace(sub, status="finished", usage=Usage(cost_usd=1.75)))
    assert (ended := book.agent(ended.agent_id)).usage.cost_usd == 1.75, "its last answer was priced after it had finished"
    assert not ended.state.is_live and book.state.tree_usage[ended.root_id].cost_usd >= 1.75
    book = see(Playbook(), root, replace(sub, status="finished"))
    assert len(book.state.agents) == 1


def test_a_parent_seen_later_takes_its_child_and_what_that_spent() -> None:
    child = say("codex", "c", usage=Usage(cost_usd=1.0), unlinked="its parent is not open")
    book = see(Playbook(), child)
    (alone,) = live(book)
    assert book.state.seen[AgentId(alone)].unlinked
    see(book, say("codex", "p", pid=8), replace(child, parent_key="p", unlinked=""))
    found = book.agent(alone)
    assert found.depth == 2 and book.state.tree_usage[found.root_id].cost_usd == 1.0


def test_parts_of_a_program_take_no_childs_place() -> None:
    book = Playbook(max_children=1).run("a")
    session = say("claude_code", pid=99, agent_id="a")
    see(book, session, *(replace(session, key=f"k-{n}", process=None, parent_key="k") for n in range(5)))
    book.launch("b", parent_id=AgentId("a")) << c.StartAgent
    book.launch("d", parent_id=AgentId("a")) << c.RefuseLaunch


def test_a_source_that_cannot_look_joins_nothing() -> None:
    reports = (SourceReport("codex", False, "no", (say("codex"),)),)
    assert joined(Playbook().state, reports) == ([], [])


def test_an_agent_that_says_itself_what_all_its_parts_used_is_charged_once() -> None:
    book = Playbook().run("a")
    book.spend("a", cost_usd=1.5)  # its stream told of every answer, its sub-agent's too
    session = say("claude_code", pid=99, agent_id="a", usage=Usage(cost_usd=1.0))
    sub = replace(session, key="k-1", process=None, parent_key="k", usage=Usage(cost_usd=0.5))
    see(book, session, sub)
    assert book.agent("a").usage.cost_usd == book.state.tree_usage[AgentId("a")].cost_usd == 1.5
    see(book, session, replace(sub, usage=Usage(cost_usd=0.75)))
    assert book.agent("a").usage.cost_usd == book.state.tree_usage[AgentId("a")].cost_usd == 1.75
    (part,) = [x for x in book.state.agents.values() if x.parent_id == "a"]
    assert part.usage.cost_usd == book.state.tree_usage[part.agent_id].cost_usd == 0.75


def test_of_a_conversation_transcripts_count_what_its_stream_has_not_told_in_a_while_and_nothing_twice() -> None:
    book = Playbook().run("a", argv=command_line(Program.CLAUDE_CODE, "p", "/usr/bin/claude", (), talks=True))
    session = say("claude_code", pid=99, agent_id="a", usage=Usage(cost_usd=1.0))
    see(book, session)
    assert book.agent("a").usage.cost_usd == 0.0  # the transcript was first: its stream will tell
    book.spend("a", cost_usd=1.0)
    for cost in (2.0, 2.0, 2.0):
        see(book.later(6), replace(session, usage=Usage(cost_usd=cost)))
    for _ in range(4):  # a stream that is not heard any more
        see(book.later(6), replace(session, usage=Usage(cost_usd=2.0)))
    assert book.agent("a").usage.cost_usd == 2.0


def test_telemetry_joins_by_session_alone_never_a_part_of_one_and_never_lends_a_process() -> None:
    state = EngineState()
    part = Sighting("claude_code", "p", "n", None, "s", "", 0.0, parent_key="k", part="sub")
    top = Sighting("claude_code", "k", "n", ProcessIdentity(7, 1), "s", "", 0.0)
    told = Sighting("otlp", "s", "n", ProcessIdentity(7, 1), "s", "", 0.0, container_id="c", agent_id="nobody")
    other = Sighting("otlp", "t", "n", None, "t", "", 0.0)
    rows, _ = joined(state, (SourceReport("claude_code", True, "", (part, top)), SourceReport("otlp", True, "", (told, other))))
    assert sorted(row.sources for row in rows) == [("claude_code",), ("claude_code", "otlp"), ("otlp",)]
    assert next(row for row in rows if len(row.sources) == 2).first is top
    state.linked_sessions["t"] = None
    assert [row.sources for row in joined(state, (SourceReport("otlp", True, "", (other,)),))[0]] == []


def test_a_container_of_ours_that_the_engine_lists_makes_no_row_and_one_with_our_label_that_is_nobodys_does() -> None:
    book = Playbook().run("a")
    book.state.put(replace(book.agent("a"), container_id=BOX))
    ours, forged = say("docker", BOX, container_id=BOX), say("docker", "cd" * 32, 9, container_id="cd" * 32)
    see(book, ours).none(c.ShowAgent)
    assert live(book) == ["a"] and book.state.seen == {}
    see(book, ours, forged)
    assert len(live(book)) == 2
