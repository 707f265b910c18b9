"""A scripted model on loopback, strict about what it is asked: Anthropic Messages, OpenAI Responses and Chat Completions, Gemini.

``with ModelServer(Scene("MAIN", Reply(calls=(Call("Bash", {...}),)), Reply("done"))) as model: model.url``. A conversation is told by the
word of its scene in the first thing a person, or a parent agent, said in it; how far it is, by the answers that it holds already. What no
scene covers, and every request that a real vendor would refuse, is answered 400 and kept in ``problems``: a test ends with
``model.check()``. Requests without tools (titles, summaries) are asides: answered briefly, kept in ``asides``, and they cost nothing.
"""

from __future__ import annotations

import ctypes
import json
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from console.egress.children import readable
from tests.fakes.other_models import chat_events, chat_problem, chat_whole, gemini_problem, gemini_whole

MAX_BODY = 32 << 20
ASIDE = "An aside."


@dataclass(frozen=True)
class Call:
    """The model calls a tool."""

    name: str
    input: dict[str, Any]
    namespace: str = ""
    """Of a tool that is offered in one (Responses)."""


@dataclass(frozen=True)
class Used:
    """What the model says it used. Responses: ``input`` and ``cache_read`` are added up there, as that interface counts."""

    input: int = 12
    output: int = 77
    cache_read: int = 4096
    cache_write: int = 2048
    early_output: int = 1
    """What an Anthropic stream names at its start, before it is known."""


@dataclass(frozen=True)
class Reply:
    """One answer of the model: words, then calls; or an error. ``after``: it is held back until this is set."""

    text: str = ""
    calls: tuple[Call, ...] = ()
    used: Used = Used()
    delay_s: float = 0.0
    status: int = 200
    after: threading.Event | None = None
    chunk_s: float = 0.0
    """Pause between the words of a stream."""


@dataclass(frozen=True)
class Asked:
    """One request that was answered by a scene."""

    word: str
    turn: int
    model: str
    headers: dict[str, str]
    body: dict[str, Any]


class Scene:
    """The answers of one conversation, in order; ``forever``: the last one again and again; ``bare``: of a program that offers no tools."""

    def __init__(self, word: str, *replies: Reply, forever: bool = False, bare: bool = False) -> None:
        self.word, self.replies, self.forever, self.bare = word, replies, forever, bare

    def reply(self, turn: int) -> Reply | None:
        if turn < len(self.replies):
            return self.replies[turn]
        return self.replies[-1] if self.forever else None


class _Refused(Exception):
    """What a vendor would answer 400."""


@dataclass
class _Kept:
    asked: list[Asked] = field(default_factory=list)
    asides: list[dict[str, Any]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    counted: int = 0


class ModelServer:
    """Listens on 127.0.0.1, on a port of the kernel's choice, for as long as the ``with`` lasts."""

    def __init__(self, *scenes: Scene, host: str = "127.0.0.1", netns: Path | None = None) -> None:
        """``netns``: the network namespace it listens in; None: this one."""
        self.scenes = scenes
        self._kept = _Kept()
        self._lock = threading.Lock()
        self._ids = 0
        self.ending = threading.Event()
        owner = self

        class Handler(_Handler):
            server_of = owner

        self._http = _in_namespace(netns, lambda: ThreadingHTTPServer((host, 0), Handler))
        self._http.daemon_threads = False
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.05}, name="model")

    @property
    def url(self) -> str:
        """Without a path: ANTHROPIC_BASE_URL takes it as it is, OpenAI's base is this and ``/v1``."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def port(self) -> int:
        return int(self._http.server_address[1])

    @property
    def asked(self) -> list[Asked]:
        with self._lock:
            return list(self._kept.asked)

    @property
    def asides(self) -> list[dict[str, Any]]:
        with self._lock:
            return list(self._kept.asides)

    @property
    def problems(self) -> list[str]:
        with self._lock:
            return list(self._kept.problems)

    def check(self) -> None:
        """Nobody asked anything that a real model would have refused."""
        assert not self.problems, self.problems

    def __enter__(self) -> ModelServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ending.set()
        self._http.shutdown()
        self._http.server_close()  # waits for the answers under way, which see ``ending``
        self._thread.join()

    # --- judging

    def new_id(self, kind: str) -> str:
        with self._lock:
            self._ids += 1
            return f"{kind}_fake{self._ids:06d}"

    def refuse(self, words: str) -> None:
        with self._lock:
            self._kept.problems.append(words[:2000])

    def count(self) -> None:
        with self._lock:
            self._kept.counted += 1

    def choose(self, first: str, turn: int, body: dict[str, Any], headers: dict[str, str]) -> Reply:
        """The scene's next answer. ``first``: what opened the conversation."""
        scenes = [scene for scene in self.scenes if body.get("tools") or scene.bare]
        if not scenes:
            with self._lock:
                self._kept.asides.append(body)
            return Reply(ASIDE, used=Used(0, 0, 0, 0, 0))
        for scene in scenes:
            if scene.word in first:
                reply = scene.reply(turn)
                if reply is None:
                    raise _Refused(f"scene {scene.word} has no answer {turn}")
                with self._lock:
                    self._kept.asked.append(Asked(scene.word, turn, str(body["model"]), headers, body))
                return reply
        raise _Refused(f"no scene for a conversation that begins {first[:300]!r}")


