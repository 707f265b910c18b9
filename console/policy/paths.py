"""Paths: what the disk says of one (asked through an interface), and what the file rules say of that. Link and target are both judged."""

from __future__ import annotations

import functools
import posixpath
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from console.domain.permission import Verdict
from console.policy.loading import Settings
from console.policy.rules import Family, Rule
from console.policy.sieve import Sieve
from console.policy.verdicts import NO_RULE, Part

_PATH_BYTES, _NAME_BYTES = 4095, 255
NULL = "/dev/null"
_PLAIN_KINDS = frozenset({"file", "folder", "missing"})
ACTIONS = {"read": "read", "list": "read", "write": "write", "make": "write", "delete": "delete"}
"""What a use of a file needs in words of the rules."""
_DEEP = ("read", "write", "delete")
"""Uses of a folder that mean all that lies below it."""
_PROBED = (1, 2, 3, 8)
"""Depths below a folder at which a name that no rule can know must be covered, for all of the folder to be."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What the disk said of a path at one moment, from one descriptor."""

    real: str
    """The path with every link followed; empty when that could not be found out. For what is missing: the real folder and the name."""
    kind: str = "file"
    """``file``, ``folder``, ``missing``, ``fifo``, ``socket``, ``device``, ``loop`` or ``unknown``."""
    names: int = 1
    """Hard links of a file."""
    inode: tuple[int, int] | None = None
    changed_ns: int = 0
    """When the inode last changed (ctime), in nanoseconds."""


class Files(Protocol):
    """Who answers what a path is. The rules never touch the disk themselves."""

    def look(self, path: str) -> Facts:
        """Facts of an absolute path; never raises, ``unknown`` when the disk does not say."""
        ...

    def stamp(self, folder: str) -> tuple[int, ...] | None:
        """What is another with every entry that comes to a folder or goes.

        None: nobody can tell, so it is looked at each time. Empty: there is no such folder.
        """
        ...


