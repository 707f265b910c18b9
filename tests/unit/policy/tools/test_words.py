"""Words that could change a database."""

from __future__ import annotations

import pytest

from console.policy.tools.words import could_write, words


@pytest.mark.parametrize(
    "said",
    [
        "DELETE FROM t",
        "select 1; drop table t",
        "DeL/**/ETE from t",
        "sel--\nect 1; upd/* */ate t set a=1",
        "ＤＥＬＥＴＥ from t",
        "copy t to program 'sh'",
        "db.users.deleteMany({})",
        "db.users.find_one_and_update({}, {})",
        "exec xp_cmdshell",
    ],
)
def test_what_could_write_is_named(said: str) -> None:
    assert could_write(said)


@pytest.mark.parametrize("said", ["select a, updated_at from t", "show tables", "analytics", "explain select * from deleted_rows"])
def test_what_only_reads_is_not(said: str) -> None:
    assert could_write(said) == ""


def test_lists_are_text() -> None:
    assert words("a b", "c") == {"a", "b", "c"}


@pytest.mark.parametrize(
    "said", ["/* " * 87_000, "\n" * 260_000, "delete " * 37_000, "a" + "\u0300\u0316" * 130_000], ids=lambda s: ascii(s[:8])
)
def test_the_longest_call_takes_no_time_with_the_square_of_its_length(said: str) -> None:
    could_write(said)
