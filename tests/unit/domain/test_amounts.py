"""Money in sentences."""

from __future__ import annotations

from console.domain.amounts import usd


def test_a_spend_below_a_cent_is_never_zero() -> None:
    assert [usd(value) for value in (None, 0.0, 0.0049, 0.006, 1234.5)] == ["unknown", "$0.00", "<$0.01", "$0.01", "$1,234.50"]
