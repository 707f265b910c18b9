"""Growth and fate of workspaces."""

from __future__ import annotations

import pytest

from console.policy.workspace_limits import DAY_S, Fate, Growth, Stay, fate, grown

GIB = 1 << 30


@pytest.mark.parametrize(
    ("used", "capacity", "expected"),
    [
        (0, 5, Growth(5 * GIB, False, False)),
        (4, 5, Growth(5 * GIB, False, False)),
        (4.1, 5, Growth(10 * GIB, True, False)),
        (9, 5, Growth(20 * GIB, True, False)),
        (17, 10, Growth(20 * GIB, True, False)),
        (20, 20, Growth(20 * GIB, False, True)),
        (30, 5, Growth(20 * GIB, True, True)),
        (1, 50, Growth(20 * GIB, False, False)),  # the maximum was lowered
    ],
)
def test_capacity_doubles_from_four_fifths_on(used: float, capacity: int, expected: Growth) -> None:
    assert grown(int(used * GIB), capacity * GIB, 20 * GIB) == expected


NOW = 10_000_000.0


@pytest.mark.parametrize(
    ("stay", "expected"),
    [
        (Stay(NOW - 6.9 * DAY_S, 7), Fate.STAYS),
        (Stay(NOW - 7.1 * DAY_S, 7), Fate.GOES),
        (Stay(NOW - 7.1 * DAY_S, 7, live_agents=1), Fate.STAYS),
        (Stay(NOW - 700 * DAY_S, 7, hold="evidence of k1"), Fate.HELD),
        (Stay(NOW - 8 * DAY_S, 7, held_until_now_s=2 * DAY_S), Fate.STAYS),
        (Stay(NOW + 365 * DAY_S, 7), Fate.STAYS),  # the clock went back
        (Stay(NOW, 7, stateless=True, ended_at=NOW), Fate.GOES),
        (Stay(NOW, 7, stateless=True, ended_at=NOW, hold="evidence"), Fate.HELD),
        (Stay(NOW, 7, stateless=True), Fate.STAYS),
    ],
)
def test_a_workspace_goes_when_its_time_is_over_and_nobody_needs_it(stay: Stay, expected: Fate) -> None:
    assert fate(stay, NOW) is expected
