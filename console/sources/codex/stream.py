"""Codex as a started program: its app-server (JSON-RPC on lines, both ways), or ``exec --json`` for one prompt. Formats of Codex's own.

Every field is optional; unknown methods are passed over. Codex tells the sum of a thread's tokens, not answers with ids: what a sum grew
by is one answer. A sum that shrinks takes nothing back.
"""

from __future__ import annotations

import secrets
import time
from typing import Any

from console.domain.conversation import WAITS
from console.domain.spend import Answer, Tokens
from console.sources.activity.program_stream import Event, Heard, bounded, count, output_event, parsed, part, shown, word

SOURCE = "codex"
HELD_BY_SANDBOX = ("-c", "approval_policy=never", "-c", "sandbox_mode=danger-full-access")
"""Options with which it calls tools without asking and makes no sandbox of its own: Watchfloor's sandbox holds it."""
QUIET = ("-c", "check_for_update_on_startup=false", "-c", "analytics.enabled=false", "-c", "feedback.enabled=false")
TRUSTED = ("--dangerously-bypass-hook-trust",)
"""The option that runs our hook without a person's approval. ``app-server`` has no such option: there the hook's hash is trusted."""
JUDGED = ("-c", "features.hooks=true")
"""Options that switch hooks on. They win over the program's own configuration, which lies in the workspace."""
WORDS = ("app-server",)
WORDS_ONCE = ("exec", "--json", "--skip-git-repo-check")
_MOST_WAITING = 100
_MOST_THREADS = 1000
_TOOLS = {"commandExecution": "shell", "command_execution": "shell", "fileChange": "edit", "file_change": "edit"}


def provider(base_url: str) -> tuple[str, ...]:
    """Arguments for a model API elsewhere; its key is in OPENAI_API_KEY."""
    named = {"name": "Watchfloor", "base_url": base_url, "env_key": "OPENAI_API_KEY", "wire_api": "responses"}
    words: list[str] = ["-c", "model_provider=watchfloor"]
    for key, value in named.items():
        words += ["-c", f"model_providers.watchfloor.{key}={shown(value)}"]
    return tuple(words)


