"""A look at the places: what lies there now, as marks that can be compared. Bounded in time, names, findings and bytes; nothing is run."""

from __future__ import annotations

import contextlib
import fnmatch
import hashlib
import os
import stat
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace

from console.rollback.persistence.findings import Entry, Place, Root, RootSeen, Snapshot, Where, short, shown
from console.rollback.persistence.parts import counted
from console.rollback.persistence.places import (
    HOME,
    IN_SESSION_HOME,
    LINKED_FOLDERS,
    REPOSITORY,
    REPOSITORY_LEAVES_OUT,
    SYSTEM,
    WORKSPACE,
)
from console.rollback.persistence.tree import Parts, Seen, Tree

READ_BYTES = 1 << 20
"""Larger files are known by their kernel stamp (size, times, inode), which an agent cannot set back: ctime is the kernel's."""
HASHED_TOTAL = 128 << 20
DEPTH = 48
BELOW = 5
"""Folders deep that ``**`` goes."""
LINES = 600
TEXT_BYTES = 32 << 10
TEXT_TOTAL = 32 << 20


@dataclass(frozen=True, slots=True)
class Bounds:
    """Where a look ends before its end; it then says so."""

    until: float
    """CLOCK_MONOTONIC seconds."""
    names: int = 400_000
    found: int = 5_000


class _Cut(Exception):
    """A bound was reached."""


@dataclass(slots=True)
class _Count:
    names: int = 0
    found: int = 0
    hashed: int = 0
    kept: int = 0


@dataclass(slots=True)
class Reader:
    """Takes snapshots; its bounds hold for all of them together."""

    bounds: Bounds
    clock: Callable[[], float] = time.monotonic
    _count: _Count = field(default_factory=_Count)

    def take(self, roots: Iterable[Root]) -> Snapshot:
        """What is there now; a root that could not be looked at whole is marked so. Never raises on what lies in it."""
        at = time.time()
        seen: list[RootSeen] = []
        entries: list[Entry] = []
        for root in roots:
            one = _OneRoot(self, root)
            seen.append(one.look())
            entries += one.found.values()
        return Snapshot(at, tuple(seen), tuple(entries))

    def name(self) -> None:
        """Counts one name. Raises _Cut."""
        self._count.names += 1
        if self._count.names > self.bounds.names:
            raise _Cut(f"more than {self.bounds.names:,} names")
        if self._count.names % 64 == 0:
            self.check()

    def check(self) -> None:
        """Raises _Cut when the time is over."""
        if self.clock() >= self.bounds.until:
            raise _Cut("out of time")

    def one_more(self) -> None:
        """Counts one find. Raises _Cut."""
        self._count.found += 1
        if self._count.found > self.bounds.found:
            raise _Cut(f"more than {self.bounds.found:,} such files")
        self.check()

    def kept(self, text: bytes) -> bytes:
        """As much of a text as is kept for excerpts."""
        part = text[: TEXT_BYTES if self._count.kept < TEXT_TOTAL else 0]
        self._count.kept += len(part)
        return part

    def may_hash(self, size: int) -> bool:
        """Whether so many bytes more are read."""
        self._count.hashed += min(size, READ_BYTES)
        return self._count.hashed <= HASHED_TOTAL


