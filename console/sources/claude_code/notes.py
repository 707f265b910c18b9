"""Notes of a Claude Code session's sub-agents, ``agent-<id>.meta.json`` beside their transcripts, at any depth of the session's folder."""

from __future__ import annotations

import json
import os
import re
import stat
import time
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

from console.sources.change_tracker import Freshness
from console.sources.home_dirs import read_foreign
from console.sources.text import plain

_META = re.compile(r"^agent-([0-9A-Za-z_-]{1,64})\.meta\.json\Z")
_CAP = 65_536
_SLUG = re.compile(r"[^A-Za-z0-9]")
ENTRIES_MAX = 4000
"""Names looked at in one session's folder."""
_DEPTH = 4
_PROJECTS_MAX = 5000
_SEARCH_MAX = 200_000
AGAIN_S = 5.0
"""Between two searches for something that was not found."""
ELSEWHERE_S = 30.0
"""The same for a session's folder in other projects: most sessions have none anywhere."""
TOLD_S = 10.0
"""Between two looks at folders of which a watch would have told that something in them changed."""
_SEARCHED = 8 << 20
"""Bytes of a transcript in which the call that started a sub-agent is looked for."""


@dataclass(frozen=True, slots=True)
class SubAgent:
    """What its note says."""

    agent_id: str
    name: str
    parent_id: str
    """Another sub-agent's id, or empty: the session itself."""
    depth: int
    finished: bool
    call: str = ""
    """Id of the tool call that started it."""


@dataclass(frozen=True, slots=True)
class Found:
    """The notes of one session, parents before their children, and the folders that were looked in."""

    found: list[SubAgent]
    folders: list[Path]
    read: tuple[str, ...] = ()
    """Every note that was read for it."""


@dataclass(frozen=True, slots=True)
class Held:
    """What need not be asked again."""

    until: float
    """Monotonic."""
    places: tuple[str, ...]


class Notes:
    """Reads notes; one that did not change is not read again."""

    def __init__(self, fresh: Freshness | None = None) -> None:
        self._fresh = fresh or Freshness()
        self._told: dict[str, tuple[tuple[int, ...], float, Found]] = {}
        """By a session's folder: what the watches said before it was read, until when that holds, and what was found."""
        self._kept: dict[str, tuple[tuple[int, int, int], SubAgent | None]] = {}
        self._used: set[str] = set()
        self._projects: dict[Path, bool] = {}
        """Which are folders, as this look found them: a thousand sessions share a few."""
        self._places: dict[tuple[str, str], tuple[float, Path | None]] = {}
        self._index: dict[str, tuple[float, dict[str, Path]]] = {}
        """By the folder of projects: when it was searched, and each folder of a session in it."""
        self._callers: dict[tuple[str, str], tuple[float, str]] = {}
        self._paths: dict[tuple[Path, str, str], tuple[Path, Path, str]] = {}
        """Project and folder of a session, made once: a Path costs more than the look at it."""

    def begin(self) -> None:
        """A new look: what the last one did not meet is forgotten."""
        self._kept = {name: kept for name, kept in self._kept.items() if name in self._used}
        self._used = set()
        self._projects = {}

    def of(self, projects: Path, cwd: str, session: str) -> Found:
        """Return every sub-agent with a note; none when there is no note or the folder cannot be read."""
        if not cwd or "/" in session or "\0" in session or session in ("", ".", ".."):
            return Found([], [])
        project, top, name = self._paths_of(projects, cwd, session)
        tick, had = time.monotonic(), self._told.get(name)
        told = self._marks(name, had[2].folders[1:] if had is not None else [])
        if had is not None and told and told == had[0] and tick < had[1]:
            self._used.update(had[2].read)
            return had[2]
        found = self._of(projects, session, project, top, name)
        is_whole = not any(one.depth > 1 and one.call and not one.parent_id for one in found.found)
        if len(self._told) > _PROJECTS_MAX:
            self._told.clear()
        self._told[name] = (told if is_whole and had is not None and had[2].folders == found.folders else (), tick + TOLD_S, found)
        return found

    def held(self, projects: Path, cwd: str, session: str) -> Held | None:
        """For how long what ``of`` said of a session without sub-agents holds, and what a watch would tell of if it did not."""
        name = self._paths_of(projects, cwd, session)[2]
        told = self._told.get(name)
        if told is None or not told[0] or told[2].found:
            return None
        return Held(told[1], tuple(dict.fromkeys((name, *(str(folder) for folder in told[2].folders[1:])))))

    def _marks(self, name: str, below: list[Path]) -> tuple[int, ...]:
        """What the watches say of a session's folder and those below; empty: not all of it is watched."""
        told = (self._fresh.of(name), *(self._fresh.within(str(folder)) for folder in below))
        return told if all(told) else ()

    def _of(self, projects: Path, session: str, project: Path, top: Path, name: str) -> Found:
        there = self._projects.get(project)
        if there is None:
            there = self._projects[project] = _is_folder(project)
        if not _is_folder(name):
            other = self._elsewhere(projects, session)
            if other is None:
                return Found([], [project] if there else [projects])
            top, project = other, other.parent
        found: list[SubAgent] = []
        read: list[str] = []
        folders = [project, top]
        for folder, names in _folders(top):
            folders += [folder] if folder != top else []
            for note in names:
                read.append(f"{folder}/{note}")
                one = self._read(folder / note)
                if one is not None:
                    found.append(self._linked(one, folder))
        found.sort(key=lambda one: (one.depth, one.agent_id))
        return Found(found, folders[:50], tuple(read))

    def _paths_of(self, projects: Path, cwd: str, session: str) -> tuple[Path, Path, str]:
        key = (projects, cwd, session)
        found = self._paths.get(key)
        if found is None:
            if len(self._paths) > _PROJECTS_MAX:
                self._paths.clear()
            project = projects / _SLUG.sub("-", cwd)
            found = self._paths[key] = (project, project / session, str(project / session))
        return found

    def _elsewhere(self, projects: Path, session: str) -> Path | None:
        """A session that moved keeps the folder of the project it began in."""
        key = (str(projects), session)
        at, place = self._places.get(key, (-1e9, None))
        if place is not None and _is_folder(place):
            return place
        tick = time.monotonic()
        if tick - at < ELSEWHERE_S:
            return None
        searched, index = self._index.get(str(projects), (-1e9, {}))
        if tick - searched > (AGAIN_S if key not in self._places else ELSEWHERE_S):
            searched, index = self._index[str(projects)] = (tick, _sessions(projects))
        place = index.get(session)
        if len(self._places) > _PROJECTS_MAX:
            self._places.clear()
        self._places[key] = (searched, place)
        return place

    def _read(self, file: Path) -> SubAgent | None:
        name = str(file)
        self._used.add(name)
        try:
            seen = file.lstat()
            if not stat.S_ISREG(seen.st_mode):
                return None
            mark = (seen.st_ino, seen.st_mtime_ns, seen.st_size)
            kept = self._kept.get(name)
            if kept is None or kept[0] != mark:
                kept = self._kept[name] = (mark, _parsed(file))
        except OSError:
            return None
        return kept[1]

    def _linked(self, one: SubAgent, folder: Path) -> SubAgent:
        """Return a nested sub-agent with its parent: the one whose transcript holds its call. Its note names the call only."""
        if one.depth < 2 or one.parent_id or not one.call:
            return one
        key = (str(folder), one.agent_id)
        at, parent = self._callers.get(key, (-1e9, ""))
        if not parent and time.monotonic() - at > AGAIN_S:
            parent = _caller(folder, one)
            if len(self._callers) > _PROJECTS_MAX:
                self._callers.clear()
            self._callers[key] = (time.monotonic(), parent)
        return replace(one, parent_id=parent) if parent else one


