"""Numbers in words, whatever an agent reports."""

from __future__ import annotations

import math

import pytest

from console.api.messages import AgentView
from console.gui.models.modes import network_chip
from console.gui.pages.fleet.words import gauges, state_words
from console.gui.widgets.words import age, clock, count, long_span, plural, span, took, usd


@pytest.mark.parametrize(
    ("value", "words"),
    [(0, "$0.00"), (412.8, "$412.80"), (0.001, "<$0.01"), (math.nan, "$?"), (math.inf, "$?"), (1e300, ">$1 T"), (2.5e6, "$2.5 M")],
)
def test_usd(value: float, words: str) -> None:
    assert usd(value) == words


def test_spans() -> None:
    assert [span(s) for s in (4, 90, 8040, 200_000, math.nan)] == ["4 s", "1 min", "2 h 14 min", "2 d", "?"]
    assert [long_span(s) for s in (4, 124, 16_860, -5)] == ["4 s", "2 min 04 s", "4 h 41 min", "0 s"]
    assert [took(ms) for ms in (0.4, 38.2, 610, None)] == ["0.4 ms", "38 ms", "0.61 s", "?"]
    assert age(None, 5) == "never" and clock(math.inf) == "?"
    assert [count(v) for v in (1204, 31_400_000, math.inf)] == ["1,204", "31.4 M", "?"]
    assert plural(1, "agent") == "1 agent" and plural(2, "process", "processes") == "2 processes"


def test_unknown_states_are_amber() -> None:
    assert state_words(AgentView(id="a", state="something-new"))[1:] == ("triangle", "warn")


def test_unenforced_modes_say_full() -> None:
    chip = network_chip(AgentView(id="a", network_mode="NONE", network_enforced=False), long=True)
    assert (chip.text, chip.kind) == ("FULL, not enforced", "warn")


def test_gauges_of_agent_and_tree() -> None:
    view = AgentView(
        id="a",
        usage={"cost_usd": 19.64},
        limits={"cost_usd": 20, "tokens": None, "tool_calls": 0},
        tree_limits={"cost_usd": 40},
        burn_usd_per_h=7.2,
    )
    lines = gauges(view)
    assert [line[0] for line in lines] == ["Cost", "Tool calls", "Cost, tree"]
    assert lines[0][3] == pytest.approx(0.982) and lines[0][4].startswith("limit in about 3 min")
    assert lines[1][3] == 1.0 and lines[1][4] == "at the limit"
    assert lines[2][4] == "$40.00 left", "what one agent burns says nothing of its tree"


def test_a_young_agent_reaches_its_limit_as_fast_as_it_spends() -> None:
    view = AgentView(id="a", usage={"cost_usd": 1.0, "wall_s": 60.0}, limits={"cost_usd": 2.0}, burn_usd_per_h=12.0)
    assert gauges(view)[0][4] == "limit in about 1 min 00 s at $60.00/h"


def test_what_could_not_be_proven_to_run_is_amber_and_never_called_running() -> None:
    assert state_words(AgentView(id="a", state="running", control_level="observed", seen_status="unverified"))[1:] == ("triangle", "warn")
    assert state_words(AgentView(id="a", state="ended", control_level="observed", seen_status="unverified"))[0] == "Ended"


def test_only_an_exit_code_of_zero_is_a_ticked_done() -> None:
    ends = [state_words(AgentView(id="a", state="ended", exit_code=code)) for code in (0, None, 1)]
    assert ends == [("Done", "check", "text2"), ("Ended", "ring", "text2"), ("Failed", "cross", "warn")]
