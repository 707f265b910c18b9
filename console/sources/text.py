"""What others wrote, as text that we can keep. Imports next to nothing: a process that only reads files begins with it."""

from __future__ import annotations

import re
from functools import lru_cache

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def plain(value: object, limit: int = 200) -> str:
    """A foreign value as text that can be stored and encoded: no control characters, no lone surrogates, bounded.

    Views still escape it (markup, bidirectional controls). Anything but text and whole numbers reads as empty.
    """
    if isinstance(value, bool) or not isinstance(value, str | int):
        return ""
    text = (str(value) if isinstance(value, str) or abs(value) < 10**30 else "")[:limit]
    return text if text.isprintable() else _CONTROL.sub("\ufffd", text)


_kept = lru_cache(maxsize=4096)(plain)


def known(value: object, limit: int = 200) -> str:
    """The same of models, sessions and folders: the same few again and again, so what was made of each is kept."""
    return _kept(value[:limit], limit) if isinstance(value, str) else plain(value, limit)
