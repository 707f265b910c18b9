"""Read the words of programs that mean more than a description can say: what copies, packs or finds, and clients of databases."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from console.policy.shell import scripts
from console.policy.shell.programs import Description
from console.policy.way import WHOLE, Way

HERE = "the folder it runs in"


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


@dataclass(frozen=True, slots=True)
class Parted:
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


_DD_WORDS = frozenset({"bs", "cbs", "conv", "count", "ibs", "obs", "iflag", "oflag", "seek", "oseek", "skip", "iseek", "status"})
_ENDLESS = ("/dev/zero", "/dev/urandom", "/dev/random")
"""Devices that hold nothing of anybody's (null(4), random(4)); dd(1) reads no more of them than it writes."""
_ADDRESS = re.compile(
    r"(?:(?:postgres(?:ql)?|mysql|redis)://(?:[\w.%+-]+(?::[\w.%+-]*)?@)?([\w.-]+|\[::1\])?(?::\d+)?(?:/[\w.-]*)?(?:\?sslmode=\w+)?|[\w.-]+)",
    re.ASCII,
)
"""An address of a database, or its name (libpq, Connection URIs)."""
_OWN_SETTING = re.compile(
    r"user\.(?:name|email)|pull\.(?:rebase|ff)|core\.(?:autocrlf|filemode|quotepath)|(?:advice|color)\.\w+|init\.defaultbranch"
)
"""Settings of one repository that run no program and lead nowhere (git-config(1))."""


def _dd(parted: Parted, made: Reading) -> None:
    """dd(1): operands with a name each. What it writes may be a device."""
    for operand in parted.operands:
        name, _, value = operand.partition("=")
        kind = {"if": "read", "of": "device"}.get(name, "text" if name in _DD_WORDS else "ask")
        if kind == "ask" or not value:
            made.ask(f"{operand!r} is an operand that is not described", operand)
        elif kind != "text" and not (kind == "read" and value in _ENDLESS):
            made.uses.append(Use(kind, value, "argument"))


def _tar(parted: Parted, made: Reading) -> None:
    """tar(1): what it reads into an archive, or where it puts what is in one; of one that is listed, operands are names inside."""
    archives = [value for option, value in parted.values if option in ("-f", "--file")]
    folders = [value for option, value in parted.values if option in ("-C", "--directory")]
    if len(folders) > 1 or len(archives) > 1:
        made.ask("which folder, or archive, is meant is not certain")
    if parted.seen & {"-x", "--extract", "--get"}:  # names that lead out of the folder are left out without -P (tar(1))
        made.uses += [Use("make", posixpath.join(*folders, name), "unpacked") for name in (*parted.operands, ".")]
    if not parted.seen & {"-c", "--create"}:
        return
    made.uses = [
        replace(use, kind="write") if use.kind == "read" and use.why in ("option -f", "option --file") else use for use in made.uses
    ]
    at = next((at for at, word in enumerate(parted.words) if word.startswith(("-C", "--directory"))), len(parted.words))
    is_first = bool(folders) and not set(parted.operands) & set(parted.words[:at])
    for operand in parted.operands:  # what stands before -C is read from where it runs
        bases = folders if is_first else ("", *folders)
        made.uses += [Use("read", posixpath.join(folder, operand), "argument") for folder in bases]


def _gzip(parted: Parted, made: Reading) -> None:
    """gzip(1): a file takes the place of the one that is given, but with -c, -l and -t."""
    for operand in parted.operands:
        if parted.seen & {"-c", "--stdout", "-l", "--list", "-t", "--test"}:
            made.uses += [Use("read", operand, "argument")] if operand != "-" else []
            continue
        is_undone = parted.described.special == "gunzip" or bool(parted.seen & {"-d", "--decompress", "--uncompress"})
        named = (operand.rpartition(".")[0] or operand) if is_undone else f"{operand}.gz"
        made.uses += [Use("move", operand, "source"), *(Use("write", name, "destination") for name in (operand, named))]


