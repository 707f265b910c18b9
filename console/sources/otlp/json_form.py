"""OTLP as JSON (http/json): the protobuf shapes by their camel-case names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from console.sources.telemetry.items import Item, Kind, Unreadable, counted, event_name, kept, temporality, text

_VALUES = ("stringValue", "intValue", "doubleValue", "boolValue")


def items(kind: Kind, body: bytes) -> Iterator[Item]:
    """What a body holds. Unreadable, when it is asked for the first or a later item."""
    try:
        whole = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError, ValueError) as error:
        raise Unreadable("a body that is no JSON", str(error)) from error
    if not isinstance(whole, dict):
        raise Unreadable("a body that is no OTLP")
    walk = {"metrics": _metrics, "logs": _logs, "traces": _spans}[kind]
    return counted(walk(whole))


def _metrics(whole: dict[str, Any]) -> Iterator[Item]:
    for resource in _dicts(whole, "resourceMetrics"):
        of_all = _attributes(_dict(resource, "resource"))
        for scope in _dicts(resource, "scopeMetrics"):
            for metric in _dicts(scope, "metrics"):
                total = _dict(metric, "sum")
                if total.get("isMonotonic") is not True:
                    continue
                for point in _dicts(total, "dataPoints"):
                    yield Item(
                        "metrics",
                        text(metric.get("name")),
                        of_all | _attributes(point),
                        value=_number(point.get("asDouble", point.get("asInt"))),
                        start=_number(point.get("startTimeUnixNano")) or 0,
                        at=_number(point.get("timeUnixNano")) or 0,
                        temporality=temporality(total.get("aggregationTemporality")),
                    )


def _logs(whole: dict[str, Any]) -> Iterator[Item]:
    for resource in _dicts(whole, "resourceLogs"):
        of_all = _attributes(_dict(resource, "resource"))
        for scope in _dicts(resource, "scopeLogs"):
            for record in _dicts(scope, "logRecords"):
                own = of_all | _attributes(record)
                name = event_name(own.get("event.name"), record.get("eventName"), _dict(record, "body").get("stringValue"))
                yield Item("logs", name, own)


def _spans(whole: dict[str, Any]) -> Iterator[Item]:
    for resource in _dicts(whole, "resourceSpans"):
        of_all = _attributes(_dict(resource, "resource"))
        for scope in _dicts(resource, "scopeSpans"):
            for span in _dicts(scope, "spans"):
                ident = f"{text(span.get('traceId'))}.{text(span.get('spanId'))}"
                yield Item("traces", text(span.get("name")), of_all | _attributes(span), ident=ident)


def _attributes(holder: dict[str, Any]) -> dict[str, Any]:
    return kept((one.get("key"), _value(one.get("value"))) for one in _dicts(holder, "attributes"))


def _value(value: object) -> object:
    return next((value[name] for name in _VALUES if name in value), None) if isinstance(value, dict) else None


def _number(value: object) -> str | int | float | None:
    """64-bit numbers are text in JSON; what they are is judged where they count."""
    return value[:40] if isinstance(value, str) else value if isinstance(value, int | float) else None


def _dict(holder: dict[str, Any], name: str) -> dict[str, Any]:
    found = holder.get(name)
    return found if isinstance(found, dict) else {}


def _dicts(holder: dict[str, Any], name: str) -> Iterator[dict[str, Any]]:
    found = holder.get(name)
    return (one for one in (found if isinstance(found, list) else ()) if isinstance(one, dict))
