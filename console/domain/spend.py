"""What one answer of a model used and cost: counts of tokens, and money in whole nano-dollars, so that sums are exact."""

from __future__ import annotations

from typing import NamedTuple

NANO = 10**9
"""Nano-dollars in a dollar."""
ID_PARTS = " "
"""Between the parts of an answer's id."""
MOST_TOKENS = 10**9
"""Of one kind in one answer; more is no count that a model gave."""


class Tokens(NamedTuple):
    """What one answer used. The kinds do not overlap: ``plain`` is input that no cache had."""

    plain: int = 0
    cache_read: int = 0
    cache_write_5m: int = 0
    cache_write_1h: int = 0
    output: int = 0
    """Reasoning included."""
    web_searches: int = 0

    @property
    def input(self) -> int:
        """All input, as tiers of prices count it."""
        return self.plain + self.cache_read + self.cache_write_5m + self.cache_write_1h

    @property
    def total(self) -> int:
        """Everything but searches."""
        return self.input + self.output

    def is_sane(self) -> bool:
        """Whether every count is one that a model can have given."""
        return (
            0 <= self.plain <= MOST_TOKENS
            and 0 <= self.cache_read <= MOST_TOKENS
            and 0 <= self.cache_write_5m <= MOST_TOKENS
            and 0 <= self.cache_write_1h <= MOST_TOKENS
            and 0 <= self.output <= MOST_TOKENS
            and 0 <= self.web_searches <= MOST_TOKENS
        )


def with_input(answer_id: str, tokens: Tokens) -> str:
    """The id of one answer where a gateway may give several the same: their input differs, and whatever repeats an answer repeats its."""
    return f"{answer_id}{ID_PARTS}{tokens.plain} {tokens.cache_read} {tokens.cache_write_5m + tokens.cache_write_1h}"


class Answer(NamedTuple):
    """One answer of a model, as a program that asked for it wrote it down.

    A tuple, since histories hold a hundred thousand of them: it is made in a quarter of the time that a frozen dataclass takes.
    """

    source: str
    """Name of the agent kind's transcripts."""
    answer_id: str
    """The model vendor's id of it: one id, one answer, however often it is written."""
    at: float
    """Seconds since the epoch; 0: not known."""
    model: str
    tier: str
    """Service tier, or empty for the standard one."""
    session: str
    """Of the tree it belongs to."""
    agent: str
    """The sub-agent's id, or empty for the session's own."""
    project: str
    """The folder it worked in."""
    tokens: Tokens
    reported_nano: int | None = None
    """What the program itself says it cost, or None."""
    uid: int = -1
    """The owner of the file that reports it: it counts for this account's sessions only. -1: not known."""
    ours: bool = False
    """Whether the file lies in the home of an agent that was started here."""
