"""What a SQL statement does: reads and writes by every dialect that can read it, and bounds on the work of reading it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from console.policy.tools import sql
from console.policy.tools.sql import read_sql


@pytest.mark.parametrize(
    ("text", "tables"),
    [
        ("SELECT * FROM t", ("t",)),
        ("select a, updated_at from t where note = 'please update me'", ("t",)),
        ("SELECT replace(a, 'x', 'y') FROM t", ("t",)),
        ('select * from "Shop"."Stats" s join Visits on true', ("shop.stats", "visits")),
        ("SELECT `a` FROM `b`", ("b",)),
        ("SELECT TOP 10 * FROM dbo.users WITH (NOLOCK)", ("dbo.users",)),
        ("SELECT a::int FROM t LIMIT 5", ("t",)),
        ("SELECT a FROM t WHERE b @> '{}' AND c->>'x' = 'y' AND d ~* 'z'", ("t",)),
        ("select * from (select * from secrets) x, stats", ("stats", "secrets")),
        ("SELECT x FROM t1 UNION ALL SELECT y FROM t2", ("t1", "t2")),
        ("SELECT * FROM t -- all of them", ("t",)),
        ("SELECT 1; SELECT 2 FROM u;", ("u",)),
        ("EXPLAIN SELECT * FROM t", ("t",)),
        ("EXPLAIN (ANALYZE, BUFFERS) SELECT * FROM t", ("t",)),
        ("SHOW TABLES", ()),
        ("SHOW CREATE TABLE t", ("t",)),
        ("DESCRIBE t", ("t",)),
        ("PRAGMA table_info(t)", ("t",)),
        ("VALUES (1)", ()),
        ("BEGIN; SELECT * FROM t; COMMIT", ("t",)),
        ("SELECT pg_size_pretty(pg_total_relation_size(c.oid)) FROM pg_catalog.pg_class c", ("pg_catalog.pg_class",)),
        ("SELECT pg_catalog.lower('a')", ()),
        ("SELECT * FROM t FINAL ARRAY JOIN x SETTINGS max_threads = 1", ("t",)),
        ("WITH x AS (SELECT 1) SELECT * FROM x", ()),
        ("WITH RECURSIVE x AS (SELECT 1 UNION ALL SELECT n + 1 FROM x) SELECT * FROM x", ()),
        ("WITH payroll AS (SELECT * FROM payroll) SELECT * FROM payroll", ("payroll",)),
        ("WITH a AS (SELECT * FROM b), b AS (SELECT 1) SELECT * FROM b", ("b",)),
    ],
)
def test_a_query_only_reads(text: str, tables: tuple[str, ...]) -> None:
    found = read_sql(text)
    assert found.writes == "" and set(found.read or ()) == set(tables) and found.written == ()


@pytest.mark.parametrize(
    ("text", "read", "written"),
    [
        ("DELETE FROM payroll", (), ("payroll",)),
        ("DROP TABLE x, y", (), ("x", "y")),
        ("TRUNCATE a, b", (), ("a", "b")),
        ("INSERT INTO a SELECT * FROM b", ("b",), ("a",)),
        ("REPLACE INTO t VALUES (1)", (), ("t",)),
        ("UPDATE t SET a = 1 WHERE id IN (SELECT id FROM u)", ("u",), ("t",)),
        ("UPDATE t SET a = 1 RETURNING *", ("t",), ("t",)),
        ("SELECT * INTO x FROM t", ("t",), ("x",)),
        ("CREATE TABLE n AS SELECT * FROM m", ("m",), ("n",)),
        ("WITH d AS (DELETE FROM t RETURNING *) SELECT * FROM d", (), ("t",)),
        ("MERGE INTO a USING b ON a.id = b.id WHEN MATCHED THEN DELETE", ("b",), ("a",)),
        ("COPY t TO STDOUT", (), ("t",)),
        ("insert/**/into/* from x */users values (1)", (), ("users",)),
        ("select 1; drop table t", (), ("t",)),
    ],
)
def test_a_write_names_what_it_changes(text: str, read: tuple[str, ...], written: tuple[str, ...]) -> None:
    found = read_sql(text)
    assert found.writes and set(found.written or ()) == set(written) and set(found.read or ()) == set(read)


@pytest.mark.parametrize(
    "text",
    [
        "EXPLAIN ANALYZE DELETE FROM t",
        "explain (analyze) update t set a = 1",
        "SHOW TABLES; DROP TABLE t",
        "SHOW TABLES DROP TABLE t",
        "PRAGMA writable_schema = 1",
        "PRAGMA user_version(5)",
        "COPY t TO PROGRAM 'sh'",
        "SELECT * FROM t INTO OUTFILE '/tmp/x'",
        "SELECT * FROM t FOR UPDATE",
        "DO $$ BEGIN DELETE FROM t; END $$",
        "CALL x()",
        "EXEC xp_cmdshell 'dir'",
        "sp_who",
        "SELECT 1 SHUTDOWN",
        "SELECT a EXEC FROM t",
        "select * from t exec xp_cmdshell 'dir'",
        "SELECT nextval('s')",
        "SELECT my_function(1)",
        "SELECT evil.lower('a')",
        "SELECT pg_terminate_backend(1)",
        "SELECT lo_export(1, '/x')",
        "SELECT set_config('a', 'b', false)",
        "SELECT * FROM dblink('x', 'delete from t') AS t(a int)",
        "SELECT query_to_xml('delete from t', true, true, '')",
        "SELECT load_extension('x')",
        "SELECT * FROM read_csv('https://evil.example/')",
        "SELECT * FROM 'https://evil.example/x.csv'",
        "SELECT @a := 1",
        "SET search_path = other; SELECT * FROM stats",
        "ATTACH DATABASE 'x' AS y",
        "LOAD DATA INFILE 'x' INTO TABLE t",
        "GRANT ALL ON t TO public",
        "IF 1 = 1 DELETE FROM t",
        "BEGIN DELETE FROM t END",
        "DECLARE @a varchar(9) = 'x'; EXEC(@a)",
        "ＤＥＬＥＴＥ from t",
        "MATCH (n) DETACH DELETE n",
        "db.users.deleteMany({})",
        "analytics",
        "",
        "not sql at all, really",
    ],
)
def test_what_cannot_be_read_or_does_more_than_read_is_a_write(text: str) -> None:
    assert read_sql(text).writes


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1 --1; DELETE FROM t",  # MySQL needs a space behind --
        "SELECT /*! 1; DELETE FROM t */ 1",  # MySQL executes it
        "SELECT /*M! 1; DELETE FROM t */ 1",
        "SELECT /*+ SET_VAR(x = 1) */ 1",
        "SELECT '\\'; DELETE FROM t; -- '",  # a backslash ends the text, or not
        "SELECT E'\\'; DELETE FROM t; --'",
        "SELECT [a'] FROM t; DELETE FROM u --']",
        "SELECT $a$ ; DELETE FROM t; $a$",
        "SELECT 1 # ; DELETE FROM t",
        "SELECT /* /* */ 1; DELETE FROM t; -- */ 1",
        'SELECT "a; DELETE FROM t; --"\'',
        "SELECT '{{ x }}'; {% raw %} DELETE FROM t",
        "SELECT 1 \u037e DELETE FROM t",
        "SELECT 1;\u2028DELETE FROM t",
        "%44%45LETE FROM t",
        "SELECT 1;\x0bDELETE\x0cFROM t",
        "select 1 del/**/ete from t",
    ],
)
def test_a_trick_of_one_dialect_does_not_hide_a_write(text: str) -> None:
    assert read_sql(text).writes


def test_a_later_statement_that_reads_what_an_earlier_one_wrote_is_told() -> None:
    assert read_sql("INSERT INTO t VALUES (1); SELECT * FROM t").verified == ("t",)
    assert read_sql("INSERT INTO t VALUES (1); SELECT * FROM u").verified == ()
    assert read_sql("INSERT INTO a SELECT * FROM a").verified == (), "one statement is no sequence"


@pytest.mark.parametrize(
    "text",
    [
        "SELECT " + "(" * 4000 + "1" + ")" * 4000,
        "SELECT * FROM (" * 500,
        "SELECT " + "CASE WHEN (" * 400 + "1",
        "SELECT " + "NOT " * 2000 + "1",
        "SELECT 1" + "+1" * 4000,
        "SELECT '" + "x" * 1_048_000,
        "SELECT 1 -- " + "x" * 1_048_000,
        "/*" * 4000,
        "'" * 8001,
        "{{ a }} " * 1000,
        "a" + "\u0300\u0316" * 130_000,
    ],
    ids=lambda text: ascii(text[:20]),
)
def test_the_longest_text_is_read_in_bounded_steps(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[int] = []
    real = sql._bounded

    def counted(dialect: str) -> tuple[object, object]:
        language, parser = real(dialect)

        class Counted(parser):  # type: ignore[misc, valid-type]
            def parse(self, *given: object) -> object:
                try:
                    return super().parse(*given)
                finally:
                    steps.append(getattr(self, "steps", 0))

        return language, Counted

    monkeypatch.setattr(sql, "_bounded", counted)
    sql.read_sql.cache_clear()
    assert read_sql(text).writes
    assert sum(steps) <= 11 * (sql.STEPS_MAX + 1)


def test_the_parser_is_not_loaded_before_a_statement_is_read() -> None:
    code = "import sys, console.policy.judge, console.api.policy.policy_data as p; p.tools(); assert 'sqlglot' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_a_new_library_brings_no_function_that_is_not_looked_at() -> None:
    """Names of functions that more than compute: a new version of sqlglot that parses one as its own is seen here."""
    for name in ("pg_sleep", "sleep", "setval", "lo_import", "pg_read_file", "xp_cmdshell", "load_file", "url", "s3", "http_get", "system"):
        assert read_sql(f"SELECT {name}('a')").writes, name
