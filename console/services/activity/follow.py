"""Decide whose files are followed, and read them.

Followed are agents that a source sees now, agents that it saw until a while ago, and agents that a person looks at.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Container, Iterator, Sequence
from operator import attrgetter
from pathlib import Path

from console.domain.agent import AgentId, Sighting, SourceReport
from console.domain.errors import ConsoleError
from console.enforcement.identity import observed_id
from console.ledger.activity import ActivityStore
from console.services.activity.clean import Redact, dated
from console.services.activity.schedule import Followed, Turns
from console.services.fleet.core import Core
from console.sources.activity.files import AgentFiles, Whereabouts, whereabouts
from console.sources.change_tracker import Freshness
from console.sources.kinds import ACTIVITIES, VENDORS
from console.sources.spend.rates import RateBook

log = logging.getLogger(__name__)
PASS_S = 0.25
"""Longest time of one look at files; the next goes on. With the rest, at most a quarter of one core, and only while there is a backlog."""
LINGER_S = 20.0
"""How long the files of one who ended, or was looked at, are still followed."""
Changed = dict[str, tuple[int, int]]
"""Agent id -> (the newest number, how many are new)."""
_ALWAYS = float("inf")
_PLACES_MAX = 20
_WHOSE = attrgetter("key", "session", "cwd", "part", "agent_id")
_BROKEN = (OSError, ValueError, ArithmeticError, LookupError, TypeError, AttributeError, RuntimeError, MemoryError)


class Following:
    """``sighted`` and ``look_at`` come from any thread, ``read`` is for one."""

    __slots__ = (
        "_lock", "_wanted", "_rows", "_turns", "_said", "_files", "_rates", "_core", "_store", "_redact", "_heard", "_root", "_homes",
        "_fresh", "_had", "_until"
    )  # fmt: skip

    def __init__(
        self,
        core: Core,
        store: ActivityStore,
        redact: Redact,
        root: Path | None,
        homes: Path,
        heard: Container[str],
        fresh: Freshness | None = None,
    ) -> None:
        """``root``: the one home in which others are looked for, None: any. ``homes``: the workspaces of agents of ours.

        ``heard``: who tells by itself what it does; its files would say it twice.
        """
        self._core, self._store, self._redact, self._heard = core, store, redact, heard
        self._root, self._homes, self._fresh = root, homes, fresh or Freshness()
        self._lock = threading.Lock()
        self._wanted: dict[Followed, float] = {}
        """Until when, in monotonic seconds; for ever while it is seen. Replaced whole, so that who reads it takes no copy."""
        self._had, self._until = self._wanted, _ALWAYS
        """The agents of the last turn, and the earliest time at which one of them is dropped."""
        self._rows: frozenset[tuple[str, str, int, str]] = frozenset()
        """Sub-agents of them: session, id, whose, home."""
        self._turns = Turns(self._fresh)
        self._said: dict[str, tuple[object, int, tuple[Sighting, ...]]] = {}
        """By source: the rows, the number of agents and the sightings of the last round."""
        self._files: dict[Followed, AgentFiles] = {}
        self._rates = RateBook(VENDORS)

    # --- who

    def sighted(self, reports: Sequence[SourceReport]) -> None:
        """One round of the sources, after the engine made rows of it."""
        tick = time.monotonic()
        with self._lock:
            wanted = self._wanted
            for report in reports:
                if report.source in ACTIVITIES and report.available and self._is_new(report):
                    seen = dict.fromkeys(self._whereabouts(report), _ALWAYS)
                    ends = [i for i, until in wanted.items() if i[1].source == report.source and until == _ALWAYS and i not in seen]
                    wanted = wanted | dict.fromkeys(ends, tick + LINGER_S) | seen
            if gone := {one for one, until in wanted.items() if until <= tick or one[0] in self._heard}:
                wanted = {one: until for one, until in wanted.items() if one not in gone}
            self._wanted = wanted

    def _is_new(self, report: SourceReport) -> bool:
        """Return whether the report names other agents, or agents with other rows, than the last one. Most reports only tell that an agent
        spent."""
        state, had = self._core.state, self._said.get(report.source)
        seen = report.sightings
        self._said[report.source] = (state.rows, len(state.agents), seen)
        if had is None or had[0] is not state.rows or had[1] != len(state.agents) or len(had[2]) != len(seen):
            return True
        return any(one is not before and _WHOSE(one) != _WHOSE(before) for one, before in zip(seen, had[2], strict=True))

    def look_at(self, agent_id: str) -> None:
        """Follow an agent for a while because a person looks at it, even though it has ended. Blocks."""
        if agent_id in self._heard:
            return
        known, until = [(agent_id, where) for where in self._places(agent_id)], time.monotonic() + LINGER_S
        with self._lock:
            self._wanted = self._wanted | {one: max(until, self._wanted.get(one, 0.0)) for one in known}

    def _whereabouts(self, report: SourceReport) -> Iterator[Followed]:
        for sighting in report.sightings:
            agent_id, owner = self._row_of(sighting), sighting.key.partition("-")[0]
            if agent_id is None or not sighting.session:
                continue
            top = self._core.state.agents.get(AgentId(sighting.agent_id))
            if top is not None:
                home = str(self._homes / top.context_id)
                yield agent_id, Whereabouts(report.source, -1, sighting.session, sighting.cwd, sighting.part, home)
            elif owner.isascii() and owner.isdigit() and len(owner) <= 10:
                yield agent_id, Whereabouts(report.source, int(owner), sighting.session, sighting.cwd, sighting.part)

    def _row_of(self, sighting: Sighting) -> AgentId | None:
        state = self._core.state
        found = state.rows.get(f"{sighting.source}\0{sighting.key}") or observed_id(sighting)
        return found if found in state.agents else None

    def _places(self, agent_id: str) -> list[Whereabouts]:
        found = (whereabouts(text) for text in self._store.place(agent_id).splitlines())
        return [where for where in found if where is not None]

    # --- what

    def words(self, agent_id: str) -> list[str]:
        """What a person should know of this agent's own files. Blocks for some looks at them."""
        files = self._store.files(agent_id)
        said = ["Kept here: the program's own file is gone."] if files and not any(Path(path).is_file() for path in files) else []
        followed = [one for (i, _), one in list(self._files.items()) if i == agent_id]
        said += dict.fromkeys(f"Its own file is not read: {one.problem}." for one in followed if one.problem)
        return said + (["Its history is still being read."] if any(one.backlog for one in followed) else [])

    def read(self) -> Changed:
        """A bounded part of what is new. Raises ConsoleError when it cannot be kept; what one file breaks holds up no other."""
        tick = time.monotonic()
        self._meet(self._wanted, tick)
        changed: Changed = {}
        met: list[Followed] = []
        try:
            with self._store.together():
                self._read_all(tick, changed, met)
        except ConsoleError:
            for one in met:  # what was read and not kept is read again, from where the store knows
                self._files.pop(one, None)
            self._turns.begin(met)
            raise
        return changed

    def _meet(self, wanted: dict[Followed, float], tick: float) -> None:
        """Who came since the last turn, and who goes."""
        if wanted is self._had and tick < self._until:
            return
        live = {one: until for one, until in wanted.items() if until > tick}
        for one in self._had.keys() - live.keys():
            self._files.pop(one, None)
            self._turns.end(one)
        self._turns.begin(live.keys() - self._had.keys())
        self._rows = frozenset((w.session, w.sub, w.uid, w.home) for _, w in live if w.sub)
        self._had, self._until = wanted if len(live) == len(wanted) else live, min(live.values(), default=_ALWAYS)

    def _read_all(self, tick: float, changed: Changed, met: list[Followed]) -> None:
        # Those who go on come before those whose long history is read for the first time.
        for one in sorted(self._turns.due(tick), key=self._turn_of):
            if time.monotonic() - tick > PASS_S and changed:
                break
            is_more = self._has_news(one)
            if is_more:
                met.append(one)
            while is_more:
                newest, added = self._read_one(one)
                if added:
                    changed[one[0]] = (newest, added + changed.get(one[0], (0, 0))[1])
                is_more = self._turn_of(one)[0] and time.monotonic() - tick < PASS_S
            if one in self._files:
                self._turns.rest(one, self._files[one])

    def _turn_of(self, one: Followed) -> tuple[bool, float]:
        files = self._files.get(one)
        return (files.backlog, files.read_at) if files is not None else (False, 0.0)

    def _has_news(self, one: Followed) -> bool:
        try:
            files = self._files.get(one)
            if files is None:
                files = self._files[one] = self._files_of(*one)
            return files.has_news()
        except ConsoleError:
            self._files.pop(one, None)
            raise
        except _BROKEN as error:
            self._broke(one, error)
            return False

    def _read_one(self, one: Followed) -> tuple[int, int]:
        """(the newest number, how many are new)."""
        newest, many = 0, 0
        try:
            for batch in self._files[one].read():
                added, newest = self._store.add(one[0], dated(batch.entries, self._redact), batch.place, again=batch.again)
                many += added
        except _BROKEN as error:
            self._broke(one, error)
        return newest, many

    def _broke(self, one: Followed, error: Exception) -> None:
        log.error("a file of %s could not be read", one[0], exc_info=error)
        if one in self._files:
            self._files[one].broke(f"{type(error).__name__}: {error}"[:200])

    def _files_of(self, agent_id: str, where: Whereabouts) -> AgentFiles:
        known, rows = self._places(agent_id), self._rows
        if where not in known:
            self._store.set_place(agent_id, "\n".join(w.as_json() for w in [*known, where][-_PLACES_MAX:]))

        def has_row(sub: str) -> bool:
            mine = (where.session, sub, where.uid, where.home)
            return mine in rows or mine in self._rows

        return AgentFiles(where, ACTIVITIES[where.source], self._root, self._rates.price, self._store.files(agent_id), has_row, self._fresh)
