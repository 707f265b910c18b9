"""Money in sentences."""

from __future__ import annotations

from console.domain.amounts import cap_usd, usd
from console.wording.limits import with_limits


def test_a_spend_below_a_cent_is_never_zero() -> None:
    assert [usd(value) for value in (None, 0.0, 0.0049, 0.006, 1234.5)] == ["unknown", "$0.00", "<$0.01", "$0.01", "$1,234.50"]


def test_a_limit_keeps_its_parts_of_a_cent() -> None:
    shown = [cap_usd(value) for value in (0.045, 0.0606, 25.0, 2.5, 0.0, 1e7, float("inf"), 1e-7, 12.0000001, float("nan"))]
    assert shown == ["$0.045", "$0.0606", "$25.00", "$2.50", "$0.00", "$10.0 M", "$?", "<$0.01", "$12.00", "$?"]
    assert with_limits("agent limit cost_usd: 0.0505 of 0.045.") == "cost $0.0505 of $0.045 (agent limit)."
    assert with_limits("agent limit cost_usd: 1.1 of 1") == "cost $1.10 of $1.00 (agent limit)"
