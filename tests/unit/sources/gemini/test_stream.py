"""Gemini CLI as a started program: its policy, and answers by the word of our gate."""

from __future__ import annotations

import json
import tomllib

from console.domain.spend import Tokens
from console.sources.gemini import gate
from console.sources.gemini.stream import ASKED, GeminiStream, gate_of, policy

USED = {"input": 1000, "output": 70, "cached": 400, "thoughts": 30, "tool": 0, "total": 1100}


def told(**more: object) -> bytes:
    record = {"id": "a1", "timestamp": "2026-11-27T16:04:11.263Z", "type": "gemini", "model": "gemini-2.5-pro", "tokens": USED}
    return json.dumps({"jsonrpc": "2.0", "method": gate.ANSWER, "params": record | more}).encode()


def test_the_policy_lets_ask_what_can_be_judged_and_denies_the_rest() -> None:
    rules = tomllib.loads(policy(judged=True).decode())["rule"]
    first = max((rule for rule in rules if "run_shell_command" in rule["toolName"]), key=lambda rule: rule["priority"])
    assert first["decision"] == "ask_user" and set(first["toolName"]) == set(ASKED)
    assert [rule for rule in rules if rule["toolName"] == "*"] == [{"toolName": "*", "decision": "deny", "priority": 1}]
    assert [rule["decision"] for rule in tomllib.loads(policy(judged=False).decode())["rule"]] == ["allow"]
    assert b"main([], sys.argv[1:])" in gate_of(None)


def test_an_answer_is_priced_as_its_chat_is() -> None:
    stream = GeminiStream()
    stream.hear(json.dumps({"id": "session", "result": {"sessionId": "S", "models": {"currentModelId": "m"}}}).encode())
    (answer,) = stream.hear(told()).answers
    assert (answer.answer_id, answer.session, answer.agent, answer.model) == ("a1", "S", "", "gemini-2.5-pro")
    assert answer.tokens == Tokens(600, 400, 0, 0, 100)


def test_a_refusal_is_told_in_our_words_and_another_failure_in_its_own() -> None:
    def failed(text: str) -> str:
        content = [{"type": "content", "content": {"type": "text", "text": text}}]
        update = {"sessionUpdate": "tool_call_update", "toolCallId": "c", "status": "failed", "content": content}
        line = json.dumps({"method": "session/update", "params": {"sessionId": "S", "update": update}})
        return str(GeminiStream().hear(line.encode()).events[-1]["text"])

    assert failed('[{"received": "Watchfloor: rule one: not this", "code": "x"}]') == "Watchfloor: rule one: not this"
    assert failed("no such file") == "no such file" and failed("[]") == "[]"


def test_usage_that_no_model_gives_is_told_and_not_counted() -> None:
    heard = GeminiStream().hear(told(tokens={"input": -5, "output": 1}))
    assert heard.answers == [] and heard.events[0]["kind"] == "trouble"
