"""Fault 16: two consoles at once. A kill wins over whatever the other one does, and both see the same soon."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from console.api.client.api_client import ApiClient
from console.domain.errors import ConsoleError
from tests.fakes.instance import until
from tests.fakes.invariants import check_invariants
from tests.fault.conftest import Make


def seen(console: ApiClient) -> tuple[object, ...]:
    """What a person sees of the switch; without ages and clocks."""
    view = console.kill_switch()
    return view.state, view.kill_id, view.reason, view.by, sorted((r.kill_id, r.complete) for r in view.receipts)


def test_a_kill_beside_any_act_of_another_console_ends_killed_and_both_agree(broken: Make, full_counts: bool) -> None:
    it = broken()
    it.start()
    one, two = it.api, it.another()
    chance = random.Random()  # noqa: S311 - not for secrets
    for _ in range(30 if full_counts else 3):
        kill = one.activate("looked at")
        it.receipt_of(kill.kill_id)
        acts: list[Callable[[], object]] = [
            partial(two.rearm, "the other console", kill_id=kill.kill_id),
            partial(two.launch, it.body("sleep", "300")),
            partial(two.activate, "the other one too"),
        ]
        chance.shuffle(acts)

        def other(acts: list[Callable[[], object]] = acts) -> None:
            for act in acts:
                with suppress(ConsoleError):
                    act()

        thread = threading.Thread(target=other)
        pause = chance.random() * 0.03
        thread.start()
        time.sleep(pause)
        last = one.activate("the press that counts")
        thread.join()
        it.receipt_of(last.kill_id)
        until(lambda: one.kill_switch().state == two.kill_switch().state == "killed", words="both see it killed")
        until(lambda: seen(one) == seen(two), words="both see the same")
        until(lambda: all(r.complete for r in one.receipts().receipts), words="every receipt is complete")
        check_invariants(it.places, killed=True)
        it.api.rearm("next")
        check_invariants(it.places, killed=False)
