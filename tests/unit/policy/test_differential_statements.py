"""Statements for a database, by the parsers and by the reference: both must answer alike on the part of SQL that the reference knows."""

from __future__ import annotations

import random

import pytest

from console.policy.tools.sql import read_sql
from tests.fakes.reference_policy import changes

TABLES = ("t", "payroll", "public.users", "a_set")
VALUES = ("1", "'x'", "'it''s; DELETE FROM t'", "a", "count(*)", "lower(a)", "my_function(a)", "pg_terminate_backend(1)", "coalesce(a, 1)")


def query(chance: random.Random, deep: int = 0) -> str:
    """A query, now and then with something in it that changes a table."""
    table = chance.choice(TABLES) if deep > 2 or chance.randrange(4) else f"({query(chance, deep + 1)}) x"
    said = f"SELECT {chance.choice(VALUES)} {chance.choice(('', '', '', '', 'INTO n '))}FROM {table}"
    said += chance.choice(("", "", f" WHERE a = {chance.choice(('1', 'lower(a)', 'nextval(1)'))}", " JOIN u ON b = 1"))
    return said + (f" UNION ALL {query(chance, deep + 1)}" if deep < 2 and not chance.randrange(5) else "")


def statement(chance: random.Random) -> str:
    """Any statement."""
    match chance.randrange(9):
        case 0:
            return chance.choice(("DELETE FROM t", "UPDATE t SET a = 1", "INSERT INTO t VALUES (1)", "DROP TABLE t", "TRUNCATE TABLE t"))
        case 1:
            inside = query(chance) if chance.randrange(3) else "DELETE FROM t RETURNING a"
            return f"WITH x AS ({inside}) {query(chance)}"
        case 2:
            return chance.choice(("analytics", "CALL f()", "free words here", "", ";", "/* a */", "SELECT 1 -- delete", "BEGIN", "COMMIT"))
        case _:
            return query(chance)


@pytest.mark.parametrize("seed", range(8))
def test_both_say_the_same_of_what_changes(seed: int) -> None:
    chance = random.Random(seed)
    answers = set()
    for _ in range(60):
        text = "; ".join(statement(chance) for _ in range(chance.choice((1, 1, 1, 2, 3))))
        found = bool(read_sql(text).writes)
        assert found is changes(text), (text, read_sql(text))
        answers.add(found)
    assert answers == {True, False}
