"""What an argument does, judged: files by the file rules, hosts by the network rules, packages and repositories by what was declared."""

from __future__ import annotations

import posixpath
import re
from dataclasses import replace

from console.domain.calls.permission import Verdict
from console.policy.files.paths import FileRules, Files, absolute
from console.policy.git.index import index_of
from console.policy.git.repository import repository_of
from console.policy.rules.declared import Declared
from console.policy.rules.hosts import HostRules
from console.policy.rules.verdicts import DATABASE, IN_SANDBOX, NO_RULE, RUN_BY_OPTION, Part, no_looser_than, worst
from console.policy.shell.operands import Use
from console.policy.tools.patches import targets_of
from console.policy.way import Way

_REQUIREMENT = re.compile(
    r"[A-Za-z0-9]([A-Za-z0-9._-]{0,120}[A-Za-z0-9])?(\[[A-Za-z0-9,._-]{1,120}\])?((==|>=|<=|~=|!=|<|>)[A-Za-z0-9.*+!-]{1,60},?){0,8}\Z"
)
_ARCHIVE = re.compile(r"\.(zip|whl|tar|tgz|tbz|txz|tlz|gz|bz2|xz|lz|lzma)(\[.*\])?\Z", re.IGNORECASE)
"""pip installs a file of such a name in the folder it runs in, rather than a package (pip._internal.utils.filetypes)."""
_PATTERN = re.compile(r"[*?\[\\]")
"""git takes such a word for a pattern (gitglossary(7), pathspec): files by any name below."""
_SCP = re.compile(r"(?:[A-Za-z0-9._-]+@)?([A-Za-z0-9._-]+):(?!//)(\S+)\Z")

_ACTIONS = {
    **dict.fromkeys(("read", "list", "maybe", "pathspec", "follow", "tracked", "worktree", "linked"), "read"),
    **dict.fromkeys(("write", "make", "into", "device", "patch"), "write"),
    **dict.fromkeys(("delete", "move"), "delete"),
    **dict.fromkeys(("url", "host", "remote", "package"), "connect"),
}


