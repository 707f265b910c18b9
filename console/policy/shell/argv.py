"""The arguments of one program read by its description: which files, hosts and programs they name. Whatever is not described asks."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from console.policy.shell import scripts
from console.policy.shell.programs import Description
from console.policy.way import WHOLE, Way

HERE = "the folder it runs in"
_WALKS = ("read", "follow", "pathspec", "worktree")
_NUMBER = re.compile(r"[-+]\d+\Z")
_PATTERN = re.compile(r"[*?\[\]\\/|{}]")
_DD_WORDS = frozenset({"bs", "cbs", "conv", "count", "ibs", "obs", "iflag", "oflag", "seek", "oseek", "skip", "iseek", "status"})
_ENDLESS = ("/dev/zero", "/dev/urandom", "/dev/random")
"""Devices that hold nothing of anybody's (null(4), random(4)); dd(1) reads no more of them than it writes."""
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_LOOKED_UP = re.compile(
    r"(?:@|\b(?:dst|src|dport|sport)\b\s*+(?:[=!<>]+|(?:n?eq|neq?|[gl](?:eq?|t))\s)?+\s*+)"
    r"(?!\d{1,3}(?:\.\d{1,3}){3}(?![\w.-])|\[[0-9a-fA-F:.]+\]|\*(?![\w.-])|:|\d{1,5}(?![\w.-]))\w"
)
"""A host that is no plain address, in a filter of connections (lsof(8), -i; ss(8), FILTER)."""


@dataclass(frozen=True, slots=True)
class Use:
    """One thing an argument does."""

    kind: str
    """One of ``programs.KINDS``, or ``into`` (a file or folder that ``names`` are put into)."""
    value: str
    why: str = ""
    """The option it came from, or why it asks."""
    names: tuple[str, ...] = ()
    way: Way = WHOLE
    """How a folder is gone through."""


@dataclass(slots=True)
class Reading:
    """What the arguments of a program do."""

    uses: list[Use] = field(default_factory=list)
    inners: list[tuple[str, ...]] = field(default_factory=list)
    """Commands that it runs itself. Each is checked as a command of its own."""
    exact: bool = True
    """False: an inner command gets arguments that are unknown before it runs (``xargs``, ``find -exec``)."""
    base: str = ""
    """Relative files start there, below the folder it runs in (``git -C``)."""
    drops: bool = False
    """It takes variables away from what it runs (``env -i``)."""
    places: tuple[str, ...] = ()
    """Folders in which it finds the files that stand for ``{}`` in what it runs."""
    way: Way = WHOLE
    """What of them it finds."""
    deep: bool = False
    """An option makes it walk through folders that it would only look at."""
    words: tuple[str, ...] = ()
    """Subcommand and operands, without options: what a rule's words are compared with."""
    verb: str = ""
    """The subcommand, where it is one that is described, so that no other word can be it."""

    def ask(self, why: str, value: str = "") -> None:
        self.uses.append(Use("ask", value, why))


def read_argv(argv: tuple[str, ...], described: Description) -> Reading:
    """Reads ``argv[1:]``; never raises, what is unknown is a use that asks."""
    made = Reading()
    if described.special == "find":
        _find(argv[1:], made)
        return made
    if described.special == "tar":
        argv = _dashed(argv, described)
    _Operands(_Options(argv[1:], described, made).read(), made).read()
    return made


@dataclass(frozen=True, slots=True)
class _Parted:
    """The words of a command, told apart."""

    words: tuple[str, ...]
    described: Description
    """Of the subcommand, where there is one."""
    seen: frozenset[str]
    """Options."""
    operands: list[str]
    scripts: list[str]
    """Given by options."""
    lacks: bool
    """An option had no value."""
    values: tuple[tuple[str, str], ...]
    """Options with their values."""


