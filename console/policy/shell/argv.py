"""The arguments of one program read by its description: which files, hosts and programs they name. Whatever is not described asks."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from dataclasses import replace

from console.policy.shell import scripts
from console.policy.shell.operands import BESIDE, HERE, INSTEAD, Parted, Reading, Use, of_database, read_find
from console.policy.shell.programs import Description
from console.policy.way import WHOLE, Way

_NUMBER = re.compile(r"[-+]\d+\Z")
_PATTERN = re.compile(r"[*?\[\]\\/|{}]")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_LOOKED_UP = re.compile(
    r"(?:@|\b(?:dst|src|dport|sport)\b\s*+(?:[=!<>]+|(?:n?eq|neq?|[gl](?:eq?|t))\s)?+\s*+)"
    r"(?!\d{1,3}(?:\.\d{1,3}){3}(?![\w.-])|\[[0-9a-fA-F:.]+\]|\*(?![\w.-])|:|\d{1,5}(?![\w.-]))\w"
)
"""A host that is no plain address, in a filter of connections (lsof(8), -i; ss(8), FILTER)."""

_HARMLESS = re.compile(
    r"(?:(?:user|author|committer)\.(?:name|email)|color\.\w+|advice\.\w+|core\.(?:quotepath|autocrlf|abbrev|filemode)|init\.defaultbranch"
    r"|log\.(?:date|decorate|abbrevcommit)|status\.(?:short|branch|showuntrackedfiles|relativepaths)|merge\.(?:conflictstyle|ff)"
    r"|diff\.(?:renames|renamelimit|noprefix|mnemonicprefix|context|algorithm|colormoved)|pull\.(?:rebase|ff)|push\.default)(?:=.*)?"
    r"|(?:commit|tag)\.gpgsign=false",
    re.IGNORECASE | re.DOTALL,
)
"""Settings of git that name no program and no file (git-config(1)): an identity for one commit, colours, how something is shown."""


def read_argv(argv: tuple[str, ...], described: Description) -> Reading:
    """Reads ``argv[1:]``; never raises, what is unknown is a use that asks."""
    made = Reading()
    if described.special == "echo":
        made.words = argv[1:]
        return made
    if described.special == "find":
        read_find(argv[1:], made)
        return made
    if described.special == "tar":
        argv = _dashed(argv, described)
    _Operands(_Options(argv[1:], described, made).read(), made).read()
    return made


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

    def read(self) -> Parted:
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
        return Parted(self._words, self._described, seen, self._operands, self._scripts, self._lacks, values)

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
        elif kind == "exec":
            self._executed(value)
        elif glued or kind == "contained":
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
            if kind not in ("flags", "contained"):
                self._valued(kind, rest, name, word)
                return
            if kind == "contained":
                self._value(kind, "", name)

    def _valued(self, kind: str, rest: str, name: str, word: str) -> None:
        """A letter that takes a value: what is glued to it, or the next word."""
        if kind == "exec":
            self._executed(rest)
        elif kind == "optional":
            self._value("text", rest, name)
        elif rest and self._described.apart:
            self._made.ask(f"which word is the value of {name} is not certain", word)
        elif rest:
            self._value(kind, rest, name)
        else:
            self._next(kind, name)

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

    def _executed(self, first: str) -> None:
        """The words up to a semicolon are a command that is run with each name that is found (fd(1), --exec)."""
        rest = self._words[self._at :]
        end = rest.index(";") if ";" in rest else len(rest)
        self._at += end + 1
        command = (*((first,) if first else ()), *rest[:end])
        if any(re.search(r"\{[/.]", word) for word in command):
            self._made.ask("part of a name that is found is run, or named")
        self._made.exact = False
        self._made.inners.append(command if any("{}" in word for word in command) else (*command, "{}"))

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
        elif kind != "text" and not (kind in ("read", "list") and value == "-"):
            self._made.uses.append(_used(kind, value, name))


def _used(kind: str, value: str, name: str) -> Use:
    """What an option does with its value."""
    if kind == "run":
        return Use("run", value, f"option {name} runs a program")
    if kind in ("ask", "unsure"):
        return Use("ask", value, f"option {name} does what cannot be checked")
    if kind in ("sql", "database"):
        return of_database(kind, value)
    if kind == "contained":
        return Use("contained", name, f"what option {name} does is not seen before it is done")
    return Use(kind, value, f"option {name}")


def _meant(kind: str, value: str) -> tuple[str, str]:
    """A value that is a text, or a file behind an ``@``, as that which it is."""
    if kind == "setting":
        return ("text" if _HARMLESS.fullmatch(value) else "run"), value
    if kind == "data" and "%output{" in value:  # curl(1), --write-out: it writes a file
        return "ask", value
    return (kind, value) if kind != "data" else ("read", value[1:]) if value[:1] == "@" else ("text", value)


class _Operands:
    """What is left when the options are read, with what they say of it."""

    def __init__(self, parted: Parted, made: Reading) -> None:
        self._parted = parted
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
        elif special == "jq":
            self._filter()
        if special in INSTEAD:
            INSTEAD[special](self._parted, self._made)
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
        if special in BESIDE:
            BESIDE[special](self._parted, self._made)
        self._go()

    def _filter(self) -> None:
        if self._operands and not self._seen & {"-f", "--from-file"} and (why := scripts.jq_trouble(self._operands[0])):
            self._made.ask(why, self._operands[0])

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
        if described.special == "fd" and self._made.inners:
            ends = [f"*.{value}" for option, value in self._values if option in ("-e", "--extension")]
            ends += [f"*.{found[1]}" for word in self._operands[:1] if (found := re.fullmatch(r"\\\.(\w+)\$", word))]
            only = ends[0] if len(ends) == 1 and re.fullmatch(r"\*\.\w+", ends[0]) else ""
            self._made.places, self._made.way = tuple(self._operands[1:]) or (".",), replace(way, only=only, shows="")
            if self._seen & {"--search-path", "--base-directory", "-a", "--absolute-path"}:
                self._made.ask("where it finds the names that it runs a command with is not certain")
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


def _dashed(argv: tuple[str, ...], described: Description) -> tuple[str, ...]:
    """``tar czf A B`` as ``tar -c -z -f A B``: letters without a dash take their values from the words behind, in order."""
    if len(argv) < 2 or argv[1].startswith("-"):
        return argv
    left, made = list(argv[2:]), [argv[0]]
    for letter in argv[1]:
        made.append(f"-{letter}")
        if described.options.get(f"-{letter}", "flags") not in ("flags", "contained") and left:
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
        if kind == "database":
            yield of_database(kind, operand)
        elif kind == "ask" or (kind == "format" and not operand.startswith("+")):
            yield Use("ask", operand, "an argument that is not described")
        elif kind == "run":
            yield Use("run", operand, "an argument that is run")
        elif kind not in ("text", "format") and not (kind in ("read", "list", "maybe", "follow") and operand == "-"):
            yield Use(kind, operand, "argument")
