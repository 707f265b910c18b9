"""N9: the ratchet never goes down: restart, REPLACE, DELETE, UPDATE, parallel lowering, unknown values, an unreadable ledger."""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from console.domain.network import Allowlist, NetworkMode, Sensitivity
from console.ledger.store import Ledger

LEVELS = list(Sensitivity)


@given(
    steps=st.lists(
        st.one_of(
            st.tuples(st.just("raise"), st.sampled_from(LEVELS)),
            st.tuples(st.just("restart"), st.none()),
            st.tuples(st.just("attack"), st.sampled_from(["UPDATE", "DELETE", "REPLACE", "UPSERT"])),
        ),
        max_size=12,
    )
)
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_level_is_the_highest_ever_seen(tmp_path: Path, steps: list[tuple[str, object]]) -> None:
    path = tmp_path / "ratchet.db"
    path.unlink(missing_ok=True)
    for side in ("-wal", "-shm"):
        (tmp_path / f"ratchet.db{side}").unlink(missing_ok=True)
    ledger = Ledger(path)
    highest = Sensitivity.PUBLIC
    try:
        for what, value in steps:
            if what == "raise":
                assert isinstance(value, Sensitivity)
                ledger.raise_sensitivity("c1", value, "rows", "crm", 1.0)
                highest = max(highest, value, key=lambda s: s.level)
            elif what == "restart":
                ledger.close()
                ledger = Ledger(path)
            else:
                attack(path, str(value))
            assert ledger.level("c1") is highest
    finally:
        ledger.close()


def attack(path: Path, how: str) -> None:
    """What another connection, with SQLite's defaults, can try."""
    sql = {
        "UPDATE": "UPDATE sensitivity_events SET level='PUBLIC'",
        "DELETE": "DELETE FROM sensitivity_events",
        "REPLACE": "INSERT OR REPLACE INTO sensitivity_events SELECT seq, context_id, 'PUBLIC', '', '', 0.0, '', ''"
        " FROM sensitivity_events",
        "UPSERT": "INSERT INTO sensitivity_events SELECT seq, context_id, 'PUBLIC', '', '', 0.0, '', '' FROM sensitivity_events WHERE true"
        " ON CONFLICT(seq) DO UPDATE SET level='PUBLIC'",
    }[how]
    connection = sqlite3.connect(path)
    try:
        rows = connection.execute("SELECT count(*) FROM sensitivity_events").fetchone()[0]
        if rows:
            with pytest.raises(sqlite3.IntegrityError, match="append-only"):
                connection.execute(sql)
    finally:
        connection.close()


@pytest.mark.parametrize("table", ["sensitivity_events", "mode_events", "allowlist_versions"])
@pytest.mark.parametrize("recursive", ["ON", "OFF"])
def test_append_only_tables_refuse_every_change(ledger: Ledger, table: str, recursive: str) -> None:
    ledger.raise_sensitivity("c", Sensitivity.SECRET, "d", "s", 1.0)
    ledger.restrict_mode("c", NetworkMode.NONE, "w", 1.0)
    ledger.save_allowlist(Allowlist(1), "ann", "first", 1.0)
    connection = sqlite3.connect(ledger.path)
    connection.execute(f"PRAGMA recursive_triggers={recursive}")
    for sql in (f"UPDATE {table} SET at = 0.0", f"DELETE FROM {table}", f"INSERT OR REPLACE INTO {table} SELECT * FROM {table}"):
        with pytest.raises(sqlite3.IntegrityError, match="append-only"):
            connection.execute(sql)
    connection.close()


def test_no_data_registered_is_public_and_full(ledger: Ledger) -> None:
    assert ledger.level("fresh") is Sensitivity.PUBLIC
    assert ledger.mode("fresh") is NetworkMode.FULL


@pytest.mark.parametrize("stored", ["HARMLESS", "", "public\0", 5, b"\xff"])
def test_an_unknown_value_is_the_worst(ledger: Ledger, stored: object) -> None:
    connection = sqlite3.connect(ledger.path)
    with connection:
        connection.execute(
            "INSERT INTO sensitivity_events (context_id, level, dataset, source, at) VALUES ('c', ?, '', '', 0.0)", (stored,)
        )
        connection.execute("INSERT INTO mode_events (context_id, mode, why, at) VALUES ('c', ?, '', 0.0)", (stored,))
    connection.close()
    assert ledger.level("c") is Sensitivity.SECRET
    assert ledger.mode("c") is NetworkMode.NONE
    assert ledger.levels() == {"c": Sensitivity.SECRET}
    assert ledger.modes() == {"c": NetworkMode.NONE}


def test_an_unreadable_ledger_is_the_worst(ledger: Ledger) -> None:
    connection = sqlite3.connect(ledger.path)
    with connection:
        connection.execute("DROP TABLE sensitivity_events")
        connection.execute("DROP TABLE mode_events")
    connection.close()
    assert ledger.level("c") is Sensitivity.SECRET
    assert ledger.mode("c") is NetworkMode.NONE


def test_an_agent_that_claims_an_unknown_level_gets_secret(ledger: Ledger) -> None:
    ledger.raise_sensitivity("c", "whatever", "d", "s", 1.0)  # type: ignore[arg-type]
    assert ledger.level("c") is Sensitivity.SECRET


def test_mode_only_tightens_and_sessions_are_apart(ledger: Ledger) -> None:
    for mode in (NetworkMode.PROXIED, NetworkMode.NONE, NetworkMode.FULL):
        ledger.restrict_mode("c1", mode, "x", 1.0)
    ledger.restrict_mode("c2", NetworkMode.PROXIED, "x", 1.0)
    assert ledger.mode("c1") is NetworkMode.NONE
    assert ledger.mode("c2") is NetworkMode.PROXIED
    assert ledger.modes() == {"c1": NetworkMode.NONE, "c2": NetworkMode.PROXIED}


def test_parallel_raises_end_at_the_highest(ledger: Ledger) -> None:
    threads = [
        threading.Thread(target=ledger.raise_sensitivity, args=("c", level, "d", "s", 1.0))
        for level in [Sensitivity.PUBLIC, Sensitivity.SECRET, Sensitivity.INTERNAL] * 5
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ledger.level("c") is Sensitivity.SECRET
    with ledger.reading() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM sensitivity_events").scalar() == 15
