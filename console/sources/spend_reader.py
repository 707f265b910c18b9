"""Reads transcripts as they grow: from where the last look ended, whole lines only, by the file itself and not by its name."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from operator import itemgetter
from pathlib import Path

from console.domain.spend import Answer
from console.sources import claude_transcripts, codex_usage
from console.sources.claude_transcripts import Reading
from console.sources.homes import CLAUDE_FOLDERS, CODEX_FOLDERS, homes, is_below
from console.sources.interface import plain
from console.sources.rates import RateBook
from console.sources.spend_store import Place, SpendStore

BLOCK = 8 << 20
LINE_MAX = 64 << 20
"""A longer line is passed over, and said."""
_MARK = 64
_FILES_MAX = 200_000
_DEPTH_MAX = 8
_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NOCTTY | os.O_NONBLOCK | os.O_NOFOLLOW
_BATCH = 20_000
_ID = 36
"""Letters at the end of a rollout's name that are its thread's id."""
PASS_MAX = 256 << 20
"""Bytes read of one file in one look; the next look goes on. One endless file must not hold up everybody else's."""
_PLACES = (
    (claude_transcripts.SOURCE, "CLAUDE_CONFIG_DIR", ".claude", "projects"),
    (codex_usage.SOURCE, "CODEX_HOME", ".codex", "sessions"),
)
"""(source, variable that names another folder, folder of a home, what of it holds transcripts)"""
_OWN_PLACES = (
    *((claude_transcripts.SOURCE, config, "projects") for config in CLAUDE_FOLDERS),
    *((codex_usage.SOURCE, config, "sessions") for config in CODEX_FOLDERS),
)
"""(source, folder of the home of an agent of ours, what of it holds transcripts)"""
Key = tuple[int, str, str]


@dataclass(frozen=True, slots=True)
class Transcript:
    """A file that may hold answers."""

    source: str
    path: str
    seen: os.stat_result
    ours: bool = False
    """Whether it lies in the home of an agent that was started here."""

    @property
    def key(self) -> str:
        """Its path as text: a name may hold bytes that are none."""
        return os.fsencode(self.path).decode("utf-8", "backslashreplace")


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


