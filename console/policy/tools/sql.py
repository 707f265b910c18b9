"""What a SQL statement does, by sqlglot's parsers: which tables it reads and which it writes.

An agent wrote the text, and which database reads it is not known. A text only reads when each dialect that can parse it finds queries
alone. Where a dialect cannot, or dialects end texts and comments differently, each word of the text counts (``words.could_write``).
Work is bounded by characters, depth and steps of the parser; beyond a bound the statement counts as a write.
"""

from __future__ import annotations

import functools
import logging
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from console.policy.tools.functions import HARMLESS, WITH_EFFECTS
from console.policy.tools.words import could_write, words

if TYPE_CHECKING:
    from sqlglot import exp

CHARACTERS_MAX = 8 * 1024
TOKENS_MAX = 2_500
DEPTH_MAX = 40
STATEMENTS_MAX = 20
STEPS_MAX = 20_000
"""Steps of one parser, forward and back; an ordinary query of 2 KiB takes about 1,500."""
_DIALECTS = ("postgres", "mysql", "sqlite", "tsql")
_OTHERS = ("bigquery", "snowflake", "clickhouse", "duckdb", "oracle", "databricks", "trino")
"""Asked in this order only where none of the first could parse."""
_AMBIGUOUS = re.compile(r"\'{3}|\"{3}|--|#|/\*|\\|\$\w*\$|\{\{|\{%|@@?\w+\s*:?=")
"""Signs that end a text, begin a comment or set a variable in one dialect and not in another."""
_EXECUTABLE = re.compile(r"/\*\s*M?!|/\*\+", re.IGNORECASE)
"""Comments that MySQL and MariaDB execute (``/*! */``), and hints, which may set variables."""
_EXPLAIN = re.compile(
    r"\s*(?:explain|describe|desc)\s+(?:\([\w\s,=]{0,200}\)\s*"
    r"|(?:query\s+plan|plan\s+for|analy[sz]e|verbose|extended|formatted|format\s*=?\s*\w+)\s+){0,6}(?=[(\s]*(?:select|with|values|table)\b)",
    re.IGNORECASE,
)
_REPLACE = re.compile(r"\A\s*replace\s+into\s", re.IGNORECASE)
"""sqlglot reads it as an insert with this word alone."""
_SHOW = re.compile(r"\s*show\s+(?:create\s+\w+\s+)?[\w\s.'\"%`=-]*;?\s*\Z", re.IGNORECASE)
_PRAGMA = re.compile(
    r"\s*pragma\s+(?:\w+\.)?(?:(?:table_x?info|table_list|index_x?info|index_list|foreign_key_list|foreign_key_check)\s*(?:\(\s*['\"]?\w+['\"]?\s*\))?"
    r"|database_list|collation_list|function_list|compile_options|encoding|page_count|page_size|freelist_count|schema_version|user_version)"
    r"\s*;?\s*\Z",
    re.IGNORECASE,
)
_TRANSACTION = re.compile(
    r"(?:begin|commit|rollback|end|start)(?:[\s,]+(?:work|tran|transaction|read|only|write|deferred|immediate|exclusive))*", re.IGNORECASE
)
_SHOW_WORDS = words(
    "show create table tables view views columns fields index indexes indices keys full extended from in like where databases",
    "schemas database schema status variables global session processlist engines triggers procedure function grants for warnings",
    "errors all",
)
_VERBS = words(
    "exec execute shutdown kill truncate drop delete insert update merge alter create grant revoke deny backup restore dbcc waitfor",
    "reconfigure checkpoint revert setuser bulk writetext updatetext use go call do copy vacuum",
)
"""T-SQL needs no ``;`` between statements: what looks like an alias may be the next one."""
_ELSEWHERE = re.compile(r"[/\\:*?]")
"""In the name of a table: it is a file, or an address."""


