"""The same telemetry as protobuf is read as the same; where the library is not there, that is said."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from console.sources.otlp import json_form as otlp_json
from console.sources.otlp import protobuf as otlp_protobuf
from console.sources.otlp.book import TelemetryBook
from console.sources.telemetry.items import Kind, Unreadable

DATA = Path(__file__).parents[3] / "data"


def has_library() -> bool:
    try:
        return find_spec("opentelemetry.proto") is not None
    except ModuleNotFoundError:
        return False


def packed(kind: Kind, body: dict[str, Any]) -> bytes:
    """As an exporter would send it."""
    from google.protobuf import json_format

    names = {"logs": "ExportLogsServiceRequest", "metrics": "ExportMetricsServiceRequest", "traces": "ExportTraceServiceRequest"}
    shape = getattr(otlp_protobuf, names[kind])
    # JSON of OTLP writes ids in hexadecimal, that of protobuf in base 64.
    text = json.dumps(body, default=str)
    whole = json.loads(
        text, object_hook=lambda one: {k: _id(v) if k in ("traceId", "spanId", "parentSpanId") else v for k, v in one.items()}
    )
    return bytes(json_format.ParseDict(whole, shape(), ignore_unknown_fields=True).SerializeToString())


def _id(text: str) -> str:
    return base64.b64encode(bytes.fromhex(text)).decode()


def lines(program: str) -> Iterator[tuple[Kind, dict[str, Any]]]:
    for line in (DATA / program / "otlp-http-json.jsonl").read_text().splitlines():
        told = json.loads(line)
        yield told["path"].rpartition("/")[2], told["body"]


@pytest.mark.parametrize("program", ["claude-code", "codex"])
def test_protobuf_and_json_of_the_real_programs_say_the_same(program: str) -> None:
    if not has_library():  # then every body is refused, with why
        with pytest.raises(Unreadable, match="use http/json"):
            list(otlp_protobuf.items("logs", b""))
        return
    by_json, by_protobuf = TelemetryBook(), TelemetryBook()
    for kind, body in lines(program):
        by_json.take(otlp_json.items(kind, json.dumps(body).encode()))
        by_protobuf.take(otlp_protobuf.items(kind, packed(kind, body)))
        # Told again in the other way, spans apart, whose ids are not written alike, nothing is new.
        if kind != "traces":
            by_json.take(otlp_protobuf.items(kind, packed(kind, body)))
    seen, same = ([(one.session, one.program, one.model, one.usage, one.agents) for one in b.sessions()] for b in (by_json, by_protobuf))
    assert sorted(seen, key=str) == sorted(same, key=str) and len(seen) >= 1
    assert by_json.refusals() == by_protobuf.refusals() == 0


def test_whether_the_library_is_there_is_known() -> None:
    assert bool(otlp_protobuf.MISSING) is not has_library()


@pytest.mark.parametrize("odd", [b"\xff" * 100, b"\x0a\x05ab", bytes(range(256)), b"\x0a\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01"])
def test_bytes_that_are_none_are_refused(odd: bytes) -> None:
    kinds: tuple[Kind, ...] = ("logs", "metrics", "traces")
    for kind in kinds:
        with pytest.raises(Unreadable):
            list(otlp_protobuf.items(kind, odd))


def test_nesting_without_end_is_refused() -> None:
    deep = b""
    for _ in range(300):
        deep = _field(5, _field(1, deep))  # an array of an array of ...
    with pytest.raises(Unreadable):
        list(otlp_protobuf.items("logs", _field(1, _field(2, _field(2, _field(5, deep))))))


def _field(number: int, body: bytes) -> bytes:
    length, size = len(body), b""
    while length > 127:
        size, length = size + bytes([length & 127 | 128]), length >> 7
    return bytes([number << 3 | 2]) + size + bytes([length]) + body
