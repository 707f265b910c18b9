"""Streams of programs that we started."""

from __future__ import annotations

from typing import Any

from console.domain.activity import Kind
from console.sources.activity.stream import entries_of_told


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
