"""One record of the chain: its shape, its canonical bytes and its hash."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from console.domain.errors import TooLarge, UsageProblem

GENESIS = "0" * 64
"""``previous`` of the first record."""
LIMIT_BYTES = 1 << 20
"""All texts and the data of one record together."""
_DOMAIN = b"watchfloor-audit-record-1"


@dataclass(frozen=True, slots=True)
class Record:
    """Who did what, as it was judged. Every text may hold an agent's words and is hostile."""

    seq: int
    """1 for the first; never a gap."""
    at: float
    """Seconds since the epoch."""
    actor: str
    kind: str
    what: str
    verdict: str
    agent_id: str
    data: dict[str, Any] = field(hash=False)
    previous: str
    """``hash`` of the record before, GENESIS for the first."""
    hash: str
    """SHA-256 in hexadecimal over everything above."""


def text_bytes(text: str) -> bytes:
    """UTF-8, with lone surrogates kept apart from every valid encoding (so that no two texts share their bytes)."""
    return text.encode("utf-8", "surrogatepass")


def text_of(stored: Any) -> str:
    """Return the text of stored bytes. Bytes that are no valid text, which Watchfloor never writes, are shown escaped."""
    if not isinstance(stored, bytes):
        return "" if stored is None else str(stored)
    try:
        return stored.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return stored.decode("utf-8", "backslashreplace")


def canonical_data(data: Mapping[str, Any] | None) -> str:
    """JSON with sorted keys, no spaces, ASCII only, so one line. Raises UsageProblem on what is not finite JSON."""
    try:
        return json.dumps(dict(data or {}), sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageProblem("The record's data is not plain JSON with finite numbers.", "Nothing was recorded and nothing done.") from error


def digest(seq: int, at: float, texts: Sequence[bytes], data: bytes, previous: str) -> str:
    """SHA-256 over length-prefixed parts: no two different records have the same bytes, whatever the texts hold."""
    whole = hashlib.sha256()
    for part in (_DOMAIN, str(seq).encode(), repr(at).encode(), *texts, data, previous.encode()):
        whole.update(len(part).to_bytes(8, "big"))
        whole.update(part)
    return whole.hexdigest()


@dataclass(frozen=True, slots=True)
class Draft:
    """What is to be recorded, checked and in its stored form, before it has a number."""

    at: float
    texts: tuple[str, str, str, str, str]
    """actor, kind, what, verdict, agent_id."""
    data: str

    def numbered(self, seq: int, previous: str) -> Record:
        """The record it becomes behind ``previous``."""
        data = self.data.encode()
        actor, kind, what, verdict, agent_id = self.texts
        own = digest(seq, self.at, [text_bytes(t) for t in self.texts], data, previous)
        return Record(seq, self.at, actor, kind, what, verdict, agent_id, json.loads(self.data), previous, own)


def draft(at: float, texts: tuple[str, str, str, str, str], data: Mapping[str, Any] | None) -> Draft:
    """Checks it. Raises UsageProblem (data or time not finite) and TooLarge (1 MiB)."""
    if not math.isfinite(at):
        raise UsageProblem("The time of a record must be finite.", "Check the clock.")
    made = Draft(float(at) + 0.0, texts, canonical_data(data))
    if sum(len(t) for t in texts) + len(made.data) > LIMIT_BYTES:
        raise TooLarge("The record is larger than 1 MiB.", "Put the bulk into a file and record its hash.")
    return made


def shortened(at: float, texts: tuple[str, str, str, str, str]) -> Draft:
    """A record that always fits: for kills and stops, whose data could not be taken as it was."""
    room = LIMIT_BYTES // 16
    actor, kind, what, verdict, agent_id = (t[:room] for t in texts)
    return Draft(
        float(at) if math.isfinite(at) else 0.0, (actor, kind, what, verdict, agent_id), '{"data":"left out: too large or not JSON"}'
    )
