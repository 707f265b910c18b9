"""Match calls of MCP servers: which server and tool a name means, and which rules of the form ``mcp(SERVER:TOOL)`` apply.

Programs name such a tool ``mcp__SERVER__TOOL``. Both halves may hold the separator, so a name can be read in several ways. A rule that
denies or asks decides when one reading matches it. A rule that allows decides only when all readings match.
"""

from __future__ import annotations

import re

from console.domain.calls.permission import Verdict
from console.policy.rules.loading import Settings
from console.policy.rules.rule import Family, Rule

PREFIX = "mcp__"
_BETWEEN = "__"
_ODD = re.compile(r"[^A-Za-z0-9_-]")


def readings(name: str) -> tuple[tuple[str, str], ...]:
    """Every (server, tool) that a name may mean; empty: it names no tool of an MCP server."""
    rest = name.removeprefix(PREFIX)
    if rest == name:
        return ()
    places = (at for at in range(1, len(rest) - len(_BETWEEN)) if rest.startswith(_BETWEEN, at))
    return tuple((rest[:at], rest[at + len(_BETWEEN) :]) for at in places)


def covers(rule: Rule, server: str, tool: str) -> bool:
    """Whether a rule means this tool. Programs write a server's name with ``_`` for what is no letter, digit, ``_`` or ``-``."""
    return all(_matches(word, name) for word, name in zip(rule.words, (server, tool), strict=True))


def _matches(word: str, name: str) -> bool:
    parts = [re.escape(_ODD.sub("_", part)) for part in word.split("*")]
    return re.fullmatch(".*".join(parts), _ODD.sub("_", name)) is not None


class McpRules:
    """The MCP rules of one policy."""

    def __init__(self, settings: Settings) -> None:
        self._denies, self._asks, self._allows = (settings.of(kind, Family.MCP) for kind in ("deny", "ask", "allow"))

    def judge(self, name: str) -> tuple[Verdict, Rule] | None:
        """The verdict on a call of this tool and the rule that gives it; None: no rule says anything of it."""
        found = readings(name)
        for verdict, rules in ((Verdict.DENY, self._denies), (Verdict.ASK, self._asks)):
            for rule in rules:
                if any(covers(rule, *one) for one in found):
                    return verdict, rule
        allowing = [next((rule for rule in self._allows if covers(rule, *one)), None) for one in found]
        if not allowing or None in allowing:
            return None
        # The widest of them is named: what it allows is what was decided.
        return Verdict.ALLOW, max((rule for rule in allowing if rule is not None), key=lambda rule: rule.text.count("*"))
