"""Counts of tokens."""

from __future__ import annotations

import pytest

from console.domain.spend import MOST_TOKENS, Tokens


def test_the_kinds_add_up_and_searches_are_no_tokens() -> None:
    tokens = Tokens(1, 2, 4, 8, 16, 32)
    assert (tokens.input, tokens.total) == (15, 31)
    assert tokens.is_sane()


@pytest.mark.parametrize("bad", [Tokens(-1), Tokens(output=MOST_TOKENS + 1), Tokens(cache_write_1h=-5), Tokens(web_searches=10**400)])
def test_counts_that_no_model_gives_are_not_sane(bad: Tokens) -> None:
    assert not bad.is_sane()
