"""Paths: what the disk says of one (asked through an interface), and what the file rules say of that. Link and target are both judged."""

from __future__ import annotations

import functools
import posixpath
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from console.domain.calls.permission import DangerClass, Verdict
from console.policy.files.git_folders import repository_around
from console.policy.files.glob_index import Sieve
from console.policy.files.walk import CLOCK_SECONDS_MAX, ENTRIES_MAX, SECONDS_MAX, Listing, walk, watch_of
from console.policy.rules.loading import Settings
from console.policy.rules.rule import Family, Rule
from console.policy.rules.verdicts import BY_RULE, NO_RULE, SCRATCH, Part
from console.policy.way import WHOLE, Way

_PATH_BYTES, _NAME_BYTES = 4095, 255
NULL = "/dev/null"
TEXT_MAX = 256 * 1024
"""Bytes of a file that is read to judge by (ignore files, git's settings)."""
_PLAIN_KINDS = frozenset({"file", "folder", "missing"})
ACTIONS = {"read": "read", "list": "read", "write": "write", "make": "write", "delete": "delete"}
"""What a use of a file needs in words of the rules."""
_DEEP = ("read", "write", "delete")
"""Uses of a folder that mean all that lies below it."""
_LINKS_MAX = 200
"""Links out of a folder that are looked at, where a program follows them."""
_KEPT = ("**/.git", "**/.git/**")
"""Of what is protected, what cannot be had again once it is removed. To remove another file makes no program run anything."""
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
        """Return a value that changes whenever an entry of a folder is added or removed.

        None: that cannot be known, so the folder is read each time. Empty: there is no such folder.
        """
        ...

    def listing(self, folder: str) -> Listing:
        """Return what lies in a folder, not below it. Never raises."""
        ...

    def text(self, path: str, most: int = TEXT_MAX) -> str | None:
        """What a small plain file holds; None: it cannot be read, or is larger."""
        ...


class Once:
    """Looks at each path once, so that all parts of a judgement are about the same moment; walks of all parts share one bound."""

    def __init__(self, files: Files, clocks: tuple[Callable[[], float], Callable[[], float]] = (time.thread_time, time.monotonic)) -> None:
        self._files = files
        self._seen: dict[str, Facts] = {}
        self._stamps: dict[str, tuple[int, ...] | None] = {}
        self._listings: dict[str, Listing] = {}
        self._texts: dict[str, str | None] = {}
        self._own, self._clock = clocks
        self._until = (0.0, 0.0)
        """Of the thread's own time and of the clock's: no folder is listed after these."""
        self._left = ENTRIES_MAX

    def look(self, path: str) -> Facts:
        found = self._seen.get(path)
        if found is None:
            found = self._seen[path] = self._files.look(path)
        return found

    def stamp(self, folder: str) -> tuple[int, ...] | None:
        if folder not in self._stamps:
            self._stamps[folder] = self._files.stamp(folder)
        return self._stamps[folder]

    def listing(self, folder: str) -> Listing:
        found = self._listings.get(folder)
        if found is None:
            if not self._listings:
                self._until = self._own() + SECONDS_MAX, self._clock() + CLOCK_SECONDS_MAX
            if self._left < 0 or self._own() > self._until[0] or self._clock() > self._until[1]:
                return Listing(state="limit")
            found = self._files.listing(folder)
            self._left -= len(found.names)
            found = self._listings[folder] = found if self._left >= 0 else Listing(state="limit")
        return found

    def text(self, path: str, most: int = TEXT_MAX) -> str | None:
        if path not in self._texts:
            self._texts[path] = self._files.text(path, most)
        return self._texts[path]


class NoFiles:
    """Knows no disk: every path is what it says, and nothing is there. For rules without a machine."""

    def look(self, path: str) -> Facts:
        return Facts(posixpath.normpath(path), "missing")

    def stamp(self, folder: str) -> tuple[int, ...] | None:
        return None

    def listing(self, folder: str) -> Listing:
        return Listing(state="unreadable")

    def text(self, path: str, most: int = TEXT_MAX) -> str | None:
        return None


def absolute(path: str, cwd: str) -> str:
    """``path`` from ``cwd``, with ``.`` and doubled slashes taken out and ``..`` left in: only the disk knows where that leads."""
    whole = path if path.startswith("/") else f"{cwd}/{path}"
    if whole.startswith("/") and "//" not in whole and "/./" not in whole and not whole.endswith(("/", "/.")):
        return whole
    return "/" + "/".join(piece for piece in whole.split("/") if piece not in ("", "."))


