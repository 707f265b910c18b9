"""The tables as declared are the tables on disk; hostile text comes back byte for byte (R4, L2)."""

from __future__ import annotations

import sqlite3

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from console.ledger.store import Ledger
from console.ledger.tables import INT64_MAX, METADATA, int64, storable

HOSTILE = [
    "",
    "secret",
    '"secret"',
    "bob\n2026 INFO kill OFF",
    "a\0b",
    "\ud800 lone",
    "\udcff from a file name",
    "' OR 1=1 --",
    "\\n \\\\",
    "\u202e\u2066\x1b[31m",
    "NaN",
    "1e5",
    "007",
]


def test_declared_columns_are_those_on_disk(ledger: Ledger) -> None:
    with sqlite3.connect(ledger.path) as connection:
        for table in METADATA.sorted_tables:
            on_disk = [row[1] for row in connection.execute(f"PRAGMA table_info({table.name})")]
            assert on_disk == [column.name for column in table.columns]
    connection.close()


@pytest.mark.parametrize("text", HOSTILE)
def test_text_is_kept_exactly_wherever_it_goes(ledger: Ledger, text: str) -> None:
    ledger.kv_set(text, text)
    ledger.add_events([(text, 1.0, text, text)])
    assert ledger.kv_get(text) == text
    [line] = ledger.events(text)
    assert (line.agent_id, line.kind, line.text) == (text, text, text)


@given(text=st.text(st.characters(codec=None, exclude_categories=()), max_size=50))
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_any_text_is_kept_exactly(ledger: Ledger, text: str) -> None:
    ledger.kv_set("k", text)
    assert ledger.kv_get("k") == text


def test_numbers_stay_within_what_sqlite_holds() -> None:
    assert int64(10**30) == INT64_MAX
    assert int64(-(10**30)) == -INT64_MAX
    assert int64(7) == 7


def test_storable_keeps_text_as_text() -> None:
    assert storable("x\0y") == "x\0y"
    assert storable("\ud800") == b"\xed\xa0\x80"


def test_a_value_of_another_type_reads_as_its_text(ledger: Ledger) -> None:
    with sqlite3.connect(ledger.path) as connection:
        connection.execute("INSERT INTO kv VALUES ('n', 5), ('b', x'ff41')")
    connection.close()
    assert ledger.kv_get("n") == "5"
    assert ledger.kv_get("b") == "\\xffA"
