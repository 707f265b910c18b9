"""Journal lines as audit entries."""

from __future__ import annotations

from console.supervisor.fold import record_of


def test_a_press_is_told_with_who_what_and_why() -> None:
    record = record_of({"seq": 3, "at": 1.0, "kind": "press", "scope": "all", "by": "cli", "reason": "x\ny", "kill_id": "k"})
    assert record is not None
    assert (record.actor, record.kind, record.must) == ("guard", "guard.press", True)
    assert "reason x\ny" in record.what
    assert record.data["line"] == 3


def test_a_canary_is_nobodys_doing() -> None:
    assert record_of({"seq": 1, "kind": "press", "by": "canary"}) is None


def test_a_strange_line_still_makes_an_entry() -> None:
    record = record_of({"seq": 9, "kind": "x" * 200, "agents": [1, 2] * 5000})
    assert record is not None
    assert len(record.kind) <= 60
    assert len(record.what) <= 500