class _Options:
    """getopt_long(3), with what an option's value means."""

    def __init__(self, words: tuple[str, ...], described: Description, made: Reading) -> None:
        self._words = words
        self._at = 0
        self._described = described
        self._made = made
        self._seen: set[str] = set()
        self._operands: list[str] = []
        self._path: list[str] = []
        self._scripts: list[str] = []
        self._lacks = False
        self._values: list[tuple[str, str]] = []

    def read(self) -> _Parted:
        if self._described.special == "test" and (found := {"-v", "-R"} & set(self._words)):  # wherever it stands, after -- too
            self._made.uses.append(Use("run", "", f"option {min(found)} evaluates what is in brackets"))
        if self._described.special == "strings" and any(word.startswith("@") for word in self._words):
            self._made.ask("it reads more arguments from the file behind an @")
        if self._described.special == "connections" and _LOOKED_UP.search(" ".join(self._words)):
            self._made.ask("it looks up the name of a host, which tells a server that name")
        while self._at < len(self._words):
            word = self._words[self._at]
            self._at += 1
            if word == "--":
                self._operands += self._words[self._at :]
                self._at = len(self._words)
            elif word.startswith("--") and len(word) > 2:
                self._long(word)
            elif word.startswith("-") and len(word) > 1:
                self._short(word)
            elif self._described.commands and not self._operands:
                self._enter(word)
            else:
                self._operands.append(word)
                if self._described.stop:
                    self._operands += self._words[self._at :]
                    break
        self._made.words = (*self._path, *self._operands)
        seen, values = frozenset(self._seen), tuple(self._values)
        return _Parted(self._words, self._described, seen, self._operands, self._scripts, self._lacks, values)

    def _enter(self, word: str) -> None:
        inner = self._described.commands.get(word)
        self._path.append(word)
        if inner is None:
            self._made.ask(f"{word!r} is a subcommand that is not described", word)
            self._operands += self._words[self._at :]
            self._at = len(self._words)
            return
        self._described, self._made.verb = inner, self._made.verb or word

    def _long(self, word: str) -> None:
        name, glued, value = word.partition("=")
        kind = self._described.options.get(name)
        self._seen.add(name)
        if kind is None:  # an unambiguous beginning would do for getopt_long; it does not do for us
            self._made.ask(f"option {name} is not described", word)
        elif kind == "flags":
            if glued:
                self._made.ask(f"option {name} takes no value", word)
        elif kind == "optional":
            self._value("text", value, name)
        elif glued:
            self._value(kind, value, name)
        else:
            self._next(kind, name)

    def _short(self, word: str) -> None:
        if self._described.digits and _NUMBER.match(word):
            return
        if self._described.single:
            self._long(word)
            return
        for at, letter in enumerate(word[1:], 1):
            name, rest = "-" + letter, word[at + 1 :]
            kind = self._described.options.get(name)
            self._seen.add(name)
            if kind is None:
                self._made.ask(f"option {name} is not described", word)
                self._behind(word, at + 1)
                return
            if kind == "flags":
                continue
            if kind == "optional":
                self._value("text", rest, name)
            elif rest and self._described.apart:
                self._made.ask(f"which word is the value of {name} is not certain", word)
            elif rest:
                self._value(kind, rest, name)
            else:
                self._next(kind, name)
            return

    def _behind(self, word: str, at: int) -> None:
        """Letters behind one that is not described are its value, or more options: what those would use is judged too. It asks already."""
        for here, letter in enumerate(word[at:], at):
            kind = self._described.options.get("-" + letter, "")
            value = word[here + 1 :] or (self._words[self._at] if self._at < len(self._words) else "")
            if kind not in ("", "flags", "optional", "text", "ask") and value not in ("", "-"):
                self._made.uses.append(Use(kind, value, f"option -{letter}, if it is one"))
            if kind not in ("", "flags"):
                return

    def _next(self, kind: str, name: str) -> None:
        if kind in ("ask", "run"):  # whether it takes a value does not matter any more
            self._value(kind, "", name)
        elif self._at >= len(self._words):
            self._made.ask(f"option {name} has no value", name)
            self._lacks = True
        else:
            self._value("text" if kind == "pair" else kind, self._words[self._at], name)
            self._at += 2 if kind == "pair" else 1

    def _value(self, kind: str, value: str, name: str) -> None:
        self._values.append((name, value))
        kind, value = _meant(kind, value)
        if name == "-C" and kind == "list" and self._described.special != "tar":  # git: everything after it is read from there
            self._made.base = posixpath.join(self._made.base, value)
            self._made.uses.append(Use("list", self._made.base, f"option {name}"))
        elif self._described.special == "tar" and name in ("-f", "--file") and ":" in value:
            self._made.uses.append(Use("run", value, "tar runs a remote shell for an archive with a colon in its name"))
        elif name in ("--format", "--pretty") and ("%G" in value or "%(signature" in value):
            self._made.ask("it has signatures checked, by whatever program the repository names", value)
        elif name == "--max-redirect" and value != "0":
            self._made.ask("it follows redirects to unknown hosts", value)
        elif self._described.special in ("sed", "awk") and name in ("-e", "--expression", "--source"):
            self._scripts.append(value)
        elif kind in ("read", "list") and value == "-":
            return
        elif kind == "run":
            self._made.uses.append(Use("run", value, f"option {name} runs a program"))
        elif kind in ("ask", "unsure"):
            self._made.ask(f"option {name} does what cannot be checked", value)
        elif kind != "text":
            self._made.uses.append(Use(kind, value, f"option {name}"))


