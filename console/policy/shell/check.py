"""Check a shell string: every simple command, the commands that it runs itself, every file and host of its arguments, every redirect.

The worst answer of these steps decides:

1. bounds and characters
2. two readings into simple commands
3. the program that each name is
4. deny and ask rules
5. what its arguments do, by its description
6. the allow rule
7. files, hosts, packages
8. dangerous operations
"""

from __future__ import annotations

import functools
import posixpath
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from console.domain.calls.permission import DangerClass, Verdict
from console.policy.dangers import ELSEWHERE, Danger, danger_of, danger_started
from console.policy.files.paths import FileRules, Files, Once, absolute
from console.policy.git.calls import Known, NothingKnown, judge_discard, judge_git, overrides
from console.policy.rules.declared import Declared
from console.policy.rules.hosts import HostRules
from console.policy.rules.loading import Settings
from console.policy.rules.mcp import McpRules
from console.policy.rules.profiles import NOT_CONTAINED, PATTERN, WORK, Profile
from console.policy.rules.rule import Rule, read_rule
from console.policy.rules.verdicts import DATABASE, NO_RULE, Judgement, Part, Redirect, Step, denied, worst
from console.policy.shell.argv import read_argv
from console.policy.shell.commands import CommandRules, Program, find_program
from console.policy.shell.effects import UseRules
from console.policy.shell.fronts import Started
from console.policy.shell.lexer import Refused, Target, check_text
from console.policy.shell.lines import Simple, fed, simple_commands
from console.policy.shell.moves import Moves
from console.policy.shell.named_files import beyond, denied_reads, has_too_many, texts_in, written
from console.policy.shell.operands import HERE, Reading, Use
from console.policy.shell.plain import is_rewritten, why_not
from console.policy.shell.programs import Catalogue, Description
from console.policy.shell.workspace_programs import SHELLS, WorkspacePrograms, script_of
from console.policy.way import WHOLE, Way

_WORDS = 20
"""Words of one command that are named where no description covers them."""
_DROPS = "{} takes the variables away that keep what it runs from running others"
_APPLETS = frozenset({"busybox", "toybox", "coreutils"})


@dataclass(frozen=True, slots=True)
class Place:
    """Where a command is judged."""

    cwd: str
    depth: int = 0
    found: tuple[str, ...] = ()
    """Folders among the arguments that stand for files that were found in them, links too."""
    way: Way = WHOLE
    """What of these was found."""
    texts: int = 0
    """Quoted texts around it that a program of the workspace may run."""
    started: bool = False
    """A program of the workspace starts it: a bare name that this machine does not have is one of the workspace's."""
    written: tuple[str, ...] = ()
    """What commands before it in the same text write: files, and folders with all that is copied there."""


_NOTHING_KNOWN = NothingKnown()


class Policy:
    """One policy, compiled once: rules, descriptions, dangers, what is declared."""

    def __init__(
        self,
        settings: Settings,
        catalogue: Catalogue,
        dangers: Iterable[Danger] = (),
        declared: Declared | None = None,
        profile: Profile | None = None,
    ) -> None:
        self.settings = settings
        self.profile = profile
        """None: the rules are an operator's own, and nothing is decided beside them."""
        self.catalogue = catalogue
        runs = profile is not None and bool(profile.work)
        self.files = FileRules(settings, _protected(catalogue.protected), has_scratch=runs)
        self.hosts = HostRules(settings, has_loopback=runs)
        self.mcp = McpRules(settings)
        self.commands = CommandRules(settings, catalogue.spellings)
        given = tuple(dangers)
        self.dangers, self.named = tuple(one for one in given if one.asks), tuple(one for one in given if not one.asks)
        """What asks whatever a rule allows, and what only names a call that a rule asks about."""
        self.declared = declared


@functools.cache
def _protected(globs: tuple[str, ...]) -> tuple[Rule, ...]:
    return tuple(replace(read_rule(f"file(write:{glob})", "protected", {}), text=f"protected {glob}") for glob in globs)


