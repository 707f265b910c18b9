"""What ledger and audit log say was launched, against what the registry has."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from console.domain.kill import Outcome
from console.domain.verdict import verdict
from console.killswitch.client import without_guard
from console.killswitch.client.kill import press_without_guard
from console.killswitch.client.without_guard import LaunchedAgent, read_launched
from console.killswitch.kernel.processes import start_ticks
from console.killswitch.store.registry import Entry, Held, Registry

AGENTS = "CREATE TABLE agents (agent_id, control_level, live, state, process, container_id, started_at)"
RECORDS = "CREATE TABLE records (at, kind, agent_id)"


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(without_guard, "AGAIN_S", 0.0)


def ledger(folder: Path, *rows: tuple[Any, ...]) -> None:
    with sqlite3.connect(folder / "ledger.db") as made:
        made.execute(AGENTS)
        made.executemany("INSERT INTO agents VALUES (?, ?, ?, ?, ?, ?, ?)", [(*row, time.time()) for row in rows])
    made.close()


def audit(folder: Path, *rows: tuple[str, str], at: float | None = None) -> None:
    with sqlite3.connect(folder / "audit.db") as made:
        made.execute(RECORDS)
        made.executemany("INSERT INTO records VALUES (?, ?, ?)", [(at or time.time(), *row) for row in rows])
    made.close()


def process(pid: int, ticks: int = 7) -> str:
    return json.dumps({"pid": pid, "start_ticks": ticks})


def test_where_nothing_was_ever_launched_by_a_supervisor_there_is_nothing_to_compare(tmp_path: Path) -> None:
    assert read_launched(tmp_path) == without_guard.Launched()


def test_what_lives_by_the_ledger_must_be_there_and_what_ended_or_was_only_seen_need_not(tmp_path: Path) -> None:
    ledger(
        tmp_path,
        ("a-lives", "managed", 1, "running", process(5), ""),
        ("a-ended", "managed", 0, "ended", process(6), ""),
        ("a-seen", "observed", 1, "running", process(7), ""),
        ("a-starting", "managed", 1, "starting", None, ""),
        ("a-box", "contained", 1, "running", process(8), "c0ffee"),
    )
    audit(tmp_path, ("launch", "a-lives"), ("launch", "a-ended"), ("agent.ended", "a-ended"), ("launch", "a-starting"))
    found = read_launched(tmp_path)
    assert found.problem == "" and {a.agent_id for a in found.agents} == {"a-lives", "a-box"}


def test_an_older_ledger_hides_nothing_that_the_audit_log_saw(tmp_path: Path) -> None:
    ledger(tmp_path, ("a-old", "managed", 0, "ended", None, ""))
    audit(tmp_path, ("launch", "a-old"), ("launch", "a-new"), ("adopt.done", "a-adopted"), ("tool", "a-third"))
    found = read_launched(tmp_path)
    assert {(a.agent_id, a.control_level) for a in found.agents} == {("a-new", "managed"), ("a-adopted", "adopted")}


def test_what_was_launched_before_this_host_was_started_does_not_run(tmp_path: Path) -> None:
    audit(tmp_path, ("launch", "a-once"), at=1000.0)
    assert read_launched(tmp_path).agents == ()


@pytest.mark.parametrize("name", ["ledger.db", "audit.db"])
def test_a_file_that_cannot_be_read_leaves_doubt(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"garbage" * 1000)
    assert "cannot be read" in read_launched(tmp_path).problem


def test_an_agent_is_a_target_when_the_registry_lacks_it_or_has_another_process_for_it(sleeper: tuple[int, int]) -> None:
    pid, ticks = sleeper
    one = LaunchedAgent("a", "managed", pid, ticks)
    same = Entry("a", "process", "managed", 1, confirmed=True, pid=pid, start_ticks=ticks)
    other = Entry("a", "process", "managed", 1, confirmed=True, pid=2**22 - 1, start_ticks=1)
    assert one.aim_beside(same) is None
    for entry in (None, other):
        aim = one.aim_beside(entry)
        assert aim is not None and aim.held is not None and aim.held.init is not None and aim.held.init.pid == pid
        aim.give_up(1.0)
        assert aim.outcome is Outcome.NOT_PROVEN and "launched" in aim.target().evidence["why"]
        aim.held.close()
    assert LaunchedAgent("a", "managed").aim_beside(other) is None  # the audit log alone names no process
    box = LaunchedAgent("a", "contained", 5, 7, "c0ffee")
    assert box.aim_beside(Entry("a", "container", "contained", 1, container_id="c0ffee")) is None
    assert box.aim_beside(Entry("a", "container", "contained", 1, container_id="beef")) is not None


def test_a_first_process_that_is_only_not_reaped_yet_bears_out_no_record(tmp_path: Path) -> None:
    """A forged namespace is empty. Ledger and audit log alone say what ran."""
    guard_dir = tmp_path / "guard"
    guard_dir.mkdir()
    with subprocess.Popen(["/bin/sleep", "60"]) as dying:
        ticks = start_ticks(dying.pid)
        assert ticks is not None
        registry = Registry(guard_dir)
        forged = Entry("a-1", "process", "managed", 1, confirmed=True, pid=dying.pid, start_ticks=ticks, pid_namespace=4_000_000_000)
        registry.held["a-1"] = Held(forged)
        registry.save()
        ledger(tmp_path, ("a-1", "managed", 1, "running", process(dying.pid, ticks), ""))
        dying.kill()
        os.waitid(os.P_PID, dying.pid, os.WEXITED | os.WNOWAIT)
        receipt = press_without_guard(tmp_path, tmp_path, "0a1b2c3d", "all", "test", "ann")
    assert Outcome.NOT_PROVEN in {target.outcome for target in receipt.targets} and not verdict(receipt).verified_zero