@dataclass(frozen=True, slots=True)
class Statement:
    """What a text does to a database."""

    writes: str = ""
    """Why it counts as a write; empty: it only reads."""
    read: tuple[str, ...] | None = ()
    """Tables that it reads, as they are named (``place.table``), lower case. None: not certain."""
    written: tuple[str, ...] | None = ()
    verified: tuple[str, ...] = ()
    """Tables that one statement of the text writes and a later one reads."""

    def joined(self, other: Statement) -> Statement:
        """Both, one after the other."""
        again = [name for name in other.read or () if self.written is None or name in self.written]
        return Statement(
            self.writes or other.writes,
            _both(self.read, other.read),
            _both(self.written, other.written),
            tuple(dict.fromkeys((*self.verified, *other.verified, *again))),
        )


class _Beyond(Exception):
    """A bound was reached: no other dialect is asked."""


def unknown(why: str) -> Statement:
    """A statement that cannot be read: it counts as a write of any table."""
    return Statement(why, None, None)


@functools.lru_cache(maxsize=64)
def read_sql(text: str) -> Statement:
    """What a text does. Never raises."""
    if len(text) > CHARACTERS_MAX:
        return unknown(f"it is longer than {CHARACTERS_MAX:,} characters, and is not read")
    if not text.strip():
        return unknown("it is empty")
    if _EXECUTABLE.search(text):
        return unknown("it has a comment that a database executes")
    if _SHOW.match(text) and not could_write(re.sub(r"(?i)\bcreate\b", " ", text, count=1)):
        return Statement("", _named(text))
    if _PRAGMA.match(text):
        return Statement("", _named(text.partition("(")[2]))
    text = _REPLACE.sub("insert into ", text)
    inner = _EXPLAIN.sub("", text, count=1) if (found := _EXPLAIN.match(text)) and found.end() else text
    try:
        return _agreed(inner, could_write(text), bool(_AMBIGUOUS.search(text)))
    except _Beyond as beyond:
        return unknown(str(beyond))


def _agreed(text: str, word: str, ambiguous: bool) -> Statement:
    """What all dialects say that can parse the text; where they cannot tell, no word of it may be one that writes."""
    found = {name: _parsed(text, name) for name in _DIALECTS}
    known = [one for one in found.values() if one is not None]
    for name in _OTHERS if not known else ():
        if (one := _parsed(text, name)) is not None:
            known.append(one)
            break
    if not known:
        return unknown("it cannot be read as SQL")
    if worst := next((one for one in known if one.writes), None):
        certain = {(one.read, one.written) for one in known} == {(worst.read, worst.written)} and not (ambiguous and None in found.values())
        return worst if certain else unknown(worst.writes)
    if word and (ambiguous or None in found.values()):
        return unknown(f"{word!r} could write, and dialects differ in how they read it")
    return functools.reduce(Statement.joined, known)


def _parsed(text: str, dialect: str) -> Statement | None:
    """What one dialect's parser finds; None: it cannot parse the text."""
    try:
        roots = _trees(text, dialect)
    except (_sqlglot().errors.SqlglotError, ValueError, RecursionError, AttributeError, TypeError, KeyError, IndexError):
        return None  # a parser of others, on hostile text: whatever it stumbles over, the text was not read
    if not roots or len(roots) > STATEMENTS_MAX or any(isinstance(root, _sqlglot().exp.Condition | _sqlglot().exp.Alias) for root in roots):
        return None  # a bare expression is no statement
    return functools.reduce(Statement.joined, [_of(root) for root in roots])


def _trees(text: str, dialect: str) -> list[exp.Expr]:
    language, parser = _bounded(dialect)
    tokens = language.tokenize(text)
    if len(tokens) > TOKENS_MAX:
        raise _Beyond(f"it has more than {TOKENS_MAX:,} words and signs")
    depth = 0
    for token in tokens:
        depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(token.text, 0)
        if depth > DEPTH_MAX:
            raise _Beyond("it is nested too deep")
    return [one for one in parser(dialect=language).parse(tokens, text) if one is not None and one.key != "semicolon"]


