"""Text that an agent can influence, made safe to show: what is hidden becomes visible, and nothing can grow without bound."""

from __future__ import annotations

import html
import unicodedata

LIMIT = 200
_MARKS_IN_A_ROW = 2
# Letters and marks that paint nothing, though their category says otherwise (Unicode 15, Default_Ignorable and blank letters).
_BLANK = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0\ufffc\U0001d159")
_HIDDEN_CATEGORIES = frozenset(("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"))
_MARK_CATEGORIES = frozenset(("Mn", "Me", "Mc"))
_FSI, _PDI = "\u2068", "\u2069"
_RIGHT_TO_LEFT = frozenset(("R", "AL"))


def safe_text(value: object, limit: int = LIMIT) -> str:
    """Return ``value`` as one line of plain text of at most ``limit`` characters (ended by … when cut).

    Changed on the way:

    * Control, bidi, zero-width, private and unassigned characters become ``\\u202e``.
    * A run of combining marks beyond two becomes ``[+998 marks]``.
    * Cyrillic or Greek letters inside a Latin word become escapes: they only look like Latin ones.
    * Text with right-to-left letters is isolated (FSI ... PDI, UAX #9), so that it cannot turn round what stands beside it.
    """
    text = value if isinstance(value, str) else str(value)
    if len(text) <= limit and text.isascii() and text.isprintable():
        return text  # nothing of what follows would change it, and most text is such
    if text[:1] == _FSI and text[-1:] == _PDI and any(unicodedata.bidirectional(c) in _RIGHT_TO_LEFT for c in text[: limit * 8]):
        text = text[1:-1]  # what this function isolated before stays as it was
    cut = len(text) > limit * 8
    shown = _without_lookalikes(_visible(text[: limit * 8]))
    if cut or len(shown) > limit:
        shown = shown[: max(1, limit - 1)] + "…"
    if any(unicodedata.bidirectional(c) in _RIGHT_TO_LEFT for c in shown):
        return f"{_FSI}{shown}{_PDI}"
    return shown


def safe_lines(value: object, limit: int = 20_000) -> str:
    """The same for text of several lines (output, configuration): line feeds stay, a tab becomes four spaces."""
    text = (value if isinstance(value, str) else str(value))[:limit]
    return "\n".join(safe_text(line.replace("\t", "    "), 2000) for line in text.split("\n"))


def is_plain(text: str) -> bool:
    """Whether ``safe_text`` would show ``text`` as it is."""
    return safe_text(text, max(LIMIT, len(text))) == text


def kind_of(char: str) -> str:
    """What makes a character other than it looks: ``hidden``, ``mark`` (combining), ``rtl`` (turns order round), ``foreign``; else empty.

    A ``foreign`` letter (Cyrillic, Greek) is one that passes for Latin: it matters inside a word with Latin letters only.
    """
    kind = unicodedata.category(char)
    if _is_hidden(char, kind):
        return "hidden"
    if kind in _MARK_CATEGORIES:
        return "mark"
    if unicodedata.bidirectional(char) in _RIGHT_TO_LEFT or unicodedata.bidirectional(char) == "AN":
        return "rtl"
    return "foreign" if _is_foreign(char) else ""


def _visible(text: str) -> str:
    if text.isascii() and text.isprintable():
        return text
    out: list[str] = []
    run = 0
    for char in text:
        kind = unicodedata.category(char)
        if kind in _MARK_CATEGORIES and char not in _BLANK and not _is_selector(char):
            run += 1
            if run <= _MARKS_IN_A_ROW:
                out.append(char)
            continue
        if run > _MARKS_IN_A_ROW:
            out.append(f"[+{run - _MARKS_IN_A_ROW} marks]")
        run = 0
        out.append(_escape(char) if _is_hidden(char, kind) else char)
    if run > _MARKS_IN_A_ROW:
        out.append(f"[+{run - _MARKS_IN_A_ROW} marks]")
    return "".join(out)


def _is_hidden(char: str, kind: str) -> bool:
    return kind in _HIDDEN_CATEGORIES or char in _BLANK or (kind == "Zs" and char != " ") or _is_selector(char)


def _is_selector(char: str) -> bool:
    return "\ufe00" <= char <= "\ufe0f" or "\U000e0100" <= char <= "\U000e01ef"


def _escape(char: str) -> str:
    code = ord(char)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _without_lookalikes(text: str) -> str:
    if text.isascii():
        return text
    return "".join(_word(word) for word in _words(text))


def _words(text: str) -> list[str]:
    words: list[str] = []
    for char in text:
        if words and (char.isalnum() == words[-1][-1].isalnum()):
            words[-1] += char
        else:
            words.append(char)
    return words


def _word(word: str) -> str:
    foreign = [c for c in word if _is_foreign(c)]
    if not foreign or not any(c.isascii() and c.isalpha() for c in word):
        return word
    return "".join(_escape(c) if _is_foreign(c) else c for c in word)


def _is_foreign(char: str) -> bool:
    return "\u0370" <= char <= "\u052f" or "\u1c80" <= char <= "\u1c8f" or "\u2de0" <= char <= "\u2dff" or "\ua640" <= char <= "\ua69f"


def tooltip(text: str) -> str:
    """A tooltip that shows ``text`` literally: Qt guesses rich text from the content, so the guess is taken away from it."""
    shown = html.escape(safe_text(text, 1000))
    return f"<qt>{shown}</qt>" if shown else ""
