"""Each answer once, at its largest; sums only grow; nothing without a price is free."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from console.domain.spend import Answer, Tokens
from console.sources.activity.stream_meter import MOST_ANSWERS, MOST_UNPRICED, Increment, StreamMeter


def answer(name: str, output: int = 1, model: str = "m") -> Answer:
    return Answer("claude_code", name, 0.0, model, "", "s", "", "", Tokens(output=output))


def price(one: Answer) -> int | None:
    return None if one.model.startswith("odd") else one.tokens.output * 1000


def test_an_answer_that_is_named_again_adds_only_what_it_grew_by() -> None:
    meter = StreamMeter(price)
    assert meter.charge(answer("a", 1)) == Increment(1, 1, 1000)
    assert meter.charge(answer("a", 1)) == Increment()
    assert meter.charge(answer("a", 77)) == Increment(0, 76, 76_000)
    assert meter.charge(answer("a", 5)) == Increment()
    assert (meter.answers, meter.tokens, meter.nano) == (1, 77, 77_000)


def test_an_id_that_was_claimed_with_nothing_in_it_hides_nothing() -> None:
    meter = StreamMeter(price)
    meter.charge(answer("a")._replace(tokens=Tokens()))
    assert meter.charge(answer("a", 50)) == Increment(0, 50, 50_000)


def test_the_programs_own_sums_bring_what_was_never_seen_and_take_nothing_back() -> None:
    meter = StreamMeter(price)
    meter.charge(answer("a", 10))
    assert meter.total(0.5, 25) == Increment(0, 15, 500_000_000 - 10_000)
    assert meter.total(0.1, 5) == Increment() and meter.total(None, 0) == Increment()


def test_what_has_no_price_is_named_and_counted_in_tokens() -> None:
    meter = StreamMeter(price)
    assert meter.charge(answer("a", 3, "odd")) == Increment(1, 3, 0)
    assert meter.unpriced == {"odd"}


def test_made_up_answers_take_bounded_room() -> None:
    meter = StreamMeter(price)
    for n in range(MOST_ANSWERS + 10):
        meter.charge(answer(str(n), 1, "odd" + str(n)))
    assert len(meter._answers) == MOST_ANSWERS and len(meter.unpriced) == MOST_UNPRICED


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 100)), max_size=30))
def test_the_sum_is_the_sum_of_the_largest(seen: list[tuple[str, int]]) -> None:
    meter = StreamMeter(price)
    for name, output in seen:
        meter.charge(answer(name, output))
    assert meter.tokens == sum(max(o for n, o in seen if n == name) for name in {n for n, _ in seen})
