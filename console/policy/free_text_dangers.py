"""Dangers that free text names, however they are spelt: what an agent is told when it is created, and every message to it.

A warning layer: more is read than is meant, and a human decides. It reads words, not intentions: what is written in base64 or another
encoding, paraphrased, in another language, or stands in a file that the text names, is not found here. The calls themselves are judged.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from console.policy.dangers import Danger, danger_of

TEXT_MAX = 1024 * 1024
"""Characters that are read of one text; every place that takes one takes fewer."""
WINDOW = 24
"""Words behind a program's name, on the same line, that may be its own."""
NEXT_LINES = 8
"""Words behind it where the line was broken in between."""
SHOWN_WORDS = 10
SHOWN_MAX = 160
_BEFORE = frozenset({"$", "#", ">", "sudo", "run", "runs", "execute", "exec", "call", "then"})
"""What stands before a program's name in a sentence."""
_GLUED_MIN = 4
"""Letters of a program's name that is looked for at the beginning of a longer word."""

# Letters that look like Latin ones and that no Unicode normalisation makes Latin (after UTS 39's confusables), lower case.
_LOOKALIKES = str.maketrans(
    {
        odd: plain
        for plain, odds in {
            "a": "аαɑᴀ", "b": "ьвβʙ", "c": "сϲᴄ", "d": "ԁδᴅժ", "e": "еєεᴇ", "f": "ғꜰϝ", "g": "ɡցɢԍ", "h": "һнհʜ", "i": "іιıɩɪ",
            "j": "јᴊȷϳ", "k": "кκᴋ", "l": "ӏʟⅼǀ", "m": "мᴍ", "n": "пηոɴ", "o": "оοσօᴏ", "p": "рρᴘ", "q": "ԛգ", "r": "гʀᴦ", "s": "ѕꜱ",
            "t": "тτᴛ", "u": "υսᴜц", "v": "ѵνᴠ", "w": "ԝωᴡш", "x": "хχ×", "y": "уγүʏ", "z": "ᴢʐ", "'": "ʼ′‘’", '"': "“”″",
        }.items()
        for odd in odds
    }
)  # fmt: skip
_DASHES = str.maketrans({**dict.fromkeys("‐‑‒–−﹣－", "-"), **dict.fromkeys("—―", "--"), "⁄": "/", "∕": "/", "ß": "ss"})
_DIGITS = (str.maketrans("0134578$@", "oleastb" + "sa"), str.maketrans("0134578$@", "oieastb" + "sa"))
"""Digits written for letters; 1 is an l or an i."""
_ESCAPED = re.compile(r"\\x([0-9a-fA-F]{2})|\\u\{?([0-9a-fA-F]{4,6})\}?|%([0-9a-fA-F]{2})|\\([0-7]{3})")
_FIELD_SEPARATOR = re.compile(r"\$\{ifs[^}]{0,20}\}|\$ifs(\$[@*0-9])?")
_SPACED = re.compile(r"(?<!\w)\w(?:[ \t.\-_*·]\w){4,}(?!\w)")
"""L e t t e r s."""
_INNER = re.compile(r"(?<=\w)[-_.·*~]+(?=\w)")


@dataclass(frozen=True, slots=True)
class Named:
    """A danger, and the words by which it was named."""

    danger: Danger
    where: str
    """Which text, for people: ``command``, ``message``, ``variable NAME``."""
    words: str
    """As they were read. Hostile."""

    def line(self) -> str:
        """For a person."""
        return f"{self.danger.name}: “{self.words}” ({self.where}): {self.danger.why}"


def dangers_in_text(dangers: Sequence[Danger], text: str, where: str = "text") -> tuple[Named, ...]:
    """Each danger that ``text`` names, once, with the words. Takes time in proportion to the text."""
    index = _indexed(tuple(dangers))
    found: dict[tuple[str, str], Named] = {}
    read: list[list[list[str]]] = []
    for lines in _readings(text[:TEXT_MAX]):
        if lines in read:
            continue
        read.append(lines)
        for danger, words in _named(index, lines):
            found.setdefault((danger.name, danger.why), Named(danger, where, words[:SHOWN_MAX]))
    return tuple(found.values())


def dangers_in(dangers: Sequence[Danger], texts: Iterable[tuple[str, str]]) -> tuple[Named, ...]:
    """The same over several (where, text); each danger once, at its first place."""
    found: dict[tuple[str, str], Named] = {}
    for where, text in texts:
        for one in dangers_in_text(dangers, text, where):
            found.setdefault((one.danger.name, one.danger.why), one)
    return tuple(found.values())


@lru_cache(maxsize=8)
def _indexed(dangers: tuple[Danger, ...]) -> dict[str, tuple[Danger, ...]]:
    asking = [danger for danger in dangers if danger.asks]
    names = {name for danger in asking for name in danger.programs}
    return {name.casefold(): tuple(danger for danger in asking if name in danger.programs) for name in names}


