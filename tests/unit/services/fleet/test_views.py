"""Values of the wire: what an operator writes is checked where it comes in."""

from __future__ import annotations

from dataclasses import replace

import pytest

from console.api.messages import AllowlistEntryBody
from console.domain.agent import AgentId, AgentState, ContextId, ProcessIdentity, Sighting, SourceReport
from console.domain.budget import Limits, Usage
from console.domain.conversation import WAITS, Program, command_line
from console.domain.engine import command as c
from console.domain.engine import event as e
from console.domain.errors import UsageProblem
from console.domain.ids import ControlLevel
from console.enforcement.identity import cost_unknown, observed_id
from console.services.fleet.meters import Meters
from console.services.fleet.views import agent_fields, entry_from_body
from tests.fakes.playbook import Playbook


def body(review_by: str) -> AllowlistEntryBody:
    return AllowlistEntryBody(host="api.example.com", reason="x", owner="me", review_by=review_by)


@pytest.mark.parametrize("review_by", ["2020-13-40", "soon", "2027-02-30"])
def test_a_review_date_that_is_none_is_refused(review_by: str) -> None:
    with pytest.raises(UsageProblem, match="not a date"):
        entry_from_body("e1", body(review_by))


def test_a_review_date_is_kept_and_may_be_left_out() -> None:
    assert [entry_from_body("e1", body(words)).review_by for words in ("2027-02-19", "")] == ["2027-02-19", ""]


def seen_as(*sightings: Sighting) -> dict[str, object]:
    """The row of the one agent that these sightings make."""
    book = Playbook()
    by_source = {one.source: SourceReport(one.source, True, "", (one,)) for one in sightings}
    book >> e.Sighted(book.at, book.boot, tuple(by_source.values()))
    return agent_fields(book.agent(observed_id(sightings[0])), book.state, Meters(), book.at)


def test_spend_that_nothing_reads_is_unknown_and_never_zero() -> None:
    process = Sighting("processes", "7-1", "Qwen Code", ProcessIdentity(7, 1), "", "/w", 1.0, unread="nothing reads what Qwen Code spends")
    row = seen_as(process)
    assert row["cost_usd"] is None and row["cost_unknown"] == "nothing reads what Qwen Code spends"
    assert "cost_usd" not in str(row["usage"]) + str(row["tree_usage"]), "a nested zero would be a measurement too"
    read = Sighting("claude_code", "s1", "proj", ProcessIdentity(7, 1), "s1", "/w", 1.0)
    row = seen_as(read, replace(process, name="Claude Code"))
    assert row["cost_usd"] == 0.0 and row["cost_unknown"] == "", "a source reads it: nothing was spent yet"
    assert "'cost_usd': 0.0" in str(row["usage"]) and "'cost_usd': 0.0" in str(row["tree_usage"])
    owed = replace(read, source="opencode", unread="its first answer is not over")
    row = seen_as(owed, replace(process, name="OpenCode", unread=""))
    assert (row["cost_usd"], row["cost_unknown"]) == (None, "its first answer is not over"), "that a process runs tells no spend"
    row = seen_as(replace(process, name="Codex", unread=""))
    assert row["cost_usd"] is None and "its session is not seen" in str(row["cost_unknown"])


@pytest.mark.parametrize(
    ("source", "usage", "unpriced", "unread", "unknown"),
    [
        ("processes", None, 0, "nothing reads what it spends", "nothing read what it spent"),
        ("qwen", Usage(tokens=500), 3, "", "its answers had no price"),
        ("qwen", Usage(tokens=500, cost_usd=0.5), 0, "", ""),
        ("claude_code", Usage(), 0, "", ""),
    ],
)
def test_what_was_unknown_of_an_agent_does_not_become_zero_by_its_end(
    source: str, usage: Usage | None, unpriced: int, unread: str, unknown: str
) -> None:
    book = Playbook()
    one = Sighting(source, "7-1", "x", ProcessIdentity(7, 1), "", "/w", 1.0, usage=usage, unpriced=unpriced, unread=unread)
    book >> e.Sighted(book.at, book.boot, (SourceReport(source, True, "", (one,)),))
    for _ in range(3):
        book.later(30.0)
        book >> e.Sighted(book.at, book.boot, (SourceReport(source, True, "", ()),))
    agent = book.agent(observed_id(one))
    row = agent_fields(agent, book.state, Meters(), book.at)
    assert not agent.state.is_live and row["cost_unknown"] == unknown and (row["cost_usd"] is None) == bool(unknown)