@functools.cache
def _sqlglot() -> Any:
    """The library, loaded with the first statement: 16 MB and 0.15 s that a supervisor without databases never needs."""
    import sqlglot  # noqa: PLC0415
    import sqlglot.errors  # noqa: PLC0415

    logging.getLogger("sqlglot").setLevel(logging.CRITICAL)  # it warns of what it cannot parse, with the agent's text
    return sqlglot


@functools.cache
def _bounded(dialect: str) -> tuple[Any, Any]:
    """A dialect, and its parser with a bound on its steps: some texts make any parser go back again and again."""
    language = _sqlglot().Dialect.get_or_raise(dialect)
    plain = language.parser_class

    def advance(self: Any, times: int = 1) -> None:
        self.steps = getattr(self, "steps", 0) + 1
        if self.steps > STEPS_MAX:
            raise _Beyond("it takes too many steps to read")
        plain._advance(self, times)

    return language, type("Bounded", (plain,), {"_advance": advance})


def _of(root: Any) -> Statement:
    exp = _sqlglot().exp
    read: dict[str, None] = {}
    written: dict[str, None] = {}
    why = _root_writes(root, exp)
    for node in root.walk():
        why = why or _writes(node, exp)
        if isinstance(node, exp.Table) and (name := _table(node, exp)) is not None:
            if _is_target(node, exp):
                written[name] = None
            elif not _is_own_name(node, exp):
                read[name] = None
    if why and not written and not isinstance(root, exp.Set | exp.Use | exp.Lock):
        return Statement(why, tuple(read) or None, None)
    if isinstance(root, exp.DML) and root.args.get("returning"):
        read |= written
    return Statement(why, tuple(read), tuple(written))


def _root_writes(root: Any, exp: Any) -> str:
    if isinstance(root, exp.Subquery):
        return _root_writes(root.this, exp)
    if isinstance(root, exp.Transaction | exp.Commit | exp.Rollback) or _ends_or_begins(root, exp):
        return ""
    if isinstance(root, exp.Describe):
        return "" if isinstance(root.this, exp.Table | exp.Query) else "it is not a query"
    return "" if isinstance(root, exp.Select | exp.SetOperation | exp.Values) else f"{root.key.upper()} is not a query"


def _ends_or_begins(root: Any, exp: Any) -> bool:
    """Whether a statement that sqlglot keeps as text only begins or ends a transaction."""
    return isinstance(root, exp.Command) and _TRANSACTION.fullmatch(f"{root.this} {root.expression or ''}".strip()) is not None


def _writes(node: Any, exp: Any) -> str:
    """Why one node of a statement counts as a write; empty: it does not."""
    if isinstance(node, exp.Transaction | exp.Commit | exp.Rollback) or _ends_or_begins(node, exp):
        return ""
    if isinstance(node, exp.Anonymous | exp.AnonymousAggFunc):
        name = node.name.lower()
        return "" if name in HARMLESS and not _is_qualified(node, exp) else f"what {name[:60]}() does is not known"
    if isinstance(node, exp.Func):
        return f"{node.key}() has an effect" if node.key in WITH_EFFECTS else ""
    if isinstance(node, exp.Identifier):
        if not node.args.get("quoted") and node.name.lower() in _VERBS:
            return f"{node.name!r:.20} may begin another statement"
        return ""
    if isinstance(node, exp.Table) and any(_ELSEWHERE.search(part.name) for part in node.parts):
        return "it reads a file, or an address"
    if type(node).__name__ in _READING or (isinstance(node, exp.Condition) and not isinstance(node, exp.PropertyEQ | exp.Operator)):
        return ""
    return f"{node.key.upper()} is not part of a query"


