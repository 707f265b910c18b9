"""OpenCode as a started program: a beginning in three steps, turns, interrupts, calls, usage told by our plug-in or by its own sums."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from console.domain.spend import Tokens
from console.sources.activity.program_stream import Heard
from console.sources.opencode.hook import ANSWER
from console.sources.opencode.stream import OpenCodeStream, settings

USED = {"total": 6233, "input": 12, "output": 77, "reasoning": 0, "cache": {"write": 2048, "read": 4096}}


def hear(stream: OpenCodeStream, **record: Any) -> Heard:
    return stream.hear(json.dumps(record).encode())


def update(stream: OpenCodeStream, kind: str, **more: Any) -> Heard:
    return hear(stream, method="session/update", params={"sessionId": "S", "update": {"sessionUpdate": kind, **more}})


def begun() -> tuple[OpenCodeStream, str]:
    """With the id of its first prompt."""
    stream = OpenCodeStream()
    assert stream.begin("first")[0]["method"] == "initialize" and stream.message("second") == []
    (new,) = hear(stream, id="begin", result={"agentInfo": {"version": "1.18.33"}}).reply
    assert (new["method"], new["jsonrpc"]) == ("session/new", "2.0")
    heard = hear(stream, id="session", result={"sessionId": "S", "configOptions": [{"id": "model", "currentValue": "a/m"}]})
    assert heard.events == [{"kind": "session", "program": "opencode", "session": "S", "model": "a/m", "version": "1.18.33"}]
    (prompt,) = heard.reply
    assert prompt["params"] == {"sessionId": "S", "prompt": [{"type": "text", "text": "first\n\nsecond"}]}
    return stream, prompt["id"]


def test_it_is_busy_from_what_it_is_told_until_each_prompt_is_answered() -> None:
    stream, first = begun()
    (second,) = stream.message("in the middle")
    assert stream.is_busy()
    over = hear(stream, id=first, result={"stopReason": "end_turn"})
    assert over.events[-1] == {"kind": "turn", "ok": True, "text": "end_turn", "total_usd": None} and over.action == ""
    assert stream.is_busy()
    assert hear(stream, id=second["id"], result={"stopReason": "end_turn"}).action == "waits for a message" and not stream.is_busy()
    again = OpenCodeStream()  # after a restart it knows of no prompt
    update(again, "agent_message_chunk", messageId="m", content={"type": "text", "text": "x"})
    assert again.is_busy()
    hear(again, id="wf-other", result={"stopReason": "end_turn"})
    assert not again.is_busy()


def test_an_interrupt_is_confirmed_by_the_end_of_the_turn_and_refused_without_one() -> None:
    stream, first = begun()
    assert stream.interrupt("r") == [{"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": "S"}}]
    over = hear(stream, id=first, result={"stopReason": "cancelled"})
    assert over.events[0] == {"kind": "control", "id": "r", "ok": True, "text": ""} and not over.events[1]["ok"]
    assert stream.interrupt("s")[0]["id"] == "s"
    refused = hear(stream, id="s", error={"code": -32601, "message": "no"})
    assert refused.events == [{"kind": "control", "id": "s", "ok": False, "text": "no"}]


def test_what_does_not_begin_or_asks_is_told_and_nothing_is_granted() -> None:
    assert "does not begin" in hear(OpenCodeStream(), id="session", error={"message": "x"}).events[0]["text"]
    stream, first = begun()
    asked = hear(stream, id=0, method="session/request_permission", params={"options": [{"optionId": "once"}]})
    assert asked.events[0]["kind"] == "asked" and asked.reply[0]["id"] == 0 and "error" in asked.reply[0]
    broken = hear(stream, id=first, error={"message": "no model"})
    assert (broken.events[-1]["ok"], broken.events[-1]["text"]) == (False, "no model")


def test_messages_come_in_pieces_and_only_calls_count() -> None:
    stream, _ = begun()
    for text in ("I ", "look"):
        assert update(stream, "agent_message_chunk", messageId="m", content={"type": "text", "text": text}) == Heard()
    first = update(stream, "tool_call", toolCallId="c", title="bash", status="pending", rawInput={"cwd": "."})
    assert [one["text"] for one in first.events] == ["I look"] and not first.tool_calls
    going = update(stream, "tool_call_update", toolCallId="c", status="in_progress", title="ls", rawInput={"command": "ls"})
    assert (going.tool_calls, going.action, going.events[0]["tool"]) == (1, 'bash {"command": "ls"}', "bash")
    assert update(stream, "tool_call_update", toolCallId="c", status="in_progress", rawInput={"command": "ls"}) == Heard()
    blocks = [{"type": "content", "content": {"type": "text", "text": "Watchfloor: no"}}]
    (failed,) = update(stream, "tool_call_update", toolCallId="c", status="failed", content=blocks).events
    assert failed["error"] and failed["text"] == "Watchfloor: no"


def told(stream: OpenCodeStream, name: str, **more: Any) -> Heard:
    said = {"id": name, "sessionID": "S", "providerID": "a", "modelID": "m", "cost": 0.01, "tokens": USED, "time": {"created": 1000}}
    return hear(stream, jsonrpc="2.0", method=ANSWER, params=said | more)


def test_our_plug_in_tells_each_answer_and_then_the_programs_own_sums_add_nothing() -> None:
    stream, first = begun()
    assert told(stream, "m1", tokens={"input": 0, "output": 0}) == Heard()
    (answer,) = told(stream, "m1").answers
    assert (answer.answer_id, answer.model, answer.agent, answer.at) == ("m1", "a/m", "", 1.0)
    assert answer.tokens == Tokens(12, 4096, 2048, 0, 77)
    assert [one.agent for one in told(stream, "m2", sessionID="below").answers] == ["below"]
    assert "not counted" in told(stream, "m3", tokens={"input": -5}).events[0]["text"]
    update(stream, "usage_update", cost={"amount": 0.5, "currency": "USD"})
    over = hear(stream, id=first, result={"stopReason": "end_turn", "usage": {"totalTokens": 9}})
    assert over.total_usd is None and over.total_tokens == 0 and over.events[-1]["total_usd"] == 0.5


def test_without_our_plug_in_its_sums_count() -> None:
    stream, first = begun()
    update(stream, "usage_update", cost={"amount": 0.5, "currency": "USD"})
    over = hear(stream, id=first, result={"stopReason": "end_turn", "usage": {"totalTokens": 9}})
    assert (over.total_usd, over.total_tokens) == (0.5, 9)
    run = OpenCodeStream()
    for amount in (0.01, 0.02):
        step = hear(run, type="step_finish", sessionID="S", part={"reason": "stop", "tokens": USED, "cost": 0.01})
        assert step.total_usd == amount
    assert step.total_tokens == 2 * 6233 and step.events[-1]["kind"] == "turn"


def test_one_prompt_is_told_in_the_same_form() -> None:
    run = OpenCodeStream()
    said = hear(run, type="text", sessionID="S", part={"text": "Hello"})
    assert [one["kind"] for one in said.events] == ["session", "message"]
    state = {"status": "error", "input": {"command": "ls"}, "error": "Watchfloor: no"}
    call = hear(run, type="tool_use", sessionID="S", part={"tool": "bash", "callID": "c", "state": state})
    assert call.tool_calls == 1 and call.events[1] == {
        "kind": "tool_result",
        "id": "c",
        "text": "Watchfloor: no",
        "error": True,
        "parent": "",
    }
    assert hear(run, type="error", error={"name": "x"}).events[0]["kind"] == "trouble"


def test_where_its_calls_are_judged_it_allows_none_of_them_itself() -> None:
    assert json.loads(settings("a/m", "", judged=True))["permission"] == {"*": "ask"}
    said = json.loads(settings("", 'http://x/"', judged=False))
    assert said["permission"] == {"*": "allow"} and "model" not in said
    assert said["provider"] == {"openai": {"options": {"baseURL": 'http://x/"'}}}


WORDS = ["update", "sessionUpdate", "toolCallId", "content", "text", "cost", "amount", "usage", "stopReason", "tokens", "time", "id"]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(["tool_call", "usage_update", "failed"]),
    lambda x: st.lists(x, max_size=3) | st.dictionaries(st.sampled_from(WORDS), x, max_size=5),
)
METHODS = st.sampled_from([ANSWER, "session/update", "x"])


@given(st.fixed_dictionaries({}, optional={"id": JSON, "method": METHODS, "params": JSON, "result": JSON, "error": JSON, "part": JSON}))
def test_no_line_breaks_it(record: dict[str, Any]) -> None:
    for more in ({}, {"type": "step_finish"}, {"type": "tool_use"}):
        heard = OpenCodeStream().hear(json.dumps(record | more).encode())
        assert all(answer.tokens.is_sane() for answer in heard.answers)
