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
        ("execute ('sel' || 'ect')", []),
        ("execute ('x') from stats", None),
        ("use other; select * from stats", None),
        ("set search_path = other; select * from stats", None),
        (r"select * from U&'\0073'", None),
    ],
)
def test_tables_are_named_or_not_certain(said: str, named: list[str] | None) -> None:
    assert tables(said) == named
