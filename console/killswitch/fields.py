"""Check the fields of a line that a client sent to the guard, and refuse wrong ones in words."""

from __future__ import annotations

from typing import Any

from console.domain.errors import UsageProblem


def text(message: dict[str, Any], key: str, default: str | None = None, limit: int = 500) -> str:
    """A string field. UsageProblem when missing or of another type."""
    value = message.get(key, default)
    if not isinstance(value, str) or len(value) > limit:
        raise UsageProblem(f"Field {key!r} must be a text of at most {limit} characters.", "See INTERFACES of the guard's sockets.")
    return value


def number(message: dict[str, Any], key: str, default: float | None = None) -> float:
    """A finite number. UsageProblem otherwise."""
    value = message.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value or abs(value) > 1e15:
        raise UsageProblem(f"Field {key!r} must be a number.", "See the guard's operations.")
    return value


def whole(message: dict[str, Any], key: str, default: int | None = None) -> int:
    """A whole number."""
    return int(number(message, key, default))


def whole_list(message: dict[str, Any], key: str, most: int = 64) -> tuple[int, ...]:
    """A list of whole numbers, or none."""
    value = message.get(key, [])
    if not isinstance(value, list) or len(value) > most or not all(type(n) is int for n in value):
        raise UsageProblem(f"Field {key!r} must be a list of at most {most} whole numbers.", "See the guard's operations.")
    return tuple(value)


def scope_of(message: dict[str, Any]) -> str | list[str]:
    """ "all", or a list of agent ids."""
    scope = message.get("scope")
    if scope == "all":
        return "all"
    if isinstance(scope, list) and scope and all(isinstance(i, str) and 0 < len(i) <= 63 for i in scope):
        return scope
    raise UsageProblem("Field 'scope' must be \"all\" or a list of agent ids.", "Name at least one agent.")
