"""The Budgets page: what ends first, who spends it, and nothing claimed that is not known."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from console.domain.agent import AgentId, AgentState, ContextId, ProcessIdentity, Sighting, SourceReport
from console.domain.budget import Limits
from console.domain.conversation import Program, command_line
from console.domain.engine import command as c
from console.domain.engine import event as e
from console.domain.ids import ControlLevel
from console.enforcement.limiting import OBSERVED
from console.services.budgets.burn_rate import BurnBook
from console.services.budgets.gauges import level_of
from console.services.budgets.views import Snapshot
from console.services.fleet.meters import Meters
from console.services.fleet.views import agent_fields
from tests.fakes.playbook import Playbook

NOON = time.mktime((2026, 11, 22, 12, 0, 0, 0, 0, -1))


def world() -> tuple[Playbook, BurnBook]:
    book = Playbook()
    book.at, book.boot = NOON, 100_000.0
    return book, BurnBook(90_000.0)


def spend(book: Playbook, burn: BurnBook, agent: str, **used: float) -> None:
    book.spend(agent, **used)
    for charged in book.all(c.Charged):
        burn.add(charged.nodes, charged.spent, charged.boot_s)


def page(book: Playbook, burn: BurnBook, spent_today: float = 0.0) -> Snapshot:
    return Snapshot.of(book.state, burn, book.at, book.boot, spent_today)


def test_trees_stand_by_what_ends_first_in_them_and_below_each_those_that_end_before_it() -> None:
    book, burn = world()
    book.run("calm", tree_limits=Limits(cost_usd=1000.0)).run("hot", tree_limits=Limits(cost_usd=100.0))
    book.run("kid", parent_id=AgentId("hot"), limits=Limits(cost_usd=1.2)).run("free", parent_id=AgentId("hot"))
    for _ in range(60):
        spend(book, burn, "calm", cost_usd=0.1)
        spend(book, burn, "kid", cost_usd=0.01)
        spend(book, burn, "free", cost_usd=0.09)
        book.later(60.0)
    trees = page(book, burn).trees()
    assert [t.tree.key for t in trees] == ["hot", "calm"]
    assert [r.key for r in trees[0].first] == ["kid"] and trees[1].first == []
    kid, hot = trees[0].first[0], trees[0].tree
    assert kid.first_limit == "cost_usd" and kid.ends_in_s is not None and 3400 < kid.ends_in_s < 3800
    assert hot.ends_in_s is not None and hot.ends_in_s > 10 * kid.ends_in_s and (hot.spent_usd, hot.cap_usd, hot.agents) == (6.0, 100.0, 3)
    assert hot.burn_usd_per_h is not None and 5.5 < hot.burn_usd_per_h < 6.5 and len(hot.burn_60) == 60


def test_without_data_nothing_is_known_and_nothing_ends() -> None:
    book, burn = world()
    book.run("a", limits=Limits(cost_usd=1.0)).run("b")
    rows = {t.tree.key: t.tree for t in page(book, burn).trees()}
    assert (rows["a"].ends_in_s, rows["a"].burn_usd_per_h) == (None, None) and rows["a"].why == "not measured: it has reported no cost yet"
    assert rows["a"].unpriced and rows["b"].unpriced, "nothing read is shown as unknown, never as $0.00"
    assert (rows["b"].ends_in_s, rows["b"].why, rows["b"].level) == (None, "no limit is set", "within")
    book.spend("a", tokens=5)
    known = next(t.tree for t in page(book, burn).trees() if t.tree.key == "a")
    assert not known.unpriced and known.why.startswith("unknown"), "a report without a cost is a measurement"


@pytest.mark.parametrize(
    ("source", "unread", "is_known"), [("processes", "", False), ("codex", "it lies elsewhere", False), ("codex", "", True)]
)
def test_a_tree_is_unknown_where_the_fleet_says_that_its_spend_is_unknown(source: str, unread: str, is_known: bool) -> None:
    book, burn = world()
    seen = Sighting(source, "7-1", "Claude Code", ProcessIdentity(7, 1), "s", "/w", book.at, unread=unread)
    book >> e.Sighted(book.at, book.boot, (SourceReport(source, True, "", (seen,)),))
    (tree,) = page(book, burn).trees()
    (agent,) = book.state.agents.values()
    fleet = agent_fields(agent, book.state, Meters(), book.at)
    assert tree.tree.unpriced is (fleet["cost_usd"] is None) is not is_known


@pytest.mark.parametrize(("argv", "is_known"), [(command_line(Program.GEMINI, "hi", "/g", (), talks=True), True), (("gemini",), False)])
def test_what_a_started_program_tells_itself_is_known_though_no_file_of_it_can_be_read(argv: tuple[str, ...], is_known: bool) -> None:
    book, burn = world()
    book.run("a", argv=argv).spend("a", cost_usd=0.07, tokens=5)
    seen = Sighting("gemini", "7-1", "Gemini CLI", ProcessIdentity(7, 1), "", "/w", book.at, unread="it lies elsewhere", agent_id="a")
    book >> e.Sighted(book.at, book.boot, (SourceReport("gemini", True, "", (seen,)),))
    (tree,) = page(book, burn).trees()
    assert tree.tree.spent_usd == 0.07 and tree.tree.unpriced is not is_known


def test_wall_time_ends_by_itself_and_a_tree_that_ended_ends_nothing() -> None:
    book, burn = world()
    book.run("a", limits=Limits(wall_s=3600.0)).run("done", limits=Limits(wall_s=3600.0))
    book >> e.AgentExited(book.at, book.boot, AgentId("done"), 0)
    book.tick(600.0)
    trees = page(book, burn).trees()
    assert trees[0].tree.ends_in_s == 3000.0 and trees[0].tree.first_limit == "wall_s"
    assert trees[1].tree.done and trees[1].tree.ends_in_s is None


def test_who_is_only_seen_is_metered_after_the_fact_and_cannot_be_stopped_and_who_was_halted_says_why() -> None:
    book, burn = world()
    book.run("o").run("h", limits=Limits(cost_usd=1.0))
    book.state.put(replace(book.agent("o"), control_level=ControlLevel.OBSERVED))
    spend(book, burn, "h", cost_usd=1.0)
    rows = {t.tree.key: t.tree for t in page(book, burn).trees()}
    assert (rows["o"].metered, rows["o"].note) == ("after the fact", OBSERVED)
    assert rows["h"].level == "over" and rows["h"].note == "agent limit cost_usd: 1 of 1" and rows["h"].metered == "reported"


def test_by_how_much_a_cap_was_passed_is_shown_once_the_end_is_proven() -> None:
    book, burn = world()
    book.run("a", limits=Limits(cost_usd=1.0))
    spend(book, burn, "a", cost_usd=1.25)
    halt = book.agent("a").halt
    assert halt is not None and page(book, burn).agent_row(book.agent("a")).overshoot is None
    book.state.put(replace(book.agent("a"), halt=replace(halt, used_at_end=1.4)))
    row = page(book, burn).tree_row(book.agent("a"))
    assert row.overshoot is not None and abs(row.overshoot - 0.4) < 1e-9 and row.overshoot_limit == "cost_usd"


def test_the_header_counts_and_forecasts_the_day_against_its_cap() -> None:
    book, burn = world()
    book.run("a", context_id=ContextId("s"))
    book >> e.LimitsChanged(book.at, book.boot, "day", "", Limits(cost_usd=10.0), "operator:0", "r")
    for _ in range(60):
        spend(book, burn, "a", cost_usd=0.02)
        book.later(60.0)
    seen = page(book, burn, spent_today=2.0).totals({"a": 0.5, "b": 0.8, "c": 1.2})
    assert (seen.over, seen.above_75, seen.within, seen.day) == (1, 1, 1, "2026-11-22")
    assert (seen.spend_today_usd, seen.day_cap_usd) == (2.0, 10.0), "no less than what was seen to be spent"
    assert seen.forecast_usd is not None and seen.forecast_low_usd is not None and seen.forecast_high_usd is not None
    assert seen.forecast_low_usd <= seen.forecast_usd <= seen.forecast_high_usd and 14 < seen.forecast_usd < 17
    assert seen.passes_cap_at is not None and book.at < seen.passes_cap_at < book.at + 11 * 3600


def test_a_clock_that_was_set_back_is_said() -> None:
    book, burn = world()
    book.run("a").spend("a", cost_usd=1.0)
    book.at -= 86_400
    assert "no day opens twice" in page(book, burn).totals({}).day_note


def test_sessions_and_projects_that_are_used_up_say_so_and_set_ones_are_shown_before_they_begin() -> None:
    book, burn = world()
    for scope, key in (("session", "s"), ("project", "p"), ("project", "later")):
        book >> e.LimitsChanged(book.at, book.boot, scope, key, Limits(cost_usd=1.0), "operator:0", "r")
    book.run("a", context_id=ContextId("s"), project="p")
    spend(book, burn, "a", cost_usd=1.5)
    seen = page(book, burn)
    [session] = seen.wide_rows("session")
    assert (session.state, session.level, session.spent_usd) == ("used_up", "over", 1.5) and "nothing starts" in session.note
    assert {r.key: r.state for r in seen.wide_rows("project")} == {"p": "used_up", "later": "open"}
    assert [r.key for r in seen.day_rows()] == ["2026-11-22"]


def test_who_spends_it_the_dearest_first_and_the_rest_as_one_sum() -> None:
    book, burn = Playbook(max_children=100), BurnBook(0.0)
    book.run("r")
    for n in range(25):
        book.run(f"k{n:02}", parent_id=AgentId("r"))
        spend(book, burn, f"k{n:02}", cost_usd=float(n))
    shown, others, usd = page(book, burn).spenders("tree", "r")
    assert (len(shown), shown[0].agent_id, others, usd) == (20, "k24", 6, 10.0)


def test_a_snapshot_does_not_move_when_the_engine_does() -> None:
    book, burn = world()
    book.run("a", limits=Limits(cost_usd=10.0))
    spend(book, burn, "a", cost_usd=1.0)
    before = page(book, burn)
    spend(book, burn, "a", cost_usd=5.0)
    book.state.put(replace(book.agent("a"), state=AgentState.KILLED))
    assert before.trees()[0].tree.spent_usd == 1.0 and not before.trees()[0].tree.done


def test_marks() -> None:
    assert [level_of(x) for x in (0.0, 0.75, 0.9, 1.0, 5.0)] == ["within", "above_75", "above_90", "over", "over"]


def test_after_the_last_agent_ended_nothing_burns_and_the_forecast_is_what_was_spent() -> None:
    book, burn = world()
    book.run("a").run("b")
    book >> e.LimitsChanged(book.at, book.boot, "day", "", Limits(cost_usd=10.0), "operator", "r")
    for _ in range(30):
        spend(book, burn, "a", cost_usd=0.02)
        spend(book, burn, "b", cost_usd=0.08)
        book.later(60.0)
    both = page(book, burn).totals({})
    assert both.spending == 2 and both.burn_usd_per_h is not None and both.burn_usd_per_h > 4 and both.passes_cap_at is not None
    book >> e.AgentExited(book.at, book.boot, AgentId("b"), 0)
    one = page(book, burn).totals({})
    assert one.spending == 1 and one.burn_usd_per_h is not None and one.burn_usd_per_h < 2
    book >> e.AgentExited(book.at, book.boot, AgentId("a"), 0)
    none = page(book, burn).totals({})
    assert (none.spending, none.burn_usd_per_h, none.passes_cap_at, none.burn_60) == (0, 0.0, None, [])
    assert none.forecast_usd == none.spend_today_usd == 3.0


def test_a_frozen_agent_burns_nothing_and_says_why() -> None:
    book, burn = world()
    book.run("a", limits=Limits(cost_usd=10.0))
    for _ in range(10):
        spend(book, burn, "a", cost_usd=0.1)
        book.later(60.0)
    assert page(book, burn).trees()[0].tree.burn_usd_per_h
    book.state.put(replace(book.agent("a"), state=AgentState.FROZEN, causes=("operator",)))
    row = page(book, burn).trees()[0].tree
    assert (row.burn_usd_per_h, row.ends_in_s, row.why) == (0.0, None, "nothing of it runs now")
    assert page(book, burn).totals({}).spending == 0
