"""What is heard of sessions, bounded in every direction: made-up sessions, answers told again, names that are none."""

from __future__ import annotations

from typing import Any

import pytest

from console.sources.kinds import VENDORS
from console.sources.otlp import book as otlp_book
from console.sources.otlp.book import FORGET_S, NEW_BURST, QUIET_S, SESSIONS_MAX, TelemetryBook
from console.sources.spend.rates import RateBook
from console.sources.telemetry.items import Item


class Clock:
    """Goes when it is told to."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def book(clock: Clock) -> TelemetryBook:
    return TelemetryBook(clock)


def answer(session: str = "s-1", request: str = "r-1", **said: Any) -> Item:
    """One api_request of Claude Code's."""
    told: dict[str, Any] = {
        "session.id": session,
        "request_id": request,
        "input_tokens": 10,
        "output_tokens": 5,
        "cost_usd": 0.25,
        "model": "m",
    }
    told |= said
    return Item("logs", "api_request", {name: value for name, value in told.items() if value is not None})


def test_an_answer_counts_once_however_often_it_is_told(book: TelemetryBook) -> None:
    book.take([answer(), answer(), answer(request="r-2"), answer("s-2")])
    one, two = sorted(book.sessions(), key=lambda told: told.session)
    assert (one.usage.cost_usd, one.usage.tokens, one.usage.iterations) == (0.5, 30, 2)
    assert two.usage.cost_usd == 0.25  # another session's answer of the same id is another


@pytest.mark.parametrize("odd", [-0.01, "NaN", "Infinity", "-Infinity", 1e308, "x", True, 10_001])
def test_money_that_nothing_costs_is_refused_and_takes_no_other_with_it(book: TelemetryBook, odd: object) -> None:
    book.take([answer(request="r-0", cost_usd=odd), answer()])
    (one,) = book.sessions()
    assert one.usage.cost_usd == 0.25 and book.refusals() == 1
    assert "of session s-1" in book.untold()[0]


@pytest.mark.parametrize("name", ["input_tokens", "output_tokens", "cache_read_tokens", "cache_creation_tokens"])
def test_tokens_that_nothing_used_are_refused(book: TelemetryBook, name: str) -> None:
    for number, odd in enumerate((-1, "nan", 10**12, 1e30)):
        said: dict[str, Any] = {name: odd}
        book.take([answer(request=f"r{number}", **said)])
    assert book.sessions()[0].usage.tokens == 0 and book.refusals() == 4


def test_sums_beyond_any_session_are_refused(book: TelemetryBook) -> None:
    book.take(answer(request=f"r-{n}", cost_usd=10_000.0) for n in range(150))
    assert book.sessions()[0].usage.cost_usd == 1_000_000 and book.refusals() == 50


def test_an_answer_whose_cost_is_not_said_is_unpriced(book: TelemetryBook) -> None:
    book.take([answer(cost_usd=None)])
    assert (book.sessions()[0].unpriced, book.sessions()[0].usage.cost_usd) == (1, 0.0)


@pytest.mark.parametrize("name", ["../x", "a b", "x" * 65, "\u202eevil", "<b>", "a\nb", "-rf", ""])
def test_ids_that_are_none_make_no_session(book: TelemetryBook, name: str) -> None:
    book.take([answer(name)])
    assert book.sessions() == []


def test_hostile_names_are_bounded_and_plain(book: TelemetryBook) -> None:
    nasty = "\x1b[31m<b>" + "x" * 5000
    book.take([answer(model=nasty, **{"service.name": nasty, "agent_id": nasty})])
    (one,) = book.sessions()
    assert len(one.program) <= 40 and len(one.model) <= 100 and "\x1b" not in one.program + one.model


def test_sessions_that_are_made_up_are_bounded_in_number_and_rate(book: TelemetryBook, clock: Clock) -> None:
    book.take([answer("kept"), *(answer(f"a-{n}") for n in range(5000))])
    assert len(book.sessions()) == NEW_BURST and "more new sessions than can be real" in book.untold()[0]
    for n in range(3 * SESSIONS_MAX):
        clock.now += 2.0
        book.take([answer(f"b-{n}"), answer("kept")])
    known = {one.session for one in book.sessions()}
    assert len(known) <= SESSIONS_MAX and "kept" in known and f"b-{3 * SESSIONS_MAX - 1}" in known