class ShellJudge:
    """Judges strings and argv lists by one policy and one disk. One for each judgement."""

    def __init__(self, policy: Policy, files: Files, known: Known = _NOTHING_KNOWN) -> None:
        self._policy = policy
        self._known = known
        self._files = files if isinstance(files, Once) else Once(files)
        self._steps = StepMaker(policy.catalogue, self._files)
        self._work = WorkspacePrograms(policy.profile, policy.settings.workspace, policy.files, self._files, policy.catalogue)
        self._uses = UseRules(policy.files, policy.hosts, self._files, policy.declared)

    def text(self, text: str, cwd: str = "") -> Judgement:
        """A verdict on a shell string; what it allows is executed as ``steps``, never as the string."""
        return self._text(text, Place(cwd or self._policy.settings.workspace))

    def argv(self, argv: tuple[str, ...], cwd: str = "") -> Judgement:
        """A verdict on a program and its arguments, without any shell."""
        place = Place(cwd or self._policy.settings.workspace)
        try:
            for word in argv:
                check_text(word)
        except Refused as error:
            return denied("bounds", "shell", error.why)
        if not argv or not argv[0]:
            return denied("bounds", "shell", "there is no program")
        parts, program = self._command(argv, place)
        return worst(parts, (self._steps.made(argv, program, place.cwd),))

    def _text(self, text: str, place: Place) -> Judgement:
        try:
            simples = simple_commands(text)
        except Refused as error:
            return self._plainer(text, place) or denied("parse", "static shell only", why_not(text, error.why), text[:200])
        if any(is_rewritten(simple.argv) for simple in simples) and (plain := self._plainer(text, place)) is not None:
            return plain
        parts, steps = list[Part](), list[Step]()
        before, moves, made = "", Moves(self._policy, self._files, place.cwd, is_strict=not self._work.programs), place.written
        for at, simple in enumerate(simples):
            parts += moves.joined(simple, _source(text, simple))
            if simple.argv[0] == "cd":
                parts += moves.moved(simple, simples[at + 1 : at + 2], self._work.expanded(simple.words[1:], place.cwd))
                before = before or simple.joined
                continue
            # No step of its own is made of ``cd DIR &&``: what comes after it follows what came before it.
            joined, known = (before or simple.joined) if steps else "", len(parts)
            for cwd in moves.folders:
                found, step = self._simple(simple, replace(place, cwd=cwd, written=made), _source(text, simple), joined)
                parts += found
                steps.append(step)
            made += tuple(name for part in parts[known:] if part.action == "write" and part.use == "write" for name in part.names)
            before = ""
        is_certain = not (moves.is_uncertain or any(simple.behind for simple in simples))
        return worst(parts, tuple(steps) if is_certain else ())

    def _simple(self, simple: Simple, place: Place, shown: str, joined: str) -> tuple[list[Part], Step]:
        """Every part of one simple command with its redirects, and the step that executes it."""
        argv = self._work.expanded(simple.words, place.cwd)
        found, program = self._command(fed(argv or simple.argv, simple.targets), place, shown)
        redirects: list[Redirect] = []
        for target in simple.targets:
            part, moved = judge_redirect(target, place.cwd, self._policy.files, self._files)
            found.append(part)
            redirects += moved
        found += _oddities(simple, found, place, self._work, is_expanded=argv is not None)
        return found, self._steps.made(argv or simple.argv, program, place.cwd, joined, tuple(redirects))

    def _plainer(self, text: str, place: Place) -> Judgement | None:
        """The same text in simple commands that are judged, where there are such. They are executed only where they mean the same."""
        plain = self._work.plainer(text, place.cwd) if place.depth <= DEPTH else None
        if plain is None:
            return None
        deeper = replace(place, depth=place.depth + 1)
        found = self._text(plain.text, deeper)
        if plain.is_literal or not found.parts:
            return found
        parts = [*found.parts, *(part for group in plain.groups for part in self._text(group, deeper).parts)]
        others = [part.names[0].rpartition("/")[2] for part in parts if part.use == "run" and part.rule != WORK]
        if not plain.fits(frozenset(others)):
            return None
        why = "each listed name lies below the folders that were judged"
        parts = _of_others(parts) if plain.names_others else parts
        parts += [Part(text[:200], Verdict.ASK, PATTERN, "parse", why)] if plain.lists else []
        parts += [_sourced(path, place, self._files, self._policy.settings.workspace) for path in plain.sourced]
        return worst(parts)

    def _command(self, argv: tuple[str, ...], place: Place, text: str = "") -> tuple[list[Part], Program]:
        """Every part of one command and of what it runs, and the program it is."""
        shown = text or " ".join(argv)
        program = find_program(argv[0], place.cwd, self._files)
        described = self._policy.catalogue.of(program.name) or Description()
        reading = self._work.placed(read_argv(argv, described)) if described.is_described else Reading()
        words = reading.words if described.is_described else None
        if rule := self._policy.commands.forbidding("deny", program, argv, words, place.cwd, self._files, reading.verb):
            return [Part(shown, Verdict.DENY, rule.text, "program", "blocked by rule")], program
        if why := _never(program, argv, place, self._policy.catalogue.builtins):
            return [Part(shown, Verdict.DENY, "never", "program", why)], program
        if self._policy.declared is not None and (refused := self._policy.declared.manager(program.names, argv)):
            return [refused], program
        started = self._work.started(argv, program, place.cwd)
        own = self._allowed(argv, program, described, reading, place, shown)
        reading = Reading() if own.rule == WORK and len(argv) == 1 else reading  # env alone shows what such a program sees too
        parts = [Part(own.text, own.verdict, own.rule, own.step, own.reason, "", "run", argv)]
        asked = self._policy.commands.forbidding("ask", program, argv, words, place.cwd, self._files, reading.verb)
        if (rule := asked) and not (own.rule == WORK and _only_tells(argv, program)):
            parts.insert(0, _asked(rule.text, shown, _danger(self._policy.named, argv, program, started.verb or reading.verb, place)))
        if danger := _danger(self._policy.dangers, argv, program, started.verb or reading.verb, place):
            parts.append(Part(shown, Verdict.ASK, danger.rule, "danger", danger.words_first, danger=danger.kind))
        parts += self._used(reading, described, place)
        if "git" in program.names and program.path:
            folder, home = absolute(reading.base or ".", place.cwd), self._policy.settings.workspace
            parts += _not_there_yet(reading.base, folder, place.written, shown) + judge_git(folder, home, self._files, self._known, shown)
            parts += judge_discard(argv, reading.words, folder, self._files, shown)
        parts += self._named(argv, program, described, reading, place)
        if own.rule == WORK and has_too_many(argv):
            parts.append(Part(shown, Verdict.ASK, NO_RULE, "program", "it is given more words or texts than are looked through"))
        elif own.rule == WORK:
            parts += beyond(self._uses, self._files, argv, place.cwd, self._policy.settings.workspace)
            deeper = replace(place, depth=place.depth + 1, texts=place.texts + 1)
            parts += [part for text in texts_in(argv) if place.texts < TEXTS for part in _perhaps_run(self._text(text, deeper).parts)]
        parts += self._of_started(started, own, place)
        if reading.drops and self._steps.environment(argv, program, place.cwd, place.depth):
            parts.append(Part(shown, Verdict.ASK, NO_RULE, "program", _DROPS.format(program.name)))
        return (_of_others(parts) if any(map(ELSEWHERE.search, argv)) else parts), program

    def _named(self, argv: tuple[str, ...], program: Program, described: Description, reading: Reading, place: Place) -> list[Part]:
        """What its words name: commands that it runs, and files where no description says of each word what it is."""
        parts = [part for inner in reading.inners for part in self._inner(inner, reading, place)]
        asked = tuple(use.value for use in reading.uses if use.kind == "ask")
        if not described.is_described or (described.operands[:1] == ("inner",) and any(use.kind in ("ask", "run") for use in reading.uses)):
            return self._inside(argv, program, place) + parts
        return denied_reads(self._uses, asked, place.cwd) + parts

    def _of_started(self, started: Started, own: Part, place: Place) -> list[Part]:
        """What ``own`` starts, judged; of Python's modules only such as start others. An operator's rule goes before what is not known."""
        place = replace(place, depth=place.depth + 1, started=True)
        parts = [replace(own, verdict=Verdict.ASK, rule=NO_RULE, reason=started.asks)] if started.asks and own.rule == WORK else []
        if started.inner and not (started.is_module and self._policy.catalogue.front_of(started.inner[0]) is None):
            parts += self._command(started.inner, place)[0]
        return parts + [part for text in started.texts for part in self._text(text, place).parts]

    def _used(self, reading: Reading, described: Description, place: Place) -> list[Part]:
        """What its arguments use. To list the folder that one is in needs no rule that names it; one that denies it, or asks, holds."""
        shallow = described.shallow and not reading.deep and not place.found
        uses = [_of_found(use, place) if place.found else use for use in _joined(reading.uses)]
        found = [(use, self._uses.judge(use, _base(use, reading, place), shallow)) for use in uses]
        return [part for use, part in found if not (shallow and use.why == HERE and part.rule == NO_RULE)]

    def _allowed(self, argv: tuple[str, ...], program: Program, described: Description, reading: Reading, place: Place, shown: str) -> Part:
        """Steps 3 to 6 for the program itself."""
        words = reading.words if described.is_described else None
        rule = self._policy.commands.allowing(program, argv, words, place.cwd, self._files)
        marked = rule is not None and rule.unconfined
        wraps = described.operands[:1] == ("inner",)
        if not program.path and "/" in program.called and not self._work.runs(argv, program, place.cwd):
            return Part(shown, Verdict.ASK, NO_RULE, "program", f"there is no program {program.called}")
        if wraps and reading.inners and not (reading.exact or marked):
            name = rule.text if rule else NO_RULE
            return Part(shown, Verdict.ASK, name, "program", f"{program.name} gives the command unknown arguments")
        if wraps and reading.inners and not described.runner:
            return Part(shown, Verdict.ALLOW, "unwrapped", "program", f"{program.name} runs a command that is checked by itself")
        is_work = rule is None and self._work.runs(argv, program, place.cwd)
        if described.runner and not (marked or is_work):
            return Part(shown, Verdict.DENY, "runners", "program", f"{program.name} {described.swallows}")
        is_own = place.started and not program.path and "/" not in program.called
        if is_work or (rule is None and is_own) or (rule is None and self._work.programs and _only_tells(argv, program)):
            return Part(shown, Verdict.ASK, WORK, "program", NOT_CONTAINED)
        if rule is None:
            return Part(shown, Verdict.ASK, NO_RULE, "program", f"no rule says whether {program.name} may run")
        return _by_rule(rule, program, described, reading, shown)

    def _inner(self, inner: tuple[str, ...], reading: Reading, place: Place) -> list[Part]:
        if not inner or not inner[0]:
            return [Part("", Verdict.ASK, NO_RULE, "options", "what it runs is not said")]
        return self._command(inner, replace(place, depth=place.depth + 1, found=reading.places, way=reading.way))[0]

    def _inside(self, argv: tuple[str, ...], program: Program, place: Place) -> list[Part]:
        """What of an undescribed program's words is denied for certain; its rule may allow it, but never over a denial."""
        parts = written(self._uses, argv, place.cwd) + denied_reads(self._uses, argv[1:], place.cwd)
        for word in argv[1:]:
            if rule := self._policy.commands.names_denied(word):
                parts.append(Part(word, Verdict.DENY, rule.text, "program", f"{program.name} may run it, and that is blocked by rule"))
        parts += self._as_its_file(argv, program, place)
        if program.names & _APPLETS and len(argv) > 1 and place.depth <= DEPTH:
            parts += [part for part in self._command(argv[1:], replace(place, depth=place.depth + 1))[0] if part.verdict is Verdict.DENY]
        if program.names & SHELLS and place.depth <= DEPTH and (script := script_of(argv)):
            found = self._text(script, replace(place, depth=place.depth + 1))
            if self._work.programs:
                return [*parts, *found.parts]
            parts += [part for part in found.parts if part.danger or (part.verdict is Verdict.DENY and part.step != "parse")]
        return parts

    def _as_its_file(self, argv: tuple[str, ...], program: Program, place: Place) -> list[Part]:
        """What is denied of an undescribed name's arguments, where it is a link to a described program: that one may be what runs."""
        described = self._policy.catalogue.of(posixpath.basename(program.real))
        if described is None or not described.is_described or place.depth > DEPTH:
            return []
        reading = read_argv((posixpath.basename(program.real), *argv[1:]), described)
        parts = self._used(reading, described, place)
        parts += [part for inner in reading.inners for part in self._inner(inner, reading, place)]
        return [part for part in parts if part.verdict is Verdict.DENY]