class _OneRoot:
    """The look at one root."""

    def __init__(self, reader: Reader, root: Root) -> None:
        self._reader, self._root = reader, root
        self.found: dict[str, Entry] = {}
        self._doubts: list[str] = []

    def look(self) -> RootSeen:
        root = self._root
        try:
            tree = Tree(root.path, root.where)
        except OSError as error:
            return RootSeen(root.label, root.path, False, f"it cannot be opened: {error.strerror}")
        try:
            self._reader.check()
            self._places(tree)
        except _Cut as cut:
            self._doubts.append(str(cut))
        finally:
            tree.close()
        more = f" and {len(self._doubts) - 5} more" if len(self._doubts) > 5 else ""
        return RootSeen(root.label, root.path, not self._doubts, "; ".join(self._doubts[:5]) + more)

    def _places(self, tree: Tree) -> None:
        if self._root.where is Where.SYSTEM:
            self._rows(tree, SYSTEM)
        elif self._root.where is Where.HOME:
            self._rows(tree, (*HOME, *self._root.more))
        else:
            top = {name for name, _ in self._names(tree, (), HOME[0])}
            self._rows(tree, (p for p in _SESSION_HOME if _begins(p, top)))
            self._everywhere(tree)

    # --- places by their path from the root

    def _rows(self, tree: Tree, places: Iterable[Place]) -> None:
        for place in places:
            self._reader.check()
            for parts in self._matches(tree, (), place.pattern.split("/"), place):
                self._note(tree, parts, place)

    def _matches(self, tree: Tree, done: Parts, rest: list[str], place: Place) -> Iterator[Parts]:
        """Paths that a pattern fits, without opening what they name."""
        while rest and not any(c in rest[0] for c in "*?["):
            done, rest = (*done, rest[0]), rest[1:]
        if not rest:
            yield done
            return
        everything = rest[0] == "**"
        for name, is_folder in self._names(tree, done, place):
            if everything:
                yield from self._below(tree, (*done, name), is_folder, place, BELOW)
            elif fnmatch.fnmatchcase(name, rest[0]):
                if len(rest) == 1:
                    yield (*done, name)
                elif is_folder:
                    yield from self._matches(tree, (*done, name), rest[1:], place)

    def _below(self, tree: Tree, path: Parts, is_folder: bool, place: Place, deep: int) -> Iterator[Parts]:
        if not is_folder:
            yield path
        elif deep:
            for name, folder in self._names(tree, path, place):
                yield from self._below(tree, (*path, name), folder, place, deep - 1)
        else:
            self._doubts.append(f"{shown('/'.join(path), 120)}: deeper than {BELOW} folders")

    def _names(self, tree: Tree, parts: Parts, place: Place) -> list[tuple[str, bool]]:
        """(name, whether it is a folder) in a folder that may not be there. A folder that is closed to us is itself noted."""
        found = []
        try:
            with tree.listing(tree.resolve(parts)) as entries:
                for entry in entries:
                    self._reader.name()
                    found.append((entry.name, entry.is_dir(follow_symlinks=False)))
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError:
            self._note(tree, parts, place, closed=True)
        return sorted(found)

    # --- places anywhere in a workspace

    def _everywhere(self, tree: Tree) -> None:
        waiting: deque[tuple[Parts, bool]] = deque([((), False)])
        while waiting:
            parts, inside_git = waiting.popleft()
            names: list[tuple[str, bool]] = []
            try:
                with tree.listing(parts) as entries:
                    for entry in entries:
                        self._reader.name()
                        names.append((entry.name, entry.is_dir(follow_symlinks=False)))
            except FileNotFoundError:
                continue
            except OSError as error:
                self._doubts.append(f"{shown('/'.join(parts), 120)}: {error.strerror}")
                continue
            here = {name for name, _ in names}
            inside_git = inside_git or {"HEAD", "config", "objects"} <= here
            for name, is_folder in names:
                self._meet(tree, (*parts, name), is_folder, inside_git, waiting)

    def _meet(self, tree: Tree, path: Parts, is_folder: bool, inside_git: bool, waiting: deque[tuple[Parts, bool]]) -> None:
        for place in _fitting(path, inside_git, is_folder):
            self._note(tree, path, place)
        if not is_folder:
            return
        if len(path) > DEPTH:
            self._doubts.append(f"{shown('/'.join(path), 120)}: deeper than {DEPTH} folders")
        elif not (path[-1] == "objects" and ".git" in path):
            # What git keeps below .git/objects is never collected, started or read by anything but git.
            waiting.append((path, inside_git or path[-1] == ".git"))

    # --- one thing

    def _note(self, tree: Tree, parts: Parts, place: Place, *, closed: bool = False) -> None:
        path = "/".join(parts)
        known = self.found.get(path)
        if known is not None and known.runs == IN_SESSION_HOME != place.runs:
            self.found[path] = replace(known, kind=place.kind, runs=place.runs)  # a person's next shell there says more
        if not parts or known is not None:
            return
        try:
            entry = self._entry(tree, parts, place, closed)
        except OSError as error:
            if not self._link_in_the_way(tree, parts, place):
                self._doubts.append(f"{shown(path, 120)}: {error.strerror}")
            return
        if entry is not None:
            self._keep(entry)

    def _keep(self, entry: Entry) -> None:
        if entry.path not in self.found:
            self._reader.one_more()
            self.found[entry.path] = entry

    def _link_in_the_way(self, tree: Tree, parts: Parts, place: Place) -> bool:
        """A folder of the path is a link that is not followed: then that link is what is listed."""
        for count in range(1, len(parts)):
            with contextlib.suppress(OSError):
                seen = tree.look(parts[:count])
                if seen is not None and seen.target:
                    self._keep(self._made(parts[:count], place, seen, _stamp(seen), tree, _text(seen.target), "a link; not followed"))
                    return True
        return False

    def _entry(self, tree: Tree, parts: Parts, place: Place, closed: bool) -> Entry | None:
        seen, target, note = tree.look(self._folder_first(tree, parts)), "", ""
        if seen is None:
            return None
        real = parts
        if self._root.where is Where.HOME:
            try:
                real = tree.resolve(parts)
            except OSError:
                note = "a link that leads out of the home; what it leads to is not looked at"
        if seen.target:
            target = _text(seen.target)
        behind = tree.look(real) if real != parts and not note else seen
        if behind is None:
            return self._made(parts, place, seen, _stamp(seen), tree, target, "a link that leads nowhere")
        if behind.what == "folder" and not closed:
            return None
        return self._read(tree, parts, real, place, behind, target, note)

    def _folder_first(self, tree: Tree, parts: Parts) -> Parts:
        """The path with its folders resolved and its last name as it stands."""
        return (*tree.resolve(parts[:-1]), parts[-1])

    def _read(self, tree: Tree, parts: Parts, real: Parts, place: Place, seen: Seen, target: str, note: str) -> Entry | None:
        if seen.what != "file" or note:
            digest = hashlib.sha256(target.encode()).hexdigest() if seen.what == "link" else _stamp(seen)
            closed = "a folder that may not be read here; known by its stamp alone" if seen.what == "folder" else note
            return self._made(parts, place, seen, digest, tree, target, closed)
        if place.executable and not seen.stat.st_mode & 0o111:
            return None
        if seen.stat.st_size > READ_BYTES or not self._reader.may_hash(seen.stat.st_size):
            return self._made(parts, place, seen, _stamp(seen), tree, target, "too large to read; known by its stamp")
        try:
            raw, found = tree.read(real, READ_BYTES)
        except OSError as error:
            return self._made(parts, place, seen, _stamp(seen), tree, target, f"not readable ({error.strerror}); known by its stamp")
        part = counted(place.part, raw)
        if part is None:
            return None
        note = f"{found.st_nlink} names (hard links)" if found.st_nlink > 1 else ""
        return self._made(parts, place, Seen(found), hashlib.sha256(part).hexdigest(), tree, target, note, part)

    def _made(self, parts: Parts, place: Place, seen: Seen, digest: str, tree: Tree, target: str, note: str, text: bytes = b"") -> Entry:
        found, path = seen.stat, "/".join(parts)
        lines = tuple(short(line) for line in text.splitlines()[:LINES]) if b"\0" not in text[:4096] else ()
        return Entry(
            root=self._root.label,
            path=path,
            kind=place.kind,
            runs=place.runs,
            what="link" if target else seen.what,
            digest=digest,
            size=found.st_size,
            executable=seen.what == "file" and bool(found.st_mode & 0o111),
            uid=found.st_uid,
            gid=found.st_gid,
            mode=stat.S_IMODE(found.st_mode),
            mtime=found.st_mtime,
            folder=tree.folder_of(parts),
            target=target,
            lines=lines,
            note=note,
            text=self._reader.kept(text),
        )


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
    for place in _BY_WILDCARD:
        if _ends(path, place.pattern):
            yield place


def _ends(path: Parts, pattern: str) -> bool:
    tail = pattern.split("/")
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
_BY_WILDCARD = tuple(p for p in WORKSPACE if _is_wild(p))


def _stamp(seen: Seen) -> str:
    """A mark of what is not read. ctime is set by the kernel alone (utimensat(2))."""
    found = seen.stat
    return f"stamp:{found.st_ino}:{found.st_size}:{found.st_mtime_ns}:{found.st_ctime_ns}"


def _text(name: str) -> str:
    return os.fsencode(name).decode("utf-8", "backslashreplace")
