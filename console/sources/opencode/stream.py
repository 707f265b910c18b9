"""OpenCode as a started program: the Agent Client Protocol (JSON-RPC on lines, both ways), or ``run --format json`` for one prompt.

Made for version 1.18; every field is optional and unknown methods are passed over. Our plug-in in it tells each answer of a model as it is
given, those of sub-agents too. Without the plug-in the program's own sums are charged: of a talk when a turn ends, else with each step.
"""

from __future__ import annotations

import json
import secrets
from typing import Any

from console.domain.spend import MOST_TOKENS, Answer, Tokens
from console.sources.activity.program_stream import MOST_TEXT, Event, Heard, bounded, count, output_event, parsed, part, shown, word
from console.sources.opencode.hook import ANSWER
from console.sources.opencode.transcripts import SOURCE, tokens_of
from console.sources.reading import reported

JUDGED = ("--no-pure",)
"""The option that loads our plug-in; ``--pure`` loads none."""
UNJUDGED = ("--pure",)
WORDS = ("acp",)
WORDS_ONCE = ("run", "--format", "json")
_MOST_WAITING = 100
_MOST_CALLS = 1000
_ENDED = ("completed", "failed")
_MOST_USD = 1e9


def settings(model: str, base_url: str, *, judged: bool) -> str:
    """Return the word that configures it. Where its calls are judged it allows none itself: our plug-in does, once it is loaded."""
    made: dict[str, Any] = {"permission": {"*": "ask" if judged else "allow"}, "share": "disabled", "autoupdate": False}
    if model:
        made["model"] = model
    if base_url:
        made["provider"] = {"openai": {"options": {"baseURL": base_url}}}
    return json.dumps(made)


class _Usage:
    """What one program used: answers by our plug-in's word, or else sums by its own."""

    def __init__(self) -> None:
        self._is_told = False
        """Our plug-in tells what answers use."""
        self.usd, self._tokens = 0.0, 0
        """By the program's own word."""

    def told(self, said: dict[str, Any], root: str) -> Heard:
        """What our plug-in says about an answer; ``root``: the session that is talked to."""
        self._is_told = True
        try:
            tokens = tokens_of(part(said, "tokens"))
            at = count(said.get("time"), "created") / 1000
        except ValueError:
            tokens, at = Tokens(-1), 0.0
        if not tokens.is_sane():
            return _odd(said)
        name, session = word(said, "id"), word(said, "sessionID")
        if not tokens.total or not name:
            return Heard()
        model = f"{word(said, 'providerID', 100)}/{word(said, 'modelID')}"
        agent = "" if session == root else session
        return Heard(answers=[Answer(SOURCE, name, at, model, "", root, agent, "", tokens, reported(said.get("cost")))])

    def say(self, usd: object) -> None:
        """The program's own sum in dollars."""
        if isinstance(usd, int | float) and not isinstance(usd, bool) and 0 <= usd < _MOST_USD:
            self.usd = max(self.usd, float(usd))

    def step(self, heard: Heard, said: dict[str, Any]) -> None:
        """What a step of one prompt came to."""
        cost = said.get("cost")
        self.say(self.usd + cost if isinstance(cost, int | float) else None)
        try:
            tokens = tokens_of(part(said, "tokens"))
        except ValueError:
            tokens = Tokens(-1)
        heard.events += [] if tokens.is_sane() else _odd(said).events
        self.sum_up(heard, tokens.total if tokens.is_sane() else 0)
        if said.get("reason") == "stop":
            heard.events.append({"kind": "turn", "ok": True, "text": "completed", "total_usd": self.usd})

    def sum_up(self, heard: Heard, tokens: int) -> None:
        """Add its own sums, unless our plug-in tells each answer."""
        self._tokens += max(0, tokens)
        if not self._is_told:
            heard.total_usd, heard.total_tokens = self.usd or None, min(self._tokens, MOST_TOKENS)