_READING = words(
    "Select Union Except Intersect SetOperation Subquery With CTE From Join Where Group Having Order Ordered Limit Offset Fetch",
    "LimitOptions Distinct Qualify Window WindowSpec Lateral Values Tuple Table TableAlias TableSample Alias Aliases Star Schema",
    "Filter WithinGroup IgnoreNulls RespectNulls DataType DataTypeParam Interval IntervalSpan TimeUnit Var Placeholder Parameter",
    "SessionParameter Cube Rollup GroupingSets All Any Pivot PivotAlias UnpivotColumns Partition National ByteString RawString",
    "HexString BitString UnicodeString Heredoc Slice Kwarg JSONPath JSONPathRoot JSONPathKey JSONPathSubscript JSONPathWildcard",
    "JSONPathSlice JSONPathUnion JSONPathSelector JSONPathFilter JSONPathRecursive JSONPathScript JSONKeyValue JSONColumnDef",
    "JSONSchema JSONExtractQuote FormatJson OnCondition Reference ColumnDef WithTableHint Final PreWhere Describe Sort Cluster",
    "Distribute Collate CharacterSet HistoricalData Version Lambda ForIn Comprehension AtTimeZone FromTimeZone HavingMax",
    "RecursiveWithSearch Prior Connect IndexTableHint ProjectionDef",
)


def _is_qualified(node: Any, exp: Any) -> bool:
    """``place.lower()`` is not the database's own ``lower()``, but for its catalogue."""
    parent = node.parent
    if not isinstance(parent, exp.Dot) or parent.expression is not node:
        return False
    return not (isinstance(parent.this, exp.Identifier | exp.Column) and parent.this.name.lower() in ("pg_catalog", "information_schema"))


def _table(node: Any, exp: Any) -> str | None:
    """Its name with its place; None: it is a function, which is judged as one."""
    return ".".join(part.name for part in node.parts).lower() if isinstance(node.this, exp.Identifier) else None


def _is_target(node: Any, exp: Any) -> bool:
    """Whether it is the table that a statement changes."""
    child, parent = node, node.parent
    while isinstance(parent, exp.Schema | exp.Into) or (isinstance(parent, exp.Tuple) and isinstance(parent.parent, exp.Drop)):
        if isinstance(parent, exp.Into):
            return True
        child, parent = parent, parent.parent
    if isinstance(parent, exp.DML | exp.Create | exp.Drop | exp.Alter | exp.TruncateTable | exp.Copy | exp.LoadData):
        tables = parent.args.get("tables")
        return parent.this is child or (isinstance(tables, list) and child in tables) or child.arg_key == "expressions"
    return False


def _is_own_name(node: Any, exp: Any) -> bool:
    """Whether a name is one that a WITH of the same statement gives, seen from where it stands."""
    if len(node.parts) != 1:
        return False
    inside: exp.Expr | None = None
    for above in _above(node):
        if isinstance(above, exp.CTE):
            inside = above
        with_ = above.args.get("with_") or above.args.get("with")
        if isinstance(with_, exp.With):
            names = [cte.alias.lower() for cte in with_.expressions]
            if node.name.lower() in names:
                place = names.index(node.name.lower())
                at = with_.expressions.index(inside) if inside in with_.expressions else len(names)
                if place < at or (place == at and with_.args.get("recursive")):
                    return True
    return False


def _above(node: Any) -> Iterator[exp.Expr]:
    found = node.parent
    while found is not None:
        yield found
        found = found.parent


def _named(text: str) -> tuple[str, ...]:
    """Tables that a SHOW or PRAGMA may be about: its words but for those of the language."""
    return tuple(dict.fromkeys(word for word in re.findall(r"[\w.]+", text.lower()) if word not in _SHOW_WORDS))


def _both(one: tuple[str, ...] | None, other: tuple[str, ...] | None) -> tuple[str, ...] | None:
    return None if one is None or other is None else tuple(dict.fromkeys((*one, *other)))
