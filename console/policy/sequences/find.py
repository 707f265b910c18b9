"""Find forbidden sequences: of which step a checked call is, and what follows from the steps that its lineage took before.

Pure. Marks are never removed. Other calls between the steps do not matter, nor which agent of the lineage made them.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from console.domain.calls.lineage import UNKNOWN, Match, Seen
from console.policy.files.glob_index import Sieve
from console.policy.files.paths import Files, Once
from console.policy.files.walk import ENTRIES_MAX, files_below
from console.policy.rules.rule import Rule
from console.policy.rules.verdicts import Judgement, Part
from console.policy.tools.catalogue import KINDS, Tool
from console.policy.tools.sql import Statement
from console.policy.tools.statements import tables_of

VALUES_MAX = 32
"""Tables of one call that are told apart; more are any."""
MARKS_MAX = 200
"""Values of one step of one pattern that a lineage is remembered by; what comes beyond is remembered as any."""
_TEXT_MAX = 200
_SHOWING = re.compile("ls|dir|vdir|find|fd|fdfind|du|tree|head|tail|wc|sort|uniq|grep|cut|tr|cd|echo|true")
"""Programs that show names, or what comes in from them; files that they are told to open are parts of their own."""
_OPENING = frozenset(["-exec", "-execdir", "-ok", "-okdir", "-x", "--exec", "-X", "--exec-batch", "--files0-from"])
"""Words with which one of these has files opened."""


@dataclass(frozen=True, slots=True)
class Matcher:
    """One way to take a step: all that is given must hold of one and the same thing that a call does."""

    actions: frozenset[str] = frozenset()
    paths: tuple[Rule, ...] = ()
    hosts: tuple[Rule, ...] = ()
    scopes: frozenset[str] = frozenset()
    tools: tuple[str, ...] = ()
    """Globs, lower case."""
    commands: tuple[tuple[str, ...], ...] = ()
    """A program and words in this order (globs), whatever stands between them."""
    any_path: Sieve = field(init=False, repr=False, compare=False)
    any_tool: re.Pattern[str] | None = field(init=False, repr=False, compare=False, default=None)
    """All ``paths``, and all ``tools``, in one: a name is looked at once."""
    by_program: Mapping[str, tuple[tuple[str, ...], ...]] = field(init=False, repr=False, compare=False)
    """``commands`` by the program that each begins with; those of which a pattern says which one under the empty name."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "any_path", Sieve(self.paths))
        object.__setattr__(self, "any_tool", _either([fnmatch.translate(glob) for glob in self.tools]))
        found: dict[str, tuple[tuple[str, ...], ...]] = {}
        for words in self.commands:
            key = "" if any(sign in words[0] for sign in "*?[") else words[0]
            found[key] = (*found.get(key, ()), words)
        object.__setattr__(self, "by_program", found)


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a pattern."""

    name: str
    any: tuple[Matcher, ...]


@dataclass(frozen=True, slots=True)
class Pattern:
    """A sequence that is forbidden to a lineage."""

    name: str
    why: str
    steps: tuple[Step, ...]
    same: str = ""
    """``table``, ``path`` or ``host``: it must be the same one in all steps."""
    tighten: str = ""
    """See ``Match.tighten``."""
    built_in: bool = False


@dataclass(frozen=True, slots=True)
class Thing:
    """One thing that a call does: a file it touches, a host it reaches, a program it runs, or the tool itself."""

    actions: frozenset[str] = frozenset()
    names: tuple[str, ...] = ()
    tool: str = ""
    scopes: frozenset[str] = frozenset()
    tables: tuple[str, ...] = ()
    argv: tuple[str, ...] = ()
    anywhere: bool = False
    """The program may run whatever its words name."""
    number: int = -1
    """Below -1: things with the same number are one thing, a statement that writes and reads. -1: it is one by itself."""


@dataclass(slots=True)
class Advance:
    """What a call makes of the marks of its lineage."""

    completes: Match | None = None
    earlier: tuple[tuple[str, str, str], ...] = ()
    """Keys of the marks that led to it."""
    taken: list[tuple[Match, str, str]] = field(default_factory=list)
    """New and old marks that the call takes: match, step's name, value."""


OWN_HOME = ".watchfloor"
"""The folder of a workspace in which the agent's own program keeps its files: no read of the workspace is about it."""