class Once:
    """Looks at each path once, so that all parts of a judgement are about the same moment."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self._seen: dict[str, Facts] = {}
        self._stamps: dict[str, tuple[int, ...] | None] = {}

    def look(self, path: str) -> Facts:
        found = self._seen.get(path)
        if found is None:
            found = self._seen[path] = self._files.look(path)
        return found

    def stamp(self, folder: str) -> tuple[int, ...] | None:
        if folder not in self._stamps:
            self._stamps[folder] = self._files.stamp(folder)
        return self._stamps[folder]


class NoFiles:
    """Knows no disk: every path is what it says, and nothing is there. For rules without a machine."""

    def look(self, path: str) -> Facts:
        return Facts(posixpath.normpath(path), "missing")

    def stamp(self, folder: str) -> tuple[int, ...] | None:
        return None


def absolute(path: str, cwd: str) -> str:
    """``path`` from ``cwd``, with ``.`` and doubled slashes taken out and ``..`` left in: only the disk knows where that leads."""
    whole = path if path.startswith("/") else f"{cwd}/{path}"
    if whole.startswith("/") and "//" not in whole and "/./" not in whole and not whole.endswith(("/", "/.")):
        return whole
    return "/" + "/".join(piece for piece in whole.split("/") if piece not in ("", "."))


class FileRules:
    """The file rules of one policy, compiled."""

    def __init__(self, settings: Settings, protected: Iterable[Rule] = ()) -> None:
        self._lists = {
            (kind, action): tuple(rule for rule in settings.of(kind, Family.FILE) if rule.action == action)
            for kind in ("deny", "ask", "allow")
            for action in ("read", "write", "delete")
        }
        self._sieves = {key: Sieve(rules) for key, rules in self._lists.items()}
        self._stems = {key: tuple((rule, rule.stem, rule.stem.rstrip("/")) for rule in rules) for key, rules in self._lists.items()}
        self._protected = tuple(protected)
        self._any_protected = _sieve(self._protected)

    def judge(self, use: str, path: str, cwd: str, files: Files) -> Part:
        """A verdict on one use (``read list write make delete``) of a path as an agent wrote it."""
        text = f"{use} {path}"
        if why := _trouble(path):
            return Part(text, Verdict.DENY, "paths", "file", why)
        literal = absolute(path, cwd)
        if literal == NULL:
            return Part(text, Verdict.ALLOW, NULL, "file", "nothing is kept there")
        facts = files.look(literal)
        flat = posixpath.normpath(literal)
        if why := next((why for one in (literal, flat, facts.real) if (why := _of_the_kernel(one, use))), ""):
            return Part(text, Verdict.DENY, "devices", "file", f"{literal} {why}")
        if why := _not_plain(facts):
            return Part(text, Verdict.DENY, "plain files only", "file", f"{literal} {why}")
        candidates = (flat,) if flat == facts.real else (flat, facts.real)
        text = f"{use} {facts.real}" if flat == facts.real else f"{use} {flat} -> {facts.real}"
        is_folder = facts.kind == "folder"
        names = tuple(f"{path.rstrip('/')}/" for path in candidates) if is_folder and use in _DEEP else candidates
        verdict, rule, why = self._by_rules(use, candidates, is_folder)
        return Part(text, verdict, rule, "file", why, ACTIONS[use], use, names)

    def _by_rules(self, use: str, candidates: Sequence[str], is_folder: bool) -> tuple[Verdict, str, str]:
        action = ACTIONS[use]
        denying = (action, "write") if action == "delete" else (action,)
        deep = is_folder and use in _DEEP
        for kind, verdict in (("deny", Verdict.DENY), ("ask", Verdict.ASK)):
            for one in denying:
                spellings = (*candidates, *(path + "/" for path in candidates)) if is_folder else candidates
                if rule := self._first(kind, one, spellings):
                    return verdict, rule.text, f"the {kind} list has it"
                if deep and (rule := self._below(kind, one, candidates)):
                    return verdict, rule.text, f"the {kind} list has something below this folder"
        if action != "read" and (caught := self._is_protected(candidates, deep)):
            return Verdict.ASK, caught, "other programs run what is written there"
        return self._allowed(action, use, candidates, is_folder)

    def _allowed(self, action: str, use: str, candidates: Sequence[str], is_folder: bool) -> tuple[Verdict, str, str]:
        named = ""
        for path in candidates:
            # A folder itself may be looked at where all in it may be read; it may be changed only where it is covered itself.
            spellings = (path, path + "/") if is_folder and use in ("read", "list", "make") else (path,)
            rule = self._first("allow", action, spellings)
            if rule is None:
                where = "" if path == candidates[0] else ", where the link leads"
                return Verdict.ASK, NO_RULE, f"no rule says whether {path} may be {_PAST[action]}{where}"
            named = rule.text
        if is_folder and use == "read" and (open_below := next((path for path in candidates if not self._covers_below(path)), "")):
            return Verdict.ASK, NO_RULE, f"no rule says whether all that may lie below {open_below} may be read"
        return Verdict.ALLOW, named, "the allow list has it"

    def _covers_below(self, folder: str) -> bool:
        """Whether whatever may lie below a folder may be read: names that no rule can mean by themselves, at several depths."""
        stem = folder.rstrip("/")
        return all(self._first("allow", "read", (stem + "/\x01" * depth,)) is not None for depth in _PROBED)

    def _first(self, kind: str, action: str, spellings: Sequence[str]) -> Rule | None:
        """The first rule of a list that covers one of the spellings of a path."""
        return self._sieves[kind, action].first(spellings)

    def _below(self, kind: str, action: str, folders: Sequence[str]) -> Rule | None:
        """The first rule of a list that may mean something below one of the folders; most rules are about quite other places."""
        inside = [folder.rstrip("/") + "/" for folder in folders]
        for rule, stem, flat in self._stems[kind, action]:
            for folder in inside:
                if (stem.startswith(folder) or folder.startswith(flat)) and rule.may_lie_below(folder):
                    return rule
        return None

    def _is_protected(self, candidates: Sequence[str], deep: bool) -> str:
        if rule := self._any_protected.first(candidates):
            return rule.text
        return self._protected[0].text if deep and self._protected else ""


@functools.lru_cache(maxsize=64)
def _sieve(rules: tuple[Rule, ...]) -> Sieve:
    """The same for every policy that has the same rules."""
    return Sieve(rules)


_PAST = {"read": "read", "write": "written", "delete": "deleted"}


def _trouble(path: str) -> str:
    if not path:
        return "an empty path names nothing"
    try:
        raw = path.encode()
    except UnicodeEncodeError:
        return "the path is not valid UTF-8"
    if "\0" in path or not path.replace("\n", "").isprintable():
        return "the path holds characters that cannot be shown"
    if len(raw) > _PATH_BYTES or any(len(piece.encode()) > _NAME_BYTES for piece in path.split("/")):
        return "the path is longer than a file's name can be"
    return ""


def _of_the_kernel(path: str, use: str) -> str:
    if path.startswith(("/dev/", "/proc/self/fd", "/proc/thread-self")) or path == "/dev":
        return "is no file of the disk"
    if ACTIONS[use] != "read" and path.startswith(("/proc/", "/sys/")):
        return "is the kernel's, not a file of the disk"
    return ""


def _not_plain(facts: Facts) -> str:
    if facts.kind not in _PLAIN_KINDS or not facts.real:
        return {"loop": "leads through a loop of links", "unknown": "cannot be looked at"}.get(facts.kind, f"is a {facts.kind}, not a file")
    if facts.kind == "file" and facts.names != 1:
        return f"has {facts.names} names (hard links); another may be outside of what the rules allow"
    return ""
