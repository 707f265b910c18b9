"""Limits, times and charts of the Budgets page as values: nothing known is never zero, nothing typed is guessed."""

from __future__ import annotations

import math
import time

import pytest

from console.api import budgets as b
from console.domain.errors import UsageProblem
from console.gui.pages.budgets.axis import STEPS, finite, round_step
from console.gui.pages.budgets.burn_chart import shape_of
from console.gui.pages.budgets.detail import chips, overshoot_words
from console.gui.pages.budgets.forecast import day_lines, node_lines
from console.gui.pages.budgets.head import is_over_forecast, passes_words
from console.gui.pages.budgets.limits import targets_of
from console.gui.pages.budgets.model_chart import stack_of
from console.gui.pages.budgets.reasons import plain_reason
from console.gui.pages.budgets.rows import arrange, counted, has_limits
from console.gui.pages.budgets.windows import grouped, renewal, subtitle
from console.gui.pages.budgets.words import bar_share, cap_words, ends_words, gauge_note, read_cap, typed_cap, unpriced_words
from console.gui.widgets.words import share_words
from console.wording.limits import LABELS, amount
from tests.fakes import budget_routes as canned

NOW = 1_795_269_731.0


def row(**more: object) -> b.BudgetRow:
    return b.BudgetRow.read({"scope": "agent", "key": "a", "first_limit": "cost_usd"} | more)


def test_what_is_typed_is_read_back_exactly() -> None:
    for limit in LABELS:
        for cap in (0.0, 1.0, 59.0, 60.0, 90.0, 3600.0, 5400.0, 86_400.0, 10.0**15):
            assert read_cap(limit, typed_cap(limit, cap)) == cap
    assert read_cap("cost_usd", typed_cap("cost_usd", 0.1 + 0.2)) == 0.1 + 0.2
    assert (
        read_cap("wall_s", " 1.5H ") == 5400.0 and read_cap("tokens", "2.5 M") == 2_500_000.0 and read_cap("cost_usd", "$1,200") == 1200.0
    )
    assert read_cap("iterations", "2.9") == 2.0, "whole numbers are rounded down, never up"
    assert read_cap("cost_usd", "  ") is None


@pytest.mark.parametrize("typed", ["x", "-1", "nan", "inf", "1e300", "5h", "h", "0x10", "٣x"])
def test_what_is_no_limit_is_refused(typed: str) -> None:
    with pytest.raises(UsageProblem):
        read_cap("cost_usd", typed)


def test_time_left_says_what_is_known() -> None:
    assert ends_words(row(ends_in_s=190.0)) == ("3 min", "diamond", "danger")
    assert ends_words(row(ends_in_s=560.0)) == ("9 min", "triangle", "warn")
    assert ends_words(row(ends_in_s=6900.0)) == ("1 h 55 min", "", "text")
    assert ends_words(row(ends_in_s=0.0))[0] == "used up"
    assert ends_words(row()) == ("unknown", "", "text2") and ends_words(row(first_limit="")) == ("no limit", "", "text3")
    assert ends_words(row(done=True))[1:] == ("check", "text3")
    assert ends_words(row(done=True, level="over"))[1:] == ("diamond", "danger")
    assert ends_words(row(done=True, state="killed")) == ("Killed", "cross", "text3"), "no tick: a person stopped it"
    assert ends_words(row(done=True, state="failed")) == ("Failed", "cross", "warn")
    assert ends_words(row(done=True, state="lost")) == ("Lost", "triangle", "warn")
    assert ends_words(row(level="over", state="over_budget"))[0] == "being halted"
    assert ends_words(row(ends_in_s=math.nan))[0] == "unknown"


def test_the_bar_of_a_time_left_is_logarithmic() -> None:
    shares = [bar_share(s) for s in (0.0, 30.0, 600.0, 6000.0, 60_000.0, 86_400.0, 1e9, math.inf)]
    assert shares == sorted(shares) and shares[0] == 0.0 and shares[1] > 0 and shares[-3:] == [1.0, 1.0, 1.0]
    assert shares[3] - shares[2] == pytest.approx(shares[4] - shares[3])


def test_numbers_are_short_and_finite() -> None:
    assert cap_words("wall_s", 86_400.0) == "24 h" and cap_words("tokens", 60e6) == "60 M" and cap_words("step_s", 600.0) == "10 min"
    assert share_words(math.nan) == "?" and share_words(1e9) == ">999%" and share_words(0.745) == "74%"
    assert amount("cost_usd", math.inf) == "$?"
    assert gauge_note(b.GaugeView(limit="iterations", used=212, cap=400)) == "188 left"
    held = b.GaugeView(limit="cost_usd", used=1, held=0.5, cap=2, why="unknown: nothing was used in the last hour", inherited="settings")
    assert gauge_note(held) == "unknown: nothing was used in the last hour · $0.50 set aside · from settings"


def test_lines_keep_the_tree_above_what_is_found() -> None:
    view = canned.mockup(NOW)
    lines = arrange(view, "time", "refund", set())
    assert [(line.name, line.below) for line in lines] == [("support-triage", False), ("refund-drafter", True)]
    assert len(arrange(view, "time", "", {"support-triage"})) == len(arrange(view, "time", "", set())) - 1
    assert [line.name for line in arrange(view, "time", "unpriced", set())] == ["data-sync", "backfill-worker"]
    assert counted(view, "project", []) == "2 projects · 2 sessions"
    assert has_limits(view) and not has_limits(b.BudgetsView(trees=[b.TreeBudget(tree=row(first_limit=""))]))


