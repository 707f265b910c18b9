"""What a call of git would run without having been told to: settings, hooks and attributes of the repository that it would use.

What stood there when the session began, or is the operator's own, does not ask. An ordinary repository names no program at all.
"""

from __future__ import annotations

import hashlib
import posixpath
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from console.domain.calls.permission import DangerClass, Verdict
from console.policy.files.paths import Files, absolute
from console.policy.git.index import index_of
from console.policy.git.repository import Repository, repository_of
from console.policy.git.settings import Value, values_of
from console.policy.rules.verdicts import Part

HOOKS = frozenset({
    "applypatch-msg", "pre-applypatch", "post-applypatch", "pre-commit", "pre-merge-commit", "prepare-commit-msg", "commit-msg",
    "post-commit", "pre-rebase", "post-checkout", "post-merge", "pre-push", "pre-receive", "update", "proc-receive", "post-receive",
    "post-update", "reference-transaction", "push-to-checkout", "pre-auto-gc", "post-rewrite", "sendemail-validate", "fsmonitor-watchman",
    "p4-changelist", "p4-prepare-changelist", "p4-post-changelist", "p4-pre-submit", "post-index-change",
})  # fmt: skip
"""githooks(5): git runs nothing else that lies in the folder."""
_OPERATORS = ("/etc/", "/usr/")
"""No agent may write there: what it names is the operator's own."""
_MODULES_DEEP, _ATTRIBUTES_MAX, _SHOWN = 4, 1000, 120


@dataclass(frozen=True, slots=True)
class Trigger:
    """One thing that makes git run a program. Hostile."""

    file: str
    what: str
    """What it runs, in words for the person who is asked."""
    mark: str
    """A mark that stays the same as long as the program does."""


class Known(Protocol):
    """What is known of a session's beginning."""

    def was_there(self, trigger: Trigger, changed_ns: int) -> bool:
        """Whether it stood in its file, last changed at ``changed_ns`` (0: not known), when the session began."""
        ...


class NothingKnown:
    """No session: nothing is known to have been there before."""

    def was_there(self, trigger: Trigger, changed_ns: int) -> bool:
        return False


def judge_git(folder: str, home: str, files: Files, known: Known, shown: str) -> list[Part]:
    """One part that asks for each program that git would run in a folder and that is not known from before, at most a few."""
    found: list[Part] = []
    for trigger in triggers(folder, home, files):
        facts = files.look(trigger.file)
        if trigger.file.startswith(_OPERATORS) and facts.real.startswith(_OPERATORS):
            continue
        # A link that is new leads to a file that is old: such a file's time says nothing.
        if known.was_there(trigger, facts.changed_ns if facts.real == trigger.file else 0):
            continue
        why = f"escalates: git would run what {trigger.file} names: {trigger.what}; it was not there when the session began"
        found.append(Part(shown, Verdict.ASK, "programs of git", "git", why, danger=DangerClass.ESCALATES.value))
        if len(found) >= 5:
            break
    return found


def judge_discard(argv: Sequence[str], words: Sequence[str], folder: str, files: Files, shown: str) -> list[Part]:
    """A question about a call that puts files back as they were committed: ``checkout PATH``, ``restore PATH``.

    ``words``: subcommand and operands. ``restore --staged`` alone changes no file; ``checkout NAME`` goes to a branch where there is one.
    """
    if not _discards(argv, words, folder, files):
        return []
    why = f"{DangerClass.DESTROYS}: it throws away changes of files that were not committed"
    return [Part(shown, Verdict.ASK, "danger: throw away changes", "danger", why, danger=DangerClass.DESTROYS.value)]


def _discards(argv: Sequence[str], words: Sequence[str], folder: str, files: Files) -> bool:
    verb, operands = words[0] if words else "", words[1:]
    end = argv.index("--") if "--" in argv else len(argv)
    options = [word for word in argv[1:end] if word.startswith("-")]
    letters = {letter for word in options if not word.startswith("--") for letter in word[1:]}
    if verb == "restore":
        is_staged, is_worktree = "--staged" in options or "S" in letters, "--worktree" in options or "W" in letters
        return bool(operands) and (is_worktree or not is_staged)
    if verb != "checkout" or letters & {"b", "B", "t"} or {"--orphan", "--track"} & set(options):
        return False
    return end < len(argv) - 1 or len(operands) > 1 or any(_names_files(operand, folder, files) for operand in operands)


def _names_files(operand: str, folder: str, files: Files) -> bool:
    """Whether git takes an operand of ``checkout`` for files, not for a branch."""
    if operand[:1] == ":" or any(sign in operand for sign in "*?["):
        return True
    if operand == "-" or files.look(absolute(operand, folder)).kind == "missing":
        return False
    repository = repository_of(folder, files)
    return repository is None or operand in (".", "..") or files.look(f"{repository.common}/refs/heads/{operand}").kind != "file"


