"""Scripts of sed and awk given on the command line: whether they can do anything but compute on their input. In doubt: no."""

from __future__ import annotations

import re

from console.policy.tools.sql import read_sql

_FLAGS = re.compile(r"[gpiI0-9]*")
_ADDRESS = re.compile(r"(?:\d+(?:~\d+)?|\$)(?:\s*,\s*(?:[+~]?\d+|\$))?")
_BRACKET = re.compile(r"\[\^?\]?(?:\[:[a-z]+:\]|[^\[\]\n])*\]")
_PLAIN = frozenset("=dDgGhHlnNpPxzF")
_EXITS = frozenset("qQ")
# Each can start a program, or read or write a file that is no operand. Looked for anywhere in the text, strings and comments included.
_AWK_WORDS = re.compile(
    r"system|getline|ARGV|ARGC|SYMTAB|FUNCTAB|ENVIRON|PROCINFO|close|fflush|extension|\bload\b|\binclude\b|inet|[@|>`]|\\\r?\n", re.ASCII
)


_DESCRIBES = re.compile(r"\\(?:d[a-zA-Z]{0,3}|l|z|conninfo)\+?(?:\s+[\w.*]+)?\s*", re.ASCII)
"""Commands of psql that list what there is."""
_OF_CLIENT = re.compile(
    r"(?im)(?:\A|[\n;])\s*(?:system|source|tee|notee|pager|nopager|edit|delimiter|print|prompt|rehash|connect|query_attributes)\b"
)
_COMPARED = re.compile(r"\s*(?:!?\$?\w+\s*[<>=!]=?\s*\d+(?:\s*&&\s*)?)+(?=\s*(?:\{|\Z))", re.ASCII)
"""Numbers that are compared before the first action: nothing is written there (POSIX awk, Patterns)."""


def awk_trouble(script: str) -> str:
    """Why an awk program is not certain to be harmless; empty when it is (POSIX awk, gawk, mawk: programs, files and pipes)."""
    compared = _COMPARED.match(script)
    if found := _AWK_WORDS.search(_without_comparisons(script[compared.end() :] if compared else script)):
        return f"the awk program holds {found.group()!r}, which may run a program or reach a file"
    return ""


def _without_comparisons(script: str) -> str:
    """The program without each ``>`` that compares: one behind a ``print`` of its statement may write (POSIX awk, Output Statements)."""
    if "/" in script:  # where a string ends is not certain beside a pattern
        return script
    plain = re.sub(r'"(?:[^"\\\n]|\\.)*"', '""', script)
    if "#" in plain:  # a comment may end in the middle of a statement
        return script
    plain = re.sub(r"([^\s\w\")\]};{\\])\s*\n", r"\1 ", plain)  # behind such a character a statement goes on (POSIX awk, Grammar)
    statements = re.split(r"([{};\n])", plain)
    parted = [one.partition("print") for one in statements]
    kept = "".join(before.replace(">", "") + printed + behind for before, printed, behind in parted)
    return kept if re.search(r"[|@`]|>>", plain) is None else script


def sql_trouble(text: str) -> str:
    """Why a statement is not certain to only read; empty when it does.

    Clients of databases have commands of their own: behind a backslash, or at the beginning of a line (psql(1), mysql(1)).
    """
    if _DESCRIBES.fullmatch(text):
        return ""
    if "\\" in text or _OF_CLIENT.search(text):
        return "the client of the database may run it as a command of its own"
    return f"it may change what the database holds: {why}" if (why := read_sql(text).writes) else ""


def jq_trouble(script: str) -> str:
    """Return why a jq filter may do harm: modules are files that the call does not name, and the environment holds secrets."""
    return (
        "the jq filter reads a module or the environment"
        if re.search(r"\b(import|include|input_filename|modulemeta|env|ENV|get_search_list)\b", script)
        else ""
    )


def sed_trouble(script: str) -> str:
    """Why a sed script is not certain to be harmless; empty when it only prints, deletes and replaces."""
    at = 0
    while at < len(script):
        if script[at] in " \t\n;{}":
            at += 1
            continue
        after = _command(script, at)
        if after is None:
            return "the sed script holds more than printing, deleting and replacing"
        at = after
    return ""


def _command(script: str, at: int) -> int | None:
    """Where the command that begins at ``at`` ends; None: it is not one of the known ones."""
    start = _addresses(script, at)
    if start is None:
        return None
    at = start
    while at < len(script) and script[at] in " \t!":
        at += 1
    letter = script[at : at + 1]
    if letter in _PLAIN and letter:
        return _ended(script, at + 1)
    if letter in _EXITS and letter:
        code = re.compile(r"\s*\d*").match(script, at + 1)
        return _ended(script, code.end() if code else at + 1)
    if letter in ("{", "}"):
        return at + 1
    if letter in ("s", "y"):
        return _replace(script, at, letter)
    if letter in ("a", "i", "c"):  # the rest of the line is text; one that goes on is not certain
        end = script.find("\n", at) if "\n" in script[at:] else len(script)
        return None if script[at:end].endswith("\\") or at + 1 == end else end
    return None


def _addresses(script: str, at: int) -> int | None:
    for _ in range(2):
        if script[at : at + 1] == "/":
            end = _delimited(script, at + 1, "/")
            if end is None:
                return None
            at = end
            while script[at : at + 1] in ("I", "M"):
                at += 1
        elif found := _ADDRESS.match(script, at):
            at = found.end()
        elif script[at : at + 1] == "\\":
            return None
        if script[at : at + 1] != ",":
            return at
        at += 1
    return at


def _replace(script: str, at: int, letter: str) -> int | None:
    mark = script[at + 1 : at + 2]
    if not mark or mark in "\\\n \t;{}" or mark.isalnum():
        return None
    middle = _delimited(script, at + 2, mark)
    end = None if middle is None else _delimited(script, middle, mark)
    if end is None:
        return None
    flags = _FLAGS.match(script, end) if letter == "s" else None
    return _ended(script, flags.end() if flags else end)


def _delimited(script: str, at: int, mark: str) -> int | None:
    """Behind the next unescaped ``mark``. Whether one within brackets ends it is not the same in every sed: then it is not certain."""
    while at < len(script):
        if script[at] == "\\":
            at += 2
        elif script[at] == "[":
            inside = _BRACKET.match(script, at)
            if inside is None or mark in inside.group() or "\\]" in inside.group():
                return None
            at = inside.end()
        elif script[at] == "\n":
            return None
        elif script[at] == mark:
            return at + 1
        else:
            at += 1
    return None


def _ended(script: str, at: int) -> int | None:
    while at < len(script) and script[at] in " \t":
        at += 1
    return at if at >= len(script) or script[at] in ";\n}" else None
