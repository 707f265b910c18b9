"""A session's history: only what changed something, whoever repeats it; whole across a restart and for rows of an older version."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from console.domain.agent import Agent, AgentId, ContextId, SandboxKind
from console.domain.ids import ControlLevel
from console.domain.network import NetworkMode, Sensitivity
from console.ledger.migrations import MIGRATIONS
from console.ledger.network_history import NetworkChange
from console.ledger.sessions import Tightening
from console.ledger.store import Ledger


def act(ledger: Ledger, at: float, what: str = "isolated", agent_id: str = "a1", context_id: str = "s", **more: object) -> None:
    change = NetworkChange(at, what, "ann", "w", agent_id, NetworkMode.NONE, **more)  # type: ignore[arg-type]
    ledger.keep_network_changes([(context_id, change)])


def data(ledger: Ledger, level: Sensitivity, mode: NetworkMode, at: float, dataset: str = "orders") -> None:
    ledger.tighten_sessions(["s"], Tightening(mode, f"{level} data", "data", "agent:a1", at, level, dataset, "crm"))


def test_one_act_that_raises_both_is_one_line_and_repetitions_are_only_counted(ledger: Ledger) -> None:
    data(ledger, Sensitivity.CONFIDENTIAL, NetworkMode.PROXIED, 1.0)
    for number in range(300):
        data(ledger, Sensitivity.INTERNAL, NetworkMode.FULL, 2.0 + number)
    ledger.tighten_sessions(["s", "t"], Tightening(NetworkMode.NONE, "ann: odd", "operator", "ann", 500.0))
    found = ledger.network_history("s")
    assert [(c.at, c.cause, c.by, c.mode, c.sensitivity) for c in found.changes] == [
        (500.0, "operator", "ann", NetworkMode.NONE, None),
        (1.0, "data", "agent:a1", NetworkMode.PROXIED, Sensitivity.CONFIDENTIAL),
    ]
    assert found.changes[1].words == "orders from crm" and found.changes[0].words == "ann: odd"
    assert (found.registrations, found.left_out, found.began_at) == (301, 0, None)
    assert ledger.mode("t") is NetworkMode.NONE and ledger.level("t") is Sensitivity.PUBLIC


def test_a_looser_word_later_is_no_change(ledger: Ledger) -> None:
    ledger.restrict_mode("s", NetworkMode.NONE, "first", 1.0)
    ledger.restrict_mode("s", NetworkMode.PROXIED, "looser", 2.0)
    assert [(c.words, c.mode) for c in ledger.network_history("s").changes] == [("first", NetworkMode.NONE)]


def test_acts_are_bounded_of_one_agent_where_one_is_named_and_the_ratchet_is_never_pushed_out(ledger: Ledger) -> None:
    data(ledger, Sensitivity.SECRET, NetworkMode.NONE, 0.5)
    for number in range(7):
        act(ledger, 1.0 + number)
    act(ledger, 99.0, "enforced", "a2", enforced=False, ms=3.5)
    act(ledger, 100.0, context_id="other")
    found = ledger.network_history("s", limit=3)
    assert [c.at for c in found.changes] == [99.0, 7.0, 6.0, 0.5] and found.left_out == 5
    assert (found.changes[0].enforced, found.changes[0].ms) == (False, 3.5) and found.changes[1].enforced is None
    assert [c.at for c in ledger.network_history("s", "a2").changes] == [99.0, 0.5]


def test_it_survives_a_restart_and_says_since_when(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "l.db")
    born = Agent(AgentId("a1"), "n", None, AgentId("a1"), 1, ContextId("s"), ControlLevel.MANAGED, SandboxKind.NONE, started_at=0.25)
    ledger.save_agents([born])
    data(ledger, Sensitivity.SECRET, NetworkMode.NONE, 1.0, "\ud800<b>")
    act(ledger, 2.0)
    before = ledger.network_history("s")
    ledger.close()
    ledger = Ledger(tmp_path / "l.db")
    assert ledger.network_history("s") == before and before.began_at == 0.25
    assert before.changes[1].words == "\ud800<b> from crm"
    ledger.close()


def test_rows_of_the_version_before_are_read(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE schema_version (version INTEGER PRIMARY KEY, what TEXT NOT NULL, applied_at REAL NOT NULL) STRICT")
        for migration in MIGRATIONS[:3]:
            for statement in migration.statements:
                connection.execute(statement)
            connection.execute("INSERT INTO schema_version VALUES (?, '', 0)", (migration.version,))
        connection.execute("INSERT INTO sensitivity_events (context_id, level, dataset, source, at) VALUES ('s', 'SECRET', 'd', 'x', 1.0)")
        connection.execute("INSERT INTO mode_events (context_id, mode, why, at) VALUES ('s', 'NONE', 'SECRET data', 1.0)")
    connection.close()
    ledger = Ledger(path)
    [only] = ledger.network_history("s").changes
    assert (only.cause, only.by, only.mode, only.sensitivity, only.words) == ("", "", NetworkMode.NONE, Sensitivity.SECRET, "d from x")
    ledger.close()


@pytest.mark.parametrize("sql", ["UPDATE network_events SET at = 0.0", "DELETE FROM network_events"])
def test_history_is_append_only(ledger: Ledger, sql: str) -> None:
    act(ledger, 1.0)
    connection = sqlite3.connect(ledger.path)
    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        connection.execute(sql)
    connection.close()
