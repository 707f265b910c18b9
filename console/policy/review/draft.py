"""A narrow rule made of one request: exactly these words, this file, this host, and nothing that merely looks like them."""

from __future__ import annotations

import re

from console.domain.calls.permission import Verdict
from console.domain.errors import UsageProblem
from console.policy.files.paths import ACTIONS
from console.policy.rules.hosts import read_url
from console.policy.rules.rule import read_rule
from console.policy.rules.verdicts import NO_RULE, Judgement, Part

_PLAIN = re.compile(r"[A-Za-z0-9_@%+=:,./~^-]+\Z")
"""Words that a rule can hold as they are: no space, nothing that a pattern could read."""
_MAGIC = re.compile(r"[\\*?\[\]{}!]")
RULES_MAX = 20


def draft(found: Judgement, workspace: str) -> tuple[str, ...]:
    """Allow rules under which everything that asked for want of a rule would be allowed; empty: no rule can say that.

    ``workspace`` (absolute) is written as ``${WORKSPACE}``. What an ask rule, a danger or a denial holds back is nothing that an
    allow rule could change.
    """
    asked = [part for part in found.parts if part.verdict is not Verdict.ALLOW]
    if not asked or any(part.verdict is Verdict.DENY or part.rule != NO_RULE for part in asked):
        return ()
    made: list[str] = []
    for part in asked:
        rules = _of(part, found, workspace.rstrip("/"))
        if not rules:
            return ()
        made += [rule for rule in rules if rule not in made]
    return tuple(made) if len(made) <= RULES_MAX and all(_reads(rule) for rule in made) else ()


def _of(part: Part, found: Judgement, workspace: str) -> list[str]:
    if part.step == "program":
        # Which of the steps it is does not stand in the part: each that runs a program gets its own exact rule.
        return [rule for step in found.steps if (rule := _command(step.argv))]
    use, _, rest = part.text.partition(" ")
    if part.step in ("file", "redirect") and use in ACTIONS:
        paths = rest.split(" -> ")
        return [rule for path in paths if (rule := _file(ACTIONS[use], path, workspace))] if len(paths) <= 2 else []
    if part.step == "network":
        target = part.text.rpartition(" ")[2]
        there = read_url(target if "://" in target else f"https://{target}")
        return [f"network(outbound:{there.host})"] if there is not None else []
    return []


def _command(argv: tuple[str, ...]) -> str:
    """The exact words; empty where a rule cannot hold one of them."""
    return f"shell({' '.join(argv)})" if all(_PLAIN.match(word) for word in argv) else ""


def _file(action: str, path: str, workspace: str) -> str:
    if not path.startswith("/") or not path.isprintable():
        return ""
    if workspace and path.startswith(workspace + "/"):
        return f"file({action}:${{WORKSPACE}}{_escaped(path.removeprefix(workspace))})"
    return f"file({action}:{_escaped(path)})"


def _escaped(path: str) -> str:
    return _MAGIC.sub(lambda found: "\\" + found.group(0), path)


def _reads(rule: str) -> bool:
    try:
        read_rule(rule, "draft", {"WORKSPACE": "/workspace", "CONTEXT_ID": "c"})
    except UsageProblem:
        return False
    return True
