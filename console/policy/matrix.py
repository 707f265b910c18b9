"""The permission matrix: which tools an agent may call at all, for which actions, and within which bounds. What is not in it is denied."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from console.domain.calls.permission import Verdict
from console.domain.errors import UsageProblem
from console.policy.files.paths import Files, absolute
from console.policy.rules.hosts import read_url
from console.policy.rules.rule import Rule, read_rule
from console.policy.rules.verdicts import Part
from console.policy.tools.sql import Statement
from console.policy.tools.statements import pairs, statement_of
from console.policy.tools.words import could_write

_FIELDS = {"_comment", "actions", "paths", "max_size", "databases", "tables", "write", "action", "send", "methods", "domains"}
_SIZE = re.compile(r"(\d+)\s*(B|KB|MB|GB)?\Z")
_SCALARS = ("path", "size", "database", "table", "method", "url", "action")
_OPEN = ("databases", "tables", "methods", "domains")
"""An empty list of these bounds; an empty one of the others does not."""
_UNITS = {"": 1, "B": 1, "KB": 1024, "MB": 1024**2, "GB": 1024**3}


@dataclass(frozen=True, slots=True)
class Row:
    """What one tool may do. An empty bound is no bound."""

    denied: bool = False
    actions: frozenset[str] = frozenset()
    paths: tuple[Rule, ...] = ()
    max_bytes: int | None = None
    databases: frozenset[str] | None = None
    tables: frozenset[str] | None = None
    write: bool | None = None
    draft_only: bool = False
    methods: frozenset[str] | None = None
    domains: tuple[str, ...] | None = None

    def words(self) -> str:
        """Its bounds for people."""
        if self.denied:
            return "denied"
        lists = {
            "actions": self.actions,
            "paths": [rule.text for rule in self.paths],
            "databases": self.databases,
            "tables": self.tables,
            "methods": self.methods,
            "domains": self.domains,
        }
        said = [
            f"{name} {', '.join(sorted(found)) or 'none'}"
            for name, found in lists.items()
            if found or (found is not None and name in _OPEN)
        ]
        said += [f"at most {self.max_bytes:,} bytes"] if self.max_bytes is not None else []
        said += ["only reads"] if self.write is False else []
        said += ["only drafts"] if self.draft_only else []
        return "; ".join(said) or "no bounds"


Matrix = Mapping[str, Row]


def read_matrix(document: object, workspace: str) -> Matrix:
    """``{"tools": {"file_read": {"paths": [...], "max_size": "1MB"}, "file_write": "DENIED"}}``. Raises UsageProblem with the place."""
    if not isinstance(document, dict) or not isinstance(document.get("tools"), dict) or set(document) - {"_comment", "tools"}:
        raise UsageProblem("The permission matrix has no object called tools, or has more.", "See docs/reference/policy.md.")
    return {name: _row(found, f"matrix: {name}", workspace) for name, found in document["tools"].items()}


def _row(found: Any, where: str, workspace: str) -> Row:
    if isinstance(found, str) and found.upper() == "DENIED":
        return Row(denied=True)
    if not isinstance(found, dict) or not set(found) <= _FIELDS:
        raise UsageProblem(f"{where} is not understood.", f'Write "DENIED", or an object of {", ".join(sorted(_FIELDS))}.')
    for name in ("write", "send"):
        if not isinstance(found.get(name, False), bool):
            raise UsageProblem(f"{where}: {name} is not true or false.", "See docs/reference/policy.md.")
    if found.get("action", "draft_only") != "draft_only":
        raise UsageProblem(f"{where}: action is not draft_only.", "Leave it out to bound nothing.")
    paths = tuple(read_rule(f"file(read:{one})", where, {"WORKSPACE": workspace}) for one in _list(found, "paths", where) or ())
    domains = _list(found, "domains", where)
    return Row(
        actions=frozenset(_list(found, "actions", where) or ()),
        paths=paths,
        max_bytes=_size(found.get("max_size"), where),
        databases=_set(found, "databases", where),
        tables=_set(found, "tables", where),
        write=found.get("write"),
        draft_only=found.get("action") == "draft_only" or found.get("send") is False,
        methods=_set(found, "methods", where),
        domains=None if domains is None else tuple(one.lower() for one in domains),
    )


def params_of(argument: str, detail: str) -> dict[str, object]:
    """What a call itself says of what a matrix bounds: the members of its input, where that is JSON, and ``said``, all its texts.

    A member that is there twice in other words (``table`` and ``table_name``) is every one of them: ``judge_row`` takes none for the other.
    """
    found: dict[str, object] = {}
    said: list[str] = []
    for text in (detail, argument):
        try:
            told = json.loads(text, object_pairs_hook=pairs)
        except (ValueError, RecursionError):
            said.append(text)
            continue
        said += _words_of(told)
        if isinstance(told, Mapping):
            for name in _SCALARS:
                for key in (name, f"{name}_name"):
                    if key in told:
                        value = told[key]
                        found[name] = value if found.setdefault(name, value) == value else [found[name], value]
            content = told.get("content")
            if isinstance(content, str):
                found["size"] = _larger(found.get("size", 0), len(content.encode(errors="surrogatepass")))
    found["said"] = said
    return found


def _larger(told: object, is_at_least: int) -> object:
    """What is there counts, not what is said to be."""
    return max(told, is_at_least) if isinstance(told, int) else told


def _words_of(told: object) -> list[str]:
    """Every text in it; the names of members are the tool's own."""
    found, left = list[str](), [told]
    while left:
        one = left.pop()
        if isinstance(one, str):
            found.append(one)
        elif isinstance(one, Mapping):
            left += one.values()
        elif isinstance(one, list):
            left += one
    return found