class CodexStream:
    """One program's stream. Not thread-safe."""

    def __init__(self) -> None:
        self.thread = self.turn = self.model = ""
        self._asked: dict[str, str] = {}
        """Requests of ours that are not answered yet: id to method."""
        self._waiting: list[str] = []
        """Messages for a thread that is not there yet."""
        self._sums: dict[str, Tokens] = {}
        self._told = 0

    # --- what it is told

    def begin(self, prompt: str) -> list[dict[str, Any]]:
        """What is written before anything else: the rest of the beginning follows on its answers."""
        self._waiting.append(prompt)
        info = {"name": "watchfloor", "title": "Watchfloor", "version": "1"}
        return [{"id": "begin", "method": "initialize", "params": {"clientInfo": info}}]

    def message(self, text: str) -> list[dict[str, Any]]:
        """What is written to say ``text``; nothing yet, while its thread is not there."""
        if not self.thread:
            del self._waiting[_MOST_WAITING:]
            self._waiting.append(text)
            return []
        spoken = [{"type": "text", "text": text, "text_elements": []}]
        if self.turn:
            params: dict[str, Any] = {"threadId": self.thread, "expectedTurnId": self.turn, "input": spoken}
            return [self._request("turn/steer", params)]
        return [self._request("turn/start", {"threadId": self.thread, "input": spoken})]

    def interrupt(self, request_id: str) -> list[dict[str, Any]]:
        """What is written to end the present turn."""
        return [{"id": request_id, "method": "turn/interrupt", "params": {"threadId": self.thread, "turnId": self.turn}}]

    def is_busy(self) -> bool:
        """Whether the end of its input would break off a turn that is under way, or about to be."""
        return bool(self.turn or self._waiting or self._asked)

    def _request(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        request_id = f"wf-{secrets.token_hex(6)}"
        self._asked[request_id] = method
        return {"id": request_id, "method": method, "params": params}

    # --- what it says

    def hear(self, line: bytes) -> Heard:
        """What one line told."""
        record = parsed(line)
        if record is None:
            return Heard([output_event(line)])
        method = record.get("method")
        if isinstance(method, str):
            return self._refused(record, method) if "id" in record else self._notified(method, part(record, "params"))
        if "id" in record:
            return self._answered(record)
        return self._told_by_exec(record)

    def _answered(self, record: dict[str, Any]) -> Heard:
        request_id, failed = word(record, "id"), part(record, "error")
        ok = not failed
        if request_id == "begin":
            if not ok:
                return Heard([{"kind": "trouble", "text": f"it does not begin: {shown(failed, 500)}"}])
            return Heard(reply=[{"method": "initialized"}, {"id": "thread", "method": "thread/start", "params": {}}])
        if request_id == "thread":
            return self._began(part(record, "result"), failed)
        if self._asked.pop(request_id, "") and ok:
            return Heard()
        event: Event = {"kind": "control", "id": request_id, "ok": ok, "text": word(failed, "message", 500)}
        return Heard([event]) if ok else Heard([event, {"kind": "trouble", "text": f"it refused what it was told: {event['text']}"}])

    def _began(self, result: dict[str, Any], failed: dict[str, Any]) -> Heard:
        if failed:
            return Heard([{"kind": "trouble", "text": f"it does not begin: {shown(failed, 500)}"}])
        self.thread, self.model = word(part(result, "thread"), "id"), word(result, "model")
        event: Event = {"kind": "session", "program": "codex", "session": self.thread, "model": self.model}
        event["version"] = word(part(result, "thread"), "cliVersion", 40)
        waiting, self._waiting = self._waiting, []
        return Heard([event], reply=self.message("\n\n".join(waiting)) if waiting and self.thread else [])

    def _refused(self, record: dict[str, Any], method: str) -> Heard:
        """It asks us something: whatever it is, nothing here allows it (deny is the default)."""
        event: Event = {
            "kind": "asked",
            "id": shown(record["id"], 60),
            "what": bounded(method, 60),
            "text": shown(record.get("params"), 2000),
        }
        error = {"code": -32001, "message": "Watchfloor grants nothing on this channel."}
        return Heard([event], reply=[{"id": record["id"], "error": error}] if isinstance(record["id"], str | int) else [])

    def _notified(self, method: str, params: dict[str, Any]) -> Heard:
        thread = word(params, "threadId")
        parent = "" if thread == self.thread else thread
        if method in ("item/started", "item/completed"):
            return self._item(part(params, "item"), is_whole=method == "item/completed", parent=parent)
        if method == "turn/started" and not parent:
            self.turn = word(part(params, "turn"), "id")
        elif method == "turn/completed" and not parent:
            return self._turn_over(part(params, "turn"))
        elif method == "thread/tokenUsage/updated":
            return self._used(thread, _tokens(part(part(params, "tokenUsage"), "total")))
        elif method == "error":
            again = " (it tries again)" if params.get("willRetry") is True else ""
            return Heard([{"kind": "trouble", "text": word(part(params, "error"), "message", 2000) + again}])
        return Heard()

    def _turn_over(self, turn: dict[str, Any]) -> Heard:
        self.turn = ""
        ok = turn.get("status") == "completed"
        words = word(part(turn, "error"), "message", 2000) or word(turn, "status", 40)
        return Heard([{"kind": "turn", "ok": ok, "text": words, "total_usd": None}], action=WAITS)

    def _item(self, item: dict[str, Any], *, is_whole: bool, parent: str) -> Heard:
        kind, item_id = word(item, "type", 60), word(item, "id")
        if kind in ("agentMessage", "agent_message"):
            return Heard([_message("assistant", item.get("text"), parent)] if is_whole else [])
        if kind == "reasoning":
            text = item.get("text") or item.get("summary")
            return Heard([_message("thinking", text, parent)] if is_whole and text else [])
        if kind in ("userMessage", "user_message") or not kind:
            return Heard()
        if kind == "error":
            return Heard([{"kind": "trouble", "text": bounded(item.get("message"))}])
        tool = _TOOLS.get(kind, kind)
        told = item.get("command") or item.get("changes") or item.get("arguments") or item.get("query") or {}
        if not is_whole:
            call: Event = {"kind": "tool_call", "id": item_id, "tool": tool, "arguments": bounded(told), "parent": parent}
            return Heard([call], tool_calls=1, action=f"{tool} {bounded(told, 150)}")
        output = item.get("aggregatedOutput", item.get("aggregated_output", item.get("result", item.get("status"))))
        failed = item.get("status") in ("failed", "declined") or item.get("error") is not None
        return Heard([{"kind": "tool_result", "id": item_id, "text": bounded(output), "error": failed, "parent": parent}])

    def _used(self, thread: str, total: Tokens) -> Heard:
        if not total.is_sane():
            return Heard([{"kind": "trouble", "text": "usage that no model gives was not counted"}])
        before = self._sums.get(thread, Tokens())
        if len(self._sums) >= _MOST_THREADS and thread not in self._sums:
            return Heard([{"kind": "trouble", "text": "it has more threads than are counted"}])
        more = Tokens(*(max(0, now - then) for now, then in zip(total, before, strict=True)))
        if not more.total:
            return Heard()
        self._sums[thread] = Tokens(*map(max, total, before))
        self._told += 1
        parent = "" if thread == self.thread else thread
        return Heard(answers=[Answer(SOURCE, f"{thread}-{self._told}", time.time(), self.model, "", self.thread, parent, "", more)])

    def _told_by_exec(self, record: dict[str, Any]) -> Heard:
        """``exec --json``: one prompt."""
        kind = word(record, "type", 60)
        if kind == "thread.started":
            self.thread = word(record, "thread_id")
            return Heard([{"kind": "session", "program": "codex", "session": self.thread, "model": self.model, "version": ""}])
        if kind in ("item.started", "item.completed"):
            return self._item(part(record, "item"), is_whole=kind == "item.completed", parent="")
        if kind == "turn.completed":
            heard = self._used(self.thread, _tokens(part(record, "usage")))
            heard.events.append({"kind": "turn", "ok": True, "text": "completed", "total_usd": None})
            return heard
        if kind in ("turn.failed", "error"):
            words = word(record, "message", 2000) or word(part(record, "error"), "message", 2000)
            return Heard([{"kind": "turn" if kind == "turn.failed" else "trouble", "ok": False, "text": words, "total_usd": None}])
        return Heard()


def _message(role: str, text: object, parent: str) -> Event:
    return {"kind": "message", "role": role, "text": bounded(text), "parent": parent}


def _tokens(total: dict[str, Any]) -> Tokens:
    """The kinds apart: Codex's input includes what the cache had."""

    def either(camel: str, snake: str) -> int:
        return count(total, camel) if camel in total else count(total, snake)

    read = either("cachedInputTokens", "cached_input_tokens")
    written = either("cacheWriteInputTokens", "cache_write_input_tokens")
    plain = either("inputTokens", "input_tokens") - read - written
    return Tokens(plain, read, written, 0, either("outputTokens", "output_tokens"))
