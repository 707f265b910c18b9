"""Text of agents made harmless for a terminal: nothing in it can move the cursor, colour, hide, reorder or stack up."""

from __future__ import annotations

import unicodedata
from datetime import datetime
from typing import Literal

_COMBINING_RUN = 3
"""Marks kept on one letter; more are stacked to cover other lines."""
_VISIBLE_SPACES = {" "}
# Cc controls (ESC, CR, C1 ...), Cf formats (bidi overrides, zero width, tags), Cs surrogates (undecodable bytes), Co private use,
# Cn unassigned, Zl and Zp separators, and every space that is not the plain one.
_HIDDEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs"}
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\x1b": "\\e"}


def plain(text: object, limit: int = 200) -> str:
    """``text`` on one line of at most ``limit`` characters; what could act on a terminal is shown as ``\\e``, ``\\u202e`` ..."""
    whole = str(text)
    shown = _escaped(whole[: limit * 2 + 16], keep="")
    if len(shown) > limit or len(whole) > limit * 2 + 16:
        return shown[: max(limit - 1, 0)] + "…"
    return shown


def plain_block(text: str) -> str:
    """Several lines: line ends and tabs stay, everything else as in ``plain``; no limit."""
    return _escaped(text.replace("\r\n", "\n"), keep="\n\t")


def moment(at: float, spec: Literal["minutes", "seconds"] = "minutes") -> str:
    """Seconds since the epoch in local time, ISO 8601 with its offset; a moment that no calendar has is ``?``."""
    try:
        return datetime.fromtimestamp(at).astimezone().isoformat(timespec=spec)
    except (OverflowError, ValueError, OSError):
        return "?"


def _escaped(text: str, keep: str) -> str:
    parts: list[str] = []
    marks = 0
    for char in text:
        marks = marks + 1 if unicodedata.combining(char) else 0
        if char in keep:
            parts.append(char)
        elif marks > _COMBINING_RUN or (char not in _VISIBLE_SPACES and unicodedata.category(char) in _HIDDEN):
            parts.append(_name(char))
        else:
            parts.append(char)
    return "".join(parts)


def _name(char: str) -> str:
    code = ord(char)
    if char in _SHORT:
        return _SHORT[char]
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
