"""Settings of git that make it run a program, read from its files (git-config(1), "CONFIGURATION FILE"), includes followed."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass

from console.policy.files.paths import Files, absolute

_SECTION = re.compile(r'\[\s*([A-Za-z0-9.-]+)(?:[ \t]+"((?:[^"\\\n]|\\.)*)")?\s*\]')
_KEY = re.compile(r"([A-Za-z][A-Za-z0-9-]*)[ \t]*(=?)")
_DEEP = 10
"""Includes within includes, as git bounds them."""

_ANY, _NOT_BOOLEAN = re.compile(r"(?s).+"), re.compile(r"(?si)(?!(true|false|yes|no|on|off|\d+)\Z).+")
_RUNS: dict[str, dict[str, re.Pattern[str]]] = {
    "core": dict.fromkeys(
        ("hookspath", "sshcommand", "pager", "editor", "askpass", "gitproxy", "alternaterefscommand", "attributesfile"), _ANY
    )
    | {"fsmonitor": _NOT_BOOLEAN},
    "diff": dict.fromkeys(("external", "textconv", "command"), _ANY),
    "filter": dict.fromkeys(("clean", "smudge", "process"), _ANY),
    "merge": {"driver": _ANY},
    "difftool": dict.fromkeys(("cmd", "path"), _ANY),
    "mergetool": dict.fromkeys(("cmd", "path"), _ANY),
    "pager": {"*": _NOT_BOOLEAN},
    "sequence": {"editor": _ANY},
    "credential": {"helper": _ANY},
    "gpg": dict.fromkeys(("program", "defaultkeycommand"), _ANY),
    "alias": {"*": re.compile(r"(?s)\s*!.*")},
    "include": {"path": _ANY},
    "includeif": {"path": _ANY},
    "interactive": {"difffilter": _ANY},
    "uploadpack": {"packobjectshook": _ANY},
    "remote": dict.fromkeys(("uploadpack", "receivepack", "vcs"), _ANY) | dict.fromkeys(("url", "pushurl"), re.compile(r"(?s)[^/]*::.*")),
    "url": dict.fromkeys(("insteadof", "pushinsteadof"), _ANY),
    "protocol": {"allow": re.compile(r"(?i)(always|user)\Z")},
    "submodule": {"update": re.compile(r"(?s)\s*!.*")},
    "trailer": dict.fromkeys(("command", "cmd"), _ANY),
    "tar": {"command": _ANY},
    "hook": {"command": _ANY},
    "init": {"templatedir": _ANY},
    "gc": {"recentobjectshook": _ANY},
    "browser": dict.fromkeys(("cmd", "path"), _ANY),
    "man": dict.fromkeys(("cmd", "path"), _ANY),
    "guitool": {"cmd": _ANY},
    "instaweb": dict.fromkeys(("httpd", "browser"), _ANY),
    "imap": {"tunnel": _ANY},
    "sendemail": dict.fromkeys(("sendmailcmd", "tocmd", "cccmd", "headercmd", "smtpserver"), _ANY),
    "lfs": dict.fromkeys(("path", "clean", "smudge"), _ANY),
}
"""Settings by section and last name, and the values that run a program. Every boolean of ``pager`` and ``core.fsmonitor`` is none."""


@dataclass(frozen=True, slots=True)
class Value:
    """One setting that runs a program, as it stands in a file. Hostile."""

    file: str
    key: str
    text: str

    @property
    def driver(self) -> str:
        """``filter=NAME``, ``diff=NAME`` or ``merge=NAME``: how an attribute would choose it; empty: none does."""
        section, _, rest = self.key.partition(".")
        name, dot, _ = rest.rpartition(".")
        return f"{section}={name}" if dot and section in ("filter", "diff", "merge") else ""


@dataclass(frozen=True, slots=True)
class Setting:
    """One line of a file, whatever it does."""

    section: str
    """Lower case."""
    part: str
    """The subsection, as it is written."""
    name: str
    """Lower case."""
    text: str

    @property
    def key(self) -> str:
        """As git shows it."""
        return ".".join(one for one in (self.section, self.part, self.name) if one)

    @property
    def runs(self) -> bool:
        """Whether it makes git run a program, or read settings from elsewhere."""
        names = _RUNS.get(self.section, {})
        wanted = names.get(self.name, names.get("*"))
        if self.section == "url":
            return "::" in self.part
        if self.section == "protocol" and self.part.lower() in ("https", "http", "ssh", "git", "file", ""):
            return False
        return wanted is not None and wanted.match(self.text) is not None


class Unreadable(Exception):  # noqa: N818 - a state of a file
    """A file that cannot be read as git reads it; git may yet."""


def values_of(file: str, files: Files, depth: int = 0) -> Iterator[Value]:
    """Yield the settings of a file, and of the files that it includes, that run a program. An unreadable file yields one that tells
    that."""
    above, name = posixpath.split(file)
    file = f"{(files.look(above).real or above).rstrip('/')}/{name}"
    facts = files.look(file)
    if facts.kind == "missing" or (facts.kind == "unknown" and facts.real == ""):
        return
    text = files.text(file)
    try:
        settings = list(read_settings(text)) if text is not None else None
    except Unreadable as error:
        yield Value(file, "unreadable", str(error))
        return
    if settings is None:
        yield Value(file, "unreadable", "it cannot be read")
        return
    for one in settings:
        if not one.runs:
            continue
        yield Value(file, one.key, one.text)
        if one.section in ("include", "includeif") and depth < _DEEP and not one.text.startswith(("~", "%")):
            yield from values_of(absolute(one.text, posixpath.dirname(file)), files, depth + 1)


def read_settings(text: str) -> Iterator[Setting]:
    """Every setting of a file in its order. Raises Unreadable."""
    at, section, part = 0, "", ""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    while at < len(text):
        sign = text[at]
        if sign in " \t\n":
            at += 1
        elif sign in "#;":
            at = (text.find("\n", at) + 1) or len(text)
        elif sign == "[":
            head = _SECTION.match(text, at)
            if head is None:
                raise Unreadable(f"a section cannot be read: {text[at : at + 40]!r}")
            section, part, at = head[1].lower(), re.sub(r"\\(.)", r"\1", head[2] or ""), head.end()
            if head[2] is None and "." in section:  # [section.sub], the old way
                section, _, part = section.partition(".")
        else:
            key = _KEY.match(text, at)
            if key is None or not section:
                raise Unreadable(f"a line cannot be read: {text[at : at + 40]!r}")
            value, at = _value(text, key.end()) if key[2] else ("true", (text.find("\n", key.end()) + 1) or len(text))
            yield Setting(section, part, key[1].lower(), value)


def _value(text: str, at: int) -> tuple[str, int]:
    """A value from behind the ``=``, and where the next line begins."""
    made: list[str] = []
    quoted = False
    kept = 0
    while at < len(text) and (text[at] != "\n" or quoted):
        sign = text[at]
        at += 1
        if sign == '"':
            quoted = not quoted
        elif sign == "\\":
            made.append(_escaped(text[at : at + 1]))
            at += 1
        elif sign in "#;" and not quoted:
            end = text.find("\n", at)
            at = end if end >= 0 else len(text)
            break
        else:
            made.append(sign)
        kept = len(made) if quoted or sign in '"\\' or not sign.isspace() else kept
    if quoted:
        raise Unreadable("a quote is not closed")
    return "".join(made[:kept]).lstrip(" \t") if made[:1] != ['"'] else "".join(made[:kept]), at + 1


def _escaped(sign: str) -> str:
    known = {"n": "\n", "t": "\t", "b": "\b", "\\": "\\", '"': '"', "\n": ""}
    if sign not in known:
        raise Unreadable(f"\\{sign} is not known")
    return known[sign]
