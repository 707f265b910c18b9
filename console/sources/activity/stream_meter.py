"""Count what a started program has used, from what it writes: each answer of a model once, at its largest, and priced.

Everything here only grows. A line that names an answer again with less changes nothing. One that names it with more adds the difference. So
a program cannot hide an answer by naming its id beforehand with nothing in it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from console.domain.spend import NANO, Answer, Tokens

MOST_ANSWERS = 20_000
"""Answers remembered; one that is named again after so many others counts again, which errs on the side of the cap."""
MOST_UNPRICED = 50


@dataclass(frozen=True, slots=True)
class Increment:
    """What came on top."""

    answers: int = 0
    tokens: int = 0
    nano: int = 0

    @property
    def usd(self) -> float:
        """In dollars."""
        return self.nano / NANO


class StreamMeter:
    """Of one program."""

    def __init__(self, price: Callable[[Answer], int | None]) -> None:
        """``price``: nano-dollars of an answer, or None: unpriced."""
        self._price = price
        self._answers: OrderedDict[str, tuple[Tokens, int]] = OrderedDict()
        self.nano = 0
        """Charged so far."""
        self.tokens = 0
        self.answers = 0
        self.unpriced: set[str] = set()
        """Models without a price: what they cost is not in ``nano``."""

    def charge(self, answer: Answer) -> Increment:
        """Counts what this line adds to its answer."""
        before, cost_before = self._answers.pop(answer.answer_id, (Tokens(), -1))
        now = Tokens(*map(max, before, answer.tokens))
        price = self._price(answer._replace(tokens=now))
        if price is None and len(self.unpriced) < MOST_UNPRICED:
            self.unpriced.add(answer.model[:200])
        cost = max(cost_before, price or 0, 0)
        self._answers[answer.answer_id] = (now, cost)
        while len(self._answers) > MOST_ANSWERS:
            self._answers.popitem(last=False)
        return self._add(Increment(int(cost_before < 0), now.total - before.total, cost - max(cost_before, 0)))

    def total(self, usd: float | None, tokens: int) -> Increment:
        """The program's own sums: what they name beyond ours is charged too (answers that were never seen to their end)."""
        missing = 0 if usd is None else max(0, round(usd * NANO) - self.nano)
        return self._add(Increment(tokens=max(0, tokens - self.tokens), nano=missing))

    def _add(self, more: Increment) -> Increment:
        self.nano += more.nano
        self.tokens += more.tokens
        self.answers += more.answers
        return more
