from __future__ import annotations

from datetime import datetime

import pytest

from console.domain.errors import UsageProblem
from console.ledger.spending import Spend, SpendSample
from console.ledger.store import Ledger

NOON = datetime(2026, 3, 4, 12, 0).timestamp()


def test_sums_since_a_time_for_all_or_a_tree(ledger: Ledger) -> None:
    ledger.add_spends(
        [SpendSample("a1", "a1", 10.0, 0.5, 100), SpendSample("a2", "a1", 20.0, 0.25, 50), SpendSample("b", "b", 20.0, 1.0, 1)]
    )
    assert ledger.spend_since(0) == Spend(1.75, 151)
    assert ledger.spend_since(20.0) == Spend(1.25, 51)
    assert ledger.spend_since(1e12) == Spend(0.0, 0)


def test_today_begins_at_midnight_and_a_clock_set_back_hides_nothing(ledger: Ledger) -> None:
    ledger.add_spends([SpendSample("a", "a", NOON - 86_400, 5.0, 1), SpendSample("a", "a", NOON, 1.0, 1)])
    assert ledger.spend_today(NOON + 60) == Spend(1.0, 1)
    assert ledger.spend_today(NOON - 3600) == Spend(1.0, 1)


@pytest.mark.parametrize("cost", [float("nan"), float("inf"), -0.01, 1e300, "1", True])
def test_absurd_money_is_refused_and_nothing_of_the_batch_stays(ledger: Ledger, cost: float) -> None:
    with pytest.raises(UsageProblem):
        ledger.add_spends([SpendSample("a", "a", 1.0, 1.0, 0), SpendSample("a", "a", 1.0, cost, 0)])
    assert ledger.spend_since(0) == Spend(0.0, 0)


@pytest.mark.parametrize("tokens", [-1, 1.5, 10**16])
def test_absurd_tokens_are_refused(ledger: Ledger, tokens: int) -> None:
    with pytest.raises(UsageProblem):
        ledger.add_spends([SpendSample("a", "a", 1.0, 0.0, tokens)])
