"""Reads one transcript from where the last look ended: whole lines only, by the file itself and not by its name.

Imports little: a second process that reads beside this one begins with it.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from console.domain.spend import Answer
from console.sources.reading import Reading
from console.sources.text import plain

BLOCK = 8 << 20
LINE_MAX = 64 << 20
"""A longer line is passed over, and said."""
PASS_MAX = 256 << 20
"""Bytes read of one file in one look; the next look goes on. One endless file must not hold up everybody else's."""
ANSWERS_MAX = 20_000
"""More of one file are given away before it is read to its end."""
_MARK = 64
_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NOCTTY | os.O_NONBLOCK | os.O_NOFOLLOW
Key = tuple[int, str, str]
"""(uid, source, session or id of an answer)"""
Answers = dict[Key, Answer]


class Opened(NamedTuple):
    """One transcript that is read now."""

    path: str
    uid: int
    """Whose file it is."""
    ours: bool
    state: str
    """What earlier lines said, as ``Lines.state`` gave it, or empty."""
    seen: Reading


class Lines(Protocol):
    """One file's lines as answers, and what later lines rely on."""

    def take(self, data: bytes) -> Iterator[Answer]:
        """The answers in whole lines."""
        ...

    def state(self) -> str:
        """JSON, or empty."""
        ...


class Folder(NamedTuple):
    """Where an agent kind writes its transcripts."""

    variable: str
    """Of the environment, that names another folder in place of the one in a home; empty: none does."""
    home: str
    """Below a home."""
    below: str = ""
    """What of it holds transcripts."""


def is_jsonl(path: str) -> bool:
    """Whether a path is one of a file of JSON lines."""
    return path.endswith(".jsonl")


def no_database(_opened: Opened) -> Iterator[tuple[Answer, str]]:
    """The answers of a kind without a database: none."""
    return iter(())


@dataclass(frozen=True, slots=True)
class Transcripts:
    """How one agent kind writes down what its answers used. A second process is given it whole: each function has a module and a name."""

    source: str
    """As in ``Answer.source``."""
    vendor: str
    """Whose prices hold; empty: each answer's model begins with its vendor and a slash."""
    folders: tuple[Folder, ...]
    lines: Callable[[Opened], Lines] | None
    """None: its files hold no lines, ``database`` reads them."""
    own: tuple[Folder, ...] = ()
    """The same in the home of an agent that was started here."""
    is_one: Callable[[str], bool] = is_jsonl
    """By its path alone."""
    depth: int = 8
    """Levels below its folder that hold transcripts."""
    database: Callable[[Opened], Iterator[tuple[Answer, str]]] = no_database
    """Each answer in a database since ``Opened.state``, with the state behind it. Raises OSError with why it cannot be read."""


@dataclass(frozen=True, slots=True)
class Transcript:
    """A file that may hold answers."""

    source: str
    path: str
    ours: bool = False
    """Whether it lies in the home of an agent that was started here."""
    size: int = 0
    """Bytes, when it was seen."""

    @property
    def key(self) -> str:
        """Its path as text: a name may hold bytes that are none."""
        return os.fsencode(self.path).decode("utf-8", "backslashreplace")


@dataclass(frozen=True, slots=True)
class Place:
    """How far a file was read, and by what it is known again."""

    dev: int
    inode: int
    size: int
    mtime_ns: int
    offset: int
    mark: str
    """Digest of the last bytes before ``offset``."""
    state: str
    """What earlier lines said, JSON, or empty."""

    def is_of(self, seen: os.stat_result) -> bool:
        """Whether this is the file that was read then."""
        return (self.dev, self.inode) == (seen.st_dev, _number(seen))

    def holds(self, seen: os.stat_result) -> bool:
        """Whether nothing of it changed since."""
        return self.is_of(seen) and (self.size, self.mtime_ns) == (seen.st_size, _mtime(seen))


@dataclass(slots=True)
class Found:
    """What a look met, for people."""

    files: int = 0
    read: int = 0
    bytes: int = 0
    reading: Reading = field(default_factory=Reading)
    troubles: list[str] = field(default_factory=list)
    sessions: set[Key] = field(default_factory=set)
    """(uid, source, session) of which something new was read."""
    left: int = 0
    """Bytes that the next look goes on with."""
    folders: set[str] = field(default_factory=set)
    """Where the transcripts are that were to come first."""

    def add(self, other: Found) -> None:
        """What another reader of the same look met."""
        self.files += other.files
        self.read += other.read
        self.bytes += other.bytes
        self.reading.answers += other.reading.answers
        self.reading.odd += other.reading.odd
        self.troubles += other.troubles
        self.sessions |= other.sessions
        self.left += other.left


