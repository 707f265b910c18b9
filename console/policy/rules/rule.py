"""One rule of ``settings.json``: ``shell(git status:*)``, ``file(read:${WORKSPACE}/**)``, ``network(outbound:*.example.com)``,
``mcp(github:get_issue)``.

Rules are compiled once; matching does no I/O. A glob is wcmatch's: ``*`` stays within a folder, ``**`` crosses folders.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from wcmatch import glob

from console.domain.errors import UsageProblem

RULE_BYTES = 1024
_GLOB = glob.GLOBSTAR | glob.DOTGLOB | glob.BRACE | glob.FORCEUNIX | glob.NEGATE
_SHAPE = re.compile(r"(shell|file|network|mcp)\((.*)\)\Z", re.DOTALL)
_ACTION = re.compile(r"(read|write|delete):(.+)\Z", re.DOTALL)
_HOST = re.compile(
    r"(\*|(\*\.)?([a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?\.)*[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?|\[[0-9a-f:.]+\])(:\d{1,5})?\Z"
)
_MCP = re.compile(r"([A-Za-z0-9_.-]+|\*):([A-Za-z0-9_.*-]+)\Z")
_VARIABLE = re.compile(r"\$\{([A-Z_]+)\}")
_MAGIC = re.compile(r"[*?\[{!]")
_UNMAGIC = re.compile(r"(?:\\.|[^\\*?\[{]|\\\Z)*", re.DOTALL)
"""What stands before the first magic of a glob: an escaped letter is that letter, and a last backslash is nothing."""
_STARS_MAX = 4
"""``**`` in one rule; more would make a match slow."""


class Family(StrEnum):
    """What a rule is about."""

    SHELL = "shell"
    FILE = "file"
    NETWORK = "network"
    MCP = "mcp"


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule as written, and what it says."""

    text: str
    family: Family
    words: tuple[str, ...] = ()
    """shell: the words a command begins with; empty: any command. mcp: the server and the tool, ``*`` in them stands for any letters."""
    open_end: bool = True
    """shell: more words may follow (``:*``)."""
    action: str = ""
    """file: ``read``, ``write`` or ``delete``."""
    pattern: str = ""
    """file: the glob with its variables put in; network: the host, lower case, ``*``, or ``*.domain``."""
    port: int | None = None
    unconfined: bool = False
    """The rule's author confirmed that it may also allow what other rules deny."""
    regex: re.Pattern[str] | None = None
    stem: str = ""
    """file: the folder before the first magic component; every match lies at or below it."""

    def covers_path(self, path: str) -> bool:
        """Whether an absolute path matches."""
        return self.regex is not None and self.regex.match(path) is not None

    def may_lie_below(self, folder: str) -> bool:
        """Whether something below ``folder`` may match; says yes rather than no."""
        below = folder.rstrip("/") + "/"
        if self.stem.startswith(below):
            return True
        if not below.startswith(self.stem.rstrip("/") + "/") or not _MAGIC.search(self.pattern):
            return False
        return "**" in self.pattern or self.pattern.count("/") >= below.count("/")

    def covers_host(self, host: str, port: int | None) -> bool:
        """Whether a host (lower case, no dot at its end) and port match."""
        if self.port is not None and port is not None and self.port != port:
            return False
        if self.pattern == "*":
            return True
        if self.pattern.startswith("*."):
            return host.endswith(self.pattern[1:]) and len(host) > len(self.pattern) - 1
        return host == self.pattern


def read_rule(text: object, where: str, variables: Mapping[str, str], unconfined: bool = False) -> Rule:
    """Reads one rule. Raises UsageProblem with what and where."""
    if not isinstance(text, str):
        raise UsageProblem(f"{where}: a rule is a string, not {type(text).__name__}.", 'Write "shell(grep:*)" for example.')
    shape = _SHAPE.match(text)
    if shape is None or len(text.encode("utf-8", "surrogatepass")) > RULE_BYTES or not text.isprintable():
        raise UsageProblem(
            f"{where}: {text[:80]!r} is no rule.",
            "Write shell(WORDS:*), file(read|write|delete:GLOB), network(outbound:HOST) or mcp(SERVER:TOOL).",
        )
    family, inside = Family(shape.group(1)), shape.group(2)
    match family:
        case Family.SHELL:
            return _shell(text, inside, where, unconfined)
        case Family.FILE:
            return _file(text, inside, where, variables)
        case Family.NETWORK:
            return _network(text, inside, where)
        case Family.MCP:
            return _mcp(text, inside, where)


