"""What verdicts, lists and rules are called, and the shape that goes with each: never colour alone."""

from __future__ import annotations

import json
from dataclasses import dataclass

from console.gui.kit.table import Shape

VERDICTS: dict[str, Shape] = {
    "deny": ("Deny", "ban", "danger"),
    "ask": ("Ask", "triangle", "warn"),
    "allow": ("Allow", "check", "text2"),
}
UNKNOWN: Shape = ("Unknown", "triangle", "warn")
SEVERITIES: dict[str, Shape] = {
    "refused": ("Refused", "diamond", "danger"),
    "warning": ("Warning", "triangle", "warn"),
    "note": ("Note", "ring", "text2"),
}
ORDER = {"deny": 0, "ask": 1, "allow": 2}
_EXPLAIN = "explain "


def shape_of(verdict: str) -> Shape:
    """Of a verdict, or of the list of rules that gives it."""
    return VERDICTS.get(verdict, UNKNOWN)


def kind_words(rule: str) -> str:
    """What a rule is about, from how it is written."""
    family, _, inside = rule.partition("(")
    if family == "file":
        action = inside.partition(":")[0]
        return {"read": "File, read", "write": "File, write", "delete": "File, delete"}.get(action, "File")
    return {"shell": "Command", "network": "Host", "exactly": "One call"}.get(family, "Not known")


def means(rule: str) -> str:
    """What a rule says, in a sentence."""
    family, _, inside = rule.removesuffix(")").partition("(")
    if family == "shell":
        if inside in ("*", "*:*"):
            return "Every command."
        return f"A command that begins with {inside[:-2]}" if inside.endswith(":*") else f"Exactly the command {inside}"
    if family == "file":
        action, _, glob = inside.partition(":")
        return f"To {action} a file whose path, and what it leads to, match {glob}"
    return f"To reach {inside.partition(':')[2]}" if family == "network" else "This console does not know this kind of rule."


@dataclass(frozen=True, slots=True)
class AskedCall:
    """A call to be explained. ``argument`` is exact, and may be hostile."""

    tool: str
    argument: str
    agent_id: str = ""
    cwd: str = ""


def explain_argument(call: AskedCall) -> str:
    """For ``Desk.goto("policy", ...)``."""
    return _EXPLAIN + json.dumps([call.tool, call.argument, call.agent_id, call.cwd])


def asked_call(argument: str) -> AskedCall | None:
    """What ``explain_argument`` made; None for anything else."""
    if not argument.startswith(_EXPLAIN):
        return None
    try:
        found = json.loads(argument[len(_EXPLAIN) :])
    except ValueError:
        return None
    if isinstance(found, list) and len(found) == 4 and all(isinstance(one, str) for one in found):
        return AskedCall(*found)
    return None
