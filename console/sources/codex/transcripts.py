"""What Codex's rollouts say that answers used.

``token_usage_record`` names each answer; older versions write only running totals (``token_count``), whose steps are counted. The rollout
of a sub-agent begins with a copy of its parent's: what another thread used is not counted again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import msgspec

from console.domain.spend import Answer, Tokens, with_input
from console.sources.reading import Reading, at_of, records
from console.sources.spend.transcript_files import Folder, Opened, Transcripts
from console.sources.text import plain

SOURCE = "codex"
FOLDERS = (".codex", ".watchfloor/codex")
"""Where in the home of an agent of ours it keeps its files: by itself, or as a conversation that was started here is told to."""
_MARKS = (b'"token_', b'"turn_context"', b'"session_meta"')
_ID_MAX = 200


class _Payload(msgspec.Struct):
    type: object = None
    id: object = None
    session_id: object = None
    thread_id: object = None
    response_id: object = None
    timestamp: object = None
    cwd: object = None
    model: object = None
    source: object = None
    usage: object = None
    info: object = None


class _Record(msgspec.Struct):
    type: object
    payload: _Payload
    timestamp: object = None


_RECORDS = msgspec.json.Decoder(_Record)


@dataclass(slots=True)
class Thread:
    """What earlier lines of a rollout said that later ones rely on; kept from read to read."""

    thread: str = ""
    root: str = ""
    born: float = 0.0
    model: str = ""
    cwd: str = ""
    records: bool = False
    """Whether each answer is named: the running totals say nothing more."""
    total: int = 0
    """The last running total."""
    own: bool = True
    """Whether what comes now is its own; a copy of its parent's lines comes first."""

    def kept(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def answers(data: bytes, state: Thread, seen: Reading, uid: int = -1, *, ours: bool = False) -> Iterator[Answer]:
    """The answers in whole lines."""
    for record in records(data, *_MARKS, of=_RECORDS, seen=seen):
        try:
            found = _take(record.type, record.payload, at_of(record.timestamp), state, (uid, ours))
        except (ValueError, KeyError, TypeError):
            seen.odd += 1
            continue
        if found is not None and found.tokens.is_sane():
            seen.answers += 1
            yield found
        elif found is not None:
            seen.odd += 1


def _take(kind: object, payload: _Payload, at: float, state: Thread, whose: tuple[int, bool]) -> Answer | None:
    if kind == "session_meta" and not state.thread:
        state.thread = plain(payload.id, 64)
        state.root = plain(payload.session_id, 64) or state.thread
        state.born = at_of(payload.timestamp)
        state.cwd = plain(payload.cwd, 500)
        state.own = not (isinstance(payload.source, dict) and "subagent" in payload.source)
    elif kind == "turn_context":
        state.model = plain(payload.model) or state.model
        state.cwd = plain(payload.cwd, 500) or state.cwd
        state.own = state.own or at >= state.born
    elif kind == "token_usage_record":
        if plain(payload.thread_id, 64) in ("", state.thread):
            state.records = True
            tokens, name = _tokens(payload.usage), plain(payload.response_id, _ID_MAX)
            # A gateway may give every answer the same id: the input tells one from another.
            return _answer(state, name and with_input(name, tokens), at, tokens, whose)
    elif kind == "event_msg" and payload.type == "token_count":
        return _step(payload.info, at, state, whose)
    return None


def _step(info: object, at: float, state: Thread, whose: tuple[int, bool]) -> Answer | None:
    """A running total that grew: what the last answer used."""
    if not isinstance(info, dict):
        return None
    total = _count(info["total_token_usage"], "total_tokens")
    grew, state.total = total > state.total, total
    if not grew or state.records or not state.own:
        return None
    return _answer(state, f"{state.thread}:{total}", at, _tokens(info["last_token_usage"]), whose)


def _answer(state: Thread, answer_id: str, at: float, tokens: Tokens, whose: tuple[int, bool]) -> Answer:
    if not answer_id:
        raise ValueError("it names no answer")
    agent = "" if state.thread == state.root else state.thread
    return Answer(SOURCE, answer_id, at, state.model, "", state.root, agent, state.cwd, tokens, None, *whose)


def _tokens(usage: object) -> Tokens:
    """Here the input holds what came from the cache and what was written to it. Raises ValueError."""
    read, written = _count(usage, "cached_input_tokens"), _count(usage, "cache_write_input_tokens")
    return Tokens(_count(usage, "input_tokens") - read - written, read, written, 0, _count(usage, "output_tokens"))


def _count(usage: object, key: str) -> int:
    value = usage.get(key, 0) if isinstance(usage, dict) else None
    if type(value) is not int:
        raise ValueError(f"{key} is no whole number")
    return value


@dataclass(frozen=True, slots=True)
class _Lines:
    """Later lines rely on what earlier ones said of the thread."""

    thread: Thread
    of: Opened

    def take(self, data: bytes) -> Iterator[Answer]:
        return answers(data, self.thread, self.of.seen, self.of.uid, ours=self.of.ours)

    def state(self) -> str:
        return json.dumps(self.thread.kept())


def _lines(opened: Opened) -> _Lines:
    try:
        return _Lines(Thread(**json.loads(opened.state)), opened)
    except (ValueError, TypeError):
        return _Lines(Thread(), opened)


def _is_rollout(path: str) -> bool:
    return path.endswith(".jsonl") and path.rpartition("/")[2].startswith("rollout-")


TRANSCRIPTS = Transcripts(
    SOURCE,
    "openai",
    (Folder("CODEX_HOME", ".codex", "sessions"),),
    _lines,
    own=tuple(Folder("", config, "sessions") for config in FOLDERS),
    is_one=_is_rollout,
)
