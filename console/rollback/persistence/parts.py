"""The part of a file that can start something: dangerous git settings, scripts of package.json, MCP servers. git and npm are never run.

The files are an agent's: what is nested, long or large beyond reason is not taken apart but counts as a whole.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

NESTED = 32
THINGS = 20_000
"""JSON that is nested deeper, or holds more, is not written out: with an indent per level it would grow by a thousand times."""
LINE = 4096
"""Longer lines of git settings are not read: no real file has such a line, and it could keep a regular expression busy."""
# Possessive (``++``): a megabyte of blanks is gone over once, not once for each blank.
_HEAD = re.compile(r'\[\s*+([A-Za-z0-9.-]++)\s*+(?:"((?:[^"\\]|\\.)*+)")?\s*+\]')
_KEY = re.compile(r"([A-Za-z][A-Za-z0-9-]*)\s*(?:=\s*(.*))?\Z", re.DOTALL)
# git-config(1): settings that name a program, a script, another configuration, or where such a thing comes from.
_DANGEROUS = re.compile(
    r"core\.(fsmonitor|hookspath|pager|editor|sshcommand|askpass|gitproxy|attributesfile|alternaterefscommand|worktree)"
    r"|(alias|pager|include|includeif|filter|browser|man|mergetool|difftool|guitool|trailer|hook|sendemail)\..*"
    r"|diff\.(external|.*\.(command|textconv))|merge\..*\.driver|interactive\.difffilter|sequence\.editor|init\.templatedir"
    r"|credential\.(.*\.)?helper|gpg\.(.*\.)?program|uploadpack\.packobjectshook|submodule\..*\.update|url\..*\.(insteadof|pushinsteadof)"
    r"|remote\..*\.(uploadpack|receivepack|vcs|proxy)|protocol\..*|safe\.directory|core\.sshvariant|ssh\.variant|web\.browser|rebase\..*exec.*"
)


def counted(part: str, raw: bytes) -> bytes | None:
    """What counts of ``raw``; None when nothing of it does. What cannot be understood counts as a whole."""
    extract = _PARTS.get(part)
    return raw if extract is None else extract(raw)


def _git(raw: bytes) -> bytes | None:
    """Only the dangerous settings, one a line; a harmless remote or branch is none."""
    try:
        settings = git_settings(raw.decode("utf-8", "surrogateescape").removeprefix("\ufeff"))
    except ValueError:
        return raw
    dangerous = [f"{name} = {value}" for name, value in settings if _DANGEROUS.fullmatch(name) or value.startswith("ext::")]
    return "\n".join(dangerous).encode("utf-8", "surrogateescape") if dangerous else None


def git_settings(text: str) -> list[tuple[str, str]]:
    """Return ``(section.subsection.key, value)`` of a git configuration file, names in lower case.

    Raises ValueError on what git would refuse, and on lines that go on with a backslash.
    """
    # Whether a line goes on depends on comments and quotes before it (git-config(1), Syntax). A reading that differs from git's by one line
    # would miss what git runs.
    found: list[tuple[str, str]] = []
    section = ""
    for line in text.split("\n"):
        if len(line) > LINE:
            raise ValueError("a line that is too long")
        rest = line.removesuffix("\r").strip()
        if rest.endswith("\\"):
            raise ValueError("a line that goes on")
        while rest.startswith("["):
            head = _HEAD.match(rest)
            if head is None:
                raise ValueError("a section's head")
            section = head[1].lower() + (f".{head[2].lower()}" if head[2] is not None else "")
            rest = rest[head.end() :].strip()
        if not rest or rest[0] in "#;":
            continue
        key = _KEY.match(rest)
        if key is None or not section:
            raise ValueError("a setting")
        found.append((f"{section}.{key[1].lower()}", (key[2] or "true").strip()))
    return found


def _scripts(raw: bytes) -> bytes | None:
    """package.json: what npm and the hook managers run."""
    return _keys(raw, ("scripts", "husky", "lint-staged", "simple-git-hooks", "pre-commit", "gitHooks"))


def _mcp(raw: bytes) -> bytes | None:
    """Settings that their program rewrites all the time: servers and hooks, also of each project."""
    wanted = ("mcpServers", "hooks", "enabledMcpjsonServers", "apiKeyHelper")
    try:
        data = json.loads(raw)
        projects = data.get("projects", {})
        found: dict[str, Any] = {k: data[k] for k in wanted if data.get(k)}
        of_projects = {p: {k: v[k] for k in wanted if v.get(k)} for p, v in projects.items()}
        found |= {"projects": p} if (p := {name: kept for name, kept in of_projects.items() if kept}) else {}
        return _lines_of(found)
    except (ValueError, AttributeError, TypeError, RecursionError):
        return raw


def _keys(raw: bytes, wanted: tuple[str, ...]) -> bytes | None:
    try:
        data = json.loads(raw)
        return _lines_of({k: data[k] for k in wanted if data.get(k)})
    except (ValueError, AttributeError, TypeError, RecursionError):
        return raw


def _lines_of(found: dict[str, Any]) -> bytes | None:
    """A line for each value, so that a later look can tell which are new. Raises ValueError on what would not stay small."""
    _check_small(found)
    return json.dumps(found, indent=1, sort_keys=True, ensure_ascii=True).encode() if found else None


def _check_small(data: Any) -> None:
    """Without recursion: the depth is the agent's. Raises ValueError."""
    waiting, count = [(data, 0)], 0
    while waiting:
        item, deep = waiting.pop()
        inner = list(item.values()) if isinstance(item, dict) else item if isinstance(item, list) else []
        count += 1 + len(inner)
        if deep > NESTED or count > THINGS:
            raise ValueError("nested too deeply, or too much")
        waiting += [(one, deep + 1) for one in inner if isinstance(one, dict | list)]


_PARTS: dict[str, Callable[[bytes], bytes | None]] = {"git": _git, "scripts": _scripts, "mcp": _mcp}