def _meant(kind: str, value: str) -> tuple[str, str]:
    """A value that is a text, or a file behind an ``@``, as that which it is."""
    if kind == "data" and "%output{" in value:  # curl(1), --write-out: it writes a file
        return "ask", value
    return (kind, value) if kind != "data" else ("read", value[1:]) if value[:1] == "@" else ("text", value)


class _Operands:
    """What is left when the options are read, with what they say of it."""

    def __init__(self, parted: _Parted, made: Reading) -> None:
        self._words, self._described, self._seen = parted.words, parted.described, parted.seen
        self._operands, self._scripts, self._lacks = parted.operands, parted.scripts, parted.lacks
        self._values = parted.values
        self._made = made

    def read(self) -> None:
        kinds = next((kinds for names, kinds in self._described.given if names & self._seen), self._described.operands)
        special = self._described.special
        if special == "wget":
            self._wget()
        elif special == "ps":  # letters without a dash are options as well (ps(1)); e shows the variables of each process
            self._operands = [word for word in self._operands if not re.fullmatch(r"[acfghjlmrSTuvwxZ]+|\d+", word)]
        elif special in ("sed", "awk"):
            self._script(special)
            kinds = ("read*",)
        if special == "jq" and self._operands and not self._seen & {"-f", "--from-file"} and (why := scripts.jq_trouble(self._operands[0])):
            self._made.ask(why, self._operands[0])
        if special in ("dd", "copy", "tar", "rsync"):
            {"dd": self._dd, "copy": self._copy, "tar": self._tar, "rsync": self._rsync}[special]()
        elif kinds and kinds[0] == "inner":
            self._inner()
        else:
            self._made.uses += _assigned(self._operands, kinds, self._made)
        here = self._described.here
        if self._seen & set(here):
            self._made.deep = True
            self._made.uses = [replace(use, kind="read") if (use.kind, use.why) == ("list", "argument") else use for use in self._made.uses]
        self._here(here)
        if self._described.writes_here >= 0 and len(self._operands) <= self._described.writes_here:
            self._made.uses.append(Use("make", ".", HERE))
        if special == "zip" and self._operands and "." not in posixpath.basename(self._operands[0]):
            self._made.uses.append(Use("write", f"{self._operands[0]}.zip", "zip(1) puts .zip behind a name without a dot"))
        self._go()

    def _here(self, here: tuple[str, ...]) -> None:
        """The folder that it runs in, where it reads that one without a file, or what comes in from elsewhere."""
        if {"patch", "patch*"} & set(self._described.operands) and not any(use.kind == "patch" for use in self._made.uses):
            self._made.ask("which files the patch on its input changes is not known")
        if here and (self._lacks or not self._names_files()) and ("always" in here or self._seen & set(here)):
            self._made.uses.append(Use(self._described.reads, ".", HERE))

    def _go(self) -> None:
        """How it goes through the folders that it reads, and what it changes in place."""
        described = self._described
        if described.special == "sed" and self._seen & {"-i", "--in-place"}:
            self._in_place()
        named = [value.strip("/") for option, value in self._values if option in described.without]
        depths = [value for option, value in self._values if option in described.depth]
        way = Way(
            bool(self._seen & set(described.follows)),
            frozenset(one for one in described.skips if not self._seen & {option for option, of in described.unskips if of in ("", one)}),
            frozenset(one for one in named if one and not _PATTERN.search(one)),
            max(int(one) for one in depths) if depths and all(one.isascii() and one.isdigit() and len(one) < 5 for one in depths) else -1,
            shows="*" if described.names_only else "",
        )
        if way != WHOLE:
            self._made.uses = [
                replace(use, way=way) if use.kind in ("read", "follow", "pathspec", "worktree") else use for use in self._made.uses
            ]

    def _wget(self) -> None:
        if "--max-redirect" not in self._seen or not self._seen & {"-O", "--output-document", "--spider"}:
            self._made.ask("it follows redirects to unknown hosts, or names a file after them; use --max-redirect=0 -O FILE")

    def _names_files(self) -> bool:
        """Whether files are named for certain: a word that is one only if it is there (``git diff WORD``) counts after ``--`` alone."""
        after = self._words[self._words.index("--") + 1 :] if "--" in self._words else ()
        return any(use.why == "argument" and (use.kind != "maybe" or use.value in after) for use in self._made.uses)

    def _inner(self) -> None:
        skip = self._described.skip
        if self._operands[:1] == ["-"] and "-" in self._described.options:  # env - CMD
            del self._operands[0]
            self._made.drops = True
        if "-" in self._described.options and self._seen & {"-i", "--ignore-environment", "-u", "--unset"}:
            self._made.drops = True
        if len(self._operands) > skip:
            self._made.inners.append(tuple(self._operands[skip:]))
            self._made.exact = self._described.special != "xargs"
        else:
            self._made.ask("what it runs is not said")

    def _script(self, special: str) -> None:
        if not self._scripts and not self._seen & {"-f", "--file"}:
            self._scripts += self._operands[:1]
            del self._operands[:1]
        check = scripts.sed_trouble if special == "sed" else scripts.awk_trouble
        if not self._scripts:
            self._made.ask("its script is in a file that was not read")
        for script in self._scripts:
            if why := check(script):
                self._made.ask(why, script)
        if special == "awk" and any(_VARIABLE.match(word) for word in self._operands):
            self._operands = [word for word in self._operands if not _VARIABLE.match(word)]

    def _in_place(self) -> None:
        suffixes = [found[1] for word in self._words if (found := re.match(r"(?:--in-place=|-[nErsuz]*i)(.+)\Z", word, re.DOTALL))]
        for suffix in suffixes:
            if not re.fullmatch(r"[\w.~-]+", suffix):
                self._made.ask("where the copies of changed files go cannot be checked", suffix)
                continue
            self._made.uses += [Use("write", f"{operand}{suffix}", "copy of what is changed") for operand in self._operands]
        for operand in self._operands:
            self._made.uses.append(Use("write", operand, "changed in place"))

    def _dd(self) -> None:
        """dd(1): operands with a name each. What it writes may be a device."""
        for operand in self._operands:
            name, _, value = operand.partition("=")
            kind = {"if": "read", "of": "device"}.get(name, "text" if name in _DD_WORDS else "ask")
            if kind == "ask" or not value:
                self._made.ask(f"{operand!r} is an operand that is not described", operand)
            elif kind != "text" and not (kind == "read" and value in _ENDLESS):
                self._made.uses.append(Use(kind, value, "argument"))

    def _tar(self) -> None:
        """tar(1): what it reads into an archive; of one that is listed, operands are names inside."""
        if not self._seen & {"-c", "--create"}:
            return
        archives = [value for option, value in self._values if option in ("-f", "--file")]
        folders = [value for option, value in self._values if option in ("-C", "--directory")]
        self._made.uses = [
            replace(use, kind="write") if use.kind == "read" and use.why in ("option -f", "option --file") else use
            for use in self._made.uses
        ]
        if len(folders) > 1 or len(archives) > 1:
            self._made.ask("which folder, or archive, is meant is not certain")
        at = next((at for at, word in enumerate(self._words) if word.startswith(("-C", "--directory"))), len(self._words))
        is_first = bool(folders) and not set(self._operands) & set(self._words[:at])
        for operand in self._operands:  # what stands before -C is read from where it runs
            bases = folders if is_first else ("", *folders)
            self._made.uses += [Use("read", posixpath.join(folder, operand), "argument") for folder in bases]

    def _rsync(self) -> None:
        """rsync(1): sources, and one destination. ``FOLDER/`` means what is in it."""
        if any(":" in operand for operand in self._operands):
            self._made.ask("it copies from, or to, another host")
            return
        kind = "follow" if self._seen & {"-L", "--copy-links", "--copy-unsafe-links", "-k", "--copy-dirlinks"} else "read"
        *sources, target = self._operands if len(self._operands) > 1 else (*self._operands, "")
        self._made.uses += [Use(kind, one, "source") for one in sources]
        if not sources or not target:
            return  # without a destination it lists
        if any(option.startswith("--delete") or option == "--del" for option in self._seen):
            self._made.uses.append(Use("delete", target, "--delete"))
        whole = any(one.endswith("/") or posixpath.basename(one) in ("", ".", "..") for one in sources)
        self._made.uses.append(Use("into", target, "destination", () if whole else tuple(posixpath.basename(one) for one in sources)))

    def _copy(self) -> None:
        operands, moves = list(self._operands), "--moves" in self._described.options
        target = next((use for use in self._made.uses if use.why in ("option -t", "option --target-directory")), None)
        if target is not None:
            self._made.uses.remove(target)
            destination = target.value
        elif len(operands) >= 2:
            destination = operands.pop()
        else:
            self._made.ask("it names no destination")
            return
        names = (
            () if self._seen & {"-T", "--no-target-directory"} else tuple(posixpath.basename(one.rstrip("/")) or "." for one in operands)
        )
        if {"-s", "--symbolic"} & self._seen and self._described.options.get("-r") == "flags" and not {"-r", "--relative"} & self._seen:
            self._made.uses += [Use("linked", one, destination) for one in operands]  # ln: what it says is read from where it lies
            operands = []
        self._made.uses += [Use("move" if moves else "read", one, "source") for one in operands]
        self._made.uses.append(Use("into", destination, "destination", names))


