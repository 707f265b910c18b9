"""Claude Code as a started program: its stream-json events, and what it is told (messages, an interrupt) in the same form.

The format is Claude Code's own and may change: every field is optional, unknown ones and unknown types are passed over. Usage in an
``assistant`` line is what was known at its stream's start; a partial-message line ``message_delta`` has what it came to.
"""

from __future__ import annotations

import time
from typing import Any

from console.domain.conversation import WAITS
from console.domain.spend import ID_PARTS, MOST_TOKENS, Answer, Tokens
from console.sources.activity.program_stream import Event, Heard, bounded, count, output_event, parsed, part, shown, word

SOURCE = "claude_code"
WORDS = ("-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose", "--include-partial-messages")
WORDS_ONCE = ("-p", "--output-format", "stream-json", "--verbose", "--include-partial-messages")
HELD_BY_SANDBOX = ("--permission-mode", "bypassPermissions")
"""Options with which it calls tools without asking. Its sandbox, its network mode and its limits hold it."""
JUDGED = ("--setting-sources", "")
"""Options with which nothing in the workspace configures a program whose calls are checked."""
# Settings in the workspace could name variables for the hook's own interpreter, or hooks that change a call after its check.
_BLOCKS = 200
_IDS_MAX = 20_000
_STARTED, _ENDED = "task_started", "task_notification"
_MOST_USD = 1e9


class _Begun:
    """How often an answer with one id began: a gateway may give every answer the same."""

    def __init__(self) -> None:
        self._count: dict[str, int] = {}

    def id_of(self, answer_id: str) -> str:
        """The id by which the answer that begins now is counted; empty: it has none."""
        if len(self._count) > _IDS_MAX:
            self._count.clear()
        number = self._count[answer_id] = self._count.get(answer_id, 0) + 1
        return answer_id if number == 1 or not answer_id else f"{answer_id}{ID_PARTS}{number}"


def _same(answer_id: str, under_way: tuple[str, str, dict[str, Any]] | None) -> str:
    """The id of a whole answer: that of the one that streams now, where it is that one."""
    return under_way[0] if under_way is not None and under_way[0].partition(ID_PARTS)[0] == answer_id else answer_id


