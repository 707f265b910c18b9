"""What Qwen Code's chats say that answers used: ``~/.qwen/projects/CWD/chats/SESSION.jsonl``. Read of version 0.24.

``promptTokenCount`` holds what came from the cache: Alibaba's price sheet bills that part at the cache's price alone.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from console.domain.spend import Answer, Tokens
from console.sources.reading import at_of, count, records
from console.sources.spend.transcript_files import Folder, Opened, Transcripts
from console.sources.text import known, plain

SOURCE = "qwen"
_ID_MAX = 200


class _Record(msgspec.Struct):
    type: object = None
    uuid: object = None
    sessionId: object = None  # noqa: N815 - as it is written
    agentId: object = None  # noqa: N815
    cwd: object = None
    timestamp: object = None
    model: object = None
    usageMetadata: object = None  # noqa: N815


_RECORDS = msgspec.json.Decoder(_Record)


class ChatLines:
    """Nothing in a chat relies on what stood earlier."""

    def __init__(self, opened: Opened) -> None:
        self._of = opened

    def take(self, data: bytes) -> Iterator[Answer]:
        for record in records(data, b'"usageMetadata"', of=_RECORDS, seen=self._of.seen):
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
        used = record.usageMetadata
        if record.type != "assistant" or not isinstance(used, dict):
            return None
        given, cached = count(used, "promptTokenCount"), count(used, "cachedContentTokenCount")
        output = count(used, "candidatesTokenCount") + count(used, "thoughtsTokenCount")
        tokens = Tokens(max(0, given - cached), cached, 0, 0, output or (count(used, "totalTokenCount") if not given else 0))
        name = plain(record.uuid, _ID_MAX)
        if not name or not tokens.is_sane():
            raise ValueError("it names no answer, or no model gives such counts")
        session = known(record.sessionId, 64) or known(self._of.path.rpartition("/")[2].removesuffix(".jsonl"), 64)
        where = (session, known(record.agentId, 64), known(record.cwd, 500))
        at, model = at_of(record.timestamp), known(record.model)
        return Answer(SOURCE, name, at, model, "", *where, tokens, None, self._of.uid, self._of.ours)


def _is_chat(path: str) -> bool:
    return path.endswith(".jsonl") and "/chats/" in path


_CHATS = (Folder("", ".qwen", "projects"),)
TRANSCRIPTS = Transcripts(SOURCE, "", _CHATS, ChatLines, own=_CHATS, is_one=_is_chat)
