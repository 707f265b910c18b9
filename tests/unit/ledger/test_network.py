from __future__ import annotations

import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

from console.domain.errors import Conflict
from console.domain.network import Allowlist, AllowlistEntry, EgressRecord, Sensitivity
from console.ledger.store import Ledger

ENTRY = AllowlistEntry(
    "e1", "api.example.com", 443, ("GET",), ("/v1/",), "needed", "ann", "2027-01-01", Sensitivity.CONFIDENTIAL, ("10.1.0.0/16",)
)


def record(at: float, agent_id: str = "a1", allowed: bool = True, rule: str = "entry e1") -> EgressRecord:
    return EgressRecord(at, agent_id, "GET", "api.example.com", "/v1/\n\0'", 200 if allowed else 403, 5, 10**30, allowed, rule)


def test_egress_pages_newest_first_and_loses_nothing(ledger: Ledger) -> None:
    ledger.add_egress([record(float(i), f"a{i % 2}") for i in range(25)])
    seen: list[float] = []
    before: int | None = None
    while page := ledger.egress(limit=10, before_id=before):
        seen += [row.record.at for row in page]
        before = page[-1].egress_id
    assert seen == [float(i) for i in range(24, -1, -1)]
    assert [row.record.at for row in ledger.egress(limit=2, agent_id="a1")] == [23.0, 21.0]


def test_a_record_comes_back_as_it_was_but_for_absurd_counters(ledger: Ledger) -> None:
    ledger.add_egress([record(1.5)])
    [row] = ledger.egress()
    assert row.record == replace(record(1.5), bytes_down=2**63 - 1)


def test_hits_count_allowed_requests_by_entry(ledger: Ledger) -> None:
    ledger.add_egress(
        [
            record(10.0),
            record(20.0),
            record(30.0, rule="entry e2"),
            record(40.0, allowed=False, rule="GET x is outside entry e1"),
            record(41.0, allowed=False, rule="entry e1"),
            record(50.0, rule="something else"),
        ]
    )
    assert ledger.hits(15.0) == {"e1": (1, 20.0), "e2": (1, 30.0)}
    assert ledger.hits(100.0) == {"e1": (0, 20.0), "e2": (0, 30.0)}


def test_versions_are_kept_and_the_newest_holds(ledger: Ledger) -> None:
    assert ledger.allowlist() == Allowlist()
    ledger.save_allowlist(Allowlist(1, (ENTRY,)), "ann", "first", 1.0)
    ledger.save_allowlist(Allowlist(2), "bob", "nothing any more", 2.0)
    assert ledger.allowlist() == Allowlist(2)
    history = ledger.allowlist_history()
    assert [(v.allowlist.version, v.by, v.reason, v.at) for v in history] == [(2, "bob", "nothing any more", 2.0), (1, "ann", "first", 1.0)]
    assert history[1].allowlist.entries == (ENTRY,)


@pytest.mark.parametrize("version", [1, 0, 2])
def test_a_version_that_is_not_new_is_a_conflict(ledger: Ledger, version: int) -> None:
    ledger.save_allowlist(Allowlist(2, (ENTRY,)), "ann", "first", 1.0)
    with pytest.raises(Conflict):
        ledger.save_allowlist(Allowlist(version), "bob", "second", 2.0)
    assert ledger.allowlist().entries == (ENTRY,)


@pytest.mark.parametrize(
    "entries",
    [
        "not json",
        "{}x",
        "[5]",
        '[{"host": "x"}]',
        '[{"entry_id":"e1","host":"169.254.169.254","port":80,"methods":[],"paths":[],"reason":"r","owner":"o","may_receive":"PUBLIC","private_networks":[]}]',
        '[{"entry_id":"e1","host":"a.example","port":80,"methods":[],"paths":[],"reason":"r","owner":"o","may_receive":"???","private_networks":[]}]',
    ],
)
def test_a_damaged_version_denies_everything_and_says_so(ledger: Ledger, entries: str) -> None:
    ledger.save_allowlist(Allowlist(1, (ENTRY,)), "ann", "first", 1.0)
    insert(ledger.path, entries)
    assert ledger.allowlist() == Allowlist(2)
    assert [v.readable for v in ledger.allowlist_history()] == [False, True]


def insert(path: Path, entries: str) -> None:
    connection = sqlite3.connect(path)
    with connection:
        connection.execute("INSERT INTO allowlist_versions VALUES (2, ?, 'x', 'y', 0.0)", (entries,))
    connection.close()