class ClaudeStream:
    """One program's stream. Not thread-safe; remembers the answers under way, so that their final usage finds its id."""

    def __init__(self) -> None:
        self.session = ""
        self._under_way: dict[str, tuple[str, str, dict[str, Any]]] = {}
        """By sub-agent's call (empty: the main one): id, model and early usage of the answer that streams now."""
        self._begun = _Begun()

    def hear(self, line: bytes) -> Heard:
        """What one line told."""
        record = parsed(line)
        if record is None:
            return Heard([output_event(line)])
        kind = record.get("type")
        handlers = {
            "system": self._system,
            "assistant": self._assistant,
            "user": self._user,
            "result": self._result,
            "stream_event": self._partial,
            "control_response": self._control,
            "control_request": self._asked,
        }
        handler = handlers.get(kind) if isinstance(kind, str) else None
        return handler(record) if handler is not None else Heard()

    def message(self, text: str) -> list[dict[str, Any]]:
        """What is written to say ``text``."""
        return [{"type": "user", "message": {"role": "user", "content": text}, "parent_tool_use_id": None, "session_id": ""}]

    def interrupt(self, request_id: str) -> list[dict[str, Any]]:
        """What is written to end the present turn."""
        return [{"type": "control_request", "request_id": request_id, "request": {"subtype": "interrupt"}}]

    def is_busy(self) -> bool:
        """Whether the end of its input would break off a turn: never, it finishes what it was told first."""
        return False

    def begin(self, prompt: str) -> list[dict[str, Any]]:
        """What is written before anything else."""
        return self.message(prompt)

    def _system(self, record: dict[str, Any]) -> Heard:
        what = record.get("subtype")
        if what == "init":
            self.session = word(record, "session_id")
            event: Event = {"kind": "session", "program": "claude-code", "session": self.session, "model": word(record, "model")}
            return Heard([event | {"version": word(record, "claude_code_version", 40)}])
        if what in (_STARTED, _ENDED):
            words = word(record, "description", 2000) or word(record, "summary", 2000)
            event = {"kind": "subagent", "id": word(record, "task_id"), "what": "started" if what == _STARTED else "ended", "text": words}
            return Heard([event | {"parent": word(record, "tool_use_id"), "status": word(record, "status", 40)}])
        if what == "api_retry":
            return Heard([{"kind": "trouble", "text": _tries_again(record)}])
        return Heard()

    def _assistant(self, record: dict[str, Any]) -> Heard:
        message, parent = part(record, "message"), word(record, "parent_tool_use_id")
        heard = Heard()
        for block in _blocks(message):
            kind = block.get("type")
            if kind in ("text", "thinking"):
                role = "assistant" if kind == "text" else "thinking"
                heard.events.append({"kind": "message", "role": role, "text": bounded(block.get(kind)), "parent": parent})
            elif kind == "tool_use":
                tool = word(block, "name")
                call: Event = {"kind": "tool_call", "id": word(block, "id"), "tool": tool, "arguments": shown(block.get("input"))}
                heard.events.append(call | {"parent": parent})
                heard.tool_calls += 1
                heard.action = f"{tool} {_gist(block.get('input'))}".strip()[:200]
        self._answered(
            heard, _same(word(message, "id"), self._under_way.get(parent)), word(message, "model"), part(message, "usage"), parent
        )
        return heard

    def _partial(self, record: dict[str, Any]) -> Heard:
        event, parent = part(record, "event"), word(record, "parent_tool_use_id")
        heard = Heard()
        if event.get("type") == "message_start":
            message = part(event, "message")
            if len(self._under_way) > 1000:
                self._under_way.clear()
            self._under_way[parent] = (self._begun.id_of(word(message, "id")), word(message, "model"), part(message, "usage"))
        elif event.get("type") == "message_delta" and parent in self._under_way:
            answer_id, model, early = self._under_way[parent]
            self._answered(heard, answer_id, model, {**early, **part(event, "usage")}, parent)
        return heard

    def _answered(self, heard: Heard, answer_id: str, model: str, usage: dict[str, Any], parent: str) -> None:
        """Notes an answer's usage; one that no model gives is told and not counted."""
        if not answer_id or not usage or model == "<synthetic>":
            return
        tokens = _tokens(usage)
        if not tokens.is_sane():
            heard.events.append({"kind": "trouble", "text": f"usage that no model gives was not counted: {shown(usage, 300)}"})
            return
        tier = word(usage, "service_tier", 40)
        tier = "" if tier == "standard" else tier
        heard.answers.append(Answer(SOURCE, answer_id, time.time(), model, tier, self.session, parent, "", tokens))

    def _user(self, record: dict[str, Any]) -> Heard:
        message, parent = part(record, "message"), word(record, "parent_tool_use_id")
        heard = Heard()
        for block in _blocks(message):
            if block.get("type") == "tool_result":
                result: Event = {"kind": "tool_result", "id": word(block, "tool_use_id"), "text": _result_text(block.get("content"))}
                heard.events.append(result | {"error": block.get("is_error") is True, "parent": parent})
        return heard

    def _result(self, record: dict[str, Any]) -> Heard:
        is_good = record.get("is_error") is not True
        text = bounded(record.get("result")) or word(record, "subtype")
        total = record.get("total_cost_usd")
        known = (
            isinstance(total, int | float) and not isinstance(total, bool) and 0 <= total < _MOST_USD
        )  # no NaN, no number too large for a float
        event: Event = {"kind": "turn", "ok": is_good, "text": text, "total_usd": float(total) if known and total is not None else None}
        used = part(record, "modelUsage").values()
        kinds = ("inputTokens", "outputTokens", "cacheReadInputTokens", "cacheCreationInputTokens")
        tokens = sum(max(0, count(one, kind)) for one in used for kind in kinds)
        return Heard([event], total_usd=event["total_usd"], total_tokens=min(tokens, MOST_TOKENS), action=WAITS)

    def _control(self, record: dict[str, Any]) -> Heard:
        response = part(record, "response")
        ok = response.get("subtype") == "success"
        return Heard(
            [{"kind": "control", "id": word(response, "request_id"), "ok": ok, "text": "" if ok else word(response, "error", 500)}]
        )

    def _asked(self, record: dict[str, Any]) -> Heard:
        """It asks us something: whatever it is, nothing here allows it (deny is the default)."""
        request, request_id = part(record, "request"), word(record, "request_id")
        if not request_id:
            return Heard()
        what = word(request, "subtype", 60)
        event: Event = {"kind": "asked", "id": request_id, "what": what, "text": shown(request, 2000)}
        answer: dict[str, Any] = {"subtype": "error", "request_id": request_id, "error": "Watchfloor grants nothing on this channel."}
        if what == "can_use_tool":
            denied = {"behavior": "deny", "message": "Watchfloor grants nothing on this channel."}
            answer = {"subtype": "success", "request_id": request_id, "response": denied}
        return Heard([event], reply=[{"type": "control_response", "response": answer}])


def _blocks(message: dict[str, Any]) -> list[dict[str, Any]]:
    content = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [b for b in content[:_BLOCKS] if isinstance(b, dict)] if isinstance(content, list) else []


def _result_text(content: object) -> str:
    if isinstance(content, list):
        texts = [bounded(b.get("text")) for b in content[:_BLOCKS] if isinstance(b, dict) and b.get("type") == "text"]
        return bounded("\n".join(texts)) if texts else shown(content)
    return bounded(content)


def _tries_again(record: dict[str, Any]) -> str:
    """``its model did not answer: HTTP 529; try 3 of 10 in 2.5 s``."""
    status, pause = record.get("error_status"), record.get("retry_delay_ms")
    why = f"HTTP {status}" if type(status) is int else word(record, "error", 200)
    tries = [str(n) for n in (record.get("attempt"), record.get("max_retries")) if type(n) is int]
    after = f" in {pause / 1000:.1f} s" if isinstance(pause, (int, float)) and 0 <= pause < 1e9 else ""
    return f"its model did not answer: {why or 'unknown'}; try {' of '.join(tries)}{after}"


def _gist(value: object) -> str:
    """The one argument that tells most."""
    if isinstance(value, dict):
        for name in ("command", "file_path", "url", "description", "pattern", "prompt"):
            if isinstance(value.get(name), str):
                return bounded(value[name], 150)
    return bounded(shown(value, 150), 150)


def _tokens(usage: dict[str, Any]) -> Tokens:
    written, parts = count(usage, "cache_creation_input_tokens"), part(usage, "cache_creation")
    hour = count(parts, "ephemeral_1h_input_tokens")
    if parts:
        written = max(written, hour + count(parts, "ephemeral_5m_input_tokens"))
    searches = count(part(usage, "server_tool_use"), "web_search_requests")
    return Tokens(
        count(usage, "input_tokens"), count(usage, "cache_read_input_tokens"), written - hour, hour, count(usage, "output_tokens"), searches
    )
