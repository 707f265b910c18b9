"""The statements that a call carries, wherever its input holds them: which member a tool truly reads is not known."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator, Mapping

from console.policy.tools.sql import Statement, read_sql, unknown
from console.policy.tools.words import could_write, words

_STATEMENT = words(
    "sql query querytext queries sqlquery sqlstatement sqltext statement statements stmt q command cmd script code cypher ddl dml",
    "migration input text",
)
"""Members, without signs and in lower case, that hold a statement where a tool takes one."""
_TEXT = words(
    "description explanation reason title comment summary purpose note message thought rationale justification",
)
"""What people read: no tool runs it. Without a statement beside it nothing is known of a tool, and they count."""
_VALUES = words(
    "params parameters bindings bind values args arguments variables queryparams queryparameters",
)
"""Values that are bound to a statement beside them."""
_BEGINS = re.compile(r"[\s(]*(?:select|with|values|explain|show|describe|pragma|table)\b", re.IGNORECASE)
_SQL = words(
    "sql query querytext queries sqlquery sqlstatement sqltext statement statements stmt ddl dml",
)
"""Members that hold SQL where a text in them begins like it: of tools about which nothing else is known."""
_SQL_BEGINS = re.compile(
    # What was matched before the first word is never tried again: comments in a row would take hours.
    r"""[\s(;]*+(?:--[^\n]*+\s[\s(;]*+|/\*(?:[^*]|\*(?!/))*+\*/[\s(;]*+)*+(?:
    select\s.*\sfrom\s|with\s.*\sas\s*\(|(?:insert|replace|merge)\s+into\s|delete\s+from\s
    |update\s+[\w.`"\[\]]+\s+set\s|truncate\s|grant\s.*\sto\s|revoke\s.*\sfrom\s
    |(?:drop|alter|create)\s+(?:\w+\s+){0,3}?(?:table|view|index|database|schema|function|procedure|trigger|user|role|sequence|column)\s)""",
    re.IGNORECASE | re.VERBOSE | re.DOTALL,
)
_TABLES = ("table", "table_name", "tables", "tableName", "collection", "collection_name")
NODES_MAX = 5_000
STATEMENTS_MAX = 50


def statement_of(argument: str, detail: str, *, takes_statements: bool) -> Statement | None:
    """All statements of a call, one after the other; None: it carries none."""
    try:
        texts = list(texts_of(argument, detail))
    except OverflowError:
        return unknown("its input has more parts than are read")
    is_given = any(kind == "statement" for kind, _text in texts)
    chosen = [text for kind, text in texts if _counts(kind, text, takes_statements, is_given)]
    unique = list(dict.fromkeys(chosen))
    if len(unique) > STATEMENTS_MAX:
        return unknown("it carries more statements than are read")
    return functools.reduce(Statement.joined, [read_sql(text) for text in unique]) if unique else None


def stated(argument: str, detail: str) -> Statement | None:
    """The statements in members that are called after SQL and begin like it, of a call of any tool; None: there is none."""
    found: list[str] = []
    for text in (argument, detail):
        told = _parsed(text)
        if isinstance(told, Mapping):
            members = [value for key, value in told.items() if re.sub(r"[^a-z]", "", str(key).lower()) in _SQL]
            found += [one for value in members for one in _strings(value) if _SQL_BEGINS.match(one)]
    unique = list(dict.fromkeys(found))
    if len(unique) > STATEMENTS_MAX:
        return unknown("it carries more statements than are read")
    return functools.reduce(Statement.joined, [read_sql(text) for text in unique]) if unique else None


def tables_of(argument: str, detail: str) -> list[str]:
    """Tables that members of the input name."""
    found: list[str] = []
    for text in (argument, detail):
        told = _parsed(text)
        if isinstance(told, Mapping):
            found += [value for key in _TABLES for value in _strings(told.get(key))]
    return found


def _counts(kind: str, text: str, takes_statements: bool, is_given: bool) -> bool:
    if kind == "statement" and takes_statements:
        return True
    if is_given and takes_statements and kind in ("text", "value"):
        return False
    return bool(_BEGINS.match(text) or could_write(text))


def texts_of(argument: str, detail: str) -> Iterator[tuple[str, str]]:
    """(``statement``, ``text``, ``value`` or ``member``, the text) of each text of a call."""
    for text in dict.fromkeys((argument, detail)):
        if not text.strip():
            continue
        told = _parsed(text)
        if told is None:
            yield "statement", text
        else:
            yield from _members(told)


def _members(told: object) -> Iterator[tuple[str, str]]:
    left: list[tuple[str, object]] = [("statement", told)]
    seen = 0
    while left:
        kind, one = left.pop()
        if (seen := seen + 1) > NODES_MAX:
            raise OverflowError
        if isinstance(one, str):
            yield kind, one
        elif isinstance(one, Mapping):
            left += [(_kind(str(name), kind), value) for name, value in one.items()]
        elif isinstance(one, list):
            left += [(kind, value) for value in one]


def _kind(name: str, above: str) -> str:
    plain = re.sub(r"[^a-z]", "", name.lower())
    if above in ("text", "value"):
        return above
    return "statement" if plain in _STATEMENT else "text" if plain in _TEXT else "value" if plain in _VALUES else "member"


def _parsed(text: str) -> object:
    """The input where it is JSON, with members that are there twice as lists; None: it is not."""
    try:
        return json.loads(text, object_pairs_hook=pairs)
    except (ValueError, RecursionError):
        return None


def pairs(found: list[tuple[str, object]]) -> dict[str, object]:
    """A member that is there twice is both: which one its tool takes is not known."""
    made: dict[str, object] = {}
    for key, value in found:
        made[key] = [made[key], value] if key in made else value
    return made


def _strings(value: object) -> list[str]:
    return [one for one in (value if isinstance(value, list) else [value]) if isinstance(one, str)]