def _danger(dangers: tuple[Danger, ...], argv: tuple[str, ...], program: Program, verb: str, place: Place) -> Danger | None:
    """The danger that a command is, or that the program is which it fetches or starts by name (``npx wrangler deploy``)."""
    # What is removed in a folder by its name is not the folder.
    named = tuple(word for word in argv if word not in place.found) if place.way.only else argv
    return danger_of(dangers, program.names, named, verb) or danger_started(dangers, program.names, named)


def _asked(rule: str, shown: str, named: Danger | None) -> Part:
    """What a rule asks about, with its danger where it is known for one."""
    if named is None:
        return Part(shown, Verdict.ASK, rule, "program", "a rule asks a person")
    return Part(shown, Verdict.ASK, rule, "program", named.words_first, danger=named.kind)


def _not_there_yet(base: str, folder: str, written: tuple[str, ...], shown: str) -> list[Part]:
    """A question where git's folder cannot be looked at now: a pattern names it, or a command before it in the text writes it."""
    if re.search(r"[*?\[]", base):
        return [
            Part(shown, Verdict.ASK, NO_RULE, "git", "a pattern names the folder in which git works: what git would run there is not known")
        ]
    made = next((path for path in written if f"{folder}/".startswith(f"{path.rstrip('/')}/")), "")
    why = f"{made} is written before by the same call: what git would run there is not known"
    return (
        [Part(shown, Verdict.ASK, "programs of git", "git", f"{DangerClass.ESCALATES}: {why}", danger=DangerClass.ESCALATES.value)]
        if made
        else []
    )


