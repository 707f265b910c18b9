"""An id is a path segment, a cgroup's name and a word of a command line."""

from __future__ import annotations

import pytest

from console.domain.ids import AGENT_ID


@pytest.mark.parametrize(("text", "fits"), [("a-1b2c", True), ("a" * 63, True), ("a" * 64, False), ("-a", False), ("a\n", False)])
def test_what_an_id_is(text: str, fits: bool) -> None:
    assert bool(AGENT_ID.match(text)) is fits