class SpendReader:
    """Blocks; for a thread of its own."""

    def __init__(
        self,
        store: SpendStore,
        rates: RateBook,
        root: Path | None = None,
        own: Callable[[], list[Path]] = list,
        outside: bool = True,
    ) -> None:
        """``own``: homes of agents that were started here; ``outside`` False: those alone."""
        self._store, self._rates, self._root, self._own, self._outside = store, rates, root, own, outside
        self.progress: Callable[[Found], object] = lambda found: None
        """Told after each file of a look at everything."""

    def folders(self) -> list[tuple[str, Path]]:
        """(source, folder) that are looked in, outside our own agents' homes."""
        found: list[tuple[str, Path]] = []
        own = self._root is None
        for source, variable, folder, below in _PLACES if self._outside else ():
            named = os.environ.get(variable, "") if own else ""
            places = [Path(named)] if named.startswith("/") else []
            places += [home / folder for home in homes(self._root)]
            found += [(source, place / below) for place in dict.fromkeys(places)]
        return found

    def _all_folders(self) -> list[tuple[str, Path, bool]]:
        found = [(source, folder, False) for source, folder in self.folders()]
        for home in self._own():
            for source, config, below in _OWN_PLACES:
                folder = home / config / below
                if is_below(home, folder):
                    found.append((source, folder, True))
        return found

    def read_these(self, paths: Iterable[str]) -> Found:
        """What is new in these files alone, of which somebody told that they changed. Raises ConsoleError when nothing can be kept."""
        found = Found()
        transcripts = list(self._named(paths))
        places = self._store.places(one.key for one in transcripts)
        answers: dict[Key, Answer] = {}
        waiting: dict[str, Place] = {}
        for transcript in transcripts:
            self._look_into(transcript, places, answers, waiting, found)
        self._keep(answers, waiting)
        return found

    def _named(self, paths: Iterable[str]) -> Iterator[Transcript]:
        """Those of these paths that are transcripts in a folder that is looked in."""
        folders = self._all_folders()
        for path in paths:
            source = next(((source, ours) for source, folder, ours in folders if path.startswith(f"{folder}/")), None)
            if source is None or "/../" in path or not _is_transcript(source[0], path):
                continue
            try:
                seen = os.lstat(path)
            except (OSError, ValueError):
                continue
            if stat.S_ISREG(seen.st_mode):
                yield Transcript(source[0], path, seen, source[1])

    def read(self, first: frozenset[str] = frozenset(), then: Callable[[], object] = lambda: None) -> Found:
        """One look at everything; what did not change since the last is not opened. Raises ConsoleError when nothing can be kept.

        The transcripts of the sessions in ``first`` come before all others, the newest next; ``then`` is called once they are kept.
        """
        found = Found()
        places = self._store.places()
        waiting: dict[str, Place] = {}
        answers: dict[Key, Answer] = {}
        gone = set(places)
        changed = False
        ordered = [(not _is_of(t.path, first), -t.seen.st_mtime, t) for t in self._transcripts(found)]
        ordered.sort(key=itemgetter(0, 1))
        found.folders = {one.path.rpartition("/")[0] for is_last, _, one in ordered if not is_last}
        for is_last, _, transcript in ordered:
            if changed and first and is_last:
                self._keep(answers, waiting)
                then()
                first = frozenset()
            gone.discard(transcript.key)
            if self._look_into(transcript, places, answers, waiting, found):
                changed = True
                self.progress(found)
        self._keep(answers, waiting)
        looked_in = tuple(f"{folder}/" for _, folder, _ in self._all_folders())
        gone = {key for key in gone if key.startswith(looked_in)}  # others read other homes into the same store
        if gone and not found.troubles:
            with self._store.writing():
                self._store.forget_places(gone)
        return found

    def _look_into(
        self, transcript: Transcript, places: dict[str, Place], answers: dict[Key, Answer], waiting: dict[str, Place], found: Found
    ) -> bool:
        """Whether there was something new to read."""
        found.files += 1
        before, now = places.get(transcript.key), transcript.seen
        if before is not None and _same(before, now) and (before.size, before.mtime_ns) == (now.st_size, _mtime(now)):
            return False
        place = self._follow(transcript, before, found, answers)
        if place is not None:
            waiting[transcript.key] = place
        if len(answers) >= _BATCH:
            self._keep(answers, waiting)
        return True

    def reprice(self) -> None:
        """Another try for models that an older price table did not know."""
        models = self._store.unpriced_models(self._rates.version)
        if models:
            with self._store.writing():
                for source, model in models:
                    for answer in self._store.kept(source, model):
                        self._store.set_price(answer, self._rates.price(answer), self._rates.version)

    def _keep_early(self, answers: dict[Key, Answer]) -> None:
        """There are many: an answer counts once however often it is added, so nothing hangs on where its file ends."""
        with self._store.writing():
            self._store.add([(one, self._rates.price(one)) for one in answers.values()], self._rates.version)
        answers.clear()

    def _keep(self, answers: dict[Key, Answer], waiting: dict[str, Place]) -> None:
        """Answers and how far was read, together or not at all."""
        if not waiting:
            return
        prices = self._rates.version if answers else ""
        priced = [(answer, self._rates.price(answer)) for answer in answers.values()]
        with self._store.writing():
            self._store.add(priced, prices)
            self._store.keep_places(waiting)
        answers.clear()
        waiting.clear()

    # --- files

    def _transcripts(self, found: Found) -> Iterator[Transcript]:
        for source, folder, ours in self._all_folders():
            for path, seen in _walk(folder, found):
                if _is_transcript(source, path):
                    yield Transcript(source, path, seen, ours)

    def _follow(self, transcript: Transcript, before: Place | None, found: Found, answers: dict[Key, Answer]) -> Place | None:
        """Reads what is new; None when it cannot be read."""
        try:
            fd = os.open(transcript.path, _FLAGS)
        except OSError as error:
            found.troubles.append(f"{plain(transcript.path)}: {error.strerror}")
            return None
        try:
            seen = os.fstat(fd)
            if not stat.S_ISREG(seen.st_mode):
                return None
            goes_on = before is not None and _same(before, seen) and seen.st_size >= before.offset
            goes_on = goes_on and before is not None and before.mark == _mark(fd, before.offset)
            offset = before.offset if before is not None and goes_on else 0
            lines = _lines_of(transcript, seen.st_uid, before.state if before is not None and goes_on else "", found.reading)
            found.read += 1
            until = min(seen.st_size, offset + PASS_MAX)
            for block, behind in _blocks(fd, offset, until, found):
                offset, session = behind, None
                for answer in lines.take(block):
                    if answer.session != session:
                        session = answer.session
                        found.sessions.add((answer.uid, answer.source, session))
                    _put(answers, answer)
                if len(answers) >= 2 * _BATCH:
                    self._keep_early(answers)
            found.left += seen.st_size - until
            size = seen.st_size if until == seen.st_size else -1  # -1: there is more of it, whatever its size says next
            return Place(seen.st_dev, _number(seen), size, _mtime(seen), offset, _mark(fd, offset), lines.state())
        except OSError as error:
            found.troubles.append(f"{plain(transcript.path)}: {error.strerror}")
            return None
        finally:
            os.close(fd)


