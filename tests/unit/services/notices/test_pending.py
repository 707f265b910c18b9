"""Notices reach every reader once, in order, and no more are kept than are read."""

from __future__ import annotations

from console.domain.agent import AgentId
from console.services.notices.pending import AGENTS_MAX, HEAD, KEPT, PendingNotices

A, SUB = AgentId("a-1"), AgentId("o-2")


def test_a_notice_is_told_once_to_an_agent_and_once_to_each_that_works_in_it() -> None:
    pending = PendingNotices()
    assert pending.take(A) == ""
    pending.add(A, "first")
    pending.add(A, "second")
    assert pending.take(SUB, inside=A) == f"{HEAD}first\nsecond" and pending.take(SUB, inside=A) == ""
    assert pending.take(A) == f"{HEAD}first\nsecond" and pending.take(A) == ""
    pending.add(A, "third")
    pending.add(SUB, "its own")
    assert pending.take(SUB, inside=A) == f"{HEAD}third\nits own" and pending.take(A) == f"{HEAD}third"


def test_it_is_bounded() -> None:
    pending = PendingNotices()
    for number in range(KEPT + 5):
        pending.add(A, f"n{number}")
    told = pending.take(A)
    assert "n4" not in told.split() and f"n{KEPT + 4}" in told
    for number in range(AGENTS_MAX + 1):
        pending.add(AgentId(f"b-{number}"), "x")
    assert pending.take(AgentId("b-0")) == "" and pending.take(AgentId("b-5"))
