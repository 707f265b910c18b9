"""``settings.json``: which rules allow, deny and ask. Read whole, checked wholly, refused with what and where; empty means no."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from console.domain.errors import UsageProblem
from console.policy.rules.rule import Family, Rule, read_rule

MAX_BYTES = 1024 * 1024
RULES_MAX = 10_000
CONTEXT_ID = re.compile(r"[a-z0-9][a-z0-9-]{0,62}\Z")
_LISTS = ("deny", "ask", "allow")
_TOP = {"_comment", "context_workspace", "permissions"}
_HOW = "Write it as in docs/reference/policy.md; nothing is allowed until it can be read."


@dataclass(frozen=True, slots=True)
class Settings:
    """The rules in force. deny before ask before allow; what no rule names asks a human."""

    deny: tuple[Rule, ...]
    ask: tuple[Rule, ...]
    allow: tuple[Rule, ...]
    workspace: str
    """Absolute, without a slash at its end: ``${WORKSPACE}``. Relative paths start here."""

    def of(self, kind: str, family: Family) -> tuple[Rule, ...]:
        """The rules of one list (``deny``, ``ask``, ``allow``) about one family."""
        rules: tuple[Rule, ...] = getattr(self, kind)
        return tuple(rule for rule in rules if rule.family is family)


def read_settings(data: bytes, context_id: str = "", workspace: str = "") -> Settings:
    """Reads ``settings.json``. ``workspace`` goes before the file's own ``context_workspace``.

    Raises UsageProblem on whatever is not certain: syntax, duplicate keys, unknown fields, wrong types, no rule at all.
    """
    document = read_json(data, "settings.json")
    if not isinstance(document, dict):
        raise UsageProblem(f"settings.json: the file holds {_named(document)}, not an object.", _HOW)
    _known(document, _TOP, "settings.json")
    permissions = document.get("permissions")
    if not isinstance(permissions, dict):
        raise UsageProblem(f"settings.json: permissions is {_named(permissions)}, not an object.", _HOW)
    _known(permissions, {"_comment", "unconfined", *_LISTS}, "settings.json: permissions")
    variables = _variables(document, context_id, workspace)
    marked = _strings(permissions, "unconfined")
    lists = {kind: _rules(permissions, kind, variables, marked) for kind in _LISTS}
    if not any(lists.values()):
        raise UsageProblem("settings.json: there is no rule in it; an empty policy denies everything.", _HOW)
    allowed = {rule.text for rule in lists["allow"]}
    if lost := sorted(marked - allowed):
        raise UsageProblem(f"settings.json: permissions.unconfined names {lost[0]!r}, which permissions.allow does not hold.", _HOW)
    return Settings(lists["deny"], lists["ask"], lists["allow"], variables["WORKSPACE"])


def read_json(data: bytes, name: str) -> Any:
    """Strict JSON: UTF-8, at most 1 MiB, no duplicate keys, no NaN. Raises UsageProblem with what and where."""
    if len(data) > MAX_BYTES:
        raise UsageProblem(f"{name} has {len(data):,} bytes; at most {MAX_BYTES:,} are read.", _HOW)
    if not data.strip():
        raise UsageProblem(f"{name} is empty; an empty policy denies everything.", _HOW)

    def pairs(found: list[tuple[str, Any]]) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for key, value in found:
            if key in made:
                raise UsageProblem(f"{name}: {key[:60]!r} is there twice.", "Keep one of them; which one was meant cannot be known.")
            made[key] = value
        return made

    def constant(word: str) -> None:
        raise UsageProblem(f"{name}: {word} is no JSON number.", _HOW)

    try:
        return json.loads(data.decode("utf-8"), object_pairs_hook=pairs, parse_constant=constant)
    except UnicodeDecodeError as error:
        raise UsageProblem(f"{name}: byte {error.start} is not UTF-8.", _HOW) from error
    except json.JSONDecodeError as error:
        raise UsageProblem(f"{name}: line {error.lineno}, column {error.colno}: {error.msg}.", _HOW) from error
    except (RecursionError, ValueError) as error:
        raise UsageProblem(f"{name} cannot be read: {type(error).__name__}.", _HOW) from error


def _variables(document: Mapping[str, Any], context_id: str, workspace: str) -> dict[str, str]:
    if context_id and not CONTEXT_ID.match(context_id):
        raise UsageProblem(f"Context id {context_id[:80]!r} is not valid.", "Use a-z, 0-9 and -, 1 to 63 characters.")
    named = document.get("context_workspace", "/workspace")
    if not isinstance(named, str) or not named.startswith("/") or not named.isprintable() or ".." in named.split("/"):
        raise UsageProblem("settings.json: context_workspace is not an absolute path.", _HOW)
    place = workspace or named.replace("${CONTEXT_ID}", context_id or "-")
    place = re.sub(r"/+", "/", place).rstrip("/")
    if not place.startswith("/") or "${" in place:
        raise UsageProblem(f"The workspace {place[:80]!r} is not an absolute path below /.", "Name the folder of the session.")
    return {"WORKSPACE": place, "CONTEXT_ID": context_id or "-"}  # no session is called "-"


def _rules(permissions: Mapping[str, Any], kind: str, variables: Mapping[str, str], marked: set[str]) -> tuple[Rule, ...]:
    found = permissions.get(kind, [])
    if not isinstance(found, list):
        raise UsageProblem(f"settings.json: permissions.{kind} is {_named(found)}, not a list.", _HOW)
    if len(found) > RULES_MAX:
        raise UsageProblem(f"settings.json: permissions.{kind} has {len(found):,} rules; at most {RULES_MAX:,} are read.", _HOW)
    read = (
        read_rule(text, f"settings.json: permissions.{kind}[{at}]", variables, kind == "allow" and isinstance(text, str) and text in marked)
        for at, text in enumerate(found)
    )
    return tuple({rule.text: rule for rule in read}.values())


def _strings(permissions: Mapping[str, Any], name: str) -> set[str]:
    found = permissions.get(name, [])
    if not isinstance(found, list) or not all(isinstance(text, str) for text in found):
        raise UsageProblem(f"settings.json: permissions.{name} is not a list of strings.", _HOW)
    return set(found)


def _known(found: Mapping[str, Any], names: set[str], where: str) -> None:
    for name in found:
        if name not in names:
            raise UsageProblem(f"{where}: {name[:60]!r} is not known.", f"Known are {', '.join(sorted(names))}.")


def _named(value: object) -> str:
    return {dict: "an object", list: "a list", str: "a string", bool: "true or false", type(None): "missing"}.get(type(value), "a number")