def _perhaps_run(parts: Iterable[Part]) -> Iterator[Part]:
    """A question for what is denied, is dangerous or connects in a text that may be run (``yarn exec 'rm -rf ~'``)."""
    for part in parts:
        connects = part.action == "connect" and part.verdict is not Verdict.ALLOW
        if part.danger or connects or (part.verdict is Verdict.DENY and part.step != "parse" and part.rule != "never"):
            yield replace(part, verdict=Verdict.ASK, reason=f"it may be run: {part.reason}", use="", names=())


def _only_tells(argv: tuple[str, ...], program: Program) -> bool:
    """Whether a program is asked for nothing but its version, or how it is called."""
    return program.in_search and len(argv) == 2 and argv[1] in ("--version", "--help", "version")


def _sourced(path: str, place: Place, files: Once, workspace: str) -> Part:
    """A script that the shell itself reads does what a program of the workspace does, if it lies there."""
    facts, home = files.look(absolute(path, place.cwd)), files.look(workspace).real.rstrip("/")
    is_found = facts.kind == "file" or (facts.kind == "missing" and "/" in path)  # a bare name is looked for in other places too
    if not is_found or not home or not facts.real.startswith(f"{home}/"):
        return Part(f"source {path}", Verdict.ASK, NO_RULE, "program", f"{path} is read by the shell, and lies outside of the workspace")
    return Part(f"source {path}", Verdict.ASK, WORK, "program", NOT_CONTAINED)


