"""The table of settings: every option has a row, and a row knows its kind, range and unit."""

from __future__ import annotations

from console.settings.options import Options
from console.settings.table import KEYS, SECTIONS, flat, nested


def test_every_option_has_a_row_with_its_default() -> None:
    assert flat(Options().as_data()) == {name: key.default for name, key in KEYS.items()}
    assert all(key.words and key.takes and not key.problem(key.default) for key in KEYS.values())
    assert {"panic", "budgets", "remote"} <= SECTIONS


def test_a_row_knows_kind_range_and_unit() -> None:
    depth, lease, beat = KEYS["spawn.max_depth"], KEYS["remote.lease"], KEYS["heartbeat_s"]
    assert (depth.kind, depth.low, depth.high, depth.unit, depth.group) == ("int", 1, 20, "", "spawn")
    assert (lease.kind, lease.choices) == ("choice", ("stop", "alarm"))
    assert (beat.kind, beat.low, beat.is_above_low, beat.unit, beat.takes) == ("float", 0, True, "s", "a number above 0")
    assert KEYS["agents.memory_max_mib"].unit == "MiB" and KEYS["budgets.day"].kind == "table" and not KEYS["budgets.day"].is_scalar


def test_names_are_joined_and_taken_apart() -> None:
    data = {"panic": {"include_observed": True}, "heartbeat_s": 3, "budgets": {"day": {"cost": 1}}}
    assert nested(flat(data)) == data
    assert flat({"panic": 3, "a.b": 1}) == {"panic": 3, '"a.b"': 1}
