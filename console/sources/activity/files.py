"""Find which files tell what an agent did, and what is new in them. Blocks; for a thread of its own. Only files of the given agents."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple, Protocol

from console.domain.activity import Entry, FilePlace, Kind, source_id
from console.domain.spend import Answer
from console.sources.activity.tail import Signature, Tailed, database_signature, signature, tail
from console.sources.activity.text import unreadable
from console.sources.change_tracker import Freshness
from console.sources.home_dirs import homes, is_below, read_foreign
from console.sources.spend.transcript_files import Folder

SEEK_S = 3.0
"""Between two searches for a file that is not there (yet)."""
TOLD_S = 10.0
"""Between two looks at files of which a watch would have told that they changed."""
SOUGHT_S = 30.0
"""Between two searches where a watch would have told that there is something to be found, and the program's own file is there."""
WIDE_S = 30.0
"""Between two searches everywhere."""
_SUBS_MAX = 1000
_SUB = re.compile(r"^agent-([0-9A-Za-z_-]{1,64})\.jsonl\Z")


class Whereabouts(NamedTuple):
    """By what the files of one agent are found. Kept, so that they are found again once it ended."""

    source: str
    uid: int
    """Whose its files must be."""
    session: str
    cwd: str
    sub: str = ""
    """A sub-agent's id within its session."""
    home: str = ""
    """The home of an agent that Watchfloor started; empty: any home."""
    # Its files lie below that home, with no link on the way, and belong to the home's owner.

    def as_json(self) -> str:
        return json.dumps(self._asdict())


def whereabouts(text: str) -> Whereabouts | None:
    """From ``as_json``; None: not known."""
    try:
        return Whereabouts(**json.loads(text))
    except (ValueError, TypeError):
        return None


Price = Callable[[Answer], int | None]


class ActivityLines(Protocol):
    """One file's lines as entries; what earlier ones said goes on from read to read."""

    def take(self, line: bytes) -> list[Entry]:
        """What a line says; one that cannot be read is an entry of its own."""
        ...

    def state(self) -> str:
        """For the next read."""
        ...

    def resume(self, state: str) -> None:
        """From what ``state`` gave."""
        ...


@dataclass(frozen=True, slots=True)
class Activity:
    """How one agent kind writes down what a session did."""

    source: str
    """As in ``Whereabouts.source``."""
    folder: Folder
    lines: Callable[[Price], ActivityLines]
    find: Callable[[list[Path], Whereabouts, bool], Path | None]
    """(folders to look in, whose file, whether everywhere in them) -> the session's own file."""
    moves: bool = False
    """Whether a session's file may go elsewhere while it is followed."""
    has_sub_files: bool = False
    """Whether sub-agents write files of their own beside the session's: ``SESSION/subagents/agent-ID.jsonl``."""
    rows: Callable[[str, FilePlace | None, int, Whereabouts], Tailed] | None = None
    """Of a kind that keeps its sessions in one SQLite database: what is new of one session, in the place of a file's lines."""


@dataclass(frozen=True, slots=True)
class Batch:
    """What is new in one file, and how far it is read with it."""

    entries: tuple[Entry, ...]
    place: FilePlace
    again: bool


@dataclass(slots=True)
class _Open:
    path: str
    place: FilePlace | None
    lines: ActivityLines
    seen: Signature | None = None
    """As it was when it was read last."""
    now: Signature | None = None
    """As it was when it was looked at last."""
    more: bool = True
    label: str = ""
    """Which sub-agent, where the file is not the agent's own."""


