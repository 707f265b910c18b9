"""Judged calls: kept whole or not at all, bounded, counted by rule."""

from __future__ import annotations

import pytest

from console.ledger import calls
from console.ledger.calls import JudgedCall, RuleHits
from console.ledger.store import Ledger


def call(number: int, **fields: object) -> JudgedCall:
    given: dict[str, object] = {"at": float(number), "agent_id": "a", "context_id": "c", "tool": "shell", "argument": f"ls {number}"}
    given |= {"cwd": "/w", "verdict": "allow", "rule": "shell(ls:*)"}
    return JudgedCall(**(given | fields))  # type: ignore[arg-type]


def test_they_read_back_newest_first_hostile_text_included(ledger: Ledger) -> None:
    ledger.add_calls([call(1), call(2, argument="\u202e\udc80\n"), call(3)])
    assert ledger.calls_since(2.0, 10) == [call(3), call(2, argument="\u202e\udc80\n")]
    assert ledger.calls_since(0.0, 1) == [call(3)]


def test_the_oldest_go_and_what_is_too_long_is_not_kept_in_part(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "KEPT_MAX", 3)
    for number in range(6):
        ledger.add_calls([call(number)])
    ledger.add_calls([call(9, argument="x" * 8193)])
    assert [c.at for c in ledger.calls_since(0.0, 10)] == [5.0, 4.0, 3.0]


def test_rules_are_counted_with_their_last_use(ledger: Ledger) -> None:
    ledger.add_calls([call(1), call(2), call(3, rule="no rule", verdict="ask")])
    assert ledger.rule_hits(0.0) == [RuleHits("shell(ls:*)", "allow", 2, 2.0), RuleHits("no rule", "ask", 1, 3.0)]
    assert ledger.rule_hits(3.0) == [RuleHits("no rule", "ask", 1, 3.0)]
