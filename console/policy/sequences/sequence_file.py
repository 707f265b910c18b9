"""Patterns of forbidden sequences as a file that people write: strict YAML, checked wholly, refused with what and where.

::

    watchfloor_sequences: 1
    patterns:
      - name: export-then-mail
        why: customer data leaves by mail
        steps:
          - name: reads an export
            any: [{action: read, paths: ["**/exports/**"]}]
          - name: sends mail
            any: [{scopes: [SEND_EMAIL]}]
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from console.domain.errors import UsageProblem
from console.policy.rules.rule import Rule, read_rule
from console.policy.scopes import read_scopes
from console.policy.sequences.find import Matcher, Pattern, Step
from console.policy.sequences.strict_yaml import read_yaml

BYTES_MAX = 256 * 1024
PATTERNS_MAX = 100
STEPS_MAX = 10
_LIST_MAX = 500
_KEY = "watchfloor_sequences"
_TOP = {_KEY, "patterns", "without"}
_PATTERN = {"name", "why", "same", "tighten", "steps"}
_MATCHER = {"action", "paths", "hosts", "scopes", "tools", "commands"}
_ACTIONS = ("read", "write", "delete", "list", "connect", "code", "send", "draft", "pay", "deploy")
_TIGHTEN = ("NONE", "NONE if PROXIED")
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,62}\Z")
_HOW = "See docs/reference/policy.md; the patterns that were in force stay in force."
GONE = "it is gone, and what it said stays in force; to end that, write one without patterns"


@dataclass(frozen=True, slots=True)
class SequenceFile:
    """What a file says."""

    patterns: tuple[Pattern, ...] = ()
    without: frozenset[str] = frozenset()
    """Built-in patterns that the file switches off."""


def read_sequences(data: bytes, *, built_in: bool = False) -> SequenceFile:
    """Raises UsageProblem on whatever is not certain, with the place of the first mistake."""
    raw = _yaml(data)
    if not isinstance(raw, dict) or raw.get(_KEY) != 1 or isinstance(raw.get(_KEY), bool):
        raise UsageProblem(f"These are no sequences: the file must begin with '{_KEY}: 1'.", _HOW)
    _known(raw, _TOP, "The file")
    patterns = tuple(_pattern(found, at, built_in) for at, found in enumerate(_list(raw, "patterns", "The file", PATTERNS_MAX)))
    names = [pattern.name for pattern in patterns]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise UsageProblem(f"Pattern {twice[0]} is there twice.", "Give every pattern a name of its own.")
    return SequenceFile(patterns, frozenset(_texts(raw, "without", "The file")))


def in_force(own: SequenceFile, built_in: Iterable[Pattern]) -> tuple[Pattern, ...]:
    """Built-in patterns but for those left out, then own ones. Raises UsageProblem for names that would hide a built-in one."""
    given = tuple(built_in)
    names = {pattern.name for pattern in given}
    if unknown := sorted(own.without - names):
        raise UsageProblem(f"without names {unknown[0][:60]!r}, which is not built in.", f"Built in are {', '.join(sorted(names))}.")
    if hidden := sorted(names & {pattern.name for pattern in own.patterns}):
        raise UsageProblem(f"Pattern {hidden[0]} is built in.", "Give yours another name; leave the built-in one out with 'without'.")
    return (*(pattern for pattern in given if pattern.name not in own.without), *own.patterns)


def _yaml(data: bytes) -> Any:
    if len(data) > BYTES_MAX:
        raise UsageProblem(f"The file has {len(data):,} bytes; at most {BYTES_MAX:,} are read.", _HOW)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UsageProblem("Not YAML that is read here.", _HOW) from error
    return read_yaml(text, _HOW)


def _pattern(found: object, at: int, built_in: bool) -> Pattern:
    where = f"Pattern {at + 1}"
    if not isinstance(found, dict):
        raise UsageProblem(f"{where} is not a mapping.", _HOW)
    _known(found, _PATTERN, where)
    name = _text(found, "name", where)
    if not _NAME.match(name):
        raise UsageProblem(f"{where}: {name[:60]!r} is no name.", "Use a-z, 0-9 and -, at most 63.")
    where = f"Pattern {name}"
    same, tighten = found.get("same", ""), found.get("tighten", "")
    if same not in ("", "table", "path", "host") or tighten not in ("", *_TIGHTEN):
        raise UsageProblem(f"{where}: same or tighten is not understood.", f"same: table, path or host; tighten: {' or '.join(_TIGHTEN)}.")
    steps = tuple(_step(one, f"{where}, step {number}") for number, one in enumerate(_list(found, "steps", where, STEPS_MAX), 1))
    if len(steps) < 2 or len({step.name for step in steps}) != len(steps):
        raise UsageProblem(f"{where}: it needs two steps at least, each with a name of its own.", _HOW)
    return Pattern(name, _text(found, "why", where), steps, same, tighten, built_in)


def _step(found: object, where: str) -> Step:
    if not isinstance(found, dict):
        raise UsageProblem(f"{where} is not a mapping.", _HOW)
    _known(found, {"name", "any"}, where)
    matchers = tuple(_matcher(one, where) for one in _list(found, "any", where, _LIST_MAX))
    if not matchers:
        raise UsageProblem(f"{where}: there is nothing under any.", "A step that nothing takes forbids nothing.")
    return Step(_text(found, "name", where), matchers)


def _matcher(found: object, where: str) -> Matcher:
    if not isinstance(found, dict) or not found:
        raise UsageProblem(f"{where}: one under any is empty, or not a mapping.", _HOW)
    _known(found, _MATCHER, where)
    action = found.get("action")
    if "action" in found and action not in _ACTIONS:
        raise UsageProblem(f"{where}: action {str(action)[:40]!r} is not known.", f"Known are {', '.join(_ACTIONS)}.")
    scopes = read_scopes(_texts(found, "scopes", where))
    commands = tuple(tuple(text.split()) for text in _texts(found, "commands", where))
    if not all(commands):
        raise UsageProblem(f"{where}: a command is empty.", "Write PROGRAM WORD WORD.")
    return Matcher(
        frozenset({action} if isinstance(action, str) else ()),
        tuple(_rule(f"file(read:{text})", where) for text in _texts(found, "paths", where)),
        tuple(_rule(f"network(outbound:{text})", where) for text in _texts(found, "hosts", where)),
        frozenset(str(scope) for scope in scopes),
        tuple(text.lower() for text in _texts(found, "tools", where)),
        commands,
    )


def _rule(text: str, where: str) -> Rule:
    return read_rule(text, where, {})


def _known(found: dict[Any, Any], names: set[str], where: str) -> None:
    for name in found:
        if name not in names:
            raise UsageProblem(f"{where}: {str(name)[:60]!r} is not known.", f"Known are {', '.join(sorted(names))}.")


def _text(found: dict[Any, Any], name: str, where: str) -> str:
    value = found.get(name)
    if not isinstance(value, str) or not 0 < len(value) <= 300 or not value.isprintable():
        raise UsageProblem(f"{where}: {name} is missing, or no short text.", _HOW)
    return value


def _list(found: dict[Any, Any], name: str, where: str, most: int) -> list[Any]:
    value = found.get(name, [])
    if not isinstance(value, list) or len(value) > most:
        raise UsageProblem(f"{where}: {name} is not a list of at most {most}.", _HOW)
    return value


def _texts(found: dict[Any, Any], name: str, where: str) -> list[str]:
    values = _list(found, name, where, _LIST_MAX)
    if (name in found and not values) or not all(isinstance(one, str) and one.strip() and one.isprintable() for one in values):
        raise UsageProblem(f"{where}: {name} is not a list of texts.", "An empty list would match nothing, or everything.")
    return values
