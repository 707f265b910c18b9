"""The Agent Client Protocol, as started programs speak it: JSON-RPC on lines, both ways. What a program adds of its own is in its folder.

Every field is optional and unknown methods are passed over.
"""

from __future__ import annotations

import secrets
from typing import Any

from console.domain.conversation import WAITS
from console.sources.activity.program_stream import MOST_TEXT, Event, Heard, bounded, output_event, parsed, part, shown, word

_MOST_WAITING = 100
_MOST_CALLS = 1000
_ENDED = ("completed", "failed")


class AcpStream:
    """One program's stream. Not thread-safe."""

    source = ""
    """Its agent kind."""

    def __init__(self) -> None:
        self.session = self.version = ""
        self._asked: set[str] = set()
        """Prompts that are not answered yet."""
        self._is_in_turn = False
        self._waiting: list[str] = []
        """Messages for a session that is not there yet."""
        self._interrupts: list[str] = []
        self._said = ("", "", "")
        """The message that comes in pieces: its role, its id, its text so far."""
        self._calls: dict[str, str] = {}
        """Calls that have begun and were not told yet: id to tool."""

    # --- what it is told

    def begin(self, prompt: str) -> list[dict[str, Any]]:
        """What is written before anything else: the rest of the beginning follows on its answers."""
        self._waiting.append(prompt)
        able = {"fs": {"readTextFile": False, "writeTextFile": False}, "terminal": False}
        return [request("begin", "initialize", {"protocolVersion": 1, "clientCapabilities": able})]

    def message(self, text: str) -> list[dict[str, Any]]:
        """What is written to say ``text``; nothing yet, while its session is not there. In a turn it waits for the program's next step."""
        if not self.session:
            del self._waiting[_MOST_WAITING:]
            self._waiting.append(text)
            return []
        request_id = f"wf-{secrets.token_hex(6)}"
        self._asked.add(request_id)
        return [request(request_id, "session/prompt", {"sessionId": self.session, "prompt": [{"type": "text", "text": text}]})]

    def interrupt(self, request_id: str) -> list[dict[str, Any]]:
        """What is written to end the present turn. Without a turn it is a request, which the program refuses by its id."""
        if not self.is_busy():
            return [request(request_id, "session/cancel", {"sessionId": self.session})]
        self._interrupts.append(request_id)
        return [{"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": self.session}}]

    def is_busy(self) -> bool:
        """Whether the end of its input would break off a turn that is under way, or about to be."""
        return bool(self._is_in_turn or self._waiting or self._asked)

    # --- what it says

    def hear(self, line: bytes) -> Heard:
        """What one line told."""
        record = parsed(line)
        if record is None:
            return Heard([output_event(line)])
        method = record.get("method")
        if isinstance(method, str):
            return _refused(record, method) if "id" in record else self._notified(method, part(record, "params"))
        return self._answered(record) if "id" in record else self._told_otherwise(record)

    def _answered(self, record: dict[str, Any]) -> Heard:
        request_id, failed, result = word(record, "id"), part(record, "error"), part(record, "result")
        if request_id in ("begin", "session") and failed:
            return Heard([{"kind": "trouble", "text": f"it does not begin: {shown(failed, 500)}"}])
        if request_id == "begin":
            self.version = word(part(result, "agentInfo"), "version", 40)
            return Heard(reply=[request("session", "session/new", {"cwd": ".", "mcpServers": []})])
        if request_id == "session":
            return self._began(result)
        is_prompt = request_id in self._asked or "stopReason" in result
        self._asked.discard(request_id)
        if is_prompt:
            return self._turn_over(failed, result)
        text = word(failed, "message", 500)
        return Heard([{"kind": "control", "id": request_id, "ok": not failed, "text": text}])

    def _began(self, result: dict[str, Any]) -> Heard:
        self.session = word(result, "sessionId")
        event: Event = {"kind": "session", "program": self.source, "session": self.session, "version": self.version}
        event["model"] = self._model(result)
        waiting, self._waiting = self._waiting, []
        return Heard([event], reply=self.message("\n\n".join(waiting)) if waiting and self.session else [])

    def _model(self, _result: dict[str, Any]) -> str:
        """Which model a session that begins has, where its program names it."""
        return ""

    def _told_otherwise(self, _record: dict[str, Any]) -> Heard:
        """What a line says that is none of this protocol."""
        return Heard()

    def _turn_over(self, failed: dict[str, Any], result: dict[str, Any]) -> Heard:
        heard = self._whole()
        self._is_in_turn = False
        heard.events += [{"kind": "control", "id": one, "ok": True, "text": ""} for one in self._interrupts]
        self._interrupts.clear()
        reason = word(result, "stopReason", 60)
        text = word(failed, "message", 2000) or reason
        heard.events.append({"kind": "turn", "ok": reason == "end_turn", "text": text, "total_usd": None})
        heard.action = "" if self._asked else WAITS
        return heard

    def _notified(self, method: str, params: dict[str, Any]) -> Heard:
        update = part(params, "update")
        kind = update.get("sessionUpdate")
        if method != "session/update":
            return Heard()
        if kind in ("agent_message_chunk", "agent_thought_chunk"):
            self._is_in_turn = True
            role = "assistant" if kind == "agent_message_chunk" else "thinking"
            return self._piece(role, word(update, "messageId"), word(part(update, "content"), "text", MOST_TEXT))
        if kind in ("tool_call", "tool_call_update"):
            self._is_in_turn = True
            return self._called(update)
        return Heard()

    def _piece(self, role: str, message: str, text: str) -> Heard:
        heard = Heard() if self._said[:2] == (role, message) else self._whole()
        had = self._said[2] if self._said[:2] == (role, message) else ""
        self._said = (role, message, (had + text)[: MOST_TEXT + 1])
        return heard

    def _whole(self) -> Heard:
        """The message that came in pieces."""
        (role, _, text), self._said = self._said, ("", "", "")
        return Heard([{"kind": "message", "role": role, "text": bounded(text), "parent": ""}] if text else [])

    def _called(self, update: dict[str, Any]) -> Heard:
        heard, call_id, status = self._whole(), word(update, "toolCallId"), update.get("status")
        if update.get("sessionUpdate") == "tool_call" and len(self._calls) < _MOST_CALLS:
            self._calls[call_id] = word(update, "title")
        if status != "pending" and call_id in self._calls:
            tell_call(heard, call_id, self._calls.pop(call_id), update.get("rawInput"))
        if status in _ENDED:
            blocks = update.get("content")
            texts = [word(part(one, "content"), "text", MOST_TEXT) for one in blocks] if isinstance(blocks, list) else []
            text = bounded("\n".join(texts) or update.get("rawOutput"))
            heard.events.append({"kind": "tool_result", "id": call_id, "text": text, "error": status == "failed", "parent": ""})
        return heard


def _refused(record: dict[str, Any], method: str) -> Heard:
    """It asks us something: whatever it is, nothing here allows it (deny is the default)."""
    event: Event = {"kind": "asked", "id": shown(record["id"], 60), "what": bounded(method, 60)}
    event["text"] = shown(record.get("params"), 2000)
    error = {"code": -32001, "message": "Watchfloor grants nothing on this channel."}
    known = isinstance(record["id"], str | int)
    return Heard([event], reply=[{"jsonrpc": "2.0", "id": record["id"], "error": error}] if known else [])


def request(request_id: str, method: str, params: dict[str, Any]) -> dict[str, Any]:
    """One request of ours."""
    return {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}


def tell_call(heard: Heard, call_id: str, tool: str, told: object) -> None:
    """Add that a tool was called."""
    heard.events.append({"kind": "tool_call", "id": call_id, "tool": tool, "arguments": bounded(told), "parent": ""})
    heard.tool_calls += 1
    heard.action = f"{tool} {bounded(told, 150)}"[:200]