def things_of(name: str, argument: str, detail: str, tool: Tool, found: Judgement, files: Files) -> tuple[Thing, ...]:
    """Everything that a judged call does, as far as can be told from it. ``files`` tells what lies in a folder that is read whole."""
    disk, is_shown = Once(files), _only_shows(argument, found)
    scopes = frozenset(str(scope) for scope in tool.scopes)
    every = []
    for part in found.parts:
        if part.use == "run":
            every.append(Thing(tool=name, scopes=scopes, argv=part.names, anywhere="marked unconfined" in part.reason))
        elif part.action:
            every.append(Thing(_actions(part, is_shown), _all_names(part, disk), name, scopes))
    if tool.statement is not None:
        every += _of_statement(name, argument, detail, tool, tool.statement)
    elif not every or tool.family not in ("file", "patch", "network", "shell", "argv"):
        every.append(_tool_thing(name, tool, scopes))
    return tuple(every)


def matches_of(patterns: Iterable[Pattern], things: Sequence[Thing], text: str = "") -> tuple[Match, ...]:
    """The patterns of which these things are a step, each with all that takes one."""
    found = []
    for pattern in patterns:
        seen = tuple(
            Seen(at, number if thing.number == -1 else thing.number, _values(thing, pattern.same))
            for at, step in enumerate(pattern.steps)
            for number, thing in enumerate(things)
            if any(_is(thing, one) for one in step.any)
        )
        if seen:
            names = tuple(step.name for step in pattern.steps)
            found.append(Match(pattern.name, pattern.why, names, bool(pattern.same), seen, pattern.tighten, text[:_TEXT_MAX]))
    return tuple(found)


def advance(marks: Collection[tuple[str, str, str]], matches: Iterable[Match]) -> Advance:
    """Which steps a call takes after these marks (keys), and the pattern that it would complete, if any."""
    made = Advance()
    for match in matches:
        kept: dict[str, list[str]] = {}
        for pattern, step, value in marks:
            if pattern == match.pattern:
                kept.setdefault(step, []).append(value)
        # What leads to the step: (value, the thing of this very call that took the step before, or None).
        before: list[tuple[str, int | None]] = []
        for at, name in enumerate(match.steps):
            here: list[tuple[str, int | None]] = [(value, None) for value in kept.get(name, ())]
            for seen in match.seen:
                if seen.step == at:
                    here += [(value, seen.thing) for value in _reached(match, seen, before, first=at == 0)]
            new = [value for value, thing in here if thing is not None]
            if at == len(match.steps) - 1:
                if new and made.completes is None:
                    made.completes = match
                    made.earlier = _earlier(marks, match, new)
            else:
                made.taken += [(match, name, value) for value in _bounded(dict.fromkeys(new), kept.get(name, ()))]
            before = here
    return made


def _earlier(marks: Iterable[tuple[str, str, str]], match: Match, values: Sequence[str]) -> tuple[tuple[str, str, str], ...]:
    """Keys of the marks that led here, in the order they were made."""
    about = {*values, UNKNOWN}
    any_value = UNKNOWN in values
    return tuple(key for key in marks if key[0] == match.pattern and key[1] in match.steps[:-1] and (any_value or key[2] in about))


def _bounded(values: Iterable[str], kept: Sequence[str]) -> list[str]:
    """Return the values, with new ones beyond the bound replaced by any, which forbids more. So no agent can fill the memory with names."""
    known, chosen = set(kept), []
    for value in values:
        if value not in known and len(known) >= MARKS_MAX:
            value = UNKNOWN
        if value not in chosen:
            chosen.append(value)
        known.add(value)
    return chosen


def _reached(match: Match, seen: Seen, before: Sequence[tuple[str, int | None]], *, first: bool) -> list[str]:
    values = seen.values if match.same else ("",)
    if first:
        return list(values)
    found: dict[str, None] = {}
    for value, thing in before:
        if thing == seen.thing:
            continue  # one thing is no sequence
        if not match.same:
            found[""] = None
        elif value == UNKNOWN or UNKNOWN in values:
            found[UNKNOWN] = None
        elif value in values:
            found[value] = None
    return list(found)


# --- what a thing is


def _is(thing: Thing, one: Matcher) -> bool:
    return (
        (not one.actions or bool(one.actions & thing.actions))
        and (not one.paths or any(_covers(one, name) for name in thing.names))
        and (not one.hosts or any(rule.covers_host(name, None) for rule in one.hosts for name in thing.names))
        and (not one.scopes or bool(one.scopes & thing.scopes))
        and (not one.tools or (thing.tool != "" and one.any_tool is not None and one.any_tool.match(thing.tool.lower()) is not None))
        and (not one.commands or _runs(thing, one.by_program))
    )


def _either(patterns: Sequence[str]) -> re.Pattern[str] | None:
    """One pattern for all; None: there is none."""
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns)) if patterns else None


def _covers(one: Matcher, name: str) -> bool:
    """Whether a path is one of those, or a folder that such a one may lie below."""
    if one.any_path.first((name,)) is not None:
        return True
    if not name.endswith("/") or len(name) == 1:
        return False
    return any(rule.covers_path(name[:-1]) or rule.may_lie_below(name[:-1]) for rule in one.paths)