def follow(
    transcript: Transcript, kind: Transcripts, before: Place | None, answers: Answers, found: Found, early: Callable[[Answers], object]
) -> Place | None:
    """What is new comes into ``answers``; how far it was read, or None: it cannot be read.

    ``early`` takes and empties them when they are many.
    """
    try:
        fd = os.open(transcript.path, _FLAGS)
    except OSError as error:
        found.troubles.append(f"{plain(transcript.path)}: {error.strerror}")
        return None
    try:
        seen = os.fstat(fd)
        if not stat.S_ISREG(seen.st_mode):
            return None
        goes_on = before is not None and before.is_of(seen) and seen.st_size >= before.offset
        goes_on = goes_on and before is not None and before.mark == _mark(fd, before.offset)
        offset = before.offset if before is not None and goes_on else 0
        state = before.state if before is not None and goes_on else ""
        opened = Opened(transcript.path, seen.st_uid, transcript.ours, state, found.reading)
        found.read += 1
        if kind.lines is None:
            return _database(kind, opened, seen, answers, found, early)
        lines = kind.lines(opened)
        until = min(seen.st_size, offset + PASS_MAX)
        for block, behind in _blocks(fd, offset, until, found):
            offset, session = behind, None
            for answer in lines.take(block):
                if answer.session != session:
                    session = answer.session
                    found.sessions.add((answer.uid, answer.source, session))
                put(answers, answer)
            if len(answers) >= 2 * ANSWERS_MAX:
                early(answers)
        found.left += seen.st_size - until
        size = seen.st_size if until == seen.st_size else -1  # -1: there is more of it, whatever its size says next
        return Place(seen.st_dev, _number(seen), size, _mtime(seen), offset, _mark(fd, offset), lines.state())
    except OSError as error:
        found.troubles.append(f"{plain(transcript.path)}: {error.strerror}")
        return None
    finally:
        os.close(fd)


def _database(
    kind: Transcripts, opened: Opened, seen: os.stat_result, answers: Answers, found: Found, early: Callable[[Answers], object]
) -> Place:
    """The same of a database, which is read from a moment on and not from a byte on. Raises OSError."""
    state = opened.state
    for answer, state in kind.database(opened):  # noqa: B007 - the last one is kept
        found.sessions.add((answer.uid, answer.source, answer.session))
        put(answers, answer)
        if len(answers) >= 2 * ANSWERS_MAX:
            early(answers)
    return Place(seen.st_dev, _number(seen), seen.st_size, _mtime(seen), 0, "", state)


def put(answers: Answers, answer: Answer) -> None:
    """One id counts once, with its largest numbers: a record may be written while the answer still grows."""
    key = (answer.uid, answer.source, answer.answer_id)
    known = answers.get(key)
    if known is None or answer.tokens.total > known.tokens.total:
        answers[key] = answer


def _number(seen: os.stat_result) -> int:
    """The inode, as SQLite can hold it."""
    return seen.st_ino & ((1 << 63) - 1)


def _mtime(seen: os.stat_result) -> int:
    """As SQLite can hold it: anybody may date a file into a far year."""
    return max(-(1 << 63), min(seen.st_mtime_ns, (1 << 63) - 1))


def _mark(fd: int, offset: int) -> str:
    """Return a mark of the bytes before ``offset``, so that a file rewritten in place is noticed and read again."""
    start = max(0, offset - _MARK)
    return hashlib.sha256(os.pread(fd, offset - start, start)).hexdigest()[:24] if offset else ""


def _blocks(fd: int, offset: int, until: int, found: Found) -> Iterator[tuple[bytes, int]]:
    """Whole lines from ``offset`` up to ``until``, and the offset behind them."""
    parts: list[bytes] = []  # of the line that is not whole yet: looked through once, joined once, whatever its length
    held, skipping = 0, False
    while data := os.pread(fd, min(BLOCK, max(0, until - offset - held)), offset + held):
        found.bytes += len(data)
        end = data.rfind(b"\n") + 1
        if end == 0:
            parts.append(data)
            held += len(data)
            if skipping or held > LINE_MAX:
                offset, parts, held, skipping = offset + held, [], 0, True
                yield b"", offset
            continue
        whole = data if end == len(data) and not held else b"".join((*parts, data[:end]))
        offset += held + end
        parts, held = [data[end:]], len(data) - end
        if skipping:
            whole, skipping = whole[whole.find(b"\n") + 1 :], False
            found.reading.odd += 1
        yield whole, offset
