"""The guard's files, socket operations and line format: what gui, cli, supervisor and killswitch share."""

from __future__ import annotations

import json
from typing import Any

LINE_LIMIT = 4096
"""Bytes of one JSON line, either way."""
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
HEARTBEAT_S = 30.0
LEASE_S = 60.0

CAUSES = ("operator", "hold", "budget", "heartbeat", "lease", "soft_stop", "switch", "adoption")
"""Why an agent may be frozen; it runs only when it has none."""


def encode(message: dict[str, Any]) -> bytes:
    """One line; ValueError when it exceeds LINE_LIMIT."""
    line = json.dumps(message, separators=(",", ":")).encode() + b"\n"
    if len(line) > LINE_LIMIT:
        raise ValueError("line too long")
    return line


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
