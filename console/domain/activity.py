"""What agents did, entry by entry, as values: messages, tool calls with verdict and result, spend, children, files.

Everything in an entry is hostile text, or was made from it; views escape it. Bounds here hold before anything is kept.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from enum import StrEnum

TEXT_KEPT = 16_384
"""Characters kept of one entry's text; how many there were is said."""
SHORT = 200
"""Characters kept of names, ids and roles."""
PATH_KEPT = 1000
LATEST = 4e9
"""No moment lies behind it."""


class Kind(StrEnum):
    """What an entry is about."""

    MESSAGE = "message"
    THINKING = "thinking"
    TOOL_CALL = "tool_call"
    TOOL_RESULT = "tool_result"
    VERDICT = "verdict"
    SPEND = "spend"
    SPAWN = "spawn"
    FILE = "file"
    ERROR = "error"
    NOTE = "note"


KINDS = frozenset(kind.value for kind in Kind)


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing that happened. Whose it is says the file, socket or record it came from, never the text."""

    kind: Kind
    source_id: str
    """Names it within its agent: read twice, it is kept once."""
    at: float = 0.0
    """Seconds since the epoch by the source's own word; 0: it does not say."""
    text: str = ""
    who: str = ""
    """The speaker (user, assistant, system), or the part of Watchfloor that reports it."""
    turn: int = 0
    """The person's prompt it belongs to, counted from 1; 0: not known."""
    tool: str = ""
    pair: str = ""
    """The same for a call, its verdicts and its result."""
    verdict: str = ""
    """allow, deny, ask, or empty."""
    ref: str = ""
    """A child's id (spawn), a path (file), the folder that a call is made from (a tool_call that we were asked about)."""
    rollback_id: str = ""
    failed: bool = False
    tokens: int = 0
    cost_nano: int | None = None
    """Nano-dollars; None: no price is known, or it costs nothing by itself."""
    audit: int = 0
    """Number of its audit record; 0: there is none."""
    left_out: int = 0
    """Characters of the text that were not kept."""


def source_id(raw: bytes | str, part: str | int = 0) -> str:
    """A name made from the whole of what was read: another content is never taken for the same entry, whatever id it claims."""
    data = raw if isinstance(raw, bytes) else raw.encode("utf-8", "surrogatepass")
    return f"{hashlib.sha256(data).hexdigest()[:32]}:{part}"


def bounded(entry: Entry, most: int = TEXT_KEPT) -> Entry:
    """As it can be kept: cut to bounds, with what was cut counted, and no half characters that no file could hold."""
    if _fits(entry, most):
        return entry
    text = encodable(entry.text[:most])
    return replace(
        entry,
        text=text,
        left_out=_whole(entry.left_out + max(0, len(entry.text) - most)),
        source_id=encodable(entry.source_id[:SHORT]),
        who=encodable(entry.who[:SHORT]),
        tool=encodable(entry.tool[:SHORT]),
        pair=encodable(entry.pair[:SHORT]),
        verdict=encodable(entry.verdict[:SHORT]),
        ref=encodable(entry.ref[:PATH_KEPT]),
        rollback_id=encodable(entry.rollback_id[:SHORT]),
        turn=_whole(entry.turn),
        tokens=_whole(entry.tokens),
        cost_nano=None if entry.cost_nano is None else _whole(entry.cost_nano),
        audit=_whole(entry.audit),
        at=entry.at if 0 <= entry.at < LATEST else 0.0,
    )


def _fits(e: Entry, most: int) -> bool:
    """Nearly all do; a copy costs ten times as much as looking."""
    names = (e.source_id, e.who, e.tool, e.pair, e.verdict, e.rollback_id)
    text = "".join((e.text, e.ref, *names))
    return (
        text.isascii()
        and "\0" not in text
        and len(e.text) <= most
        and len(e.ref) <= PATH_KEPT
        and max(map(len, names)) <= SHORT
        and 0 <= e.at < LATEST
        and min(e.turn, e.tokens, e.audit, e.left_out, e.cost_nano or 0) >= 0
        and max(e.turn, e.tokens, e.audit, e.left_out, e.cost_nano or 0) < 1 << 63
    )


def _whole(number: int) -> int:
    """As eight bytes can hold it."""
    return max(0, min(number, (1 << 63) - 1))


def encodable(text: str) -> str:
    """Lone surrogates and NUL (at which a search would stop) as escapes; everything else as it is."""
    text = text.replace("\0", "\\x00") if "\0" in text else text
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


@dataclass(frozen=True, slots=True)
class FilePlace:
    """How far one file was read for one agent, and by what it is known again."""

    path: str
    dev: int = 0
    inode: int = 0
    offset: int = 0
    mark: str = ""
    """Digest of the last bytes before ``offset``."""
    state: str = ""
    """What earlier lines said, JSON, or empty."""
    skipping: bool = False
    """``offset`` lies within a line that is too long to be read."""


@dataclass(frozen=True, slots=True)
class Kept:
    """An entry as the store gives it back; the text may be its beginning."""

    seq: int
    """Grows with the order in which entries were kept."""
    entry: Entry
    size: int
    """Characters that are kept of the text."""


@dataclass(frozen=True, slots=True)
class Holding:
    """What is kept of one agent."""

    count: int = 0
    oldest: int = 0
    newest: int = 0
    dropped: int = 0
    """Entries that had to go because of a bound."""


@dataclass(frozen=True, slots=True)
class Window:
    """One page of a feed, oldest first."""

    rows: tuple[Kept, ...] = ()
    holding: Holding = Holding()
    at_start: bool = True
    """Nothing older is kept."""
    at_end: bool = True
    searched_to: int = 0
    """How far a search came before its time was over; 0: it is whole. Go on from there."""
