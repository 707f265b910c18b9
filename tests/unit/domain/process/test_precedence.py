"""Who goes first: threads that carry out kills, until the last is over."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from console.domain.process.precedence import Precedence


def on_a_thread(work: Callable[[], object]) -> None:
    """The runner's own thread keeps its place, whatever fails."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(work).result()


@pytest.mark.parametrize("kills", [1, 2])
def test_a_thread_that_carries_out_kills_is_real_time_until_the_last_is_over(kills: int) -> None:
    def work() -> None:
        first, own = Precedence(), os.sched_getscheduler(0)
        threads = [first.take() for _ in range(kills)]
        inside = os.sched_getscheduler(0)
        assert inside in (os.SCHED_RR, own)  # a cgroup may have no real-time budget
        for thread in threads:
            assert os.sched_getscheduler(0) == inside
            first.give_back(thread)
        assert os.sched_getscheduler(0) == own

    on_a_thread(work)
