"""The headline of a receipt in words. That it agrees with the exit code is in test_verdict.py."""

from __future__ import annotations

from dataclasses import replace

import pytest

from console.domain.headline import headline_of
from console.domain.kill import Outcome, Receipt, decided
from tests.unit.domain.test_verdict import STEPS, connection, receipt


def test_a_connection_whose_program_was_not_found_names_where_it_led() -> None:
    made = receipt(Outcome.PROVEN_ZERO, connections=(replace(connection(""), peer_pid=0),))
    assert "1 agent had connections to other programs: a program that was not found at 127.0.0.1:6." in headline_of(made)


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (receipt(), "Nothing that is held here was running."),
        (receipt(only_seen=0), "Nothing was running."),
        (receipt(only_seen=0, steps=STEPS[:5]), "Nothing on the guard's record was running."),
        (decided(receipt(only_seen=0, steps=STEPS[:5]), "no supervisor"), "Nothing on the guard's record was running."),
        (receipt(only_seen=2), "Nothing that is held here was running. 2 observed agents were not stopped."),
        (receipt(Outcome.BEST_EFFORT), "No agent is confirmed dead. 1 agent best effort: no proof is possible."),
        (receipt(Outcome.PROVEN_ZERO, watch_until=1.0), "watching until"),
        (receipt(Outcome.PROVEN_ZERO, Outcome.DYING), "NOT PROVEN: 1 of 2 agents may still run. 1 of 2 agents confirmed dead."),
    ],
)
def test_the_headline_in_words(made: Receipt, words: str) -> None:
    assert words in headline_of(made)
