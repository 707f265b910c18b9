"""Prices are the table's own: each is compared with what the table says of the whole answer."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import genai_prices
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from console.domain.spend import NANO, Answer, Tokens
from console.sources.kinds import VENDORS
from console.sources.spend.rates import RateBook

BOOK = RateBook(VENDORS)
AT = 1795292882.0
SEEN = Tokens(12, 4096, 2048, 0, 77)


def answer(model: str, tokens: Tokens = SEEN, source: str = "claude_code", at: float = AT, tier: str = "") -> Answer:
    return Answer(source, "m", at, model, tier, "s", "", "/p", tokens)


@pytest.mark.parametrize(
    ("source", "model", "tokens", "nano"),
    [
        ("claude_code", "claude-sonnet-4-5", SEEN, 10_099_800),  # what Claude Code itself said of this answer
        ("claude_code", "claude-opus-4-5", SEEN, 16_833_000),
        ("claude_code", "claude-haiku-4-5", SEEN, 3_366_600),
        ("claude_code", "claude-sonnet-4-5", Tokens(cache_write_1h=2048), 12_288_000),
        ("claude_code", "claude-sonnet-4-5", Tokens(cache_write_5m=2048), 7_680_000),
        ("codex", "gpt-5.1-codex", Tokens(904, 4096, 0, 0, 120), 2_842_000),
        ("codex", "gpt-4o", Tokens(904, 4096, 0, 0, 120), 8_580_000),
    ],
)
def test_known_prices(source: str, model: str, tokens: Tokens, nano: int) -> None:
    assert BOOK.price(answer(model, tokens, source)) == nano


counts = st.integers(0, 300_000)


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(["claude-sonnet-4-5", "claude-opus-4-6", "claude-opus-4-1", "claude-haiku-4-5", "claude-sonnet-5"]),
    st.builds(Tokens, counts, counts, counts, counts, counts, st.integers(0, 50)),
    st.sampled_from([AT, datetime(2026, 3, 1, tzinfo=UTC).timestamp(), 0.0]),
)
def test_rates_give_what_the_table_gives_for_the_whole_answer(model: str, tokens: Tokens, at: float) -> None:
    usage = genai_prices.Usage(
        input_tokens=tokens.input,
        cache_read_tokens=tokens.cache_read,
        cache_write_tokens=tokens.cache_write_5m + tokens.cache_write_1h,
        cache_write_1h_tokens=tokens.cache_write_1h,
        output_tokens=tokens.output,
        web_searches=tokens.web_searches,
    )
    when = datetime.fromtimestamp(at, tz=UTC) if at else None
    whole = genai_prices.calc_price(usage, model, provider_id="anthropic", genai_request_timestamp=when).total_price
    assert abs((BOOK.price(answer(model, tokens, at=at)) or 0) - whole * NANO) <= 1


@pytest.mark.parametrize(
    ("source", "model"),
    [("claude_code", "claude-sonnet-4-20250514"), ("claude_code", "claude-sonnet-4-5"), ("pi", "anthropic/claude-sonnet-4-0")],
)
def test_all_of_a_request_with_long_input_costs_more_of_every_model_that_has_the_step(source: str, model: str) -> None:
    at_most, above = Tokens(plain=200_000, output=1000), Tokens(100_000, 50_000, 30_000, 20_001, 1000)
    assert BOOK.price(answer(model, at_most, source)) == 600_000_000 + 15_000_000
    assert BOOK.price(answer(model, above, source)) == 600_000_000 + 30_000_000 + 225_000_000 + 240_012_000 + 22_500_000


def test_a_model_whose_vendor_has_one_price_has_one() -> None:
    short, long = (BOOK.price(answer("claude-opus-4-5", Tokens(plain=n))) for n in (100_000, 1_000_000))
    assert short is not None and long == 10 * short


def test_prices_of_before_a_change_hold_for_answers_of_before() -> None:
    old, new = datetime(2026, 3, 1, tzinfo=UTC).timestamp(), datetime(2026, 4, 1, tzinfo=UTC).timestamp()
    long = Tokens(plain=400_000)  # its long inputs cost more until 13 March 2026
    before, after = BOOK.price(answer("claude-opus-4-6", long, at=old)), BOOK.price(answer("claude-opus-4-6", long, at=new))
    assert before is not None and after is not None and before > after


@pytest.mark.parametrize("model", ["nobody-knows-1", "", "x" * 300, "<b>", "claude\0"])
def test_an_unknown_model_is_unpriced_and_never_free(model: str) -> None:
    assert BOOK.price(answer(model)) is None


def test_counts_that_no_model_gives_are_not_priced() -> None:
    assert BOOK.price(answer("claude-sonnet-4-5", Tokens(10**400))) is None
    assert BOOK.price(answer("claude-sonnet-4-5", Tokens(-5))) is None
    for at in (1e300, -1.0, float("inf"), float("nan")):
        assert BOOK.price(answer("claude-sonnet-4-5", at=at)) == 10_099_800


def test_what_the_table_only_warns_about_is_no_price() -> None:
    class Warns:
        __version__ = "1"
        Usage = genai_prices.Usage

        @staticmethod
        def calc_price(*args: Any, **words: Any) -> Any:
            import warnings

            warnings.warn("a count that is not known", stacklevel=1)
            return genai_prices.calc_price(*args, **words)

    assert RateBook(VENDORS, lambda: Warns).price(answer("claude-sonnet-4-5")) is None


def test_the_table_is_loaded_when_the_first_price_is_asked_for() -> None:
    loaded: list[int] = []

    def load() -> Any:
        loaded.append(1)
        return genai_prices

    book = RateBook(VENDORS, load)
    assert not loaded
    book.price(answer("claude-sonnet-4-5"))
    book.price(answer("claude-opus-4-5"))
    assert loaded == [1] and book.version == f"genai-prices {genai_prices.__version__}"