def _in_namespace(netns: Path | None, make: Callable[[], ThreadingHTTPServer]) -> ThreadingHTTPServer:
    """A socket belongs to the namespace of the thread that makes it (setns(2)), whoever uses it later."""
    if netns is None:
        return make()
    made: list[ThreadingHTTPServer] = []

    def enter() -> None:
        with netns.open("rb") as file:
            assert ctypes.CDLL(None).setns(file.fileno(), 0x40000000) == 0
        made.append(make())

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    return made[0]


class _Handler(BaseHTTPRequestHandler):
    server_of: ModelServer
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:
        """Silence."""

    def do_HEAD(self) -> None:
        self._whole(200, {})

    def do_GET(self) -> None:
        # A vendor's own address is asked for what is kept of an organisation, and for a web socket; there is neither here.
        if not self.path.startswith("/api/claude_code/") and self.headers.get("Upgrade") != "websocket":
            self.server_of.refuse(f"GET {self.path}")
        self._whole(404, _error("not_found_error", "there is no such page"))

    def do_POST(self) -> None:
        try:
            body = self._body()
            path = self.path.partition("?")[0]
            routes: dict[str, Callable[[dict[str, Any]], None]] = {
                "/v1/messages": self._messages,
                "/v1/messages/count_tokens": self._count,
                "/v1/responses": self._responses,
                "/v1/chat/completions": self._chat,
            }
            if path.startswith("/v1beta/models/"):
                name, _, verb = path.removeprefix("/v1beta/models/").partition(":")
                self._gemini(name, verb, body)
                return
            if path not in routes:
                raise _Refused(f"POST {self.path}")
            routes[path](body)
        except _Refused as error:
            self.server_of.refuse(str(error))
            self._whole(400, _error("invalid_request_error", str(error)))
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True  # whoever asked was stopped in the middle, which is what some tests are about

    def _body(self) -> dict[str, Any]:
        length = self.headers.get("content-length", "")
        _need(length.isdigit() and int(length) <= MAX_BODY, f"content-length is {length!r}")
        _need("json" in self.headers.get("content-type", ""), "the body is not JSON by its type")
        try:
            body = json.loads(self.rfile.read(int(length)))
        except ValueError as error:
            raise _Refused(f"the body is not JSON: {error}") from error
        _need(isinstance(body, dict), "the body is no object")
        assert isinstance(body, dict)
        return body

    def _named(self) -> dict[str, str]:
        return {name.lower(): value for name, value in self.headers.items()}

    # --- Anthropic

    def _count(self, body: dict[str, Any]) -> None:
        _check_messages(body)
        self.server_of.count()
        self._whole(200, {"input_tokens": 12})

    def _messages(self, body: dict[str, Any]) -> None:
        headers = self._named()
        _need(bool(headers.get("x-api-key") or headers.get("authorization")), "no key")
        _need(bool(headers.get("anthropic-version")), "no anthropic-version")
        _need(isinstance(body.get("max_tokens"), int), "no max_tokens")
        messages = _check_messages(body)
        turn = sum(1 for m in messages if m["role"] == "assistant")
        # A program that offers no tools may show its model examples first, as messages.
        opened = messages[:1] if body.get("tools") else messages
        reply = self.server_of.choose(" ".join(_said(m["content"]) for m in opened), turn, body, headers)
        if not self._ready(reply):
            return
        if reply.status != 200:
            self._whole(reply.status, _error("api_error", reply.text or "scripted"))
            return
        message = self._message(body, reply)
        if body.get("stream"):
            self._stream(_anthropic_events(message, reply), reply)
        else:
            self._whole(200, message)

    def _message(self, body: dict[str, Any], reply: Reply) -> dict[str, Any]:
        content: list[dict[str, Any]] = [{"type": "text", "text": reply.text}] if reply.text else []
        content += [{"type": "tool_use", "id": self.server_of.new_id("toolu"), "name": c.name, "input": c.input} for c in reply.calls]
        return {
            "id": self.server_of.new_id("msg"),
            "type": "message",
            "role": "assistant",
            "model": body["model"],
            "content": content,
            "stop_reason": "tool_use" if reply.calls else "end_turn",
            "stop_sequence": None,
            "usage": _anthropic_usage(reply.used, reply.used.output),
        }

    # --- OpenAI

    def _responses(self, body: dict[str, Any]) -> None:
        headers = self._named()
        _need(isinstance(body.get("model"), str), "no model")
        items = body.get("input")
        _need(isinstance(items, list) and bool(items), "input is no list")
        assert isinstance(items, list)
        _check_items(items)
        spoken = [i for i in items if i.get("type", "message") == "message" and i.get("role") == "user"]
        first = " ".join(_said(i.get("content")) for i in spoken)
        reply = self.server_of.choose(first, _answered(items), body, headers)
        if not self._ready(reply):
            return
        if reply.status != 200:
            self._whole(reply.status, {"error": {"message": reply.text or "scripted", "type": "server_error", "code": None}})
            return
        events = self._response_events(body, reply)
        if body.get("stream"):
            self._stream(events, reply)
        else:
            self._whole(200, [*events][-1]["response"])

    def _response_events(self, body: dict[str, Any], reply: Reply) -> Iterator[dict[str, Any]]:
        made: dict[str, Any] = {"id": self.server_of.new_id("resp"), "object": "response", "model": body["model"], "status": "in_progress"}
        yield {"type": "response.created", "response": {**made, "output": []}}
        items: list[dict[str, Any]] = []
        if reply.text:
            items.append(_spoken(self.server_of.new_id("msg"), reply.text))
        for call in reply.calls:
            call_id = self.server_of.new_id("call")
            items.append(
                {"type": "function_call", "id": self.server_of.new_id("fc"), "call_id": call_id, "name": call.name}
                | {"arguments": json.dumps(call.input), "status": "completed"}
                | ({"namespace": call.namespace} if call.namespace else {})
            )
        for index, item in enumerate(items):
            yield {"type": "response.output_item.added", "output_index": index, "item": item}
            if item["type"] == "message":
                for word in _pieces(reply.text):
                    yield {
                        "type": "response.output_text.delta",
                        "item_id": item["id"],
                        "output_index": index,
                        "content_index": 0,
                        "delta": word,
                    }
            yield {"type": "response.output_item.done", "output_index": index, "item": item}
        used = reply.used
        total_in = used.input + used.cache_read
        usage = {"input_tokens": total_in, "input_tokens_details": {"cached_tokens": used.cache_read}, "output_tokens": used.output}
        usage |= {"output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": total_in + used.output}
        yield {"type": "response.completed", "response": {**made, "status": "completed", "output": items, "usage": usage}}

    def _chat(self, body: dict[str, Any]) -> None:
        _need(isinstance(body.get("model"), str), "no model")
        messages = body.get("messages")
        _need(isinstance(messages, list) and bool(messages), "no messages")
        assert isinstance(messages, list)
        problem = chat_problem(messages)
        _need(not problem, problem)
        first = " ".join(_said(m.get("content")) for m in messages if m.get("role") == "user")
        turn = sum(1 for m in messages if m.get("role") == "assistant")
        reply = self.server_of.choose(first, turn, body, self._named())
        if not self._ready(reply):
            return
        if body.get("stream"):
            self._data((json.dumps(event) for event in chat_events(body["model"], reply, self.server_of.new_id)), "[DONE]")
        else:
            self._whole(200, chat_whole(body["model"], reply, self.server_of.new_id))

    # --- Google

    def _gemini(self, model: str, verb: str, body: dict[str, Any]) -> None:
        contents = body.get("contents")
        _need(isinstance(contents, list) and bool(contents), "no contents")
        assert isinstance(contents, list)
        if verb == "countTokens":
            self.server_of.count()
            self._whole(200, {"totalTokens": 12})
            return
        problem = gemini_problem(contents)
        _need(not problem, problem)
        first = " ".join(_said(c.get("parts")) for c in contents if c.get("role") == "user")
        turn = sum(1 for c in contents if c.get("role") == "model")
        reply = self.server_of.choose(first, turn, body | {"model": model}, self._named())
        if not self._ready(reply):
            return
        answer = gemini_whole(model, reply, self.server_of.new_id)
        if verb == "streamGenerateContent":
            self._data([json.dumps(answer)])
        else:
            self._whole(200, answer)

    # --- wire

    def _ready(self, reply: Reply) -> bool:
        """Waits as the scene says; False: the test is over."""
        end = time.monotonic() + reply.delay_s
        while not self.server_of.ending.is_set():
            held = reply.after is not None and not reply.after.is_set()
            if not held and time.monotonic() >= end:
                return True
            if self._is_gone():
                break
            self.server_of.ending.wait(0.02)
        self.close_connection = True
        return False

    def _is_gone(self) -> bool:
        """Whether who asked has hung up."""
        if not readable(self.connection.fileno(), 0):
            return False
        try:
            return not self.connection.recv(1, socket.MSG_PEEK)
        except OSError:
            return True

    def _whole(self, status: int, answer: dict[str, Any]) -> None:
        data = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def _stream(self, events: Iterator[dict[str, Any]], reply: Reply) -> None:
        def lines() -> Iterator[str]:
            for event in events:
                if reply.chunk_s and "delta" in event["type"]:
                    self.server_of.ending.wait(reply.chunk_s)
                yield f"event: {event['type']}\ndata: {json.dumps(event)}\n\n"

        self._chunks(lines())

    def _data(self, events: Iterable[str], *last: str) -> None:
        """A stream whose events have no names."""
        self._chunks(f"data: {event}\n\n" for event in (*events, *last))

    def _chunks(self, lines: Iterable[str]) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for line in lines:
            data = line.encode()
            self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
            self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n")