def _dashed(argv: tuple[str, ...], described: Description) -> tuple[str, ...]:
    """``tar czf A B`` as ``tar -c -z -f A B``: letters without a dash take their values from the words behind, in order."""
    if len(argv) < 2 or argv[1].startswith("-"):
        return argv
    left, made = list(argv[2:]), [argv[0]]
    for letter in argv[1]:
        made.append(f"-{letter}")
        if described.options.get(f"-{letter}", "flags") != "flags" and left:
            made.append(left.pop(0))
    return (*made, *left)


def _assigned(operands: list[str], kinds: tuple[str, ...], made: Reading) -> Iterator[Use]:
    """Each operand with its kind. The one kind with a star takes what those before and after it leave."""
    star = next((at for at, kind in enumerate(kinds) if kind.endswith("*")), None)
    for at, operand in enumerate(operands):
        after = 0 if star is None else len(kinds) - star - 1
        if star is None or at < star:
            kind = kinds[at] if at < len(kinds) else "ask"
        elif len(operands) - at <= after and at > star - 1:
            kind = kinds[len(kinds) - (len(operands) - at)]
        else:
            kind = kinds[star].rstrip("*")
        if kind == "ask" or (kind == "format" and not operand.startswith("+")):
            yield Use("ask", operand, "an argument that is not described")
        elif kind == "run":
            yield Use("run", operand, "an argument that is run")
        elif kind not in ("text", "format") and not (kind in ("read", "list", "maybe", "follow") and operand == "-"):
            yield Use(kind, operand, "argument")


