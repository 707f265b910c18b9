"""Entries as they may be kept: no known secret in them, none in half, and a moment that can be. Pure but for the clock."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import replace

from console.domain.activity import TEXT_KEPT, Entry

WINDOW = TEXT_KEPT + 65_536
"""Characters of a text that are looked at; a secret that is cut in two lies behind what is kept."""
_MARGIN = 8192
_FUTURE_S = 60.0
_AT_ONCE = 1 << 20
"""Characters that are looked through together."""
Redact = Callable[[str], str]


def shortened(entry: Entry) -> Entry:
    """No longer than is looked at; what is left out is counted."""
    more = len(entry.text) - WINDOW
    return entry if more <= 0 else replace(entry, text=entry.text[:WINDOW], left_out=entry.left_out + more)


def cleaned(entry: Entry, redact: Redact) -> Entry:
    """Known secrets are taken out of the whole before anything is cut."""
    size = len(entry.text)
    text = redact(entry.text[:WINDOW])
    if size >= WINDOW:
        text = text[: max(0, min(TEXT_KEPT, len(text) - _MARGIN))]
    kept = text[:TEXT_KEPT]
    left_out = size - len(kept) if size > TEXT_KEPT else len(text) - len(kept)
    who, tool, ref, pair = (redact(name[:_MARGIN]) for name in (entry.who, entry.tool, entry.ref, entry.pair))
    return replace(entry, text=kept, left_out=entry.left_out + max(0, left_out), who=who, tool=tool, ref=ref, pair=pair)


def cleaned_all(entries: Iterable[Entry], redact: Redact) -> list[Entry]:
    """The same for many: a look through all of them at once finds that nearly always there is nothing to take out."""
    found: list[Entry] = []
    waiting: list[Entry] = []
    size = 0
    for entry in entries:
        waiting.append(entry)
        size += len(entry.text)
        if size > _AT_ONCE:
            found += _cleaned_together(waiting, redact)
            waiting, size = [], 0
    return found + _cleaned_together(waiting, redact)


def _cleaned_together(entries: list[Entry], redact: Redact) -> list[Entry]:
    everything = "\n".join([part for e in entries for part in (e.text, e.who, e.tool, e.ref, e.pair)])
    if redact(everything) != everything:
        return [cleaned(entry, redact) for entry in entries]
    return [entry if len(entry.text) <= TEXT_KEPT else cleaned(entry, str) for entry in entries]


def dated(entries: Iterable[Entry], redact: Redact) -> list[Entry]:
    """Clean, and with a moment: one that says none has the one before it, none lies in the future."""
    now, last, found = time.time(), 0.0, []
    for entry in cleaned_all(entries, redact):
        if not entry.at:
            last = last or now
        else:
            last = min(entry.at, now) if entry.at < now + _FUTURE_S else now
        found.append(entry if entry.at == last else replace(entry, at=last))
    return found
