"""Sub-agents of a Claude Code session as sightings, from their notes and what each used.

They run inside their session's process: what stops it stops them, and nothing else does. Parents are the agents' own links, never guessed.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace

from console.domain.agent import Sighting
from console.sources.claude_code.notes import SubAgent
from console.sources.interface import FINISHED
from console.sources.spend.of_session import Spent, acted, usage

MOST = 200
"""Shown at a time per session; more are said."""
LIFE = 1000
"""Shown in the whole life of a session: files alone make them, and each becomes an agent on record."""
_METERED = "Metered after the fact, from its transcript."
IN_SESSION = "It runs inside its session's process: stopping the session stops it, nothing else does. " + _METERED
FAREWELL_S = 10.0
"""How long one that has finished is still said to have."""


@dataclass(slots=True)
class Tree:
    """Who of a session has a row of its own, for good, and whose spending is counted with the session's."""

    shown: set[str] = field(default_factory=set)
    absorbed: set[str] = field(default_factory=set)
    over: dict[str, float] = field(default_factory=dict)
    """Those with a row that have finished, and since when that is known."""


def sightings(session: Sighting, notes: list[SubAgent], spent: dict[str, Spent], tree: Tree) -> list[Sighting]:
    """The session with what it used itself and those who have no row, then its sub-agents."""
    living = [one for one in notes if not one.finished]
    rows = _rows(living, tree)
    own = _own(spent, tree)
    detail = f"{session.detail} {_METERED}" if own else session.detail
    if len(living) > len(rows):
        detail += f" {len(living) - len(rows):,} more sub-agents are not shown."
    shown = [replace(session, usage=usage(own), action=acted(own), detail=detail, model=_model(own), unpriced=_unpriced(own))]
    known = {one.agent_id for one in notes if one.agent_id in tree.shown}
    rows += _leaving(notes, tree)
    return shown + [_row(session, one, known, spent.get(one.agent_id)) for one in sorted(rows, key=lambda one: one.depth)]


def again(rows: list[Sighting], spent: dict[str, Spent], tree: Tree) -> list[Sighting]:
    """The same session and sub-agents with what is known now of what each used."""
    sums = [spent.get(one.part) if one.part else _own(spent, tree) for one in rows]
    return [
        replace(one, usage=usage(used), action=acted(used), model=_model(used), unpriced=_unpriced(used)) if used is not None else one
        for one, used in zip(rows, sums, strict=True)
    ]


def _own(spent: dict[str, Spent], tree: Tree) -> Spent | None:
    tree.absorbed.update(spent.keys() - tree.shown - {""})
    return _together([one for name, one in spent.items() if name == "" or name in tree.absorbed])


def _rows(living: list[SubAgent], tree: Tree) -> list[SubAgent]:
    able = [one for one in living if one.agent_id not in tree.absorbed]
    room = LIFE - len(tree.shown)
    tree.shown.update([one.agent_id for one in able if one.agent_id not in tree.shown][: max(0, room)])
    return [one for one in able if one.agent_id in tree.shown][:MOST]


def _leaving(notes: list[SubAgent], tree: Tree) -> list[SubAgent]:
    """Those with a row that have just finished: said for a moment, with all they used."""
    now, found = time.monotonic(), []
    for one in notes:
        if one.finished and one.agent_id in tree.shown and now - tree.over.setdefault(one.agent_id, now) < FAREWELL_S:
            found.append(one)
    return found[:MOST]


def _row(session: Sighting, one: SubAgent, known: set[str], used: Spent | None) -> Sighting:
    parent, unlinked = one.parent_id, ""
    if parent == one.agent_id or (parent and parent not in known):
        unlinked, parent = "the parent that its note names has no row", ""
    elif one.depth > 1 and not parent:
        unlinked = "its note says that another sub-agent started it, and no transcript holds that call"
    return replace(
        session,
        key=f"{session.key}-{one.agent_id}",
        part=one.agent_id,
        name=one.name,
        process=None,
        # That it is of this session is certain, so what it spends is charged there; only who in it started it is not known.
        parent_key=f"{session.key}-{parent}" if parent else session.key,
        status=FINISHED if one.finished else "running",
        detail=IN_SESSION + (f" Not linked to its parent, because {unlinked}." if unlinked else ""),
        usage=usage(used),
        action=acted(used),
        unlinked=f"shown below its session, because {unlinked}" if unlinked else "",
        seen_at=time.time(),
        model=_model(used),
        unpriced=_unpriced(used),
    )


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


def _model(spent: Spent | None) -> str:
    return spent.model if spent is not None else ""


def _unpriced(spent: Spent | None) -> int:
    return spent.unpriced if spent is not None else 0
