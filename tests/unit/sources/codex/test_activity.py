"""What rollouts say that was done."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from console.domain.activity import Entry, Kind
from console.sources.codex.activity import CodexLines, rollout
from console.sources.kinds import VENDORS
from console.sources.spend.rates import RateBook

ROLLOUT = next((Path(__file__).parents[3] / "data" / "codex").rglob("rollout*.jsonl"))


def read(lines: list[bytes], reader: CodexLines | None = None) -> list[Entry]:
    reader = reader or CodexLines()
    return [entry for line in lines for entry in reader.take(line)]


def item(**payload: Any) -> bytes:
    return json.dumps({"type": "response_item", "payload": payload}).encode()


def test_the_real_programs_rollout_reads_as_what_it_did() -> None:
    found = read(ROLLOUT.read_bytes().splitlines(), CodexLines(RateBook(VENDORS).price))
    messages = [(e.who, e.text) for e in found if e.kind is Kind.MESSAGE]
    assert messages == [("user", "find TODO"), ("assistant", "Found one TODO.")]
    [call] = [e for e in found if e.kind is Kind.TOOL_CALL]
    [result] = [e for e in found if e.kind is Kind.TOOL_RESULT]
    assert (call.tool, call.text) == ("exec_command", "cmd: grep -n TODO a.txt") and call.pair == result.pair == "call_1"
    assert "1:TODO x" in result.text and not result.failed
    assert [e.cost_nano for e in found if e.kind is Kind.SPEND] == [2_842_000, 2_842_000]
    assert not [e for e in found if e.kind is Kind.ERROR] and len({e.source_id for e in found}) == len(found)


def test_files_of_a_patch_a_failure_and_an_abort() -> None:
    patch = "*** Begin Patch\n*** Add File: a.py\n+x\n*** Update File: b.py\n*** Delete File: c.py\n*** End Patch"
    for given in (patch, json.dumps({"input": patch})):
        found = read([item(type="custom_tool_call", name="apply_patch", call_id="p", input=given)])
        assert [(e.tool, e.ref) for e in found if e.kind is Kind.FILE] == [("create", "a.py"), ("edit", "b.py"), ("delete", "c.py")]
    [failed] = read([item(type="function_call_output", call_id="p", output="Process exited with code 3\nno")])
    assert failed.failed
    [aborted] = read([json.dumps({"type": "event_msg", "payload": {"type": "turn_aborted", "reason": "interrupted"}}).encode()])
    assert aborted.kind is Kind.ERROR and aborted.text == "turn_aborted: interrupted"


def test_the_copy_of_its_parents_lines_is_not_a_sub_agents_doing() -> None:
    born = "2026-11-21T20:33:10.000Z"
    meta = {"id": "11111111-1", "session_id": "r", "timestamp": born, "source": {"subagent": {"thread_spawn": {}}}}
    lines = [
        {"timestamp": born, "type": "session_meta", "payload": meta},
        {"type": "response_item", "payload": {"type": "message", "role": "user", "content": "the parent's"}},
        {"timestamp": "2026-11-21T20:33:11.000Z", "type": "turn_context", "payload": {"model": "m"}},
        {"type": "response_item", "payload": {"type": "message", "role": "user", "content": "its own"}},
    ]
    raw = [json.dumps(line).encode() for line in lines]
    assert [e.text for e in read(raw)] == ["its own"]
    first = CodexLines()
    read(raw[:3], first)
    second = CodexLines()
    second.resume(first.state())
    assert [e.text for e in read(raw[3:], second)] == ["its own"]


def test_any_shape_is_survived() -> None:
    shapes: list[Any] = [None, 7, [], {}, {"content": [[1]]}, "x", {"type": ["message"]}]
    for kind in ("message", "reasoning", "function_call", "function_call_output", "custom_tool_call"):
        for shape in shapes:
            read([item(type=kind, content=shape, output=shape, arguments=shape, input=shape, summary=shape, call_id=shape)])
    for shape in shapes:
        read(
            [json.dumps({"type": "event_msg", "payload": shape}).encode(), json.dumps({"type": "response_item", "payload": shape}).encode()]
        )
    [odd] = read([b"[" * 100_000])
    assert odd.kind is Kind.ERROR


def test_a_rollout_is_found_by_its_thread_and_by_nothing_else(tmp_path: Path) -> None:
    day = tmp_path / "2026" / "11" / "21"
    day.mkdir(parents=True)
    thread = "01a1ffcf-dfdd-77a3-ace2-eaa2ca9f7954"
    file = day / f"rollout-2026-11-21T20-33-01-{thread}.jsonl"
    file.write_text("")
    assert rollout([tmp_path], thread) == file
    for name in ("", "*", "../x", "01a1ffcf-dfdd", "[a-z]*"):
        assert rollout([tmp_path], name) is None
