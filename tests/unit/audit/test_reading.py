"""Pages of a big log, search as plain text, export (G3, L2)."""

from __future__ import annotations

import csv
import io
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from console.audit import reading
from console.audit.database import Damaged
from console.audit.log import AuditLog
from console.audit.reading import AuditReader
from console.audit.record import GENESIS, draft
from console.domain.errors import NotFound, UsageProblem


@pytest.fixture(scope="module")
def big(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AuditLog]:
    path = tmp_path_factory.mktemp("big") / "audit.db"
    AuditLog(path).close()
    previous = GENESIS
    with closing(sqlite3.connect(path)) as connection, connection:
        for seq in range(1, 10_001):
            record = draft(float(seq), (f"agent-{seq % 7}", "call", f"did {seq}", "allow", f"a{seq % 3}"), None).numbered(seq, previous)
            row = (seq, float(seq), record.actor, record.kind, record.what, "allow", record.agent_id, "{}", previous, record.hash)
            connection.execute("INSERT INTO records VALUES (?,?,?,?,?,?,?,?,?,?)", row)
            previous = record.hash
    opened = AuditLog(path)
    yield opened
    opened.close()


def walk(log: AuditLog, limit: int, query: str = "") -> list[int]:
    seen: list[int] = []
    before: int | None = None
    while page := log.page(before, limit, query):
        assert len(page) <= 200
        seen += [record.seq for record in page]
        before = page[-1].seq
    return seen


def test_ten_thousand_records_page_by_page(big: AuditLog) -> None:
    assert walk(big, 200) == list(range(10_000, 0, -1))
    assert big.total() == 10_000
    assert big.verify().whole


def test_a_page_is_at_most_200_and_at_least_one(big: AuditLog) -> None:
    assert len(big.page(limit=100_000)) == 200
    assert len(big.page(limit=-5)) == 1
    assert big.page(before=1) == []
    assert big.page(before=-(10**30)) == []
    assert big.page(before=10**30)[0].seq == 10_000


def test_a_search_goes_through_all_of_it(big: AuditLog) -> None:
    assert walk(big, 200, "AGENT-3") == [seq for seq in range(10_000, 0, -1) if seq % 7 == 3]
    assert [r.seq for r in big.page(query="did 9999")] == [9999]


@pytest.mark.parametrize("text", ["50%", "a_b", "x'--", "back\\slash", "tail\0hidden", "\ud800", "ünïcode", "[x]*?"])
def test_search_is_plain_text(log: AuditLog, text: str) -> None:
    log.append("ann", "k", f"before {text} after")
    log.append("ann", "k", "before 500 aXb xx after")
    for query in (text, text[-3:]):
        assert [r.seq for r in log.page(query=query)] == [1]


def test_search_looks_at_actor_kind_what_and_agent(log: AuditLog) -> None:
    log.append("needle", "k", "w")
    log.append("a", "needle", "w")
    log.append("a", "k", "needle")
    log.append("a", "k", "w", agent_id="needle")
    log.append("a", "k", "w", data={"x": "needle"})
    assert [r.seq for r in log.page(query="needle")] == [4, 3, 2, 1]


def test_a_reader_works_beside_the_writer_and_after_it(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "audit.db")
    log.append("a", "k", "w")
    reader = AuditReader(log.path)
    assert (reader.total(), len(reader.page())) == (1, 1)
    log.close()
    assert (reader.total(), len(reader.page())) == (1, 1)


def test_missing_and_damaged_are_said(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        AuditReader(tmp_path / "audit.db").page()
    (tmp_path / "audit.db").write_bytes(b"rubbish" * 2000)
    with pytest.raises(Damaged):
        AuditReader(tmp_path / "audit.db").page()


def test_foreign_bytes_do_not_stop_a_page(log: AuditLog) -> None:
    log.append("a", "k", "w")
    with closing(sqlite3.connect(log.path)) as other, other:
        other.execute("INSERT INTO records VALUES (2, 1.0, x'ff', 'k', 'w', '', '', 'not json', 'p', 'h')")
    newest = log.page()[0]
    assert newest.actor == "\\xff" and newest.data == {"unreadable": "not json"}


HOSTILE = [
    "=HYPERLINK(1)",
    "+1",
    "-1",
    "@x",
    "\tx",
    "\rx",
    "\nx",
    "\uff1dx",
    "a=b",
    "bob\n2026 INFO kill OFF",
    'q"uo,te',
    "\ud800",
    "nul\0",
]


def test_csv_cells_cannot_be_run(log: AuditLog, tmp_path: Path) -> None:
    for text in HOSTILE:
        log.append(text, "k", text, agent_id=text)
    assert log.export(tmp_path / "out.csv", "csv") == len(HOSTILE)
    with (tmp_path / "out.csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == len(HOSTILE)
    for text, row in zip(HOSTILE, rows, strict=True):
        shown = text.encode("utf-8", "backslashreplace").decode()
        expected = "'" + shown if text[0] in "=+-@\t\r\n\uff1d" else shown
        assert row["actor"] == row["what"] == row["agent_id"] == expected
        assert not any(cell.startswith(("=", "+", "-", "@", "\t", "\r")) for cell in row.values())


def test_jsonl_is_one_ascii_line_a_record_and_exact(log: AuditLog) -> None:
    for text in HOSTILE:
        log.append("a", "k", text, data={"t": text})
    stream = io.StringIO()
    assert log.export(stream) == len(HOSTILE)
    lines = stream.getvalue().splitlines()
    assert len(lines) == len(HOSTILE) and stream.getvalue().isascii()
    assert [json.loads(line)["what"] for line in lines] == HOSTILE
    assert [json.loads(line)["data"]["t"] for line in lines] == HOSTILE
    assert [json.loads(line)["seq"] for line in lines] == list(range(1, len(HOSTILE) + 1))


def test_another_format_is_refused(log: AuditLog) -> None:
    with pytest.raises(UsageProblem):
        log.export(io.StringIO(), "xlsx")


@pytest.mark.parametrize("fmt", ["jsonl", "csv"])
def test_the_pieces_of_an_export_are_the_export(big: AuditLog, monkeypatch: pytest.MonkeyPatch, fmt: str) -> None:
    monkeypatch.setattr(reading, "PIECE", 50_000)
    whole, reader, pieces, after, n = io.StringIO(newline=""), AuditReader(big.path), list[str](), 0, 0
    reader.export(whole, fmt)
    while True:
        text, count, after = reader.piece(fmt, after)
        pieces.append(text)
        n += count
        if not count:
            break
    assert "".join(pieces) == whole.getvalue() and n == 10_000 == after
    assert len(pieces) > 20 and max(map(len, pieces)) < 51_000


def test_a_piece_of_an_unknown_format_is_refused(big: AuditLog) -> None:
    with pytest.raises(UsageProblem, match="not known"):
        AuditReader(big.path).piece("xml", 0)