# find(1), EXPRESSION: how many words each takes. What is not here asks.
_FIND_WORDS = {
    **dict.fromkeys([
        "-print", "-print0", "-ls", "-prune", "-quit", "-true", "-false", "-empty", "-nouser", "-nogroup", "-readable", "-writable",
        "-executable", "-follow", "-a", "-and", "-o", "-or", "-not", "-daystart", "-depth", "-d", "-mount", "-xdev", "-noleaf", "-warn",
        "-nowarn",
        "(", ")", "!", ",", "-ignore_readdir_race", "-noignore_readdir_race", "-help", "--help", "-version",
    ], 0),
    **dict.fromkeys([
        "-name", "-iname", "-path", "-ipath", "-wholename", "-iwholename", "-regex", "-iregex", "-type", "-xtype", "-size", "-mtime",
        "-mmin", "-atime", "-amin", "-ctime", "-cmin", "-maxdepth", "-mindepth", "-perm", "-user", "-group", "-uid", "-gid", "-links",
        "-inum", "-lname", "-ilname", "-fstype", "-printf", "-regextype", "-used", "-context", "-newer", "-anewer", "-cnewer",
        "-samefile",
    ], 1),
}  # fmt: skip


def _find(words: tuple[str, ...], made: Reading) -> None:
    at, places = 0, []
    while at < len(words) and words[at] in ("-P", "-H", "-O1", "-O2", "-O3"):
        at += 1
    follows = False
    while at < len(words) and words[at] in ("-L", "-P", "-H"):  # the last one holds
        follows = words[at] == "-L"
        at += 1
    while at < len(words) and not words[at].startswith(("-", "(", "!")):
        places.append(words[at])
        at += 1
    places = places or ["."]
    made.words = made.places = tuple(places)
    deepest = [words[spot + 1] for spot in range(at, len(words) - 1) if words[spot] == "-maxdepth"]
    depth = int(deepest[-1]) if len(deepest) == 1 and re.fullmatch("[0-9]{1,4}", deepest[0]) else -1
    follows = follows or "-follow" in words
    made.way = _way(words[at:], follows, depth)
    made.uses += [Use("read", place, "where it looks", way=replace(made.way, only="", shows=made.way.only or "*")) for place in places]
    while at < len(words):
        at = _find_word(words, at, places, made)


