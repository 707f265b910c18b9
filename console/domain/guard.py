"""The guard's files, socket operations, line format and the checks of its fields: what gui, cli, supervisor and killswitch share."""

from __future__ import annotations

import json
from typing import Any

from console.domain.errors import UsageProblem

LINE_LIMIT = 4096
"""Bytes of one JSON line, either way."""
ANSWER_ROOM = 3000
"""Bytes of it that the rows of one answer take."""
ANSWER_S = 0.3
"""A guard that has not answered for so long is asked whether it has the order; a hold falls back to the press itself."""
SILENT_S = 2.0
"""A guard that takes no order for so long, however busy it is, does not get one more: the order is carried out without it."""
ORDER_LINES = 64
"""Lines that one order may take: some 20,000 agents."""
HOLD_S = 0.8
"""Freeze at the press, SIGKILL after this hold."""
HELD_GRACE_S = 0.15
"""Of the hold, at least this much follows the order, however long ago the press was: a release that waits to be handled still thaws."""
SECOND_LOOK_S = 0.5
RETURN_WATCH_S = 60.0
"""How long after a kill what starts a killed session again is ended, unless a setting says otherwise."""
KILL_LIMIT_S = 5.0
LOCAL_WORST_S = ANSWER_S + KILL_LIMIT_S
"""The guard has 0.3 s to answer, else the registry's press does its work; after 5 s the receipt says proven or not."""
HELPER_S, MOVE_S = 30.0, 55.0
"""From the start of a helper of the guard to its end: on a busy machine an interpreter alone takes seconds to start. The one that moves an
adopted program has the second: its own 40 s, and its start."""
HEARTBEAT_S = 30.0
LEASE_S = 60.0

CAUSES = ("operator", "hold", "budget", "heartbeat", "lease", "soft_stop", "switch", "adoption")
"""Why an agent may be frozen; it runs only when it has none."""
CONSOLE = "it has a line to the guard open, as consoles and panic buttons do"
"""Why a process is not adopted."""


def encode(message: dict[str, Any]) -> bytes:
    """One line; ValueError when it exceeds LINE_LIMIT."""
    line = json.dumps(message, separators=(",", ":")).encode() + b"\n"
    if len(line) > LINE_LIMIT:
        raise ValueError("line too long")
    return line


def cut(words: str, room: int, most: int = 300) -> str:
    """Words of others, at most so many letters, and in JSON at most ``room`` bytes (one letter takes up to twelve)."""
    words = words[:most]
    while (size := len(json.dumps(words)) - 2) > room:
        words = words[: min(len(words) - 1, len(words) * room // size)]
    return words


def decode(line: bytes) -> dict[str, Any]:
    """One line as a JSON object; ValueError on anything else."""
    if len(line) > LINE_LIMIT:
        raise ValueError("line too long")
    message = json.loads(line)
    if not isinstance(message, dict):
        raise ValueError("not an object")
    return message


LOST = "lost: the record of what was stopped cannot be read"
"""The guard's soft stop when it cannot know whether there was one; the supervisor lifts it once it knows better."""

INSTANCE_LABEL = "io.watchfloor.instance"
"""Label of every container we start; its value is the instance id."""
AGENT_LABEL = "io.watchfloor.agent"
AGENT_VARIABLE = "WATCHFLOOR_AGENT_ID"
INSTANCE_VARIABLE = "WATCHFLOOR_INSTANCE"
"""Both variables together mark an agent's processes; the second look of a kill hunts them outside our cgroups."""
AGENT_SOCKET_VARIABLE = "WATCHFLOOR_AGENT_SOCKET"


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
