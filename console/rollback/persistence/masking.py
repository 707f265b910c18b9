"""Credentials in lines of a person's files, taken out before the lines are shown or kept. Pure.

Both sides are an enemy's chance: a credential that is shown is lost, and a command that is hidden as if it were a credential is not
seen. So a value goes as a whole, quotes and blanks included, and what follows it stays; a command in a value (``$(...)``) stays too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

MASK = "[masked]"
TO_THE_END = "[masked to the end of the line]"
LONGEST = 4096
"""Characters of a line that are looked at; what is beyond is left out."""
_NAME = re.compile(
    r"(?i)(?:token|pass-?_?(?:word|wd|phrase|code)|[_.-]pass(?![a-z])|[_.-]pwd(?![a-z])|secret|credential|authorization|cookie|signature"
    r"|_auth(?![a-z])|(?:api|access|account|private|signing|encryption|shared|master|ssh|client)[_-]?key|(?:access|client)[_-]?key[_-]?id)"
    r"[\w.-]{0,64}"
)
_SEPARATOR = re.compile(r"[\\\"']{0,4}[ \t]{0,16}(:=|=>|[:=])[ \t]{0,16}")
_OPENING = re.compile(r"\\{0,4}[\"']")
# Possessive throughout: these lines are an agent's, and a pattern that backtracks could take minutes on one.
_SHELL_WORD = re.compile(r"(?:\\.|\"(?:[^\"\\]|\\.)*+(?:\"|\Z)|'[^']*+(?:'|\Z)|[^\s\"'\\])++")
_JSON_WORD = re.compile(r"[^\s\"',{}\[\]]++(?=[ \t]{0,16}[,}\]][ \t]{0,16}(?:[\"'}\]]|\Z))")
_COMMAND = re.compile(r"\$\(|`")
_URL = re.compile(r"(?<=://)[^\s/\"'?#<>]{1,1024}@")
_SHAPES = re.compile(
    r"(?i:\b(?:bearer|basic)[ \t]{1,16}[A-Za-z0-9._~+/=-]{8,}+)|\bAKIA[0-9A-Z]{12,}+|\bgh[pousr]_\w{16,}+|\bgithub_pat_\w{16,}+"
    r"|\bglpat-[\w-]{16,}+|\bsk-[\w-]{16,}+|\bxox[a-z]-[\w-]{8,}+|\bAIza[\w-]{20,}+|\bya29\.[\w-]{8,}+|\bnpm_\w{16,}+|\bhf_\w{16,}+"
    r"|\beyJ[\w-]{8,}+\.[\w-]++(?:\.[\w-]*+)?"
)
_KEY_BEGINS = re.compile(r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY")
_KEY_ENDS = re.compile(r"-----END [A-Z ]{0,40}PRIVATE KEY")

_KEY_BODY = re.compile(r"[\s\"'>#*]{0,8}(?:[A-Za-z0-9+/=]{0,128}|(?:Proc-Type|DEK-Info): [\w,-]{1,80})(?:\\[nr]){0,2}[\s\"',+\\]{0,8}\Z")


def masked(lines: Iterable[str]) -> Iterator[str]:
    """The lines, of one file and in its order, without their credentials; a private key is masked line by line."""
    inside = False
    for whole in lines:
        line = whole[:LONGEST]
        if inside and _KEY_BODY.match(line):  # any other line is no part of a key: what it does is never hidden by one above it
            yield MASK
            continue
        inside = _KEY_BEGINS.search(line) is not None and not _KEY_ENDS.search(line)
        yield _line(line)


def _line(line: str) -> str:
    line = _URL.sub(f"{MASK}@", line)
    parts: list[str] = []
    at = 0
    while (name := _NAME.search(line, at)) is not None:
        begin, end, mask = _value(line, name)
        parts += [line[at:begin], mask]
        at = max(end, name.end())
    return _SHAPES.sub(MASK, "".join(parts) + line[at:])


def _value(line: str, name: re.Match[str]) -> tuple[int, int, str]:
    """(where the value of this name begins, where it ends, what stands for it)."""
    separator = _SEPARATOR.match(line, name.end())
    if separator is None:
        return _argument(line, name)
    begin = separator.end()
    opening = _OPENING.match(line, begin)
    is_shell = separator[1] == "=" and separator.end(1) == begin and line[separator.start(1) - 1 : separator.start(1)] not in (" ", "\t")
    if is_shell:
        return _word(line, begin)
    if opening is not None:
        end = _closing(line, opening)
        return _unless_command(line, opening.end(), end)
    word = _JSON_WORD.match(line, begin)
    if word is not None:
        return begin, word.end(), MASK
    return _rest(line, begin)


def _argument(line: str, name: re.Match[str]) -> tuple[int, int, str]:
    """``--password WORD`` and netrc's ``password WORD``; any other name without a separator has no value."""
    blank = re.compile(r"[ \t]{1,16}(?=\S)").match(line, name.end())
    before = line[max(0, name.start() - 64) : name.start()]
    is_option = re.search(r"(?:^|\s)--?[\w-]*\Z", before) is not None
    if blank is None or not (is_option or name[0].lower() in ("password", "passwd")):
        return name.end(), name.end(), ""
    return _word(line, blank.end())


def _word(line: str, begin: int) -> tuple[int, int, str]:
    """A word as a shell takes it, whatever is quoted in it."""
    word = _SHELL_WORD.match(line, begin)
    end = word.end() if word is not None else begin
    quote = line[begin : begin + 1]
    if quote and quote in "\"'" and end - begin > 1 and line[end - 1] == quote and quote not in line[begin + 1 : end - 1]:
        return _unless_command(line, begin + 1, end - 1)
    opened = _opened(line, begin)
    if opened and opened in line[begin:end]:  # inside of a quotation, which ends with it
        end = line.index(opened, begin)
    return _unless_command(line, begin, end)


def _closing(line: str, opening: re.Match[str]) -> int:
    """Where a quotation ends; with the line when it is not closed in it."""
    quote = opening[0]
    at = opening.end()
    while (at := line.find(quote, at)) >= 0:
        backslashes = len(line[:at]) - len(line[:at].rstrip("\\")) if len(quote) == 1 else 0
        if backslashes % 2 == 0:
            return at
        at += 1
    return len(line)


def _rest(line: str, begin: int) -> tuple[int, int, str]:
    """A value with blanks: to the end of the quotation it stands in, else of the line."""
    opened = _opened(line, begin)
    end = line.find(opened, begin) if opened else -1
    if end >= 0:
        return begin, end, MASK
    return (begin, len(line), TO_THE_END if re.search(r"\S\s+\S", line[begin:]) else MASK) if line[begin:].strip() else (begin, begin, "")


def _opened(line: str, at: int) -> str:
    """The quotation mark that stands open there."""
    before = line[:at]
    return next((q for q in "\"'" if before.count(q) % 2), "")


def _unless_command(line: str, begin: int, end: int) -> tuple[int, int, str]:
    if begin >= end or _COMMAND.search(line, begin, end):
        return begin, begin, ""
    return begin, end, MASK
