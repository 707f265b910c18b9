"""Find which program a name is, and which shell rules of the settings its argv matches.

Allow rules match narrowly: the same file, the same words in the same order. Deny and ask rules match widely: any name of the file, options
in any order and spelling. So a denial cannot be evaded by writing the command in another way.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from console.policy.files.paths import Facts, Files, absolute
from console.policy.rules.loading import Settings
from console.policy.rules.rule import Family, Rule

SEARCH = ("/usr/local/bin", "/usr/bin", "/bin", "/usr/local/sbin", "/usr/sbin", "/sbin")
"""Where programs are looked for, whatever PATH says. No agent may write there."""
ABSENT_MAX = 2000
"""Names that are remembered as missing in one folder."""
_VERSION = re.compile(r"[-.0-9]+\Z")
_SAME = {"--recursive": "-r", "-R": "-r", "--force": "-f", "--all": "-a", "--delete": "-d", "--yes": "-y", "--interactive": "-i"}


@dataclass(frozen=True, slots=True)
class Program:
    """The file that argv[0] is."""

    called: str
    """argv[0] as written."""
    name: str
    """The name it is described and allowed by."""
    path: str
    """The file as it would be executed; empty: it is not on this machine."""
    real: str
    """With every link followed."""
    names: frozenset[str]
    """All names a denial may have for it."""
    in_search: bool
    """It is the one that ``name`` finds in SEARCH, or would if it were there."""
    facts: Facts | None = None


def find_program(called: str, cwd: str, files: Files) -> Program:
    """What argv[0] is. Never raises; a path that is no program has ``path == ""``."""
    last = posixpath.basename(called.rstrip("/")) or called
    if "/" not in called:
        path, facts = _searched(called, files)
        real = facts.real if facts else ""
        return Program(called, called, path, real, _names(called, real), True, facts)
    literal = absolute(called, cwd)
    facts = files.look(literal)
    if facts.kind != "file" or not facts.real:
        return Program(called, last, "", facts.real, _names(last, facts.real), False, facts)
    _, found = _searched(last, files)
    if found is not None and found.real == facts.real:
        return Program(called, last, literal, facts.real, _names(last, facts.real), True, facts)
    name = posixpath.basename(facts.real)
    return Program(called, name, literal, facts.real, _names(last, facts.real), False, facts)


def _searched(name: str, files: Files) -> tuple[str, Facts | None]:
    for folder in SEARCH:
        facts = _in_folder(folder, name, files)
        if facts is not None and facts.kind == "file" and facts.real:
            return f"{folder}/{name}", facts
    return "", None


def _in_folder(folder: str, name: str, files: Files) -> Facts | None:
    """What a folder of SEARCH has by a name, as it is now; None: nothing."""
    stamp = files.stamp(folder)  # before the look: what comes after it makes another
    if stamp == () or (stamp is not None and name in _absent.get((folder, stamp), ())):
        return None
    facts = files.look(f"{folder}/{name}")
    if facts.kind != "missing":
        return facts
    if stamp is not None:
        _keep_absent(folder, stamp, name)
    return None


def _keep_absent(folder: str, stamp: tuple[int, ...], name: str) -> None:
    """That a name is missing holds for as long as nothing comes to the folder; what is there is looked at each time."""
    if (folder, stamp) not in _absent and len(_absent) >= 4 * len(SEARCH):
        _absent.clear()
    names = _absent.setdefault((folder, stamp), set())
    if len(names) >= ABSENT_MAX:  # agents choose the names
        names.clear()
    names.add(name)


_absent: dict[tuple[str, tuple[int, ...]], set[str]] = {}


def _leads(name: str, folders: set[str], files: Files) -> bool:
    """Whether a name is anything but missing, or the one name of a file in one of the folders."""
    for folder in SEARCH:
        facts = _in_folder(folder, name, files)
        if facts is not None:
            return facts.kind != "file" or facts.names != 1 or posixpath.split(facts.real) not in {(one, name) for one in folders}
    return False


def _names(called: str, real: str) -> frozenset[str]:
    both = {called, posixpath.basename(real)} - {""}
    return frozenset(both | {_VERSION.sub("", one) for one in both} - {""})


class CommandRules:
    """The shell rules of one policy, by program."""

    def __init__(self, settings: Settings, spellings: Mapping[str, Mapping[str, str]] | None = None) -> None:
        self._spellings = {name: {**_SAME, **pairs} for name, pairs in (spellings or {}).items()}
        self._asked: dict[tuple[str, tuple[str, ...]], _Said] = {}
        """What rules' words ask for, in the spellings of a program: rules are written by operators, and read once."""
        self._by_name: dict[tuple[str, str], list[Rule]] = {}
        self._any: dict[str, list[Rule]] = {}
        self._paths: dict[str, list[Rule]] = {}
        self._linked: tuple[object, tuple[tuple[str, str], ...]] = (None, ())
        for kind in ("deny", "ask", "allow"):
            for rule in settings.of(kind, Family.SHELL):
                if not rule.words:
                    self._any.setdefault(kind, []).append(rule)
                elif "/" in rule.words[0]:
                    self._paths.setdefault(kind, []).append(rule)
                else:
                    self._by_name.setdefault((kind, rule.words[0]), []).append(rule)

    def forbidding(
        self, kind: str, program: Program, argv: Sequence[str], words: Sequence[str] | None, cwd: str, files: Files, verb: str = ""
    ) -> Rule | None:
        """The first ``deny`` or ``ask`` rule that may be meant. ``words``: subcommands and operands; None: not known which they are.

        ``verb``: the subcommand, where no other word can be it.
        """
        rules = [*self._any.get(kind, ()), *(rule for name in program.names for rule in self._by_name.get((kind, name), ()))]
        rules += [r for r in self._paths.get(kind, ()) if self._is_file(r, program, cwd, files)]
        rules += self._same_file(kind, program, files)
        rules += self._by_other_names(kind, program, files)
        if not rules:
            return None
        spelled = min((name for name in program.names if name in self._spellings), default="")
        said = _Said.of(argv, words, self._spellings.get(spelled, _SAME), short_too=True)
        wanted = ((rule, self._wanted(rule.words, spelled)) for rule in rules)
        # Of another subcommand a rule says nothing, whatever its operands are: `git stash push` is no push.
        return next((rule for rule, one in wanted if (not verb or one.operands[:1] in ((), (verb,))) and _may_mean(rule, said, one)), None)

    def _wanted(self, words: tuple[str, ...], spelled: str) -> _Said:
        found = self._asked.get((spelled, words))
        if found is None:
            found = _Said.of(words, None, self._spellings.get(spelled, _SAME), short_too=False)
            self._asked[spelled, words] = found
        return found

    def allowing(self, program: Program, argv: Sequence[str], words: Sequence[str] | None, cwd: str, files: Files) -> Rule | None:
        """The rule that allows exactly this program with these words; one that is marked unconfined goes first."""
        rules = [*self._any.get("allow", ()), *(r for r in self._paths.get("allow", ()) if self._is_file(r, program, cwd, files))]
        if program.in_search:
            rules += self._by_name.get(("allow", program.name), ())
        matching = [rule for rule in rules if _means(rule, argv, words)]
        return next((rule for rule in matching if rule.unconfined), matching[0] if matching else None)

    def names_denied(self, word: str) -> Rule | None:
        """The rule that denies every use of a program, when ``word`` is one of its names."""
        last = posixpath.basename(word)
        for name in (last, _VERSION.sub("", last)):
            for rule in self._by_name.get(("deny", name), ()):
                if len(rule.words) == 1:
                    return rule
        return None

    def _same_file(self, kind: str, program: Program, files: Files) -> Iterator[Rule]:
        """Rules for programs that are the same file under another name (a hard link)."""
        if program.in_search or program.facts is None or program.facts.inode is None or program.facts.names == 1:
            return
        for (of, name), rules in self._by_name.items():
            facts = _searched(name, files)[1] if of == kind else None
            if facts is not None and facts.inode == program.facts.inode:
                yield from rules

    def _by_other_names(self, kind: str, program: Program, files: Files) -> Iterator[Rule]:
        """Rules for a program by a name that leads to the same file: ``vi``, where that is a link to ``vim``."""
        if not program.path or program.facts is None:
            return
        for of, name in self._names_that_lead(files):
            if of != kind or name in program.names:
                continue
            facts = _searched(name, files)[1]
            if facts is not None and (facts.real == program.real or (facts.inode is not None and facts.inode == program.facts.inode)):
                yield from self._by_name[of, name]

    def _names_that_lead(self, files: Files) -> tuple[tuple[str, str], ...]:
        """(list, name) of the rules whose name is a link, one of several of a file, or leads nowhere: these are looked at each time.

        Which they are can change only with an entry of a folder of SEARCH, and with that the folder's stamp.
        """
        stamps = tuple(files.stamp(folder) for folder in SEARCH)
        before, found = self._linked
        if before == stamps:
            return found
        reals = {files.look(folder).real for folder in SEARCH}
        found = tuple(key for key in self._by_name if key[0] != "allow" and _leads(key[1], reals, files))
        if None not in stamps and any(stamps):
            self._linked = (stamps, found)
        return found

    def _is_file(self, rule: Rule, program: Program, cwd: str, files: Files) -> bool:
        named = absolute(rule.words[0], cwd)
        if not program.path:  # what is not there is denied by the name that the rule gives it
            return "/" in program.called and absolute(program.called, cwd) == named
        return program.real == named or program.real == files.look(named).real