def _runs(thing: Thing, by_program: Mapping[str, tuple[tuple[str, ...], ...]]) -> bool:
    """Whether the words begin with one of the programs, and hold its others in order."""
    argv = thing.argv
    if thing.anywhere:
        argv = tuple(word for one in argv for word in re.split(r"[^\w./:+@-]+", one) if word)
    for start in range(len(argv) if thing.anywhere else min(1, len(argv))):
        name = argv[start].rpartition("/")[2]
        for words in (*by_program.get(name, ()), *by_program.get("", ())):
            if _fits(name, words[0]) and _holds(argv[start + 1 :], words[1:]):
                return True
    return False


def _holds(found: Iterable[str], wanted: Iterable[str]) -> bool:
    rest = iter(found)
    return all(any(_fits(word, one) for word in rest) for one in wanted)


def _fits(word: str, wanted: str) -> bool:
    """Most of what is wanted is plain: patterns are translated and matched only where there is one."""
    if word == wanted or wanted.isalnum():
        return word == wanted
    return ("*" in wanted or "?" in wanted or "[" in wanted) and fnmatch.fnmatchcase(word, wanted)


def _values(thing: Thing, same: str) -> tuple[str, ...]:
    if same == "table":
        return thing.tables or (UNKNOWN,)
    if same in ("path", "host"):
        return thing.names[:VALUES_MAX] or (UNKNOWN,)
    return ("",)


def _only_shows(argument: str, found: Judgement) -> bool:
    """Whether names that it lists reach no program that would open these files."""
    runs = [part.names for part in found.parts if part.use == "run" and part.names]
    words = {word for argv in runs for word in argv}
    known = all(_SHOWING.fullmatch(argv[0].rpartition("/")[2]) for argv in runs)
    return known and words.isdisjoint(_OPENING) and not any(sign in argument for sign in ("$", "`", "<(", "while", "for "))


def _actions(part: Part, is_shown: bool) -> frozenset[str]:
    if part.use == "move":
        return frozenset({"read", "delete"})
    is_name = is_shown and part.way.shows and part.names[:1] != () and part.names[0].endswith("/")
    return frozenset({"list" if part.use == "list" or is_name else part.action})


def _all_names(part: Part, files: Files) -> tuple[str, ...]:
    """A folder that is read whole is every file in it that the program comes upon, where that can be told."""
    top, tracked = part.tracked or ("", ())
    if len(tracked) > ENTRIES_MAX:
        return part.names
    way = replace(part.way, without=part.way.without | {OWN_HOME}, only=part.way.only or part.way.shows)
    found = [f"{top.rstrip('/')}/{name}" for name in tracked]
    for name in part.names:
        inside = files_below(name, files, way) if name.endswith("/") and part.action == "read" else None
        found += [name] if inside is None else [name[:-1] or "/", *inside]
    return tuple(found)


def _tool_thing(name: str, tool: Tool, scopes: frozenset[str]) -> Thing:
    actions = set()
    if tool.connects or tool.family == "network":
        actions.add("connect")
    if tool.family == "code":
        actions.add("code")
    if tool.family in ("other", *KINDS) and tool.action:
        actions.add(tool.action)
    return Thing(frozenset(actions), (), name, scopes)


def _of_statement(name: str, argument: str, detail: str, tool: Tool, found: Statement) -> list[Thing]:
    """What a call of a database tool writes and reads, with its tables.

    What a later statement of it reads again is a thing of its own.
    """
    said = [one.lower() for one in tables_of(argument, detail)]
    connects = {"connect"} if tool.connects else set[str]()
    made = []
    if found.writes and found.written != ():
        made.append(Thing(frozenset({"write", *connects}), (), name, frozenset({"WRITE_DB"}), _tables(found.written, said), number=-2))
    if found.read or not found.writes:
        made.append(Thing(frozenset({"read", *connects}), (), name, frozenset({"READ_DB"}), _tables(found.read, said), number=-2))
    if found.verified:
        made.append(Thing(frozenset({"read"}), (), name, frozenset({"READ_DB"}), _tables(found.verified, said), number=-3))
    others = frozenset(str(scope) for scope in tool.scopes) - {"WRITE_DB", "READ_DB"}
    if others or not made:
        made.append(Thing(frozenset({tool.action, *connects}), (), name, others, number=-2))
    return made


def _tables(named: Sequence[str] | None, said: Sequence[str]) -> tuple[str, ...]:
    """The last part of the names of tables, lower case; too many, or none that is certain: any."""
    every = [*(named or ()), *said]
    tables = tuple(dict.fromkeys(one.rpartition(".")[2] for one in every))
    return (UNKNOWN,) if not tables or len(tables) > VALUES_MAX or "" in tables else tables
