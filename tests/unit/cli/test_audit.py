"""``watchfloor audit verify``: words, JSON and the exit code, of a log that nobody writes now."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing

import pytest

from console.audit import verify_presence
from console.audit.log import AuditLog
from console.audit.segments import set_aside
from console.settings.places import Places
from tests.fakes.verbs import Watchfloor


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verify_presence, "_AGAIN_S", (0.0,))


@pytest.fixture
def log(places: Places) -> AuditLog:
    """Closed, with two records."""
    return written(places, "one")


def written(places: Places, word: str) -> AuditLog:
    log = AuditLog(places.audit_db)
    log.append("ann", "k", word)
    log.append("ann", "k", "two")
    log.close()
    return log


def test_a_whole_log_prints_an_anchor_that_betrays_a_later_rewrite(watchfloor: Watchfloor, places: Places, log: AuditLog) -> None:
    said = watchfloor("audit", "verify")
    anchor = said.out.split("--anchor ")[1].strip()
    assert said.code == 0 and said.out.startswith("log intact: 2 records") and anchor.startswith("2:")
    assert watchfloor("audit", "verify", "--json").json["anchor"] == anchor
    assert watchfloor("audit", "verify", "--anchor", anchor).code == 0
    for name in ("audit.db", "audit.checkpoints"):
        (places.state_dir / name).unlink()
    written(places, "another one")
    assert watchfloor("audit", "verify").code == 0, "it is whole in itself"
    said = watchfloor("audit", "verify", "--anchor", anchor)
    assert said.code == 1 and "LOG NOT INTACT: record 2 is not the one that the anchor" in said.out
    assert watchfloor("audit", "verify", "--anchor", "x").code == 2


def test_a_filter_that_no_record_matches_says_so(watchfloor: Watchfloor, log: AuditLog) -> None:
    said = watchfloor("audit", "tail", "--filter", "nothing of this")
    assert (said.code, said.out, said.err) == (0, "", "No records match the filter.\n")
    assert watchfloor("audit", "tail", "--filter", "two").err == ""


def test_an_older_log_that_was_set_aside_is_not_known_and_never_green(watchfloor: Watchfloor, places: Places, log: AuditLog) -> None:
    set_aside(log.path)
    written(places, "anew")
    said = watchfloor("audit", "verify")
    assert said.code == 5 and said.out.startswith("log intact: 2 records") and "not known: an older log was set aside" in said.out
    found = watchfloor("audit", "verify", "--json")
    assert found.code == 5 and found.json["whole"] is True and len(found.json["unknown"]) == 1
    shutil.rmtree(next(places.state_dir.glob("audit-set-aside-*")))
    assert watchfloor("audit", "verify").code == 0


def test_a_changed_record_is_one_whatever_is_not_known(watchfloor: Watchfloor, places: Places, log: AuditLog) -> None:
    with closing(sqlite3.connect(log.path)) as connection:
        connection.execute("DROP TRIGGER records_no_update")
        connection.execute("UPDATE records SET what = 'three' WHERE seq = 2")
        connection.commit()
    said = watchfloor("audit", "verify")
    assert said.code == 1 and "first bad record: 2" in said.out