def _means(rule: Rule, argv: Sequence[str], words: Sequence[str] | None) -> bool:
    wanted = list(rule.words[1:])
    if list(argv[1 : 1 + len(wanted)]) == wanted and (rule.open_end or len(argv) == 1 + len(wanted)):
        return True
    # The words without options (git -C sub status) only for a rule that leaves its end open.
    return words is not None and rule.open_end and list(words[: len(wanted)]) == wanted


def _usual(word: str) -> str:
    """One spelling of a path or a number: ``//x/./`` is ``/x``, ``0777`` is ``777``."""
    if "/" in word:
        return re.sub(r"/(\./)+|/+|/\.$", "/", re.sub("/+", "/", word)).rstrip("/") or "/"
    return word.lstrip("0") or "0" if word.isdigit() else word


@dataclass(frozen=True, slots=True)
class _Said:
    """A command in its usual spelling, for all the rules that it is held against."""

    argv: tuple[str, ...]
    options: frozenset[str]
    operands: tuple[str, ...]
    """Subcommands and operands. Where these cannot be told apart, every word that is no option."""

    @classmethod
    def of(cls, argv: Sequence[str], words: Sequence[str] | None, same: Mapping[str, str], *, short_too: bool) -> _Said:
        usual = tuple(_usual(word) for word in argv)
        if usual[1:].count("--") == 1 and usual[-1] == "--":
            usual = usual[:-1]  # nothing comes after the end of options: `cat --` is `cat`
        plain = (word for word in usual[1:] if not word.startswith("-")) if words is None else (_usual(word) for word in words)
        return cls(usual, frozenset(_options(usual[1:], same, short_too=short_too)), tuple(plain))