def _base(use: Use, reading: Reading, place: Place) -> str:
    return place.cwd if use.why == "option -C" or not reading.base else absolute(reading.base, place.cwd)


def _by_rule(rule: Rule, program: Program, described: Description, reading: Reading, shown: str) -> Part:
    if rule.unconfined:
        return Part(shown, Verdict.ALLOW, rule.text, "program", "allowed by rule, marked unconfined")
    if not rule.words or not program.in_search:
        why = "it allows every program" if not rule.words else f"{program.called} may be a file that agents can change"
        return Part(shown, Verdict.ASK, rule.text, "program", f"{why}, and the rule is not marked unconfined")
    if described.swallows and not described.is_described:
        why = f"{program.name} {described.swallows}, and the rule is not marked unconfined"
        return Part(shown, Verdict.ASK, rule.text, "program", why)
    if not described.is_described:
        return Part(shown, Verdict.ASK, rule.text, "program", f"what the arguments of {program.name} do is not described")
    if reading.inners and not reading.exact:
        return Part(shown, Verdict.ASK, rule.text, "program", f"{program.name} gives a command unknown arguments")
    return Part(shown, Verdict.ALLOW, rule.text, "program", "allowed by rule")


def _of_others(parts: list[Part]) -> list[Part]:
    """The same where a database elsewhere is named, or one that others use: a person is asked."""
    return [replace(part, rule=NO_RULE) if part.rule == DATABASE else part for part in parts]


