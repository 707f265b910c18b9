"""What lies below a folder at this moment, as far as rules are about it: one walk, the way that the program itself would go.

A walk is bounded (``ENTRIES_MAX``, ``SECONDS_MAX``, shared by all walks of one judgement). Whatever it did not see is said, never guessed.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Protocol

from console.policy.files.glob_index import key_of
from console.policy.rules.rule import Rule
from console.policy.way import Way

ENTRIES_MAX = 20_000
"""Entries of folders that one judgement looks at."""
SECONDS_MAX = 0.05
"""Processor time of the deciding thread that walks of one judgement may take."""
CLOCK_SECONDS_MAX = 1.0
"""The same by the clock, for a disk that is slow to answer: a busy machine alone does not make ordinary work ask."""
_MAGIC = re.compile(r"[*?\[\]\\{}]")


@dataclass(frozen=True, slots=True)
class Listing:
    """What lies in one folder, not below it. Names are an agent's: hostile."""

    folders: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    state: str = ""
    """Empty: all of it; ``unreadable``; ``limit``: there is more than was looked at."""
    names: frozenset[str] = field(init=False, compare=False)
    text: str = field(init=False, compare=False)
    """All names, with a slash around each: what no name has."""

    def __post_init__(self) -> None:
        every = (*self.folders, *self.links, *self.others)
        object.__setattr__(self, "names", frozenset(every))
        object.__setattr__(self, "text", "/".join(("", *every, "")))


class Facts(Protocol):
    """The part of ``paths.Facts`` that a walk asks."""

    @property
    def kind(self) -> str:
        """``missing``, ``folder`` and others."""
        ...

    @property
    def real(self) -> str:
        """The path without links; empty: not for certain."""
        ...


class Disk(Protocol):
    """The part of ``paths.Files`` that a walk asks."""

    def look(self, path: str) -> Facts:
        """Facts of an absolute path; never raises."""
        ...

    def listing(self, folder: str) -> Listing:
        """What lies in a folder; never raises."""
        ...

    def text(self, path: str) -> str | None:
        """What a small plain file holds; None: it cannot be read, or is larger."""
        ...


@dataclass(frozen=True, slots=True)
class Found:
    """What a walk came upon."""

    rule: Rule | None = None
    """The rule that covers ``path``."""
    path: str = ""
    limit: str = ""
    """Why not everything was looked at; empty: everything was."""
    links: tuple[str, ...] = ()
    """Links that the program would follow, unless something was found before."""


class Watch:
    """Rules that may mean something below a folder, by names that such a path must hold beside the folder's own."""

    def __init__(self, rules: Iterable[Rule], folders: Sequence[str]) -> None:
        own = [piece for folder in folders for piece in folder.split("/") if piece]
        self._by_name: dict[str, list[Rule]] = {}
        self._by_text: dict[str, list[Rule]] = {}
        self.always: tuple[Rule, ...] = ()
        for rule in rules:
            for whole, text in key_of(rule, own):
                if whole:
                    self._by_name.setdefault(whole, []).append(rule)
                elif text:
                    self._by_text.setdefault(text, []).append(rule)
                else:
                    self.always += (rule,)
        self._texts = re.compile("|".join(map(re.escape, self._by_text))) if self._by_text else None

    def passes(self, listing: Listing) -> bool:
        """Whether no name of a folder can make a rule cover anything."""
        return self._by_name.keys().isdisjoint(listing.names) and (self._texts is None or self._texts.search(listing.text) is None)

    def raised(self, name: str) -> list[Rule]:
        """Rules that may cover a path with this name in it."""
        found = list(self._by_name.get(name, ()))
        if self._texts is not None and self._texts.search(name):
            found += [rule for text, rules in self._by_text.items() if text in name for rule in rules]
        return found

    def among(self, names: Sequence[str], text: str, folders: Sequence[str]) -> Found:
        """The first of many names below the folders that a rule covers; ``text``: all of them, with a slash around each component."""
        raised = [*self.always, *(rule for one, rules in self._by_name.items() if f"/{one}/" in text for rule in rules)]
        raised += [rule for one, rules in self._by_text.items() if one in text for rule in rules]
        for name in names if raised else ():
            paths = tuple(f"{one.rstrip('/')}/{name}" for one in folders)
            if rule := next((rule for rule in raised if _covered(rule, paths, folder=False)), None):
                return Found(rule, paths[0])
        return Found()


@dataclass(frozen=True, slots=True)
class _Folder:
    real: str
    names: tuple[str, ...]
    """The folder as it was named, and as it is: rules may mean either."""
    level: int
    raised: tuple[Rule, ...]
    ignored: _Ignored
    touched: bool = False
    """It has a name that is touched, or lies in such a folder."""


def walk(folders: Sequence[str], watch: Watch, disk: Disk, way: Way) -> Found:
    """What of the watched lies below a folder that has these names, the last one its real one; the nearest first."""
    pending = deque([_Folder(folders[-1], tuple(one.rstrip("/") for one in folders), 0, watch.always, _above(folders[-1], disk, way))])
    links: list[str] = []
    unread = ""
    while pending:
        here = pending.popleft()
        if 0 <= way.depth <= here.level:
            continue
        listing = disk.listing(here.real)
        if listing.state == "limit":
            return Found(limit=f"more lies below {folders[0]} than is looked at ({ENTRIES_MAX:,} entries, {SECONDS_MAX * 1000:.0f} ms)")
        if listing.state:
            unread = unread or f"{here.real} cannot be read, so what lies in it is not known"
            continue
        ignored = here.ignored.below(here.real, listing, disk)
        plain = not here.raised and watch.passes(listing)
        folders_here = _entered(listing.folders, ignored, way)
        for name, folder in _named(folders_here, () if plain else _seen((*listing.links, *listing.others), ignored, way)):
            raised = here.raised if plain else (*here.raised, *watch.raised(name))
            paths = tuple(f"{one}/{name}" for one in here.names)
            touched = here.touched or not way.only or fnmatchcase(name, way.only)
            if touched and (rule := next((rule for rule in raised if _covered(rule, paths, folder)), None)):
                return Found(rule, paths[0])
            if folder:
                pending.append(_Folder(f"{here.real.rstrip('/')}/{name}", paths, here.level + 1, raised, ignored, touched))
        if way.follows:
            links += [f"{here.real.rstrip('/')}/{name}" for name in _seen(listing.links, ignored, way)]
    return Found(limit=unread, links=tuple(links))