def _rsync(parted: Parted, made: Reading) -> None:
    """rsync(1): sources, and one destination. ``FOLDER/`` means what is in it."""
    if any(":" in operand for operand in parted.operands):
        made.ask("it copies from, or to, another host")
        return
    kind = "follow" if parted.seen & {"-L", "--copy-links", "--copy-unsafe-links", "-k", "--copy-dirlinks"} else "read"
    *sources, target = parted.operands if len(parted.operands) > 1 else (*parted.operands, "")
    made.uses += [Use(kind, one, "source") for one in sources]
    if not sources or not target:
        return  # without a destination it lists
    if any(option.startswith("--delete") or option == "--del" for option in parted.seen):
        made.uses.append(Use("delete", target, "--delete"))
    whole = any(one.endswith("/") or posixpath.basename(one) in ("", ".", "..") for one in sources)
    made.uses.append(Use("into", target, "destination", () if whole else tuple(posixpath.basename(one) for one in sources)))


def _copy(parted: Parted, made: Reading) -> None:
    operands, moves = list(parted.operands), "--moves" in parted.described.options
    target = next((use for use in made.uses if use.why in ("option -t", "option --target-directory")), None)
    if target is not None:
        made.uses.remove(target)
        destination = target.value
    elif len(operands) >= 2:
        destination = operands.pop()
    else:
        made.ask("it names no destination")
        return
    names = () if parted.seen & {"-T", "--no-target-directory"} else tuple(posixpath.basename(one.rstrip("/")) or "." for one in operands)
    if {"-s", "--symbolic"} & parted.seen and parted.described.options.get("-r") == "flags" and not {"-r", "--relative"} & parted.seen:
        made.uses += [Use("linked", one, destination) for one in operands]  # ln: what it says is read from where it lies
        operands = []
    made.uses += [Use("move" if moves else "read", one, "source") for one in operands]
    made.uses.append(Use("into", destination, "destination", names))


def _database(parted: Parted, made: Reading) -> None:
    """A client of a database: what it is to do is said by an option, or is a subcommand that is described."""
    if made.verb or parted.seen & {"-l", "--list", "--scan"}:
        made.uses.append(Use("sql", "", "it reads what a database holds"))
    elif not any(use.kind in ("sql", "ask") for use in made.uses) and not parted.seen & {"-V", "--version", "-?", "--help"}:
        made.ask("what it would read from its input, or a file, is not known")


def _unzip(parted: Parted, made: Reading) -> None:
    """unzip(1): it lists or prints what an archive holds, or puts it in a folder."""
    if not parted.seen & {"-l", "-v", "-t", "-Z", "-p"}:
        folder = dict(parted.values).get("-d", ".")
        made.uses += [Use("make", posixpath.join(folder, name), "unpacked") for name in (*parted.operands[1:], ".")]
        made.ask("what the archive holds is not seen before it is there")


def _zip(parted: Parted, made: Reading) -> None:
    """zip(1): it puts .zip behind a name without a dot."""
    if parted.operands and "." not in posixpath.basename(parted.operands[0]):
        made.uses.append(Use("write", f"{parted.operands[0]}.zip", "zip(1) puts .zip behind a name without a dot"))


def _settings(parted: Parted, made: Reading) -> None:
    """git-config(1): a value that says who writes, or how, runs nothing."""
    if len(parted.operands) == 2 and parted.seen <= {"--local"} and _OWN_SETTING.fullmatch(parted.operands[0].lower()):
        made.uses = [use for use in made.uses if use.value != parted.operands[1]]


def of_database(kind: str, value: str) -> Use:
    """A statement, or a database by its name or address, as what the client of a database does with it."""
    if kind == "sql":
        why = scripts.sql_trouble(value)
        return Use("ask", value, why) if why else Use("sql", value, "it reads what a database holds")
    found = _ADDRESS.fullmatch(value)
    if found is None:
        return Use("ask", value, "which server it means is not certain")
    return Use("host", found[1] or "localhost", "the server of the database")


INSTEAD: dict[str, Callable[[Parted, Reading], None]] = {
    "dd": _dd, "copy": _copy, "tar": _tar, "rsync": _rsync, "gzip": _gzip, "gunzip": _gzip,
}  # fmt: skip
"""By what a description calls special: what reads all operands."""
BESIDE: dict[str, Callable[[Parted, Reading], None]] = {"unzip": _unzip, "zip": _zip, "settings": _settings, "database": _database}
"""The same: what reads them after the kinds of the description."""


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


def read_find(words: tuple[str, ...], made: Reading) -> None:
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
