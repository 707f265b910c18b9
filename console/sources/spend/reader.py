"""Reads transcripts as they grow: from where the last look ended, whole lines only, by the file itself and not by its name."""

from __future__ import annotations

import os
import stat
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

from console.sources.home_dirs import homes, is_below
from console.sources.spend.rates import RateBook
from console.sources.spend.second_reader import Due, SecondReader, is_worth_it
from console.sources.spend.store import SpendStore
from console.sources.spend.transcript_files import ANSWERS_MAX, Answers, Found, Place, Transcript, Transcripts, follow, put
from console.sources.spend.transcript_process import Reply
from console.sources.text import plain

_FILES_MAX = 200_000
_DEPTH_MAX = 8
_BATCH = 4000
"""Answers that are written at once: a second process reads on meanwhile."""
_FEW = 500
"""Fewer are not written while others are waited for."""
_ID = 36
"""Letters at the end of a rollout's name that are its thread's id."""


@dataclass(slots=True)
class _Taken:
    """What was read and is not kept yet."""

    answers: Answers = field(default_factory=dict)
    places: dict[str, Place] = field(default_factory=dict)

    def add(self, transcript: Transcript, place: Place | None) -> None:
        """How far one was read, or that it could not be."""
        if place is not None:
            self.places[transcript.key] = place


class SpendReader:
    """Blocks; for a thread of its own."""

    def __init__(
        self,
        store: SpendStore,
        rates: RateBook,
        kinds: Iterable[Transcripts],
        root: Path | None = None,
        own: Callable[[], list[Path]] = list,
        outside: bool = True,
    ) -> None:
        """``own``: homes of agents that were started here; ``outside`` False: those alone."""
        self._store, self._rates, self._root, self._own, self._outside = store, rates, root, own, outside
        self._kinds = {kind.source: kind for kind in kinds}
        self.progress: Callable[[Found], object] = lambda found: None
        """Told after each file of a look at everything."""

    def folders(self) -> list[tuple[str, Path]]:
        """(source, folder) that are looked in, outside our own agents' homes."""
        found: list[tuple[str, Path]] = []
        own = self._root is None
        for kind in self._kinds.values() if self._outside else ():
            for variable, folder, below in kind.folders:
                named = os.environ.get(variable, "") if own and variable else ""
                places = [Path(named)] if named.startswith("/") else []
                places += [home / folder for home in homes(self._root)]
                found += [(kind.source, place / below) for place in dict.fromkeys(places)]
        return found

    def _all_folders(self) -> list[tuple[str, Path, bool]]:
        found = [(source, folder, False) for source, folder in self.folders()]
        for home in self._own():
            for kind in self._kinds.values():
                for _, config, below in kind.own:
                    folder = home / config / below
                    if is_below(home, folder):
                        found.append((kind.source, folder, True))
        return found

    def read_these(self, paths: Iterable[str]) -> Found:
        """Read what is new in these changed files alone. Raises ConsoleError when nothing can be stored."""
        found = Found()
        named = list(self._named(paths))
        found.files = len(named)
        places = self._store.places(one.key for one, _ in named)
        taken = _Taken()
        for due in _changed(named, places):
            self._take(due, taken, found)
        self._keep(taken)
        return found

    def _named(self, paths: Iterable[str]) -> Iterator[tuple[Transcript, os.stat_result]]:
        """Those of these paths that are transcripts in a folder that is looked in."""
        folders = self._all_folders()
        for path in paths:
            source = next(((source, ours) for source, folder, ours in folders if path.startswith(f"{folder}/")), None)
            if source is None or "/../" in path or not self._kinds[source[0]].is_one(path):
                continue
            try:
                seen = os.lstat(path)
            except (OSError, ValueError):
                continue
            if stat.S_ISREG(seen.st_mode):
                yield Transcript(source[0], path, source[1], seen.st_size), seen

    def read(self, first: frozenset[str] = frozenset(), then: Callable[[], object] = lambda: None) -> Found:
        """One look at everything; what did not change since the last is not opened. Raises ConsoleError when nothing can be kept.

        The transcripts of the sessions in ``first`` come before all others, the newest next; ``then`` is called once they are kept.
        """
        found = Found()
        places = self._store.places()
        seen = sorted(self._transcripts(found), key=lambda one: -one[1].st_mtime)
        found.files = len(seen)
        live = [one for one in seen if _is_of(one[0].path, first)]
        found.folders = {one.path.rpartition("/")[0] for one, _ in live}
        due = _changed(live, places)
        rest = deque(_changed([one for one in seen if not _is_of(one[0].path, first)] if live else seen, places))
        taken = _Taken()
        with SecondReader(self._kinds.values(), wanted=is_worth_it(chain(due, rest))) as second:
            second.feed(rest)
            for one in due:
                self._take(one, taken, found)
            if due:
                self._keep(taken)
                then()
            while rest or second.owes:
                if not rest and len(taken.answers) >= _FEW:
                    self._keep(taken)  # rather than only wait
                for transcript, reply in second.replies(wait=not rest):
                    self._accept(transcript, reply, taken, found)
                rest.extend(second.given_back())
                if rest:
                    self._take(rest.popleft(), taken, found)
                    second.feed(rest)
        self._keep(taken)
        self._forget(places.keys() - {one.key for one, _ in seen}, found)
        return found

    def _take(self, due: Due, taken: _Taken, found: Found) -> None:
        """Reads one transcript here."""
        transcript, before = due
        kind = self._kinds[transcript.source]
        taken.add(transcript, follow(transcript, kind, before, taken.answers, found, self._keep_early))
        self._go_on(taken, found)

    def _accept(self, transcript: Transcript, reply: Reply, taken: _Taken, found: Found) -> None:
        """The same, read by the second process."""
        found.add(reply.found)
        for answer in reply.answers:
            put(taken.answers, answer)
        if reply.is_last:
            taken.add(transcript, reply.place)
            self._go_on(taken, found)
        elif len(taken.answers) > 2 * ANSWERS_MAX:
            self._keep_early(taken.answers)

    def _go_on(self, taken: _Taken, found: Found) -> None:
        if len(taken.answers) >= _BATCH:
            self._keep(taken)
        self.progress(found)

    def reprice(self) -> None:
        """Another try for models that an older price table did not know."""
        models = self._store.unpriced_models(self._rates.version)
        if models:
            with self._store.writing():
                for source, model in models:
                    for answer in self._store.kept(source, model):
                        self._store.set_price(answer, self._rates.price(answer), self._rates.version)

    def _keep_early(self, answers: Answers) -> None:
        """There are many: an answer counts once however often it is added, so nothing hangs on where its file ends."""
        with self._store.writing():
            self._store.add([(one, self._rates.price(one)) for one in answers.values()], self._rates.version)
        answers.clear()

    def _keep(self, taken: _Taken) -> None:
        """Answers and how far was read, together or not at all."""
        if not taken.places:
            return
        prices = self._rates.version if taken.answers else ""
        priced = [(answer, self._rates.price(answer)) for answer in taken.answers.values()]
        with self._store.writing():
            self._store.add(priced, prices)
            self._store.keep_places(taken.places)
        taken.answers.clear()
        taken.places.clear()

    def _forget(self, gone: set[str], found: Found) -> None:
        """Places of files that are no more."""
        looked_in = tuple(f"{folder}/" for _, folder, _ in self._all_folders())
        gone = {key for key in gone if key.startswith(looked_in)}  # others read other homes into the same store
        if gone and not found.troubles:
            with self._store.writing():
                self._store.forget_places(gone)

    # --- files

    def _transcripts(self, found: Found) -> Iterator[tuple[Transcript, os.stat_result]]:
        for source, folder, ours in self._all_folders():
            for path, seen in _walk(folder, found, self._kinds[source]):
                yield Transcript(source, path, ours, seen.st_size), seen