@dataclass(slots=True)
class AgentFiles:
    """The files of one agent."""

    where: Whereabouts
    activity: Activity
    root: Path | None
    price: Price
    kept: dict[str, FilePlace]
    """How far each was read before, by path."""
    has_row: Callable[[str], bool] = lambda _sub: False
    """Whether a sub-agent of this session is an agent of its own: then its file is read for that one."""
    fresh: Freshness = field(default_factory=Freshness)
    problem: str = ""
    """Why something of it cannot be read, or empty."""
    gone: bool = False
    """It was read, and the program's own file is not there any more."""
    backlog: bool = False
    """There is more of its history than was read so far."""
    read_at: float = 0.0
    """Monotonic moment of the last read."""
    told_until: float = 0.0
    """The monotonic time until which a followed agent with ``is_told`` need not be looked at."""
    _open: dict[str, _Open] = field(default_factory=dict)
    _main: str = ""
    """The program's own file, or empty: not found yet."""
    _seek_at: float = 0.0
    _wide_at: float = 0.0
    _subs: str = ""
    """Where its sub-agents write, if that is there."""
    _places: tuple[str, ...] = ()
    _heard: tuple[int, ...] = ()
    """What the watches reported before the last look; empty: not everything is watched, or not everything was searched."""
    _told: tuple[int, ...] = ()
    """The same of the last look after which nothing was left to be read; empty: there was none."""
    _sought: int = 0
    """What they said of where its sub-agents write before the last search."""

    def broke(self, why: str) -> None:
        """Note that a file is beyond us. The reason is shown, and the file is read again only when it changes."""
        self.problem, self.backlog = why, False
        for one in self._open.values():
            one.more = False

    def has_news(self) -> bool:
        """Return whether ``read`` would find anything. It takes a stat for each file and now and then a search; with a watch, less
        often."""
        tick, told = time.monotonic(), self._marks()
        if told and told == self._told and tick < self.told_until:
            return False
        is_sought = bool(told) and told[-1] == self._sought
        if tick >= self._seek_at + (self._pause() - SEEK_S if is_sought else 0.0):
            self._seek_at, self._sought, is_sought = tick + SEEK_S, told[-1] if told else 0, bool(told)
            self._seek()
        has_news = False
        for path, one in self._open.items():
            one.now = signature(path) if self.activity.rows is None else database_signature(path)
            has_news = has_news or one.more or one.now != one.seen
        self._heard, self.told_until = told if is_sought else (), tick + TOLD_S
        self._told = () if has_news else self._heard
        return has_news

    def _pause(self) -> float:
        """Return the seconds between two searches for sub-agents where a watch covers them."""
        # Shorter when the program's own file is gone: it may now write elsewhere.
        main = self._open.get(self._main)
        return SOUGHT_S if main is not None and main.now is not None else TOLD_S

    @property
    def is_told(self) -> bool:
        """Whether nothing is new in it, and a watch tells when that changes."""
        return bool(self._told)

    def places(self) -> tuple[str, ...]:
        """Of what a watch would tell that something in it may be new; the same object while they are the same."""
        if not self._places and self._open:
            logs = (f"{path}-wal" for path in self._open) if self.activity.rows is not None else ()
            subs = self._subs or next(iter(self._open)).removesuffix(".jsonl")  # where its sub-agents would write
            self._places = (*self._open, *logs, subs)
        return self._places

    def _marks(self) -> tuple[int, ...]:
        """What the watches say of everything that belongs to it; empty: some of it is not watched, or not known yet."""
        places = self.places()
        if not places:
            return ()
        of = self.fresh.of
        told = [of(path) for path in places[:-1]]
        told.append(self.fresh.within(self._subs) if self._subs else of(places[-1]))
        return tuple(told) if all(told) else ()

    def read(self) -> Iterator[Batch]:
        """A bounded part of what is new in each file, as ``has_news`` saw them."""
        self.backlog, problems, there, self.read_at = False, [], 0, time.monotonic()
        for one in list(self._open.values()):
            there += one.now is not None
            if not one.more and one.now == one.seen:
                continue
            owner = self._owner(one.path)
            if owner is None:
                problems.append("a link leads out of its home")
                continue
            rows = self.activity.rows
            found = tail(one.path, one.place, owner) if rows is None else rows(one.path, one.place, owner, self.where)
            one.seen, one.more = one.now, found.more
            if found.is_gone or found.problem:
                problems += [found.problem] if found.problem else []
                continue
            if found.again or one.place is None or not one.place.offset:
                one.lines = self._lines()
            entries = [*_said(found.left_out, found.too_long, found.place), *self._entries(one, found.lines)]
            state = one.lines.state()
            one.place = found.place if found.place.state == state else replace(found.place, state=state)
            self.backlog = self.backlog or found.more
            yield Batch(tuple(entries), one.place, found.again)
        self.problem = "; ".join(problems)
        self.gone = bool(self._open) and not there
        if not self.backlog and not problems:
            self._told = self._heard

    def _owner(self, path: str) -> int | None:
        """Whose the file must be; None: it is not to be read."""
        if not self.where.home:
            return self.where.uid
        home = Path(self.where.home)
        return home.stat(follow_symlinks=False).st_uid if is_below(home, Path(path).parent) else None

    def _entries(self, one: _Open, lines: list[bytes]) -> Iterator[Entry]:
        for line in lines:
            try:
                found = one.lines.take(line)
            except (LookupError, AttributeError, ArithmeticError, ValueError, TypeError, RecursionError):
                found = [unreadable(line)]  # a shape that nobody thought of
            for entry in found:
                yield entry if not one.label else _labelled(entry, one.label)

    def _lines(self) -> ActivityLines:
        return self.activity.lines(self.price)

    def _seek(self) -> None:
        if not self._open:
            for path in self.kept:  # also those that are gone: that is said
                if self.where.session in path and (not self.where.sub or path.endswith(f"/agent-{self.where.sub}.jsonl")):
                    self._know(path)
        self._main = self._sought_main()
        if self._main:
            self._know(self._main)
            if self.activity.has_sub_files and not self.where.sub:
                self._seek_subs(f"{self._main.removesuffix('.jsonl')}/subagents")

    def _sought_main(self) -> str:
        tick = time.monotonic()
        known = self._main or next((path for path, one in self._open.items() if not one.label), "")
        if known and (not self.activity.moves or os.path.isfile(known)):  # noqa: PTH113 - a hundred times a second
            return known
        wide = tick >= self._wide_at
        self._wide_at = tick + WIDE_S if wide else self._wide_at
        return str(self.activity.find(list(self._folders()), self.where, wide) or "")

    def _seek_subs(self, folder: str) -> None:
        """Sub-agents that ended before they had a row: what they did is shown with their session."""
        had, self._subs, names = self._subs, "", []
        try:
            with os.scandir(folder) as entries:
                names = sorted(e.name for _, e in zip(range(_SUBS_MAX), entries, strict=False) if _SUB.match(e.name))
            self._subs = folder
        except OSError:
            pass
        if self._subs != had:
            self._places = ()
        for name in names:
            path, found = f"{folder}/{name}", _SUB.match(name)
            if found and path not in self._open and not self.has_row(found[1]) and _finished(Path(path)):
                self._know(path, found[1])

    def _know(self, path: str, label: str = "") -> None:
        if path in self._open:
            return
        place, lines = self.kept.get(path), self._lines()
        if place is not None:
            lines.resume(place.state)
        found = _SUB.match(path.rpartition("/")[2])
        if found and not self.where.sub and not label:
            label = found[1]
        self._open[path] = _Open(path, place, lines, label=label)
        self._places = ()

    def _folders(self) -> Iterator[Path]:
        variable, folder, below = self.activity.folder
        if self.where.home:
            yield Path(self.where.home) / folder / below
            return
        named = os.environ.get(variable, "") if self.root is None and variable else ""
        if named.startswith("/"):
            yield Path(named) / below
        for home in homes(self.root):
            yield home / folder / below


def _finished(path: Path) -> bool:
    """Return whether the sub-agent's note marks it as finished. One whose note cannot be read waits for its row."""
    try:
        note = json.loads(read_foreign(path.with_suffix("").with_suffix(".meta.json"), 65_536).data)
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(note, dict) and note.get("finished") is True


def _labelled(entry: Entry, label: str) -> Entry:
    return replace(entry, who=f"{entry.who or 'sub-agent'} · {label}", turn=0)


def _said(left_out: int, too_long: int, place: FilePlace) -> Iterator[Entry]:
    """What was not read is said where it would stand."""
    if left_out:
        text = f"{left_out:,} bytes of its history from before are not shown: it was too long to be read whole."
        yield Entry(Kind.NOTE, source_id(f"{place.path}:{place.inode}", "history"), who="watchfloor", text=text)
    if too_long:
        text = f"{too_long:,} lines were too long to be read."
        yield Entry(Kind.ERROR, source_id(f"{place.path}:{place.inode}:{place.offset}", "long"), who="watchfloor", text=text, failed=True)
