"""Report sessions of Claude Code with their sub-agents and usage. A row is made again only when a watch, a sum or a record changed.

In a second a hundred of a thousand sessions may spend something, and one may start a sub-agent. The others stay as they were.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from console.domain.agent import Sighting
from console.sources.claude_code.notes import Notes
from console.sources.claude_code.subagents import Tree, again, sightings
from console.sources.recently_ended import Farewells
from console.sources.spend.of_session import SessionSpend, Spent


@dataclass(frozen=True, slots=True)
class Proven:
    """A session that was proven to run."""

    seen: Sighting
    owner: int
    """Uid of its record."""
    projects: Path
    """Where sessions of its home are written."""


@dataclass(slots=True)
class _Told:
    """What was made of a session; without sub-agents it holds while what it was made from is the same."""

    seen: Sighting
    spent: dict[str, Spent]
    rows: list[Sighting]
    folders: list[Path]
    until: float = 0.0
    """Monotonic: then its notes are looked for again, whatever watches say."""
    places: tuple[str, ...] = ()
    """Of what a watch would tell that it has sub-agents now."""


class Rows:
    """For one thread at a time."""

    def __init__(self, source: str, spend: SessionSpend) -> None:
        self._source, self._spend = source, spend
        self._fresh, self._notes = spend.fresh, Notes(spend.fresh)
        self._trees: dict[str, Tree] = {}
        """By session, for as long as it is seen."""
        self._told: dict[str, _Told] = {}
        self._by_place: dict[str, set[str]] = {}
        self._number = 0
        """Up to where the watches were heard."""
        self._proven: dict[str, Proven] = {}
        self._farewells = Farewells()

    def of(self, proven: dict[str, Proven]) -> tuple[list[Sighting], list[Path] | None]:
        """Each session, its sub-agents behind it; and where they write, None: where they did. The same dict holds the same sessions."""
        is_moved = proven is not self._proven
        if is_moved:
            self._take(proven)
        woken, tick = self._woken(), time.monotonic()
        self._notes.begin()
        sums = self._spend.of_all([(one.owner, self._source, one.seen.session) for one in proven.values()])
        shown: list[Sighting] = []
        for (key, one), spent in zip(proven.items(), sums, strict=True):
            had = self._told.get(key)
            if had is None or had.seen is not one.seen or tick >= had.until or key in woken:
                now = self._made(key, one, spent, had)
                is_moved = is_moved or had is None or had.folders != now.folders
                had = now
            elif had.spent is not spent:
                if had.spent != spent:
                    had.rows = sightings(one.seen, [], spent, self._trees[key])
                had.spent = spent
            shown += had.rows
        shown += self._farewells.now()
        return shown, [folder for key in proven for folder in self._told[key].folders] if is_moved else None

    def _take(self, proven: dict[str, Proven]) -> None:
        for key in self._told.keys() - proven.keys():
            self._farewells.add(key, partial(self._again, self._proven[key], self._told[key].rows, self._trees[key]))
            self._let_go(key)
        if self._proven.keys() - proven.keys():
            self._spend.look_soon()  # what it wrote last may not have been told
        for key in proven.keys() - self._proven.keys():
            self._farewells.drop(key)
        self._trees = {key: self._trees.get(key) or Tree() for key in proven}
        self._proven = proven

    def _again(self, one: Proven, rows: list[Sighting], tree: Tree) -> list[Sighting]:
        return again(rows, self._spend.of(one.owner, self._source, one.seen.session), tree)

    def _woken(self) -> Iterable[str]:
        """Return the sessions for which a watch reported a change since the last call; all, when the watches were set up again."""
        number, changed = self._fresh.since(self._number)
        is_new, self._number = self._fresh.begun > self._number, number
        if is_new:
            return self._told.keys()
        return {key for place in changed & self._by_place.keys() for key in self._by_place[place]}

    def _made(self, key: str, one: Proven, spent: dict[str, Spent], had: _Told | None) -> _Told:
        seen, tree = one.seen, self._trees[key]
        notes = self._notes.of(one.projects, seen.cwd, seen.session)
        is_same = had is not None and had.seen is seen and had.spent == spent and not notes.found and len(had.rows) == 1
        rows = had.rows if is_same and had is not None else sightings(seen, notes.found, spent, tree)
        self._let_go(key)
        now = self._told[key] = _Told(seen, spent, rows, notes.folders)
        held = self._notes.held(one.projects, seen.cwd, seen.session)
        if held is not None:  # with sub-agents it is made anew each time: who of them has finished is said for a while only
            now.until, now.places = held.until, held.places
            for place in held.places:
                self._by_place.setdefault(place, set()).add(key)
        return now

    def _let_go(self, key: str) -> None:
        had = self._told.pop(key, None)
        for place in had.places if had is not None else ():
            keys = self._by_place[place]
            keys.discard(key)
            if not keys:
                del self._by_place[place]
