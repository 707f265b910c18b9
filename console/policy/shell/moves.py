"""Follow ``cd`` through a text: the folders in which each of its commands may run.

A ``cd`` may fail, or be passed over. What runs only if it led there (``&&``) is judged there. What runs in any case is judged in each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from console.domain.calls.permission import Verdict
from console.policy.files.paths import FileRules, Files, absolute
from console.policy.rules.verdicts import BY_RULE, Part
from console.policy.shell.commands import CommandRules, Program
from console.policy.shell.lines import Simple

_FOLDERS_MAX = 12
_CD = Program("cd", "cd", "", "", frozenset({"cd"}), True)


class Rules(Protocol):
    """The part of a policy that is asked about folders."""

    files: FileRules
    commands: CommandRules


class Moves:
    """Of one text."""

    def __init__(self, rules: Rules, files: Files, cwd: str, *, is_strict: bool) -> None:
        self._rules, self._files, self._is_strict = rules, files, is_strict
        self.folders: tuple[str, ...] = (cwd,)
        """Where the next command may run."""
        self.is_uncertain = False
        """A command had several such folders, so that no step of it is certain."""
        self._else: tuple[str, ...] = ()
        """Where one that runs in any case may run too."""
        self._has_moved = False

    def joined(self, simple: Simple, shown: str) -> list[Part]:
        """Takes in how a command follows the one before it."""
        if simple.joined not in (";", "||"):
            return []
        if self._has_moved and self._is_strict:
            why = "it would run elsewhere if the cd before it failed; join it with &&"
            return [Part(shown, Verdict.DENY, "cd", "parse", why)]
        self.folders, self._else = tuple(dict.fromkeys((*self.folders, *self._else))), ()
        self.is_uncertain = self.is_uncertain or len(self.folders) > 1
        if len(self.folders) <= _FOLDERS_MAX:
            return []
        self.folders = self.folders[:_FOLDERS_MAX]
        return [Part(shown, Verdict.DENY, "cd", "parse", "it may run in too many folders; join it to each cd with &&")]

    def moved(self, simple: Simple, behind: Sequence[Simple], names: tuple[str, ...] | None) -> list[Part]:
        """``cd DIR``: no program runs; what follows is judged, and executed, from there.

        ``behind``: the command behind it. ``names``: all that DIR may mean, where it is a pattern; None: that is not certain.
        """
        following = behind[0].joined if behind else ""
        text = " ".join(simple.argv)
        if simple.argv == ("cd", "-") and following == "" and not simple.targets and simple.joined in ("&&", ";"):
            return []  # the last command, back to where it began
        if not self._is_certain(simple, following, names is not None):
            return [Part(text, Verdict.DENY, "cd", "parse", "where it leads is not certain; write cd FOLDER && COMMAND")]
        parts = list[Part]()
        for kind, verdict in (("deny", Verdict.DENY), ("ask", Verdict.ASK)):
            if rule := self._rules.commands.forbidding(kind, _CD, simple.argv, simple.argv[1:], self.folders[0], self._files):
                parts.append(Part(text, verdict, rule.text, "program", BY_RULE[kind]))
        before = self.folders if following else self.folders[:1]  # nothing runs behind the last one
        reached = [self._led(name, folder, text, parts) for folder in before for name in names or simple.argv[1:]]
        # Behind ``||`` it is passed over where what came before it did well.
        self.folders = tuple(dict.fromkeys((*reached, *(before if simple.joined == "||" else ()))))
        self._else = tuple(dict.fromkeys((*self._else, *before)))
        self._has_moved = True
        return parts

    def _is_certain(self, simple: Simple, following: str, is_known: bool) -> bool:
        """Whether it goes to one folder by its name, or to one of those that a pattern means, in this shell."""
        joins, follows = (("|", "|&"), ("&&", ";", "||", "")) if not self._is_strict else (("|", "|&", "||"), ("&&", ""))
        is_alone = len(simple.words) == 2 and not simple.targets and not simple.behind and simple.joined not in joins
        is_name = is_alone and not (simple.argv[1].startswith("-") or (simple.words[1].pattern and not is_known) or simple.words[1].tilde)
        return is_name and following in follows

    def _led(self, folder: str, cwd: str, text: str, parts: list[Part]) -> str:
        part = self._rules.files.judge("list", folder, cwd, self._files)
        facts = self._files.look(absolute(folder, cwd))
        parts.append(replace(part, action="read"))
        if ".." in folder.split("/") and facts.real != _flat(folder, cwd):
            parts.append(Part(text, Verdict.DENY, "cd", "parse", "the shell and the disk read '..' behind a link differently"))
        return facts.real or absolute(folder, cwd)


def _flat(folder: str, cwd: str) -> str:
    pieces: list[str] = []
    for piece in absolute(folder, cwd).split("/"):
        if piece == "..":
            del pieces[-1:]
        elif piece:
            pieces.append(piece)
    return "/" + "/".join(pieces)
