"""When an edit takes something away."""

from __future__ import annotations

from dataclasses import replace

import pytest

from console.domain.network import Allowlist, AllowlistEntry
from console.egress.live import shrank

ONE = AllowlistEntry("e1", "a.test", 80, ("GET",), ("/v1",), "reason", "owner", private_networks=("10.0.0.0/8",))
TWO = AllowlistEntry("e2", "b.test", reason="reason", owner="owner")


def test_additions_and_paperwork_take_nothing_away() -> None:
    assert not shrank(Allowlist(), Allowlist(1, (ONE,)))
    assert not shrank(Allowlist(1, (ONE,)), Allowlist(2, (TWO, ONE)))
    assert not shrank(Allowlist(1, (ONE,)), Allowlist(2, (replace(ONE, reason="other", owner="x", review_by="2030-01-01", entry_id="e9"),)))


@pytest.mark.parametrize("change", [{"host": "c.test"}, {"port": 81}, {"methods": ()}, {"paths": ("/v1", "/v2")}, {"private_networks": ()}])
def test_every_other_change_counts_as_a_shrink(change: dict[str, object]) -> None:
    assert shrank(Allowlist(1, (ONE,)), Allowlist(2, (replace(ONE, **change),)))  # type: ignore[arg-type]


def test_removal_is_a_shrink() -> None:
    assert shrank(Allowlist(1, (ONE, TWO)), Allowlist(2, (ONE,)))
    assert shrank(Allowlist(1, (ONE,)), Allowlist())
