"""Functions that are known: no name is in both lists, and sqlglot knows those of its own."""

from __future__ import annotations

from sqlglot import exp

from console.policy.tools.functions import HARMLESS, WITH_EFFECTS


def test_the_lists_hold_what_they_say() -> None:
    keys = {one.key for one in vars(exp).values() if isinstance(one, type) and issubclass(one, exp.Func)}
    assert keys >= WITH_EFFECTS, "a name that sqlglot does not have protects from nothing"
    assert not HARMLESS & {
        "nextval",
        "setval",
        "pg_sleep",
        "sleep",
        "dblink",
        "load_file",
        "pg_read_file",
        "set_config",
        "get_lock",
        "url",
        "file",
    }
    assert all(name == name.lower() for name in HARMLESS)
