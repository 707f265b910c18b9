"""A restart refills no budget, frees no call, and forgets no time."""

from __future__ import annotations

from dataclasses import replace

from console.domain.agent import Agent, AgentId, ContextId
from console.domain.budget import Day, KeptBudget, Limits, Reservation, Usage
from console.domain.engine import command as c
from console.domain.engine import event as e
from console.domain.ids import ControlLevel
from tests.fakes.playbook import Playbook


def agents() -> tuple[Agent, ...]:
    book = Playbook().run("r", context_id=ContextId("s")).run("c", parent_id=AgentId("r"), limits=Limits(tokens=100))
    book.spend("r", tokens=10)
    book.spend("c", tokens=30)
    return book.agent("r"), book.agent("c")


def restored(kept: KeptBudget, boot: float = 500.0, at: float = 5.0) -> Playbook:
    book, known = Playbook(), agents()
    book.at, book.boot = at, boot
    return book >> e.Restored(at, boot, known, frozenset(a.agent_id for a in known), {}, False, "", budget=kept)


def test_without_anything_kept_the_agents_own_sums_hold_at_every_node() -> None:
    book = restored(KeptBudget(boot_id="b"))
    assert {k: v.tokens for k, v in book.state.tree_usage.items()} == {"r": 40, "c": 30}
    assert book.state.budget.spent[("session", "s")].tokens == 40


def test_what_was_kept_holds_where_it_is_more() -> None:
    kept = KeptBudget(boot_id="b", usage={("tree", "r"): (Usage(tokens=900), 1.0, "b"), ("session", "s"): (Usage(tokens=5), 1.0, "b")})
    book = restored(kept)
    assert book.state.tree_usage[AgentId("r")].tokens == 900, "members that are not known any more stay counted"
    assert book.state.budget.spent[("session", "s")].tokens == 40


def test_time_that_passed_while_nobody_looked_counts_for_what_ran_on() -> None:
    usage = {("session", "s"): (Usage(wall_s=100.0), 400.0, "b"), ("session", "gone"): (Usage(wall_s=100.0), 400.0, "b")}
    book = restored(KeptBudget(boot_id="b", usage=usage))
    assert book.state.budget.spent[("session", "s")].wall_s == 200.0
    assert book.state.budget.spent[("session", "gone")].wall_s == 100.0
    assert restored(KeptBudget(boot_id="b2", usage=usage)).state.budget.spent[("session", "s")].wall_s == 100.0
    book.tick(1.0)
    assert book.state.budget.spent[("session", "s")].wall_s == 201.0


def test_what_was_set_aside_still_is_and_of_another_boot_is_counted_in_full() -> None:
    held = (Reservation("r1", "c", Usage(tokens=20), 1000.0), "b"), (Reservation("r2", "c", Usage(tokens=5), 1000.0), "older")
    book = restored(KeptBudget(boot_id="b", reservations=held))
    assert book.state.budget.held[("tree", "r")].tokens == 25
    book.tick(1.0)
    assert book.state.budget.held[("tree", "r")].tokens == 20 and book.agent("c").usage.tokens == 35


def test_the_day_that_was_open_is_the_day_and_what_was_warned_of_stays_said() -> None:
    kept = KeptBudget(
        boot_id="b",
        day=Day("1970-01-09", 1e9, "b", 1.5),
        limits={("session", "s"): Limits(tokens=50)},
        warned={("session", "s", "tokens"): 75},
        today_usd=2.0,
    )
    book = restored(kept)
    assert book.state.budget.spent[("day", "1970-01-09")].cost_usd == 3.5, "the clock says an earlier day: it goes on"
    book.spend("c", tokens=1)
    assert not [r for r in book.all(c.Record) if r.kind == "budget.warned"]
    assert (book.spend("c", tokens=9) << c.HaltAgents).reason == "session limit tokens: 50 of 50 (s)"


def test_who_was_over_when_the_supervisor_died_is_halted_at_the_first_look() -> None:
    known = agents()
    over = replace(known[1], usage=replace(known[1].usage, tokens=100))
    book = Playbook()
    book >> e.Restored(5.0, 500.0, (known[0], over), frozenset({AgentId("r"), AgentId("c")}), {}, False, "", budget=KeptBudget(boot_id="b"))
    assert set((book.tick(1.0) << c.HaltAgents).agent_ids) == {"c"}


def test_what_telemetry_alone_told_is_charged_to_nobody_after_a_restart_either() -> None:
    told = replace(agents()[0], source="otlp")
    book = Playbook() >> e.Restored(5.0, 500.0, (told,), frozenset(), {}, False, "", budget=KeptBudget(boot_id="b"))
    assert told.usage.tokens and not any(usage.tokens for usage in book.state.budget.spent.values())


def test_what_was_seen_inside_another_is_not_counted_twice_by_a_restart() -> None:
    """Its own row says what it used, and so does that of the agent in whose processes it ran."""
    root = Playbook().run("r", context_id=ContextId("s")).agent("r")
    held = replace(root, control_level=ControlLevel.ADOPTED, usage=Usage(tokens=50), project="p")
    part = replace(
        held, agent_id=AgentId("o-1"), parent_id=AgentId("r"), depth=2, control_level=ControlLevel.OBSERVED, usage=Usage(tokens=20)
    )
    alone = replace(part, agent_id=AgentId("o-2"), root_id=AgentId("o-2"), parent_id=None, depth=1, context_id=ContextId("o"))
    sums = {("tree", "r"): 50, ("session", "s"): 50, ("project", "p"): 50}
    kept = KeptBudget(boot_id="b", usage={node: (Usage(tokens=n), 1.0, "b") for node, n in sums.items()})
    book = Playbook()
    book >> e.Restored(5.0, 500.0, (held, part, alone), frozenset({AgentId("r")}), {}, False, "", budget=kept)
    spent = book.state.budget.spent
    assert (book.state.tree_usage[AgentId("r")].tokens, spent[("session", "s")].tokens, spent[("project", "p")].tokens) == (50, 50, 50)
    assert book.state.tree_usage[AgentId("o-2")].tokens == 20, "of what was not kept the agents tell"
