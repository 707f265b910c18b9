"""Session records of Claude Code, ``sessions/<pid>.json``, each believed only as far as the kernel bears it out.

Nothing else of that folder is opened: the ``*.key`` files beside the records hold a secret.
"""

from __future__ import annotations

import json
import os
import re
import stat
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from console.domain.agent import ProcessIdentity
from console.sources.change_tracker import Freshness
from console.sources.claude_code.program import CLAUDE
from console.sources.home_dirs import OwnHome, read_foreign
from console.sources.interface import Confinement
from console.sources.processes import ProcessFacts, ProcessTable
from console.sources.programs import Programs
from console.sources.text import plain

_RECORD = re.compile(r"^([1-9][0-9]{0,8})\.json\Z")
_NAMESPACE = re.compile(r"pid:\[\d{1,20}\]\Z")
_CAP = 65_536
_ENTRIES_CAP = 10_000
TOLD_S = 10.0
"""Seconds between two looks at a folder that a watch covers."""


@dataclass(frozen=True, slots=True)
class Session:
    """A record of a session that may still run."""

    number: int
    """The file's name: a pid, in the PID namespace of the process that wrote it."""
    owner: int
    """Uid of the file."""
    record: dict[str, Any]
    process: ProcessIdentity | None
    """Proven, or None."""
    doubt: str = ""
    """Why no process of it could be proven."""
    agent_id: str = ""
    """Which agent of ours it belongs to, by the kernel's word or by the home alone where the kernel cannot tell."""

    @property
    def started(self) -> str:
        """As the record says."""
        return plain(self.record.get("procStart"), 20)


@dataclass(frozen=True, slots=True)
class _Whole:
    """What a folder held, and by what it is seen that it holds the same."""

    told: int
    """By its watch, before it was read."""
    walk: tuple[object, ...]
    until: float
    used: set[str]
    found: list[Session | str]