def _is_folder(path: Path | str) -> bool:
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode)
    except (OSError, ValueError):
        return False


def _sessions(projects: Path) -> dict[str, Path]:
    """Every folder in a project, by its name: one search serves a thousand sessions. Bounded; no link followed."""
    found: dict[str, Path] = {}
    count = 0
    try:
        with os.scandir(projects) as entries:
            folders = [entry.path for entry in islice(entries, _PROJECTS_MAX) if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return found
    for folder in folders:
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    count += 1
                    if count > _SEARCH_MAX:
                        return found
                    if not entry.name.endswith(".jsonl") and entry.is_dir(follow_symlinks=False):
                        found.setdefault(entry.name, Path(entry.path))
        except OSError:
            continue
    return found


def _folders(top: Path) -> list[tuple[Path, list[str]]]:
    """Every folder below with its notes' names; no link followed, bounded."""
    waiting, found, count = [(top, 0)], [], 0
    while waiting and count < ENTRIES_MAX:
        folder, depth = waiting.pop()
        names: list[str] = []
        try:
            with os.scandir(folder) as entries:
                for entry in islice(entries, ENTRIES_MAX - count):
                    count += 1
                    if _META.match(entry.name):
                        names.append(entry.name)
                    elif depth < _DEPTH and entry.is_dir(follow_symlinks=False):
                        waiting.append((Path(entry.path), depth + 1))
        except OSError:
            continue
        found.append((folder, sorted(names)))
    return found


def _parsed(file: Path) -> SubAgent | None:
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
        plain(meta.get("toolUseId"), 200),
    )


def _caller(folder: Path, one: SubAgent) -> str:
    """The sub-agent whose transcript holds the tool call that started ``one``, or empty."""
    needle = one.call.encode("utf-8", "replace")
    try:
        with os.scandir(folder) as entries:
            names = sorted(e.name for e in islice(entries, 400) if e.name.startswith("agent-") and e.name.endswith(".jsonl"))
    except OSError:
        return ""
    for name in names:
        who = name.removeprefix("agent-").removesuffix(".jsonl")
        if who == one.agent_id:
            continue
        try:
            data = read_foreign(folder / name, _SEARCHED).data
        except OSError:
            continue
        if needle in data and any(_calls(line, one.call) for line in data.split(b"\n") if needle in line):
            return plain(who, 64)
    return ""


def _calls(line: bytes, call: str) -> bool:
    """Whether this record is an answer in which the model made that call."""
    try:
        record = json.loads(line)
        content = record["message"]["content"] if record["type"] == "assistant" else []
        return any(isinstance(one, dict) and one.get("type") == "tool_use" and one.get("id") == call for one in content)
    except (ValueError, KeyError, TypeError, RecursionError):
        return False
