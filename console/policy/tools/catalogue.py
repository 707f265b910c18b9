"""What is known of tools: names, and kinds by server and words of a name. Data (``resources/policy/tools.json``).

A tool that is not known is judged as ``other``.
"""

from __future__ import annotations

import fnmatch
import functools
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from console.domain.calls.permission import DangerClass
from console.domain.errors import UsageProblem
from console.policy.scopes import Scope, read_scopes
from console.policy.tools.sql import Statement

KINDS = ("database", "mail", "payment", "deployment")
"""Families for which the rules have no words: the matrix, the scopes and the sequences decide, else a human."""
FAMILIES = ("shell", "argv", "file", "patch", "network", "code", "other", "none", *KINDS)
FREE = ("other", *KINDS)
_FIELDS = {"names", "family", "action", "scopes", "connects"}
_KIND_FIELDS = {"kind", "class", "why", "servers", "words"}
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+|\d+")
_UNREAD = " call"
"""The end of a call's name when its argument was not translated (hooks, LangGraph): no path or command is read from it."""
_SERVER = re.compile(r"(?:mcp__)?(.+?)__(.+)\Z|mcp[_:./-]([^_:./-]+)[_:./-](.+)\Z|([^:./]+)[:./](.+)\Z")
"""As programs write them: ``mcp__SERVER__TOOL``, ``mcp_SERVER_TOOL``, ``SERVER.TOOL``, ``SERVER/TOOL``."""


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool."""

    name: str
    family: str
    """``shell`` (a string), ``argv`` (a JSON list), ``file``, ``network``, ``code``, one of ``KINDS``, ``other``.

    ``none``: it has no effect but through calls that are judged themselves.
    """
    action: str = ""
    scopes: frozenset[Scope] = frozenset()
    connects: bool = False
    """It sends data to other hosts or people (CONNECT): denied once private data is present."""
    kinds: tuple[str, ...] = ()
    """All kinds that its name is of; the first is its family."""
    is_listed: bool = True
    """False: its kind is told by a word of its name alone. Rows of other tools never allow it."""
    statement: Statement | None = None
    """Of one call of a database tool: what its text does."""


@dataclass(frozen=True, slots=True)
class Kind:
    """How tools of a kind are called."""

    name: str
    servers: re.Pattern[str]
    words: re.Pattern[str]
    danger: str
    """The class of what a call does that does more than read or draft (``domain.danger``)."""
    why: str
    """One sentence: what such a call does."""


@dataclass(frozen=True, slots=True)
class Tools:
    """All that is known."""

    named: Mapping[str, Tool]
    kinds: tuple[Kind, ...] = ()
    found: dict[str, Tool] = field(default_factory=dict, repr=False, compare=False)


def read_tools(document: object) -> Tools:
    """Reads the parsed data. Raises UsageProblem with the place of the first mistake."""
    if not isinstance(document, dict) or not isinstance(document.get("tools"), list):
        raise UsageProblem("tools.json: there is no list called tools.", "See resources/policy/tools.json.")
    found: dict[str, Tool] = {}
    for at, one in enumerate(document["tools"]):
        _known(one, _FIELDS, f"tools[{at}]")
        family = one.get("family", "")
        if family not in FAMILIES:
            raise UsageProblem(f"tools.json: tools[{at}]: family {family!r} is not known.", f"Known are {', '.join(FAMILIES)}.")
        scopes = read_scopes(one.get("scopes", "").split())
        for name in one.get("names", "").split():
            kinds = (family,) if family in KINDS else ()
            found[name] = Tool(name, family, one.get("action", ""), scopes, one.get("connects") == "yes", kinds)
    return Tools(found, tuple(_kind(one, at) for at, one in enumerate(document.get("kinds", ()))))


def tool_of(tools: Tools, name: str) -> Tool:
    """Return the tool of a name: a listed one, else one of a kind.

    Any other tool counts as one that sends data, and needs the two widest scopes (RUN_CODE and CALL_API), which are not granted by chance.
    """
    known = tools.named.get(name) or tools.found.get(name)
    if known is None:
        if len(tools.found) >= 1000:  # names are an agent's to choose
            tools.found.clear()
        known = tools.found[name] = _told(tools, name)
    return known


def words_of(name: str) -> tuple[str, ...]:
    """``sendEmails`` and ``send_emails`` are ``send``, ``email``."""
    return tuple(_singular(word.lower()) for word in _WORD.findall(name))


def _told(tools: Tools, name: str) -> Tool:
    server, own = _parted(name.removesuffix(_UNREAD))
    listed = tools.named.get(own) or tools.named.get(own.replace("-", "_"))
    by_word = _kinds(tools, words_of(own), lambda kind: kind.words)
    by_server = _kinds(tools, (*words_of(server), server.lower()), lambda kind: kind.servers) if server else ()
    of_name = listed.kinds if listed is not None else ()
    kinds = tuple(dict.fromkeys((*of_name, *by_word, *by_server)))
    if not kinds:
        return Tool(name, "other", "", frozenset({Scope.RUN_CODE, Scope.CALL_API}), connects=True, is_listed=False)
    action = listed.action if listed is not None and of_name else ""
    return Tool(name, kinds[0], action, frozenset(), True, kinds, bool(of_name or by_server))


def _parted(name: str) -> tuple[str, str]:
    """A server and its tool; no server: the name is all of it."""
    if found := _SERVER.match(name):
        server, own = next((one, other) for one, other in zip(found.groups()[::2], found.groups()[1::2], strict=True) if one)
        return server, own
    return "", name


def _kinds(tools: Tools, words: Iterable[str], pattern: Any) -> tuple[str, ...]:
    given = tuple(words)
    return tuple(kind.name for kind in tools.kinds if any(pattern(kind).match(word) for word in given))


def _singular(word: str) -> str:
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is", "sms", "dns", "aws")) else word


def _kind(found: Any, at: int) -> Kind:
    _known(found, _KIND_FIELDS, f"kinds[{at}]")
    if found.get("kind") not in KINDS:
        raise UsageProblem(f"tools.json: kinds[{at}]: kind {found.get('kind')!r} is not known.", f"Known are {', '.join(KINDS)}.")
    if found.get("class") not in list(DangerClass) or not found.get("why"):
        raise UsageProblem(f"tools.json: kinds[{at}] lacks a class or a why.", f"Classes are {', '.join(DangerClass)}.")
    return Kind(found["kind"], _any(found.get("servers", "")), _any(found.get("words", "")), found["class"], found["why"])


@functools.cache
def _any(globs: str) -> re.Pattern[str]:
    return re.compile("|".join(fnmatch.translate(glob) for glob in globs.split()) or r"(?!)")


def _known(found: Any, fields: set[str], where: str) -> None:
    if not isinstance(found, dict) or not set(found) <= fields or not all(isinstance(value, str) for value in found.values()):
        raise UsageProblem(f"tools.json: {where} is not understood.", f"Fields are {', '.join(sorted(fields))}, each a string.")


def as_called(tool: Tool, action: str, scopes: Iterable[Scope], statement: Statement | None = None) -> Tool:
    """The tool as one call uses it."""
    return replace(tool, action=action, scopes=frozenset(scopes), statement=statement)
