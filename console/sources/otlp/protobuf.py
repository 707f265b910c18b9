"""OTLP as protobuf (http/protobuf), where the library opentelemetry-proto is installed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from console.sources.telemetry.items import Item, Kind, Unreadable, counted, event_name, kept, temporality, text

try:
    from google.protobuf.message import DecodeError
    from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
    from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    MISSING = ""
except ImportError as error:
    MISSING = f"the library opentelemetry-proto is not installed ({error})"
"""Why protobuf is not read here, or empty."""


def items(kind: Kind, body: bytes) -> Iterator[Item]:
    """What a body holds. Unreadable, when it is asked for the first or a later item. Nesting is bounded by the library (100)."""
    if MISSING:
        raise Unreadable(f"protobuf is not read here, because {MISSING}: use http/json")
    shapes: dict[Kind, tuple[Any, Any]] = {
        "metrics": (ExportMetricsServiceRequest, _metrics),
        "logs": (ExportLogsServiceRequest, _logs),
        "traces": (ExportTraceServiceRequest, _spans),
    }
    shape, walk = shapes[kind]
    whole = shape()
    try:
        whole.ParseFromString(body)
    except DecodeError as error:
        raise Unreadable("a body that is no OTLP", str(error)[-80:]) from error
    return counted(walk(whole))


def _metrics(whole: Any) -> Iterator[Item]:
    for resource in whole.resource_metrics:
        of_all = _attributes(resource.resource)
        for metric in (one for scope in resource.scope_metrics for one in scope.metrics):
            if not metric.sum.is_monotonic:
                continue
            for point in metric.sum.data_points:
                which = point.WhichOneof("value")
                yield Item(
                    "metrics",
                    text(metric.name),
                    of_all | _attributes(point),
                    value=getattr(point, which) if which else None,
                    start=point.start_time_unix_nano,
                    at=point.time_unix_nano,
                    temporality=temporality(metric.sum.aggregation_temporality),
                )


def _logs(whole: Any) -> Iterator[Item]:
    for resource in whole.resource_logs:
        of_all = _attributes(resource.resource)
        for record in (one for scope in resource.scope_logs for one in scope.log_records):
            own = of_all | _attributes(record)
            said = record.body.string_value if record.body.WhichOneof("value") == "string_value" else ""
            yield Item("logs", event_name(own.get("event.name"), getattr(record, "event_name", ""), said), own)


def _spans(whole: Any) -> Iterator[Item]:
    for resource in whole.resource_spans:
        of_all = _attributes(resource.resource)
        for span in (one for scope in resource.scope_spans for one in scope.spans):
            ident = f"{span.trace_id[:16].hex()}.{span.span_id[:8].hex()}"
            yield Item("traces", text(span.name), of_all | _attributes(span), ident=ident)


def _attributes(holder: Any) -> dict[str, Any]:
    return kept((one.key, _value(one.value)) for one in holder.attributes)


def _value(value: Any) -> object:
    which = value.WhichOneof("value")
    return getattr(value, which) if which in ("string_value", "int_value", "double_value", "bool_value") else None
