"""Whoever is joined by spawns and sessions is one: what one of them did forbids it to all, for good, and to nobody else.

The machine plays agents, sessions, calls, disks that refuse and restarts against an oracle that keeps nothing but the list of what was
allowed, and asks it each time from the beginning.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from console.domain.agent import AgentId, ContextId
from console.domain.calls.approval import ApprovalScope
from console.domain.calls.lineage import Mark, Match, Seen
from console.domain.calls.permission import Decision, PermissionRequest, Verdict
from console.domain.engine import command as c
from console.domain.engine import event as e
from console.domain.network import NetworkMode, Sensitivity
from console.enforcement.lineages import Lineages, nodes_of, words_of
from tests.fakes.playbook import Playbook

ALLOW, ASK = Decision(Verdict.ALLOW, "r", "w"), Decision(Verdict.ASK, "r", "w")
READ = PermissionRequest("read_file", ".env")


def step(at: int, tighten: str = "", value: str = "", pattern: str = "p", steps: int = 2) -> Match:
    names = tuple(f"step {n}" for n in range(steps))
    return Match(pattern, "it is forbidden", names, bool(value), (Seen(at, 0, (value,) if value else ()),), tighten, "the call")


def judged(book: Playbook, agent: str, *matches: Match, request_id: str = "r", decision: Decision = ALLOW) -> Playbook:
    return book >> e.CallJudged(book.at, book.boot, AgentId(agent), request_id, READ, decision, (), matches)


def kept(book: Playbook, why_not: str = "") -> Playbook:
    command = book << c.KeepMarks
    whole = (command.agent_id, command.request_id, command.request, command.decision, command.marks, why_not)
    return book >> e.MarksKept(book.at, book.boot, *whole)


def answer(book: Playbook) -> Decision:
    found: Decision = (book << c.AnswerPermission).decision
    return found


def tainted(agent: str = "a", tighten: str = "") -> Playbook:
    """``agent`` has taken the first step."""
    book = Playbook().run(agent, context_id=ContextId("c1"))
    kept(judged(book, agent, step(0, tighten)))
    assert answer(book).verdict is Verdict.ALLOW
    return book


def test_a_step_is_answered_only_once_it_is_on_disk_and_counts_at_once() -> None:
    book = Playbook().run("a")
    judged(book, "a", step(0), request_id="r1")
    first = book << c.KeepMarks
    book.none(c.AnswerPermission)
    assert answer(judged(book, "a", step(1), request_id="r2")).verdict is Verdict.DENY, "before the disk has answered"
    judged(book, "a", step(0), request_id="r3")
    assert (book << c.KeepMarks).marks, "nor is the same step answered before it is on disk"
    book >> e.MarksKept(book.at, book.boot, AgentId("a"), "r1", READ, ALLOW, first.marks)
    assert answer(book).verdict is Verdict.ALLOW
    assert answer(judged(book, "a", step(0), request_id="r4")).verdict is Verdict.ALLOW, "and now it is"


@pytest.mark.parametrize("tainted_first", [True, False])
def test_who_is_joined_later_brings_what_it_did_however_large_the_other_is(*, tainted_first: bool) -> None:
    known, key = Lineages(), ("p", "step 0", "")
    mark = Mark("p", "step 0", "", "a", "1", "a", 1.0, "the call")
    large = ("tree:b", "session:2", "session:3")
    if not tainted_first:
        known.join(large)
    small = known.join(("tree:a", "session:1"))
    small.marks[key] = mark
    small.kept.add(key)
    known.join(large)
    one = known.join(("tree:b", "session:1"))
    assert one.marks == {key: mark} and one.kept == {key}
    assert all(known.of_node[node] is one for node in ("tree:a", "session:1", *large))


def test_a_disk_that_refuses_denies_and_the_step_counts_all_the_same() -> None:
    book = Playbook().run("a")
    kept(judged(book, "a", step(0)), "the disk is full")
    assert answer(book) == Decision(Verdict.DENY, "sequence", "the disk is full")
    assert answer(judged(book, "a", step(1))).rule == "sequence p"


def test_the_denial_names_pattern_steps_and_who_made_them() -> None:
    found = answer(judged(tainted(), "a", step(1)))
    assert found.rule == "sequence p" and found.reason.startswith("it is forbidden: step 1 after p: a step 0 at 1970-01-01")
    assert "the call" in found.reason


@pytest.mark.parametrize("decision", [ALLOW, ASK])
def test_nobody_is_asked_to_approve_it(decision: Decision) -> None:
    book = judged(tainted(), "a", step(1), decision=decision)
    assert answer(book).verdict is Verdict.DENY
    book.none(c.KeepApproval)


def test_what_was_approved_before_the_first_step_is_denied_after_it() -> None:
    book = Playbook().run("a")
    judged(book, "a", step(1), request_id="r1", decision=ASK)
    approval = (book << c.KeepApproval).approval
    book >> e.ApprovalKept(book.at, book.boot, approval.approval_id)
    kept(judged(book, "a", step(0), request_id="r2"))
    book >> e.ApprovalDecided(book.at, book.boot, approval.approval_id, approval.digest, True, ApprovalScope.ONCE, "operator:0")
    use = book << c.UseApproval
    book >> e.ApprovalUsed(book.at, book.boot, AgentId("a"), approval.approval_id, use.request_id, True)
    assert answer(book).rule == "sequence p"


def test_children_siblings_and_whoever_shares_the_session_are_one_and_others_are_not() -> None:
    book = tainted()
    book.run("child", parent_id=AgentId("a"), context_id=ContextId("c2"))
    book.run("grandchild", parent_id=AgentId("child"), context_id=ContextId("c3"))
    book.run("again", context_id=ContextId("c1"))
    book.run("guest of the child", context_id=ContextId("c2"))
    book.run("stranger", context_id=ContextId("c9"))
    for agent in ("child", "grandchild", "again", "guest of the child"):
        assert answer(judged(book, agent, step(1))).verdict is Verdict.DENY, agent
    assert answer(judged(book, "stranger", step(1))).verdict is Verdict.ALLOW
    assert words_of(book.state.lineages, book.agent("grandchild")) and not words_of(book.state.lineages, book.agent("stranger"))


def test_a_bridge_that_has_ended_still_joins() -> None:
    book = tainted()
    book.run("bridge", context_id=ContextId("c1"))
    book.run("far", parent_id=AgentId("bridge"), context_id=ContextId("c5"))
    book >> e.AgentExited(book.at, book.boot, AgentId("bridge"), 0)
    assert answer(judged(book, "far", step(1))).verdict is Verdict.DENY


def test_a_proxied_session_loses_its_network_and_one_that_is_not_keeps_it() -> None:
    book = Playbook().run("a", context_id=ContextId("c1"), network_mode=NetworkMode.PROXIED)
    book.run("b", parent_id=AgentId("a"), context_id=ContextId("c2"))
    judged(book, "a", step(0, "NONE if PROXIED"))
    command = book << c.KeepMarks
    assert set(command.contexts) == {"c1", "c2"}
    book >> e.Tightened(book.at, book.boot, None, command.contexts, Sensitivity.PUBLIC, NetworkMode.NONE, "p")
    assert {x.agent_id for x in book.all(c.SwitchNetwork)} == {"a", "b"}
    book >> e.MarksKept(book.at, book.boot, AgentId("a"), "r", READ, ALLOW, command.marks)
    assert answer(book).verdict is Verdict.ALLOW
    free = Playbook().run("a")
    assert (judged(free, "a", step(0, "NONE if PROXIED")) << c.KeepMarks).contexts == ()
    held = Playbook().run("a")
    assert (judged(held, "a", step(0, "NONE")) << c.KeepMarks).contexts == (held.agent("a").context_id,)


def test_a_session_that_joins_later_loses_its_network_with_its_next_call() -> None:
    book = tainted(tighten="NONE if PROXIED")
    book.run("late", parent_id=AgentId("a"), context_id=ContextId("c7"), network_mode=NetworkMode.PROXIED)
    assert (judged(book, "late") << c.KeepMarks).contexts == ("c7",)


def test_a_row_of_an_agent_names_a_few_steps_however_many_there_are() -> None:
    book = tainted()
    for number in range(20):
        kept(judged(book, "a", step(0, value=f"t{number}", pattern="t")))
    words = words_of(book.state.lineages, book.agent("a"))
    assert len(words) == 5 and words[-1] == "and 17 more"


def test_those_that_are_only_seen_are_joined_by_their_folder() -> None:
    assert nodes_of("r", "s", "/home/u/project")[2] == "folder:/home/u/project"
    assert len(nodes_of("r", "s", "")) == len(nodes_of("r", "s", "/")) == 2


def test_nothing_is_remembered_of_calls_that_were_answered_or_left() -> None:
    book = tainted()
    judged(book, "a", step(1))
    judged(book, "a", step(0), decision=ASK, request_id="r7")
    assert set(book.state.lineages.matches) == {"r7"}
    book >> e.AskerLeft(book.at, book.boot, "r7")
    assert not book.state.lineages.matches


# --- the machine

PATTERNS = {"p": (2, False), "q": (3, False), "t": (2, True)}
AGENTS = st.integers(0, 7)


class Sequences(RuleBasedStateMachine):
    """Agents come, go, share, call; the supervisor restarts; the oracle remembers every allowed call."""

    @initialize()
    def begin(self) -> None:
        self.book = Playbook(max_depth=50, max_children=50)
        self.people: list[tuple[str, str, str]] = []  # agent, root, session
        # agent, pattern, step, value: allowed, or tried where the disk refused, once the steps before it were there
        self.done: list[tuple[str, str, int, str]] = []
        self.disk: list[Mark] = []
        self.number = 0
        self.birth(0, 0, True)

    @rule(parent=AGENTS, session=st.integers(0, 5), root=st.booleans())
    def birth(self, parent: int, session: int, root: bool) -> None:
        if len(self.people) >= 8:
            return
        name = f"a{len(self.people)}"
        above = None if root or not self.people else self.people[parent % len(self.people)]
        fields: dict[str, Any] = {} if above is None else {"parent_id": AgentId(above[0])}
        self.book.run(name, context_id=ContextId(f"c{session}"), **fields)
        self.people.append((name, above[1] if above else name, f"c{session}"))

    @rule(
        who=AGENTS, pattern=st.sampled_from(sorted(PATTERNS)), at=st.integers(0, 2), value=st.sampled_from(["u", "v"]), full=st.booleans()
    )
    def call(self, who: int, pattern: str, at: int, value: str, full: bool) -> None:
        name = self.people[who % len(self.people)][0]
        length, same = PATTERNS[pattern]
        at, value = at % length, value if same else ""
        self.number += 1
        judged(self.book, name, step(at, value=value, pattern=pattern, steps=length), request_id=f"r{self.number}")
        expected, follows = self.forbidden(name, pattern, at, value), self.follows(name, pattern, at, value)
        if self.book.all(c.KeepMarks):
            assert follows and not expected
            self.disk += () if full else (self.book << c.KeepMarks).marks
            self.refused |= full
            kept(self.book, "full" if full else "")
            assert answer(self.book).verdict is (Verdict.DENY if full else Verdict.ALLOW)
        else:
            assert (answer(self.book).verdict is Verdict.DENY) == expected, (name, pattern, at, value, self.done, self.people)
        if follows and not expected:
            self.done.append((name, pattern, at, value))

    refused = False

    @rule()
    def restart(self) -> None:
        if self.refused:
            return  # what no disk took was denied, and is gone with the process
        book = Playbook(max_depth=50, max_children=50)
        links = tuple(nodes_of(root, session, "") for _, root, session in self.people)
        book >> e.LineagesRestored(book.at, book.boot, tuple(self.disk), links)
        everybody = tuple(self.book.state.agents.values())
        back = everybody[-3:]  # the others ended long ago, and are not read back
        book >> e.Restored(book.at, book.boot, back, frozenset(a.agent_id for a in back), {}, False, "")
        for agent in everybody[:-3]:
            book.state.put(agent)  # it is asked again below, which the engine answers to those it knows alone
        self.book = book

    def forbidden(self, name: str, pattern: str, at: int, value: str) -> bool:
        """Whether it is the last step, and kin of this agent have taken the one before it (and so all before that)."""
        return at == PATTERNS[pattern][0] - 1 and self.follows(name, pattern, at, value)

    def follows(self, name: str, pattern: str, at: int, value: str) -> bool:
        kin = self.kin(name)
        return at == 0 or any((who in kin, *rest) == (True, pattern, at - 1, value) for who, *rest in self.done)

    def kin(self, name: str) -> set[str]:
        found = {name}
        while True:
            roots = {root for who, root, _ in self.people if who in found}
            sessions = {session for who, _, session in self.people if who in found}
            more = {who for who, root, session in self.people if root in roots or session in sessions}
            if more == found:
                return found
            found = more

    @invariant()
    def nothing_waits(self) -> None:
        assert not self.book.state.lineages.matches


TestSequences = Sequences.TestCase
TestSequences.settings = settings(max_examples=60, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck))
