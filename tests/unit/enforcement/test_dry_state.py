"""Nobody's row takes anybody out of dry-run."""

from __future__ import annotations

from dataclasses import replace

from console.domain.agent import AgentId
from tests.fakes.playbook import Playbook


def test_a_row_that_is_written_anew_stays_in_dry_run_unless_an_operator_takes_it_out() -> None:
    book = Playbook().run("a")
    state = book.state
    state.put(replace(book.agent("a"), dry_run="by operator:0: look"))
    assert state.put(replace(book.agent("a"), dry_run="")).dry_run == "by operator:0: look"
    assert state.dry_run.marked == {AgentId("a")}
    state.dry_run.leaving.add(AgentId("a"))
    assert state.put(replace(book.agent("a"), dry_run="")).dry_run == "" and not state.dry_run.marked
