"""What aider's chat history says that sessions used: ``.aider.chat.history.md`` of the project. Read of version 0.86.

It writes no record of an answer, but a line for people: rounded tokens, and what the session cost until then, to a cent. So a session's
sum is aider's own word, and an answer of a model that aider has no price for is unpriced.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from console.sources.session_files import Written
from console.sources.spend.of_session import Spent
from console.sources.text import plain

FILE = ".aider.chat.history.md"
TAIL_MAX = 4 << 20
"""Bytes at the end of a history that are read: it holds every session of its project."""
KEPT_MAX = 200
_ABOVE = 40
_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NOCTTY | os.O_NONBLOCK | os.O_NOFOLLOW
_BEGIN = re.compile(r"^# aider chat started at (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)[ ]*$", re.MULTILINE)
_MODEL = re.compile(r"^> (?:Main model|Model): (\S+)", re.MULTILINE)
_COUNT = r"(\d{1,9}(?:\.\d)?k?)"
_USED = re.compile(
    rf"^> Tokens: {_COUNT} sent,(?: {_COUNT} cache write,)?(?: {_COUNT} cache hit,)? {_COUNT} received\."
    r"(?:[ \n]{1,3}(?:> )?Cost: \$\d{1,7}(?:\.\d{1,12})? message, \$(\d{1,7}(?:\.\d{1,12})?) session\.)?",
    re.MULTILINE,
)
_Seen = tuple[int, int, int]


class ChatHistories:
    """Finds the histories of folders, and sums what their sessions used. Used by one thread."""

    def __init__(self) -> None:
        self._places: dict[tuple[int, str], Path] = {}
        """Where a session was found, by its account and id."""
        self._read: dict[tuple[Path, int], tuple[_Seen, dict[str, Spent]]] = {}

    def sessions(self, home: Path, cwd: str, uid: int) -> Iterator[Written]:
        """Those of the project that a folder lies in."""
        for path in dict.fromkeys((project_of(Path(cwd)) / FILE, Path(cwd) / FILE, home / FILE)):
            found = self._sums(path, uid)
            changed = self._read[path, uid][0][2] / 1e9 if found else 0.0
            for session, spent in found.items():
                self._places.pop((uid, session), None)
                self._places[uid, session] = path
                yield Written(session, spent.last_at, changed, None)
        while len(self._places) > KEPT_MAX:
            del self._places[next(iter(self._places))]

    def spent(self, uid: int, session: str) -> dict[str, Spent]:
        """What a session that was found used, by agent: its own alone."""
        path = self._places.get((uid, session))
        found = self._sums(path, uid).get(session) if path is not None else None
        return {"": found} if found is not None and found.answers else {}

    def _sums(self, path: Path, uid: int) -> dict[str, Spent]:
        """By session. ``Spent.last_at`` is when it began: nothing says more."""
        try:
            fd = os.open(path, _FLAGS)
        except OSError:
            return {}
        try:
            seen = os.fstat(fd)
            if not stat.S_ISREG(seen.st_mode) or seen.st_uid != uid:
                return {}
            now = (seen.st_ino, seen.st_size, seen.st_mtime_ns)
            known = self._read.pop((path, uid), None)
            if known is None or known[0] != now:
                data = os.pread(fd, TAIL_MAX, max(0, seen.st_size - TAIL_MAX))
                known = now, sums(data.decode("utf-8", "replace"))
            self._read[path, uid] = known
            while len(self._read) > KEPT_MAX:
                del self._read[next(iter(self._read))]
            return known[1]
        except OSError:
            return {}
        finally:
            os.close(fd)


def sums(text: str) -> dict[str, Spent]:
    """What each session in a history used; one whose beginning is not in the text is left out."""
    begins = list(_BEGIN.finditer(text))
    ends = (*(one.start() for one in begins[1:]), len(text))
    return {_id(one[1]): _sum(one[1], text[one.end() : end]) for one, end in zip(begins, ends, strict=False)}


def project_of(cwd: Path) -> Path:
    """The root of the git repository that a folder lies in, as aider looks for it; without one the folder itself."""
    for folder in (cwd, *list(cwd.parents)[:_ABOVE]):
        if os.path.lexists(folder / ".git"):
            return folder
    return cwd


def _id(began: str) -> str:
    return began.replace("-", "").replace(":", "").replace(" ", "-")


def _sum(began: str, text: str) -> Spent:
    """Add up the lines. Sums only grow: a line with less changes nothing, whichever process wrote it."""
    tokens, cost, answers, unpriced = 0, 0.0, 0, 0
    for sent, written, read, received, total in _USED.findall(text):
        answers += 1
        tokens += sum(_count(one) for one in (sent, written, read, received))
        unpriced += not total
        cost = max(cost, float(total or 0))
    model = _MODEL.search(text)
    return Spent(tokens, cost, answers, unpriced, plain(model[1], 100) if model else "", _at(began))


def _count(text: str) -> int:
    return round(float(text.removesuffix("k")) * (1000 if text.endswith("k") else 1)) if text else 0


def _at(text: str) -> float:
    """A local time, as this host's clock has it; 0: there is no such time."""
    try:
        return datetime.strptime(text, "%Y-%m-%d %H:%M:%S").astimezone().timestamp()
    except (ValueError, OverflowError, OSError):
        return 0.0
