"""A look at the places: what lies there now, as marks that can be compared. Bounded in time, names, findings and bytes; nothing is run."""

from __future__ import annotations

import contextlib
import fnmatch
import re
import time
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from console.rollback.persistence.findings import Entry, Place, Root, RootSeen, Snapshot, Where, shown
from console.rollback.persistence.marks import Marks, Portion
from console.rollback.persistence.places import (
    HOME,
    IN_SESSION_HOME,
    LINKED_FOLDERS,
    REPOSITORY,
    REPOSITORY_LEAVES_OUT,
    SYSTEM,
    WORKSPACE,
)
from console.rollback.persistence.tree import Parts, Tree

# An agent can nest folders without end, to outlast the look.
DEPTH = 48
BELOW = 5
"""Folders deep that ``**`` goes."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """The bounds at which a check stops early. The result then tells that it is incomplete."""

    until: float
    """CLOCK_MONOTONIC seconds."""
    names: int = 400_000
    found: int = 5_000


class _Cut(Exception):
    """A bound was reached."""


class Reader:
    """Takes snapshots; its bounds hold for all of them together."""

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._names = self._found = 0
        self.portion = Portion()

    def take(self, roots: Iterable[Root]) -> Snapshot:
        """What is there now; a root that could not be looked at whole is marked so. Never raises on what lies in it."""
        at = time.time()
        seen: list[RootSeen] = []
        entries: list[Entry] = []
        for root in roots:
            try:
                tree = Tree(root.path, root.where)
            except OSError as error:
                seen.append(RootSeen(root.label, root.path, False, f"it cannot be opened: {error.strerror}"))
                continue
            with contextlib.closing(tree):
                one = _OneRoot(self, root, tree)
                seen.append(one.look())
                entries += one.found.values()
        return Snapshot(at, tuple(seen), tuple(entries))

    def name(self) -> None:
        """Counts one name. Raises _Cut."""
        self._names += 1
        if self._names > self._bounds.names:
            raise _Cut(f"more than {self._bounds.names:,} names")
        # The clock is asked once in a while only: there may be 400,000 names.
        if self._names % 64 == 0:
            self.check()

    def check(self) -> None:
        """Raises _Cut when the time is over."""
        if time.monotonic() >= self._bounds.until:
            raise _Cut("out of time")

    def one_more(self) -> None:
        """Counts one find. Raises _Cut."""
        self._found += 1
        if self._found > self._bounds.found:
            raise _Cut(f"more than {self._bounds.found:,} such files")
        self.check()


class _OneRoot:
    """The look at one root."""

    def __init__(self, reader: Reader, root: Root, tree: Tree) -> None:
        self._reader, self._root, self._tree = reader, root, tree
        self._marks = Marks(root, tree, reader.portion)
        self.found: dict[str, Entry] = {}
        self._doubts: list[str] = []

    def look(self) -> RootSeen:
        root = self._root
        try:
            self._reader.check()
            self._places()
        except _Cut as cut:
            self._doubts.append(str(cut))
        more = f" and {len(self._doubts) - 5} more" if len(self._doubts) > 5 else ""
        return RootSeen(root.label, root.path, not self._doubts, "; ".join(self._doubts[:5]) + more)

    def _places(self) -> None:
        if self._root.where is Where.SYSTEM:
            self._rows(SYSTEM)
        elif self._root.where is Where.HOME:
            self._rows((*HOME, *self._root.more))
        else:
            top = {name for name, _ in self._names_in((), HOME[0])}
            self._rows(p for p in _SESSION_HOME if _begins(p, top))
            self._everywhere()

    # --- places by their path from the root

    def _rows(self, places: Iterable[Place]) -> None:
        for place in places:
            self._reader.check()
            for parts in self._matches((), place.pattern.split("/"), place):
                self._note(parts, place)

    def _matches(self, done: Parts, rest: list[str], place: Place) -> Iterator[Parts]:
        """Paths that a pattern fits, without opening what they name."""
        while rest and not any(c in rest[0] for c in "*?["):
            done, rest = (*done, rest[0]), rest[1:]
        if not rest:
            yield done
            return
        everything = rest[0] == "**"
        for name, is_folder in self._names_in(done, place):
            if everything:
                yield from self._below((*done, name), is_folder, place, BELOW)
            elif fnmatch.fnmatchcase(name, rest[0]):
                if len(rest) == 1:
                    yield (*done, name)
                elif is_folder:
                    yield from self._matches((*done, name), rest[1:], place)

    def _below(self, path: Parts, is_folder: bool, place: Place, deep: int) -> Iterator[Parts]:
        if not is_folder:
            yield path
        elif deep:
            for name, folder in self._names_in(path, place):
                yield from self._below((*path, name), folder, place, deep - 1)
        else:
            self._doubts.append(f"{shown('/'.join(path), 120)}: deeper than {BELOW} folders")

    def _names_in(self, parts: Parts, place: Place) -> list[tuple[str, bool]]:
        """(name, whether it is a folder) in a folder that may not be there. A folder that is closed to us is itself noted."""
        found: list[tuple[str, bool]] = []
        try:
            found += self._listed(self._tree.resolve(parts))
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError:
            self._note(parts, place, closed=True)
        return sorted(found)

    def _listed(self, parts: Parts) -> Iterator[tuple[str, bool]]:
        """(name, whether it is a folder) of what is in a folder. Raises OSError, _Cut."""
        with self._tree.listing(parts) as entries:
            for entry in entries:
                self._reader.name()
                yield entry.name, entry.is_dir(follow_symlinks=False)

    # --- places anywhere in a workspace

    def _everywhere(self) -> None:
        waiting: deque[tuple[Parts, bool]] = deque([((), False)])
        while waiting:
            parts, inside_git = waiting.popleft()
            try:
                names = list(self._listed(parts))
            except FileNotFoundError:
                continue
            except OSError as error:
                self._doubts.append(f"{shown('/'.join(parts), 120)}: {error.strerror}")
                continue
            here = {name for name, _ in names}
            inside_git = inside_git or {"HEAD", "config", "objects"} <= here
            for name, is_folder in names:
                self._meet((*parts, name), is_folder, inside_git, waiting)

    def _meet(self, path: Parts, is_folder: bool, inside_git: bool, waiting: deque[tuple[Parts, bool]]) -> None:
        for place in _fitting(path, inside_git, is_folder):
            self._note(path, place)
        if not is_folder:
            return
        if len(path) > DEPTH:
            self._doubts.append(f"{shown('/'.join(path), 120)}: deeper than {DEPTH} folders")
        elif not (path[-1] == "objects" and ".git" in path):
            # What git keeps below .git/objects is never collected, started or read by anything but git.
            waiting.append((path, inside_git or path[-1] == ".git"))

    # --- one thing

    def _note(self, parts: Parts, place: Place, *, closed: bool = False) -> None:
        path = "/".join(parts)
        known = self.found.get(path)
        if known is not None and known.runs == IN_SESSION_HOME != place.runs:
            self.found[path] = replace(known, kind=place.kind, runs=place.runs)  # a person's next shell there says more
        if not parts or known is not None:
            return
        try:
            entry = self._marks.entry(parts, place, closed)
        except OSError as error:
            entry = self._marks.link_in_the_way(parts, place)
            if entry is None:
                self._doubts.append(f"{shown(path, 120)}: {error.strerror}")
        if entry is not None and entry.path not in self.found:
            self._reader.one_more()
            self.found[entry.path] = entry


def _fitting(path: Parts, inside_git: bool, is_folder: bool) -> Iterator[Place]:
    if is_folder:
        return
    if inside_git or ".git" in path[:-1]:
        for place in REPOSITORY:
            if _ends(path, place.pattern) and not any(fnmatch.fnmatchcase(path[-1], p) for p in REPOSITORY_LEAVES_OUT):
                yield place
    for place in _BY_NAME.get(path[-1], ()):
        if _ends(path, place.pattern) and not (path[-1] == "package.json" and "node_modules" in path):
            yield place
    near = [place for name in set(path[:-1]) for place in _BY_FOLDER.get(name, ())]
    for place in (*near, *(_LOOSE if _LOOSE_NAMES.match(path[-1]) else ())):
        if _ends(path, place.pattern):
            yield place


def _ends(path: Parts, pattern: str) -> bool:
    """Whether a path ends so; a last ``**`` is everything below, however deep."""
    tail = pattern.split("/")
    if tail[-1] == "**":
        return any(_ends(path[:at], "/".join(tail[:-1])) for at in range(1, len(path)))
    return len(path) >= len(tail) and all(fnmatch.fnmatchcase(p, t) for p, t in zip(path[-len(tail) :], tail, strict=True))


def _begins(place: Place, top: set[str]) -> bool:
    """Whether anything at the top of a workspace can lead to this place."""
    first = place.pattern.split("/")[0]
    return first in top or ("*" in first and bool(fnmatch.filter(top, first)))


def _is_wild(place: Place) -> bool:
    return any(c in place.pattern.rsplit("/", 1)[-1] for c in "*?[")


_SESSION_HOME = tuple(Place(p.kind, Where.WORKSPACE, p.pattern, IN_SESSION_HOME, p.part, p.executable) for p in HOME)
_BY_NAME: dict[str, tuple[Place, ...]] = {}
for _place in (*WORKSPACE, *LINKED_FOLDERS):
    if not _is_wild(_place):
        _name = _place.pattern.rsplit("/", 1)[-1]
        _BY_NAME[_name] = (*_BY_NAME.get(_name, ()), _place)
_BY_FOLDER: dict[str, tuple[Place, ...]] = {}
"""With a wildcard at its end, by the plain name of the folder before it: a few rows for each file, not all."""
_LOOSE: tuple[Place, ...] = ()
for _place in filter(_is_wild, WORKSPACE):
    _above = (*_place.pattern.split("/"), "")[-3] if "/" in _place.pattern else "*"
    if any(c in _above for c in "*?["):
        _LOOSE += (_place,)
    else:
        _BY_FOLDER[_above] = (*_BY_FOLDER.get(_above, ()), _place)
_LOOSE_NAMES = re.compile("|".join(fnmatch.translate(_place.pattern.rsplit("/", 1)[-1]) for _place in _LOOSE))