def test_the_day_is_drawn_as_long_as_it_is() -> None:
    since = time.mktime((2026, 11, 18, 0, 0, 0, 0, 0, -1))
    burn = b.DayBurn(since=since, usd_per_h=[10.0, 20.0], projected_usd_per_h=38.0, low_usd_per_h=27.0, high_usd_per_h=52.0)
    shape = shape_of(burn, since + 1800, since + 3600)
    assert 23 * 3600 <= shape.until - shape.since <= 25 * 3600 and shape.cap_at == since + 3600 and shape.top == 52.0
    assert shape_of(burn, since + 1800, since + 200_000).cap_at is None, "not of this day"
    wild = b.DayBurn(since=since, usd_per_h=[math.nan, -1.0, math.inf], projected_usd_per_h=math.inf, high_usd_per_h=math.nan)
    broken = shape_of(wild, since + 1800, None)
    assert broken.past == (0.0, 0.0, 0.0) and broken.middle is None and math.isfinite(broken.top)
    assert shape_of(b.DayBurn(since=since, usd_per_h=[1.0], projected_usd_per_h=1.0, high_usd_per_h=1e9), since, None).top == 4.0


def test_an_axis_is_round_and_high_enough() -> None:
    for top in (0.0, 0.004, 0.5, 52.0, 59.9, 60.0, 60.1, 525.0, 1e12):
        assert STEPS * round_step(top) >= top * 0.999
    assert round_step(52) == 20 and round_step(525) == 200
    assert finite([math.nan, -1, 2]) == [0.0, 0.0, 2.0]


def test_what_has_no_price_is_in_no_sum() -> None:
    days = [b.ModelDay(day="2026-11-18", model=m, cost_usd=c) for m, c in (("a", 5.0), ("b", 4.0), ("c", 3.0), ("d", 2.0), ("e", 1.0))]
    free = b.ModelDay(day="2026-11-18", model="local", cost_usd=0.0, unpriced=3, unpriced_tokens=1_900_000)
    stack = stack_of([*days, free, b.ModelDay(day="2026-11-17", model="a", cost_usd=math.nan)], "2026-11-18")
    assert [bar.parts for bar in stack.bars] == [[0.0, 0.0, 0.0, 0.0], [5.0, 4.0, 3.0, 3.0]]
    assert [bar.unpriced for bar in stack.bars] == [False, True] and stack.top == 15.0
    assert stack.legend[-1] == ("dashed", "local", "1.9 M tokens", True)
    assert stack.legend[-2] == ("open", "2 other models", "$3.00", False)
    assert len({fill for fill, *_ in stack.legend}) == 5, "told apart by fill"


def test_windows_that_nobody_knows_say_why() -> None:
    known, others = grouped([*canned.not_available(), b.WindowView(program="Codex", window="5 h", share=0.2, renews_at=NOW + 60)])
    assert [w.program for w in known] == ["Codex"] and [who for who, _ in others] == ["Claude, 5 h and week", "Codex, 5 h and week"]
    assert all(why.startswith("not available, because") for _, why in others)
    seen = [b.WindowView(program="Codex", window="5 h", share=0.4, seen_at=NOW - back) for back in (5, 1800)]
    assert subtitle(seen, NOW) == "seen 30 min 00 s ago" and subtitle(seen[:1], NOW) == subtitle([], NOW) == "renewal time at the right"
    assert renewal(NOW - 5, NOW) == "renewed since" and renewal(None, NOW) == "" and renewal(1e300, NOW) == "?"


def test_the_forecast_never_says_more_than_is_known() -> None:
    nothing = b.BudgetTotals(spend_today_usd=3.0, day_cap_usd=10.0)
    assert passes_words(nothing) == "no spend in 60 min" and not is_over_forecast(nothing)
    assert passes_words(nothing.replaced(known_min=7.4)) == "no spend in 7 min", "what lies before was not looked at"
    assert any("unknown" in fact.right for fact in day_lines(nothing))
    over = b.BudgetTotals(spend_today_usd=11.0, day_cap_usd=10.0, forecast_usd=12.0)
    assert passes_words(over) == "the day's limit is used up" and is_over_forecast(over)
    view = b.BudgetNodeView(row=row(), gauges=[b.GaugeView(limit="tokens", used=5, cap=10, share=0.5, ends_in_s=60.0)])
    assert node_lines(view, NOW)[0].right.startswith("ends in 1 min (at ")


def test_chips_and_metering() -> None:
    tree = row(scope="tree", level="within", share=0.7)
    assert [c.text for c in chips(tree, [], 1)] == ["1 agent over budget"] and chips(row(first_limit=""), [])[0].text == "no limit"
    assert overshoot_words(row()) == "" and "answers in flight" in overshoot_words(row(metered="after the fact"))


def test_whose_limits_can_be_chosen() -> None:
    assert list(targets_of(None)) == ["day", "named"]
    assert [t.scope for t in targets_of(row(scope="tree")).values()] == ["tree", "agent", "day", "session"]
    assert [t.scope for t in targets_of(row(scope="project")).values()] == ["project", "day", "session"]


def test_a_reason_keeps_the_end_of_its_sentence() -> None:
    said = plain_reason("tree limit cost_usd: 50.008 of 50. Most by market-research ($10.31)")
    assert said == "cost $50.01 of $50.00 (tree limit). Most by market-research ($10.31)"


def test_money_that_is_not_known_is_told_from_money_that_is_a_part() -> None:
    row = b.BudgetRow(scope="tree", key="a", unpriced=True)
    assert unpriced_words(row) == "spend unknown: nothing says what it spent"
    assert unpriced_words(row.replaced(spent_usd=0.5)).startswith("unpriced: ") and unpriced_words(row.replaced(unpriced=False)) == ""