def _readings(text: str) -> Iterator[list[list[str]]]:
    """Yield the text's words, line by line, in every way in which its author may have meant them."""
    plain = _folded(text)
    texts = [plain]
    if _ESCAPED.search(plain) or "&" in plain:
        texts.append(_folded(_ESCAPED.sub(_unescaped, html.unescape(plain))))
    for one in texts:
        joined = _FIELD_SEPARATOR.sub(" ", one.replace("\\\n", " "))
        yield _split(joined, r"[\s'\"`;&|(){},<>\[\]]+", "")  # quotes between words
        yield _split(joined, r"[\s;&|(){},<>\[\]]+", r"['\"`\\^*]")  # quotes within words, as a shell takes them away
        yield _split(joined, r"[\s'\"`;&|(){},<>\[\]=+_:→~*^%\\]+", "")  # other things between words
        yield _split(_INNER.sub("", joined), r"[\s'\"`;&|(){},<>\[\]]+", "")
        if _SPACED.search(joined):
            yield _split(_SPACED.sub(lambda m: re.sub(r"[\W_]", "", m[0]), joined), r"[\s'\"`;&|(){},<>]+", "")
        for digits in _DIGITS:
            yield _split(joined.translate(digits), r"[\s'\"`;&|(){},<>\[\]]+", "")


def _folded(text: str) -> str:
    """Small letters as a person sees them: no marks, nothing invisible, lookalikes as what they look like."""
    # Letter by letter: long runs of marks would be put in order, which takes time with the square of their number.
    apart = text if text.isascii() else "".join(unicodedata.normalize("NFKD", one) for one in text)
    decomposed = apart.casefold().translate(_DASHES).translate(_LOOKALIKES)
    kept = []
    for one in decomposed:
        kind = unicodedata.category(one)
        if one in "\n\t\r" or kind in ("Zl", "Zp") or one in "\v\f\x85":
            kept.append("\n" if one != "\t" else " ")
        elif kind == "Zs":
            kept.append(" ")
        elif kind[0] != "C" and kind[0] != "M":
            kept.append(one)
    return "".join(kept)


def _unescaped(found: re.Match[str]) -> str:
    number = int(found[1] or found[2] or found[3] or "0", 16) if found[4] is None else int(found[4], 8)
    return chr(number) if number < 0x110000 and not 0xD800 <= number < 0xE000 else " "


def _split(text: str, between: str, gone: str) -> list[list[str]]:
    if gone:
        text = re.sub(gone, "", text)
    return [[word for word in re.split(between, line) if word] for line in text.split("\n")]


def _named(index: dict[str, tuple[Danger, ...]], lines: list[list[str]]) -> Iterator[tuple[Danger, str]]:
    words = [word for line in lines for word in line]
    ends: list[int] = []
    """Where the line of each word ends."""
    for line in lines:
        ends += [len(ends) + len(line)] * len(line)
    for at, word in enumerate(words):
        rest = words[at + 1 : max(min(ends[at], at + 1 + WINDOW), at + 1 + NEXT_LINES)]
        for name, own in _names(index, word, rest):
            for danger in index[name]:
                if _is_meant(danger, name, own, words[at - 1] if at else ""):
                    yield danger, " ".join([word, *rest[:SHOWN_WORDS]])
        yield from ((danger, word) for danger in _glued(index, word))


def _names(index: dict[str, tuple[Danger, ...]], word: str, rest: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Programs that may be meant here, and the words behind each: the word itself, or it and the next written apart."""
    name = _bare(word.rpartition("/")[2]).removesuffix(".exe")
    if name in index:
        yield name, rest
    elif rest and len(both := name + _bare(rest[0])) > _GLUED_MIN and both in index:
        yield both, rest[1:]


def _is_meant(danger: Danger, name: str, rest: list[str], before: str) -> bool:
    if not (danger.words or danger.any) and before not in _BEFORE:
        return False  # "at", "service", "mail" are words too
    programs = {one for one in danger.programs if one.casefold() == name}
    return any(danger_of((danger,), programs, [name, *way]) is not None for way in (rest, [_bare(one) for one in rest]))


def _glued(index: dict[str, tuple[Danger, ...]], word: str) -> Iterator[Danger]:
    """``terraformapply``."""
    for size in range(_GLUED_MIN, min(len(word), 20)):
        for danger in index.get(word[:size], ()):
            left = word[size:]
            for ones in danger.words:
                place = min((left.index(one) + len(one) for one in ones if len(one) > 2 and one in left), default=-1)
                left = left[place:] if place >= 0 else ""
                if place < 0:
                    break
            else:
                if danger.words and not danger.any:
                    yield danger


def _bare(word: str) -> str:
    """Without what ends a sentence; ``.`` and ``..`` are folders."""
    return word.rstrip(".!?:…\"'") or word
