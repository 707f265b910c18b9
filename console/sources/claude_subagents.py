"""Sub-agents of a Claude Code session, from the notes beside their transcripts: ``<session>/subagents/agent-<id>.meta.json``.

They run inside their session's process: what stops it stops them, and nothing else does. Parents are the agents' own links, never guessed.
"""

from __future__ import annotations

import json
import os
import re
import time
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

from console.domain.agent import Sighting
from console.domain.budget import Usage
from console.sources.homes import read_foreign
from console.sources.interface import plain
from console.sources.session_spend import Spent

MOST = 200
"""Shown at a time per session; more are said."""
LIFE = 1000
"""Shown in the whole life of a session: files alone make them, and each becomes an agent on record."""
_META = re.compile(r"^agent-([0-9A-Za-z_-]{1,64})\.meta\.json\Z")
_CAP = 65_536
_SLUG = re.compile(r"[^A-Za-z0-9]")
_METERED = "Metered after the fact, from its transcript."
IN_SESSION = "It runs inside its session's process: stopping the session stops it, nothing else does. " + _METERED


@dataclass(frozen=True, slots=True)
class SubAgent:
    """What its note says."""

    agent_id: str
    name: str
    parent_id: str
    """Another sub-agent's id, or empty: the session itself."""
    depth: int
    finished: bool


@dataclass(slots=True)
class Tree:
    """Who of a session has a row of its own, for good, and whose spending is counted with the session's."""

    shown: set[str] = field(default_factory=set)
    absorbed: set[str] = field(default_factory=set)


def subagents(projects: Path, cwd: str, session: str) -> list[SubAgent]:
    """Those that have not finished; empty when there are none or the folder cannot be read."""
    if not cwd or "/" in session or session in ("", ".", ".."):
        return []
    folder = projects / _SLUG.sub("-", cwd) / session / "subagents"
    found: list[SubAgent] = []
    try:
        with os.scandir(folder) as entries:
            names = sorted(e.name for e in islice(entries, 10 * MOST) if _META.match(e.name))
    except OSError:
        return []
    for name in names:
        one = _read(folder / name)
        if one is not None and not one.finished:
            found.append(one)
    return sorted(found, key=lambda one: one.depth)  # parents before their children


def _read(file: Path) -> SubAgent | None:
    match = _META.match(file.name)
    try:
        read = read_foreign(file, _CAP)
        meta: Any = json.loads(read.data) if read.whole else None
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(meta, dict) or match is None:
        return None
    depth = meta.get("spawnDepth")
    return SubAgent(
        match[1],
        plain(meta.get("description"), 80) or plain(meta.get("agentType"), 80) or f"sub-agent {match[1][:8]}",
        plain(meta.get("parentAgentId"), 64),
        depth if type(depth) is int and 0 < depth < 100 else 1,
        meta.get("finished") is True,
    )


def sightings(session: Sighting, found: list[SubAgent], spent: dict[str, Spent], tree: Tree) -> list[Sighting]:
    """The session with what it used itself and those who have no row, then its sub-agents."""
    able = [one for one in found if one.agent_id not in tree.absorbed]
    room = LIFE - len(tree.shown)
    fresh = [one.agent_id for one in able if one.agent_id not in tree.shown][: max(0, room)]
    tree.shown.update(fresh)
    rows = [one for one in able if one.agent_id in tree.shown][:MOST]
    tree.absorbed.update(spent.keys() - tree.shown - {""})
    own = _together([one for name, one in spent.items() if name == "" or name in tree.absorbed])
    detail = f"{session.detail} {_METERED}" if own else session.detail
    if len(found) > len(rows):
        detail += f" {len(found) - len(rows):,} more sub-agents are not shown."
    shown = [replace(session, usage=usage(own), action=acted(own), detail=detail)]
    known = {one.agent_id for one in rows}
    for one in rows:
        parent = one.parent_id if one.parent_id in known and one.parent_id != one.agent_id else ""
        detail = IN_SESSION
        if one.depth > 1 and not parent:
            detail = f"Not linked to its parent, because its note does not name one that runs. {detail}"
        used = spent.get(one.agent_id)
        shown.append(
            replace(
                session,
                key=f"{session.key}-{one.agent_id}",
                name=one.name,
                process=None,
                parent_key=f"{session.key}-{parent}" if parent else session.key,
                status="running",
                detail=detail,
                usage=usage(used),
                action=acted(used),
                seen_at=time.time(),
            )
        )
    return shown


def _together(several: list[Spent]) -> Spent | None:
    if not several:
        return None
    last = max(several, key=lambda one: one.last_at)
    return Spent(
        sum(one.tokens for one in several),
        sum(one.cost_usd for one in several),
        sum(one.answers for one in several),
        sum(one.unpriced for one in several),
        last.model,
        last.last_at,
    )


def usage(spent: Spent | None) -> Usage | None:
    """As the engine counts: an answer is an iteration."""
    return None if spent is None else Usage(iterations=spent.answers, tokens=spent.tokens, cost_usd=spent.cost_usd)


def acted(spent: Spent | None) -> str:
    """Its model, and what of it has no price."""
    if spent is None:
        return ""
    return f"{spent.model}, {spent.unpriced:,} answers unpriced" if spent.unpriced else spent.model
