"""A measure in words."""

from __future__ import annotations

from console.domain.sandbox import Given, GivenState


def test_each_state_reads_differently() -> None:
    lines = {state: Given("x", state, "y").line() for state in GivenState}
    assert lines[GivenState.GIVEN] == "x: y"
    assert lines[GivenState.NOT_AVAILABLE] == "x: not available, because y"
    assert lines[GivenState.MISSING] == "x: MISSING, y" and lines[GivenState.UNKNOWN] == "x: UNKNOWN, y"
