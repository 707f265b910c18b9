"""Claude Code's lines as events, usage and answers; every field may be missing, of another type, or hostile."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from console.domain.spend import Tokens
from console.sources.activity.program_stream import Heard
from console.sources.claude_code.stream import ClaudeStream

USAGE = {"input_tokens": 12, "cache_read_input_tokens": 4096, "cache_creation_input_tokens": 2048, "output_tokens": 1}
FULL = {**USAGE, "cache_creation": {"ephemeral_5m_input_tokens": 2048, "ephemeral_1h_input_tokens": 0}, "service_tier": "standard"}


def hear(stream: ClaudeStream, **record: Any) -> Heard:
    return stream.hear(json.dumps(record).encode())


def test_an_answer_is_told_block_by_block_and_its_last_usage_finds_its_id() -> None:
    stream = ClaudeStream()
    begun = hear(stream, type="system", subtype="init", session_id="s", model="m", claude_code_version="2.1.330")
    assert begun.events[0]["version"] == "2.1.330" and stream.session == "s"
    message = {"id": "msg_1", "model": "m", "usage": FULL}
    assert hear(stream, type="stream_event", event={"type": "message_start", "message": message}) == Heard()
    text = hear(stream, type="assistant", message={**message, "content": [{"type": "text", "text": "hi"}]})
    assert text.events == [{"kind": "message", "role": "assistant", "text": "hi", "parent": ""}]
    call = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}}
    called = hear(stream, type="assistant", message={**message, "content": [call]}, parent_tool_use_id="p")
    assert called.tool_calls == 1 and called.action == "Bash ls" and called.events[0]["parent"] == "p"
    (answer,) = called.answers
    assert answer.tokens == Tokens(12, 4096, 2048, 0, 1) and answer.tier == "" and answer.agent == "p"
    last = hear(stream, type="stream_event", event={"type": "message_delta", "usage": {"output_tokens": 77}})
    assert [(a.answer_id, a.tokens.output, a.tokens.cache_read) for a in last.answers] == [("msg_1", 77, 4096)]


def test_an_id_that_a_gateway_repeats_hides_no_answer() -> None:
    stream = ClaudeStream()
    message = {"id": "same", "model": "claude-sonnet-4-5", "usage": USAGE, "content": []}
    told = []
    for output in (5, 9):
        hear(stream, type="stream_event", event={"type": "message_start", "message": message})
        told += hear(stream, type="assistant", message=message).answers
        told += hear(stream, type="stream_event", event={"type": "message_delta", "usage": {"output_tokens": output}}).answers
    assert [(a.answer_id, a.tokens.output) for a in told] == [("same", 1), ("same", 5), ("same 2", 1), ("same 2", 9)]


def test_results_of_tools_the_end_of_a_turn_and_a_confirmation() -> None:
    stream = ClaudeStream()
    block = {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}
    (result,) = hear(stream, type="user", message={"content": [block | {"is_error": True}]}).events
    assert result["text"] == "a\nb" and result["error"]
    used = {"m": {"inputTokens": 1, "outputTokens": 2, "cacheReadInputTokens": 3, "cacheCreationInputTokens": 4}}
    over = hear(stream, type="result", result="All.", total_cost_usd=0.5, modelUsage=used, is_error=False)
    assert (over.total_usd, over.total_tokens, over.events[0]["ok"]) == (0.5, 10, True)
    for odd in (float("nan"), float("inf"), -1, True, "1", 1e12, None):
        assert hear(stream, type="result", total_cost_usd=odd).total_usd is None
    (event,) = hear(stream, type="control_response", response={"subtype": "error", "request_id": "r", "error": "no"}).events
    assert (event["id"], event["ok"], event["text"]) == ("r", False, "no")
    (started,) = hear(stream, type="system", subtype="task_started", task_id="x", tool_use_id="t", description="count").events
    assert (started["what"], started["text"], started["parent"]) == ("started", "count", "t")


def test_whatever_it_asks_for_is_denied() -> None:
    heard = hear(ClaudeStream(), type="control_request", request_id="r", request={"subtype": "can_use_tool", "tool_name": "Bash"})
    assert heard.reply[0]["response"]["response"]["behavior"] == "deny"
    heard = hear(ClaudeStream(), type="control_request", request_id="r", request={"subtype": "hook_callback"})
    assert heard.reply[0]["response"]["subtype"] == "error" and heard.events[0]["what"] == "hook_callback"


@pytest.mark.parametrize("odd", [-1, 1.5, "7", True, 10**12])
def test_usage_that_no_model_gives_is_told_and_not_counted(odd: object) -> None:
    message = {"id": "m", "model": "x", "usage": {**USAGE, "output_tokens": odd}, "content": []}
    heard = hear(ClaudeStream(), type="assistant", message=message)
    assert not heard.answers and "not counted" in heard.events[0]["text"]


def test_what_it_is_told() -> None:
    stream = ClaudeStream()
    (said,) = stream.message("hi")
    assert said["type"] == "user" and said["message"]["content"] == "hi" and stream.begin("hi") == [said]
    assert stream.interrupt("r")[0]["request"] == {"subtype": "interrupt"}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda x: (
        st.lists(x, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "type",
                    "message",
                    "content",
                    "usage",
                    "id",
                    "event",
                    "subtype",
                    "response",
                    "request",
                    "modelUsage",
                    "text",
                    "name",
                    "input",
                ]
            ),
            x,
            max_size=5,
        )
    ),
)
KINDS = st.sampled_from(["system", "assistant", "user", "result", "stream_event", "control_response", "control_request", "x"])


@given(
    KINDS,
    st.dictionaries(
        st.sampled_from(["message", "event", "subtype", "response", "request", "modelUsage", "request_id", "total_cost_usd"]),
        JSON,
        max_size=4,
    ),
)
@example("result", {"total_cost_usd": 10**400})
def test_no_line_breaks_it(kind: str, fields: dict[str, Any]) -> None:
    heard = ClaudeStream().hear(json.dumps({"type": kind, **fields}).encode())
    assert all(answer.tokens.is_sane() for answer in heard.answers)


def test_the_end_of_its_input_breaks_no_turn_off() -> None:
    stream = ClaudeStream()
    stream.begin("a prompt")
    assert not stream.is_busy()


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        (
            {"attempt": 3, "max_retries": 10, "retry_delay_ms": 2455, "error_status": 529},
            "its model did not answer: HTTP 529; try 3 of 10 in 2.5 s",
        ),
        ({"attempt": 1, "retry_delay_ms": "x", "error": "overloaded"}, "its model did not answer: overloaded; try 1"),
        ({"attempt": True, "error": None, "retry_delay_ms": 1e300}, "its model did not answer: unknown; try "),
    ],
)
def test_a_model_that_does_not_answer_is_said_in_words(fields: dict[str, Any], words: str) -> None:
    [event] = ClaudeStream().hear(json.dumps({"type": "system", "subtype": "api_retry", **fields}).encode()).events
    assert event == {"kind": "trouble", "text": words}