def _joined(uses: list[Use]) -> list[Use]:
    """All words that no description covers as one use: a person reads one line about them, not one for each."""
    asked: dict[str, list[str]] = {}
    for use in uses:
        if use.kind == "ask":
            asked.setdefault(use.why, []).append(use.value)
    more = {why: f" and {len(words) - _WORDS} more" if len(words) > _WORDS else "" for why, words in asked.items()}
    joined = [Use("ask", " ".join(words[:_WORDS]) + more[why], why) for why, words in asked.items()]
    return [use for use in uses if use.kind != "ask"] + joined


def _of_found(use: Use, place: Place) -> Use:
    """The use of a folder that stands for whatever was found in it: links are followed, and to make a file is to change one there."""
    kind = "write" if use.kind in ("make", "into") else use.kind
    if use.value in place.found and use.why in ("argument", "changed in place"):
        return replace(use, kind=kind, way=replace(place.way, follows=True, there=True, depth=use.way.depth))
    return replace(use, kind=kind, way=replace(use.way, follows=True))


def _source(text: str, simple: Simple) -> str:
    return text[simple.start : simple.end]


def _oddities(simple: Simple, found: list[Part], place: Place, work: WorkspacePrograms, *, is_expanded: bool) -> list[Part]:
    """What the shell would put in place of words, and what it would not wait for."""
    parts = []
    for word in simple.words:
        if word.pattern and is_expanded:
            parts.append(Part(word.value, Verdict.ASK, PATTERN, "parse", "each name that it means now was judged"))
        elif word.pattern or word.tilde:
            why = "the shell would put names in its place; as an argument it stays as it is written"
            asked = Part(word.value, Verdict.ASK, "static shell only", "parse", why)
            parts.append(work.names(word, found, place.cwd) or asked)
    if simple.behind:
        rule = WORK if work.programs else "static shell only"
        parts.append(Part(" ".join(simple.argv), Verdict.ASK, rule, "parse", "it runs in the background (&), after the call has ended"))
    return parts


def _never(program: Program, argv: tuple[str, ...], place: Place, builtins: frozenset[str]) -> str:
    if place.depth > DEPTH:
        return "commands within commands are too deep"
    if program.called in builtins:
        return f"{program.called} is a builtin of the shell, not a program"
    if "=" in program.called.partition("/")[0]:
        return "it sets a variable for a program"
    if program.name.startswith(("ld-", "ld.so")) or (program.path and "/proc/" in absolute(argv[0], place.cwd)):
        return "it runs a program by a way around its name"
    return ""


