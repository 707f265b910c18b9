"""An agents delta is checked where it is read, and sorted into what moves a row and what only moves its numbers."""

from __future__ import annotations

import json
import math

import pytest

from console.api.agents.fleet_changes import QUIET, changes_of, read_changes
from console.api.messages import AgentView


def test_numbers_are_quiet_until_a_cap_is_near() -> None:
    patches = [
        ("a", {"cost_usd": 1, "budget_share": 0.74}),
        ("b", {"budget_share": 0.75}),
        ("c", {"state": "frozen"}),
        ("d", {"budget_share": math.nan}),
        ("e", {"parent_id": None}),
    ]
    found = changes_of(7, {"patch": patches})
    assert [name for name, _ in found.quiet] == ["a", "d"] and [name for name, _ in found.loud] == ["b", "c", "e"]
    assert found.quiet[0][1]["cost_usd"] == 1.0 and found.spend_today_usd is None


def test_every_quiet_field_is_one_of_an_agent() -> None:
    assert set(AgentView.field_names()) > QUIET
    assert not QUIET & {"id", "state", "parent_id", "name", "network_mode", "network_enforced", "depth", "best_effort"}


def test_fields_of_a_newer_supervisor_are_left_out_and_an_id_never_changes() -> None:
    found = read_changes(1, json.dumps({"patch": [["a", {"cost_usd": 2, "id": "b", "colour": "red"}]], "what": 1, "remove": ["z"]}))
    assert found.quiet == [("a", {"cost_usd": 2.0})] and found.remove == ["z"] and found.seq == 1


@pytest.mark.parametrize(
    "data",
    [[1], {"patch": [["a", {"cost_usd": "much"}]]}, {"patch": {"a": 1}}, {"upsert": [{"name": "no id"}]}, {"burn_usd_per_h": "x"}],
)
def test_what_cannot_be_read_is_no_delta(data: object) -> None:
    with pytest.raises(ValueError):
        read_changes(1, json.dumps(data))
