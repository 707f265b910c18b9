"""Find the session of each process of a kind that holds no file open: by its folder, account and start.

The files only claim which session a process writes, so a session only names and counts. The process itself is proven by the kernel. A
session counts for a process when its file was written since that process began. Where several processes work in one folder, each session
belongs to the one that began last before it.
"""

from __future__ import annotations

import os
import pwd
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import NamedTuple

from console.domain.agent import Sighting, SourceReport
from console.sources.home_dirs import OwnHome
from console.sources.interface import MAX_SIGHTINGS, ONLY_OURS, Confinement
from console.sources.kind import Outlook
from console.sources.plain_processes import folded
from console.sources.processes import ticks_of_boot
from console.sources.programs import Program, Running
from console.sources.recently_ended import Farewells
from console.sources.spend.of_session import SessionSpend, Spent, acted, usage
from console.sources.text import plain
from console.wording.agent_kinds import PLACES

LOOK_S = 1.0
"""Between two looks for the session of one process."""
EARLY_S = 2.0
"""A file system's clock may be so much behind the kernel's."""
_SEEN_ONLY = "Seen as a process, and through the session that it writes in its folder: Watchfloor shows it and has no control over it."
_OURS = "Its session is seen too, through the files of its home."
_NO_SESSION = "Its session is not known yet: nothing that it wrote in its folder was found."
_SUBS_MAX = 200


class Written(NamedTuple):
    """A session as its files say."""

    session: str
    began: float
    """Seconds since the epoch, by its own word; 0: it does not say."""
    changed: float
    place: Path | None
    """The folder whose changes tell of it; None: it is looked at again and again."""
    owed: str = ""
    """Why its files do not tell yet what it uses now, or empty."""


@dataclass(slots=True)
class _Shown:
    """A process as it was shown last."""

    row: Sighting
    one: Running
    homes: list[Path]
    """Where its session is still looked for; none: it is known."""
    beside: list[Running] = field(default_factory=list)
    """Those in the same folder."""
    gone_at: float = 0.0
    """Seconds since the epoch; 0: it runs."""


Find = Callable[[Path, str, int], Iterable[Written]]
"""(a home, the folder of a process, its uid) -> the sessions written there."""


