"""Count the processes of many agents in one answer: for a thousand agents a caller asks ten times, not a thousand."""

from __future__ import annotations

import json
import time
from typing import Any

from console.killswitch.registry import Registry

MOST = 100
"""Agents of one answer."""
ROOM = 3000
"""Bytes of one answer (LINE_LIMIT bounds the line)."""
WORDS = 1000
"""Bytes of one agent's words."""
TURN_S = 0.01
"""So long one answer keeps the guard's loop: a press behind it waits no longer."""


def counts(registry: Registry, after: str) -> dict[str, Any]:
    """Of the agents by name behind ``after``: how many processes each has, and why a kill of it cannot be proven.

    ``next`` is what to ask for next, or None at the end. One that is not in any answer is not registered, or came meanwhile: ask
    ``procs`` for it.
    """
    found: dict[str, int] = {}
    doubts: dict[str, str] = {}
    room, until = ROOM, time.monotonic() + TURN_S
    names = sorted(name for name in list(registry.held) if name > after)
    for name in names:
        held = registry.held.get(name)
        if held is None:
            continue
        count, why = len(held.pids()), _cut(held.entry.why_best_effort or held.doubt)
        room -= len(name) + 12 + (len(name) + len(json.dumps(why)) + 6 if why else 0)
        if found and room < 0:
            break
        found[name] = count
        if why:
            doubts[name] = why
        if len(found) >= MOST or time.monotonic() > until:
            break
    last = next(reversed(found), "")
    return {"counts": found, "best_effort": doubts, "next": last if last and last != names[-1] else None}


def _cut(text: str) -> str:
    """To WORDS bytes of JSON: one letter takes up to twelve."""
    while (size := len(json.dumps(text))) > WORDS:
        text = text[: min(len(text) - 1, len(text) * WORDS // size)]
    return text
