"""Statements for a database: which could write, and which tables they name for certain."""

from __future__ import annotations

import pytest

from console.policy.statements import could_write, tables


@pytest.mark.parametrize(
    "said",
    [
        "DELETE FROM t",
        "select 1; drop table t",
        "SELECT * INTO x FROM t",
        "DeL/**/ETE from t",
        "sel--\nect 1; upd/* */ate t set a=1",
        "ＤＥＬＥＴＥ from t",
        "with x as (insert into t values (1) returning *) select * from x",
        "select nextval('s')",
        "copy t to program 'sh'",
        "do $$ begin end $$",
        "db.users.deleteMany({})",
        "db.users.find_one_and_update({}, {})",
    ],
)
def test_what_could_write_is_named(said: str) -> None:
    assert could_write(said)


@pytest.mark.parametrize("said", ["select a, updated_at from t", "show tables", "analytics", "explain select * from deleted_rows"])
def test_what_only_reads_is_not(said: str) -> None:
    assert could_write(said) == ""


@pytest.mark.parametrize(
    ("said", "named"),
    [
        ("analytics", []),
        ("select * from stats", ["stats"]),
        ('select * from "Shop"."Stats" s join Visits on true', ["shop.stats", "visits"]),
        ("select * from stats, secrets", None),
        ("select * from stats s , secrets", None),
        ("select * from (select * from secrets) x", None),
        ("select * from stats -- from secrets", None),
        ("select * from/**/secrets", None),
        ("execute ('sel' || 'ect')", None),
        ("delete secrets", None),
        ("delete/**/secrets where 1=1", None),
        ("insert ignore secrets values (1)", None),
        ("delete low_priority from stats", ["stats"]),
        ("insert or ignore into stats(a) values (1)", ["stats"]),
        ("copy secrets to stdout", None),
        ("select 1; handler secrets open", None),
        ("drop view secrets", None),
        ("drop table stats", ["stats"]),
        ("delete", []),
        ("select * from stats$secret", None),
        ("select * from stats@elsewhere", None),
        ("select * from stats order by a desc", ["stats"]),
        ("execute ('x') from stats", None),
        ("use other; select * from stats", None),
        ("set search_path = other; select * from stats", None),
        (r"select * from U&'\0073'", None),
    ],
)
def test_tables_are_named_or_not_certain(said: str, named: list[str] | None) -> None:
    assert tables(said) == named


@pytest.mark.parametrize(
    "said",
    [
        "from only " * 26_000,
        "from" + " " * 260_000,
        "from a " * 37_000,
        "/* " * 87_000,
        "\n" * 260_000,
        "delete " * 37_000,
        "insert or " * 26_000,
        "a" + "\u0300\u0316" * 130_000,
    ],
    ids=lambda said: ascii(said[:10]),
)
def test_the_longest_call_takes_no_time_with_the_square_of_its_length(said: str) -> None:
    """Minutes, were it so: the whole supervisor stands meanwhile."""
    could_write(said)
    tables(said)
