"""Read from OpenCode's database what answers used and cost: ``~/.local/share/opencode/opencode.db`` (SQLite). Made for version 1.18.

Kilo is made from OpenCode and writes the same tables. The database belongs to another program. So it is opened for reading only and for a
bounded time. One that is locked, broken or of another layout is left out, with the reason.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from console.domain.spend import Answer, Tokens
from console.sources.reading import count, decoded, reported
from console.sources.spend.transcript_files import Folder, Opened, Transcripts
from console.sources.text import known, plain

if TYPE_CHECKING:
    import sqlite3

SOURCE, KILO = "opencode", "kilo"
LOCKED_S = 0.25
"""Seconds to wait for the lock of another program."""
READ_S = 20.0
"""Longest time of one reading; the next goes on."""
ROW_MAX = 1 << 20
"""Bytes of one message that are taken apart."""
VALUE_MAX = 64 << 20
"""Bytes of one value; a database that holds a longer one is not read on."""
SESSIONS_MAX = 100_000
_DATABASE = re.compile(r"/(?:opencode(?:-[A-Za-z0-9_-]+)?|kilo)\.db(?:-wal)?\Z")
_ABOVE = 20
_MESSAGES = """
select substr(id, 1, 200), substr(session_id, 1, 200), time_updated, data from message
where time_updated >= ? and length(data) <= ? and data like '%"assistant"%' order by time_updated"""


class _Record(msgspec.Struct):
    role: object = None
    tokens: object = None
    time: object = None
    providerID: object = None  # noqa: N815 - as it is written
    modelID: object = None  # noqa: N815
    cost: object = None


_RECORDS = msgspec.json.Decoder(_Record)


class Whose(NamedTuple):
    """Of one session."""

    parent: str
    folder: str


def read(source: str, opened: Opened) -> Iterator[tuple[Answer, str]]:
    """Each answer since the state, with the state behind it. Raises OSError with the reason when it cannot be read."""
    import sqlite3

    since = int(opened.state) if opened.state.isdigit() else 0
    try:
        database = connect(opened.path.removesuffix("-wal"))
        try:
            sessions = _sessions(database)
            for name, session, at, data in database.execute(_MESSAGES, (since, ROW_MAX)):
                answer = _answer(source, opened, sessions, plain(name, 200), known(session, 64), data)
                if answer is not None:
                    yield answer, str(at) if type(at) is int else opened.state
        finally:
            database.close()
    except (sqlite3.Error, OverflowError) as error:
        raise OSError(0, f"{error}"[:200]) from error


def connect(path: str) -> sqlite3.Connection:
    """The database, to be read alone: nothing is written, not even beside it. Raises sqlite3.Error."""
    import sqlite3
    from urllib.parse import quote  # a process that reads only files of lines does without both

    found = sqlite3.connect(f"file:{quote(path)}?mode=ro&readonly_shm=1", uri=True, timeout=LOCKED_S)
    found.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, VALUE_MAX)
    until = time.monotonic() + READ_S
    found.set_progress_handler(lambda: int(time.monotonic() > until), 100_000)
    for setting in ("query_only = on", "trusted_schema = off", "cell_size_check = on", "cache_size = -2000", "mmap_size = 0"):
        found.execute(f"pragma {setting}")
    return found


def _sessions(database: sqlite3.Connection) -> dict[str, Whose]:
    rows = database.execute(
        "select substr(id, 1, 200), substr(parent_id, 1, 200), substr(directory, 1, 500) from session limit ?", (SESSIONS_MAX,)
    )
    return {str(name): Whose(str(parent or ""), plain(folder, 500)) for name, parent, folder in rows}


def _root(sessions: dict[str, Whose], session: str) -> str:
    for _ in range(_ABOVE):
        above = sessions.get(session)
        if above is None or not above.parent:
            break
        session = above.parent
    return known(session, 64)


def _answer(source: str, opened: Opened, sessions: dict[str, Whose], name: str, session: str, data: object) -> Answer | None:
    record = decoded(data, _RECORDS) if isinstance(data, str) else None
    try:
        if record is None:
            raise ValueError("it cannot be read")
        if record.role != "assistant" or not isinstance(record.tokens, dict):
            return None
        tokens = tokens_of(record.tokens)
        if not tokens.total:
            return None
        if not name or not tokens.is_sane():
            raise ValueError("it names no answer, or no model gives such counts")
        at = count(record.time, "created") / 1000
    except ValueError:
        opened.seen.odd += 1
        return None
    opened.seen.answers += 1
    root, whose = _root(sessions, session), sessions.get(session)
    provider, model = known(record.providerID, 100), known(record.modelID)
    where = (root, "" if root == session else session, whose.folder if whose is not None else "")
    model = f"{provider}/{model}" if provider else model
    return Answer(source, name, at, model, "", *where, tokens, reported(record.cost), opened.uid, opened.ours)


def tokens_of(said: dict[str, Any]) -> Tokens:
    """Counts as the program writes them; what the total holds beyond its parts is reasoning, billed as output. Raises ValueError."""
    cache = said.get("cache")
    given, read, written, output = count(said, "input"), count(cache, "read"), count(cache, "write"), count(said, "output")
    total = count(said, "total")
    more = max(0, total - given - read - written - output) if total else count(said, "reasoning")
    return Tokens(given, read, written, 0, output + more)


def is_under_way(data: object) -> bool:
    """Whether this message is an answer that has not ended: what it used is not written yet."""
    record = decoded(data, _RECORDS) if isinstance(data, str) else None
    return record is not None and record.role == "assistant" and not (isinstance(record.time, dict) and "completed" in record.time)


def _is_database(path: str) -> bool:
    return bool(_DATABASE.search(path))


def _of(source: str, folder: str) -> Transcripts:
    folders = (Folder("", f".local/share/{folder}"),)
    return Transcripts(
        source,
        "",
        folders,
        None,
        own=(*folders, Folder("", f".watchfloor/{folder}/DATA/{folder}")),
        is_one=_is_database,
        depth=0,
        database=partial(read, source),
    )


TRANSCRIPTS, KILO_TRANSCRIPTS = _of(SOURCE, "opencode"), _of(KILO, "kilo")