def _changed(seen: Iterable[tuple[Transcript, os.stat_result]], places: Mapping[str, Place]) -> list[Due]:
    """Those that are not as they were when they were read."""
    found = ((transcript, places.get(transcript.key), now) for transcript, now in seen)
    return [(transcript, before) for transcript, before, now in found if before is None or not before.holds(now)]


def _is_of(path: str, sessions: frozenset[str]) -> bool:
    """Whether its name or its folder's is one of these sessions'."""
    if not sessions:
        return False
    folder, _, name = path.rpartition("/")
    stem = name.removesuffix(".jsonl")
    return stem in sessions or stem[-_ID:] in sessions or not sessions.isdisjoint(folder.rsplit("/", _DEPTH_MAX)[1:])


def _walk(top: Path, found: Found, kind: Transcripts) -> Iterator[tuple[str, os.stat_result]]:
    """Every transcript below, no link followed, the newest folders' names last as they come; bounded."""
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
                        if depth < kind.depth:
                            waiting.append((entry.path, depth + 1))
                    elif kind.is_one(entry.path) and entry.is_file(follow_symlinks=False):
                        yield entry.path, entry.stat(follow_symlinks=False)
        except FileNotFoundError:
            continue  # this person does not use the program, or the folder is gone
        except OSError as error:
            found.troubles.append(f"{plain(folder)}: {error.strerror}")
