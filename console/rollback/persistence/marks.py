"""What lies at one path, as a mark that another look can be compared with: a hash of what counts, a stamp of what is not read."""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat

from console.rollback.persistence.findings import Entry, Place, Root, Where, short
from console.rollback.persistence.parts import counted
from console.rollback.persistence.tree import Parts, Seen, Tree

READ_BYTES = 1 << 20
"""Larger files are known by their kernel stamp (size, times, inode), which an agent cannot set back: ctime is the kernel's."""
# An agent can fill every place with files of just under the limit, and a look must come to its end.
HASHED_TOTAL = 128 << 20
LINES = 600
TEXT_BYTES = 32 << 10
TEXT_TOTAL = 32 << 20


class Portion:
    """How much was read and kept, of all roots of a look together."""

    def __init__(self) -> None:
        self._hashed = self._kept = 0

    def may_hash(self, size: int) -> bool:
        """Whether so many bytes more are read."""
        self._hashed += min(size, READ_BYTES)
        return self._hashed <= HASHED_TOTAL

    def kept(self, text: bytes) -> bytes:
        """As much of a text as is kept for excerpts."""
        part = text[: TEXT_BYTES if self._kept < TEXT_TOTAL else 0]
        self._kept += len(part)
        return part


class Marks:
    """Of one root that is held open."""

    def __init__(self, root: Root, tree: Tree, portion: Portion) -> None:
        self._root, self._tree, self._portion = root, tree, portion

    def entry(self, parts: Parts, place: Place, closed: bool) -> Entry | None:
        """What is there; None when it is nothing that counts. ``closed``: a folder that may not be listed counts too. Raises OSError."""
        seen, target, note = self._tree.look(self._folder_first(parts)), "", ""
        if seen is None:
            return None
        real = parts
        if self._root.where is Where.HOME:
            try:
                real = self._tree.resolve(parts)
            except OSError:
                note = "a link that leads out of the home; what it leads to is not looked at"
        if seen.target:
            target = _text(seen.target)
        behind = self._tree.look(real) if real != parts and not note else seen
        if behind is None:
            return self._made(parts, place, seen, _stamp(seen), target, "a link that leads nowhere")
        if behind.what == "folder" and not closed:
            return None
        return self._read(parts, real, place, behind, target, note)

    def link_in_the_way(self, parts: Parts, place: Place) -> Entry | None:
        """A folder of the path is a link that is not followed: then that link is what is listed."""
        for count in range(1, len(parts)):
            with contextlib.suppress(OSError):
                seen = self._tree.look(parts[:count])
                if seen is not None and seen.target:
                    return self._made(parts[:count], place, seen, _stamp(seen), _text(seen.target), "a link; not followed")
        return None

    def _folder_first(self, parts: Parts) -> Parts:
        """The path with its folders resolved and its last name as it stands."""
        return (*self._tree.resolve(parts[:-1]), parts[-1])

    def _read(self, parts: Parts, real: Parts, place: Place, seen: Seen, target: str, note: str) -> Entry | None:
        if seen.what != "file" or note:
            digest = hashlib.sha256(target.encode()).hexdigest() if seen.what == "link" else _stamp(seen)
            closed = "a folder that may not be read here; known by its stamp alone" if seen.what == "folder" else note
            return self._made(parts, place, seen, digest, target, closed)
        if place.executable and not seen.stat.st_mode & 0o111:
            return None
        if seen.stat.st_size > READ_BYTES or not self._portion.may_hash(seen.stat.st_size):
            return self._made(parts, place, seen, _stamp(seen), target, "too large to read; known by its stamp")
        try:
            raw, found = self._tree.read(real, READ_BYTES)
        except OSError as error:
            return self._made(parts, place, seen, _stamp(seen), target, f"not readable ({error.strerror}); known by its stamp")
        part = counted(place.part, raw)
        if part is None:
            return None
        note = f"{found.st_nlink} names (hard links)" if found.st_nlink > 1 else ""
        return self._made(parts, place, Seen(found), hashlib.sha256(part).hexdigest(), target, note, part)

    def _made(self, parts: Parts, place: Place, seen: Seen, digest: str, target: str, note: str, text: bytes = b"") -> Entry:
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
            folder=self._tree.folder_of(parts),
            target=target,
            lines=lines,
            note=note,
            text=self._portion.kept(text),
        )


def _stamp(seen: Seen) -> str:
    """A mark of what is not read. ctime is set by the kernel alone (utimensat(2))."""
    found = seen.stat
    return f"stamp:{found.st_ino}:{found.st_size}:{found.st_mtime_ns}:{found.st_ctime_ns}"


def _text(name: str) -> str:
    return os.fsencode(name).decode("utf-8", "backslashreplace")
