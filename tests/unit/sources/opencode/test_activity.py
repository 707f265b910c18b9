"""What OpenCode's database says that a session did: one that the real program wrote, as it grows, or is not what it was."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from console.domain.activity import Entry, Kind
from console.domain.spend import Answer
from console.sources.activity.files import AgentFiles, Whereabouts
from console.sources.opencode.activity import ACTIVITY, ROWS_MAX

DATA = Path(__file__).parents[3] / "data" / "opencode" / "activity.sql"
SESSION = "ses_de9b034ddffe9mmXIPdUbhtqjU"
LAST = "msg_2164ffcd4001y8Foq5wivotMoG"


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """The program's own connection, which stays open and writes into the log."""
    folder = tmp_path / ".local" / "share" / "opencode"
    folder.mkdir(parents=True)
    with closing(sqlite3.connect(folder / "opencode.db", isolation_level=None)) as database:
        database.execute("pragma journal_mode = wal")
        database.executescript(DATA.read_text())
        yield database


def priced(answer: Answer) -> int | None:
    return answer.tokens.total


def files(tmp_path: Path, **changed: str) -> AgentFiles:
    uid = tmp_path.stat().st_uid
    where = Whereabouts("opencode", uid, SESSION, "/home/dev/proj")._replace(**changed)  # type: ignore[arg-type]
    return AgentFiles(where, ACTIVITY, tmp_path, priced, {})


def new(found: AgentFiles) -> list[Entry]:
    return [entry for batch in found.read() for entry in batch.entries] if found.has_news() else []


def write(database: sqlite3.Connection, name: str, at: int, part: object, session: str = SESSION) -> None:
    data = part if isinstance(part, str) else json.dumps(part)
    row = (name, LAST, session, at, at, data)
    database.execute("insert or replace into part values(?, ?, ?, ?, ?, ?)", row)


def test_a_session_of_the_real_program_is_told_in_its_order(tmp_path: Path, writer: sqlite3.Connection) -> None:
    said = new(files(tmp_path))
    assert [(one.kind, one.who or one.tool, one.text) for one in said] == [
        (Kind.MESSAGE, "user", '"THETASK please"'),
        (Kind.TOOL_CALL, "bash", "command: ls; echo hi > f.txt\ndescription: work"),
        (Kind.TOOL_RESULT, "", "(no output)"),
        (Kind.SPEND, "anthropic/claude-sonnet-4-5", "1,000 in (0 from the cache), 100 out"),
        (Kind.MESSAGE, "assistant", "All done."),
        (Kind.SPEND, "anthropic/claude-sonnet-4-5", "1,000 in (0 from the cache), 100 out"),
    ]
    assert said[1].pair == said[2].pair == "toolu_fake000002" and said[5].cost_nano == 1100 and said[0].at == 1795670663.609


def test_what_is_written_later_is_told_once_and_nothing_before_it_is_whole(tmp_path: Path, writer: sqlite3.Connection) -> None:
    found = files(tmp_path)
    known = {one.source_id for one in new(found)}
    assert new(found) == []
    at = 1795670680000
    write(writer, "prt_a", at, {"type": "text", "text": "Half a", "time": {"start": at}})
    tool = {"type": "tool", "tool": "read", "callID": "c1"}
    write(writer, "prt_b", at, {**tool, "state": {"status": "running", "input": {"filePath": "a.py"}}})
    later = new(found)
    assert [one.kind for one in later if one.source_id not in known] == [Kind.TOOL_CALL]
    known |= {one.source_id for one in later}
    write(writer, "prt_a", at + 1, {"type": "text", "text": "Half a word.", "time": {"start": at, "end": at + 1}})
    write(writer, "prt_b", at + 1, {**tool, "state": {"status": "error", "input": {"filePath": "a.py"}, "error": "no such file"}})
    write(writer, "prt_c", at + 1, {"type": "reasoning", "text": "Why?", "time": {"start": at, "end": at + 1}})
    last = [(one.kind, one.text, one.failed) for one in new(found) if one.source_id not in known]
    assert last == [(Kind.MESSAGE, "Half a word.", False), (Kind.TOOL_RESULT, "no such file", True), (Kind.THINKING, "Why?", False)]


def test_a_sub_agent_has_its_own_session_of_the_same_database(tmp_path: Path, writer: sqlite3.Connection) -> None:
    writer.execute("create temp table copy as select * from session")
    writer.execute("update copy set id = 'ses_below', parent_id = ?", (SESSION,))
    writer.execute("insert into session select * from copy")
    write(writer, "prt_below", 1795670690000, {"type": "text", "text": "Looked.", "time": {"end": 1}}, "ses_below")
    assert [one.text for one in new(files(tmp_path, sub="ses_below"))] == ["Looked."]
    assert "Looked." not in [one.text for one in new(files(tmp_path))]
    assert new(files(tmp_path, session="ses_of-nobody")) == []


def test_a_long_session_comes_in_parts_and_a_part_that_is_none_is_shown_as_such(tmp_path: Path, writer: sqlite3.Connection) -> None:
    for number in range(ROWS_MAX + 10):
        write(writer, f"prt_x{number:05}", 1795670700000 + number, {"type": "text", "text": f"{number}", "time": {"end": 1}})
    write(writer, "prt_y", 1795670709999, "[1, 2]")
    found = files(tmp_path)
    first = new(found)
    assert found.problem == "" and len(first) <= ROWS_MAX
    rest = new(found)
    assert {one.text for one in (*first, *rest)} >= {f"{n}" for n in range(ROWS_MAX + 10)}
    assert [one.kind for one in rest if one.failed] == [Kind.ERROR]


def test_what_cannot_be_read_is_a_problem_and_no_end(tmp_path: Path, writer: sqlite3.Connection) -> None:
    found = files(tmp_path, session=SESSION)
    assert new(found)
    other = AgentFiles(found.where._replace(uid=found.where.uid + 1), ACTIVITY, tmp_path, priced, {})
    assert new(other) == [] and "belongs to uid" in other.problem
    writer.execute("alter table part rename to parts")  # a newer version of the program
    assert new(found) == [] and "no such table: part" in found.problem
    writer.execute("alter table parts rename to part")
    writer.execute("update part set time_updated = time_updated + 100000")
    assert new(found) and not found.problem
