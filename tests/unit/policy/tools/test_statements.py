"""The statements of a call, wherever its input holds them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from console.policy.tools.statements import stated, statement_of, tables_of


def writes(detail: Any, argument: str = "", takes: bool = True) -> bool | None:
    found = statement_of(argument, detail if isinstance(detail, str) else json.dumps(detail), takes_statements=takes)
    return None if found is None else bool(found.writes)


@pytest.mark.parametrize(
    ("detail", "expected"),
    [
        ({"sql": "SELECT 1"}, False),
        ({"sql": "SELECT 1", "database": "analytics", "limit": 5}, False),
        ({"sql": "DELETE FROM t"}, True),
        ({"Query": "DELETE FROM t"}, True),
        ({"input": {"deep": ["delete from stats"]}}, True),
        ({"x": "DELETE FROM t"}, True),
        ({"database": "a; drop table t", "sql": "select 1"}, True),
        ({"sql": "SELECT 1", "description": "delete old rows"}, False),
        ({"description": "DELETE FROM t"}, True),
        ({"sql": "SELECT * FROM t WHERE a = $1", "params": ["please delete me"]}, False),
        ({"params": ["DELETE FROM t"]}, True),
        ('{"sql": "SELECT 1", "sql": "DELETE FROM t"}', True),
        ({"sql": ["SELECT 1", "DELETE FROM t"]}, True),
        ({"sql": '{"sql": "DELETE FROM t"}'}, True),
        ({"sql": "free words"}, True),
        ({"table": "users"}, None),
        ({}, None),
    ],
)
def test_every_member_is_looked_at(detail: Any, expected: bool | None) -> None:
    assert writes(detail) is expected


def test_an_argument_is_a_statement_too() -> None:
    assert writes("", "SELECT 1") is False and writes("", "DELETE FROM t") is True
    assert writes("", json.dumps("DELETE FROM t")) is True
    assert writes({"sql": "SELECT 1"}, "DELETE FROM t") is True
    assert writes("", "public", takes=False) is None and writes("", "drop table t", takes=False) is True
    assert writes({"query": "gaming laptop"}, takes=False) is None


def test_an_input_without_end_is_a_write() -> None:
    assert writes({"sql": ["SELECT 1"] * 6000}) is True
    assert writes({"sql": [f"SELECT {n}" for n in range(60)]}) is True
    assert writes("[" * 100_000) is True


def test_tables_that_members_name() -> None:
    assert tables_of("", json.dumps({"table": "a", "tables": ["b", 1], "collection": "c"})) == ["a", "b", "c"]
    assert tables_of("x", "[1]") == []


@pytest.mark.timeout(20)
@pytest.mark.parametrize("before", ["/**/" * 5000, "-- \n" * 5000, "-- " * 5000, "/*" + "*" * 50_000, "(;\n" * 5000])
def test_comments_in_a_row_take_no_time(before: str) -> None:
    """An agent writes them: a pattern that tries each way to part them would take hours."""
    assert stated(json.dumps({"sql": f"{before} nothing"}), "") is None


@pytest.mark.parametrize("before", ["/* a */" * 20, "-- a\n" * 20, "/***/(;\n-- b\n"])
def test_a_statement_behind_comments_is_one(before: str) -> None:
    found = stated(json.dumps({"sql": f"{before}drop table payroll"}), "")
    assert found is not None and found.writes