# --- What is executed of a command that was judged: its file as it was looked at, and variables without which it would run others.


DEPTH = 6
TEXTS = 2
"""Levels of quoted texts that are read as commands: each costs several readings of what is in it."""
"""Commands within commands."""


class StepMaker:
    """By one catalogue of programs and one disk."""

    def __init__(self, catalogue: Catalogue, files: Files) -> None:
        self._catalogue, self._files = catalogue, files

    def made(self, argv: tuple[str, ...], program: Program, cwd: str, joined: str = "", redirects: tuple[Redirect, ...] = ()) -> Step:
        """The step of one command; ``joined`` as in ``Step``."""
        facts = program.facts
        file = (*facts.inode, facts.changed_ns) if facts is not None and facts.inode is not None else None
        return Step(argv, program.path, cwd, joined, redirects, self.environment(argv, program, cwd), file)

    def environment(self, argv: tuple[str, ...], program: Program, cwd: str, depth: int = 0) -> tuple[tuple[str, str], ...]:
        """Variables without which it, or what it runs in its turn, would run others. ``depth``: commands around it."""
        described = self._catalogue.of(program.name)
        if described is None or described.operands[:1] != ("inner",) or depth > DEPTH:
            return self._own(argv, described, cwd) if described else ()
        inners = [inner for inner in read_argv(argv, described).inners if inner and inner[0]]
        found = [self.environment(inner, find_program(inner[0], cwd, self._files), cwd, depth + 1) for inner in inners]
        return tuple(dict.fromkeys(pair for pairs in found for pair in pairs))

    def _own(self, argv: tuple[str, ...], described: Description, cwd: str) -> tuple[tuple[str, str], ...]:
        """A program's own variables; git's with settings that take from the repository there whatever would run a program."""
        known = dict(described.environment)
        if "GIT_CONFIG_COUNT" not in known:
            return described.environment
        count = int(known["GIT_CONFIG_COUNT"])
        for key, value in overrides(absolute(read_argv(argv, described).base or ".", cwd), self._files):
            known |= {f"GIT_CONFIG_KEY_{count}": key, f"GIT_CONFIG_VALUE_{count}": value}
            count += 1
        return tuple({**known, "GIT_CONFIG_COUNT": str(count)}.items())


# --- A shell's redirect, judged as the read or write that it is.


def judge_redirect(target: Target, cwd: str, rules: FileRules, files: Files) -> tuple[Part, list[Redirect]]:
    """(the verdict, what becomes of descriptors: real paths or other descriptors); what is not certain is denied."""
    word, operator = target.word, target.operator
    descriptor = target.descriptor if target.descriptor is not None else (0 if operator.startswith("<") else 1)
    shown = f"{operator} {word.value}"
    if operator in (">&", "<&") and word.value in ("-", "0", "1", "2"):
        mode = "close" if word.value == "-" else "copy"
        moved = Redirect(descriptor, mode=mode, source=-1 if mode == "close" else int(word.value))
        return Part(shown, Verdict.ALLOW, "descriptors", "redirect", "one descriptor becomes another"), [moved]
    if word.pattern or word.tilde or operator == "<&" or (operator == ">&" and (word.value.isdigit() or target.descriptor is not None)):
        return Part(shown, Verdict.DENY, "static shell only", "redirect", "which file it names is not certain"), []
    use = "read" if operator == "<" else "write"
    mode = "read" if operator == "<" else "append" if ">>" in operator else "write"
    redirects = [Redirect(descriptor, files.look(absolute(word.value, cwd)).real, mode)]
    if operator.startswith("&") or operator == ">&":
        redirects.append(Redirect(2, mode="copy", source=1))
    return replace(rules.judge(use, word.value, cwd, files), step="redirect", action=use), redirects
