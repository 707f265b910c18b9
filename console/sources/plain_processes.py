"""Agents that no better source knows: processes of known programs. Their kernel identity is all that is said of them."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path

from console.domain.agent import ProcessIdentity, Sighting, SourceReport
from console.sources.interface import MAX_SIGHTINGS, ONLY_OURS
from console.sources.kind import Kind, Lacks
from console.sources.processes import ticks_of_boot
from console.sources.programs import Program, Programs, Running
from console.sources.text import plain

YOUNG_S = 5.0
"""A program whose own files say more is left to its own source at first: it writes them in its first second."""
_SEEN_ONLY = "Seen as a process: Watchfloor shows it and has no control over it."


class ProcessSource:
    """One row for each process of a known program; a wrapper and what it wraps are one."""

    name = "processes"
    can_stop = "Nothing by itself: adopt one first, or start it with watchfloor run."

    def __init__(self, programs: Programs, kinds: Iterable[Kind], root: Path | None = None, *, outside: bool = True) -> None:
        self._programs, self._root, self._outside = programs, root, outside
        self._kinds = {kind.program: kind for kind in kinds}
        self.can_see = (
            f"Processes of {len(self._kinds)} known programs ({', '.join(p.title for p in self._kinds)}): "
            "where and under which account they run. Not what they do, what they cost, or programs of other names."
        )
        self._shown: dict[ProcessIdentity, tuple[Running, Sighting]] = {}
        """The result for a process, kept for as long as nothing of it changed."""
        self._last: tuple[tuple[Running, ...], SourceReport] | None = None
        """The same for all of them together."""
        self.runs = True
        """Whether the last look found a known program that may be shown, now or once it is older. True when that is unknown."""

    def folders(self) -> list[Path]:
        """Return no folder: /proc reports no changes."""
        return []

    def look(self) -> SourceReport:
        """Every known program that runs. Never raises."""
        try:
            running = self._programs.running()
        except OSError as error:
            self.runs = True
            return SourceReport(self.name, False, f"Not available, because /proc cannot be read: {error.strerror or error}.")
        if self._last is not None and self._last[0] is running:
            return self._last[1]
        tick = ticks_of_boot()
        self.runs = any(self._may_show(one) for one in running)
        shown = [(one, self._sighting(one)) for one in folded(running) if self._is_shown(one, tick)]
        self._shown = {one.facts.identity: (one, sighting) for one, sighting in shown}
        found = [sighting for _, sighting in shown]
        words = f"Looks in /proc for {len(self._kinds)} known programs"
        words += f", in {plain(str(self._root))} alone." if self._root else "."
        words = words if self._outside else ONLY_OURS
        if len(found) > MAX_SIGHTINGS:
            words += f" {len(found) - MAX_SIGHTINGS} more processes are not shown."
        report = SourceReport(self.name, True, words, tuple(found[:MAX_SIGHTINGS]))
        self._last = None if any(self._is_young(one, tick) for one in running) else (running, report)
        return report

    def _is_shown(self, one: Running, tick: int) -> bool:
        return bool(one.agent_id) or (self._may_show(one) and not self._is_young(one, tick))

    def _may_show(self, one: Running) -> bool:
        if one.agent_id or not self._outside:
            return bool(one.agent_id)
        places = (one.facts.exe, one.facts.cwd)
        return self._root is None or any(place.startswith(f"{self._root}/") for place in places)

    def _sighting(self, one: Running) -> Sighting:
        facts = one.facts
        had = self._shown.get(facts.identity)
        if had is not None and had[0] is one:
            return had[1]
        return Sighting(
            source=self.name,
            key=f"{facts.identity.pid}-{facts.identity.start_ticks}",
            name=one.program.service[1] if one.program.is_service(facts.argv) else one.program.title,
            process=facts.identity,
            session="",
            cwd=plain(facts.cwd, 500),
            seen_at=time.time(),
            container_id=one.container_id,
            status="running",
            detail=_SEEN_ONLY,
            unread=self._unread(one.program),
            agent_id=one.agent_id,
        )

    def _is_young(self, one: Running, tick: int) -> bool:
        return not isinstance(self._kinds[one.program].look, Lacks) and tick - one.facts.identity.start_ticks < YOUNG_S * 100

    def _unread(self, program: Program) -> str:
        """Why what it spends is not known; empty: its own source says what."""
        why = self._kinds[program].why_unread
        return f"nothing reads what {program.title} spends: {why}" if why else ""


def folded(running: tuple[Running, ...]) -> list[Running]:
    """Return the processes without wrappers (a script whose child is the same native program) and without children of the same kind.

    Of a script that starts itself again the upper process counts: it stays, whatever it restarts below.
    """
    by_pid = {one.facts.identity.pid: one for one in running}

    def above(one: Running) -> Running | None:
        found = by_pid.get(one.parent)
        return found if found is not None and found.program == one.program else None

    wrappers = {one.parent for one in running if not one.is_script and (top := above(one)) and top.is_script}

    def is_worker(one: Running) -> bool:
        top = above(one)
        return top is not None and top.facts.exe == one.facts.exe

    return [one for one in running if one.facts.identity.pid not in wrappers and not is_worker(one)]