def _need(true: bool, words: str) -> None:
    if not true:
        raise _Refused(words)


def _error(kind: str, words: str) -> dict[str, Any]:
    return {"type": "error", "error": {"type": kind, "message": words}}


def _said(content: object) -> str:
    """The words of one message."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return " ".join(str(p.get("text", "")) for p in parts if isinstance(p, dict))


def _check_messages(body: dict[str, Any]) -> list[dict[str, Any]]:
    """As the vendor does: roles, no empty content, every tool call answered in the message behind it."""
    _need(isinstance(body.get("model"), str), "no model")
    messages = body.get("messages")
    _need(isinstance(messages, list) and bool(messages), "no messages")
    assert isinstance(messages, list)
    _need(messages[0].get("role") == "user", "the first message is not the user's")
    open_calls: set[str] = set()
    for message in messages:
        _need(message.get("role") in ("user", "assistant", "system"), f"role {message.get('role')!r}")
        content = message.get("content")
        _need(bool(content), "a message is empty")
        parts = [p for p in content if isinstance(p, dict)] if isinstance(content, list) else []
        results = {str(p.get("tool_use_id")) for p in parts if p.get("type") == "tool_result"}
        if message["role"] == "user":
            _need(open_calls <= results, f"calls without a result: {sorted(open_calls - results)}")
            _need(results <= open_calls, f"results without a call: {sorted(results - open_calls)}")
            open_calls = set()
        elif message["role"] == "assistant":
            open_calls = {str(p.get("id")) for p in parts if p.get("type") == "tool_use"}
    _need(messages[-1]["role"] != "assistant", "the last message is the assistant's")
    return messages


def _check_items(items: list[dict[str, Any]]) -> None:
    calls = {i.get("call_id") for i in items if i.get("type") == "function_call"}
    results = {i.get("call_id") for i in items if i.get("type") == "function_call_output"}
    _need(results <= calls, f"results without a call: {sorted(map(str, results - calls))}")
    _need(calls <= results, f"calls without a result: {sorted(map(str, calls - results))}")


def _answered(items: list[dict[str, Any]]) -> int:
    """Answers among the items: what the model said and called in one go is one."""
    mine = [i.get("type") == "function_call" or (i.get("type", "message") == "message" and i.get("role") == "assistant") for i in items]
    return sum(1 for n, one in enumerate(mine) if one and not (n and mine[n - 1]))


def _anthropic_usage(used: Used, output: int) -> dict[str, Any]:
    return {
        "input_tokens": used.input,
        "cache_creation_input_tokens": used.cache_write,
        "cache_read_input_tokens": used.cache_read,
        "cache_creation": {"ephemeral_5m_input_tokens": used.cache_write, "ephemeral_1h_input_tokens": 0},
        "output_tokens": output,
        "service_tier": "standard",
    }


def _pieces(text: str) -> list[str]:
    words = text.split(" ")
    return [word + (" " if n < len(words) - 1 else "") for n, word in enumerate(words)]


def _anthropic_events(message: dict[str, Any], reply: Reply) -> Iterator[dict[str, Any]]:
    early = _anthropic_usage(reply.used, reply.used.early_output)
    yield {"type": "message_start", "message": {**message, "content": [], "stop_reason": None, "usage": early}}
    for index, block in enumerate(message["content"]):
        if block["type"] == "text":
            yield {"type": "content_block_start", "index": index, "content_block": {"type": "text", "text": ""}}
            deltas = [{"type": "text_delta", "text": word} for word in _pieces(block["text"])]
        else:
            yield {"type": "content_block_start", "index": index, "content_block": {**block, "input": {}}}
            deltas = [{"type": "input_json_delta", "partial_json": json.dumps(block["input"])}]
        for delta in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    last = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield {"type": "message_delta", "delta": last, "usage": {"output_tokens": reply.used.output}}
    yield {"type": "message_stop"}


def _spoken(item_id: str, text: str) -> dict[str, Any]:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {"type": "message", "id": item_id, "role": "assistant", "status": "completed", "content": content}
