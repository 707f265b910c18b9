"""Price the answers of models, by the price table of genai-prices.

A price is linear in its counts for one model, day, service tier and step of total input. The table is asked once for each of these, and the
rates are kept: asking it for every answer of a long history takes minutes. A model that the table does not know is unpriced, never free.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from console.domain.spend import NANO, Answer, Tokens
from console.sources.spend.vendors import STEP_MISSING

_PROBE = 10**6
_FEMTO = 10**6
"""Femto-dollars in a nano-dollar."""
_HALF = _FEMTO // 2
_LATEST = 4e9
_CARDS_MAX = 10_000
_NAME_MAX = 200
_LONG_INPUT = 200_000


@dataclass(frozen=True, slots=True)
class Rates:
    """Femto-dollars for one of each, within one step of total input: whole numbers, since this is asked for every answer of a history."""

    plain: int
    cache_read: int
    cache_write_5m: int
    cache_write_1h: int
    output: int
    web_search: int

    def of(self, t: Tokens) -> int:
        """Whole nano-dollars."""
        femto = (
            t.plain * self.plain
            + t.cache_read * self.cache_read
            + t.cache_write_5m * self.cache_write_5m
            + t.cache_write_1h * self.cache_write_1h
            + t.output * self.output
            + t.web_searches * self.web_search
        )
        return (femto + _HALF) // _FEMTO

    def above_step(self) -> Rates:
        """The same where a vendor's sheet doubles every kind of input and adds half to the output."""
        written, written_1h = 2 * self.cache_write_5m, 2 * self.cache_write_1h
        return Rates(2 * self.plain, 2 * self.cache_read, written, written_1h, self.output * 3 // 2, self.web_search)


@dataclass(frozen=True, slots=True)
class _Card:
    """Rates by total input: ``steps[n]`` holds above ``starts[n - 1]``."""

    starts: tuple[int, ...]
    steps: tuple[Rates, ...]

    def of(self, tokens: Tokens) -> int:
        above = sum(1 for start in self.starts if tokens.input > start) if self.starts else 0
        return self.steps[above].of(tokens)


class RateBook:
    """Prices answers. The table is imported when the first one is asked for: that takes half a second to some seconds."""

    def __init__(self, vendors: Mapping[str, str], load: Callable[[], Any] | None = None) -> None:
        """``vendors``: of a source whose models have one; others' models begin with their vendor and a slash."""
        self._vendors, self._load = vendors, load or _genai_prices
        self._table: Any = None
        self._cards: dict[tuple[str, str, str, str], _Card | None] = {}
        self._dated: dict[tuple[str, str], bool] = {}

    @property
    def version(self) -> str:
        """Of the price table, as it is kept with every price."""
        return f"genai-prices {self._use().__version__}"

    def price(self, answer: Answer) -> int | None:
        """Nano-dollars, or None: unpriced."""
        vendor, model = self._vendors.get(answer.source, ""), answer.model
        if not vendor and "/" in model:
            vendor, _, model = model.partition("/")
        if not model or len(model) > _NAME_MAX or not answer.tokens.is_sane():
            return None
        # A model whose prices never changed has one card; others one for each day.
        at = answer.at if 0 < answer.at < _LATEST else 0.0
        day = _day(at) if self._dated.get((vendor, model), True) else ""
        key = (vendor, model, answer.tier, day)
        if len(self._cards) > _CARDS_MAX:  # models that were made up
            self._cards.clear()
            self._dated.clear()
        if key not in self._cards:
            card = self._cards[key] = self._card(vendor, model, answer.tier, at)
            if not self._is_dated(vendor, model):
                self._cards[vendor, model, answer.tier, ""] = card
        card = self._cards[key]
        return None if card is None else card.of(answer.tokens)

    def _use(self) -> Any:
        if self._table is None:
            self._table = self._load()
        return self._table

    def _is_dated(self, vendor: str, model: str) -> bool:
        return self._dated.get((vendor, model), True)

    def _card(self, vendor: str, model: str, tier: str, at: float) -> _Card | None:
        table = self._use()
        context = {"service_tier": tier} if tier else None
        when = datetime.fromtimestamp(at, tz=UTC) if at else datetime.now(tz=UTC)

        def ask(**counts: int) -> Any:
            # A count that the table does not know would be billed at another rate, with a mere warning. Collected and not raised: other
            # threads' warnings come here too while this lasts.
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                found = _asked(table, table.Usage(**counts), model, vendor, when, context)
            if any("genai" in str(one.filename) or one.category is UserWarning for one in said):
                raise ValueError("a count has no rate of its own")
            return found

        try:
            first = ask(input_tokens=1)
            self._dated[vendor, model] = isinstance(first.model.prices, list)
            tiered = (value for value in vars(first.model_price).values() if hasattr(value, "tiers"))
            starts = sorted({tier.start for value in tiered for tier in value.tiers})
            steps = tuple(_rates(ask, total + 1) for total in (0, *starts))
            if not starts and (first.provider.id, first.model.id) in STEP_MISSING:
                return _Card((_LONG_INPUT,), (*steps, steps[0].above_step()))
            return _Card(tuple(starts), steps)
        except (LookupError, ValueError, ArithmeticError, TypeError, AttributeError):
            self._dated.setdefault((vendor, model), False)
            return None


def _rates(ask: Callable[..., Any], total: int) -> Rates:
    """The rates at this total of input."""

    def cost(**counts: int) -> Decimal:
        return Decimal(ask(**counts).total_price) * NANO * _FEMTO

    plain = cost(input_tokens=total)
    return Rates(
        _whole(plain / total),
        _whole(cost(input_tokens=total, cache_read_tokens=total) / total),
        _whole(cost(input_tokens=total, cache_write_tokens=total) / total),
        _whole(cost(input_tokens=total, cache_write_tokens=total, cache_write_1h_tokens=total) / total),
        _whole((cost(input_tokens=total, output_tokens=_PROBE) - plain) / _PROBE),
        _whole((cost(input_tokens=total, web_searches=_PROBE) - plain) / _PROBE),
    )


def _whole(rate: Decimal) -> int:
    return int(rate.to_integral_value())


def _asked(table: Any, usage: Any, model: str, vendor: str, when: datetime, context: dict[str, str] | None) -> Any:
    """By the program's own vendor first: others sell models of the same name at other prices."""
    try:
        return table.calc_price(usage, model, provider_id=vendor or None, genai_request_timestamp=when, price_context=context)
    except LookupError:
        return table.calc_price(usage, model, genai_request_timestamp=when, price_context=context)


def _genai_prices() -> Any:
    import genai_prices

    return genai_prices


def _day(at: float) -> str:
    return datetime.fromtimestamp(at, tz=UTC).strftime("%Y-%m-%d") if at else ""
