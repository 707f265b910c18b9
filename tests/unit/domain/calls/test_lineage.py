"""What one call was seen to be, and what is remembered of it."""

from __future__ import annotations

from console.domain.calls.lineage import Mark


def test_a_mark_is_known_by_pattern_step_and_value_whoever_made_it() -> None:
    one = Mark("p", "s", "users", "a", "c", "r", 1.0, "update_db users")
    other = Mark("p", "s", "users", "b", "d", "q", 2.0, "x")
    assert one.key == other.key == ("p", "s", "users")
