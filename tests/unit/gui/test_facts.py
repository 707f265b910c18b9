"""What the stream's thread writes, and what the window hears of it: nothing is lost, nothing comes twice, nothing goes back."""

from __future__ import annotations

from threading import Thread

from console.api.agents.fleet_changes import FleetChanges, changes_of
from console.api.messages import AgentView
from console.gui.models.facts import Facts, News
from console.gui.models.fleet import Fleet


def agent(agent_id: str, **more: object) -> AgentView:
    return AgentView.read({"id": agent_id, "name": agent_id, "network_mode": "NONE", "network_enforced": True, **more})


def patch(seq: int, agent_id: str, **fields: object) -> FleetChanges:
    return changes_of(seq, {"patch": [(agent_id, fields)]})


def fleet_of(*agents: AgentView) -> Fleet:
    fleet = Fleet()
    fleet.replace(agents)
    return fleet


def written(fleet: Fleet, changes: FleetChanges) -> News:
    """By the stream's thread."""
    found: list[News | None] = []
    thread = Thread(target=lambda: found.append(fleet.facts.write(changes)))
    thread.start()
    thread.join()
    [news] = found
    assert news is not None
    return news


def test_numbers_are_shown_before_the_window_hears_of_them_and_what_it_counts_after() -> None:
    fleet = fleet_of(agent("a"), agent("b"))
    row = fleet.rows["a"]
    quiet = written(fleet, patch(1, "a", cost_usd=3.0, last_action="x"))
    assert (row.view.cost_usd, row.action, quiet.judged, quiet.moved) == (3.0, "x", [], True)
    loud = written(fleet, patch(2, "a", state="frozen", cost_usd=4.0))
    assert (row.view.state, row.view.cost_usd, fleet.states()) == ("frozen", 4.0, {"running": 2}), "counted when the window hears it"
    assert fleet.take(loud) and fleet.states() == {"frozen": 1, "running": 1} and fleet.rows["a"] is row
    assert [(one.id, state) for one, state in fleet.news] == [("a", "frozen")]


def test_two_messages_that_were_written_before_the_window_heard_of_either_are_counted_once() -> None:
    fleet = fleet_of(agent("a"))
    heard = [written(fleet, patch(1, "a", state="frozen")), written(fleet, patch(2, "a", state="ended", parent_id="b"))]
    heard += [written(fleet, FleetChanges(3, [agent("b")])), written(fleet, patch(4, "b", state="needs_ok"))]
    assert all([fleet.take(news) for news in heard])  # noqa: C419 - all of them, in order
    assert (fleet.states(), fleet.live(), fleet.count("all")) == ({"ended": 1, "needs_ok": 1}, 1, 2)
    assert [(row.id, row.indent) for row in fleet.arrange()] == [("b", 0), ("a", 1)]
    gone = [written(fleet, FleetChanges(5, remove=["b"])), written(fleet, FleetChanges(6, [agent("b", state="failed")]))]
    for news in gone:
        fleet.take(news)
    assert fleet.rows["b"].view.state == "failed" and fleet.states() == {"ended": 1, "failed": 1}


def test_who_comes_near_a_cap_stays_near_it_and_leaves_it_is_told_once_each() -> None:
    facts = Facts()
    facts.renew([agent("a", budget_share=0.5)])
    told = [facts.write(patch(seq, "a", budget_share=share)) for seq, share in enumerate((0.6, 0.8, 0.85, 0.7, 0.6))]
    assert [len(news.judged) for news in told if news is not None] == [0, 1, 0, 1, 0]


def test_what_comes_while_a_snapshot_is_on_its_way_is_written_on_top_of_it_unless_it_is_in_it() -> None:
    fleet = fleet_of(agent("a", cost_usd=1.0))
    assert fleet.facts.hold() and not fleet.facts.hold(), "one at a time"
    held = [patch(7, "a", cost_usd=7.0, state="waiting"), patch(9, "a", cost_usd=9.0), changes_of(10, {"upsert": [agent("late")]})]
    assert [fleet.facts.write(changes) for changes in held] == [None, None, None]
    assert fleet.rows["a"].view.cost_usd == 1.0
    fleet.replace([agent("a", cost_usd=8.0)], 8)
    assert (fleet.rows["a"].view.cost_usd, fleet.states(), sorted(fleet.rows)) == (9.0, {"running": 2}, ["a", "late"])
    assert fleet.facts.hold()


def test_news_of_an_earlier_snapshot_are_not_told_on_a_later_one() -> None:
    fleet = fleet_of(agent("a"), agent("b"))
    late = written(fleet, FleetChanges(5, [agent("gone")], remove=["b"]))
    fleet.facts.hold()
    fleet.replace([agent("a"), agent("b", state="ended")], 6)
    assert fleet.take(late) and sorted(fleet.rows) == ["a", "b"] and fleet.live() == 1


def test_a_snapshot_that_does_not_come_loses_nothing() -> None:
    fleet = fleet_of(agent("a"))
    fleet.facts.hold()
    fleet.facts.write(patch(3, "a", state="over_budget"))
    for news in fleet.facts.let_go():
        fleet.take(news)
    assert fleet.states() == {"over_budget": 1}
    assert not fleet.apply(patch(4, "nobody", cost_usd=1.0))
    assert not fleet.apply(patch(5, "nobody", state="ended"))


def test_what_a_caller_gave_is_replaced_and_not_written_over_by_a_whole_view() -> None:
    first = agent("a")
    fleet = fleet_of(first)
    fleet.upsert(agent("a", state="frozen"))
    assert first.state == "running" and fleet.rows["a"].view.state == "frozen" and fleet.facts.views["a"] is fleet.rows["a"].view