@dataclass(frozen=True, slots=True)
class _Lines:
    """One file's lines as answers, and what later lines rely on."""

    take: Callable[[bytes], Iterator[Answer]]
    state: Callable[[], str]


def _lines_of(transcript: Transcript, uid: int, state: str, seen: Reading) -> _Lines:
    if transcript.source == codex_usage.SOURCE:
        thread = _thread(state)
        return _Lines(lambda data: codex_usage.answers(data, thread, seen, uid, ours=transcript.ours), lambda: json.dumps(thread.kept()))
    session, agent = _named(transcript.path)
    return _Lines(lambda data: claude_transcripts.answers(data, session, agent, seen, uid, ours=transcript.ours), lambda: "")


def _thread(state: str) -> codex_usage.Thread:
    try:
        return codex_usage.Thread(**json.loads(state))
    except (ValueError, TypeError):
        return codex_usage.Thread()


def _named(path: str) -> tuple[str, str]:
    """(session, sub-agent) by the file's place: ``<session>.jsonl``, or ``<session>/…/agent-<id>.jsonl``."""
    parts = path.split("/")
    stem = plain(parts[-1].removesuffix(".jsonl"), 64)
    if stem.startswith("agent-") and "projects" in parts:
        below = parts[len(parts) - parts[::-1].index("projects") :]
        if len(below) > 2:
            return plain(below[1], 64), stem.removeprefix("agent-")
    return stem, ""


def _is_transcript(source: str, path: str) -> bool:
    name = path.rpartition("/")[2]
    return name.endswith(".jsonl") and (source == claude_transcripts.SOURCE or name.startswith("rollout-"))


def _is_of(path: str, sessions: frozenset[str]) -> bool:
    """Whether its name or its folder's is one of these sessions'."""
    if not sessions:
        return False
    folder, _, name = path.rpartition("/")
    stem = name.removesuffix(".jsonl")
    return stem in sessions or stem[-_ID:] in sessions or not sessions.isdisjoint(folder.rsplit("/", _DEPTH_MAX)[1:])


def _put(answers: dict[Key, Answer], answer: Answer) -> None:
    """One id counts once, with its largest numbers: a record may be written while the answer still grows."""
    key = (answer.uid, answer.source, answer.answer_id)
    known = answers.get(key)
    if known is None or answer.tokens.total > known.tokens.total:
        answers[key] = answer


def _same(place: Place, seen: os.stat_result) -> bool:
    return (place.dev, place.inode) == (seen.st_dev, _number(seen))


def _number(seen: os.stat_result) -> int:
    """The inode, as SQLite can hold it."""
    return seen.st_ino & ((1 << 63) - 1)


def _mtime(seen: os.stat_result) -> int:
    """As SQLite can hold it: anybody may date a file into a far year."""
    return max(-(1 << 63), min(seen.st_mtime_ns, (1 << 63) - 1))


def _mark(fd: int, offset: int) -> str:
    """By what the bytes before ``offset`` are known again: a file rewritten in place is read anew."""
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
        whole = b"".join((*parts, data[:end]))
        offset += held + end
        parts, held = [data[end:]], len(data) - end
        if skipping:
            whole, skipping = whole[whole.find(b"\n") + 1 :], False
            found.reading.odd += 1
        yield whole, offset


def _walk(top: Path, found: Found) -> Iterator[tuple[str, os.stat_result]]:
    """Every ``*.jsonl`` below, no link followed, the newest folders' names last as they come; bounded."""
    waiting, count = [(str(top), 0)], 0
    while waiting:
        folder, depth = waiting.pop()
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    count += 1
                    if count > _FILES_MAX:
                        found.troubles.append(f"more than {_FILES_MAX:,} files and folders below {plain(str(top))}: the rest was not read")
                        return
                    if entry.is_dir(follow_symlinks=False):
                        if depth < _DEPTH_MAX:
                            waiting.append((entry.path, depth + 1))
                    elif entry.name.endswith(".jsonl") and entry.is_file(follow_symlinks=False):
                        yield entry.path, entry.stat(follow_symlinks=False)
        except FileNotFoundError:
            continue  # this person does not use the program, or the folder is gone
        except OSError as error:
            found.troubles.append(f"{plain(folder)}: {error.strerror}")