class Records:
    """Reads folders of records; one that did not change is not read again."""

    def __init__(self, table: ProcessTable, confinement: Confinement, programs: Programs, fresh: Freshness | None = None) -> None:
        self._table, self._confinement, self._programs = table, confinement, programs
        self._kept: dict[str, tuple[tuple[int, int, int, int], int, dict[str, Any] | None]] = {}
        self._used: set[str] = set()
        self._fresh = fresh or Freshness()
        self._told: dict[str, tuple[int, float, list[str]]] = {}
        """By folder: what its watch said before it was read, until when that holds, and the names in it."""
        self._told_of: dict[str, tuple[int, float]] = {}
        """The same of each record."""
        self._whole: dict[str, _Whole] = {}
        self._walk: tuple[object, ...] = ()
        self._running: dict[int, ProcessFacts] = {}
        self._owners: dict[int, str] = {}
        self._judged: dict[str, tuple[ProcessFacts, dict[str, Any], str, Session]] = {}
        """What was found of a record, while it and the process it names are what they were."""

    def begin(self) -> None:
        """A new look: what the last one did not meet is forgotten."""
        if not self._kept.keys() <= self._used or not self._told_of.keys() <= self._used:
            self._kept = {name: kept for name, kept in self._kept.items() if name in self._used}
            self._judged = {name: judged for name, judged in self._judged.items() if name in self._used}
            self._told_of = {name: told for name, told in self._told_of.items() if name in self._used}
        self._used = set()
        # One walk over /proc as this look begins says of each whether it is still the process it was; others are asked for one by one.
        running = self._programs.running(fresh=True)
        if running is self._walk:
            return
        self._walk = running
        self._running = {one.facts.identity.pid: one.facts for one in running}
        self._owners = {one.facts.identity.pid: one.agent_id for one in running}

    def of(self, folder: Path, own: OwnHome | None = None) -> list[Session | str]:
        """Sessions, or why a record is stale; the same list while nothing of it can be other. Raises OSError when it cannot be read."""
        if own is not None:
            return list(self._looked_at(str(folder), own))
        where, tick = str(folder), time.monotonic()
        told, had = self._fresh.within(where), self._whole.get(where)
        if had is not None and told and had.told == told and had.walk is self._walk and tick < had.until:
            self._used |= had.used
            return had.found
        used, self._used = self._used, set()
        found = list(self._looked_at(where, None))
        # Whose process that walk did not meet, the next one may judge otherwise though it meets the same.
        is_whole = all(isinstance(one, str) or one.process is None or one.number in self._running for one in found)
        if told and is_whole:
            self._whole[where] = _Whole(told, self._walk, tick + TOLD_S, self._used, found)
        else:
            self._whole.pop(where, None)
        self._used |= used
        return found

    def _looked_at(self, where: str, own: OwnHome | None) -> Iterator[Session | str]:
        for name in self._names(where):
            number = int(name.removesuffix(".json"))
            if own is None and not self._confinement.admits(number):
                continue
            found = self._read(f"{where}/{name}")
            if found is None:
                continue
            owner, record = found
            try:
                if own is None:
                    yield self._judged_as(f"{where}/{name}", number, owner, record)
                else:
                    yield self._judge_own(number, owner, record, own)
            except _Stale as why:
                yield str(why)

    def _names(self, folder: str) -> list[str]:
        """Of the records in it. Raises OSError."""
        tick, told = time.monotonic(), self._fresh.within(folder)
        had = self._told.get(folder)
        if had is None or not told or had[0] != told or tick >= had[1]:
            self._told.pop(folder, None)
            with os.scandir(folder) as entries:
                names = [e.name for e in islice(entries, _ENTRIES_CAP) if _RECORD.match(e.name)]
            had = (told, tick + TOLD_S, names)
            if told:
                self._told[folder] = had
        return had[2]

    def _read(self, name: str) -> tuple[int, dict[str, Any]] | None:
        """(owner, record); None: gone meanwhile, or a link, FIFO or device, or no JSON object."""
        self._used.add(name)
        told, kept = self._fresh.of(name), self._kept.get(name)
        if kept is not None and told and (had := self._told_of.get(name)) is not None and had[0] == told and time.monotonic() < had[1]:
            return None if kept[2] is None else (kept[1], kept[2])
        self._told_of[name] = (told, time.monotonic() + TOLD_S)
        try:
            seen = os.lstat(name)
            if not stat.S_ISREG(seen.st_mode):
                return None
            mark = (seen.st_dev, seen.st_ino, seen.st_mtime_ns, seen.st_size)
            if kept is None or kept[0] != mark:
                read = read_foreign(Path(name), _CAP)
                kept = self._kept[name] = (mark, read.uid, _parse(read.data) if read.whole else None)
        except OSError:
            return None
        return None if kept[2] is None else (kept[1], kept[2])

    def _judged_as(self, name: str, pid: int, owner: int, record: dict[str, Any]) -> Session:
        """As ``_judge``; the same facts and the same record need no second judgement. Raises _Stale."""
        facts, agent_id, had = self._running.get(pid), self._owners.get(pid, ""), self._judged.get(name)
        if had is not None and facts is had[0] and record is had[1] and agent_id == had[2]:
            return had[3]
        session = self._judge(pid, owner, record)
        if facts is not None and session.process == facts.identity:
            self._judged[name] = (facts, record, agent_id, session)
        else:
            self._judged.pop(name, None)
        return session

    def _judge(self, pid: int, owner: int, record: dict[str, Any]) -> Session:
        try:
            process = self._verify(pid, owner, record)
        except _Unverified as why:
            return Session(pid, owner, record, None, str(why))
        known = self._owners.get(pid)
        return Session(pid, owner, record, process, agent_id=self._programs.whose(pid) if known is None else known)

    def _verify(self, pid: int, owner: int, record: dict[str, Any]) -> ProcessIdentity:
        """The process that every claim of the record and the kernel agree on; raises _Stale or _Unverified with why."""
        started = plain(record.get("procStart"), 20)
        # 1. The numbers must be ours: in another PID namespace the same number is another process.
        domain = _NAMESPACE.search(plain(record.get("pidDomain"), 80))
        own = self._table.pid_namespace("self") if domain else ""
        if domain and own and domain[0] != own:
            raise _Unverified("it runs in another PID namespace (a container?), where its number means another process")
        # 2. The process must exist, and the record must name the one its file name names.
        facts = self._running.get(pid)
        if facts is None or self._table.start_ticks(pid) != facts.identity.start_ticks:
            facts = self._table.facts(pid)
        if facts is None:
            raise _Stale(f"process {pid} is gone")
        if record.get("pid", pid) != pid:
            raise _Stale(f"{pid}.json names another process")
        # 3. It must be the same process that was recorded, not a later one with its number.
        if started and started != str(facts.identity.start_ticks):
            raise _Stale(f"process {pid} started at another time than the session")
        # 4. Whoever wrote the record must be who runs the process: nobody can name another's process.
        if facts.uids != (owner, owner):
            raise _Stale(f"{pid}.json belongs to uid {owner}, process {pid} runs as uid {facts.uids[1]}")
        # 5. It must be Claude Code at all.
        if not CLAUDE.is_run_by(facts):
            raise _Stale(f"process {pid} is not Claude Code")
        if not started:
            raise _Unverified("the record has no start time, so the process cannot be told from a later one of the same number")
        return facts.identity

    def _judge_own(self, number: int, owner: int, record: dict[str, Any], own: OwnHome) -> Session:
        """In the home of agents of ours. Its number is of its own PID namespace, so it is looked for among their processes."""
        started = plain(record.get("procStart"), 20)
        domain = _NAMESPACE.search(plain(record.get("pidDomain"), 80))
        if record.get("pid", number) != number:
            raise _Stale(f"{number}.json names another process")
        for one in self._programs.running():
            facts = one.facts
            if one.program is not CLAUDE or one.agent_id not in own.agents or one.inner_pid != number or facts.uids != (owner, owner):
                continue
            if started == str(facts.identity.start_ticks) and (not domain or not one.namespace or domain[0] == one.namespace):
                return Session(number, owner, record, facts.identity, agent_id=one.agent_id)
        if own.hidden and len(own.agents) == 1:
            doubt = "its sandbox has a kernel of its own, so only its home says whose it is"
            return Session(number, owner, record, None, doubt, own.agents[0])
        raise _Stale(f"no process of {', '.join(own.agents[:3])} is number {number} of then")


class _Stale(Exception):
    """The record speaks of no process that runs."""


class _Unverified(Exception):
    """It may run, but what runs could not be proven."""


def _parse(data: bytes) -> dict[str, Any] | None:
    try:
        record = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None
