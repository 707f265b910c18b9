"""What OpenCode's database says that a session did: the parts of its messages. Read of version 1.18; Kilo writes the same."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from console.domain.activity import Entry, FilePlace
from console.domain.spend import Answer
from console.sources.activity.files import Activity, Whereabouts
from console.sources.activity.records import RecordLines, call, message, result, thinking
from console.sources.activity.tail import Tailed
from console.sources.activity.text import dict_of, text_of
from console.sources.opencode.transcripts import KILO, ROW_MAX, SOURCE, connect, tokens_of
from console.sources.reading import reported
from console.sources.spend.transcript_files import Folder, Opened
from console.sources.text import plain

ROWS_MAX = 500
"""Parts of one reading; the next goes on."""
_PARTS = """
select part.id, part.time_created, part.time_updated, part.data, substr(message.data, 1, 4096)
from part join message on message.id = part.message_id
where part.session_id = ? and part.time_updated >= ? and length(part.data) <= ? order by part.time_updated, part.id limit ?"""
_NAMED = "select 1 from session where id = ?"


def parts(record: dict[str, Any]) -> Iterator[Entry]:
    """What one part says; one that is still being written says nothing yet."""
    part = dict_of(record, "part")
    kind, state = text_of(part, "type"), dict_of(part, "state")
    status, pair = text_of(state, "status"), text_of(part, "callID")
    is_whole = record.get("role") == "user" or "end" in dict_of(part, "time")
    if kind == "text" and is_whole:
        yield from message(text_of(record, "role"), text_of(part, "text"))
    elif kind == "reasoning" and is_whole:
        yield from thinking(text_of(part, "text"))
    elif kind == "tool" and status in ("running", "completed", "error"):
        yield call(text_of(part, "tool"), pair, state.get("input"))
        if status != "running":
            yield result(pair, text_of(state, "output") or text_of(state, "error"), failed=status == "error")


class Steps:
    """What each step of an answer used, by the part that ends it."""

    def __init__(self, source: str, _opened: Opened) -> None:
        self._source = source

    def take(self, data: bytes) -> Iterator[Answer]:
        """Raises ValueError for counts that are none."""
        record = json.loads(data)
        part = dict_of(record, "part")
        if text_of(part, "type") == "step-finish" and isinstance(part.get("tokens"), dict):
            paid, name = reported(part.get("cost")), plain(record.get("id"), 200)
            yield Answer(self._source, name, 0.0, plain(record.get("model")), "", "", "", "", tokens_of(part["tokens"]), paid, -1, False)

    def state(self) -> str:
        return ""


def rows(path: str, before: FilePlace | None, uid: int, where: Whereabouts) -> Tailed:
    """The parts of a session that were written since ``before``, whose offset is when the last of them was. Never raises."""
    import sqlite3

    place = before or FilePlace(path)
    try:
        seen = Path(path).stat(follow_symlinks=False)
        if seen.st_uid != uid:
            return Tailed(place, problem=f"it belongs to uid {seen.st_uid}, the agent to uid {uid}")
        is_same = (place.dev, place.inode) == (seen.st_dev, seen.st_ino)
        since = place.offset if is_same else 0
        with closing(connect(path)) as database:
            found = database.execute(_PARTS, (where.sub or where.session, since, ROW_MAX, ROWS_MAX)).fetchall()
    except FileNotFoundError:
        return Tailed(place, is_gone=True)
    except (OSError, sqlite3.Error, OverflowError) as error:
        return Tailed(place, problem=f"{error}"[:200])
    last = max((at for _, _, at, _, _ in found if type(at) is int), default=since)
    # Parts of the last moment are read again: names of entries keep each once. A moment with more parts than that is passed.
    more = len(found) == ROWS_MAX
    place = FilePlace(path, seen.st_dev, seen.st_ino & ((1 << 63) - 1), last + (more and last == since), "", place.state)
    return Tailed(place, [*_lines(found)], again=before is not None and before.offset > 0 and not is_same, more=more)


def _lines(found: list[tuple[Any, ...]]) -> Iterator[bytes]:
    for name, created, _, data, said in found:
        try:
            part, of = json.loads(data), json.loads(said)
            at = datetime.fromtimestamp(created / 1000, UTC).isoformat()
        except (ValueError, TypeError, OverflowError, OSError, RecursionError):
            part, of, at = None, {}, ""
        if not isinstance(part, dict) or not isinstance(of, dict):
            yield str(data).encode("utf-8", "replace")  # shown as what cannot be read
            continue
        provider, model = plain(of.get("providerID"), 100), plain(of.get("modelID"))
        model = f"{provider}/{model}" if provider else model
        yield json.dumps({"id": str(name), "timestamp": at, "role": of.get("role"), "model": model, "part": part}).encode()


def _find(folders: list[Path], where: Whereabouts, _wide: bool) -> Path | None:
    """The database that names the session."""
    import sqlite3

    for folder in folders:
        for path in sorted(folder.glob("*.db"))[:10]:
            try:
                with closing(connect(str(path))) as database:
                    if database.execute(_NAMED, (where.sub or where.session,)).fetchone() is not None:
                        return path
            except sqlite3.Error:
                continue
    return None


def _of(source: str) -> Activity:
    lines = partial(RecordLines, parts, partial(Steps, source))
    return Activity(source, Folder("", f".local/share/{source}"), lines, _find, rows=rows)


ACTIVITY, KILO_ACTIVITY = _of(SOURCE), _of(KILO)