class SessionFiles:
    """One row for each process of one program, with what its session used; sub-agents that used something hang below it."""

    can_stop = "Nothing by itself: adopt a session first. A sub-agent stops with its session, never alone."

    def __init__(
        self,
        name: str,
        program: Program,
        find: Find,
        given: Outlook,
        sub_agents: str = "",
        spent: Callable[[int, str], dict[str, Spent]] | None = None,
    ) -> None:
        """``sub_agents``: as what they are seen, for people; empty: the program has none that are.

        ``spent``: (uid, session) -> what it used, of a program that writes no transcripts that are read for all.
        """
        self._own_spent = spent
        self._name, self._program, self._find, self._given = name, program, find, given
        self._confinement = Confinement(given.root, outside=given.outside)
        self._watched: tuple[Path, ...] = ()
        self._known: dict[str, tuple[float, Written | None]] = {}
        """By row: when it was looked for last, and what was found."""
        self._shown: dict[str, _Shown] = {}
        self._farewells = Farewells()
        known = f"the session that each writes, its tokens and cost after the fact{f', {sub_agents}' if sub_agents else ''}"
        hook = ", unless its hook is installed" if name in PLACES else ""
        self._can_see = f"Processes of {program.title}, {known}. Not a call before it is made{hook}."

    @property
    def name(self) -> str:
        return self._name

    @property
    def can_see(self) -> str:
        return self._can_see

    def folders(self) -> list[Path]:
        """Where those write that run."""
        return list(self._watched)

    def look(self) -> SourceReport:
        """Every process of it. Never raises."""
        try:
            running = [one for one in folded(self._given.programs.running()) if one.program == self._program and self._is_shown(one)]
        except OSError as error:
            return SourceReport(self._name, False, f"Not available, because /proc cannot be read: {error.strerror or error}.")
        before, self._shown = self._shown, {}
        found: list[Sighting] = []
        places: dict[Path, None] = {}
        for one, written in self._sessions(running):
            found += self._rows(one, written)
            if not found[-1].session:
                self._shown[_key(one)].beside = [other for other in running if other.facts.cwd == one.facts.cwd]
            if written is not None and written.place is not None:
                places[written.place] = None
        self._watched = tuple(places)[:MAX_SIGHTINGS]
        found += self._gone(before)
        where = f", in {plain(str(self._given.root))} alone" if self._given.root else ""
        words = f"Looks for processes of {self._program.title}{where}." if self._given.outside else ONLY_OURS
        return SourceReport(self._name, True, words, tuple(found[:MAX_SIGHTINGS]))

    def _is_shown(self, one: Running) -> bool:
        if one.agent_id:
            return True
        places, root = (one.facts.exe, one.facts.cwd), self._given.root
        return self._given.outside and (root is None or any(place.startswith(f"{root}/") for place in places))

    # --- whose session

    def _sessions(self, running: list[Running]) -> Iterator[tuple[Running, Written | None]]:
        tick = time.monotonic()
        known = {_key(one): one for one in running}
        self._known = {key: had for key, had in self._known.items() if key in known}
        due = [one for key, one in known.items() if tick - self._known.get(key, (-1e9, None))[0] >= LOOK_S]
        for one in due:
            beside = [other for other in running if other.facts.cwd == one.facts.cwd]
            written = self._of(one, beside, self._homes(one, one.facts.uids[1]))
            self._known[_key(one)] = tick, written
        for key, one in known.items():
            yield one, self._known[key][1]

    def _of(self, one: Running, beside: list[Running], homes: list[Path]) -> Written | None:
        """The newest session that this process, and none of those beside it, may have written."""
        began, cwd, uid = began_at(one), one.facts.cwd, one.facts.uids[1]
        if not cwd.startswith("/"):
            return None
        later = [other for other in (began_at(o) for o in beside if o is not one and o.facts.uids[1] == uid) if other > began]
        until = min(later, default=9e18)
        found = [
            written
            for home in homes
            for written in self._find(home, cwd, uid)
            if written.changed >= began - EARLY_S and (not written.began or written.began < until)
        ]
        mine = [written for written in found if written.began >= began - EARLY_S]
        alone = found if not later and len(beside) == 1 else []  # one that was resumed began before the process did
        return max(mine or alone, key=lambda written: written.changed, default=None)

    def _homes(self, one: Running, uid: int) -> list[Path]:
        own: list[OwnHome] = self._given.own() if one.agent_id else []
        homes = [home.path for home in own if one.agent_id in home.agents]
        if self._given.outside:
            homes += [self._given.root] if self._given.root is not None else _homes_of(uid)
        return homes

    # --- rows

    def _rows(self, one: Running, written: Written | None) -> list[Sighting]:
        facts, session = one.facts, written.session if written is not None else ""
        spent = self._spent(facts.uids[1], session)
        detail = _OURS if one.agent_id else _SEEN_ONLY
        row = Sighting(
            source=self._name,
            key=_key(one),
            name=self._program.title,
            process=facts.identity,
            session=session,
            cwd=plain(facts.cwd, 500),
            seen_at=time.time(),
            container_id=one.container_id,
            status="running",
            detail=detail if session else f"{detail} {_NO_SESSION}",
            unread="" if session else "its session is not known yet",
            agent_id=one.agent_id,
        )
        if written is not None and written.owed and not ((own := spent.get("")) and own.answers):
            row = replace(row, unread=written.owed)  # zero would be a measurement
        rows = [_with(row, spent.get(""))]
        for part, used in list(spent.items())[:_SUBS_MAX]:
            if part:
                below = replace(row, key=f"{row.key}-{part}", part=part, name=f"sub-agent {part[-8:]}", process=None, parent_key=row.key)
                rows.append(_with(below, used))
        self._shown[row.key] = _Shown(rows[0], one, [] if session else self._homes(one, facts.uids[1]))
        return rows

    def _spent(self, uid: int, session: str) -> dict[str, Spent]:
        if self._own_spent is not None:
            return self._own_spent(uid, session) if session else {}
        spend: SessionSpend | None = self._given.spend
        return spend.of(uid, self._name, session) if spend is not None and session else {}

    def _gone(self, before: dict[str, _Shown]) -> list[Sighting]:
        """Those of the look before that are not in this one, and others that left just now."""
        for key in before.keys() - self._shown.keys():
            before[key].gone_at = time.time()
            self._farewells.add(key, partial(self._again, before[key]))
            if self._given.spend is not None:
                self._given.spend.look_soon()  # what it wrote last may not have been told
        for key in self._shown.keys() - before.keys():
            self._farewells.drop(key)
        return self._farewells.now()

    def _again(self, left: _Shown) -> list[Sighting]:
        """What it used to its end. One that was gone before its session was found may have written that since."""
        written = self._of(left.one, left.beside, left.homes) if left.homes and not left.row.session else None
        taken = {shown.row.session for shown in self._shown.values()}
        if written is not None and written.session not in taken and (written.began or written.changed) <= left.gone_at:
            left.row = replace(left.row, session=written.session, unread="")
        return [_with(left.row, self._spent(left.one.facts.uids[1], left.row.session).get(""))]


def _with(row: Sighting, used: Spent | None) -> Sighting:
    if used is None:
        return row
    return replace(row, usage=usage(used), action=acted(used), model=used.model, unpriced=used.unpriced)


def _key(one: Running) -> str:
    return f"{one.facts.uids[1]}-{one.facts.identity.pid}-{one.facts.identity.start_ticks}"


def began_at(one: Running) -> float:
    """When a process began, in seconds since the epoch."""
    return time.time() - (ticks_of_boot() - one.facts.identity.start_ticks) / os.sysconf("SC_CLK_TCK")


def _homes_of(uid: int) -> list[Path]:
    """Of an account; of our own first the one that we were told, for it may have no entry (``docker run --user``) or another home."""
    found = (Path.home() if uid == os.geteuid() else None, _home_of(uid))
    return [home for home in dict.fromkeys(found) if home is not None]


@lru_cache(maxsize=256)
def _home_of(uid: int) -> Path | None:
    try:
        return Path(pwd.getpwuid(uid).pw_dir)
    except KeyError:
        return None


def newest(folder: Path, uid: int, is_one: Callable[[str], bool], most: int = 20) -> list[tuple[Path, float]]:
    """The files of a folder that this account wrote last, no link followed: (path, changed)."""
    found: list[tuple[float, str]] = []
    try:
        with os.scandir(folder) as entries:
            for _, entry in zip(range(20_000), entries, strict=False):
                if is_one(entry.name) and entry.is_file(follow_symlinks=False):
                    seen = entry.stat(follow_symlinks=False)
                    if seen.st_uid == uid:
                        found.append((seen.st_mtime, entry.path))
    except OSError:
        return []
    return [(Path(path), changed) for changed, path in sorted(found, reverse=True)[:most]]
