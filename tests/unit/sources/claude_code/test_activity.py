"""What transcripts say that was done: the real program's, and what no program would write."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from console.domain.activity import Entry, Kind
from console.sources.claude_code.activity import ClaudeLines, transcript
from console.sources.kinds import VENDORS
from console.sources.spend.rates import RateBook

TREE = Path(__file__).parents[3] / "data" / "claude-code" / "projects-tree"
MAIN = next(TREE.rglob("ca*.jsonl"))


def read(lines: list[bytes], price: Any = lambda _answer: None) -> list[Entry]:
    reader = ClaudeLines(price)
    return [entry for line in lines for entry in reader.take(line)]


def said(**record: Any) -> list[Entry]:
    return read([json.dumps(record).encode()])


def test_the_real_programs_session_reads_as_what_it_did() -> None:
    found = read(MAIN.read_bytes().splitlines())
    by_kind = {kind: [e for e in found if e.kind is kind] for kind in Kind}
    assert [e.text for e in by_kind[Kind.MESSAGE] if e.who == "user"] == ["please grep TODO then count files"]
    calls = {e.pair: e for e in by_kind[Kind.TOOL_CALL]}
    assert calls["toolu_fake0001"].tool == "Bash" and calls["toolu_fake0001"].text.splitlines() == [
        "command: grep -n TODO a.txt",
        "description: Find TODO",
    ]
    results = {e.pair: e.text for e in by_kind[Kind.TOOL_RESULT]}
    assert results["toolu_fake0001"] == "1:TODO: x"
    verdicts = [e for e in by_kind[Kind.VERDICT] if e.pair == "toolu_fake0001"]
    assert [(e.verdict, e.text) for e in verdicts] == [("allow", "console policy"), ("allow", "decided by hook hook")]
    assert [(e.tool, e.ref) for e in by_kind[Kind.FILE]] == [("create", "/home/dev/proj/out.txt")]
    assert [(e.ref, e.text) for e in by_kind[Kind.SPAWN]] == [("a66a62f654c274416", "count files")]
    assert not by_kind[Kind.ERROR]
    assert {e.turn for e in by_kind[Kind.MESSAGE]} == {1}
    assert min(e.at for e in found) > 1.79e9 and len({e.source_id for e in found}) < len(found), "an answer's usage stands with each block"


def test_spend_of_each_answer_is_priced_and_adds_up_to_the_programs_own_sum() -> None:
    files = [MAIN, next(TREE.rglob("agent-*.jsonl"))]
    spends = {e.source_id: e for f in files for e in read(f.read_bytes().splitlines(), RateBook(VENDORS).price) if e.kind is Kind.SPEND}
    assert sum(e.cost_nano or 0 for e in spends.values()) == 70_698_600
    unpriced = read(MAIN.read_bytes().splitlines())
    assert all(e.text.endswith("unpriced") and e.cost_nano is None for e in unpriced if e.kind is Kind.SPEND)


def test_a_denied_call_an_error_a_thought_and_an_image() -> None:
    block = {"type": "tool_result", "tool_use_id": "t", "is_error": True, "content": [{"type": "image", "source": {"data": "AAAA"}}]}
    verdict, result = said(type="user", message={"content": [block]}, permissionDecision={"decision": "reject", "source": "user"})
    assert (verdict.kind, verdict.verdict, verdict.pair) == (Kind.VERDICT, "deny", "t")
    assert (result.kind, result.failed, result.text) == (Kind.TOOL_RESULT, True, "[image]")
    [thought] = said(type="assistant", message={"content": [{"type": "thinking", "thinking": "hm"}]})
    assert thought.kind is Kind.THINKING
    [error] = said(type="assistant", isApiErrorMessage=True, message={"content": [{"type": "text", "text": "API Error"}]})
    assert error.kind is Kind.ERROR
    hook = {"type": "hook_blocking_error", "toolUseID": "t", "hookName": "PreToolUse:Write", "stderr": "policy"}
    [blocked] = said(type="attachment", attachment=hook)
    assert (blocked.verdict, blocked.text, blocked.who) == ("deny", "policy", "hook PreToolUse:Write")


@pytest.mark.parametrize("line", [b"\xff\xfe\x00bin", b"[" * 100_000, b"7", b'"x"', b'{"type":', b"1" * 5000])
def test_what_is_no_record_is_said_not_passed_over(line: bytes) -> None:
    [entry] = read([line])
    assert entry.kind is Kind.ERROR and f"{len(line):,} bytes" in entry.text


@pytest.mark.parametrize(
    "record",
    [
        {"type": "user", "message": None},
        {"type": "user", "message": {"content": {"a": 1}}},
        {"type": "assistant", "message": {"content": [None, 7, {"type": "tool_use", "input": [[[1]]], "name": {}}]}},
        {"type": "attachment", "attachment": [1]},
        {"type": "system", "content": {"x": 1}, "level": 7},
        {"type": ["user"], "timestamp": {"a": 1}},
        {"type": "user", "timestamp": "9999-99-99", "message": {"content": "x" * 3_000_000}},
        {"type": "user", "toolUseResult": "text", "message": {"content": [{"type": "tool_result", "content": [["x"]]}]}},
    ],
)
def test_fields_of_any_shape_are_survived(record: dict[str, Any]) -> None:
    for entry in said(**record):
        assert len(entry.text) <= 1 << 20 and entry.at == 0.0


def test_nothing_a_record_claims_makes_it_anothers_and_a_second_with_its_id_is_another_entry() -> None:
    first, second = (
        json.dumps({"type": "user", "uuid": "same", "sessionId": "victim", "agentId": "victim", "message": {"content": text}}).encode()
        for text in ("harmless", "rm -rf")
    )
    found = read([first, second, first])
    assert len({e.source_id for e in found}) == 2 and not any("victim" in (e.ref, e.pair, e.who) for e in found)


def test_turns_go_on_from_read_to_read() -> None:
    first = ClaudeLines()
    prompt = json.dumps({"type": "user", "message": {"content": "go"}}).encode()
    first.take(prompt)
    second = ClaudeLines()
    second.resume(first.state())
    assert second.take(prompt)[0].turn == 2
    for broken in ("", "7", "{", '{"turn": "x"}', '{"turn": -4}'):
        other = ClaudeLines()
        other.resume(broken)
        assert other.turn == 0


def test_a_transcript_is_found_by_session_and_names_lead_nowhere_else(tmp_path: Path) -> None:
    folder = tmp_path / "projects"
    (folder / "-a" / "sess" / "subagents").mkdir(parents=True)
    main, sub = folder / "-a" / "sess.jsonl", folder / "-a" / "sess" / "subagents" / "agent-x.jsonl"
    main.write_text("")
    sub.write_text("")
    assert transcript([folder], "-a", "sess") == main == transcript([folder], "-moved", "sess")
    assert transcript([folder], "-moved", "sess", wide=False) is None
    assert transcript([folder], "-a", "sess", "x") == sub
    for name in ("../-a/sess", "", ".", "a/b", "a" * 99, "sess\0", "séss"):
        assert transcript([folder], "-a", name) is None and transcript([folder], "-a", "sess", name or "/") is None


def test_what_the_strict_reader_refuses_is_read_all_the_same() -> None:
    from console.sources.claude_code.activity import ClaudeLines

    for odd in (b'"\\ud800"', b"NaN", b"1e999"):
        [entry] = ClaudeLines().take(b'{"type": "user", "message": {"content": "hi"}, "odd": ' + odd + b"}")
        assert entry.text == "hi"
