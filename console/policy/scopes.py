"""What an agent may do at all: granted by the launcher at birth, never by the agent; a child gets a subset of its parent's."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from enum import StrEnum

from console.domain.calls.permission import Verdict
from console.domain.errors import Denied, UsageProblem
from console.policy.rules.verdicts import Part


class Scope(StrEnum):
    """One kind of effect."""

    READ_FS = "READ_FS"
    WRITE_FS = "WRITE_FS"
    DELETE_FS = "DELETE_FS"
    READ_DB = "READ_DB"
    WRITE_DB = "WRITE_DB"
    SEND_EMAIL = "SEND_EMAIL"
    CALL_API = "CALL_API"
    RUN_CODE = "RUN_CODE"
    SPEND_MONEY = "SPEND_MONEY"
    DEPLOY = "DEPLOY"


ALL = frozenset(Scope)
_BY_NAME = dict(Scope.__members__)
_OF_ACTION = {
    "read": (Scope.READ_FS,),
    "write": (Scope.WRITE_FS,),
    "delete": (Scope.DELETE_FS, Scope.WRITE_FS),
    "connect": (Scope.CALL_API,),
}


def read_scopes(names: Iterable[object]) -> frozenset[Scope]:
    """Scopes by name. Raises UsageProblem for one that is not known."""
    found = set()
    for name in names:
        scope = _BY_NAME.get(name) if isinstance(name, str) else None
        if scope is None:
            raise UsageProblem(f"Scope {name!r:.60} is not known.", f"Known are {', '.join(Scope)}.")
        found.add(scope)
    return frozenset(found)


def at_birth(parent: frozenset[Scope] | None, wanted: frozenset[Scope] | None) -> frozenset[Scope]:
    """The scopes of a new agent. ``parent`` None: it is a root, and gets what the launcher names (nothing named: nothing).

    Raises Denied when a child would get what its parent has not; without a wish it gets what its parent has.
    """
    if parent is None:
        return wanted or frozenset()
    if wanted is None:
        return parent
    if more := sorted(wanted - parent):
        raise Denied(f"A child cannot have {', '.join(more)}: its parent has not.", "Grant the parent's scopes, or fewer.")
    return wanted


def missing(needed: Collection[Scope], granted: frozenset[Scope], text: str) -> Part | None:
    """A denial for what was not granted, or None."""
    if granted.issuperset(needed):
        return None
    if lacking := [scope for scope in Scope if scope in needed and scope not in granted]:
        return Part(text, Verdict.DENY, "scopes", "scope", f"it needs {', '.join(lacking)}, which this agent was not granted")
    return None


def needed_by(action: str) -> tuple[Scope, ...]:
    """What a part of a judged command needs."""
    return _OF_ACTION.get(action, ())
