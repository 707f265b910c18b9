"""A shell string cut into words and operators as bash does it (bash(1), QUOTING, DEFINITIONS), as far as every word is static.

Whatever bash would expand, substitute or read on for is refused in words. Pure and linear; the text was bounded before.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field

TEXT_BYTES = 8 * 1024
"""A longer string is refused before anything reads it."""
_HIDDEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs"}
_OPERATORS = ("&&", "||", "|&", ";", "|", "&", "\n")
_REDIRECTS = ("&>>", "&>", ">>", ">|", ">&", "<&", ">", "<")
_READ_ON = (
    ("<<", "a here-document or here-string"),
    ("<(", "a process substitution"),
    (">(", "a process substitution"),
    ("<>", "a file opened both ways"),
)
_ENDS_WORD = frozenset(" \t\n;&|<>()")
_EXPANDS = re.compile(r"[A-Za-z0-9_{(\[*@#?$!'\"-]")
_DESCRIPTOR = re.compile(r"(.*[^0-9])?\{[A-Za-z_][A-Za-z0-9_]*(\[.*\])?\}\Z", re.DOTALL)
_DIGITS = re.compile(r"[0-9]+(?=[<>])")
_PLAIN = re.compile(r"[^\\'\"$`*?\[~ \t\n;&|<>()]+")
"""What means itself in a word, whatever stands around it."""
_BRACES = re.compile(r"\{[^{}]*(,|\.\.)")


class Refused(Exception):
    """The text is not certain; ``args[0]`` says why, ``at`` where."""

    def __init__(self, why: str, at: int = 0) -> None:
        super().__init__(why)
        self.why = why
        self.at = at


@dataclass(slots=True)
class Word:
    """One word after quote removal."""

    start: int
    end: int = 0
    value: str = ""
    quoted: bool = False
    """Some of it was quoted, so it is no reserved word and no assignment."""
    pattern: bool = False
    """It has an unquoted ``*``, ``?`` or ``[``: bash would put file names in its place."""
    tilde: bool = False
    """Bash would put a home directory in."""
    braces: str = ""
    """The unquoted characters alone, to find ``{a,b}`` in."""


@dataclass(frozen=True, slots=True)
class Operator:
    """``;``, ``&&``, ``||``, ``|``, ``|&``, ``&`` or a line's end."""

    text: str
    at: int


@dataclass(slots=True)
class Target:
    """A redirect: which descriptor, how, and the word it names."""

    operator: str
    descriptor: int | None
    at: int
    word: Word = field(default_factory=lambda: Word(0))


Token = Word | Operator | Target


def check_text(text: str) -> None:
    """Raises Refused for a text that is too long, not Unicode, or holds characters that are read otherwise than they look."""
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        raise Refused("it is not valid UTF-8", error.start) from error
    if size > TEXT_BYTES:
        raise Refused(f"it has {size:,} bytes; at most {TEXT_BYTES:,} are read")
    for at, char in enumerate(text):
        if char not in " \t\n" and (char < " " or char > "~") and unicodedata.category(char) in _HIDDEN:
            raise Refused(f"it holds the character U+{ord(char):04X}, which is read otherwise than it looks", at)


def cut(text: str) -> list[Token]:
    """The tokens of a text. Raises Refused on what is not static."""
    return _Cutter(text).tokens()


class _Cutter:
    """Reads from left to right, one token at a time."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def tokens(self) -> list[Token]:
        found: list[Token] = []
        while True:
            self._skip_blanks()
            if self._at >= len(self._text):
                return found
            found.append(self._token())

    def _skip_blanks(self) -> None:
        text = self._text
        while self._at < len(text):
            if text[self._at] in " \t":
                self._at += 1
            elif text.startswith("\\\n", self._at):
                self._at += 2
            elif text[self._at] == "#":  # only ever at the start of a word here
                end = text.find("\n", self._at)
                self._at = len(text) if end < 0 else end
            else:
                return

    def _token(self) -> Token:
        text, at = self._text, self._at
        for start, what in _READ_ON:
            if text.startswith(start, at):
                raise Refused(f"it holds {what} ({start})", at)
        if text[at] in "()":
            raise Refused("it holds a subshell, function or group", at)
        if "0" <= text[at] <= "9" and (digits := _DIGITS.match(text, at)) is not None:
            self._at = digits.end()
            return self._redirect(digits.group())
        if text[at] in "<>" or text.startswith("&>", at):
            return self._redirect("")
        for operator in _OPERATORS:
            if text.startswith(operator, at):
                self._at += len(operator)
                if operator == ";" and text.startswith((";", "&"), self._at):
                    raise Refused("it holds ;; outside of a case", at)
                return Operator(operator, at)
        return self._word()

    def _redirect(self, digits: str) -> Target:
        start = self._at
        for opening, what in _READ_ON:
            if self._text.startswith(opening, start):
                raise Refused(f"it holds {what} ({opening})", start)
        operator = next(one for one in _REDIRECTS if self._text.startswith(one, start))
        self._at += len(operator)
        if len(digits) > 1 or (digits and operator.startswith("&")) or digits > "2":
            raise Refused("it redirects a descriptor other than 0, 1 or 2", start)
        self._skip_blanks_in_line()
        if self._at >= len(self._text) or self._text[self._at] in _ENDS_WORD:
            raise Refused("a redirect names no file", start)
        return Target(operator, int(digits) if digits else None, start, self._word())

    def _skip_blanks_in_line(self) -> None:
        while self._at < len(self._text) and self._text[self._at] in " \t":
            self._at += 1

    def _word(self) -> Word:
        word = Word(self._at)
        pieces: list[str] = []
        bare: list[str] = []
        while self._at < len(self._text) and self._text[self._at] not in _ENDS_WORD:
            self._piece(word, pieces, bare)
        if self._at < len(self._text) and self._text[self._at] == "(":
            raise Refused("it holds a subshell, function or pattern", self._at)
        if self._at < len(self._text) and self._text[self._at] in "<>" and _DESCRIPTOR.match(self._text[word.start : self._at]):
            raise Refused("it redirects a descriptor other than 0, 1 or 2", word.start)
        word.end, word.value, word.braces = self._at, "".join(pieces), "".join(bare)
        if _BRACES.search(word.braces):
            raise Refused("it holds braces that the shell would expand", word.start)
        return word

    def _piece(self, word: Word, pieces: list[str], bare: list[str]) -> None:
        char = self._text[self._at]
        if char == "\\":
            self._escaped(word, pieces)
        elif char == "'":
            word.quoted = True
            pieces.append(self._single())
        elif char == '"':
            word.quoted = True
            pieces.append(self._double())
        elif (plain := _PLAIN.match(self._text, self._at)) is not None:
            pieces.append(plain.group())
            bare.append(plain.group())
            self._at = plain.end()
        else:
            self._check_expansion(self._at)
            if char in "*?[":
                word.pattern = True
            if char == "~" and (self._at == word.start or self._text[self._at - 1] in "=:"):
                word.tilde = True
            pieces.append(char)
            bare.append(char)
            self._at += 1

    def _escaped(self, word: Word, pieces: list[str]) -> None:
        if self._at + 1 >= len(self._text):
            raise Refused("it ends in a backslash", self._at)
        following = self._text[self._at + 1]
        if following != "\n":  # a line that goes on: both characters vanish
            pieces.append(following)
            word.quoted = True
        self._at += 2

    def _single(self) -> str:
        end = self._text.find("'", self._at + 1)
        if end < 0:
            raise Refused("a quote is never closed", self._at)
        inside = self._text[self._at + 1 : end]
        self._at = end + 1
        return inside

    def _double(self) -> str:
        # "The backslash retains its special meaning only when followed by $, `, ", \, or newline."
        start = self._at
        pieces: list[str] = []
        self._at += 1
        while self._at < len(self._text):
            char = self._text[self._at]
            if char == '"':
                self._at += 1
                return "".join(pieces)
            if char == "\\" and self._text[self._at + 1 : self._at + 2] in ("$", "`", '"', "\\", "\n"):
                pieces.append("" if self._text[self._at + 1] == "\n" else self._text[self._at + 1])
                self._at += 2
                continue
            self._check_expansion(self._at, in_quotes=True)
            pieces.append(char)
            self._at += 1
        raise Refused("a quote is never closed", start)

    def _check_expansion(self, at: int, in_quotes: bool = False) -> None:
        char = self._text[at]
        if char == "`":
            raise Refused("it holds a command substitution", at)
        if char != "$":
            return
        after = self._text[at + 1 : at + 2]
        if after == "\\" and self._text[at + 2 : at + 3] == "\n":
            raise Refused("it holds a $ before a line that goes on", at)
        if not (in_quotes and after in "'\"") and _EXPANDS.match(after):
            what = "a command substitution" if after == "(" else "a string with escapes" if after in "'\"" else "an expansion"
            raise Refused(f"it holds {what} (${after})", at)
