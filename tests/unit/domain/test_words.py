"""Parts of sentences."""

from __future__ import annotations

import pytest

from console.domain.words import counted, listed, mode_words


@pytest.mark.parametrize(
    ("number", "said"), [(0, "0 processes"), (1, "1 process"), (2, "2 processes"), (1000, "1,000 processes"), (-1, "-1 processes")]
)
def test_one_is_one_and_all_else_are_many(number: int, said: str) -> None:
    assert counted(number, "process", "processes") == said
    assert counted(number, "agent").endswith("agent" if number == 1 else "agents")


def test_root_is_told_as_full_control() -> None:
    assert (mode_words("root"), mode_words("user")) == ("root (full control of this host)", "user mode")


def test_sentences_and_parts_of_some_make_one_list() -> None:
    parts = ["The guard cannot be reached. watchfloor panic works without it.", "", "the canary is old"]
    assert listed(parts) == "The guard cannot be reached. watchfloor panic works without it; the canary is old"
    assert listed([]) == ""
