"""What pi's sessions say that answers used and cost: ``~/.pi/agent/sessions/--CWD--/TIME_ID.jsonl``. Read of version 0.73.

OpenClaw writes its sessions in the same form.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import msgspec

from console.domain.spend import Answer, Tokens
from console.sources.reading import at_of, count, records, reported
from console.sources.spend.transcript_files import Folder, Opened, Transcripts
from console.sources.text import known, plain

SOURCE = "pi"
OPENCLAW = "openclaw"
_ID_MAX = 200


class _Message(msgspec.Struct):
    role: object = None
    provider: object = None
    model: object = None
    usage: object = None


class _Record(msgspec.Struct):
    type: object = None
    id: object = None
    timestamp: object = None
    message: _Message | None = None


_RECORDS = msgspec.json.Decoder(_Record)


class SessionLines:
    """Nothing in a session relies on what stood earlier: each answer names its provider and model."""

    def __init__(self, source: str, opened: Opened) -> None:
        self._source, self._of = source, opened
        stem = opened.path.rpartition("/")[2].partition(".jsonl")[0]
        self._session = plain(stem.partition("_")[2] or stem, 64)
        self._project = plain(opened.path.split("/")[-2].strip("-"), 500)

    def take(self, data: bytes) -> Iterator[Answer]:
        for record in records(data, b'"usage"', of=_RECORDS, seen=self._of.seen):
            try:
                answer = self._answer(record)
            except ValueError:
                self._of.seen.odd += 1
                continue
            if answer is not None:
                self._of.seen.answers += 1
                yield answer

    def state(self) -> str:
        return ""

    def _answer(self, record: _Record) -> Answer | None:
        message = record.message
        if record.type != "message" or message is None or message.role != "assistant" or not isinstance(message.usage, dict):
            return None
        used = message.usage
        parts = Tokens(count(used, "input"), count(used, "cacheRead"), count(used, "cacheWrite"), 0, count(used, "output"))
        tokens = parts if parts.total else Tokens(output=count(used, "totalTokens"))
        # A session that was forked begins with a copy of the other's records: the same id at the same moment is the same answer.
        name = plain(f"{record.id}:{record.timestamp}", _ID_MAX)
        provider, model = known(message.provider, 100), known(message.model)
        if not model or not tokens.is_sane():
            raise ValueError("it names no model, or no model gives such counts")
        cost = used.get("cost")
        paid = reported(cost.get("total")) if isinstance(cost, dict) else None
        model = f"{provider}/{model}" if provider else model
        at, where = at_of(record.timestamp), (self._session, "", self._project)
        return Answer(self._source, name, at, model, "", *where, tokens, paid, self._of.uid, self._of.ours)


def _is_session(path: str) -> bool:
    """OpenClaw keeps those that were reset or deleted beside the others."""
    name = path.rpartition("/")[2]
    return name.endswith(".jsonl") or ".jsonl.deleted." in name or ".jsonl.reset." in name


TRANSCRIPTS = Transcripts(
    SOURCE,
    "",
    (Folder("PI_AGENT_DIR", ".pi/agent", "sessions"),),
    partial(SessionLines, SOURCE),
    own=(Folder("", ".pi/agent", "sessions"),),
)
OPENCLAW_TRANSCRIPTS = Transcripts(
    OPENCLAW, "", (Folder("OPENCLAW_DIR", ".openclaw", "agents"),), partial(SessionLines, OPENCLAW), is_one=_is_session
)