class UseRules:
    """The judges of one policy that arguments are handed to."""

    def __init__(self, rules: FileRules, hosts: HostRules, files: Files, declared: Declared | None) -> None:
        self._rules = rules
        self._hosts = hosts
        self._files = files
        self._declared = declared

    def judge(self, use: Use, cwd: str, shallow: bool) -> Part:
        """A verdict on one use of an argument."""
        part = self._judge(use, cwd, shallow)
        if part.action == _ACTIONS.get(use.kind, "") and use.kind != "move":
            return part
        return replace(part, action=_ACTIONS.get(use.kind, ""), use=use.kind if use.kind == "move" else part.use)

    def _judge(self, use: Use, cwd: str, shallow: bool) -> Part:
        match use.kind:
            case "read" | "write" | "delete" | "list" | "make":
                softer = {"read": "list", "write": "make"}.get(use.kind, use.kind) if shallow else use.kind
                return self._rules.judge(softer, use.value, cwd, self._files, use.way)
            case "maybe" | "pathspec":
                return self._pattern(use, cwd) or (self._maybe if use.kind == "maybe" else self._named)(use, cwd)
            case "follow" | "move" | "into" | "device" | "tracked" | "worktree":
                judges = {"follow": self._follow, "move": self._move, "into": self._into, "device": self._device}
                return judges.get(use.kind, self._of_git)(use, cwd)
            case "patch" | "linked":
                return (_patched if use.kind == "patch" else _linked)(self._rules, self._files, use, cwd)
            case "url" | "host":
                return self._url(use.value) if use.kind == "url" else self._hosts.judge(use.value.rpartition("@")[2], is_url=False)
            case "remote":
                return self._remote(use.value, cwd)
            case "package":
                return self._package(use.value)
            case "contained" | "sql":
                return Part(use.value, Verdict.ASK, DATABASE if use.kind == "sql" else IN_SANDBOX, "options", use.why)
            case "run":
                return Part(use.value, Verdict.DENY, RUN_BY_OPTION, "options", use.why)
            case _:
                return Part(use.value, Verdict.ASK, "not described", "options", use.why)

    def _move(self, use: Use, cwd: str) -> Part:
        return _worst([self._rules.judge(kind, use.value, cwd, self._files) for kind in ("read", "delete")])

    def _named(self, use: Use, cwd: str) -> Part:
        return self._of_git(replace(use, kind="worktree"), cwd)

    def _of_git(self, use: Use, cwd: str) -> Part:
        """A folder as git reads it: what is tracked, and of a ``worktree`` also what is not and is not ignored; never ``.git`` itself."""
        folder = absolute(use.value, cwd).rstrip("/") or "/"
        folder = posixpath.normpath(folder)
        repository = repository_of(folder, self._files) if self._files.look(folder).kind == "folder" else None
        index = index_of(repository, self._files) if repository is not None else None
        if repository is None or index is None or index.problem:
            return self._rules.judge("read", use.value, cwd, self._files, use.way)
        known = self._rules.judge_names(folder, repository.folder, index.names, index.text, self._files)
        tracked = replace(known, way=Way(depth=0), tracked=(repository.folder, tuple(index.names)))
        if use.kind == "tracked":
            return tracked
        worst = _worst([tracked, self._rules.judge("read", use.value, cwd, self._files, use.way)])
        return replace(worst, way=use.way, tracked=tracked.tracked)

    def _pattern(self, use: Use, cwd: str) -> Part | None:
        """A word that git takes for a pattern of files, or for a search; None: it is none, or may mean all that lies here."""
        # What is left out makes it less than all that lies here (gitglossary(7), pathspec).
        is_less = re.match(r":(?:[!^](?![!^/(])|\(exclude\))[\w.*/-]+\Z", use.value) is not None
        is_search = use.value[:1] == ":" and use.value[1:2] in ("(", "!", "^", "/") and not is_less
        if not is_search and not is_less and not _PATTERN.search(use.value):
            return None
        part = self._of_git(replace(use, value=".", kind="worktree" if use.kind == "pathspec" else "tracked"), cwd)
        if is_search:
            return no_looser_than(part, Verdict.ASK, "not described", "git reads it as a pattern, or a search, of its own")
        return part if part.verdict is not Verdict.ALLOW else None

    def _maybe(self, use: Use, cwd: str) -> Part:
        """A word that is a file only if there is one (``git diff WORD``, ``git show HEAD:FILE``)."""
        _, colon, inside = use.value.partition(":")
        if colon and (part := self._rules.judge("read", inside or ".", cwd, self._files)).verdict is not Verdict.ALLOW:
            return part
        facts = self._files.look(absolute(use.value, cwd)) if use.value.isprintable() and len(use.value) < 1024 else None
        if facts is None or facts.kind != "missing" or use.value.startswith("/") or ".." in use.value.split("/"):
            return self._of_git(replace(use, kind="tracked"), cwd)
        return Part(use.value, Verdict.ALLOW, "no file", "options", "it names no file")

    def _follow(self, use: Use, cwd: str) -> Part:
        """Read with what the links below a folder lead to."""
        return self._rules.judge("read", use.value, cwd, self._files, replace(use.way, follows=True))

    def _device(self, use: Use, cwd: str) -> Part:
        return self._rules.judge_device(use.value, cwd, self._files)

    def _into(self, use: Use, cwd: str) -> Part:
        facts = self._files.look(absolute(use.value, cwd))
        if facts.kind != "folder" or not use.names:
            return self._rules.judge("write", use.value, cwd, self._files)
        whole = [self._rules.judge("make", use.value, cwd, self._files)] if "." in use.names or ".." in use.names else []
        return _worst(whole + [self._rules.judge("write", f"{use.value.rstrip('/')}/{name}", cwd, self._files) for name in use.names])

    def _url(self, value: str) -> Part:
        url = value if "://" in value else f"http://{value}"
        part = self._hosts.judge(url, is_url=True)
        if part.verdict is Verdict.DENY or self._declared is None:
            return part
        return self._declared.web(url) or part

    def _remote(self, value: str, cwd: str) -> Part:
        """What git may fetch from: a URL, ``user@host:path``, or a folder."""
        if found := _SCP.match(value):
            value = f"ssh://{found.group(1)}/{found.group(2)}"
        if "::" in value:
            return Part(value, Verdict.DENY, RUN_BY_OPTION, "options", "git would run a helper program for this address")
        if "://" not in value:
            return self._rules.judge("read", value, cwd, self._files)
        plain = re.sub(r"^(ssh|https?)://[A-Za-z0-9._-]+@", r"\1://", value) if value.startswith("ssh://") else value
        part = self._hosts.judge(plain, is_url=True)
        if part.verdict is Verdict.DENY or self._declared is None:
            return part
        return self._declared.remote(plain) or part

    def _package(self, value: str) -> Part:
        if not _REQUIREMENT.match(value) or _ARCHIVE.search(value):
            return Part(value, Verdict.ASK, NO_RULE, "options", "it is no plain name of a package")
        refused = self._declared.package("pip", re.split(r"[\[=<>~!]", value, maxsplit=1)[0]) if self._declared else None
        return refused or Part(value, Verdict.ALLOW, "packages", "options", "a package by its name, from the registries that are set")


def _worst(parts: list[Part]) -> Part:
    found = worst(parts)
    return next(part for part in parts if part.verdict is found.verdict)


def _linked(rules: FileRules, files: Files, use: Use, cwd: str) -> Part:
    """What a link says, from where it lies: in the destination, or beside it."""
    is_folder = files.look(absolute(use.why, cwd)).kind == "folder"
    place = use.why if is_folder else posixpath.dirname(use.why.rstrip("/"))
    return rules.judge("read", use.value, absolute(place or ".", cwd), files)


def _patched(rules: FileRules, files: Files, use: Use, cwd: str) -> Part:
    """A patch: the files that it names are changed."""
    part = rules.judge("read", use.value, cwd, files)
    text = files.text(absolute(use.value, cwd)) if part.verdict is Verdict.ALLOW else None
    targets = targets_of(text) if text is not None else ()
    if part.verdict is Verdict.ALLOW and not targets:
        return Part(use.value, Verdict.ASK, NO_RULE, "file", "which files the patch changes is not certain")
    return _worst([part, *(rules.judge("write", target, cwd, files) for target in targets)])