def _may_mean(rule: Rule, said: _Said, wanted: _Said) -> bool:
    if len(rule.words) < 2:
        return rule.open_end or len(said.argv) == 1 or not rule.words
    if said.argv[1 : len(wanted.argv)] == wanted.argv[1:]:
        return rule.open_end or len(said.argv) == len(wanted.argv)
    if not wanted.options <= said.options:
        return False
    if said.operands[: len(wanted.operands)] == wanted.operands or _in_order(wanted.operands, said.operands):
        return True
    # What the rule names behind an option may be its value, wherever and however that is written: -n 5, -n5, -qn5, --lines=5.
    words = iter(said.argv[1:])
    return bool(wanted.options) and all(any(_holds(word, one) for word in words) for one in wanted.operands)


def _holds(word: str, value: str) -> bool:
    """Whether a word of a command is this one, or may be an option that has it for its value."""
    if word.startswith("--"):
        return "=" in word and _usual(word.partition("=")[2]) == value
    if not word.startswith("-"):
        return word == value
    at = len(word) - len(value)
    while value.isdigit() and word[at - 1 : at] == "0":
        at -= 1  # -n05
    return at >= 2 and word.endswith(value) and not (value[:1].isdigit() and word[at - 1].isdigit())  # -n15 is not -n 5


def _in_order(wanted: Sequence[str], found: Sequence[str]) -> bool:
    rest = iter(found)
    return all(any(word == one for one in rest) for word in wanted)


def _options(words: Sequence[str], same: Mapping[str, str], *, short_too: bool) -> set[str]:
    """Options in one spelling each. ``short_too``: a long one cut short is every one that begins so (getopt_long(3))."""
    found: set[str] = set()
    for word in words:
        if word.startswith("--"):
            name = word.partition("=")[0]
            found.add(same.get(name, name))
            if short_too and name not in same and len(name) > 2:
                found |= {short for long, short in same.items() if long.startswith(name)}
        elif word.startswith("-") and len(word) > 1:
            found |= {same.get("-" + letter, "-" + letter) for letter in word[1:]}
    return found
