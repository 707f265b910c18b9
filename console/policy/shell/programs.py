"""What is known of programs: which of their arguments are files, hosts or programs. Data, ``resources/policy/programs.json``.

A program is described by its options and operands. What the description does not name is not certain, so it asks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from console.domain.errors import UsageProblem
from console.policy.shell.fronts import Front, read_fronts

KINDS = frozenset(
    # a file it reads (a folder: all below it), looks at, reads through links too, writes, makes, removes; reads if it is there;
    # reads what a pattern of git's may mean; reads and removes; unsure: takes a value, and asks; pair: two texts;
    # patch: one whose targets are changed; data: a text, or a file behind an @; contained: what asks only outside of a sandbox;
    # sql: a statement; database: a name, or an address; exec: a command up to a semicolon, run with each name that is found;
    # setting: one of git, which may name a program
    [
        "text",
        "read",
        "list",
        "follow",
        "write",
        "device",
        "make",
        "delete",
        "maybe",
        "pathspec",
        "move",
        "host",
        "url",
        "package",
        "remote",
        "run",
        "ask",
        "unsure",
        "data",
        "patch",
        "pair",
        "contained",
        "sql",
        "exec",
        "setting",
        "database",
        "inner",
        "format",
    ]
)
_OPTION_KINDS = ("flags", "optional", *sorted(KINDS - {"inner", "move", "maybe", "pathspec", "format"}))
_FIELDS = {
    *_OPTION_KINDS, "_comment", "operands", "given", "commands", "stop", "single", "apart", "digits", "shallow", "skip", "special",
    "environment", "swallows", "here", "writes_here", "runner", "like", "names", "follows", "skips", "unskips", "without", "depth", "reads",
    "names_only",
}  # fmt: skip


_Known = TypeVar("_Known")


@dataclass(frozen=True, slots=True)
class Description:
    """One program, or one of its subcommands."""

    options: Mapping[str, str] = field(default_factory=dict)
    """``--output`` -> the kind of its value; ``flags``: it takes none; ``optional``: a glued one that is text."""
    operands: tuple[str, ...] = ()
    """Kinds in order; a ``*`` at the end of one takes all that the others leave."""
    given: tuple[tuple[frozenset[str], tuple[str, ...]], ...] = ()
    """Options that change what the operands are: ``grep -e PATTERN FILE...``."""
    commands: Mapping[str, Description] = field(default_factory=dict)
    stop: bool = False
    """Options end at the first operand (no GNU permutation)."""
    single: bool = False
    """Long options have one dash."""
    apart: bool = False
    """An option's value is always the next word."""
    digits: bool = False
    """``-5`` is a number."""
    shallow: bool = False
    """A folder among the operands is looked at, not walked through."""
    skip: int = 0
    """Operands before the other command (``timeout 5 CMD``)."""
    special: str = ""
    """Read by code of ours too: ``sed``, ``awk``, ``find``, ``copy``."""
    environment: tuple[tuple[str, str], ...] = ()
    here: tuple[str, ...] = ()
    """Without a file it reads all below the folder it runs in: ``always``, or when one of these options is given."""
    follows: tuple[str, ...] = ()
    """Options with which it follows links below the folders that it reads."""
    skips: frozenset[str] = frozenset()
    """What it leaves out of them, as in ``walk.Way``."""
    unskips: tuple[tuple[str, str], ...] = ()
    """Options that take one of these back (``-t:hidden``), or all."""
    without: tuple[str, ...] = ()
    """Options whose value is a name that it leaves out."""
    depth: tuple[str, ...] = ()
    """Options whose value is how deep it goes."""
    names_only: bool = False
    """Of the folders that it reads it shows names and sizes, and opens no file."""
    reads: str = "read"
    """How it reads the folder that it runs in: ``read``, ``tracked`` (git: files that it tracks) or ``worktree`` (others too)."""
    writes_here: int = -1
    """It makes files where it runs unless it has more than so many operands; -1: it does not."""
    swallows: str = ""
    """Why a rule that allows it swallows what is denied; empty: it does not."""
    runner: bool = False
    """Runs another program under other rights, elsewhere, or out of sight: denied unless a rule for it is marked unconfined."""

    @property
    def is_described(self) -> bool:
        """Whether its arguments are known at all."""
        return bool(self.options or self.operands or self.commands or self.special)


@dataclass(frozen=True, slots=True)
class Catalogue:
    """All descriptions by name, and lists of names."""

    programs: Mapping[str, Description]
    builtins: frozenset[str]
    """Builtins of the shell that are no programs: never allowed."""
    protected: tuple[str, ...]
    """Globs of files that make other programs run something: writing one asks, whatever is allowed."""
    spellings: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """By program: long options that have a short one."""
    fronts: Mapping[str, Front] = field(default_factory=dict)
    """Programs that start others."""

    def of(self, name: str) -> Description | None:
        """The description of a program by the last part of its path; versions (``python3.11``) read as the program."""
        return _versioned(self.programs, name)

    def front_of(self, name: str) -> Front | None:
        """How a program by that name starts others; None: it does not, as far as is known."""
        return _versioned(self.fronts, name)


