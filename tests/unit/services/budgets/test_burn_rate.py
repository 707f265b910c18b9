"""Minutes of the last hour, on a clock that cannot be set, in bounded memory."""

from __future__ import annotations

import pytest

from console.domain.budget import Usage
from console.services.budgets import burn_rate
from console.services.budgets.burn_rate import BurnBook

NODE = ("tree", "a")


def test_minutes_are_sums_and_go_after_an_hour() -> None:
    book = BurnBook(0.0)
    book.add([NODE], Usage(cost_usd=0.5, tokens=3), 6000.0)
    book.add([NODE], Usage(cost_usd=0.25), 6010.0)
    book.add([NODE], Usage(cost_usd=1.0), 6065.0)
    assert book.minutes(NODE, "cost_usd", 6070.0)[-2:] == [0.75, 1.0] and book.minutes(NODE, "tokens", 6070.0)[-2:] == [3.0, 0.0]
    assert book.minutes(NODE, "cost_usd", 6000.0 + 7200) == [] and book.minutes(("tree", "b"), "cost_usd", 6000.0) == []


def test_what_uses_nothing_is_not_kept() -> None:
    book = BurnBook(0.0)
    book.add([NODE], Usage(wall_s=5.0, cpu_s=1.0), 60.0)
    assert book.minutes(NODE, "cost_usd", 60.0) == []


def test_what_lies_before_the_first_look_is_not_known() -> None:
    book = BurnBook(1000.0)
    assert book.known_min(None, 1060.0) == 1.0 and book.known_min(1030.0, 1060.0) == 0.5
    assert book.known_min(None, 900.0) == 0.0 and 59.0 <= book.known_min(None, 1e6) <= 60.0


def test_however_many_nodes_there_are_the_oldest_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(burn_rate, "NODES", 3)
    book = BurnBook(0.0)
    for n in range(5):
        book.add([("tree", str(n))], Usage(tokens=1), 60.0)
    assert [bool(book.minutes(("tree", str(n)), "tokens", 60.0)) for n in range(5)] == [False, False, True, True, True]
