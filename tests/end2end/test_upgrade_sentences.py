"""An older program and the state of a newer one: refused with the way back, and killed as before."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from console.api import endpoints as ep
from console.api.policy.page import ExplainBody
from console.domain.errors import Killed
from console.ledger.database import Database
from console.ledger.migrations import MIGRATIONS, Migration
from tests.fakes.instance import ROOT, Instance

NEWER = (*MIGRATIONS, Migration(len(MIGRATIONS) + 1, "a newer version", ("CREATE TABLE newer (x INTEGER) STRICT",)))


def status(it: Instance) -> dict[str, object]:
    argv = [sys.executable, "-m", "console", "status", "--json", "--state-dir", str(it.state_dir)]
    return dict(json.loads(subprocess.run(argv, cwd=ROOT, capture_output=True, timeout=90, check=True).stdout))


def test_an_older_program_refuses_a_newer_ledger_kills_all_the_same_and_goes_back_as_it_says(state_dir: Path) -> None:
    with Instance(state_dir) as it:
        agent = it.launch("sleep", "300")
        it.stop()
        Database(it.places.ledger_db, NEWER).close()
        with pytest.raises(AssertionError, match=f"has schema {len(NEWER)}; this version knows {len(MIGRATIONS)}") as refused:
            it.start()
        argv = [sys.executable, "-m", "console", "panic", "--reason", "test", "--json", "--state-dir", str(state_dir)]
        done = subprocess.run(argv, cwd=ROOT, capture_output=True, timeout=150, check=False)
        receipt = json.loads(done.stdout)
        assert [target["agent_id"] for target in receipt["targets"]] == [agent] and receipt["verified_zero"], receipt
        assert status(it)["state"] == "killed"
        said = str(refused.value)
        command = said[said.index("rm -f") : said.index(". The ledger")]
        subprocess.run(["sh", "-ec", command], check=True)
        it.start()
        assert it.api.status().killed
        with pytest.raises(Killed):
            it.launch("sleep", "1")


def test_a_host_that_was_killed_is_killed_after_the_upgrade_and_its_ledger_was_kept(state_dir: Path) -> None:
    with Instance(state_dir) as it:
        it.launch("sleep", "300")
        kill_id = it.api.activate("before the upgrade").kill_id
        it.stop()
        # What an older version leaves: the schema before the newest one.
        last = max(MIGRATIONS, key=lambda migration: migration.version)
        with contextlib.closing(sqlite3.connect(it.places.ledger_db)) as ledger, ledger:
            for statement in last.statements:
                words = statement.split()
                assert words[:2] == ["CREATE", "TABLE"] or words[:2] == ["CREATE", "INDEX"] or words[:2] == ["CREATE", "TRIGGER"], statement
            for statement in reversed(last.statements):
                ledger.execute(f"DROP {statement.split()[1]} IF EXISTS {statement.split()[2]}")
            ledger.execute("DELETE FROM schema_version WHERE version = ?", (last.version,))
        it.start()
        assert it.api.status().killed and it.api.receipt(kill_id).verified_zero
        copy = it.places.ledger_db.with_name(f"ledger.db.schema-{last.version - 1}")
        with contextlib.closing(sqlite3.connect(copy)) as kept:
            assert kept.execute("SELECT max(version) FROM schema_version").fetchone() == (last.version - 1,)
            assert kept.execute("SELECT count(*) FROM agents").fetchone() == (1,)


def test_a_start_that_dies_between_the_copy_and_the_migration_leaves_the_old_ledger_and_the_next_one_upgrades(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.db"
    Database(ledger, MIGRATIONS).close()
    code = "import sys, pathlib, tests.end2end.test_upgrade_sentences as t; t.Database(pathlib.Path(sys.argv[1]), t.NEWER)"
    dying = {**os.environ, "FAILPOINT": "ledger.copied:kill"}
    done = subprocess.run([sys.executable, "-c", code, str(ledger)], cwd=ROOT, env=dying, timeout=90, check=False)
    assert done.returncode == -signal.SIGKILL
    copy = ledger.with_name(f"ledger.db.schema-{len(MIGRATIONS)}")
    for file in (ledger, copy):
        with contextlib.closing(sqlite3.connect(file)) as kept:
            assert kept.execute("SELECT max(version) FROM schema_version").fetchone() == (len(MIGRATIONS),)
            assert kept.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    Database(ledger, NEWER).close()
    with contextlib.closing(sqlite3.connect(ledger)) as kept:
        assert kept.execute("SELECT max(version) FROM schema_version").fetchone() == (len(NEWER),)


def test_a_supervisor_judges_on_by_what_it_started_with_while_its_package_is_upgraded(state_dir: Path, tmp_path: Path) -> None:
    code = tmp_path / "code"
    for name in ("console", "resources", "envoy", "docs"):
        shutil.copytree(ROOT / name, code / name, ignore=shutil.ignore_patterns("__pycache__"), symlinks=True)
    with Instance(state_dir, code=code) as it:
        for data in (code / "resources" / "policy").rglob("*.*"):
            data.write_text('{"of": "another version"}')
        seen = it.api.ask(ep.EXPLAIN, body=ExplainBody(tool="shell", argument="ls"))
        assert seen.verdict == "allow", seen
