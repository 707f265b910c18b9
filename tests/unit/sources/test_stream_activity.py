"""Streams of programs that we started."""

from __future__ import annotations

from typing import Any

from console.domain.activity import Kind
from console.sources.stream_activity import entries_of_stream, entries_of_told


def test_claudes_messages_calls_results_and_end() -> None:
    usage = {"input_tokens": 10, "output_tokens": 5}
    content = [{"type": "text", "text": "I look."}, {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}}]
    events: list[dict[str, Any]] = [
        {"type": "system", "subtype": "init", "session_id": "s", "model": "m"},
        {"type": "assistant", "message": {"id": "m1", "model": "m", "content": content, "usage": usage}},
        {"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": "t1", "content": "a.txt"}]}},
        {"type": "stream_event", "event": {}},
        {"type": "result", "is_error": False, "total_cost_usd": 0.0706986, "permission_denials": []},
    ]
    found = [entry for number, event in enumerate(events) for entry in entries_of_stream(event, number, 7.0)]
    assert [e.kind for e in found] == [Kind.NOTE, Kind.MESSAGE, Kind.TOOL_CALL, Kind.SPEND, Kind.TOOL_RESULT, Kind.NOTE]
    assert found[2].pair == found[4].pair == "t1" and found[3].tokens == 15 and "$0.0707" in found[5].text
    assert {e.at for e in found} == {7.0} and len({e.source_id for e in found}) == len(found)
    again = entries_of_stream(events[1], 99)
    assert again[0].source_id != found[1].source_id, "two events that are alike are two"
    assert again[2].source_id == found[3].source_id, "an answer counts once"


def test_codex_commands_messages_and_what_a_turn_used() -> None:
    events: list[dict[str, Any]] = [
        {"type": "item.started", "item": {"id": "i", "type": "command_execution", "command": "grep x"}},
        {"type": "item.completed", "item": {"id": "i", "type": "command_execution", "aggregated_output": "1:x", "exit_code": 1}},
        {"type": "item.completed", "item": {"id": "j", "type": "agent_message", "text": "Found."}},
        {"type": "item.completed", "item": {"id": "k", "type": "file_change", "changes": [{"path": "a", "kind": "add"}, 7]}},
        {"type": "turn.completed", "usage": {"input_tokens": 100, "cached_input_tokens": 60, "output_tokens": 4}},
        {"type": "turn.failed", "error": {"message": "no"}},
    ]
    found = [entry for number, event in enumerate(events) for entry in entries_of_stream(event, number)]
    kinds = [e.kind for e in found]
    assert kinds == [Kind.TOOL_CALL, Kind.TOOL_RESULT, Kind.MESSAGE, Kind.FILE, Kind.FILE, Kind.SPEND, Kind.ERROR]
    assert found[0].text == "command: grep x" and found[1].failed and found[3].ref == "a" and found[5].tokens == 104


def test_any_shape_is_survived() -> None:
    shapes: list[Any] = [None, 7, [], {}, "x", {"type": 7}]
    for kind in ("result", "control_request", "item.completed", "turn.completed", "assistant", "user", "error", 7, None):
        for shape in shapes:
            event = {"type": kind, "item": shape, "usage": shape, "message": shape, "request": shape, "total_cost_usd": shape}
            entries_of_stream(event)
    entries_of_stream({"type": "result", "total_cost_usd": float("nan")})
    nested: dict[str, Any] = {}
    for _ in range(100_000):
        nested = {"a": nested}
    [odd] = entries_of_stream({"type": "user", "x": nested})
    assert odd.kind is Kind.ERROR
    while nested:
        nested = nested["a"]


def test_events_as_they_are_told_name_themselves_by_their_place() -> None:
    events: list[dict[str, Any]] = [
        {"kind": "session", "model": "m", "session": "s"},
        {"kind": "message", "role": "assistant", "text": "hi"},
        {"kind": "tool_call", "id": "t", "tool": "Bash", "arguments": {"command": "ls"}, "parent": "p"},
        {"kind": "tool_result", "id": "t", "text": "no", "error": True},
        {"kind": "usage", "answer": "m1", "model": "m", "tokens": 9, "cost_usd": 0.5},
        {"kind": "turn", "ok": False, "text": "over"},
        {"kind": "asked", "id": "t", "what": "Bash", "text": "ls"},
        {"kind": "output", "text": "words"},
        {"kind": "trouble", "text": "ours"},
    ]
    told = [entries_of_told(event | {"at": 5.0, "offset": 7, "n": n}) for n, event in enumerate(events)]
    found = [entry for entries in told for entry in entries]
    want = [Kind.NOTE, Kind.MESSAGE, Kind.TOOL_CALL, Kind.TOOL_RESULT, Kind.SPEND, Kind.ERROR, Kind.VERDICT, Kind.NOTE, Kind.ERROR]
    assert [e.kind for e in found] == want and {e.at for e in found} == {5.0}
    assert found[2].pair == found[3].pair == "t" and found[2].text == "command: ls" and "sub-agent" in found[2].who and found[3].failed
    assert (found[4].tokens, found[4].cost_nano) == (9, 500_000_000)
    assert len({e.source_id for e in found}) == len(found) and entries_of_told(events[1] | {"at": 6.0, "offset": 7, "n": 1}) != []
    assert found[1].source_id == "out:7.1.0"
    shapes: list[Any] = [None, 7, [], {}, "x", float("nan")]
    for event in events:
        for shape in shapes:
            entries_of_told(dict.fromkeys(event, shape) | {"kind": event["kind"], "at": shape, "offset": shape, "n": shape})