class FileRules:
    """The file rules of one policy, compiled."""

    def __init__(self, settings: Settings, protected: Iterable[Rule] = (), *, has_scratch: bool = False) -> None:
        self._shared = _shared(settings.workspace) if has_scratch else ""
        self._lists = {
            (kind, action): tuple(rule for rule in settings.of(kind, Family.FILE) if rule.action == action)
            for kind in ("deny", "ask", "allow")
            for action in ("read", "write", "delete")
        }
        self._sieves = {key: Sieve(rules) for key, rules in self._lists.items()}
        self._stems = {key: tuple((rule, rule.stem, rule.stem.rstrip("/")) for rule in rules) for key, rules in self._lists.items()}
        self._denying = frozenset(rule.text for rule in settings.of("deny", Family.FILE))
        self._protected = tuple(protected)
        self._kept = tuple(rule for rule in self._protected if rule.pattern in _KEPT)
        self._any_protected, self._any_kept = _sieve(self._protected), _sieve(self._kept)

    def judge(self, use: str, path: str, cwd: str, files: Files, way: Way = WHOLE) -> Part:
        """A verdict on one use (``read list write make delete``) of a path as an agent wrote it; ``way``: how a folder is gone through."""
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
        candidates: tuple[str, ...] = (flat,) if flat == facts.real else (flat, facts.real)
        text = f"{use} {facts.real}" if flat == facts.real else f"{use} {flat} -> {facts.real}"
        is_folder = facts.kind == "folder"
        names, touched = tuple(f"{path.rstrip('/')}/" for path in candidates) if is_folder and use in _DEEP else candidates, candidates
        if is_folder and ((use == "delete" and way.only) or (use == "write" and way.there)):  # the folder itself stays
            touched = tuple(f"{one.rstrip('/')}{_unknown(depth)}" for one in candidates for depth in _PROBED)
        verdict, rule, why = self._by_rules(use, touched, is_folder and touched is candidates, files)
        if verdict is not Verdict.DENY and is_folder and use in _DEEP:
            below = self._below(use, candidates, files, way)
            if below is not None and (
                _worse(below[0], verdict) or rule in (NO_RULE, SCRATCH)
            ):  # what was found says more than that no rule is there
                verdict, rule, why = below
        danger = (DangerClass.DESTROYS if use == "delete" else DangerClass.PERSISTS).value if rule.startswith("protected ") else ""
        return Part(text, verdict, rule, "file", why, ACTIONS[use], use, names, way, danger=danger)

    def judge_device(self, path: str, cwd: str, files: Files) -> Part:
        """A verdict on a write to what may be a device: one that is asks, as a file that would be written, unless a rule denies it."""
        part = self.judge("write", path, cwd, files)
        if part.rule != "devices":
            return part
        real = files.look(absolute(path, cwd)).real or posixpath.normpath(absolute(path, cwd))
        names = tuple(dict.fromkeys((posixpath.normpath(absolute(path, cwd)), real)))
        if rule := self._first("deny", "write", names):
            return Part(f"write {real}", Verdict.DENY, rule.text, "file", "blocked by rule", "write", "write", names)
        why = f"destroys: {real} is a device, and what lies on it is overwritten"
        return Part(f"write {real}", Verdict.ASK, "devices", "file", why, "write", "write", names, danger=DangerClass.DESTROYS.value)

    def judge_names(self, folder: str, top: str, names: Sequence[str], text: str, files: Files) -> Part:
        """A verdict on a read of many files below ``top`` by a program that works in ``folder``: the folder's own, unless one is named."""
        facts = files.look(folder)
        candidates = (folder,) if folder == facts.real else (folder, facts.real)
        verdict, rule, why = self._by_rules("read", candidates, True, files)
        rules = [rule for kind in ("deny", "ask") for rule in self._lying_below(kind, "read", (top,))]
        found = watch_of(tuple(rules), (top,)).among(names, text, (top,)) if rules else None
        if verdict is not Verdict.DENY and found is not None and found.rule is not None:
            listed = "deny" if found.rule.text in self._denying else "ask"
            verdict, rule, why = Verdict.ASK, found.rule.text, f"{found.path} is among what it reads: {BY_RULE[listed]}"
        return Part(f"read {facts.real}", verdict, rule, "file", why, "read", "read", tuple(f"{one.rstrip('/')}/" for one in candidates))

    def _by_rules(self, use: str, candidates: Sequence[str], is_folder: bool, files: Files) -> tuple[Verdict, str, str]:
        action = ACTIONS[use]
        spellings = (*candidates, *(path + "/" for path in candidates)) if is_folder else candidates
        for kind, verdict in (("deny", Verdict.DENY), ("ask", Verdict.ASK)):
            for one in _bound_by(action):
                if rule := self._first(kind, one, spellings):
                    return verdict, rule.text, BY_RULE[kind]
        if action != "read" and (caught := self._is_protected(action, candidates, is_folder and use in _DEEP, files)):
            return Verdict.ASK, caught, _REMOVES if action == "delete" else _PERSISTS
        return self._allowed(action, use, candidates, is_folder)

    def _below(self, use: str, candidates: tuple[str, ...], files: Files, way: Way) -> tuple[Verdict, str, str] | None:
        """What is worse below a folder, and where links lead that are followed, than at it; None: nothing."""
        pending, done = [candidates], [candidates[-1].rstrip("/") + "/"]
        while pending:
            here = pending.pop(0)
            answer, links = self._walked(use, here, files, way)
            if answer is not None:
                return answer
            for link in links:
                facts = files.look(link)
                if facts.kind == "missing" or f"{facts.real}/".startswith(tuple(done)):
                    continue
                if len(done) > _LINKS_MAX:
                    return Verdict.ASK, "recursive read", f"more links below {candidates[0]} are followed than are looked at"
                if answer := self._led(link, facts, files):
                    return answer
                done.append(facts.real.rstrip("/") + "/")
                if facts.kind == "folder":
                    pending.append((link, facts.real))
        return None

    def _walked(self, use: str, here: tuple[str, ...], files: Files, way: Way) -> tuple[tuple[Verdict, str, str] | None, tuple[str, ...]]:
        """Check what lies below the folders. A change of a denied entry is denied; a read of one, which the call did not name, asks."""
        action = ACTIONS[use]
        if use != "read" and (named := self._place_below(action, here)):
            return (Verdict.DENY, named.text, "a rule blocks something below this folder"), ()
        for kinds in (("deny", "ask"),) if use == "read" else (("deny",), ("ask",)):
            rules = [rule for kind in kinds for rule in self._lying_below(kind, action, here)]
            if not rules and not way.follows:
                continue
            found = walk(here, watch_of(tuple(rules), here), files, way)
            if found.rule is not None:
                verdict = Verdict.DENY if use != "read" and kinds == ("deny",) else Verdict.ASK
                why = f"{found.path} lies below: {BY_RULE['deny' if found.rule.text in self._denying else 'ask']}"
                return (verdict, found.rule.text, why), ()
            if found.limit:
                return (Verdict.ASK, "recursive read" if use == "read" else "recursive change", found.limit), ()
            if use == "read":
                return None, found.links
        return self._touched(action, here, files, way) if action == "delete" or way.there else None, ()

    def _touched(self, action: str, here: tuple[str, ...], files: Files, way: Way) -> tuple[Verdict, str, str] | None:
        """What asks below a folder that is removed: what git keeps, and what may not be written, since to remove it is a change as well.

        A tree that is too large to look at is removed without a question, like any other build output: the nearest was looked at.
        Where files are changed that lie there now: those that other programs run, and links to somewhere else.
        """
        own = self._kept if action == "delete" else self._protected
        rules = [rule for kind in ("deny", "ask") for rule in self._lying_below(kind, "write", here)] if action == "delete" else []
        rules += [rule for rule in own if any(rule.may_lie_below(one) for one in here)]
        found = walk(here, watch_of(tuple(rules), here), files, way)
        if found.rule is not None and found.rule in own:
            return Verdict.ASK, found.rule.text, f"{_REMOVES if action == 'delete' else _PERSISTS}: {found.path} lies below"
        if found.rule is not None:
            return (
                Verdict.ASK,
                found.rule.text,
                f"{found.path} lies below: {BY_RULE['deny' if found.rule.text in self._denying else 'ask']}",
            )
        if found.limit and action != "delete":
            return Verdict.ASK, "recursive change", found.limit
        return next(
            (why for link in found.links if action != "delete" and (why := self._led(link, files.look(link), files, "write"))), None
        )

    def _place_below(self, action: str, folders: Sequence[str]) -> Rule | None:
        """Return a deny rule for a place below a folder that is changed. It holds whether that place exists, or can be listed, or not."""
        inside = tuple(folder.rstrip("/") + "/" for folder in folders)
        return next((rule for rule, stem, _ in self._stems["deny", action] if stem.startswith(inside)), None)

    def _led(self, link: str, facts: Facts, files: Files, action: str = "read") -> tuple[Verdict, str, str] | None:
        """Why a link below a folder may not be followed without a question; None: what it leads to may be read, or changed."""
        why = next((why for one in (link, facts.real) if (why := _of_the_kernel(one, action))), "") or _not_plain(facts)
        if why:
            return Verdict.ASK, "plain files only", f"{link} is followed, and {why}"
        verdict, rule, why = self._by_rules(action, (link, facts.real), facts.kind == "folder", files)
        return None if verdict is Verdict.ALLOW else (Verdict.ASK, rule, f"{link} leads to {facts.real}, and is followed: {why}")

    def _allowed(self, action: str, use: str, candidates: Sequence[str], is_folder: bool) -> tuple[Verdict, str, str]:
        named = ""
        for path in candidates:
            # A folder itself may be looked at where all in it may be read; it may be changed only where it is covered itself.
            spellings = (path, path + "/") if is_folder and use in ("read", "list", "make") else (path,)
            rule = self._first("allow", action, spellings)
            if rule is None and self._shared and all(_is_scratch(one, self._shared) for one in candidates):
                return Verdict.ASK, SCRATCH, f"{path} lies in the folder for what is needed for a moment, and others may use that as well"
            if rule is None:
                where = "" if path == candidates[0] else ", where the link leads"
                return Verdict.ASK, NO_RULE, f"no rule says whether {path} may be {_PAST[action]}{where}"
            named = rule.text
        below = candidates if is_folder and use in ("read", "delete") else ()
        if open_below := next((path for path in below if not self._covers_below(action, path)), ""):
            return Verdict.ASK, NO_RULE, f"no rule says whether all that may lie below {open_below} may be {_PAST[action]}"
        return Verdict.ALLOW, named, "allowed by rule"

    def _covers_below(self, action: str, folder: str) -> bool:
        """Whether whatever may lie below a folder may be read, or removed: names that no rule can mean by themselves, at several depths."""
        return all(self._first("allow", action, (folder.rstrip("/") + _unknown(depth),)) is not None for depth in _PROBED)

    def _first(self, kind: str, action: str, spellings: Sequence[str]) -> Rule | None:
        """The first rule of a list that covers one of the spellings of a path."""
        return self._sieves[kind, action].first(spellings)

    def _lying_below(self, kind: str, action: str, folders: Sequence[str]) -> list[Rule]:
        """The rules of a list that may mean something below one of the folders; most rules are about quite other places."""
        inside = [folder.rstrip("/") + "/" for folder in folders]
        return [
            rule
            for rule, stem, flat in self._stems[kind, action]
            if any((stem.startswith(one) or one.startswith(flat)) and rule.may_lie_below(one) for one in inside)
        ]

    def _is_protected(self, action: str, candidates: Sequence[str], deep: bool, files: Files) -> str:
        if rule := (self._any_kept if action == "delete" else self._any_protected).first(candidates):
            return rule.text
        if self._protected and (folder := next((found for one in candidates if (found := repository_around(one, files))), "")):
            return f"protected {folder}/** (git takes it for a repository)"
        return self._protected[0].text if deep and action != "delete" and self._protected else ""


@functools.lru_cache(maxsize=64)
def _sieve(rules: tuple[Rule, ...]) -> Sieve:
    """The same for every policy that has the same rules."""
    return Sieve(rules)


def _shared(workspace: str) -> str:
    """The folder right below /tmp that the workspace lies in, where it does: that is no scratch."""
    return "/".join(workspace.split("/")[:3]) if workspace.startswith(_SCRATCH) else _SCRATCH.rstrip("/") + "//"


def _is_scratch(path: str, shared: str) -> bool:
    return f"{path}/".startswith(_SCRATCH) and not f"{path}/".startswith(f"{shared}/")


def _unknown(depth: int) -> str:
    """A path below a folder that no rule can know by its names."""
    return "/\x01" * depth


def _bound_by(action: str) -> tuple[str, ...]:
    return (action, "write") if action == "delete" else (action,)


def _worse(one: Verdict, other: Verdict) -> bool:
    return one is Verdict.DENY or (one is Verdict.ASK and other is Verdict.ALLOW)


_SCRATCH = "/tmp/"  # noqa: S108
_PERSISTS = "persists: other programs run what is written there"
_REMOVES = "destroys: it removes what git keeps of the work"
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
