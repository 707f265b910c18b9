"""Pages of the log, newest first, and export; works on a live log and with the supervisor down."""

from __future__ import annotations

import csv
import io
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, fields
from pathlib import Path
from typing import IO, Any, Protocol

from console.audit.database import COLUMNS, damaged, is_damage, open_reader, reason
from console.audit.record import Record, text_bytes, text_of
from console.audit.set_aside import read_losses
from console.domain.errors import ConsoleError, NotFound, UsageProblem

PAGE_MAX = 200
PIECE = 4 << 20
"""Characters of one piece of an export; its last record may go beyond them."""
_SEARCHED = ("actor", "kind", "what", "agent_id")
# A cell that begins with one of these may be run as a formula (OWASP, CSV Injection); the last four are their full-width forms.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")


class AuditReader:
    """Read one audit file. It is opened again for each question, so it never holds up the writer."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def page(self, before: int | None = None, limit: int = PAGE_MAX, query: str = "") -> list[Record]:
        """Up to ``limit`` (at most 200) records below ``before``, newest first, that hold ``query`` as plain text.

        The text is looked for in actor, kind, what and agent id; ASCII letters match in either case. Raises ConsoleError.
        """
        limit = max(1, min(limit, PAGE_MAX))
        conditions = ["seq < ?"]
        parameters: list[Any] = [2**63 - 1 if before is None else max(0, min(before, 2**63 - 1))]
        if query:
            # instr() and not LIKE: no pattern characters to escape, and LIKE stops at a NUL, behind which text could hide.
            conditions.append("(" + " OR ".join(f"instr(lower({name}), lower(?)) > 0" for name in _SEARCHED) + ")")
            parameters += [text_bytes(query)] * len(_SEARCHED)
        sql = f"SELECT {COLUMNS} FROM records WHERE {' AND '.join(conditions)} ORDER BY seq DESC LIMIT ?"
        with self._open() as connection:
            return [_record(row) for row in connection.execute(sql, (*parameters, limit))]

    def total(self) -> int:
        """Return the number of records (`verify` finds any gap in their numbers). Raises ConsoleError."""
        with self._open() as connection:
            return int(connection.execute("SELECT ifnull(max(seq), 0) FROM records").fetchone()[0])

    def export(self, target: Path | IO[str], fmt: str = "jsonl", why: str = "") -> int:
        """Write all records, oldest first; return how many. Raises UsageProblem on another format, ConsoleError, OSError.

        ``jsonl``: one ASCII line a record, exact. ``csv``: for people; a cell that a spreadsheet could run is prefixed with '. A last line
        tells that the record is not intact: after a loss that no operator acknowledged, and with a ``why``.
        """
        if isinstance(target, Path):
            with target.open("w", encoding="utf-8", newline="") as stream:
                return self.export(stream, fmt, why)
        write = _writer(fmt)
        with self._open() as connection, closing(connection.execute(f"SELECT {COLUMNS} FROM records ORDER BY seq")) as rows:
            count = write(target, (_record(row) for row in rows))
            if why := why or read_losses(connection).why:
                not_intact(target, fmt, why)
            return count

    def piece(self, fmt: str, after: int) -> tuple[str, int, int]:
        """Return the part of an export that follows record ``after``: its text, how many records are in it, and the last of them.

        The first piece follows record 0 and has the line of titles. Raises UsageProblem on another format, ConsoleError.
        """
        write, text, last = _writer(fmt), io.StringIO(newline=""), after

        def some(rows: sqlite3.Cursor) -> Iterator[Record]:
            nonlocal last
            for row in rows:
                yield _record(row)
                last = row[0]
                if text.tell() > PIECE:  # one record may be as large as a thousand others
                    return

        sql = f"SELECT {COLUMNS} FROM records WHERE seq > ? ORDER BY seq"
        with self._open() as connection, closing(connection.execute(sql, (after,))) as rows:
            count = write(text, some(rows), titled=not after)
        return text.getvalue(), count, last

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        try:
            with closing(open_reader(self._path)) as connection:
                yield connection
        except FileNotFoundError as error:
            raise NotFound(f"There is no audit log at {self._path}.", "Name the state directory with --state-dir.") from error
        except (sqlite3.Error, OSError) as error:
            if is_damage(error):
                raise damaged(self._path, reason(error)) from error
            raise ConsoleError(
                f"The audit log {self._path} cannot be read: {reason(error)}.", "Check its permissions and the disk."
            ) from error


def _record(row: tuple[Any, ...]) -> Record:
    seq, at, *texts, data, previous, own = row
    actor, kind, what, verdict, agent_id = (text_of(t) for t in texts)
    return Record(seq, at, actor, kind, what, verdict, agent_id, _data(data), text_of(previous), text_of(own))


def _data(stored: Any) -> dict[str, Any]:
    try:
        value = json.loads(stored)
    except (ValueError, TypeError, RecursionError):
        value = None
    return value if isinstance(value, dict) else {"unreadable": text_of(stored)}


class _Write(Protocol):
    def __call__(self, stream: IO[str], records: Iterator[Record], *, titled: bool = True) -> int: ...


def _writer(fmt: str) -> _Write:
    if fmt not in ("jsonl", "csv"):
        raise UsageProblem(f"Format {fmt[:20]!r} is not known.", "Use jsonl or csv.")
    return _jsonl if fmt == "jsonl" else _csv


def _jsonl(stream: IO[str], records: Iterator[Record], *, titled: bool = True) -> int:
    count = 0
    for record in records:
        stream.write(json.dumps(asdict(record), sort_keys=True, separators=(",", ":")) + "\n")
        count += 1
    return count


def _csv(stream: IO[str], records: Iterator[Record], *, titled: bool = True) -> int:
    names = [f.name for f in fields(Record)]
    writer = csv.writer(stream, quoting=csv.QUOTE_ALL)
    if titled:
        writer.writerow(names)
    count = 0
    for record in records:
        row = asdict(record) | {"data": json.dumps(record.data, sort_keys=True, separators=(",", ":"))}
        writer.writerow([_cell(row[name]) for name in names])
        count += 1
    return count


def not_intact(stream: IO[str], fmt: str, why: str) -> None:
    """Write a last line that is no record. A reader of the export alone then learns that records before it were lost."""
    if fmt == "jsonl":
        stream.write(json.dumps({"intact": False, "why": why}, sort_keys=True, separators=(",", ":")) + "\n")
    else:
        csv.writer(stream, quoting=csv.QUOTE_ALL).writerow([_cell(f"NOT INTACT: {why}")])


def _cell(value: Any) -> str:
    text = str(value).encode("utf-8", "backslashreplace").decode()
    return "'" + text if text.startswith(_FORMULA) else text
