"""Budgets against an oracle: a list of what happened, added up anew each time, knows nothing of how the engine keeps its sums."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from console.domain.agent import AgentId, ContextId
from console.domain.budget import Limits, Reservation, Usage
from console.domain.engine import command as c
from console.domain.engine import event as e
from tests.fakes.playbook import Playbook

CENTS = st.integers(0, 60)
CAPS = st.none() | st.integers(0, 300)


@dataclass
class Oracle:
    """Cents and calls, exact."""

    parent: dict[str, str | None] = field(default_factory=dict)
    session: dict[str, str] = field(default_factory=dict)
    spent: list[tuple[str, int, int]] = field(default_factory=list)
    held: dict[str, tuple[str, int, int, float]] = field(default_factory=dict)
    caps: dict[tuple[str, str], tuple[int | None, int | None]] = field(default_factory=dict)
    halted: set[str] = field(default_factory=set)

    def above(self, agent: str) -> list[str]:
        return [agent, *(self.above(up) if (up := self.parent[agent]) else [])]

    def payers(self, agent: str) -> set[tuple[str, str]]:
        return {("agent", agent), ("session", self.session[agent]), ("day", "1970-01-01"), *(("tree", a) for a in self.above(agent))}

    def used(self, node: tuple[str, str]) -> tuple[int, int]:
        rows = [(cents, calls) for who, cents, calls in self.spent if node in self.payers(who)]
        return sum(x for x, _ in rows), sum(y for _, y in rows)

    def aside(self, node: tuple[str, str]) -> tuple[int, int]:
        rows = [(cents, calls) for who, cents, calls, _ in self.held.values() if node in self.payers(who)]
        return sum(x for x, _ in rows), sum(y for _, y in rows)

    def is_full(self, node: tuple[str, str]) -> bool:
        caps = self.caps.get((node[0], "") if node[0] == "day" else node, (None, None))
        return any(cap is not None and used >= cap for cap, used in zip(caps, self.used(node), strict=True))

    def fits(self, agent: str, cents: int, calls: int) -> bool:
        for node in self.payers(agent):
            caps = self.caps.get((node[0], "") if node[0] == "day" else node, (None, None))
            for cap, used, aside, more in zip(caps, self.used(node), self.aside(node), (cents, calls), strict=True):
                if cap is not None and more and used + aside + more > cap:
                    return False
            if self.is_full(node):
                return False
        return True

    def look(self, agents: set[str]) -> None:
        """Whoever is in a node that is full, of those whose payers were touched."""
        for node in {n for a in agents for n in self.payers(a)}:
            if self.is_full(node):
                inside = {a for a in self.parent if node in ({("agent", a)} | self.payers(a)) and node[0] != "agent"} | {node[1]} & set(
                    self.parent
                )
                inside = {a for a in self.parent if any(up in inside for up in self.above(a))}
                self.halted |= inside


def cents_and_calls(usage: Usage) -> tuple[int, int]:
    cents = Fraction(round(usage.cost_usd * 100, 6))
    assert cents.denominator == 1
    return int(cents), usage.tool_calls


class Budgets(RuleBasedStateMachine):
    @initialize()
    def begin(self) -> None:
        self.book, self.oracle, self.count = Playbook(max_depth=4, max_children=50), Oracle(), 0
        self.book.at = 5.0

    def live(self) -> list[str]:
        return [a for a in self.oracle.parent if a not in self.oracle.halted]

    def pick(self, number: int) -> str:
        live = self.live()
        return live[number % len(live)]

    @rule(cents=CAPS, calls=CAPS, session=st.sampled_from(["s1", "s2"]))
    def root(self, cents: int | None, calls: int | None, session: str) -> None:
        self.launch(None, session, cents, calls)

    @precondition(lambda self: self.live())
    @rule(number=st.integers(0, 99), cents=CAPS, calls=CAPS)
    def spawn(self, number: int, cents: int | None, calls: int | None) -> None:
        parent = self.pick(number)
        if len(self.oracle.above(parent)) < 4:
            self.launch(parent, self.oracle.session[parent], cents, calls)

    def launch(self, parent: str | None, session: str, cents: int | None, calls: int | None) -> None:
        self.count += 1
        agent, oracle = f"a{self.count}", self.oracle
        limits = Limits(cost_usd=None if cents is None else cents / 100, tool_calls=calls)
        fields: dict[str, Any] = {"limits": limits, "context_id": ContextId(session)}
        closed = [("session", session), ("day", "1970-01-01"), *(("tree", a) for a in (oracle.above(parent) if parent else []))]
        self.book.launch(agent, parent_id=AgentId(parent) if parent else None, **fields)
        refused = self.book.all(c.RefuseLaunch)
        assert bool(refused) == any(oracle.is_full(node) for node in closed)
        if refused:
            return
        from console.domain.agent import ProcessIdentity
        from console.domain.ids import ControlLevel

        self.book >> e.LaunchConfirmed(5.0, self.book.boot, AgentId(agent), ProcessIdentity(7, 7), "", ControlLevel.MANAGED, True, "")
        oracle.parent[agent], oracle.session[agent] = parent, session
        oracle.caps[("agent", agent)] = oracle.caps[("tree", agent)] = (cents, calls)

    @precondition(lambda self: self.live())
    @rule(number=st.integers(0, 99), cents=CENTS, calls=st.integers(0, 40))
    def report(self, number: int, cents: int, calls: int) -> None:
        agent = self.pick(number)
        self.book.spend(agent, cost_usd=cents / 100, tool_calls=calls)
        self.oracle.spent.append((agent, cents, calls))
        self.oracle.look({agent})

    @precondition(lambda self: self.live())
    @rule(number=st.integers(0, 99), cents=CENTS, calls=st.integers(1, 40), ttl=st.integers(1, 50))
    def reserve(self, number: int, cents: int, calls: int, ttl: int) -> None:
        agent = self.pick(number)
        self.count += 1
        name, boot = f"r{self.count}", self.book.boot
        estimate = Usage(cost_usd=cents / 100, tool_calls=calls)
        fits = self.oracle.fits(agent, cents, calls)
        self.book >> e.ReservationAsked(5.0, boot, Reservation(name, agent, estimate, boot + ttl))
        assert (self.book << c.AnswerReservation).error is None if fits else (self.book << c.AnswerReservation).error is not None
        if fits:
            self.oracle.held[name] = (agent, cents, calls, boot + ttl)

    @precondition(lambda self: self.oracle.held)
    @rule(number=st.integers(0, 99), cents=CENTS, calls=st.integers(0, 40))
    def settle(self, number: int, cents: int, calls: int) -> None:
        name = sorted(self.oracle.held)[number % len(self.oracle.held)]
        agent, *_ = self.oracle.held[name]
        self.book >> e.ReservationSettled(5.0, self.book.boot, name, Usage(cost_usd=cents / 100, tool_calls=calls))
        del self.oracle.held[name]
        books = self.book.all(c.KeepBooks)
        assert books[0].held == {name: None} and books[0].agents[0].agent_id == agent, "one transaction"
        self.oracle.spent.append((agent, cents, calls))
        self.oracle.look({agent})

    @rule(seconds=st.integers(1, 60))
    def time_passes(self, seconds: int) -> None:
        self.book.boot += seconds
        self.book >> e.ClockTicked(5.0, self.book.boot)
        for name, (agent, cents, calls, expires) in list(self.oracle.held.items()):
            if self.book.boot >= expires:
                del self.oracle.held[name]
                self.oracle.spent.append((agent, cents, calls))
        self.oracle.look(set(self.live()))

    @precondition(lambda self: self.live())
    @rule(number=st.integers(0, 99), scope=st.sampled_from(["agent", "tree", "session", "day"]), cents=CAPS, calls=CAPS)
    def limits(self, number: int, scope: str, cents: int | None, calls: int | None) -> None:
        agent = self.pick(number)
        key = {"agent": agent, "tree": agent, "session": self.oracle.session[agent], "day": ""}[scope]
        limits = Limits(cost_usd=None if cents is None else cents / 100, tool_calls=calls)
        self.book >> e.LimitsChanged(5.0, self.book.boot, scope, key, limits, "operator:0", "because")
        self.oracle.caps[(scope, key)] = (cents, calls)
        node = (scope, key or "1970-01-01")
        inside = {a for a in self.live() if node in self.oracle.payers(a) or agent in self.oracle.above(a) and scope == "agent"}
        self.oracle.look(inside)

    def kept(self, node: tuple[str, str]) -> Usage:
        scope, key = node
        if scope == "agent":
            return self.book.state.agents[AgentId(key)].usage
        return self.book.state.tree_usage[AgentId(key)] if scope == "tree" else self.book.state.budget.spent.get(node, Usage())

    @invariant()
    def the_sums_are_those_of_the_list(self) -> None:
        state = self.book.state
        for agent in self.oracle.parent:
            for node in self.oracle.payers(agent):
                usage = self.kept(node)
                assert cents_and_calls(usage) == self.oracle.used(node), node
                held = state.budget.held.get(node, Usage())
                assert cents_and_calls(held) == self.oracle.aside(node), node

    @invariant()
    def exactly_those_are_halted_whose_budget_is_used_up(self) -> None:
        assert {str(i) for i in self.book.state.halting} == self.oracle.halted


TestBudgets = Budgets.TestCase
TestBudgets.settings = settings(max_examples=60, stateful_step_count=30, deadline=None, derandomize=True)
