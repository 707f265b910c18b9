"""Everything that is kept beside the log is asked; the worst word counts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from console.audit import rollback_rows, verify_presence
from console.audit.anchors import Anchor
from console.audit.log import AuditLog
from console.audit.segments import set_aside
from console.audit.verify_anchors import FIELD, STARTED
from console.audit.verify_verdict import Judged, beside
from console.settings.places import Places


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Places:
    for room in (verify_presence, rollback_rows):
        monkeypatch.setattr(room, "_AGAIN_S", (0.0,))
    made = Places(tmp_path, tmp_path / "run", "0123abcd", False)
    made.receipts_dir.mkdir()
    return made


@pytest.fixture
def log(places: Places) -> Iterator[AuditLog]:
    made = AuditLog(places.audit_db)
    yield made
    made.close()


def judged(places: Places, log: AuditLog, *anchors: Anchor) -> Judged:
    return beside(places, log.verify(), (), anchors)


def test_what_was_compared_is_named_and_the_anchor_leads_back(places: Places, log: AuditLog) -> None:
    log.append("supervisor", STARTED, "pid 1", data={FIELD: "0123abcd"})
    found = judged(places, log, Anchor(1, log.head[1], "x"))
    assert found.verdict.whole and found.compared == ("0 sealed receipts", "1 anchor", "0 rollback records") and not found.unknown
    assert found.anchor == f"1:{log.head[1][:32]}"


def test_another_instances_log_and_a_receipt_nobody_sealed_are_not_whole(places: Places, log: AuditLog) -> None:
    (places.receipts_dir / "k1.sealed.json").write_text("{}")
    assert "k1.sealed.json is not what this host signed" in judged(places, log).verdict.why
    log.append("supervisor", STARTED, "pid 1", data={FIELD: "ffffffff"})
    found = judged(places, log).verdict
    assert not found.whole and "another instance" in found.why


def test_a_log_that_was_set_aside_is_not_known(places: Places) -> None:
    AuditLog(places.audit_db).close()
    set_aside(places.audit_db)
    new = AuditLog(places.audit_db)
    found = judged(places, new)
    new.close()
    assert found.verdict.whole and "set aside" in found.unknown[0]