def test_answers_without_a_price_cost_something_unknown() -> None:
    told = Sighting("otlp", "s1", "proj", None, "s1", "", 1.0, usage=Usage(tokens=500), unpriced=3)
    row = seen_as(told)
    assert row["cost_usd"] is None and row["cost_unknown"] == "3 answers without a price"
    assert seen_as(replace(told, usage=Usage(tokens=500, cost_usd=0.5)))["cost_usd"] == 0.5


def test_what_only_an_agents_own_reports_tell_is_unknown_until_the_first() -> None:
    book = Playbook().run("silent").run("free")
    book.spend("free", iterations=1)

    def cost(agent: str) -> tuple[object, object]:
        row = agent_fields(book.agent(agent), book.state, Meters(), book.at)
        return row["cost_usd"], row["cost_unknown"]

    assert cost("silent") == (None, "it has reported no cost yet") and cost("free") == (0.0, "")
    assert "cost_usd" not in str(agent_fields(book.agent("silent"), book.state, Meters(), book.at)["usage"])
    process = ProcessIdentity(7, 1)
    book.state.put(replace(book.agent("silent"), process=process))
    seen = Sighting("processes", "7-1", "Claude Code", process, "", "/w", 1.0, agent_id=AgentId("silent"))
    book >> e.Sighted(book.at, book.boot, (SourceReport("processes", True, "", (seen,)),))
    assert cost("silent") == (None, "it has reported no cost yet"), "that its program runs does not tell what it spends"
    ended = replace(book.agent("silent"), state=AgentState.ENDED)
    assert cost_unknown(ended, None, book.state.budget.metered) == "it reported no cost"
    book.spend("silent", cost_usd=0.25)
    assert cost("silent") == (0.25, "")


def test_an_observed_agent_that_reached_any_limit_wants_attention_and_names_what_can_be_done() -> None:
    book = Playbook().run("o", context_id=ContextId("s"))
    book.state.put(replace(book.agent("o"), control_level=ControlLevel.OBSERVED))

    def shown() -> tuple[float, str]:
        fields = agent_fields(book.agent("o"), book.state, Meters(), book.at)
        return fields["budget_share"], fields["state_reason"]

    book >> e.LimitsChanged(book.at, book.boot, "session", "s", Limits(cost_usd=1.0), "ann", "test")
    before = shown()
    assert before == (0.0, "")
    book >> e.UsageReported(book.at, book.boot, AgentId("o"), cost_usd=1.5)
    share, words = shown()
    assert share >= 1.0 and "adopt or kill it" in words and "watchfloor adopt o" in words and "watchfloor kill o" in words
    assert {one.agent.agent_id for one in book.all(c.ShowAgent)} == {"o"}, "every view hears of it at once"
    book >> e.LimitsChanged(book.at, book.boot, "session", "s", Limits(cost_usd=9.0), "ann", "test")
    assert shown() == before and {one.agent.agent_id for one in book.all(c.ShowAgent)} == {"o"}


def test_a_started_program_keeps_its_name_when_no_source_sees_it_any_more() -> None:
    book = (
        Playbook()
        .run("a", argv=command_line(Program.CLAUDE_CODE, "do it", "/usr/bin/claude", (), talks=True))
        .run("b", argv=("sleep", "9"))
    )
    book.state.put(replace(book.agent("a"), state=AgentState.ENDED))
    programs = [agent_fields(book.agent(one), book.state, Meters(), book.at)["program"] for one in ("a", "b")]
    assert programs == ["claude-code", ""]


def test_one_that_has_ended_waits_for_nothing() -> None:
    book = Playbook().run("a")
    rows = []
    for over in (False, True):
        book.state.put(replace(book.agent("a"), last_action=WAITS, ended_at=book.at if over else None))
        rows.append(agent_fields(book.agent("a"), book.state, Meters(), book.at)["last_action"])
    assert rows == [WAITS, ""]