def _shell(text: str, inside: str, where: str, unconfined: bool) -> Rule:
    open_end = inside.endswith(":*") or inside == "*"
    words = tuple(inside.removesuffix(":*").split()) if inside != "*" else ()
    if words == ("*",):
        words = ()
    if not words and not open_end:
        raise UsageProblem(f"{where}: {text!r} names no program.", "Write shell(PROGRAM:*).")
    if words and _MAGIC.search(words[0]) and words[0] != "[":
        raise UsageProblem(f"{where}: {text!r}: a program cannot be a pattern.", "Name one program; :* at the end is for what follows it.")
    return Rule(text, Family.SHELL, words=words, open_end=open_end, unconfined=unconfined)


def _file(text: str, inside: str, where: str, variables: Mapping[str, str]) -> Rule:
    action = _ACTION.match(inside)
    if action is None:
        raise UsageProblem(f"{where}: {text!r} names no action.", "Write file(read:GLOB), file(write:GLOB) or file(delete:GLOB).")
    written = action.group(2).removesuffix(":*")  # the source documents write file(read:/etc/shadow:*)
    pattern = _substituted(written, where, text, variables)
    if not pattern.startswith(("/", "**/")):
        raise UsageProblem(f"{where}: {text!r}: {written!r} is not absolute.", "Begin with /, ${WORKSPACE} or **/.")
    if ".." in pattern.split("/") or pattern.count("**") > _STARS_MAX or "!" in pattern or pattern.count("{") > 1:
        raise UsageProblem(
            f"{where}: {text!r} cannot be read with certainty.", f"No '..', no '!', one {{a,b}}, and at most {_STARS_MAX} times '**'."
        )
    regex = _compiled(pattern, text, where)
    return Rule(text, Family.FILE, action=action.group(1), pattern=pattern, regex=regex, stem=_stem(pattern) or "/")


def _stem(pattern: str) -> str:
    plain = _UNMAGIC.match(pattern)
    assert plain is not None  # it matches nothing, too
    meant = re.sub(r"\\(.?)", r"\1", plain[0], flags=re.DOTALL)  # a slash may be escaped like any other letter
    return meant if plain.end() == len(pattern) else meant.rsplit("/", 1)[0]


def _compiled(pattern: str, text: str, where: str) -> re.Pattern[str]:
    try:
        wanted, unwanted = glob.translate(pattern, flags=_GLOB, limit=64)
        if unwanted or not wanted:
            raise ValueError("negated")
        return re.compile("|".join(f"(?:{one})" for one in wanted))
    except (re.error, ValueError, glob.PatternLimitException) as error:  # type: ignore[attr-defined]
        raise UsageProblem(f"{where}: {text!r} is no glob ({error}).", "See wcmatch's globs: *, **, ?, [a-z], {a,b}.") from error


def _substituted(pattern: str, where: str, text: str, variables: Mapping[str, str]) -> str:
    def value(found: re.Match[str]) -> str:
        name = found.group(1)
        if name not in variables:
            raise UsageProblem(f"{where}: {text!r}: ${{{name}}} is not known.", f"Known are {', '.join(sorted(variables)) or 'none'}.")
        return glob.escape(variables[name], unix=True)

    made = _VARIABLE.sub(value, pattern)
    if "${" in made:
        raise UsageProblem(f"{where}: {text!r} has a variable that cannot be read.", "Write ${WORKSPACE} or ${CONTEXT_ID}.")
    return made


def _network(text: str, inside: str, where: str) -> Rule:
    direction, _, host = inside.partition(":")
    host = host.removesuffix(":*").lower().rstrip(".") if host != "*" else host
    if direction != "outbound" or not _HOST.match(host):
        raise UsageProblem(f"{where}: {text!r} names no host.", "Write network(outbound:HOST), HOST:PORT, *.DOMAIN or *.")
    bare, port = host, None
    if (found := re.search(r"(?<=[^:]):(\d{1,5})\Z", host)) and (not host.startswith("[") or "]:" in host):
        bare, port = host[: found.start()], int(found.group(1))
    return Rule(text, Family.NETWORK, pattern=bare.strip("[]"), port=port)


def _mcp(text: str, inside: str, where: str) -> Rule:
    shape = _MCP.match(inside)
    if shape is None:
        raise UsageProblem(f"{where}: {text!r} names no MCP tool.", "Write mcp(SERVER:TOOL), mcp(SERVER:*) or mcp(*:TOOL).")
    return Rule(text, Family.MCP, words=(shape[1], shape[2]))
