"""Rows of workspaces: use, holds and their time, ends, and sessions that begin anew."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from console.ledger.store import Ledger


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    made = Ledger(tmp_path / "l.db")
    yield made
    made.close()


def test_a_session_in_use_has_a_row_and_a_clock_that_went_back_makes_it_no_older(ledger: Ledger) -> None:
    ledger.use_context("c1", "coder", 100.0)
    ledger.use_context("c1", "coder", 50.0)
    (row,) = ledger.contexts()
    assert (row.context_id, row.agent, row.created_at, row.last_used, row.ended_at, row.stateless) == (
        "c1",
        "coder",
        100.0,
        100.0,
        None,
        False,
    )
    ledger.context_ended("c1", 90.0)
    ledger.contexts_measured({"c1": (2**70, False)}, 95.0)
    (row,) = ledger.contexts()
    assert (row.ended_at, row.last_used, row.complete, row.measured_at) == (90.0, 100.0, False, 95.0) and row.bytes == 2**63 - 1
    ledger.use_context("c1", "coder", 120.0)
    assert (ledger.contexts()[0].ended_at, ledger.contexts()[0].last_used) == (None, 120.0)


def test_a_stateless_run_that_is_joined_by_name_keeps_its_workspace(ledger: Ledger) -> None:
    ledger.use_context("run-1", "", 1.0, stateless=True)
    assert ledger.contexts()[0].stateless
    ledger.use_context("run-1", "", 2.0, stateless=True)
    assert ledger.contexts()[0].stateless
    ledger.use_context("run-1", "", 3.0)
    assert not ledger.contexts()[0].stateless
    ledger.use_context("run-1", "", 4.0, stateless=True)
    assert not ledger.contexts()[0].stateless


def test_the_time_of_a_hold_does_not_count(ledger: Ledger) -> None:
    assert not ledger.hold_context("nosuch", "x", 1.0)
    ledger.use_context("c1", "", 0.0)
    assert ledger.hold_context("c1", "evidence of k1", 10.0)
    assert ledger.hold_context("c1", "another reason", 20.0)
    assert (ledger.contexts()[0].hold, ledger.contexts()[0].held_at) == ("evidence of k1", 10.0)
    assert ledger.release_context("c1", 110.0) and not ledger.release_context("c1", 120.0)
    assert ledger.hold_context("c1", "again", 200.0) and ledger.release_context("c1", 250.0)
    row = ledger.contexts()[0]
    assert (row.hold, row.held_at, row.held_s) == ("", None, 150.0)
    ledger.hold_context("c1", "the clock went back", 300.0)
    ledger.release_context("c1", 200.0)
    assert ledger.contexts()[0].held_s == 150.0
    ledger.use_context("c1", "", 400.0)
    assert ledger.contexts()[0].held_s == 0.0


def test_what_went_is_not_listed_and_may_begin_anew(ledger: Ledger) -> None:
    ledger.use_context("c1", "old", 1.0)
    ledger.hold_context("c1", "x", 2.0)
    ledger.context_gone("c1", 3.0)
    assert ledger.contexts() == [] and not ledger.hold_context("c1", "x", 4.0) and not ledger.release_context("c1", 4.0)
    ledger.context_ended("c1", 4.5)
    assert ledger.contexts() == []
    ledger.use_context("c1", "new", 5.0, stateless=True)
    (row,) = ledger.contexts()
    assert (row.agent, row.created_at, row.hold, row.stateless) == ("new", 5.0, "", True)
