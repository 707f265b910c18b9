"""Programs that build, test and run what the agent can write, and the texts around them, where a profile allows them in a sandbox."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

from console.domain.calls.permission import Verdict
from console.policy.files.paths import FileRules, Files, absolute
from console.policy.git.repository import repository_of
from console.policy.rules.profiles import PATTERN, Profile
from console.policy.rules.verdicts import SCRATCH, Part
from console.policy.shell.commands import Program
from console.policy.shell.fronts import Started, reaching, read_front
from console.policy.shell.lexer import Word
from console.policy.shell.operands import Reading
from console.policy.shell.plain import Plain, plainer
from console.policy.shell.programs import Catalogue
from console.policy.way import WHOLE, Way

SHELLS = frozenset(["sh", "bash", "dash", "zsh", "ksh", "ash", "rbash", "mksh"])
_BEFORE_MAGIC = re.compile(r"((?:[^*?\[\\/]*/)*)[^/\\]*[*?\[]")
"""The folder before the first component of a path that is a pattern."""
_CERTAIN = re.compile(r"(?:[\w.,@%+=:*?-]|\[!?(?:[a-z]-[a-z]|[A-Z]-[A-Z]|[0-9]-[0-9]|[\w.,@%+])+\])+", re.ASCII)
"""A component with nothing but ``*``, ``?`` and plain sets (bash(1), Pattern Matching): no classes, no ``[^``, no groups."""
_NAMES_MAX = 200
"""Words of a command after names took the place of patterns."""


class WorkspacePrograms:
    """Of one judgement. Without a profile that allows any, nothing is one."""

    def __init__(self, profile: Profile | None, workspace: str, rules: FileRules, files: Files, catalogue: Catalogue) -> None:
        self.programs = profile.work if profile is not None else frozenset[str]()
        self._workspace, self._rules, self._files, self._catalogue = workspace, rules, files, catalogue

    def runs(self, argv: tuple[str, ...], program: Program, cwd: str) -> bool:
        """Whether it builds, tests or runs what the agent can write: by its name, or because it lies in the workspace."""
        if not self.programs:
            return False
        if program.names & SHELLS and not (script_of(argv) or any(not word.startswith("-") for word in argv[1:])):
            return False  # what it would read from its input, nobody has seen
        if "/" not in program.called or program.in_search:
            return self._is_named(program.name)
        called = absolute(program.called, cwd)
        home = self._files.look(self._workspace).real.rstrip("/")
        target, folder = program.real or self._files.look(called).real, self._files.look(posixpath.dirname(called)).real
        if not (home and f"{folder}/".startswith(f"{home}/")) and not self._is_scratch(f"{folder}/x", cwd):
            return False
        # The python of a virtual environment is a link to the system's.
        is_own = (home and target.startswith(f"{home}/")) or self._is_scratch(target, cwd)
        return bool(is_own) or self._is_named(posixpath.basename(target))

    def _is_scratch(self, path: str, cwd: str) -> bool:
        """Whether a path lies where an agent in a sandbox keeps what it needs for a moment."""
        return self._rules.judge("read", path, cwd, self._files).rule == SCRATCH

    def started(self, argv: tuple[str, ...], program: Program, cwd: str) -> Started:
        """What a program starts by itself, where a profile allows such programs."""
        fronts = (self._catalogue.front_of(name) for name in sorted(program.names) if self.programs)
        front = next((one for one in fronts if one is not None), None)
        started = read_front(front, argv) if front is not None else Started()
        if started.fetched and started.inner and not self._holds(started.inner[0], cwd):
            return replace(started, inner=(), asks=f"{program.called} may fetch {started.inner[0]} from a registry, and runs it")
        words = argv if front is None else self._handed(started, argv)
        every = self._catalogue.front_of("*")
        return replace(started, asks=reaching(every, words)) if self.programs and words and every and not started.asks else started

    def _handed(self, started: Started, argv: tuple[str, ...]) -> tuple[str, ...]:
        """A program and its words that are handed on to a module, or to a script by the name of a known program."""
        if started.inner:
            return started.inner if started.is_module and self._catalogue.front_of(started.inner[0]) is None else ()
        return argv[argv.index(started.verb) :] if started.verb in argv and self._is_named(started.verb) else ()

    def expanded(self, words: Sequence[Word], cwd: str) -> tuple[str, ...] | None:
        """The words with the names in place of each pattern, as the shell would put them now; None: that is not certain, or too many.

        All that lies in the workspace (``*``) is not put in place: who removes that is asked.
        """
        if not self.programs or not any(word.pattern for word in words):
            return None
        made: list[str] = []
        for word in words:
            names = self._meant(word, cwd) if word.pattern else [word.value]
            if names is None or len(made) + len(names) > _NAMES_MAX:
                return None
            made += names
        return tuple(made)

    def _meant(self, word: Word, cwd: str) -> list[str] | None:
        """The names that one pattern means: links on the way are passed, as the shell passes them. None: that is not certain."""
        folder = _BEFORE_MAGIC.match(word.value)
        if word.tilde or word.quoted or folder is None:
            return None
        pieces = word.value[folder.end(1) :].split("/")
        places = [folder[1]]
        for at, piece in enumerate(pieces):
            passed = self._passed(places, piece, cwd, is_last=at + 1 == len(pieces))
            if passed is None:
                return None
            places = passed
        return None if self._is_all(folder[1], pieces, places, cwd) else places or [word.value]

    def _passed(self, places: list[str], piece: str, cwd: str, *, is_last: bool) -> list[str] | None:
        """What one component of a pattern means below each of these folders; ``""`` at the end means the folders themselves."""
        found: list[str] = []
        for place in places:
            facts = self._files.look(absolute(place or ".", cwd))
            if facts.kind == "unknown":
                return None
            if facts.kind != "folder":
                continue
            listing = self._files.listing(facts.real)
            fitting = [""] if is_last and not piece else _fitting(piece, listing.names)
            if listing.state or fitting is None or len(found) + len(fitting) > _NAMES_MAX:
                return None
            found += [f"{place}{name}" if is_last else f"{place}{name}/" for name in fitting]
        return found

    def _is_all(self, folder: str, pieces: list[str], found: list[str], cwd: str) -> bool:
        """Whether a pattern means all that lies in the workspace."""
        place = self._files.look(absolute(folder or ".", cwd)).real
        if place != self._files.look(self._workspace).real:
            return False
        shown = [name for name in self._files.listing(place).names if name[0] != "."]
        return not re.search(r"\w", "".join(pieces[-2:])) or (len(pieces) == 1 and len(found) >= len(shown) > 1)

    def names(self, word: Word, found: list[Part], cwd: str) -> Part | None:
        """A pattern of names that are only read: all lie below its folder, or where links in it lead. None: it may be more than that."""
        folder = _BEFORE_MAGIC.match(word.value)
        changes = any(part.action in ("write", "delete") for part in found)
        if not self.programs or word.tilde or changes or folder is None or ".." in word.value.split("/"):
            return None
        if re.search(r"(?:\A|/)\.[^/]*[*?\[]", word.value[folder.end(1) :]):
            return None  # it may mean the folder above
        part = self._rules.judge("read", folder[1] or ".", cwd, self._files, Way(follows=True))
        if part.verdict is not Verdict.ALLOW:
            return part
        return replace(part, text=word.value, verdict=Verdict.ASK, rule=PATTERN, reason=f"every name that it can mean lies in {part.text}")

    def placed(self, reading: Reading) -> Reading:
        """What ``find -exec`` runs, with the folders that it looks in for what it finds there: whatever that is lies below them."""
        names = [word for inner in reading.inners for word in inner if "{}" in word]
        clear = all(word == "{}" for word in names) and all(re.match(r"[\w./]", place) for place in reading.places)
        if not (self.programs and reading.places and names and clear):
            return reading
        inners = [tuple(w for word in inner for w in (reading.places if word == "{}" else (word,))) for inner in reading.inners]
        # A folder that is named beside what was found is meant as a whole.
        is_named = any(word.rstrip("/") in {place.rstrip("/") for place in reading.places} for inner in reading.inners for word in inner)
        return replace(reading, inners=inners, exact=True, way=WHOLE if is_named else reading.way)

    def plainer(self, text: str, cwd: str) -> Plain | None:
        """A refused text in simple commands that stand for it; None: it is not certain what it does."""
        found = repository_of(cwd, self._files) if "--show-toplevel" in text and self.programs else None
        return plainer(text, found.folder if found is not None else "") if self.programs else None

    def _holds(self, name: str, cwd: str) -> bool:
        """Whether a program that would else be fetched by its name is a known one, or is installed in the workspace."""
        if "/" in name or self._is_named(name):
            return "@" not in name
        home, folder = self._files.look(self._workspace).real.rstrip("/"), self._files.look(cwd).real
        while home and f"{folder}/".startswith(f"{home}/"):
            if self._files.look(f"{folder}/node_modules/.bin/{name}").kind == "file":
                return True
            folder = posixpath.dirname(folder)
        return False

    def _is_named(self, name: str) -> bool:
        return name in self.programs or name.rstrip("0123456789.-") in self.programs


def script_of(argv: tuple[str, ...]) -> str:
    """What ``sh -c`` would run."""
    for at, word in enumerate(argv[1:], 1):
        if word.startswith("-") and not word.startswith("--") and "c" in word:
            return next((one for one in argv[at + 1 :] if not one.startswith("-")), "")
    return ""


def _fitting(piece: str, names: Iterable[str]) -> list[str] | None:
    """The names that one component of a path means to every version of bash; None: that is not certain."""
    every = sorted(names)
    if not re.search(r"[*?\[\\]", piece):
        return [piece] if piece in every else [] if piece not in ("", ".", "..") else None
    if not _CERTAIN.fullmatch(piece) or (piece[0] == "." and (fnmatchcase(".", piece) or fnmatchcase("..", piece))):
        return None
    shown = [one for one in every if one[0] != "." or piece[0] == "."]
    found = [one for one in shown if fnmatchcase(one, piece)]
    # Letters of a range depend on the language that is set, and so do characters that are several bytes.
    varies = "-" in piece and found != [one for one in shown if fnmatchcase(one.lower(), piece.lower())]
    return None if varies or (re.search(r"[?\[]", piece) and not all(one.isascii() for one in shown)) else found
