"""A list in the shape that a person asks for: columns, order, heads; what is not known is neither the least nor the most."""

from __future__ import annotations

import pytest

from console.cli.shaping import shaped
from console.cli.syntax import UNSHAPED, Shape
from console.cli.terminal.tables import new_table
from console.domain.errors import UsageProblem
from tests.fakes.canned_api import CannedApi
from tests.fakes.verbs import Watchfloor


@pytest.mark.parametrize(
    ("cells", "ordered"),
    [
        (["$10.00 + unpriced", "$9.50", "unknown", "$1,000.00"], ["$9.50", "$10.00 + unpriced", "$1,000.00", "unknown"]),
        (["$0.02", "<$0.01", "$10.00", "$0.00"], ["$0.00", "<$0.01", "$0.02", "$10.00"]),
        (["2 min", "90 s", "1 h 5 min", "800 ms", "-"], ["800 ms", "90 s", "2 min", "1 h 5 min", "-"]),
        (["9 KiB", "1 MiB", "200"], ["200", "9 KiB", "1 MiB"]),
        (["b2", "a10", "C3", "7"], ["7", "a10", "b2", "C3"]),
        (["2026-11-26T10:00", "2026-01-02T10:00"], ["2026-01-02T10:00", "2026-11-26T10:00"]),
    ],
)
def test_amounts_are_ordered_by_their_size_and_words_by_their_letters(cells: list[str], ordered: list[str]) -> None:
    table = new_table("NAME", "X")
    for cell in cells:
        table.add_row("n", cell)
    assert [row[0].plain for row in shaped(table, Shape("x", "x")).rows] == ordered
    least = [cell for cell in ordered if cell in ("unknown", "-")]
    known = [cell for cell in ordered if cell not in least]
    assert [row[0].plain for row in shaped(table, Shape("x", "-X")).rows] == known[::-1] + least
    assert shaped(table, UNSHAPED).rows == table.rows


def test_a_column_that_there_is_not_is_refused_with_those_there_are() -> None:
    with pytest.raises(UsageProblem) as refused:
        shaped(new_table("NAME", "COST", ""), Shape("name,prize"))
    assert "'prize'" in refused.value.what and refused.value.remedy == "Columns are: name, cost."


def test_the_beginning_of_one_column_names_it() -> None:
    table = new_table("AGENT", "BURN/H", "LIMITS USED", "LEFT", "COST")
    table.add_row("a", "b", "c", "d", "e")
    assert [row[0].plain for row in shaped(table, Shape("burn")).rows] == ["b"]
    assert [column.header for column in shaped(table, Shape("limits,cost")).columns] == ["LIMITS USED", "COST"]
    with pytest.raises(UsageProblem, match="no column 'l'"):
        shaped(table, Shape("l"))


def test_the_fleet_is_listed_in_that_shape_without_guides(api: CannedApi, watchfloor: Watchfloor) -> None:
    agents = [("a-1", None, 2.0), ("a-2", "a-1", 10.0), ("a-3", "a-1", None)]
    rows = [{"id": name, "parent_id": parent, "name": f"n{name}\x1b[2J", "cost_usd": cost} for name, parent, cost in agents]
    api.say("GET /api/fleet", {"agents": rows})
    said = watchfloor("fleet", "--columns", "agent,cost", "--sort=-cost", "--no-headers")
    assert [line.split() for line in said.out.splitlines()] == [["a-2", "$10.00"], ["a-1", "$2.00"], ["a-3", "unknown"]]
    assert watchfloor("fleet", "--sort", "x").code == 2


def test_without_heads_an_empty_list_leaves_stdout_empty_for_a_script(api: CannedApi, watchfloor: Watchfloor) -> None:
    api.say("GET /api/approvals", {})
    said = watchfloor("approval", "list", "--no-headers")
    assert (said.code, said.out, said.err) == (0, "", "No pending approvals.\n")
    assert watchfloor("approval", "list").out == "No pending approvals.\n"


@pytest.mark.parametrize(
    ("share", "words"),
    [
        (0.0, "People were asked 2.0 times an hour in the last day."),
        (
            0.25,
            "People were asked 2.0 times an hour in the last day. A rule could have answered 25%: an equal request was approved before.",
        ),
    ],
)
def test_below_the_list_of_approvals_stands_how_often_people_are_asked(
    api: CannedApi, watchfloor: Watchfloor, share: float, words: str
) -> None:
    api.say("GET /api/approvals", {"questions_per_hour": 2.0, "rule_share": share})
    assert watchfloor("approval", "list").err == f"{words}\n"
