"""Codex's app-server: a beginning in three steps, turns, interrupts; sums of tokens as answers; and ``exec --json``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from console.domain.spend import Tokens
from console.sources.activity.program_stream import Heard
from console.sources.codex.stream import CodexStream, provider

SAMPLE = Path(__file__).parents[3] / "data" / "codex" / "exec-json.jsonl"


def hear(stream: CodexStream, **record: Any) -> Heard:
    return stream.hear(json.dumps(record).encode())


def begun() -> CodexStream:
    stream = CodexStream()
    assert stream.begin("first")[0]["method"] == "initialize"
    reply = hear(stream, id="begin", result={}).reply
    assert [r["method"] for r in reply] == ["initialized", "thread/start"]
    heard = hear(stream, id="thread", result={"thread": {"id": "T", "cliVersion": "0.1"}, "model": "m"})
    assert heard.events[0]["session"] == "T" and heard.reply[0]["params"]["input"][0]["text"] == "first"
    return stream


def note(stream: CodexStream, method: str, **params: Any) -> Heard:
    return hear(stream, method=method, params={"threadId": "T", **params})


def test_a_message_before_the_thread_waits_one_in_a_turn_steers_it_another_starts_one() -> None:
    stream = CodexStream()
    stream.begin("first")
    assert stream.message("second") == []
    reply = hear(stream, id="thread", result={"thread": {"id": "T"}}).reply
    assert reply[0]["params"]["input"][0]["text"] == "first\n\nsecond"
    assert stream.message("x")[0]["method"] == "turn/start"
    note(stream, "turn/started", turn={"id": "U"})
    assert stream.message("x")[0]["params"]["expectedTurnId"] == "U"
    assert stream.interrupt("r")[0]["params"] == {"threadId": "T", "turnId": "U"}
    over = note(stream, "turn/completed", turn={"id": "U", "status": "interrupted"})
    assert not over.events[0]["ok"] and stream.message("x")[0]["method"] == "turn/start"


def test_what_it_answers_to_us_and_what_it_asks() -> None:
    stream = begun()
    assert hear(stream, id="r", result={}).events == [{"kind": "control", "id": "r", "ok": True, "text": ""}]
    assert [e["kind"] for e in hear(stream, id="r", error={"message": "no"}).events] == ["control", "trouble"]
    asked = hear(stream, id=7, method="item/commandExecution/requestApproval", params={"command": "rm"})
    assert asked.reply[0]["id"] == 7 and "error" in asked.reply[0] and asked.events[0]["kind"] == "asked"
    assert "does not begin" in hear(CodexStream(), id="thread", error={"message": "x"}).events[0]["text"]


def test_items_are_told_and_only_calls_count() -> None:
    stream = begun()
    command = {"type": "commandExecution", "id": "c", "command": "ls", "aggregatedOutput": "a\n", "status": "completed"}
    started = note(stream, "item/started", item=command)
    assert (started.tool_calls, started.action, started.events[0]["tool"]) == (1, "shell ls", "shell")
    done = note(stream, "item/completed", item=command)
    assert done.events[0]["text"] == "a\n" and not done.events[0]["error"] and done.tool_calls == 0
    assert note(stream, "item/started", item={"type": "agentMessage", "text": "x"}) == Heard()
    assert note(stream, "item/completed", item={"type": "agentMessage", "text": "x"}).events[0]["text"] == "x"
    assert note(stream, "error", error={"message": "slow"}, willRetry=True).events[0]["text"] == "slow (it tries again)"


def used(stream: CodexStream, thread: str, total: int, cached: int, output: int) -> Heard:
    sums = {"inputTokens": total, "cachedInputTokens": cached, "outputTokens": output}
    return hear(stream, method="thread/tokenUsage/updated", params={"threadId": thread, "tokenUsage": {"total": sums}})


def test_what_a_sum_grew_by_is_one_answer_and_one_that_shrinks_takes_nothing_back() -> None:
    stream = begun()
    assert [a.tokens for a in used(stream, "T", 5000, 4096, 120).answers] == [Tokens(904, 4096, 0, 0, 120)]
    assert used(stream, "T", 5000, 4096, 120) == Heard()
    assert used(stream, "T", 100, 50, 1) == Heard()
    assert [a.tokens for a in used(stream, "T", 6000, 4096, 130).answers] == [Tokens(1000, 0, 0, 0, 10)]
    (sub,) = used(stream, "S", 10, 0, 1).answers
    assert (sub.agent, sub.model) == ("S", "m")
    assert "not counted" in used(stream, "T", 10, 50, 1).events[0]["text"]


def test_one_prompt_as_the_real_program_answers_it() -> None:
    stream, heard = CodexStream(), []
    for line in SAMPLE.read_bytes().splitlines():
        if line.strip():
            heard.append(stream.hear(line))
    assert [a.tokens for h in heard for a in h.answers] == [Tokens(1808, 8192, 0, 0, 240)]
    kinds = ["session", "trouble", "tool_call", "tool_result", "message", "turn"]
    assert [e["kind"] for h in heard for e in h.events] == kinds


def test_another_model_api_is_named_in_values_that_cannot_break_out() -> None:
    words = provider('http://x/"; evil = "1')
    assert 'model_providers.watchfloor.base_url="http://x/\\"; evil = \\"1"' in words


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda x: (
        st.lists(x, max_size=3)
        | st.dictionaries(
            st.sampled_from(["item", "type", "id", "thread", "turn", "tokenUsage", "total", "inputTokens", "status", "error", "text"]),
            x,
            max_size=5,
        )
    ),
)


@given(st.dictionaries(st.sampled_from(["id", "method", "params", "result", "error", "type", "item", "usage"]), JSON, max_size=5))
def test_no_line_breaks_it(record: dict[str, Any]) -> None:
    heard = CodexStream().hear(json.dumps(record).encode())
    assert all(answer.tokens.is_sane() for answer in heard.answers)


def test_it_is_busy_from_what_it_is_told_until_its_turn_is_over() -> None:
    stream = CodexStream()
    assert not stream.is_busy()
    stream.begin("a prompt")
    assert stream.is_busy(), "its prompt waits for its thread"
    hear(stream, id="begin", result={})
    told = hear(stream, id="thread", result={"thread": {"id": "t"}}).reply
    assert stream.is_busy(), "its turn was asked for"
    hear(stream, method="turn/started", params={"threadId": "t", "turn": {"id": "u"}})
    hear(stream, id=told[0]["id"], result={})
    assert stream.is_busy()
    hear(stream, method="turn/completed", params={"threadId": "t", "turn": {"id": "u", "status": "completed"}})
    assert not stream.is_busy()
