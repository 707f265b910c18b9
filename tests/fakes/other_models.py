"""What the model on loopback says in OpenAI's Chat Completions and in Gemini's interface; ``model_server`` has the rest."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.fakes.model_server import Reply, Used

NewId = Callable[[str], str]


def chat_problem(messages: list[dict[str, Any]]) -> str:
    """Why the vendor would refuse this conversation, or empty: every call is answered, and nothing else is."""
    calls = {call.get("id") for m in messages if m.get("role") == "assistant" for call in m.get("tool_calls") or ()}
    results = {m.get("tool_call_id") for m in messages if m.get("role") == "tool"}
    return "" if calls == results else f"calls {sorted(map(str, calls))} have results {sorted(map(str, results))}"


def chat_events(model: str, reply: Reply, new_id: NewId) -> Iterator[dict[str, Any]]:
    """The chunks of a streamed answer; the last one has what was used."""
    made = {"id": new_id("chatcmpl"), "object": "chat.completion.chunk", "created": 1_700_000_000, "model": model}
    calls = [
        {"index": n, "id": new_id("call"), "type": "function", "function": {"name": c.name, "arguments": json.dumps(c.input)}}
        for n, c in enumerate(reply.calls)
    ]
    delta = {"role": "assistant", "content": reply.text or None} | ({"tool_calls": calls} if calls else {})
    yield {**made, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    yield {**made, "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls" if calls else "stop"}]}
    yield {**made, "choices": [], "usage": _chat_usage(reply.used)}


def chat_whole(model: str, reply: Reply, new_id: NewId) -> dict[str, Any]:
    """The same in one piece."""
    first, last, used = chat_events(model, reply, new_id)
    message, end = first["choices"][0]["delta"], last["choices"][0]["finish_reason"]
    choice = {"index": 0, "message": message, "finish_reason": end}
    return {**first, "object": "chat.completion", "choices": [choice], "usage": used["usage"]}


def _chat_usage(used: Used) -> dict[str, Any]:
    total = used.input + used.cache_read
    details = {"prompt_tokens_details": {"cached_tokens": used.cache_read}, "completion_tokens_details": {"reasoning_tokens": 0}}
    return {"prompt_tokens": total, "completion_tokens": used.output, "total_tokens": total + used.output, **details}


def gemini_problem(contents: list[dict[str, Any]]) -> str:
    """Why the vendor would refuse this conversation, or empty: as many results as calls."""
    calls, results = (
        sum(1 for c in contents for part in c.get("parts") or () if name in part) for name in ("functionCall", "functionResponse")
    )
    return "" if calls == results else f"{calls} calls have {results} results"


def gemini_whole(model: str, reply: Reply, new_id: NewId) -> dict[str, Any]:
    """An answer in one piece, which is the one event of a stream too."""
    parts: list[dict[str, Any]] = [{"text": reply.text}] if reply.text else []
    parts += [{"functionCall": {"id": new_id("call"), "name": c.name, "args": c.input}} for c in reply.calls]
    used = reply.used
    total = used.input + used.cache_read
    counts = {"promptTokenCount": total, "cachedContentTokenCount": used.cache_read, "candidatesTokenCount": used.output}
    return {
        "candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}],
        "usageMetadata": {**counts, "totalTokenCount": total + used.output},
        "modelVersion": model,
        "responseId": new_id("resp"),
    }
