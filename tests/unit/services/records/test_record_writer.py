"""The scribe: what the log refuses stays owed, in order, and delays nothing else."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from console.audit.anchors import NOTED
from console.audit.log import AuditLog
from console.domain.budget import Limits
from console.domain.engine.command import KeepBooks, Record
from console.domain.errors import NotRecorded
from console.domain.network import NetworkMode
from console.ledger.budgets import Books
from console.ledger.network_history import NetworkChange
from console.ledger.store import Ledger
from console.services.records import audit_log
from console.services.records import record_writer as module
from console.services.records.audit_log import AuditDesk
from console.services.records.record_writer import Scribe
from tests.fakes.patched import patch


class Stubborn(AuditLog):
    """A log that refuses for as long as it is told to."""

    refuses = False

    def append(self, *args: object, **fields: object) -> object:  # type: ignore[override]
        if self.refuses:
            raise NotRecorded("The audit log could not be written: busy.", "")
        return super().append(*args, **fields)  # type: ignore[arg-type]


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Scribe, Stubborn, list[str]]]:
    monkeypatch.setattr(module, "PAY_S", 0.0)
    shown: list[str] = []
    ledger, audit = Ledger(tmp_path / "ledger.db"), Stubborn(tmp_path / "audit.db")
    scribe = Scribe(ledger, audit, shown.append, lambda _: None)
    yield scribe, audit, shown
    audit.refuses = False
    scribe.close()
    audit.close()
    ledger.close()


def test_what_the_log_refused_is_written_once_it_can_be_and_in_order(kept: tuple[Scribe, Stubborn, list[str]]) -> None:
    scribe, audit, shown = kept
    audit.refuses = True
    for what in ("first", "second"):
        scribe.record(Record("operator:0", "isolate", what, must=True))
    assert scribe.settle()
    assert audit.total() == 0
    assert shown  # never hidden
    audit.refuses = False
    scribe.record(Record("operator:0", "isolate", "third", must=True))
    assert scribe.settle()
    assert [r.what for r in reversed(audit.page())] == ["first", "second", "third"]


def test_how_long_the_oldest_record_waits_for_the_log_is_known(kept: tuple[Scribe, Stubborn, list[str]]) -> None:
    scribe, audit, _ = kept
    assert scribe.waiting.lag() == (0, 0.0)
    audit.refuses = True
    for what in ("first", "second"):
        scribe.record(Record("operator:0", "isolate", what, must=True))
    assert scribe.settle()
    count, waited = scribe.waiting.lag()
    assert count == 2 and scribe.waiting.lag()[1] >= waited > 0
    audit.refuses = False
    scribe.flush()
    assert scribe.settle()
    assert scribe.waiting.lag() == (0, 0.0)


def test_a_log_that_refuses_keeps_the_ledger_waiting_for_nothing(kept: tuple[Scribe, Stubborn, list[str]]) -> None:
    scribe, audit, _ = kept
    audit.refuses = True
    scribe.record(Record("operator:0", "isolate", "first", must=True))
    written: list[bool] = []
    scribe.event("a-1", 1.0, "isolated", "operator:0")
    scribe.then(written.append)
    assert scribe.settle()
    assert written == [True]
    assert [line.kind for line in scribe.ledger.events("a-1")] == ["isolated"]


@pytest.mark.parametrize(
    "error", [TypeError("x"), AttributeError("x"), MemoryError(), RuntimeError("x"), KeyError("x"), ZeroDivisionError()]
)
def test_a_write_that_breaks_is_said_and_is_not_the_end_of_writing(
    kept: tuple[Scribe, Stubborn, list[str]], monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    scribe, _, shown = kept
    written: list[bool] = []

    def breaks(*_: object) -> None:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(scribe.ledger, "keep_books", breaks)
        scribe.event("a-1", 1.0, "isolated", "operator:0")
        scribe.then(written.append)
        scribe.job(breaks)
        assert scribe.settle() and written == [False] and len(shown) >= 2
    scribe.then(written.append)
    assert scribe.settle() and written == [False, True] and [line.kind for line in scribe.ledger.events("a-1")] == ["isolated"]


def test_the_end_tries_once_more(tmp_path: Path) -> None:
    ledger, audit = Ledger(tmp_path / "ledger.db"), Stubborn(tmp_path / "audit.db")
    scribe = Scribe(ledger, audit, lambda text: None, lambda _: None)
    audit.refuses = True
    scribe.record(Record("operator:0", "kill.pressed", "x", must=True))
    assert scribe.settle()
    audit.refuses = False
    scribe.close()
    assert audit.total() == 1
    audit.close()
    ledger.close()


def test_lines_of_a_history_that_the_disk_refused_are_written_once_it_can_be(
    kept: tuple[Scribe, Stubborn, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    scribe, _, shown = kept
    works, writes = scribe.ledger.keep_network_changes, list[int]()

    def write(lines: list[tuple[str, NetworkChange]]) -> None:
        writes.append(len(lines))
        if len(writes) == 1:
            raise NotRecorded("The ledger could not be written: no space left.", "")
        works(lines)

    monkeypatch.setattr(scribe.ledger, "keep_network_changes", write)
    for number in range(50):
        scribe.network("s", NetworkChange(float(number), "isolated", "ann", "odd", "a1", NetworkMode.NONE))
    assert scribe.settle() and shown
    assert scribe.settle()
    assert [c.at for c in scribe.ledger.network_history("s").changes] == [float(n) for n in reversed(range(50))]
    assert writes == [50, 50]  # one write for all of them


def test_a_lower_limit_that_the_disk_refused_is_kept_once_it_can_be(
    kept: tuple[Scribe, Stubborn, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    scribe, _, shown = kept
    works, lower = scribe.ledger.keep_books, {("day", ""): Limits(cost_usd=1.0)}

    def write(books: Books, at: float) -> None:
        if not shown:
            raise NotRecorded("The ledger could not be written: no space left.", "")
        works(books, at)

    monkeypatch.setattr(scribe.ledger, "keep_books", write)
    scribe.books(KeepBooks(1.0, "boot", limits=lower))
    assert scribe.settle() and shown and scribe.ledger.budget_limits() == {}
    assert scribe.settle() and scribe.ledger.budget_limits() == lower


def test_whoever_reads_the_audit_finds_what_acted_before_and_a_disk_that_hangs_holds_up_nobody(
    kept: tuple[Scribe, Stubborn, list[str]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    scribe, _, _ = kept
    places: Any = SimpleNamespace(audit_db=tmp_path / "audit.db")
    desk = AuditDesk(scribe, places)
    slow, hangs = threading.Event(), threading.Event()
    scribe.job(lambda: slow.wait(0.2))  # the disk is busy, and the record comes behind that
    scribe.record(Record("guard", "kill.judged", "k-1", must=True))
    assert [row.what for row in desk.page(None, 10, "").rows] == ["k-1"]
    monkeypatch.setattr(audit_log, "RECORDS_S", 0.05)
    scribe.job(lambda: hangs.wait(60))
    scribe.record(Record("guard", "kill.judged", "k-2", must=True))
    try:
        assert [row.what for row in desk.page(None, 10, "").rows] == ["k-1"]
    finally:
        hangs.set()


def test_nothing_to_write_wakes_nobody(kept: tuple[Scribe, Stubborn, list[str]]) -> None:
    scribe, _, _ = kept
    assert scribe.settle()
    writes: list[str] = []
    real = scribe._write

    def counted() -> None:
        writes.append("write")
        real()

    patch(scribe, _write=counted)
    scribe.flush()
    assert scribe.settle() and writes == []
    scribe.event("a-1", 1.0, "kind", "text")
    assert scribe.settle() and writes == ["write"]


def test_the_ledger_knows_the_newest_record_soon_and_at_the_end(kept: tuple[Scribe, Stubborn, list[str]]) -> None:
    scribe, audit, _ = kept
    scribe.record(Record("operator:0", "isolate", "first", must=True))
    assert scribe.settle() and scribe.settle()  # the note is asked for once the record is there
    assert scribe.ledger.kv_get(NOTED) == "{}:{}".format(*audit.head) and audit.head[0] == 1
    scribe.record(Record("operator:0", "isolate", "second", must=True))
    scribe.close()
    assert scribe.ledger.kv_get(NOTED) == "{}:{}".format(*audit.head) and audit.head[0] == 2
