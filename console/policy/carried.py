"""Rules carried between programs: what could be, and what could not with its reason. Nothing becomes looser on the way."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Lost:
    """One thing that was not carried over as it was."""

    what: str
    why: str


@dataclass(slots=True)
class Carried:
    """The outcome of an import or export."""

    deny: list[str] = field(default_factory=list)
    ask: list[str] = field(default_factory=list)
    allow: list[str] = field(default_factory=list)
    lost: list[Lost] = field(default_factory=list)

    def put(self, kind: str, rule: str) -> None:
        """Adds a rule to ``deny``, ``ask`` or ``allow`` once."""
        rules: list[str] = getattr(self, kind)
        if rule not in rules:
            rules.append(rule)

    def lose(self, what: str, why: str) -> None:
        """Notes what is not carried over."""
        self.lost.append(Lost(what, why))

    def settings(self) -> dict[str, Any]:
        """As ``settings.json``."""
        lists = {"deny": self.deny, "ask": self.ask, "allow": self.allow}
        return {"permissions": {kind: rules for kind, rules in lists.items() if rules}}