def _way(words: tuple[str, ...], follows: bool, depth: int) -> Way:
    """What an expression finds: names that each file must fit, and folders that are left out. Where there are others, all counts."""
    rest, without = list(words), set[str]()
    while len(rest) > 3 and rest[0] in ("-path", "-name") and rest[2] == "-prune" and rest[3] in ("-o", "-or"):
        if left := re.fullmatch(r"\*/([\w.-]+)" if rest[0] == "-path" else r"([\w.-]+)", rest[1]):
            without.add(left[1])
        del rest[:4]
    at = 0
    while at < len(rest) - 2:
        left = (
            re.fullmatch(r"\*/([\w.-]+)/\*", rest[at + 2])
            if rest[at] in ("!", "-not") and rest[at + 1] in ("-path", "-wholename")
            else None
        )
        if rest[at + 1] in ("-path", "-wholename") and rest[at] in ("!", "-not") and (left or rest[at + 2] == "*/.*"):
            without.add(left[1] if left else "*")
            del rest[at : at + 3]
        else:
            at += 1
    if {"-o", "-or", ",", "("} & set(rest):
        return Way(follows, depth=depth)
    named = [] if {"!", "-not"} & set(rest) else [rest[at + 1] for at in range(len(rest) - 1) if rest[at] == "-name"]
    skips = frozenset({"hidden"} if "*" in without else ()) | frozenset({"git"} if ".git" in without else ())
    return Way(follows, skips, frozenset(without - {"*", ".git"}), depth, named[0] if named else "")


def _find_word(words: tuple[str, ...], at: int, places: list[str], made: Reading) -> int:
    word = words[at]
    if word in ("-exec", "-execdir", "-ok", "-okdir"):
        made.places = made.places if word == "-exec" else ()  # elsewhere it runs in the folder of what it found
        end = next((n for n in range(at + 1, len(words)) if words[n] == ";" or (words[n] == "+" and words[n - 1] == "{}")), len(words))
        made.inners.append(words[at + 1 : end])
        made.exact = False
        return end + 1
    if word == "-delete":
        made.uses += [Use("delete", place, "-delete", way=Way(only=made.way.only)) for place in places]
        return at + 1
    if word in ("-fprint", "-fprint0", "-fls", "-fprintf"):
        made.uses.append(Use("write", words[at + 1] if at + 1 < len(words) else "", word))
        return at + (3 if word == "-fprintf" else 2)
    takes = _FIND_WORDS.get(word)
    if takes is None:
        made.ask(f"find's {word} is not described", word)
        return at + 1
    if word in ("-newer", "-anewer", "-cnewer", "-samefile") and at + 1 < len(words):
        made.uses.append(Use("list", words[at + 1], word))
    return at + 1 + takes
