"""Requests in the audit: a digest that holds every one of them, and the blocked ones by name."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest

from console.audit.log import AuditLog
from console.domain.network import EgressRecord
from console.ledger.store import Ledger
from console.services.records import egress_seal
from console.services.records.egress_seal import EVERY_S, NAMED, EgressSeal, left_over, line_of
from console.services.records.record_writer import Scribe

ONE = EgressRecord(1000.0, "a-1", "GET", "api.example.com", "/v1", 200, 10, 20, True, "entry e1")
BLOCKED = replace(ONE, at=1001.0, host="evil.example", allowed=False, status=403, rule="not in allowlist")


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_some_seconds_of_requests_become_one_entry() -> None:
    clock = Clock()
    seal = EgressSeal(clock)
    seal.add([ONE, BLOCKED], 2)
    assert seal.due() is None
    seal.add([BLOCKED], 3)
    clock.now = EVERY_S
    entry = seal.due()
    assert entry is not None and entry.kind == "egress.requests" and entry.what == "3 requests through the portals, 2 blocked"
    assert entry.data["sha256"] == hashlib.sha256(line_of(ONE) + 2 * line_of(BLOCKED)).hexdigest()
    assert entry.data["blocked_most"] == [{"agent_id": "a-1", "asked": "GET evil.example", "why": "not in allowlist", "times": 2}]
    assert (entry.data["first_at"], entry.data["last_at"], entry.verdict) == (1000.0, 1001.0, "deny")
    clock.now = 3 * EVERY_S
    assert seal.due() is None  # nothing since


def test_any_change_of_any_field_changes_the_digest() -> None:
    changed = [
        replace(ONE, at=2.0), replace(ONE, agent_id="b"), replace(ONE, method="POST"), replace(ONE, host="x"), replace(ONE, path="/"),
        replace(ONE, status=1), replace(ONE, bytes_up=1), replace(ONE, bytes_down=1), replace(ONE, allowed=False), replace(ONE, rule="r"),
    ]  # fmt: skip
    lines = {line_of(one) for one in (ONE, *changed)}
    assert len(lines) == 11
    assert b"\n" not in line_of(replace(ONE, host="a\nb\ud800"))[:-1]


def test_an_agent_that_asks_for_everything_makes_no_longer_entry() -> None:
    seal = EgressSeal()
    seal.add((replace(BLOCKED, host=f"h{n}" + "x" * 1000) for n in range(5000)), 5000)
    entry = seal.due(last=True)
    assert entry is not None and entry.data["blocked"] == 5000
    named = entry.data["blocked_most"]
    assert len(named) == NAMED + 1 and sum(n["times"] for n in named) == 5000 and len(str(entry.data)) < 12_000


def test_what_the_ledger_holds_at_the_end_is_in_the_chain(tmp_path: Path) -> None:
    ledger, audit = Ledger(tmp_path / "l.db"), AuditLog(tmp_path / "audit.db")
    scribe = Scribe(ledger, audit, lambda _: None, lambda _: None)
    scribe.egress(ONE)
    scribe.egress(BLOCKED)
    scribe.close()
    (row,) = [r for r in audit.page(None, 10, "") if r.kind == "egress.requests"]
    kept, _ = ledger.egress_since(0.0)
    digest = hashlib.sha256(b"".join(line_of(r) for r in sorted(kept, key=lambda r: r.at)))
    assert row.data["sha256"] == digest.hexdigest() and row.data["requests"] == 2
    audit.close()
    ledger.close()


def test_what_a_killed_supervisor_had_not_sealed_is_sealed_at_the_next_start_and_nothing_twice(tmp_path: Path) -> None:
    ledger, audit = Ledger(tmp_path / "l.db"), AuditLog(tmp_path / "audit.db")
    assert left_over(ledger, audit) is None
    sealed = EgressSeal()
    sealed.add([ONE], ledger.add_egress([ONE]))
    entry = sealed.due(last=True)
    assert entry is not None
    audit.append("supervisor", entry.kind, entry.what, data=entry.data)
    audit.append("agent:a-1", "note", "egress.requests", data={"last_row": 99})  # somebody's words are no seal
    assert left_over(ledger, audit) is None
    ledger.add_egress([BLOCKED, ONE])  # and then the kill
    scribe = Scribe(ledger, audit, lambda _: None, lambda _: None)
    scribe.complete_egress()
    scribe.egress(ONE)
    scribe.close()
    newest, completed, first = (r for r in audit.page(None, 10, "") if r.kind == "egress.requests")
    assert completed.what.startswith(
        "2 requests through the portals, 1 blocked, completed from the ledger: the supervisor before was ended"
    )
    assert completed.data["sha256"] == hashlib.sha256(line_of(BLOCKED) + line_of(ONE)).hexdigest()
    assert [first.data["last_row"], completed.data["last_row"], newest.data["last_row"]] == [1, 3, 4]
    assert left_over(ledger, audit) is None
    audit.close()
    ledger.close()


def test_of_too_many_rows_the_newest_are_sealed_and_it_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(egress_seal, "MOST_COMPLETED", 3)
    monkeypatch.setattr(egress_seal, "PAGE", 2)
    ledger, audit = Ledger(tmp_path / "l.db"), AuditLog(tmp_path / "audit.db")
    ledger.add_egress([ONE] * 10)
    entry = left_over(ledger, audit)
    assert entry is not None and entry.data["requests"] == 3 and "7 older rows are in the ledger alone" in entry.what
    audit.close()
    ledger.close()