def files_below(folder: str, disk: Disk, way: Way) -> tuple[str, ...] | None:
    """Every file that a program comes upon below a folder, links with what they lead to; None: that cannot be told, so it may be any."""
    pending = deque([(folder.rstrip("/"), 0, _above(folder.rstrip("/") or "/", disk, way), not way.only)])
    found: list[str] = []
    while pending:
        here, level, above, is_touched = pending.popleft()
        if 0 <= way.depth <= level:
            continue
        listing = disk.listing(here or "/")
        if listing.state:
            return None
        ignored = above.below(here, listing, disk)
        for name in _entered(listing.folders, ignored, way):
            pending.append((f"{here}/{name}", level + 1, ignored, is_touched or fnmatchcase(name, way.only)))
        for name in _seen((*listing.links, *listing.others), ignored, way):
            if name not in ignored.names and (is_touched or fnmatchcase(name, way.only)):
                found.append(f"{here}/{name}")
        for name in _seen(listing.links, ignored, way):
            facts = disk.look(f"{here}/{name}")
            if way.follows and (facts.kind == "folder" or not facts.real):
                return None
            found += [facts.real] if facts.kind != "folder" and facts.real else []
    return tuple(found)


def _covered(rule: Rule, paths: Sequence[str], folder: bool) -> bool:
    return any(rule.covers_path(path) or (folder and rule.covers_path(path + "/")) for path in paths)


def _named(folders: Iterable[str], others: Iterable[str]) -> Iterator[tuple[str, bool]]:
    yield from ((name, True) for name in folders)
    yield from ((name, False) for name in others)


def _seen(names: Iterable[str], ignored: _Ignored, way: Way) -> Iterable[str]:
    """The names that the program does not pass over."""
    return (name for name in names if name[0] != ".") if "hidden" in way.skips and ignored.firm else names


def _entered(names: Iterable[str], ignored: _Ignored, way: Way) -> Iterator[str]:
    """The folders that the program would go into."""
    left = way.without | ignored.names | ({".git"} if "git" in way.skips else frozenset())
    return (name for name in _seen(names, ignored, way) if name not in left and f"{name}/" not in left)


@dataclass(frozen=True, slots=True)
class _Ignored:
    """Plain names of ignore files (gitignore(5)); those of folders alone have a slash behind them.

    What a pattern means is not asked: its names are looked at like others.
    """

    names: frozenset[str] = frozenset()
    firm: bool = True
    """No file takes anything back (``!name``), which holds for hidden names as well."""
    reads: tuple[str, ...] = ()
    """Files that are honoured."""
    above: frozenset[str] = frozenset()
    """Names that hold for all folders below; ``names`` has those of one folder besides."""

    def below(self, folder: str, listing: Listing, disk: Disk) -> _Ignored:
        """The same with what the folder's own files say."""
        found = [name for name in self.reads if name in listing.names]
        if not found:
            return self if self.names == self.above else _Ignored(self.above, self.firm, self.reads, self.above)
        return _joined(self, [disk.text(f"{folder.rstrip('/')}/{name}") for name in found])


def _joined(before: _Ignored, texts: Sequence[str | None]) -> _Ignored:
    everywhere, here, firm = set(before.above), set[str](), before.firm
    for text in texts:
        firm = firm and text is not None
        for line in (text or "").splitlines():
            word = line.strip()
            firm = firm and not word.startswith("!")
            name = word.strip("/")
            if name and not word.startswith("#") and "/" not in name and not _MAGIC.search(name):
                (here if word.startswith("/") else everywhere).add(f"{name}/" if word.endswith("/") else name)
    if not firm:  # which names it takes back is not asked: none is left out
        return _Ignored(firm=False, reads=before.reads)
    return _Ignored(frozenset(everywhere | here), True, before.reads, frozenset(everywhere))


def _above(folder: str, disk: Disk, way: Way) -> _Ignored:
    """What the ignore files of the folders above say. Without a repository .gitignore means nothing."""
    reads = tuple(sorted(way.skips - {"hidden", "git"}))
    if not reads:
        return _Ignored()
    pieces = folder.strip("/").split("/") if folder != "/" else []
    chain = ["/" + "/".join(pieces[:at]) for at in range(len(pieces) + 1)]
    if not any(disk.look(f"{one.rstrip('/')}/.git").kind != "missing" for one in chain):
        reads = tuple(one for one in reads if one != ".gitignore")
    made = _Ignored(reads=reads)
    for one in chain[:-1]:
        there = [f"{one.rstrip('/')}/{name}" for name in reads]
        texts = [disk.text(path) for path in there if disk.look(path).kind != "missing"]
        made = _joined(made, texts) if texts and made.firm else made
    return _Ignored(made.above, made.firm, reads, made.above)


@lru_cache(maxsize=256)
def watch_of(rules: tuple[Rule, ...], folders: tuple[str, ...]) -> Watch:
    """The watch of rules over a folder; what is asked again and again is made once."""
    return Watch(rules, folders)