class OpenCodeStream:
    """One program's stream. Not thread-safe."""

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
        self._usage = _Usage()

    # --- what it is told

    def begin(self, prompt: str) -> list[dict[str, Any]]:
        """What is written before anything else: the rest of the beginning follows on its answers."""
        self._waiting.append(prompt)
        able = {"fs": {"readTextFile": False, "writeTextFile": False}, "terminal": False}
        return [_request("begin", "initialize", {"protocolVersion": 1, "clientCapabilities": able})]

    def message(self, text: str) -> list[dict[str, Any]]:
        """What is written to say ``text``; nothing yet, while its session is not there. In a turn it waits for the program's next step."""
        if not self.session:
            del self._waiting[_MOST_WAITING:]
            self._waiting.append(text)
            return []
        request_id = f"wf-{secrets.token_hex(6)}"
        self._asked.add(request_id)
        return [_request(request_id, "session/prompt", {"sessionId": self.session, "prompt": [{"type": "text", "text": text}]})]

    def interrupt(self, request_id: str) -> list[dict[str, Any]]:
        """What is written to end the present turn. Without a turn it is a request, which the program refuses by its id."""
        if not self.is_busy():
            return [_request(request_id, "session/cancel", {"sessionId": self.session})]
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
        if method == ANSWER:
            return self._usage.told(part(record, "params"), self.session)
        if isinstance(method, str):
            return _refused(record, method) if "id" in record else self._notified(method, part(record, "params"))
        return self._answered(record) if "id" in record else self._told_by_run(record)

    def _answered(self, record: dict[str, Any]) -> Heard:
        request_id, failed, result = word(record, "id"), part(record, "error"), part(record, "result")
        if request_id in ("begin", "session") and failed:
            return Heard([{"kind": "trouble", "text": f"it does not begin: {shown(failed, 500)}"}])
        if request_id == "begin":
            self.version = word(part(result, "agentInfo"), "version", 40)
            return Heard(reply=[_request("session", "session/new", {"cwd": ".", "mcpServers": []})])
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
        options = result.get("configOptions")
        chosen = [one for one in options if isinstance(one, dict) and one.get("id") == "model"] if isinstance(options, list) else []
        model = word(chosen[0], "currentValue") if chosen else ""
        event: Event = {"kind": "session", "program": SOURCE, "session": self.session, "model": model, "version": self.version}
        waiting, self._waiting = self._waiting, []
        return Heard([event], reply=self.message("\n\n".join(waiting)) if waiting and self.session else [])

    def _turn_over(self, failed: dict[str, Any], result: dict[str, Any]) -> Heard:
        heard = self._whole()
        self._is_in_turn = False
        heard.events += [{"kind": "control", "id": one, "ok": True, "text": ""} for one in self._interrupts]
        self._interrupts.clear()
        reason = word(result, "stopReason", 60)
        text = word(failed, "message", 2000) or reason
        heard.events.append({"kind": "turn", "ok": reason == "end_turn", "text": text, "total_usd": self._usage.usd or None})
        heard.action = "" if self._asked else "waits for a message"
        self._usage.sum_up(heard, count(part(result, "usage"), "totalTokens"))
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
        if kind == "usage_update":
            self._usage.say(part(update, "cost").get("amount"))
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
            _call(heard, call_id, self._calls.pop(call_id), update.get("rawInput"))
        if status in _ENDED:
            blocks = update.get("content")
            texts = [word(part(one, "content"), "text", MOST_TEXT) for one in blocks] if isinstance(blocks, list) else []
            text = bounded("\n".join(texts) or update.get("rawOutput"))
            heard.events.append({"kind": "tool_result", "id": call_id, "text": text, "error": status == "failed", "parent": ""})
        return heard

    def _told_by_run(self, record: dict[str, Any]) -> Heard:
        """``run --format json``: one prompt."""
        kind, said = word(record, "type", 60), part(record, "part")
        heard = Heard()
        if not self.session and (session := word(record, "sessionID")):
            self.session = session
            heard.events.append({"kind": "session", "program": SOURCE, "session": session, "model": "", "version": ""})
        if kind in ("text", "reasoning"):
            role = "assistant" if kind == "text" else "thinking"
            heard.events.append({"kind": "message", "role": role, "text": bounded(said.get("text")), "parent": ""})
        elif kind == "tool_use":
            call_id, state = word(said, "callID"), part(said, "state")
            _call(heard, call_id, word(said, "tool"), state.get("input"))
            failed = state.get("status") == "error"
            text = bounded(state.get("error" if failed else "output"))
            heard.events.append({"kind": "tool_result", "id": call_id, "text": text, "error": failed, "parent": ""})
        elif kind == "step_finish":
            self._usage.step(heard, said)
        elif kind == "error":
            heard.events.append({"kind": "trouble", "text": shown(record.get("error"), 2000)})
        return heard


def _refused(record: dict[str, Any], method: str) -> Heard:
    """It asks us something: whatever it is, nothing here allows it (deny is the default)."""
    event: Event = {"kind": "asked", "id": shown(record["id"], 60), "what": bounded(method, 60)}
    event["text"] = shown(record.get("params"), 2000)
    error = {"code": -32001, "message": "Watchfloor grants nothing on this channel."}
    known = isinstance(record["id"], str | int)
    return Heard([event], reply=[{"jsonrpc": "2.0", "id": record["id"], "error": error}] if known else [])


def _odd(said: dict[str, Any]) -> Heard:
    return Heard([{"kind": "trouble", "text": f"usage that no model gives was not counted: {shown(said, 300)}"}])


def _request(request_id: str, method: str, params: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}


def _call(heard: Heard, call_id: str, tool: str, told: object) -> None:
    heard.events.append({"kind": "tool_call", "id": call_id, "tool": tool, "arguments": bounded(told), "parent": ""})
    heard.tool_calls += 1
    heard.action = f"{tool} {bounded(told, 150)}"[:200]
