"""The exact text of a request as lines in which every character that is not what it looks like is a chip with its code.

Nothing is left out: a run of the same character, of spaces or of empty lines is one chip that says how many there are.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby

from console.gui.widgets.safe_text import kind_of, safe_text
from console.gui.widgets.words import plural

SPACES = 40
"""So many spaces in a row push what follows out of sight."""
EMPTY_LINES = 8
MARKS = 2
"""Combining marks in a row that are shown as they are."""
KINDS_MAX = 12
"""Kinds of hostile characters that are explained; the others are counted."""
_NAMES = {"\x00": "NUL", "\x07": "BEL", "\x08": "BS", "\t": "TAB", "\r": "CR", "\x1b": "ESC", "\x7f": "DEL", "\x9b": "CSI"}
_ZERO_WIDTH = frozenset("\u00ad\u200b\u200c\u200d\u2060\ufeff")
_TURNS = frozenset("\u061c\u200e\u200f\u202a\u202b\u202d\u2066\u2067\u2068")
_ENDS = frozenset("\u202c\u2069")
_CSI = re.compile(r"[0-9;:<=>?]{0,32}[ -/]{0,4}[@-~]")
_STOPS = re.compile(r"[\s/\"'\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_QUOTED = 40
_OSC = {
    "0": "would have renamed the terminal",
    "2": "would have renamed the terminal",
    "8": "would have made a link of what follows",
    "52": "would have written to the clipboard",
}
"""Operating system commands (xterm) by their first parameter."""
_DOES = {
    "K": "would have wiped the line from a terminal",
    "J": "would have wiped the terminal",
    "m": "would have changed the colour, or hidden the text",
    **dict.fromkeys("ABEFHf", "would have written over other lines of a terminal"),
    **dict.fromkeys("CDG", "would have written over the same line of a terminal"),
}
"""Control sequences (ECMA-48) by their final byte."""


@dataclass(frozen=True, slots=True)
class Chip:
    """Where in a shown line a chip stands."""

    at: int
    length: int


@dataclass(frozen=True, slots=True)
class ShownLine:
    """One line as it is shown and copied. ``number`` 0: no line of the request (a heading of this console)."""

    number: int
    text: str
    chips: tuple[Chip, ...] = ()


@dataclass(frozen=True, slots=True)
class Finding:
    """One kind of hostile character: its code, what it does, how many there are."""

    code: str
    words: str
    count: int = 1


@dataclass(slots=True)
class Shown:
    """A whole text, safe to show and to copy."""

    lines: list[ShownLine] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    hidden: int = 0
    """Hostile characters (and runs) in it."""

    length: int = 0
    """Characters shown so far: hostile ones take more room than they are."""

    def heading(self, words: str) -> None:
        """A line of this console between two texts."""
        self.lines.append(ShownLine(0, safe_text(words, 200)))

    def add(self, text: str) -> None:
        """Another text below what is there."""
        seen: dict[str, Finding] = {one.code: one for one in self.findings}
        number = 0
        for is_empty, run in groupby(text.split("\n"), key=lambda line: not line):
            lines = list(run)
            if is_empty and len(lines) >= EMPTY_LINES:
                chip = f"<{len(lines):,} empty lines>"
                self.lines.append(ShownLine(number + 1, chip, (Chip(0, len(chip)),)))
                _note(seen, Finding("EMPTY", f"{len(lines):,} empty lines push what follows out of sight"))
                self.hidden += 1
                number += len(lines)
                continue
            for line in lines:
                number += 1
                self.lines.append(self._line(line, number, seen))
                self.length += len(self.lines[-1].text)
        self.findings = list(seen.values())

    def _line(self, line: str, number: int, seen: dict[str, Finding]) -> ShownLine:
        if line.isascii() and line.isprintable() and " " * SPACES not in line:
            return ShownLine(number, line)
        out: list[str] = []
        chips: list[Chip] = []
        at = 0
        for piece, first, index, count in _pieces(line):
            if first is None:
                out.append(piece)
            else:
                chips.append(Chip(at, len(piece)))
                out.append(piece)
                known = seen.get(code_of(first))
                _note(seen, Finding(known.code, "", count) if known else _finding(first, line, index, number, count))
                self.hidden += count if first not in ("\t", " ") else first == " "
            at += len(piece)
        return ShownLine(number, "".join(out), tuple(chips))


def visible(text: str) -> Shown:
    """One text."""
    shown = Shown()
    shown.add(text)
    return shown


def top_findings(shown: Shown) -> list[Finding]:
    """What is explained; the rest is one line."""
    found = sorted(shown.findings, key=lambda one: one.code == "TAB")
    if len(found) > KINDS_MAX:
        rest = len(found) - KINDS_MAX + 1
        return [*found[: KINDS_MAX - 1], Finding("…", f"{plural(rest, 'more kind')} of such characters, each shown above with its code")]
    return found


def code_of(char: str) -> str:
    """``U+202E``, or the short name of a control character."""
    return _NAMES.get(char) or f"U+{ord(char):04X}"


def _note(seen: dict[str, Finding], found: Finding) -> None:
    before = seen.get(found.code)
    seen[found.code] = found if before is None else Finding(before.code, before.words, before.count + found.count)


def _pieces(line: str) -> Iterator[tuple[str, str | None, int, int]]:
    """(shown text, the hostile character or None, where it stands, how many)."""
    index = 0
    for char, run in groupby(_classed(line), key=lambda pair: pair):
        text, is_hostile = char
        count = sum(1 for _ in run)
        if not is_hostile:
            is_padding = text == " " and count >= SPACES
            yield (f"<SPACE ×{count:,}>" if is_padding else text * count), (" " if is_padding else None), index, count
        elif is_hostile == "marks":
            yield f"<+{count:,} mark {code_of(text)}>", text, index, count
        else:
            yield f"<{code_of(text)}>" if count == 1 else f"<{code_of(text)} ×{count:,}>", text, index, count
        index += count


def _classed(line: str) -> Iterator[tuple[str, str]]:
    """(character, why it is a chip; empty: it is none)."""
    mixed = _mixed(line)
    marks = 0
    for at, char in enumerate(line):
        kind = "" if " " <= char <= "~" else kind_of(char)
        marks = marks + 1 if kind == "mark" else 0
        if kind == "mark":
            yield char, "marks" if marks > MARKS else ""
        elif kind == "foreign":
            yield char, kind if at in mixed else ""
        else:
            yield char, kind


def _mixed(line: str) -> set[int]:
    """Places of letters that pass for Latin inside words that have Latin letters."""
    if line.isascii():
        return set()
    found: set[int] = set()
    for word in re.finditer(r"[^\W_]+", line):
        text = word.group()
        if not text.isascii() and re.search("[A-Za-z]", text):
            found.update(word.start() + at for at, char in enumerate(text) if kind_of(char) == "foreign")
    return found


def _finding(char: str, line: str, index: int, number: int, count: int) -> Finding:
    """What one character does, in words; the first of its kind is the one that is explained."""
    code = code_of(char)
    if char == " ":
        return Finding("SPACE", f"{count:,} spaces in a row push what follows out of sight, at line {number}")
    if char == "\x1b":
        return _escape(line, index, number)
    if char == "\u202e":
        turned = _STOPS.split(line[index + 1 : index + 1 + _QUOTED].lstrip(), maxsplit=1)[0]
        return Finding(code, f"turns text round: a terminal would show “{safe_text(turned[::-1], _QUOTED)}” at line {number}", count)
    if char == "\r":
        after = line[index + 1 :].split("\r", 1)[0]
        shown = f"“{safe_text(after, _QUOTED)}” over the beginning of line {number}" if after else f"the next line over line {number}"
        return Finding(code, f"goes back: a terminal would show {shown}", count)
    return Finding(code, f"{_plain_words(char, line, index, count)}, at line {number}", count)


def _plain_words(char: str, line: str, index: int, count: int) -> str:
    if char in _ZERO_WIDTH:
        word = _word_around(line, index, count)
        return f"zero width, inside a word: this is not “{word}”" if word else "zero width: nothing is seen of it"
    if char in _TURNS:
        return "changes the direction of the text after it"
    if char in _ENDS:
        return "ends a change of direction"
    if char == "\t":
        return "a tab"
    if char == "\x08":
        return "wipes the character before it from a terminal"
    kind = kind_of(char)
    if kind == "rtl":
        return "a right-to-left letter: it would reverse the order of the text beside it"
    if kind == "foreign":
        return f"passes for a Latin letter and is none ({unicodedata.name(char, 'unnamed').lower()})"
    if kind == "mark":
        return f"{count:,} more marks on one letter"
    return {"Zs": "looks like a space and is none", "Co": "means nothing outside one font", "Cn": "no character at all"}.get(
        unicodedata.category(char), "is not seen, and may act on a terminal"
    )


def _word_around(line: str, index: int, count: int) -> str:
    before = re.search(r"[\w$]{1,20}$", line[max(0, index - 20) : index])
    after = re.match(r"\w{1,20}", line[index + count : index + count + 20])
    return safe_text(before.group() + after.group(), _QUOTED) if before and after else ""


def _escape(line: str, index: int, number: int) -> Finding:
    """ECMA-48 and what terminals make of it."""
    rest = line[index + 1 : index + 60]
    where = f", at line {number}"
    if rest[:1] == "]":
        kind = rest[1:].split(";", 1)[0]
        return Finding(f"ESC ]{safe_text(kind, 4)}", _OSC.get(kind, "would have given the terminal an order") + where)
    found = _CSI.match(rest[1:]) if rest[:1] == "[" else None
    if found is None:
        return Finding("ESC", "begins an order to a terminal" + where)
    return Finding(f"ESC [{found.group()[:12]}", _DOES.get(found.group()[-1], "would have given the terminal an order") + where)
