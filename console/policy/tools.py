"""Names of tools and what they do: data (``resources/policy/tools.json``). A tool that is not known is judged as ``other``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from console.domain.errors import UsageProblem
from console.policy.scopes import Scope, read_scopes

FAMILIES = ("shell", "argv", "file", "network", "code", "other", "none")
_FIELDS = {"names", "family", "action", "scopes", "connects"}


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool."""

    name: str
    family: str
    """``shell`` (a string), ``argv`` (a JSON list), ``file``, ``network``, ``code``, ``other``.

    ``none``: it has no effect but through calls that are judged themselves.
    """
    action: str = ""
    scopes: frozenset[Scope] = frozenset()
    connects: bool = False
    """It sends data to somebody else (CONNECT): denied once private data is present."""


def read_tools(document: object) -> Mapping[str, Tool]:
    """Reads the parsed data. Raises UsageProblem with the place of the first mistake."""
    if not isinstance(document, dict) or not isinstance(document.get("tools"), list):
        raise UsageProblem("tools.json: there is no list called tools.", "See resources/policy/tools.json.")
    found: dict[str, Tool] = {}
    for at, one in enumerate(document["tools"]):
        if not isinstance(one, dict) or not set(one) <= _FIELDS or not all(isinstance(value, str) for value in one.values()):
            raise UsageProblem(f"tools.json: tools[{at}] is not understood.", f"Fields are {', '.join(sorted(_FIELDS))}, each a string.")
        family = one.get("family", "")
        if family not in FAMILIES:
            raise UsageProblem(f"tools.json: tools[{at}]: family {family!r} is not known.", f"Known are {', '.join(FAMILIES)}.")
        for name in one.get("names", "").split():
            scopes = read_scopes(one.get("scopes", "").split())
            found[name] = Tool(name, family, one.get("action", ""), scopes, one.get("connects") == "yes")
    return found


def tool_of(tools: Mapping[str, Tool], name: str) -> Tool:
    """The tool of a name; an unknown one connects and needs every scope that nobody would grant by chance (RUN_CODE and CALL_API)."""
    return tools.get(name) or Tool(name, "other", "", frozenset({Scope.RUN_CODE, Scope.CALL_API}), connects=True)