def _versioned(known: Mapping[str, _Known], name: str) -> _Known | None:
    found = known.get(name)
    return known.get(name.rstrip("0123456789.-")) if found is None and name[-1:].isdigit() else found


def read_catalogue(document: object) -> Catalogue:
    """Reads the parsed data. Raises UsageProblem with the place of the first mistake."""
    top = _mapping(document, "programs.json")
    programs: dict[str, Description] = {}
    for name, found in _mapping(top.get("programs"), "programs").items():
        made = _description(_mapping(found, name), name, programs)
        for one in (name, *_words(found.get("names", ""), name)):
            programs[one] = made
    for why_name, runners in (("swallowers", False), ("runners", True)):
        for why, names in _mapping(top.get(why_name), why_name).items():
            for name in _words(names, why_name):
                programs.setdefault(name, Description(swallows=why, runner=runners))
    protected = top.get("protected")
    if not isinstance(protected, list) or not all(isinstance(one, str) for one in protected):
        raise UsageProblem("programs.json: protected is not a list of globs.", "See resources/policy/programs.json.")
    builtins = frozenset(_words(top.get("builtins"), "builtins"))
    fronts = read_fronts(_mapping(top.get("fronts", {}), "fronts"))
    return Catalogue(programs, builtins, tuple(protected), _spellings(top.get("spellings", {})), fronts)


def _spellings(found: object) -> dict[str, dict[str, str]]:
    made: dict[str, dict[str, str]] = {}
    for names, pairs in _mapping(found, "spellings").items():
        for pair in () if names == "_comment" else _words(pairs, names):
            long, _, short = pair.partition("=")
            if not (long.startswith("--") and len(short) == 2 and short.startswith("-")):
                raise UsageProblem(f"programs.json: spellings: {names}: {pair!r} is no pair.", "Write --output=-o.")
            for name in names.split():
                made.setdefault(name, {})[long] = short
    return made


def _description(found: Mapping[str, Any], where: str, known: Mapping[str, Description]) -> Description:
    for name in found:
        if name not in _FIELDS:
            raise UsageProblem(f"programs.json: {where}: {name!r} is not known.", f"Known are {', '.join(sorted(_FIELDS))}.")
    like = known.get(str(found.get("like", ""))) or Description()
    options = dict(like.options)
    for kind in _OPTION_KINDS:
        options.update((option, kind) for option in _words(found.get(kind, ""), where))
    commands = {
        one: _description(_mapping(inner, f"{where} {names}"), f"{where} {names}", known)
        for names, inner in _mapping(found.get("commands", {}), where).items()
        for one in names.split()
    }
    given = [(frozenset(names.split()), _kinds(kinds, where)) for names, kinds in _mapping(found.get("given", {}), where).items()]
    return Description(
        options,
        _kinds(found.get("operands", ""), where) or like.operands,
        tuple(given) or like.given,
        commands,
        stop=found.get("stop", like.stop) is True,
        single=found.get("single", like.single) is True,
        apart=found.get("apart", like.apart) is True,
        digits=found.get("digits", like.digits) is True,
        shallow=found.get("shallow", like.shallow) is True,
        skip=int(found.get("skip", like.skip)),
        special=str(found.get("special", like.special)),
        environment=tuple((str(k), str(v)) for k, v in _mapping(found.get("environment", {}), where).items()),
        writes_here=int(found.get("writes_here", like.writes_here)),
        here=_words(found.get("here", ""), where) or like.here,
        reads=str(found.get("reads", like.reads)),
        follows=_words(found.get("follows", ""), where) or like.follows,
        skips=frozenset(_words(found.get("skips", ""), where)) or like.skips,
        unskips=tuple((one.partition(":")[0], one.partition(":")[2]) for one in _words(found.get("unskips", ""), where)) or like.unskips,
        without=_words(found.get("without", ""), where) or like.without,
        depth=_words(found.get("depth", ""), where) or like.depth,
        names_only=found.get("names_only", like.names_only) is True,
        swallows=str(found.get("swallows", "")),
        runner=found.get("runner", False) is True,
    )


def _kinds(text: object, where: str) -> tuple[str, ...]:
    found = _words(text, where)
    for one in found:
        if one.rstrip("*") not in KINDS:
            raise UsageProblem(f"programs.json: {where}: {one!r} is no kind.", f"Kinds are {', '.join(sorted(KINDS))}.")
    return found


def _words(text: object, where: str) -> tuple[str, ...]:
    if not isinstance(text, str):
        raise UsageProblem(f"programs.json: {where}: {text!r} is not a string of words.", "Put spaces between them.")
    return tuple(text.split())


def _mapping(found: object, where: str) -> Mapping[str, Any]:
    if not isinstance(found, dict):
        raise UsageProblem(f"programs.json: {where} is not an object.", "See resources/policy/programs.json.")
    return found