def test_when_there_is_no_room_nobody_who_still_speaks_is_put_out(
    book: TelemetryBook, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(otlp_book, "SESSIONS_MAX", 3)
    book.take(answer(f"a-{n}") for n in range(4))
    assert {one.session for one in book.sessions()} == {"a-0", "a-1", "a-2"} and "more than 3 sessions" in book.untold()[0]
    clock.now += QUIET_S + 1
    book.take([answer("a-1", "r-9"), answer("new")])
    assert {one.session for one in book.sessions()} == {"a-1", "a-2", "new"}


def test_a_session_that_is_silent_for_long_is_forgotten(book: TelemetryBook, clock: Clock) -> None:
    book.take([answer()])
    clock.now += FORGET_S - 1
    assert book.sessions()
    clock.now += 2
    assert book.sessions() == []


def test_ids_of_answers_are_bounded(book: TelemetryBook, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(otlp_book, "ANSWERS_MAX", 10)
    book.take(answer(request=f"r-{n}") for n in range(50))
    assert len(book._answers) == 10


def test_answers_that_wait_for_a_price_are_bounded_and_the_others_unpriced(book: TelemetryBook, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(otlp_book, "PENDING_MAX", 2)
    said: dict[str, Any] = {"conversation.id": "c", "event.kind": "response.completed", "input_token_count": "5", "output_token_count": 1}
    book.take(Item("logs", "codex.sse_event", said | {"event.timestamp": f"t{n}"}) for n in range(3))
    assert (len(book.pending()), book.sessions()[0].unpriced, book.pending()) == (2, 1, [])


def test_codex_cannot_have_cached_more_than_it_sent(book: TelemetryBook) -> None:
    said: dict[str, Any] = {"conversation.id": "c", "event.kind": "response.completed", "input_token_count": 5, "output_token_count": 1}
    book.take([Item("logs", "codex.sse_event", said | {"cached_token_count": 6})])
    assert book.sessions()[0].usage.tokens == 0 and "more cached input than input" in book.untold()[0]


def test_spans_of_any_program_tell_tokens_once_and_sums_of_spans_below_are_left_out(book: TelemetryBook) -> None:
    said: dict[str, Any] = {
        "gen_ai.conversation.id": "c-1",
        "gen_ai.usage.input_tokens": 60,
        "gen_ai.usage.output_tokens": "7",
        "gen_ai.request.model": "g",
    }
    chat = Item("traces", "chat g", said, ident="t.1")
    book.take([chat, chat, Item("traces", "invoke_agent", said | {"gen_ai.operation.name": "invoke_agent"}, ident="t.0")])
    (one,) = book.sessions()
    assert (one.usage.tokens, one.usage.iterations, one.unpriced, one.model) == (67, 1, 1, "g")


T1, T2 = "0af7651916cd43dd8448eb211c80319c", "1" * 32


def span(trace: str, ident: str, **said: Any) -> Item:
    """One answer of a model, of no conversation."""
    told = {"service.name": "svc", "service.instance.id": "i-1", "gen_ai.provider.name": "openai", "gen_ai.request.model": "gpt-4o"}
    told |= {"gen_ai.usage.input_tokens": 1000, "gen_ai.usage.output_tokens": 100} | {k.replace("__", "."): v for k, v in said.items()}
    return Item("traces", "chat", {name: value for name, value in told.items() if value is not None}, ident=f"{trace}.{ident}")


def priced(book: TelemetryBook) -> dict[str, tuple[float, int]]:
    """(USD, unpriced answers) by session, as the source does it."""
    rates = RateBook(VENDORS)
    for answer in book.pending():
        book.priced(answer, rates.price(answer))
    return {one.session: (round(one.usage.cost_usd, 9), one.unpriced) for one in book.sessions()}


@pytest.mark.parametrize(
    ("provider", "model", "usd"),
    [
        ("openai", "gpt-4o", 0.0035),
        ("OpenAI", "gpt-4o", 0.0035),
        ("anthropic", "claude-sonnet-4-5", 0.0045),
        ("gcp.gemini", "gemini-2.5-pro", 0.00225),
        ("vertex_ai", "gemini-2.5-pro", 0.00225),
        ("mistral_ai", "mistral-large-latest", 0.0026),
        ("aws.bedrock", "anthropic.claude-sonnet-4-20250514-v1:0", 0.0045),
        ("azure.ai.openai", "gpt-4o", 0.0035),
    ],
)
@pytest.mark.parametrize("name", ["gen_ai.provider.name", "gen_ai.system"])
def test_the_provider_that_a_span_names_prices_it(book: TelemetryBook, provider: str, model: str, usd: float, name: str) -> None:
    said = {"gen_ai.provider.name": None, name: provider, "gen_ai.request.model": model, "gen_ai.conversation.id": "c"}
    book.take([span(T1, "a", **said), span(T1, "a", **said)])
    assert priced(book) == {"c": (usd, 0)}


def test_a_provider_or_model_that_is_not_known_is_unpriced_and_never_free(book: TelemetryBook) -> None:
    odd: list[dict[str, Any]] = [
        {"gen_ai.provider.name": "my-gateway"},
        {"gen_ai.provider.name": None},
        {"gen_ai.request.model": "made-up"},
    ]
    book.take(span(T1, f"{n}", **one, **{"gen_ai.conversation.id": "c"}) for n, one in enumerate(odd))
    assert priced(book) == {"c": (0.0, 3)}


def test_what_came_from_a_cache_is_priced_as_that(book: TelemetryBook) -> None:
    claude = {"gen_ai.provider.name": "anthropic", "gen_ai.request.model": "claude-sonnet-4-5", "gen_ai.usage.output_tokens": 0}
    cached = {"gen_ai.usage.cache_read.input_tokens": 600, "gen_ai.usage.cache_creation.input_tokens": 400}
    book.take([span(T1, "a", **claude, **cached, **{"gen_ai.conversation.id": "inside"})])
    beside = cached | {"gen_ai.usage.input_tokens": 100}
    book.take([span(T1, "b", **claude, **beside, **{"gen_ai.conversation.id": "beside"})])
    assert priced(book) == {"inside": (0.00168, 0), "beside": (0.00198, 0)}


def test_spans_without_a_conversation_are_grouped_by_trace_and_service_instance(book: TelemetryBook) -> None:
    book.take([span(T1, "a"), span(T1.upper(), "b"), span(T2, "c"), span(T1, "d", **{"service.instance.id": "i-2"})])
    found = priced(book)
    assert sorted(found.values()) == [(0.0035, 0), (0.0035, 0), (0.007, 0)] and all(one.startswith("trace-") for one in found)
    # What is no answer of a model, and what names no trace, makes no row.
    book.take([Item("traces", "GET /", {"service.name": "svc"}, ident=f"{'2' * 32}.a"), span("x", "e"), span("", "f")])
    assert priced(book) == found


def test_a_trace_of_which_a_span_named_its_conversation_belongs_to_it(book: TelemetryBook) -> None:
    book.take([span(T1, "a", **{"gen_ai.conversation.id": "c"}), span(T1, "b"), span(T1, "x", **{"service.instance.id": "other"})])
    assert {name: usd for name, (usd, _) in priced(book).items() if name == "c"} == {"c": 0.007} and len(book.sessions()) == 2


def test_refusals_are_told_once_in_a_while_with_their_number(book: TelemetryBook, clock: Clock) -> None:
    for n in range(3):
        book.refuse("a kind", f"example {n}")
    assert book.untold() == ["refused 3 times: a kind (example 2)"]
    book.refuse("a kind")
    assert book.untold() == []
    clock.now += 61
    assert book.untold() == ["refused 1 times: a kind"] and book.refusals() == 4