def judge_row(
    matrix: Matrix, tool: str, action: str, params: Mapping[str, object], cwd: str, files: Files, statement: Statement | None = None
) -> Part:
    """A verdict on a call; allow only means that the matrix says nothing against it.

    ``statement``: what a call of a database tool does; of any other tool it is looked for in its words.
    """
    row = matrix.get(tool)
    if row is None or row.denied:
        return _part(tool, Verdict.DENY, f"{tool} is denied" if row else f"{tool} is not in the matrix")
    for why in (
        _about_action(row, action, params, statement),
        _about_path(row, params, cwd, files),
        _about_data(row, params),
        _about_text(row, params, statement),
        _about_web(row, params),
    ):
        if why:
            return _part(tool, Verdict.DENY, why)
    return _part(tool, Verdict.ALLOW, "within its bounds")


def _about_action(row: Row, action: str, params: Mapping[str, object], statement: Statement | None) -> str:
    if row.actions and action not in row.actions:
        return f"action {action or '(none)'} is not one of {', '.join(sorted(row.actions))}"
    if row.write is False and statement is not None and statement.writes:
        return f"it may only read: {statement.writes}"
    if row.write is False and action not in ("read", "list", "query"):
        return "it may only read"
    if row.write is False and statement is None and (word := could_write("\n".join(_said(params)))):
        return f"it may only read, and {word!r} could write"
    if row.draft_only and action != "draft":
        return "it may only draft"
    return ""


def _about_path(row: Row, params: Mapping[str, object], cwd: str, files: Files) -> str:
    if row.paths:
        path = params.get("path")
        if not isinstance(path, str) or not path:
            return "the path is not said"
        literal = absolute(path, cwd)
        real = files.look(literal).real
        if ".." in literal.split("/") or not real or not all(any(rule.covers_path(one) for rule in row.paths) for one in {literal, real}):
            return f"{path} is not one of its paths"
    if row.max_bytes is not None:
        size = params.get("size")
        if not isinstance(size, int) or isinstance(size, bool) or not 0 <= size <= row.max_bytes:
            return f"its size is not said, or above {row.max_bytes:,} bytes"
    return ""


def _about_data(row: Row, params: Mapping[str, object]) -> str:
    for name, known in (("database", row.databases), ("table", row.tables)):
        if known is not None and _is_unknown(params.get(name), known):
            return f"{name} {params.get(name)!r:.60} is not one of {', '.join(sorted(known)) or 'none'}"
    return ""


def _about_text(row: Row, params: Mapping[str, object], statement: Statement | None) -> str:
    """A statement among the words of a call names tables of its own, whatever its other members say."""
    if row.tables is None and row.databases is None:
        return ""
    found = statement
    for text in () if statement is not None else _said(params):
        more = statement_of(text, "", takes_statements=False)
        found = more if found is None else found if more is None else found.joined(more)
    if found is None or (not found.writes and found.read is None):
        return ""
    if found.read is None or found.written is None:
        return "which tables it is about is not certain"
    for name in (*found.read, *found.written):
        place, _, table = name.rpartition(".")
        if row.tables is not None and table not in row.tables:
            return f"table {table[:60]} is not one of {', '.join(sorted(row.tables)) or 'none'}"
        if row.databases is not None and place and place.partition(".")[0] not in row.databases:
            return f"{name[:60]} lies in none of its databases ({', '.join(sorted(row.databases)) or 'none'})"
    return ""


def _said(params: Mapping[str, object]) -> list[str]:
    said = params.get("said", [])
    return said if isinstance(said, list) else []


def _is_unknown(value: object, known: frozenset[str]) -> bool:
    return not isinstance(value, str) or value not in known


def _about_web(row: Row, params: Mapping[str, object]) -> str:
    if row.methods is not None and str(params.get("method", "GET")).upper() not in row.methods:
        return f"method {params.get('method', 'GET')!r:.20} is not one of {', '.join(sorted(row.methods))}"
    if row.domains is not None:
        there = read_url(str(params.get("url", "")))
        if there is None or not any(there.host == one or (one.startswith("*.") and there.host.endswith(one[1:])) for one in row.domains):
            return "its host is not one of the domains"
    return ""


def _part(tool: str, verdict: Verdict, why: str) -> Part:
    return Part(tool, verdict, f"matrix: {tool}", "matrix", why)


def _list(found: Mapping[str, Any], name: str, where: str) -> list[str] | None:
    value = found.get(name)
    if value is None:
        return None
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise UsageProblem(f"{where}: {name} is not a list of strings.", "See docs/reference/policy.md.")
    return value


def _set(found: Mapping[str, Any], name: str, where: str) -> frozenset[str] | None:
    value = _list(found, name, where)
    return None if value is None else frozenset(value)


def _size(value: object, where: str) -> int | None:
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and value >= 0):
        return value
    shape = _SIZE.match(value) if isinstance(value, str) else None
    if shape is None:
        raise UsageProblem(f"{where}: max_size {value!r:.40} is no size.", 'Write bytes, or "1MB".')
    return int(shape.group(1)) * _UNITS[shape.group(2) or ""]
