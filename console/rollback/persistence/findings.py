"""Places, what was seen in them, and what differs: values only. Every path, line and number in them may be an agent's and is hostile."""

from __future__ import annotations

import hashlib
import os
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

SCHEMA = "watchfloor-baseline/1"
QUARANTINE = "quarantine: not available, because putting away what was found is not built yet"


class Where(StrEnum):
    """Which kind of root a place lies in."""

    HOME = "home"
    """Of an operator; and of the agents of a session, whose HOME is their workspace."""
    SYSTEM = "system"
    WORKSPACE = "workspace"
    """Anywhere in a session's workspace."""


class Change(StrEnum):
    """``unverified``: it is there, and there is nothing to compare it with; never to be read as fine."""

    ADDED = "added"
    CHANGED = "changed"
    REMOVED = "removed"
    UNVERIFIED = "unverified"


@dataclass(frozen=True, slots=True)
class Place:
    """One row of the table: where a thing lies that another program starts."""

    kind: str
    where: Where
    pattern: str
    """Components with fnmatch wildcards; a last ``**`` is everything below. In a workspace: the tail of a path."""
    runs: str
    """Who may run it, and when."""
    part: str = ""
    """Which part of the file counts (parts.py); empty: all of it."""
    executable: bool = False
    """Only what is executable counts."""


@dataclass(frozen=True, slots=True)
class Root:
    """A folder to look in."""

    label: str
    """``home:/home/ann``, ``system``, ``session:c-1``."""
    where: Where
    path: str
    more: tuple[Place, ...] = ()
    """Rows for this root alone: further folders of the operator's PATH."""


@dataclass(frozen=True, slots=True)
class RootSeen:
    """How far a root was looked at."""

    label: str
    path: str
    whole: bool
    why: str = ""
    """Which bound or obstacle kept us from looking at all of it."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing in a place. ``digest`` is of the part that counts; of what cannot be read, of its kernel stamp."""

    root: str
    path: str
    """Below the root; bytes that are no UTF-8 as surrogates (os.fsdecode)."""
    kind: str
    runs: str
    what: str
    """file, link, folder, fifo, socket or device."""
    digest: str
    size: int
    executable: bool
    uid: int
    gid: int
    mode: int
    mtime: float
    """Seconds since the epoch. The file's owner can set it to any time."""
    folder: tuple[int, int, int] = (0, 0, 0)
    """uid, gid and mode of the folder it lies in."""
    target: str = ""
    """Where a link leads; it is followed only inside an operator's home."""
    lines: tuple[str, ...] = ()
    """Short hashes of its lines, so that a later look can show what was added."""
    note: str = ""
    text: bytes = field(default=b"", repr=False, compare=False)
    """The beginning of what counts, for an excerpt; not kept in a baseline."""

    @property
    def key(self) -> tuple[str, str]:
        """Its identity from look to look."""
        return self.root, self.path

    @property
    def mark(self) -> tuple[str, str, bool, str]:
        """What makes it another one when it differs."""
        return self.what, self.digest, self.executable, self.target


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One look at several roots."""

    taken_at: float
    """Seconds since the epoch."""
    roots: tuple[RootSeen, ...] = ()
    entries: tuple[Entry, ...] = ()

    def path_of(self, label: str) -> str:
        """Where a root lies; empty when it is none of ours."""
        return next((r.path for r in self.roots if r.label == label), "")

    def is_whole(self, label: str) -> bool:
        """Whether everything in that root was looked at."""
        return any(r.label == label and r.whole for r in self.roots)

    def as_json(self) -> dict[str, Any]:
        """Plain data; texts stay out."""
        entries = [asdict(e) for e in self.entries]
        for entry in entries:
            del entry["text"]
        return {"schema": SCHEMA, "taken_at": self.taken_at, "roots": [asdict(r) for r in self.roots], "entries": entries}


def snapshot_from_json(data: dict[str, Any]) -> Snapshot:
    """The inverse of ``as_json``. Raises KeyError, TypeError or ValueError on anything else."""
    if data["schema"] != SCHEMA:
        raise ValueError("schema")
    entries = tuple(Entry(**{**e, "folder": tuple(e["folder"]), "lines": tuple(e["lines"])}) for e in data["entries"])
    return Snapshot(float(data["taken_at"]), tuple(RootSeen(**r) for r in data["roots"]), entries)


@dataclass(frozen=True, slots=True)
class Writers:
    """The accounts under which the agents of a session ran."""

    session: str
    uid: int
    gid: int
    saw_host: bool
    """Some of them saw more of this machine's files than their workspace."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One difference, shown as it is to be read: paths and texts are escaped."""

    root: str
    path: str
    """From the top of this machine's files."""
    kind: str
    change: Change
    runs: str
    what: str
    before_sha256: str
    after_sha256: str
    uid: int | None
    mtime: float | None
    size: int | None
    excerpt: str
    could_write: str
    """``yes`` or ``no`` with why: whether the session's agents could have written it."""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """What one look at a session came to."""

    context_id: str
    looked_at: float
    baseline_at: float | None
    """None: there is no baseline to compare with."""
    doubts: tuple[str, ...] = ()
    """Why the answer is unknown; empty: everything that was to be looked at was."""
    findings: tuple[Finding, ...] = ()
    left_out: int = 0
    """Findings beyond those listed."""
    not_looked: tuple[str, ...] = ()
    """Roots that are not looked at in this instance, and why."""
    quarantine: str = field(default=QUARANTINE)

    @property
    def outside(self) -> int:
        """Findings beyond the session's own workspace."""
        return sum(not f.root.startswith("session:") for f in self.findings)

    def as_json(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)


def shown(name: str | bytes, limit: int = 500) -> str:
    """Text by an agent as it may be shown: control, format and bidirectional characters and stray bytes as escapes, bounded."""
    raw = name if isinstance(name, bytes) else os.fsencode(name) if _has_bytes(name) else None
    text = raw.decode("utf-8", "backslashreplace") if raw is not None else str(name)
    safe = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text[: limit + 1])
    return safe if len(safe) <= limit else f"{safe[:limit]}…"


def _has_bytes(text: str) -> bool:
    return any("\udc80" <= c <= "\udcff" for c in text)


def short(line: bytes) -> str:
    """A line as the baseline remembers it."""
    return hashlib.sha256(line).hexdigest()[:12]