def triggers(folder: str, home: str, files: Files) -> Iterator[Trigger]:
    """Whatever makes git run a program in a folder. ``home``: where an agent of ours has its own settings; empty: none."""
    home = files.look(home).real if home else ""
    own = [value for name in (".gitconfig", ".config/git/config") if home for value in values_of(f"{home}/{name}", files)]
    yield from map(_of_value, own)
    repository = repository_of(folder, files)
    if repository is not None:
        yield from _of_repository(repository, own, files, 0)


def overrides(folder: str, files: Files) -> Iterator[tuple[str, str]]:
    """Settings (key, value) that take from a repository what would run a program, where they are joined last (git-config(1), environment).

    An empty filter is none; an empty command of a difference fails, and runs nothing. An include's own values are among them.
    """
    repository = repository_of(folder, files)
    if repository is None:
        return
    values = [value for place in _settings_of(repository) for value in values_of(place, files)]
    for key in dict.fromkeys(value.key for value in values if value.key != "unreadable"):
        yield key, ""
        if key.startswith("filter."):
            yield f"{key.rpartition('.')[0]}.required", "false"


def _settings_of(repository: Repository) -> tuple[str, ...]:
    """Where the settings of a repository lie, each once."""
    places = (f"{repository.common}/config", f"{repository.git_dir}/config", f"{repository.git_dir}/config.worktree")
    return tuple(dict.fromkeys(places))


def _of_repository(repository: Repository, above: Sequence[Value], files: Files, depth: int) -> Iterator[Trigger]:
    values = [value for place in _settings_of(repository) for value in values_of(place, files)]
    yield from map(_of_value, values)
    yield from _hooks(repository, [*above, *values], files)
    index = index_of(repository, files)
    if index.problem:
        yield Trigger(f"{repository.git_dir}/index", index.problem, "index")
    yield from _attributes(repository, [*above, *values], index.names, files)
    for name in index.modules[:_ATTRIBUTES_MAX] if depth < _MODULES_DEEP else ():  # git runs itself in each of them
        there = f"{repository.folder.rstrip('/')}/{name}"
        module = repository_of(there, files) if files.look(f"{there}/.git").kind != "missing" else None
        if module is not None and module.git_dir != repository.git_dir:
            yield from _of_repository(module, above, files, depth + 1)


def _of_value(value: Value) -> Trigger:
    return Trigger(value.file, f"{value.key} = {value.text}"[:_SHOWN], f"{value.key}={value.text}")


def _hooks(repository: Repository, values: Sequence[Value], files: Files) -> Iterator[Trigger]:
    """Hooks in the folder that is in force, and what the shims of a hook manager call beside it (``.husky/_``)."""
    set_here = [value for value in values if value.key == "core.hookspath"]
    folders = [f"{repository.common}/hooks", *(absolute(value.text, repository.folder) for value in set_here if value.text[0] != "~")]
    shims = [posixpath.dirname(one.rstrip("/")) for one in folders if posixpath.basename(one.rstrip("/")) == "_"]
    for folder in dict.fromkeys([*folders, *shims]):
        if files.look(folder).kind != "folder":
            continue
        for name in sorted(HOOKS & files.listing(folder).names):
            path = f"{folder.rstrip('/')}/{name}"
            text = files.text(path)
            held = hashlib.sha256((text or "").encode("utf-8", "surrogateescape")).hexdigest()
            yield Trigger(path, f"the hook {name}", f"hook {name} {held}" if text is not None else f"hook {name} unreadable")


def _attributes(repository: Repository, values: Sequence[Value], names: Sequence[str], files: Files) -> Iterator[Trigger]:
    """Lines of attributes that choose a driver which is set to run a program (gitattributes(5)). git reads them tracked or not."""
    drivers = {value.driver for value in values} - {""}
    if not drivers:
        return
    top = repository.folder.rstrip("/")
    folders = dict.fromkeys(above for name in names for above in _folders_of(name))
    tracked = [f"{top}/{name}" for name in names if name.rpartition("/")[2] == ".gitattributes"][:_ATTRIBUTES_MAX]
    there = [f"{top}/{folder}.gitattributes" for folder in folders][:_ATTRIBUTES_MAX]
    set_here = [absolute(value.text, top) for value in values if value.key == "core.attributesfile" and value.text[0] != "~"]
    for path in dict.fromkeys((f"{top}/.gitattributes", f"{repository.common}/info/attributes", *set_here, *tracked, *there)):
        for line in (files.text(path) or "").splitlines():
            for word in sorted(drivers.intersection(line.split()[1:])):
                yield Trigger(path, f"{word} for {line.split()[0][:60]}", f"{line.split()[0]} {word}")


def _folders_of(name: str) -> Iterator[str]:
    """The folders that a tracked name lies in, from the top, each with its slash: ``a/``, ``a/b/``."""
    at = name.find("/")
    while at >= 0:
        yield name[: at + 1]
        at = name.find("/", at + 1)
